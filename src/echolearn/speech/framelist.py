"""A list of feature arrays that makes each array when it is asked for."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from echolearn.speech.features import CONTEXT, normalised, with_context

Frames = NDArray[np.float32]


class FrameList(Sequence[Frames]):
    """Utterances of one (frames, n) array, usually a file mapped into memory.

    Only the n columns are kept; item k is read, normalised if a scale is given, and stacked with
    its context when it is asked for. So a corpus of a million frames costs an utterance of memory.
    """

    def __init__(
        self,
        frames: Frames,
        bounds: Sequence[tuple[int, int]],
        context: int = CONTEXT,
        scale: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    ) -> None:
        self.frames, self.bounds, self.context, self.scale = frames, list(bounds), context, scale

    @classmethod
    def of_lengths(cls, frames: Frames, lengths: Sequence[int], context: int = CONTEXT) -> FrameList:
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
            return FrameList(self.frames, self.bounds[k], self.context, self.scale)
        start, end = self.bounds[k]
        rows = np.array(self.frames[start:end], dtype=np.float32)
        if self.scale is not None:
            rows = normalised(rows, *self.scale)
        return with_context(rows, self.context)

    def lengths(self) -> list[int]:
        return [end - start for start, end in self.bounds]

    def take(self, which: Sequence[int]) -> FrameList:
        return FrameList(self.frames, [self.bounds[k] for k in which], self.context, self.scale)

    def without_context(self) -> FrameList:
        return FrameList(self.frames, self.bounds, 1, self.scale)

    def scaled_like(self, which: Sequence[int]) -> FrameList:
        """Normalised by the mean and deviation over the utterances `which`, taken in one pass."""
        total, square, count = 0.0, 0.0, 0
        for k in which:
            rows = np.asarray(self.frames[slice(*self.bounds[k])], dtype=np.float64)
            total, square, count = total + rows.sum(axis=0), square + (rows**2).sum(axis=0), count + len(rows)
        mean = np.asarray(total) / count
        deviation = np.sqrt(np.maximum(np.asarray(square) / count - mean**2, 0.0))
        return FrameList(self.frames, self.bounds, self.context, (mean, deviation))
