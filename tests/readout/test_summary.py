"""Summaries of whole sequences: against a loop over sequences, whatever else is in their batch."""

import numpy as np
import pytest

import reference as ref
from echolearn.readout.summary import Summary, delayed, thresholds_of
from echolearn.reservoir import Reservoir
from echolearn.states import harvest

rng = np.random.default_rng(0)
X = [rng.standard_normal((n, 2)) for n in (9, 17, 5, 17, 30)]
DELAYS = np.array([0, 1, 4])


@pytest.mark.parametrize("count", [1, 3, 5, 9, 16, 37])
@pytest.mark.parametrize("washout", [0, 3])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_are_those_of_a_loop(count, washout, dtype):
    """Any number of sequences, of lengths that end within a tile of steps or at its end."""
    given = [rng.standard_normal((n, 2)) for n in rng.integers(4, 40, count)]
    given[0] = rng.standard_normal((16, 2))
    reservoir = Reservoir.random(6, 5, leak=(0.1, 1.0), input_scaling=1.0, random_state=1)
    states = harvest(reservoir, [ref.delay(x, DELAYS) for x in given])
    summary = Summary(DELAYS, thresholds_of(np.concatenate(states), 3))
    rows = summary.rows(reservoir, given, washout, dtype)
    expected = [ref.summarize(h, summary.thresholds, washout) for h in states]
    np.testing.assert_allclose(rows, expected, atol=1e-12 if dtype == "float64" else 2e-4)
    assert rows.shape[1] == summary.statistics * reservoir.N


def test_units_see_the_series_and_its_differences_and_delays_repeat_the_first_frame():
    for x in X:
        np.testing.assert_array_equal(delayed(x, DELAYS), ref.delay(x, DELAYS))
        np.testing.assert_array_equal(Summary(DELAYS, np.zeros((1, 1))).inputs(x), ref.seen(x, DELAYS))
    assert delayed(X[0], np.array([0])) is X[0]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_row_does_not_depend_on_the_batch(dtype):
    reservoir = Reservoir.random(2, 20, input_scaling=1.0, random_state=0)
    H = np.concatenate(harvest(reservoir, X))
    summary = Summary(np.array([0]), thresholds_of(H, 9))
    together = summary.rows(reservoir, X, 0, dtype)
    alone = np.concatenate([summary.rows(reservoir, [x], 0, dtype) for x in X])
    np.testing.assert_array_equal(together, alone)


def test_thresholds_cut_states_into_equal_shares():
    H = rng.standard_normal((4000, 3))
    shares = (H[None] > thresholds_of(H, 4)[:, None]).mean(axis=1)
    np.testing.assert_allclose(shares, np.repeat([[0.8], [0.6], [0.4], [0.2]], 3, axis=1), atol=1e-3)


def test_a_threshold_is_no_state():
    """A state on a threshold would fall on either side of it by rounding."""
    H = np.concatenate([np.full((50, 2), 0.25), rng.uniform(0.25, 1, (50, 2))])
    gaps = np.abs(H[:, None] - thresholds_of(H, 9)).min()
    assert gaps > 1e-6
    constant = thresholds_of(np.full((10, 1), 0.5), 3)
    assert (constant > 0.5).all()
