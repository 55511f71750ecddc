"""Trivial answers: the last value, and what was answered before."""

from __future__ import annotations

import numpy as np
import pytest

from echolearn.fitting.advice.baselines import Outcome, lag, last_value_error

RNG = np.random.default_rng(0)


def test_lag_and_last_value_are_those_of_the_series():
    T = RNG.normal(size=(300, 1))
    x = np.vstack([[[0.0]], T[:-1]])  # the target is the next input
    outcome = Outcome([2 * x + 1], [T], [np.vstack([np.zeros((3, 1)), T[:-3]])], [np.ones(300)], True)
    assert lag(outcome)[0] == 3
    assert last_value_error(outcome) == pytest.approx(np.mean((x - T)[:] ** 2), rel=0.01)
    same = Outcome([T], [T], [T], [np.ones(300)], True)
    assert lag(same)[0] == 0
    assert last_value_error(same) is None  # the target is known already
