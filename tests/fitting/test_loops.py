"""Fits of series without noise: precise readouts, learning through the loop, and choices by the valid time."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from echolearn import ESNForecaster, load
from echolearn.datasets import lorenz
from echolearn.exceptions import TrainingWarning
from echolearn.fitting import loops
from echolearn.metrics import valid_time
from toys import grouped

SERIES = lorenz(1500)
HOW = {
    "solver": "qr", "washout": 50, "spectral_radius": 0.1, "leak": 1.0, "input_scaling": 0.1, "bias_scaling": 1.0,
    "validation_fraction": 0.3,
}  # fmt: skip


def lasts(esn, at=1000):
    """Return the valid time of a forecast in steps."""
    return valid_time(SERIES[at:], esn.predict(len(SERIES) - at), scale=SERIES.std(axis=0))


@pytest.fixture(scope="module")
def fixed():
    return ESNForecaster(40, learn="none", **grouped(HOW)).fit(SERIES[:1000])


@pytest.fixture(scope="module")
def learned():
    return ESNForecaster(40, epochs=25, **grouped(HOW, loop_steps=5)).fit(SERIES[:1000])


def test_a_fixed_network_is_more_precise_than_by_the_gram_matrix(fixed):
    usual = {k: v for k, v in HOW.items() if k != "solver"}
    ours, by_gram = (ESNForecaster(80, learn="none", **grouped(how)).fit(SERIES[:1000]) for how in (HOW, usual))
    assert np.std(ours.residuals_) < np.std(by_gram.residuals_) / 5
    assert lasts(ours) > lasts(by_gram) + 20
    assert [row["epoch"] for row in fixed.history_] == [0]


def test_learning_lengthens_the_forecasts_of_the_held_out_steps(fixed, learned):
    scores = [(row["valid_time"], -row["valid_log_error"]) for row in learned.history_]
    assert learned.history_[0]["valid_time"] == fixed.history_[0]["valid_time"]
    assert max(scores) > scores[0]
    assert {row["loop_steps"] for row in learned.history_} == {0, 1, 5}
    one_step = [row["error"] for row in learned.history_ if row["loop_steps"] == 1]
    assert one_step[-1] < learned.history_[0]["error"] / 10
    assert not np.array_equal(learned.input_weights_, fixed.input_weights_)


def test_the_same_seed_gives_the_same_bits_and_files_keep_them(learned, tmp_path):
    again = ESNForecaster(40, epochs=25, **grouped(HOW, loop_steps=5)).fit(SERIES[:1000])
    np.testing.assert_array_equal(again.predict(50), learned.predict(50))
    learned.save(tmp_path / "esn.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "esn.safetensors").predict(50), learned.predict(50))


def test_weights_that_do_not_forecast_longer_are_discarded(fixed, monkeypatch):
    """Every look but the first finds forecasts of no length: what was drawn must stay."""
    true = loops.best_ridge
    calls = []

    def first_is_best(*arguments):
        score, ridge = true(*arguments)
        calls.append(score)
        return (score if len(calls) == 1 else (0.0, 0.0)), ridge

    monkeypatch.setattr(loops, "best_ridge", first_is_best)
    with pytest.warns(TrainingWarning, match="those that were drawn, which are kept"):
        kept = ESNForecaster(40, epochs=10, **grouped(HOW)).fit(SERIES[:1000])
    np.testing.assert_array_equal(kept.input_weights_, fixed.input_weights_)
    np.testing.assert_array_equal(kept.predict(20), fixed.predict(20))


def test_without_held_out_steps_the_last_weights_are_taken():
    esn = ESNForecaster(20, epochs=5, **grouped(HOW | {"validation_fraction": 0.0})).fit(SERIES[:600])
    assert "valid_time" not in esn.history_[-1]
    assert esn.history_[-1]["error"] < esn.history_[0]["error"]


def test_several_series_exogenous_inputs_and_noise():
    """Five series hold out whole ones; exogenous rows and noise go the same way as with solver='gram'."""
    rng = np.random.default_rng(0)
    series = [np.sin(0.3 * np.arange(200) + p) for p in range(5)]
    rows = [rng.standard_normal((200, 1)) for _ in series]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        esn = ESNForecaster(15, epochs=3, input_noise=1e-3, **grouped(HOW, loop_steps=2)).fit(series, exogenous=rows)
    assert len(esn.predict(5, exogenous=[rng.standard_normal((5, 1))] * 5)) == 5
    lower, upper = esn.forecast_interval(5, exogenous=[np.zeros((5, 1))] * 5)
    assert (lower[0] <= upper[0]).all()


def test_what_does_not_fit_is_explained(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="solver='auto'"):
        ESNForecaster(solver="auto").fit(SERIES)
    with pytest.raises(ValueError, match="loop_steps=0"):
        ESNForecaster(learning={"loop_steps": 0}).fit(SERIES)
    with pytest.raises(ValueError, match="checkpoint= is not kept"):
        ESNForecaster(20, **grouped(HOW)).fit(SERIES, checkpoint=tmp_path / "c")
    monkeypatch.setattr(loops, "available_memory", lambda: 1e3)
    with pytest.raises(MemoryError, match="solver='gram'"):
        ESNForecaster(20, **grouped(HOW)).fit(SERIES)
