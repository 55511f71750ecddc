"""What the weights of a deep network are drawn from."""

import numpy as np
import pytest

from echolearn.reservoir._deep_reservoir import TURNING_SHARE, DeepReservoir, decay


def drawn(units=200, layers=3, n_in=4, seed=0, **how):
    how = {"leak": (0.03, 0.63), "angle": 2.0, **how}
    return DeepReservoir.random(n_in, units, layers, rng=np.random.default_rng(seed), **how)


def test_matrices_leaks_and_angles_have_their_distributions():
    stack = drawn()
    for name, rows in (("W_0", 4), ("1/W_in", 200), ("2/W_out", 200), ("3/W_in", 200)):
        W = stack.weights[name]
        assert W.shape == (rows, 200)
        assert np.abs(W).max() <= rows**-0.5
        assert W.var() == pytest.approx(1 / (3 * rows), rel=0.1)
    leaks = 1 - np.concatenate([decay(stack.weights[f"{k}/alpha"]) for k in (1, 2, 3)])
    assert (leaks.min() >= 0.03 - 1e-12) & (leaks.max() <= 0.63 + 1e-12)
    middle = np.sqrt(0.03 * 0.63)  # evenly in logarithm: half of the leaks are below
    assert (leaks < middle).mean() == pytest.approx(0.5, abs=0.15)
    angles = np.concatenate([stack.weights[f"{k}/theta"] for k in (1, 2, 3)])
    assert (angles > 0).mean() == pytest.approx(TURNING_SHARE, abs=0.12)
    assert (angles.min() >= 0) & (angles.max() <= 2.0)
    assert angles[angles > 0].mean() == pytest.approx(1.0, abs=0.15)
    for name, value in stack.weights.items():
        if name.split("/")[-1] in ("b", "b_out", "b_0", "c"):
            np.testing.assert_array_equal(value, 0)


def test_sizes_names_and_directions():
    stack = drawn(units=12, layers=2)
    assert (stack.n_in, stack.units, stack.layers, stack.N) == (4, 12, 2, 24)
    assert stack.backward is None
    assert stack.matrices == ("W_0", "1/W_in", "1/W_out", "2/W_in", "2/W_out")
    both = drawn(units=12, layers=2, bidirectional=True)
    assert both.backward_pairs == 3
    np.testing.assert_array_equal(both.backward, ([False] * 3 + [True] * 3) * 4)
    assert drawn(units=2, layers=1, bidirectional=True).backward_pairs == 0  # one pair has one direction


def test_the_same_generator_the_same_bits():
    one, again, other = drawn(seed=1), drawn(seed=1), drawn(seed=2)
    for name, value in one.weights.items():
        np.testing.assert_array_equal(again.weights[name], value)
    assert (one.weights["1/alpha"] != other.weights["1/alpha"]).any()
    assert (one.weights["1/W_in"] != one.weights["2/W_in"]).any()


def test_equal_limits_of_the_leak_are_that_leak():
    alpha = drawn(units=10, leak=(0.2, 0.2), angle=0.0).weights["1/alpha"]
    np.testing.assert_allclose(decay(alpha), 0.8, rtol=1e-12)
    assert not drawn(angle=0.0).weights["1/theta"].any()


def test_the_decay_stays_inside_its_limits():
    a = decay(np.array([-1e9, -3.0, 0.0, 3.0, 1e9], np.float32))
    assert ((a > 0) & (a < 1)).all()
    np.testing.assert_allclose(a[1:4], 1 / (1 + np.exp([3.0, 0.0, -3.0])), rtol=1e-6)
