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

    Item k is a slice of the array. It is normalised, if a scale is given, and stacked with its context when it is
    accessed. So a corpus of a million frames takes the memory of one utterance. The parameters are attributes too.

    Parameters
    ----------
    frames : array of shape (n_frames, n_columns), float32
        The frames of all utterances.
    bounds : sequence of (int, int)
        First frame of each utterance, and the frame after its last.
    context : int, default 3
        Number of frames in a row of an item, see `echolearn.speech.features.with_context`.
    scale : (mean, deviation), optional
        Arrays of shape (n_columns,) by which items are normalised. By default they are returned as stored.
    running : bool, default False
        Whether each item is normalised by a running mean and deviation that begins with the scale (see
        `echolearn.speech.features.RunningScale`). By default all items are normalised by the scale itself.

    Examples
    --------
    >>> import numpy as np
    >>> utterances = FrameList.of_lengths(np.arange(10, dtype=np.float32).reshape(5, 2), [3, 2])
    >>> len(utterances), utterances.lengths(), utterances[1].shape
    (2, [3, 2], (2, 6))
    >>> utterances.without_context()[1]
    array([[6., 7.],
           [8., 9.]], dtype=float32)
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
        """Return the list of utterances that follow one another in an array.

        Parameters
        ----------
        frames : array of shape (n_frames, n_columns), float32
            The frames of all utterances.
        lengths : sequence of int
            Frames of each utterance.
        context : int, default 3
            Number of frames in a row of an item.

        Returns
        -------
        FrameList
            The features of the utterances.
        """
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
        """Return the number of frames of each utterance.

        Returns
        -------
        list of int
            The lengths.
        """
        return [end - start for start, end in self.bounds]

    def take(self, which: Sequence[int]) -> FrameList:
        """Return the utterances with these indices.

        Parameters
        ----------
        which : sequence of int
            The indices.

        Returns
        -------
        FrameList
            A list over the same array of frames.
        """
        return FrameList(self.frames, [self.bounds[k] for k in which], self.context, self.scale, self.running)

    def without_context(self) -> FrameList:
        """Return the same utterances without neighbouring frames.

        Returns
        -------
        FrameList
            A list over the same array of frames.
        """
        return FrameList(self.frames, self.bounds, 1, self.scale, self.running)

    def scaled_like(self, which: Sequence[int], *, running: bool = False) -> FrameList:
        """Return the same utterances, normalised by the mean and deviation of some of them.

        Parameters
        ----------
        which : sequence of int
            Indices of the utterances that the mean and deviation are computed over, in one pass.
        running : bool, default False
            Whether each utterance is normalised by a running mean and deviation that begins with these.

        Returns
        -------
        FrameList
            A list over the same array of frames.
        """
        total, square, count = 0.0, 0.0, 0
        for k in which:
            rows = np.asarray(self.frames[slice(*self.bounds[k])], dtype=np.float64)
            total, square, count = total + rows.sum(axis=0), square + (rows**2).sum(axis=0), count + len(rows)
        mean = np.asarray(total) / count
        deviation = np.sqrt(np.maximum(np.asarray(square) / count - mean**2, 0.0))
        return FrameList(self.frames, self.bounds, self.context, (mean, deviation), running)
