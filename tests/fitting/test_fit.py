"""partial_fit: sequences added to the statistics give the same U as all of them at once."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toys
from echolearn import (
    ESNClassifier,
    ESNRegressor,
    SeriesClassifier,
    SeriesRegressor,
    load,
)
from echolearn.exceptions import ModelFileError
from echolearn.modelfile.layout import MODEL
from echolearn.modelfile.reader import read_tensors
from echolearn.modelfile.writer import write_tensors
from toys import grouped

X, LABELS = toys.labels(sequences=8)
VALUES = toys.echoes(sequences=8)[1]
RISING_X, RISING = toys.rising()
FIXED = {**toys.FAST, "learn": "none", "ridge": 1e-3, "dtype": "float64", "standardize": False}


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=4, unique=True), st.booleans(), st.integers(0, 3))
def test_any_cut_of_the_sequences_gives_the_readout_of_all(cuts, direct, washout):
    how = {**FIXED, "direct": direct, "washout": washout}
    at_once = ESNRegressor(**grouped(how)).fit(X, VALUES)
    esn = ESNRegressor(**grouped(how))
    edges = [0, *sorted(cuts), 8]
    for start, stop in pairwise(edges):
        esn.partial_fit(X[start:stop], VALUES[start:stop])
    for a, b in zip(esn.predict(X), at_once.predict(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


def test_targets_keep_the_scale_of_the_first_call():
    far = [100 + 50 * v for v in VALUES[4:]]
    esn = ESNRegressor(**grouped(FIXED)).partial_fit(X[:4], VALUES[:4]).partial_fit(X[4:], far)
    at_once = ESNRegressor(**grouped(FIXED)).fit(X, VALUES[:4] + far)
    assert (esn.target_mean_ != at_once.target_mean_).all()
    np.testing.assert_allclose(esn.predict(X[0]), at_once.predict(X[0]), rtol=1e-8)


def test_inputs_keep_the_scale_of_the_first_call():
    how = {**FIXED, "standardize": True}
    first = ESNRegressor(**grouped(how)).fit(X[:4], VALUES[:4])
    esn = ESNRegressor(**grouped(how)).partial_fit(X[:4], VALUES[:4]).partial_fit([100 * x for x in X[4:]], VALUES[4:])
    np.testing.assert_array_equal(esn.input_scale_, first.input_scale_)


@pytest.mark.parametrize("feedback", [False, True])
def test_classifier(feedback):
    how = {**FIXED, "readout": "ridge", "feedback": feedback}
    at_once = ESNClassifier(**grouped(how)).fit(X, LABELS)
    esn = ESNClassifier(**grouped(how))
    for x, y in zip(X, LABELS, strict=True):
        esn.partial_fit([x], [y], classes=["low", "high"])
    np.testing.assert_allclose(esn.network_.readout.U, at_once.network_.readout.U, rtol=1e-8, atol=1e-10)


SERIES_OF = {
    ESNClassifier: SeriesClassifier,
    ESNRegressor: SeriesRegressor,
}


@pytest.mark.parametrize("kind", SERIES_OF)
def test_one_target_per_series_is_refused_with_the_class_to_use(kind):
    esn = kind(5)
    words = rf"one target for each of the 40 sequences.*{kind.__name__} learns one target per step. Use "
    for y in (RISING, RISING.astype(float)):
        with pytest.raises(ValueError, match=words + f"{SERIES_OF[kind].__name__} for one target per series"):
            esn.fit(RISING_X, y)
    assert not hasattr(esn, "model_")
    SERIES_OF[kind](5).fit(RISING_X, RISING)


@pytest.mark.parametrize("kind", [ESNClassifier, ESNRegressor])
def test_targets_per_step_of_a_series_estimator_are_refused_with_the_class_to_use(kind):
    y = [(v[:, 0] > 0).astype(float) for v in VALUES]
    with pytest.raises(ValueError, match=f"y has one target per step; .*Use {kind.__name__} for one target per step"):
        SERIES_OF[kind](5).fit(X, y)
    kind(5, learn="none").fit(X, y)


def test_equal_targets_of_all_steps_are_refused_with_how_to_make_one_of_them():
    words = r"the same for all steps of a series.*\[labels\[0\] for labels in y\].*y\.groupby\(level=0\)\.first\(\)"
    repeated = [np.full(len(x), label) for x, label in zip(RISING_X, RISING, strict=True)]
    with pytest.raises(ValueError, match=words):
        SeriesClassifier(5).fit(RISING_X, repeated)
    repeated[0] = 1 - repeated[0]
    repeated[0][-1] = 1 - repeated[0][-1]
    with pytest.raises(ValueError, match="Use ESNClassifier for one target per step"):
        SeriesClassifier(5).fit(RISING_X, repeated)


def test_a_column_of_labels_is_read_as_labels():
    pandas = pytest.importorskip("pandas")
    names = [f"s{k}" for k in range(len(RISING_X))]
    labels = pandas.Series(np.where(RISING, "up", "down"), index=names)
    expected = SeriesClassifier(5).fit(RISING_X, labels).predict_proba(RISING_X)
    X = dict(zip(names, RISING_X, strict=True))
    for table in (labels.to_frame("label"), labels.to_frame("label")[::-1]):
        found = SeriesClassifier(5).fit(X, table).predict_proba(X)
        np.testing.assert_array_equal(np.array(list(found.values())).reshape(expected.shape), expected)


def test_added_sequences_have_one_target_per_step():
    esn = ESNClassifier(readout="ridge", **grouped(FIXED))
    with pytest.raises(ValueError, match="Use SeriesClassifier for one target per series"):
        esn.partial_fit(RISING_X, RISING)
    assert not hasattr(SeriesClassifier(), "partial_fit")


def test_automatic_ridge_is_chosen_as_a_fit_without_held_out_data_chooses():
    how = {**FIXED, "ridge": "auto"}
    esn = ESNRegressor(**grouped(how)).partial_fit(X[:3], VALUES[:3]).partial_fit(X[3:], VALUES[3:])
    at_once = ESNRegressor(**grouped(how)).fit(X, VALUES)
    assert esn.ridge_ == pytest.approx(at_once.ridge_)
    np.testing.assert_allclose(esn.predict(X[0]), at_once.predict(X[0]), rtol=1e-6)


def test_learned_weights_stay():
    esn = ESNRegressor(**grouped(toys.FAST)).fit(X[:4], VALUES[:4])
    W, W_rec, U = esn.input_weights_, esn.recurrent_weights_.data, esn.network_.readout.U
    esn.partial_fit(X[4:], VALUES[4:])
    np.testing.assert_array_equal(esn.input_weights_, W)
    np.testing.assert_array_equal(esn.recurrent_weights_.data, W_rec)
    assert (esn.network_.readout.U != U).any()


def test_classes_are_those_of_the_first_call():
    esn = ESNClassifier(readout="ridge", **grouped(FIXED))
    only_low = [x[y == "low"] for x, y in zip(X, LABELS, strict=True)]
    low = [y[y == "low"] for y in LABELS]
    with pytest.raises(ValueError, match="only one class"):
        esn.partial_fit(only_low, low)
    esn.partial_fit(only_low, low, classes=["low", "high", "never"])
    assert esn.classes_.tolist() == ["high", "low", "never"]
    esn.partial_fit(X, LABELS)
    with pytest.raises(
        ValueError, match=r"classes=\['low'\]; expected those of the first call, \['high', 'low', 'never'"
    ):
        esn.partial_fit(X, LABELS, classes=["low"])
    with pytest.raises(ValueError, match="labels that were not there when fitting"):
        esn.partial_fit(X, [np.full(len(x), "other") for x in X])
    esn.fit(X, LABELS)
    assert esn.classes_.tolist() == ["high", "low"]  # a fit starts anew


def test_no_classes_at_all_are_refused():
    with pytest.raises(ValueError, match="no class at all"):
        ESNClassifier(readout="ridge", **grouped(FIXED)).partial_fit(X, LABELS, classes=[])


def test_a_failed_call_changes_nothing():
    esn = ESNRegressor(**grouped(FIXED)).fit(X, VALUES)
    U, n = esn.network_.readout.U, esn.network_.readout.statistics.n
    for x, y, message in (
        (X, VALUES[:-1], "7 entries, but X has 8 sequences"),
        ([x[:, :1] for x in X], VALUES, "X has 1 features"),
        (X, [v[0, 0] for v in VALUES], "partial_fit: its y must be of the same kind"),
    ):
        with pytest.raises(ValueError, match=message):
            esn.partial_fit(x, y)
    np.testing.assert_array_equal(esn.network_.readout.U, U)
    assert esn.network_.readout.statistics.n == n


def test_a_softmax_readout_has_no_statistics():
    esn = ESNClassifier(**grouped(toys.FAST))
    assert not hasattr(esn, "partial_fit")
    with pytest.raises(AttributeError) as caught:
        esn.partial_fit(X, LABELS)
    assert "Set readout='ridge', or learn on a stream" in str(caught.value.__cause__)


def test_a_model_saved_with_its_statistics_continues(tmp_path):
    esn = ESNRegressor(**grouped(FIXED)).fit(X[:4], VALUES[:4])
    esn.save(tmp_path / "small")
    esn.save(tmp_path / "whole", sums=True)
    assert (tmp_path / "small").stat().st_size < (tmp_path / "whole").stat().st_size
    back = load(tmp_path / "whole").partial_fit(X[4:], VALUES[4:])
    np.testing.assert_array_equal(back.network_.readout.U, esn.partial_fit(X[4:], VALUES[4:]).network_.readout.U)
    small = load(tmp_path / "small")
    for impossible in (lambda: small.partial_fit(X, VALUES), lambda: small.save(tmp_path / "again", sums=True)):
        with pytest.raises(
            ValueError, match=r"has no statistics of its fit to add to: it was saved without.*save\(path, sums=True\)"
        ):
            impossible()
    assert small.predict(X[0]).shape == VALUES[0].shape


def test_misshapen_statistics_are_refused(tmp_path):
    ESNRegressor(**grouped(FIXED)).fit(X, VALUES).save(tmp_path / "m", sums=True)
    tensors, facts = read_tensors(tmp_path / "m", MODEL)
    write_tensors(tmp_path / "m", {**tensors, "G": tensors["G"][1:]}, facts, MODEL)
    with pytest.raises(ModelFileError, match=r"G has shape \(17, 18\); expected \(M, M\), here \(18, 18\)"):
        load(tmp_path / "m")


def test_a_softmax_model_has_no_statistics_to_save(tmp_path):
    with pytest.raises(ValueError, match="softmax"):
        ESNClassifier(**grouped(toys.FAST)).fit(X, LABELS).save(tmp_path / "m", sums=True)


def test_the_networks_of_an_ensemble_have_no_common_statistics(tmp_path):
    how = {**toys.FAST, "readout": "ridge", "ensemble": 2}
    with pytest.raises(ValueError, match=r"these 15 are an ensemble of 2 networks with one each. Set ensemble=1"):
        ESNClassifier(**grouped(how)).partial_fit(X, LABELS)
    esn = ESNClassifier(**grouped(how)).fit(X, LABELS)
    with pytest.raises(ValueError, match="it is an ensemble"):
        esn.save(tmp_path / "m", sums=True)
    np.testing.assert_array_equal(esn.stream().predict(X[0]), esn.predict(X[0]))
