"""Conversion of samples to float32 at 16 kHz on the 16-bit scale, for whole recordings or piece by piece."""

from __future__ import annotations

from math import gcd
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import firwin, resample_poly

from echolearn.speech.audio import FULL_SCALE, RATE, resample

_FILTER_PERIODS = 10  # half the length of the filter of `resample`, in periods of the slower rate
_INTEGER_SCALES = {"int16": 1.0, "int32": 2.0**-16, "int64": 1.0, "int8": 2.0**8, "uint8": 2.0**8}
_QUIET_AMPLITUDE = 1.0  # recordings never stay below one count of 16-bit samples, samples between -1 and 1 always do


def refuse_path(given: object) -> None:
    """Raise ValueError if the path of a recording was given instead of its samples."""
    if isinstance(given, (str, PathLike)):
        raise ValueError(
            f"the path {str(given)!r:.80} was given; expected the samples of a recording. Read them from the file: "
            f"echolearn.speech.audio.read_audio({str(given)!r:.80}). The command echolearn recognize takes paths."
        )


def as_samples(samples: ArrayLike, full_scale: float = FULL_SCALE) -> NDArray[np.float32]:
    """Return one channel of audio, integers of 8, 16 or 32 bits or floats, as float32 on the 16-bit scale."""
    refuse_path(samples)
    given = np.asarray(samples)
    if given.ndim != 1:
        raise ValueError(f"samples have shape {given.shape}; expected one channel, (n_samples,)")
    if given.dtype.kind == "f":
        found = given.astype(np.float32) * np.float32(FULL_SCALE / full_scale)
    elif given.dtype.name in _INTEGER_SCALES:
        middle = 128.0 if given.dtype == np.uint8 else 0.0
        found = ((given.astype(np.float64) - middle) * _INTEGER_SCALES[given.dtype.name]).astype(np.float32)
    else:
        raise ValueError(f"samples are {given.dtype}; expected floats, or integers of 8, 16 or 32 bits")
    if not np.isfinite(found).all():
        raise ValueError("samples hold NaN or infinity; expected finite numbers")
    return found


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
        self._up, self._down = RATE // gcd(rate, RATE), rate // gcd(rate, RATE)
        resample(np.zeros(1, dtype=np.float32), rate)  # refuses a rate at which no speech is recorded
        self._half = _FILTER_PERIODS * max(self._up, self._down)
        self._taps = np.ones(1, dtype=np.float32)
        if rate != RATE:  # what resample_poly designs by itself, at every call
            taps = firwin(2 * self._half + 1, 1 / max(self._up, self._down), window=("kaiser", 5.0))
            self._taps = taps.astype(np.float32)
        self._kept = np.empty(0, dtype=np.float32)
        self._base = 0  # of the first sample kept; a multiple of `down`, so that outputs fall into place
        self._given = 0  # samples that were returned

    def push(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Take the next samples and return those at 16 kHz that do not depend on later samples."""
        if self.rate == RATE:
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
        found = np.asarray(resample_poly(self._kept, self._up, self._down, window=self._taps), dtype=np.float32)
        found = found[self._given - origin : end - origin]
        self._given = end
        needed = max(0, (end * self._down - self._half) // self._up)
        base = max(self._base, needed // self._down * self._down)
        self._kept, self._base = self._kept[base - self._base :], base
        return found
