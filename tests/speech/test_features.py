"""Features of speech against formulas written out, and the times of frames."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echolearn.speech import mfcc, normalised, with_context, with_differences
from echolearn.speech._features import FrameList, boundary_time, differences, first_frame, frame_count
from speechfiles import tones


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 5000))
def test_number_of_frames_follows_the_formula(samples: int) -> None:
    expected = 1 + (samples - 400) // 160 if samples >= 400 else 0
    assert frame_count(samples) == expected
    assert mfcc(np.ones(samples, dtype=np.float32) * np.arange(samples)).shape == (expected, 13)


def test_mfcc_of_one_frame_are_those_of_the_textbook() -> None:
    """The steps of the textbook, written out."""
    samples = tones(0.025).astype(np.float64)
    frame = samples - samples.mean()
    energy = np.log((frame**2).sum())
    frame = frame - 0.97 * np.r_[frame[0], frame[:-1]]
    frame *= (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 399)) ** 0.85
    power = np.abs(np.fft.rfft(frame, 512)) ** 2

    def mel(f: np.ndarray | float) -> np.ndarray:
        return 1127 * np.log(1 + np.asarray(f) / 700)

    edges = np.linspace(mel(20), mel(8000), 25)
    at = mel(np.arange(257) * 16_000 / 512)
    bank = [np.clip(np.minimum((at - a) / (b - a), (c - at) / (c - b)), 0, None) for a, b, c in
            zip(edges, edges[1:], edges[2:], strict=False)]  # fmt: skip
    logs = np.log(np.array(bank)[:, :256] @ power[:256])
    k, n = np.arange(13)[:, None], np.arange(23)
    cepstra = np.sqrt(2 / 23) * np.cos(np.pi * k * (n + 0.5) / 23) @ logs
    cepstra *= 1 + 11 * np.sin(np.pi * np.arange(13) / 22)
    cepstra[0] = energy
    np.testing.assert_allclose(mfcc(samples.astype(np.float32))[0], cepstra, rtol=2e-3, atol=2e-2)


def test_digital_silence_has_finite_features() -> None:
    samples = np.zeros(4000, dtype=np.float32)
    samples[:500] = tones(500 / 16_000)
    assert np.isfinite(mfcc(samples)).all()


def test_differences_of_a_ramp_are_its_slope() -> None:
    ramp = np.arange(20, dtype=np.float32)[:, None] * np.array([1, -3], dtype=np.float32)
    np.testing.assert_allclose(differences(ramp)[2:-2], np.tile([[1, -3]], (16, 1)), rtol=1e-6)
    assert with_differences(ramp).shape == (20, 6)
    assert with_differences(ramp[:0]).shape == (0, 6)


def test_normalised_columns_have_zero_mean_and_unit_deviation() -> None:
    frames = np.random.default_rng(0).normal(3, 5, size=(50, 4)).astype(np.float32)
    frames[:, 2] = 7
    out = normalised(frames)
    np.testing.assert_allclose(out.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(out.std(axis=0), [1, 1, 0, 1], atol=1e-5)
    assert np.all(normalised(frames, np.zeros(4), np.full(4, 2.0)) == frames / 2)


def test_context_is_previous_current_and_next_frame() -> None:
    frames = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.testing.assert_array_equal(
        with_context(frames), [[0, 1, 0, 1, 2, 3], [0, 1, 2, 3, 4, 5], [2, 3, 4, 5, 6, 7], [4, 5, 6, 7, 6, 7]]
    )
    assert with_context(frames[:0]).shape == (0, 6)
    with pytest.raises(ValueError, match="odd number"):
        with_context(frames, 2)


def test_times_of_frames_and_boundaries() -> None:
    assert [first_frame(t) for t in (0.0, 0.0125, 0.0126, 0.0225)] == [0, 0, 1, 1]
    assert boundary_time(3) == pytest.approx(0.0375)


# ---------------- A list of utterances over one array of frames


FRAMES = np.random.default_rng(0).normal(3, 2, size=(20, 4)).astype(np.float32)


@pytest.fixture
def utterances() -> FrameList:
    return FrameList.of_lengths(FRAMES, [5, 8, 7])


def test_items_are_slices_stacked_with_their_context(utterances: FrameList) -> None:
    assert (len(utterances), [len(one) for one in utterances]) == (3, [5, 8, 7])
    np.testing.assert_array_equal(utterances[1], with_context(FRAMES[5:13]))
    np.testing.assert_array_equal(utterances[-1], with_context(FRAMES[13:]))
    np.testing.assert_array_equal(utterances.without_context()[0], FRAMES[:5])


def test_slices_and_choices_share_the_frames(utterances: FrameList) -> None:
    for chosen in (utterances[1:], utterances.take([1, 2])):
        assert chosen.frames is FRAMES
        assert [len(one) for one in chosen] == [8, 7]
        np.testing.assert_array_equal(chosen[0], utterances[1])


def test_scale_is_that_of_the_chosen_utterances(utterances: FrameList) -> None:
    scaled = utterances.scaled_like([0, 2]).without_context()
    own = np.concatenate([scaled[0], scaled[2]])
    np.testing.assert_allclose(own.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(own.std(axis=0), 1, atol=1e-5)
    rows = np.concatenate([FRAMES[:5], FRAMES[13:]]).astype(np.float64)
    np.testing.assert_allclose(scaled[1], normalised(FRAMES[5:13], rows.mean(axis=0), rows.std(axis=0)), rtol=1e-5)
