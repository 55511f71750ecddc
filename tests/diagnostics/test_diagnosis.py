"""Every finding of `diagnose`, beside a fit near it that has not got it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from echolearn import ESNClassifier, ESNForecaster, ESNRegressor, SeriesClassifier, SeriesRegressor
from echolearn.datasets import mackey_glass
from echolearn.diagnostics import diagnose
from echolearn.diagnostics.diagnosis import Finding
from toys import grouped

RNG = np.random.default_rng(1)
X = RNG.normal(size=(1200, 2))
NEW = RNG.normal(size=(600, 2))
FIXED = {"learn": "none", "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def echoed(x):
    return x[:, 0] + 0.5 * np.roll(x[:, 1], 1)


def topics(esn, x, y):
    found = diagnose(esn, x, y)
    assert len(str(found).splitlines()) < 25
    return [finding.topic for finding in found.findings]


def regressor(units=40, **settings):
    return ESNRegressor(units, **grouped({**FIXED, **settings})).fit(X, echoed(X))


def test_nothing_stands_out():
    found = diagnose(regressor(), NEW, echoed(NEW))
    assert (
        str(found)
        == f"R² {regressor().score(NEW, echoed(NEW)):.3f} on 600 targets (0 is the mean).\nNothing stands out."
    )
    assert "Nothing stands out" in found._repr_html_()


def test_no_better_than_trivial_answers():
    assert topics(regressor(), NEW, RNG.normal(size=600))[0] == "baseline"
    walk = np.cumsum(RNG.normal(size=2000))[:, None]
    esn = ESNRegressor(30, **grouped(FIXED)).fit(walk[:1499], walk[1:1500, 0])
    assert "last value" in topics(esn, walk[1499:-1], walk[1500:, 0])
    labels = ESNClassifier(30, **grouped(FIXED)).fit(X, X[:, 0] > 0)
    assert "baseline" in topics(labels, NEW, NEW[:, 1] > 0)
    assert topics(labels, NEW, NEW[:, 0] > 0) == []


def test_cold_start():
    series = np.asarray(mackey_glass(2100)).reshape(-1, 1)
    x, y = series[:-10], series[10:, 0]
    esn = ESNRegressor(50, washout=0, **grouped(FIXED)).fit(x[:1500], y[:1500])
    assert "cold start" in topics(esn, [x[1600:2000]], [y[1600:2000]])
    assert "cold start" not in topics(esn, x[1500:2000], y[1500:2000])  # continues the training series


def test_overfitting_and_columns():
    y = X[:, 0] * np.roll(X[:, 1], 1)
    esn = ESNRegressor(200, ridge=1e-6, **grouped(FIXED)).fit(X[:200], y[:200])
    found = topics(esn, NEW, NEW[:, 0] * np.roll(NEW[:, 1], 1))
    assert {"overfitting", "columns"} <= set(found)
    assert not {"overfitting", "columns"} & set(topics(regressor(), NEW, echoed(NEW)))


def test_underfitting():
    y = np.sin(20 * X[:, 0]) + 0.5 * X[:, 1]
    esn = ESNRegressor(5, **grouped(FIXED)).fit(X, y)
    assert "underfitting" in topics(esn, NEW, np.sin(20 * NEW[:, 0]) + 0.5 * NEW[:, 1])


def test_ridge_at_an_edge():
    assert "ridge" in topics(regressor(ridge=[1e4, 1e5]), NEW, echoed(NEW))
    assert "ridge" not in topics(regressor(ridge=[1e-6, 1e-3]), NEW, echoed(NEW))


def test_saturated_and_constant_units():
    assert "saturation" in topics(regressor(input_scaling=20.0), NEW, echoed(NEW))
    assert "saturation" in topics(regressor(input_scaling=20.0, bidirectional=True), NEW, echoed(NEW))
    assert "constant units" in topics(regressor(input_scaling=1e-7, bias_scaling=0.0), NEW, echoed(NEW))


def test_memory_and_spectral_radius():
    found = topics(regressor(spectral_radius=4.0, input_scaling=0.01), NEW, echoed(NEW))
    assert {"memory", "spectral radius"} <= set(found)


def test_scale_with_a_hostile_name():
    table = pd.DataFrame(X, columns=["a", "<script>alert(1)</script>"])
    esn = ESNRegressor(20, **grouped(FIXED)).fit(table, echoed(X))
    shifted = table[:600].copy()
    shifted["<script>alert(1)</script>"] += 100
    found = diagnose(esn, shifted, echoed(X)[:600])
    assert "scale" in [f.topic for f in found.findings]
    assert "<script>" in str(found)
    assert "<script>" not in found._repr_html_()
    assert "scale" in topics(regressor(standardize=False), 50 + NEW, echoed(NEW))


def test_imbalance_and_missing_values():
    esn = ESNClassifier(20, **grouped(FIXED)).fit(X, np.where(X[:, 0] > 1.5, "<b>", "usual"))
    assert "imbalance" in topics(esn, NEW, np.where(NEW[:, 0] > 1.5, "<b>", "usual"))
    gaps = np.where(RNG.random(NEW.shape) < 0.4, np.nan, NEW)
    esn = ESNRegressor(20, missing="carry", **grouped(FIXED)).fit(
        np.where(RNG.random(X.shape) < 0.4, np.nan, X), echoed(X)
    )
    y = echoed(NEW)
    y[::2] = np.nan
    assert {"gaps", "missing targets"} <= set(topics(esn, gaps, y))


def test_learning_that_did_not_help():
    sequences, noise = list(X.reshape(12, 100, 2)), list(RNG.normal(size=(12, 100)))
    esn = ESNRegressor(20, epochs=6, learning={"patience": None}, random_state=0).fit(sequences, noise)
    rows = [row["valid_error"] for row in esn.history_]
    assert ("learning" in topics(esn, sequences, noise)) == (np.argmin(rows) == 0)


SERIES = [RNG.normal(size=(30, 2)) + (k % 2) for k in range(60)]
CLASSES = np.arange(60) % 2


def test_whole_series_that_are_told_apart():
    for esn, result in ((SeriesClassifier(30), "100.0% of 60 labels"), (SeriesRegressor(30), "R² 1.000")):
        found = diagnose(esn.fit(SERIES, CLASSES), SERIES, CLASSES)
        assert found.summary.startswith(result)
        assert list(found.findings) == []


def test_whole_series_that_are_not():
    """The cures name no setting that an estimator of whole series has not."""
    mixed = np.random.default_rng(0).permutation(CLASSES)
    for esn in (SeriesClassifier(30), SeriesRegressor(30)):
        esn.fit(SERIES, CLASSES)
        first = diagnose(esn, SERIES, mixed).findings[0]
        assert (first.topic, first.severity) == ("baseline", "problem")
        assert "more data" in first.cure
        assert "input_scaling" not in first.cure
        assert "scale" in topics(esn, [100 * x for x in SERIES], CLASSES)
    rare = (np.arange(60) < 3).astype(int)
    assert "imbalance" in topics(SeriesClassifier(30).fit(SERIES, rare), SERIES, rare)
    assert "imbalance" not in topics(SeriesClassifier(30, class_weight="balanced").fit(SERIES, rare), SERIES, rare)
    gaps = [np.where(np.arange(60).reshape(30, 2) % 3 == 0, np.nan, x) for x in SERIES]
    assert "gaps" in topics(SeriesClassifier(30, missing="mean").fit(gaps, CLASSES), gaps, CLASSES)
    with pytest.raises(ValueError, match="same kind as y"):
        diagnose(SeriesClassifier(5).fit(SERIES, CLASSES), SERIES, [x[:, 0] > 0 for x in SERIES])


def test_findings_are_in_the_order_of_their_severity():
    found = diagnose(regressor(ridge=[1e4, 1e5]), 200 * NEW, RNG.normal(size=600)).findings
    order = [("problem", "warning", "note").index(f.severity) for f in found]
    assert len(found) > 2
    assert order == sorted(order)
    assert all(isinstance(f, Finding) and f.fact and f.cure for f in found)


def test_others_are_refused():
    with pytest.raises(
        TypeError, match="diagnose takes a fitted classifier or regressor of echolearn, not ESNForecaster"
    ):
        diagnose(ESNForecaster(10), X, X)
    with pytest.raises(ValueError, match="there is nothing to diagnose"):
        diagnose(regressor(washout=50), [NEW[:40]], [echoed(NEW)[:40]])


REPORT = """\
R² -0.258 on 300 targets (0 is the mean).
problem: The squared error is 1.26 times that of always answering the mean.
  -> Check that X and y belong together; then try hidden_units=500, input_scaling=1.0, or more data.
warning: The squared error is 1.3 of the variance here, and 0.81 in training.
  -> Try hidden_units=100, ridge='auto', or more data.
warning: 95% of the units' activities are beyond 0.95 of their range, where they hardly bend.
  -> Try input_scaling=0.125, or standardize=True if it is off.
warning: The network sees feature 1 with mean -30.6, standard deviation 300.
  -> Set standardize=True.
"""  # of the example in docs/howto/troubleshooting.md


def test_the_example_of_the_page_prints_its_report(capsys):
    page = (Path(__file__).parents[2] / "docs" / "howto" / "troubleshooting.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (diagnosis,) = [block for block in blocks if "print(diagnose(" in block]
    names: dict[str, object] = {}
    exec(compile(blocks[0], "troubleshooting.md", "exec"), names)
    capsys.readouterr()
    exec(compile(diagnosis, "troubleshooting.md", "exec"), names)
    expected, printed = (re.sub(r"-?[\d.]+", "0", words) for words in (REPORT, capsys.readouterr().out))
    assert printed == expected
