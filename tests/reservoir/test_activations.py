"""Activations of users' own: checked, run, learned, kept by name, refused where they cannot go."""

from __future__ import annotations

import numpy as np
import pytest

from echolearn import ESNClassifier, ESNForecaster, ESNRegressor, Reservoir, load
from echolearn.gradients import loss_and_gradients
from echolearn.gradients.closed_loop import Series, several_steps
from echolearn.reservoir import _activations, register
from echolearn.sequences.batch import pack
from echolearn.states import harvest


def my_slope(z):
    return 1 - np.tanh(z) ** 2


@pytest.fixture
def my_tanh():
    """A registered copy of tanh: everything must come out as with the built-in one."""
    register("my_tanh", np.tanh, my_slope, replace=True)
    register("sine", np.sin, np.cos, replace=True)


def sequences(rng, lengths=(31, 17, 24)):
    X = [rng.standard_normal((n, 2)) for n in lengths]
    return X, [np.cumsum(x, axis=0)[:, :1] * 0.1 for x in X]


def pair(**how):
    one = Reservoir.random(2, 9, connections=3, input_scaling=0.5, bias_scaling=0.3, leak=(0.3, 0.9), random_state=0)
    return one, one.with_weights(activation="my_tanh")


def test_states_are_those_of_the_built_in_one(my_tanh):
    X, _ = sequences(np.random.default_rng(0), (40, *range(20, 60)))
    built_in, own = pair()
    for ours, theirs in zip(harvest(own, X), harvest(built_in, X), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("lookback", [None, 4])
def test_gradients_are_those_of_the_built_in_one(my_tanh, lookback):
    X, T = sequences(np.random.default_rng(0))
    built_in, own = (loss_and_gradients(r, X, T, ridge=0.1, lookback=lookback, washout=3) for r in pair())
    assert own.loss == pytest.approx(built_in.loss)
    for name in ("dE_dW", "dE_dbias", "dE_dleak"):
        np.testing.assert_allclose(getattr(own, name), getattr(built_in, name), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(own.dE_dW_rec.data, built_in.dE_dW_rec.data, rtol=1e-8, atol=1e-10)


def test_gradients_through_the_loop_are_those_of_the_built_in_one(my_tanh):
    z = np.random.default_rng(0).standard_normal((40, 2))
    series = [Series(pack([z[:-1]], np.float64), z[1:], 3, True)]
    (one, g), (two, own) = (several_steps(r, series, 0.1, 4) for r in pair())
    assert one == pytest.approx(two)
    np.testing.assert_allclose(own.W_rec, g.W_rec, rtol=1e-8, atol=1e-10)


def test_a_function_that_its_value_does_not_tell_has_the_right_gradient(my_tanh):
    """sin takes each value twice, with two slopes: the gradient must know z itself."""
    X, T = sequences(np.random.default_rng(1))
    r = pair()[0].with_weights(activation="sine", W=4 * pair()[0].W)
    found = loss_and_gradients(r, X, T, ridge=0.1).dE_dW
    h, moved = 1e-6, []
    for sign in (1, -1):
        W = r.W.copy()
        W[1, 4] += sign * h
        moved.append(loss_and_gradients(r.with_weights(W=W), X, T, ridge=0.1).loss)
    assert found[1, 4] == pytest.approx((moved[0] - moved[1]) / (2 * h), rel=1e-5)


def test_estimators_learn_with_it_and_keep_its_name(my_tanh, tmp_path, monkeypatch):
    X, T = sequences(np.random.default_rng(0), (40,) * 6)
    esn = ESNRegressor(12, reservoir={"activation": "sine"}, epochs=3).fit(X, T)
    esn.save(tmp_path / "own.safetensors")
    np.testing.assert_allclose(load(tmp_path / "own.safetensors").predict(X)[0], esn.predict(X)[0])
    monkeypatch.setattr(_activations, "_REGISTERED", {})
    with pytest.raises(ValueError, match="sine"):
        load(tmp_path / "own.safetensors")


def test_streams_and_exports_refuse_it(my_tanh, tmp_path):
    X, T = sequences(np.random.default_rng(0), (40,) * 6)
    esn = ESNRegressor(12, reservoir={"activation": "my_tanh"}, learn="none").fit(X, T)
    with pytest.raises(ValueError, match="compiled step does not know"):
        esn.stream()
    with pytest.raises(ValueError, match=r"my_tanh.*cannot be exported"):
        esn.export(tmp_path / "model.h")


def test_what_does_not_fit_is_explained(my_tanh):
    for arguments, words in (
        (("tanh", np.tanh, my_slope), "built-in"),
        (("my_tanh", np.tanh, my_slope), "registered already"),
        (("two words", np.tanh, my_slope), "expected a word"),
        (("wrong", np.tanh, np.cos), "differences of the function give"),
        (("of_value", np.tanh, lambda f: 1 - f * f), "as a function of z"),
        (("sums", np.tanh, np.sum), "shape"),
    ):
        with pytest.raises(ValueError, match=words):
            register(*arguments)
    with pytest.raises(ValueError, match=r"registered by echolearn\.reservoir\.register"):
        ESNClassifier(reservoir={"activation": "unheard"}).fit(np.zeros((3, 5, 1)), [0, 1, 0])
    ESNForecaster(10, reservoir={"activation": "my_tanh"}, learn="none", washout=5).fit(np.sin(np.arange(100.0)))
