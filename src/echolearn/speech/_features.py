"""The features of speech, from samples to the inputs of a network.

The steps are: 13 mel-frequency cepstral coefficients (MFCC), 39 columns with their differences, normalisation, and
stacking of each frame with its neighbours (117 columns). A frame is a window of 25 ms, and there is one every 10 ms. An
utterance of n samples at 16 kHz has ``1 + (n - 400) // 160`` frames; nothing is padded.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from echolearn.display.facts import counted, one_line
from echolearn.execution.compilation import cached_njit
from echolearn.speech._audio import RATE_HZ

WINDOW_SAMPLES, SHIFT_SAMPLES = 400, 160
FRAME_SECONDS = SHIFT_SAMPLES / RATE_HZ
MEL_BANDS, LOWEST_HZ, LIFTER = 23, 20.0, 22.0  # as in Kaldi
CEPSTRA = 13
FEATURE_COLUMNS = 3 * CEPSTRA
CONTEXT_FRAMES = 3
DELTA_FRAMES = 2  # on each side, that a difference is fitted over, as in HTK and Kaldi
PRIOR_FRAMES = 100.0  # what the training part counts for, in frames, at the start of a running normalisation
MAX_MEMORY_FRAMES = 3000.0  # that a running mean looks back to
SMALLEST_DEVIATION = 1e-5
Frames = NDArray[np.float32]  # (frames, columns)
Labels = NDArray[np.int16]  # (frames,)


def frame_count(samples: int) -> int:
    """Return the number of frames of an utterance; 0 if it is shorter than one window."""
    return 1 + (samples - WINDOW_SAMPLES) // SHIFT_SAMPLES if samples >= WINDOW_SAMPLES else 0


def first_frame(seconds: float) -> int:
    """Return the index of the first frame whose middle is at or after a time."""
    return max(0, int(np.ceil((seconds * RATE_HZ - WINDOW_SAMPLES / 2) / SHIFT_SAMPLES - 1e-6)))


def boundary_time(frame: int) -> float:
    """Return the time halfway between the middle of a frame and the middle of the one before it."""
    return (frame * SHIFT_SAMPLES + WINDOW_SAMPLES / 2 - SHIFT_SAMPLES / 2) / RATE_HZ


def mfcc(samples: NDArray[np.float32]) -> Frames:
    """Return mel-frequency cepstral coefficients (MFCC): the energy and 12 cepstra of 23 mel bands.

    It requires kaldi-native-fbank (`pip install 'echolearn[speech]'`).

    Parameters
    ----------
    samples : array of shape (n_samples,)
        The audio at 16 kHz on the 16-bit scale, as `read_audio` returns it.

    Returns
    -------
    array of shape (n_frames, 13), float32
        One row per frame. The same samples always give the same features: no dither is added.

    Examples
    --------
    >>> mfcc(1000 * np.random.default_rng(0).standard_normal(16_000).astype(np.float32)).shape
    (98, 13)
    """
    import kaldi_native_fbank as knf

    options = knf.MfccOptions()
    options.frame_opts.samp_freq = RATE_HZ
    options.frame_opts.dither = 0.0
    options.frame_opts.snip_edges = True
    options.mel_opts.num_bins = MEL_BANDS
    options.use_energy = True
    # Digital silence has no logarithm; one count of a 16-bit sample is below any recording.
    options.energy_floor = 1.0
    computer = knf.OnlineMfcc(options)
    computer.accept_waveform(float(RATE_HZ), samples.tolist())
    computer.input_finished()
    rows = [computer.get_frame(i) for i in range(computer.num_frames_ready)]
    return np.stack(rows).astype(np.float32, copy=False) if rows else np.empty((0, CEPSTRA), np.float32)


def differences(frames: Frames) -> Frames:
    """Return the slope of every column at every frame (the "delta" features); the ends are repeated."""
    if len(frames) == 0:
        return frames.copy()
    return slopes(np.pad(frames, ((DELTA_FRAMES, DELTA_FRAMES), (0, 0)), mode="edge"))


def slopes(padded: Frames) -> Frames:
    """Return the slopes of frames that have two neighbours on each side: four rows fewer."""
    count = len(padded) - 2 * DELTA_FRAMES
    slope = np.zeros((count, padded.shape[1]), dtype=padded.dtype)
    for k in range(1, DELTA_FRAMES + 1):
        later, earlier = DELTA_FRAMES + k, DELTA_FRAMES - k
        slope += k * (padded[later : later + count] - padded[earlier : earlier + count])
    return slope / np.float32(2 * sum(k * k for k in range(1, DELTA_FRAMES + 1)))


def with_differences(cepstra: Frames) -> Frames:
    """Return frames with their first and second differences appended.

    Parameters
    ----------
    cepstra : array of shape (n_frames, n_columns)
        Features of one utterance, usually 13 MFCC.

    Returns
    -------
    array of shape (n_frames, 3 * n_columns)
        The features, their slopes, and the slopes of the slopes.

    Examples
    --------
    >>> with_differences(np.zeros((5, 13), dtype=np.float32)).shape
    (5, 39)
    """
    first = differences(cepstra)
    return np.concatenate([cepstra, first, differences(first)], axis=1)


def normalised(
    frames: Frames, mean: NDArray[np.float64] | None = None, deviation: NDArray[np.float64] | None = None
) -> Frames:
    """Return frames with every column shifted and scaled to zero mean and unit standard deviation.

    Parameters
    ----------
    frames : array of shape (n_frames, n_columns)
        Features of one utterance.
    mean, deviation : array of shape (n_columns,), optional
        Mean to subtract and standard deviation to divide by, given together. By default those of the utterance. Pass
        those of the training part to normalise per corpus.

    Returns
    -------
    array of shape (n_frames, n_columns), float32
        The normalised features. A constant column (with a deviation below 1e-5) becomes zero, so that its rounding
        errors are not amplified.

    Examples
    --------
    >>> normalised(np.array([[1, 5], [3, 5]], dtype=np.float32))
    array([[-1.,  0.],
           [ 1.,  0.]], dtype=float32)
    """
    if mean is None or deviation is None:
        mean, deviation = frames.mean(axis=0, dtype=np.float64), frames.std(axis=0, dtype=np.float64)
    still = deviation < SMALLEST_DEVIATION
    scaled = (frames - mean) / np.where(still, 1.0, deviation)
    scaled[:, still] = 0.0
    return scaled.astype(np.float32)


@cached_njit()
def _follow(
    frames: NDArray[np.float32],
    mean: NDArray[np.float64],
    square: NDArray[np.float64],
    seen: float,
    out: NDArray[np.float32],
) -> float:
    """Normalise frame after frame by moments that include it, and update the moments; return what they count for."""
    for t in range(len(frames)):
        seen = min(seen + 1.0, MAX_MEMORY_FRAMES)
        for c in range(frames.shape[1]):
            x = np.float64(frames[t, c])
            mean[c] += (x - mean[c]) / seen
            square[c] += (x * x - square[c]) / seen
            deviation = np.sqrt(max(square[c] - mean[c] * mean[c], 0.0))
            out[t, c] = (x - mean[c]) / deviation if deviation >= SMALLEST_DEVIATION else 0.0
    return seen


class RunningScale:
    """A running normalisation by the mean and deviation of the frames so far. Before the first frame those of the
    training part count for 100 frames; frames lose their weight after 30 seconds."""

    def __init__(self, mean: NDArray[np.float64], deviation: NDArray[np.float64]) -> None:
        self._mean = np.array(mean, dtype=np.float64)
        self._square = np.asarray(deviation, dtype=np.float64) ** 2 + self._mean**2
        self._seen = PRIOR_FRAMES

    def apply(self, frames: Frames) -> Frames:
        """Return the next frames of the utterance, normalised."""
        out = np.empty(frames.shape, dtype=np.float32)
        rows = np.ascontiguousarray(frames, dtype=np.float32)
        self._seen = _follow(rows, self._mean, self._square, self._seen, out)
        return out


def with_context(frames: Frames, context: int = CONTEXT_FRAMES) -> Frames:
    """Return frames, each stacked with its neighbours.

    Parameters
    ----------
    frames : array of shape (n_frames, n_columns)
        Features of one utterance.
    context : int, default 3
        Number of frames in a row of the result, an odd number. 3 stacks the previous, current and next frame; 1 stacks
        nothing. A recurrent network rarely needs more, because its states contain the frames before.

    Returns
    -------
    array of shape (n_frames, n_columns * context)
        The stacked frames. The first and last frame are repeated beyond the ends.

    Examples
    --------
    >>> with_context(np.array([[1], [2], [3]], dtype=np.float32)).astype(int)
    array([[1, 1, 2],
           [1, 2, 3],
           [2, 3, 3]])
    """
    if context % 2 == 0 or context < 1:
        raise ValueError(f"context is {context}, expected an odd number of frames such as 1, 3 or 5")
    side = context // 2
    if side == 0 or len(frames) == 0:
        return np.tile(frames, (1, context))
    padded = np.pad(frames, ((side, side), (0, 0)), mode="edge")
    return np.concatenate([padded[k : k + len(frames)] for k in range(context)], axis=1)


class FrameList(Sequence[Frames]):
    """The features of many utterances in one array of frames, usually a file mapped into memory. Item k is the slice
    `bounds[k]`, normalised by the scale, if there is one, and stacked when it is accessed."""

    def __repr__(self) -> str:
        utterances, (frames, columns) = counted(len(self), "utterance"), self.frames.shape
        context = "" if self.context == 1 else f"context of {self.context}"
        return one_line(self, [utterances, counted(frames, "frame"), counted(columns, "column"), context])

    def __init__(
        self,
        frames: Frames,
        bounds: Sequence[tuple[int, int]],
        context: int = CONTEXT_FRAMES,
        scale: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
        running: bool = False,
    ) -> None:
        self.frames, self.bounds, self.context, self.scale = frames, list(bounds), context, scale
        self.running = running

    @classmethod
    def of_lengths(cls, frames: Frames, lengths: Sequence[int], context: int = CONTEXT_FRAMES) -> FrameList:
        """Return the list of utterances that follow one another in an array."""
        edges = np.r_[0, np.cumsum(lengths)].tolist()
        return cls(frames, list(itertools.pairwise(edges)), context)

    def __len__(self) -> int:
        return len(self.bounds)

    @overload
    def __getitem__(self, k: int) -> Frames: ...
    @overload
    def __getitem__(self, k: slice) -> FrameList: ...
    def __getitem__(self, k: int | slice) -> Frames | FrameList:
        if isinstance(k, slice):
            return FrameList(self.frames, self.bounds[k], self.context, self.scale, self.running)
        start, end = self.bounds[k]
        rows = np.array(self.frames[start:end], dtype=np.float32)
        if self.scale is not None:
            rows = RunningScale(*self.scale).apply(rows) if self.running else normalised(rows, *self.scale)
        return with_context(rows, self.context)

    def take(self, which: Sequence[int]) -> FrameList:
        """Return the utterances with these indices."""
        return FrameList(self.frames, [self.bounds[k] for k in which], self.context, self.scale, self.running)

    def without_context(self) -> FrameList:
        """Return the same utterances without neighbouring frames."""
        return FrameList(self.frames, self.bounds, 1, self.scale, self.running)

    def scaled_like(self, which: Sequence[int], *, running: bool = False) -> FrameList:
        """Return the same utterances, normalised by the mean and deviation of some of them, computed in one pass."""
        total, square, count = 0.0, 0.0, 0
        for k in which:
            rows = np.asarray(self.frames[slice(*self.bounds[k])], dtype=np.float64)
            total, square, count = total + rows.sum(axis=0), square + (rows**2).sum(axis=0), count + len(rows)
        mean = np.asarray(total) / count
        deviation = np.sqrt(np.maximum(np.asarray(square) / count - mean**2, 0.0))
        return FrameList(self.frames, self.bounds, self.context, (mean, deviation), running)
