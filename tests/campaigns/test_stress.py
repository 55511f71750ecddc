"""The short form of reliability/stress.py, and what its campaigns have found."""

import numpy as np
import pytest

import toys
from echolearn import ESNClassifier, ESNForecaster, ESNRegressor
from echolearn.exceptions import EchoStateWarning, ReadoutWarning
from echolearn.fitting.codecs import ValueCodec
from reliability import stress

HARD = [
    {"spectral_radius": 100.0},
    {"ridge": 0.0, "copies": 2},
    {"ridge": 1e6},
    {"scale": 1e-30},
    {"scale": 1e30},
    {"still": True},
]


@pytest.mark.parametrize("case", HARD, ids=str)
@pytest.mark.parametrize("name", stress.ESTIMATORS)
def test_no_nan_and_no_poor_result_without_a_word(name, case):
    found, why = stress.outcome(name, "float32", case)
    assert found != "FAILED", why


@pytest.mark.parametrize("case", [{"steps": 1}, {"classes": 1}, {"rare": 0.001}, {"classes": 300}], ids=str)
def test_odd_data(case):
    found, why = stress.outcome("classifier, softmax", "float32", {"washout": 0, **case})
    assert found != "FAILED", why


def test_several_troubles_at_once():
    rng = np.random.default_rng(0)
    for _, case in stress.by_chance(40, rng):
        name = list(stress.ESTIMATORS)[rng.integers(len(stress.ESTIMATORS))]
        found, why = stress.outcome(name, "float32", case, several=True)
        assert found != "FAILED", f"{name}, {case}: {why}"


def test_the_campaign_sees_failures(monkeypatch):
    """A network that answers NaN, or a constant without a word, is not let through."""
    assert stress.outcome("regressor", "float64", {})[0] == "good"
    with monkeypatch.context() as changed:
        changed.setattr(ValueCodec, "decode", lambda self, Y: np.full(len(Y), np.nan))
        assert stress.outcome("regressor", "float64", {})[0] == "FAILED"
    with monkeypatch.context() as changed:
        changed.setattr(ValueCodec, "decode", lambda self, Y: np.full(len(Y), self.mean[0]))
        assert "without a warning" in stress.outcome("regressor", "float64", {})[1]


@pytest.mark.parametrize("scale", [1e-280, 1e-30, 1e30, 1e280])
def test_targets_of_any_scale(scale):
    """Their squares are zero or infinite; the answers are those for targets near 1, scaled."""
    X, Y = toys.echoes()
    power = 2.0 ** round(np.log2(scale))  # exact in floating point
    plain = ESNRegressor(15, learn="none").fit(X, Y)
    scaled = ESNRegressor(15, learn="none").fit(X, [power * y for y in Y])
    for a, b in zip(plain.predict(X), scaled.predict(X), strict=True):
        np.testing.assert_array_equal(power * a, b)


def test_series_of_any_scale():
    wave = np.sin(np.arange(120) / 4)
    plain = ESNForecaster(15, learn="none").fit(wave).predict(5)
    for power in (2.0**-900, 2.0**900):
        np.testing.assert_array_equal(ESNForecaster(15, learn="none").fit(power * wave).predict(5), power * plain)


def test_a_ridge_that_drowns_the_states_is_reported():
    X, Y = toys.echoes()
    with pytest.warns(ReadoutWarning, match=r"ridge=1e\+09 .* 17 of 17 columns") as found:
        esn = ESNRegressor(15, learn="none", ridge=1e9).fit(X, Y)
    assert found[0].filename == __file__
    assert esn.score(X, Y) < 1e-3
    ESNRegressor(15, learn="none", ridge=0.1).fit(X, Y)


def test_leaks_help_only_so_far():
    X, y = toys.labels()
    ESNClassifier(15, learn="none", spectral_radius=2.0).fit(X, y)
    with pytest.warns(EchoStateWarning, match="above 4 leaks no longer let the network forget"):
        ESNClassifier(15, learn="none", spectral_radius=5.0).fit(X, y)
