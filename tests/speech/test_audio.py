"""Audio files of several formats and rates, and files that cannot be used."""

from __future__ import annotations

import builtins
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toyspeech
from echolearn.exceptions import CorpusError
from echolearn.speech import read_audio, read_channels
from echolearn.speech._audio import Resampler, as_samples, resample, scale_problem
from speechfiles import tones, write_riff, write_sphere


def problem_with(path: Path) -> str:
    """Return what is wrong with a file that cannot be used."""
    with pytest.raises(CorpusError) as caught:
        read_audio(path)
    (problem,) = caught.value.problems
    assert problem.file == str(path)
    return problem.what


def test_riff_and_sphere_hold_the_same_samples(tmp_path: Path) -> None:
    samples = tones(0.3)
    riff = read_audio(write_riff(tmp_path / "a.wav", samples))
    sphere = read_audio(write_sphere(tmp_path / "b.wav", samples))
    np.testing.assert_array_equal(riff, samples.astype(np.float32))
    np.testing.assert_array_equal(sphere, riff)


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100])
def test_other_rates_are_resampled_to_the_same_tone(tmp_path: Path, rate: int) -> None:
    t = np.arange(rate) / rate
    samples = read_audio(write_riff(tmp_path / "a.wav", (8000 * np.sin(2 * np.pi * 440 * t)).astype(np.int16), rate))
    assert abs(len(samples) - 16_000) <= 1
    spectrum = np.abs(np.fft.rfft(samples[2000:14_000] * np.hanning(12_000)))
    assert spectrum.argmax() * 16_000 / 12_000 == pytest.approx(440, abs=1.5)
    assert np.std(samples) == pytest.approx(8000 / np.sqrt(2), rel=0.01)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert "no such audio file" in problem_with(tmp_path / "nowhere.wav")


def test_a_file_that_is_no_audio_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(b"this is no audio at all" * 10)
    assert "not audio that can be read (230 bytes" in problem_with(path)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(b"")
    assert "empty file" in problem_with(path)


def test_a_file_without_samples_is_refused(tmp_path: Path) -> None:
    assert "no samples" in problem_with(write_riff(tmp_path / "a.wav", np.zeros(0, dtype=np.int16)))


def test_a_truncated_sphere_file_is_refused(tmp_path: Path) -> None:
    path = write_sphere(tmp_path / "a.wav", tones(0.2), promised=16_000)
    assert "truncated: the header promises 16000 samples, 3200 are there" in problem_with(path)


def test_a_truncated_riff_file_is_refused(tmp_path: Path) -> None:
    path = write_riff(tmp_path / "a.wav", tones(0.2))
    path.write_bytes(path.read_bytes()[:-1000])
    assert "truncated: the header promises 3200 samples, 2700 are there" in problem_with(path)


def test_two_channels_are_refused(tmp_path: Path) -> None:
    assert "2 channels" in problem_with(write_riff(tmp_path / "a.wav", np.stack([tones(0.1), tones(0.1, 1)], axis=1)))


@pytest.mark.parametrize("level", [0, 77])
def test_constant_samples_are_refused(tmp_path: Path, level: int) -> None:
    assert "silent" in problem_with(write_riff(tmp_path / "a.wav", np.full(1000, level, dtype=np.int16)))


def test_a_rate_at_which_no_speech_is_recorded_is_refused(tmp_path: Path) -> None:
    assert "sampled at 4000 Hz" in problem_with(write_riff(tmp_path / "a.wav", tones(1, rate=4_000), 4_000))


def test_samples_that_are_not_numbers_are_refused(tmp_path: Path) -> None:
    import soundfile

    samples = np.ones(500, dtype=np.float32)
    samples[7] = np.nan
    soundfile.write(tmp_path / "a.wav", samples, 16_000, subtype="FLOAT")
    assert "not numbers" in problem_with(tmp_path / "a.wav")


def test_missing_soundfile_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_riff(tmp_path / "a.wav", tones(0.1))
    real = builtins.__import__

    def without(name: str, *rest: object, **more: object) -> object:
        if name == "soundfile":
            raise ImportError("No module named 'soundfile'")
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    assert "pip install 'echolearn[speech]'" in problem_with(path)


def test_a_format_chunk_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    path = write_riff(tmp_path / "a.wav", tones(0.1))
    path.write_bytes(path.read_bytes()[:30])
    assert "not audio that can be read" in problem_with(path)


def test_samples_that_overflow_on_the_16_bit_scale_are_refused(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    samples = tones(0.1).astype(np.float32)
    soundfile.write(tmp_path / "loud.wav", samples, 16_000, subtype="FLOAT")  # not scaled: loud, but speech
    assert np.isfinite(read_audio(tmp_path / "loud.wav")).all()
    soundfile.write(tmp_path / "huge.wav", samples * np.float32(1e32), 16_000, subtype="FLOAT")
    assert "larger than 65536 times full scale" in problem_with(tmp_path / "huge.wav")


def test_a_header_that_promises_more_samples_than_memory_holds_is_not_trusted(tmp_path: Path) -> None:
    """The number of samples in a FLAC header has 36 bits."""
    soundfile = pytest.importorskip("soundfile")
    path = tmp_path / "a.flac"
    soundfile.write(path, tones(0.1), 16_000)
    content = bytearray(path.read_bytes())
    content[21] |= 0x0F
    content[22:26] = b"\xff\xff\xff\xff"
    path.write_bytes(content)
    try:
        found = len(read_audio(path))
    except CorpusError:
        found = 0
    assert found <= 1600


def test_samples_half_a_scale_below_and_above_zero_are_not_silent(tmp_path: Path) -> None:
    square = np.repeat(np.array([-16_384, 16_384] * 100, dtype=np.int16), 8)  # a range of exactly 1
    np.testing.assert_array_equal(read_audio(write_riff(tmp_path / "a.wav", square)), square)


def test_channels_are_mixed_split_or_chosen(tmp_path: Path) -> None:
    left, right = tones(0.3), tones(0.3, seed=1)[::-1]
    path = write_riff(tmp_path / "a.wav", np.column_stack([left, right]))
    assert "has 2 channels, expected 1" in problem_with(path)
    np.testing.assert_array_equal(read_audio(path, channels=1), left.astype(np.float32))
    np.testing.assert_array_equal(read_audio(path, channels=2), right.astype(np.float32))
    mixed = (left.astype(float) + right) / 2
    np.testing.assert_allclose(read_audio(path, channels="mix"), mixed, atol=0.01)
    for found, expected in zip(read_channels(path), (left, right), strict=True):
        np.testing.assert_array_equal(found, expected.astype(np.float32))
    with pytest.raises(CorpusError, match="has 2 channels; expected at least 3"):
        read_audio(path, channels=3)
    for wrong in ("both", 0, True, 1.5):
        with pytest.raises(ValueError, match="expected 'mix', 'split' or the number"):
            read_channels(path, wrong)
    with pytest.raises(ValueError, match="use read_channels"):
        read_audio(path, channels="split")


def test_files_of_one_channel_are_the_same_in_every_way(tmp_path: Path) -> None:
    path = write_riff(tmp_path / "a.wav", tones(0.3))
    for channels in (None, 1, "mix"):
        np.testing.assert_array_equal(read_audio(path, channels=channels), tones(0.3).astype(np.float32))
    assert len(read_channels(path)) == 1


def test_a_silent_channel_is_named_and_a_cut_stereo_file_refused(tmp_path: Path) -> None:
    stereo = np.column_stack([tones(0.3), np.zeros(4800, np.int16)])
    path = write_riff(tmp_path / "a.wav", stereo)
    with pytest.raises(CorpusError, match="channel 2 is silent"):
        read_channels(path)
    assert len(read_audio(path, channels=1)) == len(read_audio(path, channels="mix")) == 4800
    path.write_bytes(path.read_bytes()[:-400])
    with pytest.raises(CorpusError, match="promises 4800 samples, 4700 are there"):
        read_audio(path, channels="mix")


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.mp3", b"ID3\x04" + bytes(500), "begins like a file of format MP3, but is damaged"),
        ("a.m4a", bytes(3) + b" ftypM4A " + bytes(500), r"its format is MPEG-4 \(M4A, AAC\), which is not supported"),
        ("a.wav", b"a,b\n1,2\n" * 50, "it is a text file"),
        ("a.wav", bytes(range(200, 250)), "its format is not known"),
    ],
)
def test_files_that_cannot_be_read_are_named_with_a_cure(tmp_path, name, content, what):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=f"not audio that can be read .*{what}.*; expected WAV, .*ffmpeg -i ORIGINAL"):
        read_audio(tmp_path / name)


# ---------------- Samples of any kind, and resampling piece by piece


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
