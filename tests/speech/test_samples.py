"""Samples of any kind, and resampling piece by piece."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toyspeech
from echolearn.exceptions import CorpusError
from echolearn.speech.audio import resample
from echolearn.speech.samples import Resampler, as_samples, scale_problem


@pytest.mark.parametrize("rate", [8_000, 11_025, 16_000, 44_100, 48_000])
@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 3000), max_size=20))
def test_pieces_are_resampled_to_the_same_bits(rate, cuts):
    samples = np.random.default_rng(0).normal(size=3000).astype(np.float32)
    resampler = Resampler(rate)
    pieces = [resampler.push(piece) for piece in np.split(samples, sorted(cuts))]
    np.testing.assert_array_equal(np.concatenate([*pieces, resampler.finish()]), resample(samples, rate))


def test_a_resampler_keeps_little():
    resampler = Resampler(44_100)
    for _ in range(100):
        resampler.push(np.zeros(4410, dtype=np.float32))
    kept = [value for value in vars(resampler).values() if isinstance(value, np.ndarray)]
    assert sum(map(len, kept)) < 20_000  # of 441,000 samples; the filter has 8,821


@pytest.mark.parametrize("rate", [4000, 400_000])
def test_rates_of_no_speech_are_refused(rate):
    with pytest.raises(CorpusError, match=f"{rate} Hz"):
        Resampler(rate)


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        (np.array([-32768, 100], dtype=np.int16), [-32768, 100]),
        (np.array([-(2**31), 2**16], dtype=np.int32), [-32768, 1]),
        (np.array([0, 128, 255], dtype=np.uint8), [-32768, 0, 32512]),
        (np.array([-128, 1], dtype=np.int8), [-32768, 256]),
        ([3, -4], [3, -4]),
        (np.array([5.5, -7.0]), [5.5, -7.0]),
    ],
)
def test_samples_of_every_kind_are_on_one_scale(given_, expected):
    found = as_samples(given_)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        (np.zeros((4, 2)), "one channel"),
        (np.array(["a"]), "expected floats"),
        (np.array([np.nan]), "NaN"),
        (np.array([True]), "expected floats"),
    ],
)
def test_what_is_not_audio_is_refused(given_, message):
    with pytest.raises(ValueError, match=message):
        as_samples(given_)


def test_samples_between_minus_one_and_one_are_noticed():
    assert "full_scale=1.0" in scale_problem(np.array([0.5, -0.9], dtype=np.float32))
    assert scale_problem(np.zeros(5, dtype=np.float32)) is None
    assert scale_problem(np.array([300.0], dtype=np.float32)) is None


def test_a_path_is_refused_with_how_to_read_it():
    for path in ("a.wav", Path("a.wav")):
        with pytest.raises(ValueError, match=r"path 'a.wav' was given; expected the samples.*read_audio\('a.wav'\)"):
            as_samples(path)
        with pytest.raises(ValueError, match=r"path 'a.wav' was given"):
            toyspeech.recognizer().recognize(path)
