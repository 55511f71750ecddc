"""Valid time, Lyapunov-scaled error and distance of spectra, on cases solved by hand."""

from __future__ import annotations

import numpy as np
import pytest

from echolearn.metrics import lyapunov_scaled_error, spectrum_distance, valid_time


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


def test_a_perfect_model_with_a_wrong_start_has_a_constant_scaled_error():
    t = np.arange(1, 40)
    for start in (1e-6, 1e-3):
        error = start * np.exp(0.2 * t)
        assert lyapunov_scaled_error(0 * t, error, lyapunov=0.4, dt=0.5, scale=1.0) == pytest.approx(start)
    both = lyapunov_scaled_error([0 * t] * 2, [error, 2 * error], lyapunov=0.2, scale=1.0)
    np.testing.assert_allclose(both, [1e-3, 2e-3])


def test_spectra_know_frequencies_and_not_phases():
    rng, t = np.random.default_rng(0), np.arange(2000)
    sine, other = np.sin(0.3 * t), np.sin(0.3 * t + 1)
    assert spectrum_distance(sine, other) < 0.05
    assert spectrum_distance(sine, np.sin(0.7 * t)) > 0.95
    noise = rng.standard_normal(2000)
    assert 0.1 < spectrum_distance(sine, sine + 0.5 * noise) < 0.9
    assert spectrum_distance(sine, 5 * sine) < 1e-6  # not sizes either: they have been divided out
    assert spectrum_distance(sine, np.full(2000, np.nan)) == 1.0
    two = spectrum_distance(np.stack([sine, sine], 1), np.stack([sine, np.sin(0.7 * t)], 1))
    assert two == pytest.approx(spectrum_distance(sine, np.sin(0.7 * t)) / 2, abs=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: valid_time(np.zeros(3), np.zeros(4)), "shape"),
        (lambda: valid_time([np.zeros(3)], np.zeros(3)), "both lists"),
        (lambda: valid_time([np.zeros(3)], [np.zeros(3)] * 2), "1 forecasts"),
        (lambda: valid_time(np.zeros(3), np.zeros(3)), "give scale="),
        (lambda: valid_time(np.ones(3), np.zeros(3), threshold=0), "threshold"),
        (lambda: lyapunov_scaled_error(np.ones(3), np.zeros(3), lyapunov=-1.0), "lyapunov"),
        (lambda: spectrum_distance(np.ones(9), np.arange(9.0)), "constant"),
    ],
)
def test_bad_input_is_explained(call, words):
    with pytest.raises(ValueError, match=words):
        call()
