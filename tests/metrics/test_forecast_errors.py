"""Valid time, on cases solved by hand."""

from __future__ import annotations

import numpy as np
import pytest

from echolearn.datasets._chaos import TRUE_CHAOS
from echolearn.metrics import valid_time


def test_the_valid_time_counts_the_steps_before_the_error_reaches_the_threshold():
    true, wrong = np.zeros(10), np.zeros(10)
    wrong[[4, 7]] = 0.5
    assert valid_time(true, wrong, scale=1.0) == 4.0  # returning to the truth does not count
    assert valid_time(true, wrong, scale=2.0) == 10.0
    assert valid_time(true, wrong, scale=1.0, threshold=0.5) == 4.0  # reached is too much
    assert valid_time(true, wrong, scale=1.0, dt=0.5, lyapunov=3.0) == 6.0
    wrong[1] = np.nan
    assert valid_time(true, wrong, scale=1.0) == 1.0


def test_dimensions_are_averaged_in_their_own_units():
    true = np.stack([np.tile([1.0, -1.0], 10), np.tile([100.0, -100.0], 10)], axis=1)
    assert valid_time(true, true + np.array([0.5, 0.0])) == 20.0  # sqrt(0.25 / 2) = 0.35
    assert valid_time(true, true + np.array([0.5, 50.0])) == 0.0
    assert valid_time(true, true + np.array([0.0, 1.0])) == 20.0


def test_lists_have_one_valid_time_each():
    true = [np.zeros(5), np.zeros(8)]
    found = valid_time(true, [np.ones(5), np.zeros(8)], scale=1.0)
    np.testing.assert_array_equal(found, [0.0, 8.0])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: valid_time(np.zeros(3), np.zeros(4)), "shape"),
        (lambda: valid_time([np.zeros(3)], np.zeros(3)), "both lists"),
        (lambda: valid_time([np.zeros(3)], [np.zeros(3)] * 2), "1 forecasts"),
        (lambda: valid_time(np.zeros(3), np.zeros(3)), "give scale="),
        (lambda: valid_time(np.ones(3), np.zeros(3), threshold=0), "threshold"),
        (lambda: valid_time(np.arange(3.0), np.zeros(3), lyapunov=-1.0), "lyapunov"),
        (lambda: valid_time(np.arange(3.0), np.zeros(3), lyapunov="lorentz"), "one of lorenz, rossler"),
    ],
)
def test_bad_input_is_explained(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("name", TRUE_CHAOS)
def test_comparisons_beyond_the_truth_are_refused(name):
    exponent, true_for = TRUE_CHAOS[name]
    steps = int(true_for / exponent / 0.5)
    series = np.arange(steps + 1.0)
    held = valid_time(series[:-1], series[:-1], dt=0.5, lyapunov=name)
    assert held == pytest.approx(valid_time(series[:-1], series[:-1], dt=0.5, lyapunov=exponent))
    for true in (series, [series[:5], series]):  # one forecast of a list is enough
        with pytest.raises(ValueError, match=rf"has {steps + 1} steps.*{name} be true for.*the first {steps} steps"):
            valid_time(true, true, dt=0.5, lyapunov=name)
