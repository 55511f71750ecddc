"""Warps of the frequency axis against warped spectra, written out."""

from __future__ import annotations

import numpy as np
import pytest

from echolearn.speech import mfcc, warp_matrix, warped_copies, warped_mfcc
from echolearn.speech._augmentation import mel, warped_bands, warped_frequency
from echolearn.speech._features import log_bands
from speechfiles import tones

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


def test_copies_are_drawn_anew_for_each_utterance_and_are_the_same_for_the_same_generator() -> None:
    utterance = np.random.default_rng(0).standard_normal((40, 13)).astype(np.float32)
    kept = utterance.copy()
    first = warped_copies([utterance] * 3, 2, 0.1, np.random.default_rng(1))
    again = warped_copies([utterance] * 3, 2, 0.1, np.random.default_rng(1))
    assert len(first) == 6
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert len({a.tobytes() for a in first}) == 6
    np.testing.assert_array_equal(utterance, kept)
    np.testing.assert_allclose(first[0][:, 0], utterance[:, 0], rtol=1e-6)


def test_factors_of_copies_fill_the_spread_and_stay_within() -> None:
    """A single cepstrum c_1 = 1 tells by which factor it was warped."""
    one = np.zeros((1, 13), np.float32)
    one[0, 1] = 1
    seen = np.array([c[0, 2] for c in warped_copies([one] * 500, 1, 0.2, np.random.default_rng(0), lifter=0)])
    ends = sorted(warp_matrix(f, lifter=0)[2, 1] for f in (1 / 1.2, 1.2))
    assert ends[0] - 1e-6 <= seen.min() < ends[0] + 0.02
    assert ends[1] - 0.02 < seen.max() <= ends[1] + 1e-6


def test_no_copies_and_no_spread() -> None:
    utterance = np.random.default_rng(0).standard_normal((5, 13)).astype(np.float32)
    rng = np.random.default_rng(0)
    assert warped_copies([utterance], 0, 0.1, rng) == []
    np.testing.assert_allclose(warped_copies([utterance], 1, 0.0, rng)[0], utterance, atol=1e-5)
    with pytest.raises(ValueError, match="copies is -1"):
        warped_copies([utterance], -1, 0.1, rng)
    with pytest.raises(ValueError, match=r"spread is -0\.1"):
        warped_copies([utterance], 1, -0.1, rng)
    with pytest.raises(ValueError, match="same number in all"):
        warped_copies([utterance, utterance[:, :5]], 1, 0.1, rng)
    with pytest.raises(ValueError, match="factor is 0"):
        warp_matrix(0)
    with pytest.raises(ValueError, match="empty"):
        warp_matrix(1.1, low=300, high=200)


def test_mfcc_of_bands_that_are_not_warped_are_the_mfcc() -> None:
    samples = tones(0.3)
    np.testing.assert_allclose(warped_mfcc(samples, 1.0), mfcc(samples), atol=2e-3)
    assert warped_mfcc(samples[:100], 1.1).shape == (0, 13)
    with pytest.raises(ValueError, match="factor is -1"):
        warped_mfcc(samples, -1)


def test_bands_of_a_smooth_spectrum_move_as_its_cepstra_do() -> None:
    centres = np.pi * np.arange(1, 24) / 24
    bands = formant(hertz(centres, 20, 8000))[None].astype(np.float32)
    moved = formant(warped_frequency(hertz(centres, 20, 8000), 1 / 1.1))
    np.testing.assert_allclose(warped_bands(bands, 1.1)[0], moved, atol=0.02)
    np.testing.assert_allclose(warped_bands(bands, 1.0), bands, atol=1e-6)


def test_a_tone_moves_to_a_higher_band() -> None:
    t = np.arange(8000) / 16000
    bands = log_bands((8000 * np.sin(2 * np.pi * 1000 * t)).astype(np.float32))[1]
    peaks = [warped_bands(bands, factor).mean(axis=0).argmax() for factor in (0.8, 1.0, 1.25)]
    assert peaks[0] < peaks[1] < peaks[2]
