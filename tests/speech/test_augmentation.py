"""Warps of the frequency axis against warped spectra, written out."""

from __future__ import annotations

import numpy as np
import pytest

from echolearn.speech import (
    normalised,
    speaker_maps,
    time_masks,
    usual_deviations,
    vocal_tract_warps,
    warp_matrix,
    with_context,
    with_differences,
)
from echolearn.speech._augmentation import FACTOR_STEPS, mel, warped_frequency

LOW, HIGH = 133.33, 6855.5


def hertz(omega: np.ndarray, low: float = LOW, high: float = HIGH) -> np.ndarray:
    return 700 * (np.exp((mel(low) + omega / np.pi * (mel(high) - mel(low))) / 1127) - 1)


def formant(f: np.ndarray, at: float = 1500.0) -> np.ndarray:
    """A smooth log spectrum with one peak."""
    return np.exp(-0.5 * ((mel(f) - mel(at)) / 350) ** 2)


def cosine_coefficients(spectrum: np.ndarray, count: int) -> np.ndarray:
    omega = np.pi * (np.arange(len(spectrum)) + 0.5) / len(spectrum)
    return np.array([2 * np.mean(spectrum * np.cos(k * omega)) for k in range(count)])


@pytest.mark.parametrize("factor", [0.85, 0.95, 1.1, 1.2])
@pytest.mark.parametrize("lifter", [0.0, 22.0])
def test_matrix_on_cepstra_is_the_warp_of_a_smooth_spectrum(factor: float, lifter: float) -> None:
    omega = np.pi * (np.arange(4000) + 0.5) / 4000
    plain = cosine_coefficients(formant(hertz(omega)), 13)
    moved = cosine_coefficients(formant(warped_frequency(hertz(omega), 1 / factor, HIGH)), 13)
    k = np.arange(13)
    scale = 1 + 11 * np.sin(np.pi * k / 22) if lifter else np.ones(13)
    found = warp_matrix(factor, low=LOW, high=HIGH, lifter=lifter) @ (plain * scale)
    assert found[0] == plain[0]  # an energy, which stays
    np.testing.assert_allclose(found[1:] / scale[1:], moved[1:], atol=0.002)
    assert np.abs(plain - moved)[1:].max() > 0.02


@pytest.mark.parametrize(("factor", "side"), [(1.1, 1), (0.9, -1)])
def test_a_formant_moves_by_the_factor(factor: float, side: int) -> None:
    omega = np.linspace(0, np.pi, 4000)
    cepstra = cosine_coefficients(formant(hertz(np.pi * (np.arange(4000) + 0.5) / 4000)), 13)
    warped = warp_matrix(factor, low=LOW, high=HIGH, lifter=0) @ cepstra
    peak = hertz(omega)[np.argmax(warped[1:] @ np.cos(np.outer(np.arange(1, 13), omega)))]
    assert np.sign(peak - 1500) == side
    assert peak == pytest.approx(1500 * factor, rel=0.02)


def test_factor_one_is_the_identity_and_a_factor_is_undone_by_its_inverse() -> None:
    np.testing.assert_allclose(warp_matrix(1.0), np.eye(13), atol=1e-12)
    f = np.linspace(0, 8000, 50)
    np.testing.assert_allclose(warped_frequency(warped_frequency(f, 1.15), 1 / 1.15), f, atol=1e-9)
    both = warp_matrix(1 / 1.1, lifter=0) @ warp_matrix(1.1, lifter=0)
    np.testing.assert_allclose(both[:7, :7], np.eye(7), atol=0.05)  # higher coefficients are cut off


def test_the_upper_end_stays_and_the_order_of_frequencies_too() -> None:
    for factor in (0.8, 1.25):
        f = np.linspace(0, 8000, 500)
        g = warped_frequency(f, factor)
        assert g[-1] == 8000
        assert (np.diff(g) > 0).all()
        np.testing.assert_allclose(g[f < 5000], factor * f[f < 5000])


def test_factors_and_bands_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="factor is 0"):
        warp_matrix(0)
    with pytest.raises(ValueError, match="empty"):
        warp_matrix(1.1, low=300, high=200)


def features(cepstra: np.ndarray) -> np.ndarray:
    return with_context(normalised(with_differences(cepstra.astype(np.float32))))


def utterance(seed: int = 0, frames: int = 60) -> np.ndarray:
    """Cepstra that vary smoothly, each in units of its own."""
    steps = np.random.default_rng(seed).standard_normal((frames, 13))
    return np.cumsum(steps, axis=0) * np.geomspace(8, 0.5, 13)


def test_a_warp_of_features_is_that_of_the_cepstra_where_the_deviations_are_those_of_the_utterance() -> None:
    cepstra = utterance()
    own = with_differences(cepstra.astype(np.float32)).std(axis=0)
    warp = vocal_tract_warps(0.2, own, low=LOW, high=HIGH, lifter=0.0)
    for seed in range(5):
        factor = 1.2 ** np.linspace(-1, 1, FACTOR_STEPS)[np.random.default_rng(seed).integers(FACTOR_STEPS)]
        expected = features(cepstra @ warp_matrix(factor, low=LOW, high=HIGH, lifter=0.0).T)
        found = warp(features(cepstra), np.random.default_rng(seed))
        np.testing.assert_allclose(found, expected, atol=2e-3)


def test_a_warp_of_features_that_are_scaled_by_the_training_part_is_that_of_the_cepstra() -> None:
    """Up to the mean, which the warp moves, too, and normalisation by the frames so far removes."""
    rows = with_differences(utterance().astype(np.float32))
    rows -= rows.mean(axis=0)
    scale = np.linspace(0.5, 3, 39)
    warp = vocal_tract_warps(0.2, scale, per_utterance=False, low=LOW, high=HIGH, lifter=0.0)
    for seed in range(5):
        factor = 1.2 ** np.linspace(-1, 1, FACTOR_STEPS)[np.random.default_rng(seed).integers(FACTOR_STEPS)]
        A = warp_matrix(factor, low=LOW, high=HIGH, lifter=0.0)
        warped = np.hstack([block @ A.T for block in np.hsplit(rows, 3)])
        found = warp(with_context((rows / scale).astype(np.float32)), np.random.default_rng(seed))
        np.testing.assert_allclose(found, with_context(warped / scale), atol=1e-3)


def test_warps_without_spread_change_nothing_and_others_something() -> None:
    x, deviations = features(utterance()), usual_deviations([utterance(1), utterance(2)])
    assert deviations.shape == (39,)
    np.testing.assert_allclose(vocal_tract_warps(0.0, deviations)(x, np.random.default_rng(0)), x, atol=1e-4)
    warped = vocal_tract_warps(0.2, deviations)(x, np.random.default_rng(0))
    assert warped.shape == x.shape
    assert np.abs(warped - x).max() > 0.05
    with pytest.raises(ValueError, match="spread is -1"):
        vocal_tract_warps(-1, deviations)


def test_a_map_is_one_matrix_for_all_frames_and_their_differences() -> None:
    x = features(utterance())
    np.testing.assert_allclose(speaker_maps(0.0)(x, np.random.default_rng(0)), x, atol=1e-5)
    for seed in range(5):
        matrix = np.eye(13) + 0.3 * np.random.default_rng(seed).standard_normal((13, 13)) / np.sqrt(13)
        mapped = np.hstack([block @ matrix for block in np.hsplit(x[:, 39:78].astype(np.float64), 3)])
        expected = with_context((mapped - mapped.mean(axis=0)) / mapped.std(axis=0))
        np.testing.assert_allclose(speaker_maps(0.3)(x, np.random.default_rng(seed)), expected, atol=1e-4)
    with pytest.raises(ValueError, match="spread is -1"):
        speaker_maps(-1)


def test_usual_deviations_are_the_root_of_the_mean_variance() -> None:
    some = [utterance(1), 3 * utterance(2)]
    variances = [with_differences(c.astype(np.float32)).var(axis=0) for c in some]
    np.testing.assert_allclose(usual_deviations(some) ** 2, np.mean(variances, axis=0), rtol=1e-5)


def test_masks_are_stretches_of_zeros_of_at_most_so_many_steps() -> None:
    x = np.ones((50, 3))
    lengths = set()
    for seed in range(200):
        masked = time_masks(1, 7)(x, np.random.default_rng(seed))
        zero = np.flatnonzero((masked == 0).all(axis=1))
        assert ((masked == 0) | (masked == 1)).all()
        assert len(zero) == 0 or np.array_equal(zero, np.arange(zero[0], zero[0] + len(zero)))
        lengths.add(len(zero))
    assert lengths == set(range(8))
    assert (x == 1).all()
    assert (time_masks(3, 100)(np.ones((4, 1)), np.random.default_rng(0)).shape) == (4, 1)
