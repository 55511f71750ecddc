"""Reading of audio files as samples at 16 kHz, with clear errors for files that cannot be used."""

from __future__ import annotations

import re
import struct
from io import BufferedReader
from math import gcd
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import firwin, resample_poly

from echolearn.exceptions import CorpusError

RATE_HZ = 16_000
FULL_SCALE = 32_768.0  # of 16-bit samples, the scale in which energies of MFCC are usually given
_MIN_RATE_HZ, _MAX_RATE_HZ = 8_000, 192_000
_MAX_AMPLITUDE = 65_536.0  # times full scale: as loud as 16-bit samples that were written as floats without scaling
# The first bytes of files in formats that can be read, and in others that people have (ftyp follows four others).
_SUPPORTED = {
    b"RIFF": "WAV", b"NIST_1A": "NIST SPHERE", b"fLaC": "FLAC", b"OggS": "OGG", b"FORM": "AIFF", b"ID3": "MP3",
    b"\xff\xfb": "MP3", b"\xff\xf3": "MP3", b"\xff\xf2": "MP3",
}  # fmt: skip
_UNSUPPORTED = {
    b"ftyp": "MPEG-4 (M4A, AAC)", b"\xff\xf1": "AAC", b"\xff\xf9": "AAC", b"\x30\x26\xb2\x75": "WMA",
    b"\x1aE\xdf\xa3": "WebM or Matroska", b"#!AMR": "AMR",
}  # fmt: skip
_CHUNK_SAMPLES = 2**20  # decoded at a time: a header may promise more than there are, and than memory has room for
_FILTER_PERIODS = 10  # half the length of the filter of `resample`, in periods of the slower rate
_INTEGER_SCALES = {"int16": 1.0, "int32": 2.0**-16, "int64": 1.0, "int8": 2.0**8, "uint8": 2.0**8}
_QUIET_AMPLITUDE = 1.0  # recordings never stay below one count of 16-bit samples, samples between -1 and 1 always do


def read_audio(path: str | Path, *, channels: int | str | None = None) -> NDArray[np.float32]:
    """Read one channel of an audio file, or the mean of all its channels.

    It requires soundfile (`pip install 'echolearn[speech]'`). A CorpusError says why a file cannot be used: it is
    missing, unreadable, truncated, empty, silent, of several channels or of a rate at which no speech is recorded.

    Parameters
    ----------
    path : str or Path
        A WAV (RIFF), NIST SPHERE, FLAC, AIFF or OGG file; MP3 with libsndfile 1.1 or newer. Rates other than 16 kHz
        are resampled.
    channels : int or "mix", optional
        Which channel of a file with several to read, counted from 1, or "mix" for their mean. By default a file with
        several channels is refused, because it is not known which of them has the speech.

    Returns
    -------
    array of shape (n_samples,), float32
        The samples at 16 kHz on the 16-bit scale, -32768 to 32767.

    Examples
    --------
    >>> import tempfile
    >>> import soundfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     soundfile.write(f"{folder}/tone.wav", 0.5 * np.sin(np.arange(8000) / 5), 8000)
    ...     read_audio(f"{folder}/tone.wav").shape
    (16000,)
    """
    if channels == "split":
        raise ValueError("channels='split' gives one array per channel; use read_channels")
    return read_channels(path, channels)[0]


def read_channels(path: str | Path, channels: int | str | None = "split") -> list[NDArray[np.float32]]:
    """Read the channels of an audio file; it is refused for the reasons of `read_audio`.

    Parameters
    ----------
    path : str or Path
        The file, in one of the formats of `read_audio`.
    channels : int, "mix", "split" or None, default "split"
        A number reads one channel, counted from 1; "mix" the mean of all; "split" each of them. None refuses a file
        with several channels.

    Returns
    -------
    list of array of shape (n_samples,), float32
        The samples of each channel at 16 kHz on the 16-bit scale.

    Examples
    --------
    >>> import tempfile
    >>> import soundfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     soundfile.write(f"{folder}/call.wav", np.random.default_rng(0).uniform(-1, 1, (8000, 2)), 16000)
    ...     len(read_channels(f"{folder}/call.wav"))
    2
    """
    if channels not in (None, "mix", "split") and not (type(channels) is int and channels >= 1):
        raise ValueError(f"channels is {channels!r}, expected 'mix', 'split' or the number of a channel")
    path = Path(path)
    if not path.is_file():
        raise CorpusError.one(path, "no such audio file; check the path, or that the corpus is complete")
    promised = _promised_samples(path)
    audio, rate = _decode(path, channels)
    size = audio.shape[1]
    if size == 0:
        raise CorpusError.one(path, "holds no samples; record it again or remove it together with its labels")
    if promised is not None and size < promised:
        raise CorpusError.one(
            path, f"is truncated: the header promises {promised} samples, {size} are there; copy it again"
        )
    loudest = float(np.abs(audio).max())  # NaN if any sample is
    if not loudest <= _MAX_AMPLITUDE:
        limit = f"larger than {_MAX_AMPLITUDE:g} times full scale"
        what = f"holds samples that are not numbers (NaN or infinity) or {limit}; convert it again"
        raise CorpusError.one(path, what)
    for k, mono in enumerate(audio, 1):
        if float(np.ptp(mono)) == 0.0:
            which = f"channel {k} " if len(audio) > 1 else ""
            raise CorpusError.one(path, f"{which}is silent: all {size} samples are equal; expected speech")
    return [resample(mono * np.float32(FULL_SCALE), rate, path) for mono in audio]


def resample(samples: NDArray[np.float32], rate: int, path: str | Path = "audio") -> NDArray[np.float32]:
    """Return audio resampled to 16 kHz by a polyphase filter; the array itself if it is at 16 kHz already."""
    if rate == RATE_HZ:
        return samples
    if not _MIN_RATE_HZ <= rate <= _MAX_RATE_HZ:
        raise CorpusError.one(
            path, f"is sampled at {rate} Hz, expected {_MIN_RATE_HZ} to {_MAX_RATE_HZ} Hz (16000 is native)"
        )
    common = gcd(rate, RATE_HZ)
    return np.asarray(resample_poly(samples, RATE_HZ // common, rate // common), dtype=np.float32)


def _decode(path: Path, channels: int | str | None) -> tuple[NDArray[np.float32], int]:
    """Return samples between -1 and 1, of shape (channels asked for, samples), and their rate."""
    samples, rate, count = _read(path, only_one=channels is None)
    if channels is None and count != 1:
        raise CorpusError.one(
            path, f"has {count} channels, expected 1; write one channel to its own file, or mix or split them"
        )
    if type(channels) is int:
        if channels > count:
            raise CorpusError.one(path, f"has {count} channels; expected at least {channels}")
        return np.ascontiguousarray(samples[:, channels - 1 : channels].T), rate
    if channels == "mix" and count > 1:
        return samples.mean(axis=1, dtype=np.float64).astype(np.float32)[None], rate
    return np.ascontiguousarray(samples.T), rate


def _read(path: Path, *, only_one: bool) -> tuple[NDArray[np.float32], int, int]:
    """Return samples of shape (samples, channels), none if there are several and only one is wanted, rate, channels."""
    try:
        import soundfile
    except (ImportError, OSError) as error:
        raise CorpusError.one(
            path, f"needs soundfile ({error}); install it with: pip install 'echolearn[speech]'"
        ) from error
    try:
        with soundfile.SoundFile(str(path)) as file:
            rate, channels, chunks = file.samplerate, file.channels, [np.empty((0, file.channels), np.float32)]
            if not (only_one and channels > 1):
                while len(chunk := file.read(_CHUNK_SAMPLES, dtype="float32", always_2d=True)):
                    chunks.append(chunk)
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        size = path.stat().st_size
        reason = "is an empty file" if size == 0 else f"is not audio that can be read ({size} bytes): {_kind(path)}"
        expected = "expected WAV, FLAC, OGG, AIFF, NIST SPHERE or MP3, 16 kHz, one channel"
        convert = "convert the original, for example with: ffmpeg -i ORIGINAL -ac 1 -ar 16000 NEW.wav"
        raise CorpusError.one(path, f"{reason}; {expected}; {convert}") from error
    return np.concatenate(chunks), int(rate), int(channels)


def _kind(path: Path) -> str:
    """Return what a file is that could not be read, by its first bytes."""
    with path.open("rb") as file:
        head = file.read(64)
    for beginning, name in _SUPPORTED.items():
        if head.startswith(beginning):
            return f"it begins like a file of format {name}, but is damaged, cut short or of a rare variant"
    for beginning, name in _UNSUPPORTED.items():
        if beginning in (head[: len(beginning)], head[4 : 4 + len(beginning)]):
            return f"its format is {name}, which is not supported"
    return "it is a text file" if head.isascii() and b"\0" not in head else "its format is not known"


def _promised_samples(path: Path) -> int | None:
    """Return the number of samples that the header promises; decoders return fewer without an error."""
    try:
        with path.open("rb") as file:
            head = file.read(16)
            if head.startswith(b"NIST_1A"):
                match = re.search(rb"^sample_count\s+-i\s+(\d+)", head + file.read(4080), flags=re.MULTILINE)
                return int(match[1]) if match else None
            if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
                return _riff_samples(file)
    except OSError as error:
        raise CorpusError.one(path, f"cannot be opened ({error.strerror}); check its permissions") from error
    return None


def _riff_samples(file: BufferedReader) -> int | None:
    block = 0
    file.seek(12)
    while len(head := file.read(8)) == 8:
        kind, size = head[:4], struct.unpack("<I", head[4:])[0]
        if kind == b"fmt ":
            about = file.read(min(size, 14))
            block = int.from_bytes(about[12:14], "little")
            file.seek(size - len(about), 1)
        elif kind == b"data":
            # Writers that stream leave 0 or 0xFFFFFFFF here, because they never know the size.
            return size // block if block and size not in (0, 0xFFFFFFFF) else None
        else:
            file.seek(size + size % 2, 1)
    return None


def refuse_path(samples: object) -> None:
    """Raise ValueError if the path of a recording was given instead of its samples."""
    if isinstance(samples, (str, PathLike)):
        raise ValueError(
            f"the path {str(samples)!r:.80} was given; expected the samples of a recording. Read them from the file: "
            f"echolearn.speech.read_audio({str(samples)!r:.80}). The command echolearn recognize takes paths."
        )


def as_samples(samples: ArrayLike, full_scale: float = FULL_SCALE) -> NDArray[np.float32]:
    """Return one channel of audio, integers of 8, 16 or 32 bits or floats, as float32 on the 16-bit scale."""
    refuse_path(samples)
    audio = np.asarray(samples)
    if audio.ndim != 1:
        raise ValueError(f"samples have shape {audio.shape}; expected one channel, (n_samples,)")
    if audio.dtype.kind == "f":
        scaled = audio.astype(np.float32) * np.float32(FULL_SCALE / full_scale)
    elif audio.dtype.name in _INTEGER_SCALES:
        middle = 128.0 if audio.dtype == np.uint8 else 0.0
        scaled = ((audio.astype(np.float64) - middle) * _INTEGER_SCALES[audio.dtype.name]).astype(np.float32)
    else:
        raise ValueError(f"samples are {audio.dtype}; expected floats, or integers of 8, 16 or 32 bits")
    if not np.isfinite(scaled).all():
        raise ValueError("samples hold NaN or infinity; expected finite numbers")
    return scaled


def scale_problem(samples: NDArray[np.float32]) -> str | None:
    """Return a warning if samples are not all zero and none is larger than 1 on the 16-bit scale; None otherwise."""
    loudest = float(np.abs(samples).max(initial=0.0))
    if 0.0 < loudest <= _QUIET_AMPLITUDE:
        return (
            f"the loudest sample is {loudest:.3g} on the 16-bit scale, which is silence; "
            "give full_scale=1.0 if the samples are between -1 and 1"
        )
    return None


class Resampler:
    """A resampler of audio to 16 kHz, piece by piece, with the same samples as `resample` gives for the whole."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self._up, self._down = RATE_HZ // gcd(rate, RATE_HZ), rate // gcd(rate, RATE_HZ)
        resample(np.zeros(1, dtype=np.float32), rate)  # refuses a rate at which no speech is recorded
        self._half = _FILTER_PERIODS * max(self._up, self._down)
        self._taps = np.ones(1, dtype=np.float32)
        if rate != RATE_HZ:  # what resample_poly designs by itself, at every call
            taps = firwin(2 * self._half + 1, 1 / max(self._up, self._down), window=("kaiser", 5.0))
            self._taps = taps.astype(np.float32)
        self._kept = np.empty(0, dtype=np.float32)
        self._base = 0  # of the first sample kept; a multiple of `down`, so that outputs fall into place
        self._given = 0  # samples that were returned

    def push(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Take the next samples and return those at 16 kHz that do not depend on later samples."""
        if self.rate == RATE_HZ:
            return samples
        self._kept = np.concatenate([self._kept, samples])
        total = self._base + len(self._kept)
        return self._upto(((total - 1) * self._up - self._half) // self._down + 1)

    def finish(self) -> NDArray[np.float32]:
        """End the audio and return the last samples."""
        total = self._base + len(self._kept)
        return self._upto(-(-total * self._up // self._down))

    def _upto(self, end: int) -> NDArray[np.float32]:
        """Return the outputs from the last one returned to `end`, and forget inputs that none after it needs."""
        if end <= self._given:
            return np.empty(0, dtype=np.float32)
        origin = self._base * self._up // self._down
        outputs = np.asarray(resample_poly(self._kept, self._up, self._down, window=self._taps), dtype=np.float32)
        outputs = outputs[self._given - origin : end - origin]
        self._given = end
        needed = max(0, (end * self._down - self._half) // self._up)
        base = max(self._base, needed // self._down * self._down)
        self._kept, self._base = self._kept[base - self._base :], base
        return outputs
