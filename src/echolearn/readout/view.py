"""What the readout sees of a batch: H_c and the targets T, at the frames that carry targets (eq. 4, 5, 7).

H_c is [H X 1], or [H X 0] without an intercept. The states of large networks are streamed: of a long sequence they are
computed one chunk of time after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from echolearn.readout.summary import Summary
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import Batch, group_sequences
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.selection import Selection, block_ends
from echolearn.states.run import States, run
from echolearn.validation import Array

MAX_FRAMES_PER_PASS = 8192  # at most so many frames are worked on by one thread at once in a pass over the data
MAX_NUMBERS_PER_PASS = 2**25  # at most so many numbers are in their states, so large networks take fewer frames


def frames_at_once(N: int) -> int:
    """Return how many frames one thread works on at once, in a network of N hidden units."""
    return max(1, min(MAX_FRAMES_PER_PASS, MAX_NUMBERS_PER_PASS // N))


@dataclass(frozen=True)
class ReadoutView:
    """Which frames the final readout is fitted to, and what it sees of them."""

    washout: int = 0  # the number of steps at the beginning of every sequence that are not fitted to
    direct: bool = True  # whether the readout sees the inputs beside the states
    # whether the last column of H_c is ones; otherwise it is zeros, so that U, G and the model file keep their shapes
    intercept: bool = field(default=True, kw_only=True)
    # the row of a whole sequence that the readout sees, if there is one target per sequence; None: one per step
    summary: Summary | None = field(default=None, kw_only=True)

    def select(self, batch: Batch) -> Selection:
        """Return the selection of the frames of a batch that carry targets."""
        return Selection(batch, washout=self.washout, targets="all", lookback=None)

    def rows(self, reservoir: Reservoir) -> int:
        """Return M, the number of rows of U: for the states, the inputs and the intercept."""
        if self.summary is not None:
            return self.summary.statistics * reservoir.N + 1
        return reservoir.N + self.direct * reservoir.n_in + 1

    def targets_per_sequence(self, data: Dataset) -> Array:
        """Return the number of rows of H_c for each sequence: targets of weight 0 are not counted."""
        if data.weights is not None:
            return self._weigh(data)[:, 0].astype(int)
        return self._steps_with_targets(data.lengths)

    def target_count(self, data: Dataset) -> float:
        """Return the number of rows of H_c for all sequences, each counted as often as its weight says."""
        if data.weights is not None:
            return float(self._weigh(data)[:, 1].sum())
        return float(self.targets_per_sequence(data).sum())

    def _steps_with_targets(self, lengths: Array) -> Array:
        """Return the number of rows of H_c for sequences of these lengths without weights."""
        return np.asarray(lengths - self.washout)

    def _weigh(self, data: Dataset) -> Array:
        """Return the number of targets of each sequence, and the sum of their weights (n_sequences, 2)."""
        view = self

        def weights_of_group(data: Dataset, which: Array) -> list[tuple[float, float]]:
            found = []
            for i in which:
                batch = data.batch([i])
                selection = view.select(batch)
                assert batch.w is not None
                w = selection.take(batch.w)
                found.append((float(len(w)), float(w.sum())))
            return found

        result = np.zeros((len(data.X), 2))
        items = list(group_sequences(data.lengths, MAX_FRAMES_PER_PASS))
        for which, found in zip(items, data.map(weights_of_group, items), strict=True):
            result[which] = found
        return result

    @property
    def block_steps(self) -> int:
        """The steps of a block of time that must not be cut."""
        return 1

    def needs_whole_sequences(self, reservoir: Reservoir) -> bool:
        """Return whether time must not be cut: for feedback, or units that run backward."""
        return reservoir.W_fb is not None or reservoir.backward is not None


@dataclass(frozen=True)
class Task(ReadoutView):
    """What the weights learn from: the view of the readout, and how time is cut into blocks."""

    lookback: int | None = None  # steps m of a block, through which errors go back; None: the whole sequence
    targets: str = "all"  # whether every frame of a block carries a target, or only its last one

    def select(self, batch: Batch) -> Selection:
        return Selection(batch, washout=self.washout, targets=self.targets, lookback=self.lookback)

    def _steps_with_targets(self, lengths: Array) -> Array:
        if self.targets == "last":
            return np.array([len(block_ends(n, self.washout, self.lookback)) for n in lengths])
        return super()._steps_with_targets(lengths)

    @property
    def block_steps(self) -> int:
        return self.lookback or 1

    def needs_whole_sequences(self, reservoir: Reservoir) -> bool:
        return self.targets == "last" or super().needs_whole_sequences(reservoir)

    def view(self) -> ReadoutView:
        """Return the view of the final readout, which is fitted to every frame after the washout."""
        return ReadoutView(self.washout, self.direct, intercept=self.intercept)


@dataclass(frozen=True, eq=False)
class Observation:
    """What the readout sees of the K frames of a batch that carry targets, and what the gradient of its error needs."""

    H: Array  # (K, N): states
    X: Array  # (K, n_in): inputs; without columns unless the readout sees them
    T: Array  # (K, n_out), or labels (K,)
    view: ReadoutView  # by which the frames were selected
    batch: Batch  # the whole batch
    states: States  # at every frame of it
    selection: Selection  # of the frames that carry targets

    @property
    def w(self) -> Array | None:
        return self.selection.w

    def steps(self) -> Array:
        """Return the step (K,) of each frame in its sequence, where every target is one of a frame."""
        active = self.batch.active
        return self.selection.take(np.repeat(np.arange(len(active)), active))

    @cached_property
    def H_c(self) -> Array:
        """H_c (K, M), stacked at first use."""
        return stack(self.H, self.X, direct=self.view.direct, intercept=self.view.intercept)


def observe(reservoir: Reservoir, view: ReadoutView, batch: Batch) -> Observation:
    """Return what the readout sees of a batch."""
    return _observation(view, batch, run(reservoir, batch))


def _observation(view: ReadoutView, batch: Batch, states: States) -> Observation:
    """Return what the readout sees of a batch with these states."""
    selection = view.select(batch)
    return Observation(*select_rows(view, batch, states.H, selection), view, batch, states, selection)


def select_rows(view: ReadoutView, batch: Batch, H: Array, selection: Selection) -> tuple[Array, Array, Array]:
    """Return H, X (without columns unless the readout sees the inputs) and T at the frames that carry targets."""
    assert batch.T is not None
    X = selection.take(batch.X)
    return selection.take(H), X if view.direct else X[:, :0], selection.take(batch.T)


def stack(H: Array, X: Array, *, direct: bool, intercept: bool) -> Array:
    """Return H_c = [H X] (eq. 7), with a last column of ones for an intercept, or of zeros without one."""
    constant = np.full((len(H), 1), float(intercept), H.dtype)
    return np.hstack([H, X, constant] if direct else [H, constant])


def time_chunks(reservoir: Reservoir, view: ReadoutView, lengths: Array) -> list[slice]:
    """Return the chunks of time in which a group of sequences is run: several, in order, of one long sequence."""
    frames = frames_at_once(reservoir.N)
    if view.needs_whole_sequences(reservoir) or len(lengths) > 1:
        return [slice(None)]
    return [slice(start, start + frames) for start in range(0, lengths[0], frames)]


def stream_rows(
    reservoir: Reservoir, data: Dataset, view: ReadoutView, which: Array
) -> Iterator[tuple[Array, Array, Array | None]]:
    """Yield H_c, T and the weights (None: 1) of a group of sequences, one chunk of time after another."""
    h0 = None
    for steps in time_chunks(reservoir, view, np.array([len(data.X[i]) for i in which])):
        batch = data.batch(which, steps)
        now = replace(view, washout=max(0, view.washout - (steps.start or 0)))
        H = run(reservoir, batch, h0, keep_F=False).H
        selection = now.select(batch)
        H_taken, X, T = select_rows(now, batch, H, selection)
        yield stack(H_taken, X, direct=view.direct, intercept=view.intercept), T, selection.w
        h0 = H[-1:].copy()  # a view would keep all of H


def stream_observations(
    reservoir: Reservoir, view: ReadoutView, batch: Batch, *, keep_F: bool = False
) -> Iterator[Observation]:
    """Yield what the readout sees of a batch, one chunk of time after another; its H may be overwritten.

    At most about `frames_at_once` states of a large network exist at a time, unless time must not be cut. Chunks begin
    where blocks of a look-back begin, so that no error passes from one to another. Without `keep_F`, F is H.
    """
    if view.needs_whole_sequences(reservoir):
        yield _observation(view, batch, run(reservoir, batch, keep_F=keep_F))
        return
    block = view.block_steps
    steps = block * max(1, frames_at_once(reservoir.N) // len(batch.lengths) // block)
    begins = [0] * (view.washout > 0) + list(range(view.washout, len(batch.active), steps))
    h0 = None
    for begin, end in zip(begins, [*begins[1:], len(batch.active)], strict=True):
        chunk = batch.steps(begin, end)
        states = run(reservoir, chunk, h0, keep_F=keep_F)
        if end < len(batch.active):
            h0 = states.H[chunk.offsets[-1] :][: batch.active[end]].copy()
        if begin >= view.washout:
            yield _observation(replace(view, washout=0), chunk, states)
