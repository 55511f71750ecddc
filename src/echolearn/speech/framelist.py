"""A list of feature arrays in which each array is computed when it is accessed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from echolearn.display.facts import counted, one_line
from echolearn.speech._typing import Frames
from echolearn.speech.features import CONTEXT, RunningScale, normalised, with_context


class FrameList(Sequence[Frames]):
    """The features of many utterances, stored as one array of frames, usually a file mapped into memory.

    Item k is the slice `bounds[k]` of the array, normalised by the scale (mean and deviation), if there is one, and
    stacked with its context when it is accessed. So a corpus of a million frames takes the memory of one utterance.
    """

    def __repr__(self) -> str:
        utterances, (frames, columns) = counted(len(self), "utterance"), self.frames.shape
        context = "" if self.context == 1 else f"context of {self.context}"
        return one_line(self, [utterances, counted(frames, "frame"), counted(columns, "column"), context])

    def __init__(
        self,
        frames: Frames,
        bounds: Sequence[tuple[int, int]],
        context: int = CONTEXT,
        scale: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
        running: bool = False,
    ) -> None:
        self.frames, self.bounds, self.context, self.scale = frames, list(bounds), context, scale
        self.running = running

    @classmethod
    def of_lengths(cls, frames: Frames, lengths: Sequence[int], context: int = CONTEXT) -> FrameList:
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

    def lengths(self) -> list[int]:
        """Return the number of frames of each utterance."""
        return [end - start for start, end in self.bounds]

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
