"""The activations of the compiled loops, and their slopes."""

import numpy as np
import pytest
from numba import njit

import reference as ref
from echolearn.reservoir._activations import ACTIVATIONS
from echolearn.states import _activations as compiled


# The activations have no way in from Python.
@njit
def activate(code, z):
    compiled.activate(code, z)


@njit
def times_slope(code, f, z):
    compiled.times_slope(code, f, z)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_activations_and_slopes_computed_from_their_values(activation):
    z, code = np.linspace(-3, 3, 41), ACTIVATIONS[activation]
    f = z.copy()
    activate(code, f)
    np.testing.assert_allclose(f, ref.ACTIVATIONS[activation](z), rtol=1e-12, atol=1e-15)
    slope = np.ones_like(z)
    times_slope(code, f, slope)
    complex_slope = ref.ACTIVATIONS[activation](z + 1e-30j).imag / 1e-30
    np.testing.assert_allclose(slope, complex_slope, rtol=1e-10, atol=1e-12)


def test_the_rational_tanh_of_float32_is_close_odd_and_bounded():
    x = np.concatenate([np.linspace(-20, 20, 20001), [0, 1e-30, -1e-7, 300, -1e30]]).astype(np.float32)
    y, opposite = x.copy(), -x
    for values in (y, opposite):
        activate(ACTIVATIONS["tanh"], values)
    assert np.abs(y - np.tanh(x.astype(np.float64))).max() < 6e-7
    assert np.abs(y).max() <= 1 + 2e-7
    np.testing.assert_array_equal(opposite, -y)


def test_the_tanh_of_float64_is_close_odd_and_bounded():
    x = np.concatenate([np.linspace(-25, 25, 200001), np.geomspace(1e-300, 1, 2001), [0.0, 1e300, -np.inf, np.inf]])
    y, opposite, nan = x.copy(), -x, np.array([np.nan])
    for values in (y, opposite, nan):
        activate(ACTIVATIONS["tanh"], values)
    np.testing.assert_allclose(y, np.tanh(x), rtol=2e-15, atol=0)
    assert np.abs(y).max() <= 1
    np.testing.assert_array_equal(opposite, -y)
    assert np.isnan(nan[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_nan_is_not_hidden_by_an_activation(activation, dtype):
    z = np.array([np.nan, 0.0], dtype)
    activate(ACTIVATIONS[activation], z)
    assert np.isnan(z[0])
