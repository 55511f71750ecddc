"""Samples -> 13 MFCC -> 39 with differences -> normalised -> a context of frames.

25 ms windows every 10 ms, without padding: `1 + (n - 400) // 160` frames at 16 kHz.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from echolearn.speech.audio import RATE

WINDOW, SHIFT = 400, 160
CEPSTRA = 13
COLUMNS = 3 * CEPSTRA
CONTEXT = 3
_SPREAD = 2  # frames on each side a difference is fitted over, as in HTK and Kaldi
_SMALLEST_DEVIATION = 1e-5

Frames = NDArray[np.float32]


def frame_count(samples: int) -> int:
    """Frames that fit into this many samples at 16 kHz."""
    return 1 + (samples - WINDOW) // SHIFT if samples >= WINDOW else 0


def mfcc(samples: NDArray[np.float32]) -> Frames:
    """Samples at 16 kHz on the 16-bit scale -> (frames, 13)."""
    import kaldi_native_fbank as knf

    computer = knf.OnlineMfcc(_options(knf))
    computer.accept_waveform(float(RATE), samples.tolist())
    computer.input_finished()
    count = computer.num_frames_ready
    if count == 0:
        return np.empty((0, CEPSTRA), dtype=np.float32)
    return np.stack([computer.get_frame(i) for i in range(count)]).astype(np.float32, copy=False)


def _options(knf: Any) -> Any:
    options = knf.MfccOptions()
    options.frame_opts.samp_freq = RATE
    options.frame_opts.dither = 0.0  # the same samples must give the same features
    options.frame_opts.snip_edges = True
    options.num_ceps = CEPSTRA
    options.use_energy = True
    # Digital silence has no logarithm; one count of a 16-bit sample is below any recording.
    options.energy_floor = 1.0
    return options


def differences(frames: Frames) -> Frames:
    """Slope of the line fitted through each frame's neighbours, ends repeated: (frames, n) alike."""
    count = len(frames)
    if count == 0:
        return frames.copy()
    padded = np.pad(frames, ((_SPREAD, _SPREAD), (0, 0)), mode="edge")
    slope = np.zeros_like(frames)
    for k in range(1, _SPREAD + 1):
        slope += k * (padded[_SPREAD + k : _SPREAD + k + count] - padded[_SPREAD - k : _SPREAD - k + count])
    return slope / np.float32(2 * sum(k * k for k in range(1, _SPREAD + 1)))


def with_differences(cepstra: Frames) -> Frames:
    """(frames, 13) -> (frames, 39): the cepstra, their slopes, the slopes' slopes."""
    first = differences(cepstra)
    return np.concatenate([cepstra, first, differences(first)], axis=1)


def normalised(
    frames: Frames, mean: NDArray[np.float64] | None = None, deviation: NDArray[np.float64] | None = None
) -> Frames:
    """Zero mean and unit deviation a column: the utterance's own, or the corpus's if given.

    A column that does not move (its deviation below 1e-5) becomes zero instead of noise.
    """
    if mean is None or deviation is None:
        mean, deviation = frames.mean(axis=0, dtype=np.float64), frames.std(axis=0, dtype=np.float64)
    still = deviation < _SMALLEST_DEVIATION
    scaled = (frames - mean) / np.where(still, 1.0, deviation)
    scaled[:, still] = 0.0
    return scaled.astype(np.float32)


def with_context(frames: Frames, context: int = CONTEXT) -> Frames:
    """(frames, n) -> (frames, n * context): previous, current, next; the ends see themselves twice."""
    if context % 2 == 0 or context < 1:
        raise ValueError(f"context is {context}, expected an odd number of frames such as 1, 3 or 5")
    side = context // 2
    if side == 0 or len(frames) == 0:
        return np.tile(frames, (1, context))
    padded = np.pad(frames, ((side, side), (0, 0)), mode="edge")
    return np.concatenate([padded[k : k + len(frames)] for k in range(context)], axis=1)
