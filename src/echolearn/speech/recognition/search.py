"""Beam search for the best path through a decoding graph, compiled, frame by frame.

Scores are log probabilities of the best path to each node. A frame is taken in three steps: from every node that is
alive along its arcs to nodes that emit, whose emission is added; nodes worse than the best one by more than the beam
die; then, without taking a frame, from nodes that emit to anchors, and from anchors to later anchors. Every anchor
that is reached leaves a record (record before it, token, frame), from which the tokens of a path are read back. Of
equal scores the first in the order of the arcs wins.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from echolearn.speech.recognition.graph import Graph

NO_BEAM = np.float32(np.inf)
_LOST = np.float32(-np.inf)


class Token(NamedTuple):
    """A recognised phone or word with its frames.

    Parameters
    ----------
    name : str
        The phone or word.
    start : int
        Its first frame.
    end : int
        The frame after its last.
    """

    name: str
    start: int
    end: int


@njit(cache=True, nogil=True)
def _advance(
    emission: NDArray[np.int32],
    first: NDArray[np.int64],
    target: NDArray[np.int32],
    weight: NDArray[np.float32],
    token: NDArray[np.int32],
    scores: NDArray[np.float32],
    record: NDArray[np.int64],
    frames: NDArray[np.float32],
    began: int,
    beam: np.float32,
    records: NDArray[np.int64],
    count: int,
) -> tuple[NDArray[np.int64], int]:
    """Take frames of log emissions: update scores and record (one per node); return the records and their number."""
    n_nodes = len(emission)
    n_emitting = 0
    while n_emitting < n_nodes and emission[n_emitting] >= 0:
        n_emitting += 1
    n_anchors = n_nodes - n_emitting
    fresh = np.empty(n_nodes, dtype=np.float32)
    carried = np.empty(n_nodes, dtype=np.int64)
    completed = np.empty(n_nodes, dtype=np.int32)
    for t in range(len(frames)):
        fresh[:] = -np.inf
        for u in range(n_nodes):
            if scores[u] == -np.inf:
                continue
            for arc in range(first[u], first[u + 1]):
                v = target[arc]
                if v < n_emitting:
                    score = scores[u] + weight[arc]
                    if score > fresh[v]:
                        fresh[v] = score
                        carried[v] = record[u]
        best = np.float32(-np.inf)
        for v in range(n_emitting):
            if fresh[v] > -np.inf:
                fresh[v] += frames[t, emission[v]]
                best = max(best, fresh[v])
        threshold = best - beam
        for u in range(n_nodes):
            if u < n_emitting and fresh[u] < threshold:
                fresh[u] = -np.inf
            if fresh[u] == -np.inf:
                continue
            for arc in range(first[u], first[u + 1]):
                v = target[arc]
                if v >= n_emitting:
                    score = fresh[u] + weight[arc]
                    if score > fresh[v]:
                        fresh[v] = score
                        carried[v] = carried[u] if u < n_emitting else -2 - u
                        completed[v] = token[arc]
        if count + n_anchors > len(records):
            grown = np.empty((2 * len(records) + n_anchors, 4), dtype=np.int64)
            grown[:count] = records[:count]
            records = grown
        for v in range(n_emitting, n_nodes):
            if fresh[v] > -np.inf:
                before = carried[v]
                if before < -1:
                    before = record[-2 - before]  # of an anchor before this one, which has its record of this frame
                records[count, 0] = before
                records[count, 1] = completed[v]
                records[count, 2] = began + t + 1
                records[count, 3] = v
                record[v] = count
                count += 1
        for v in range(n_emitting):
            record[v] = carried[v]
        scores[:] = fresh
    return records, count


@dataclass
class Search:
    """A search in progress.

    Parameters
    ----------
    graph : Graph
        The decoding graph.
    weights : array of shape (n_arcs,), float32
        Total weight of every arc.
    language_weight : float, default 1.0
        Factor of the probability of ending.
    beam : float, default infinity
        How far below the best score a path may be before it is given up.
    """

    graph: Graph
    weights: NDArray[np.float32]
    language_weight: float = 1.0
    beam: float = np.inf
    scores: NDArray[np.float32] = field(init=False)
    record: NDArray[np.int64] = field(init=False)
    records: NDArray[np.int64] = field(init=False)
    count: int = field(init=False, default=0)
    frame: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        n = len(self.graph.emission)
        self.scores = np.full(n, _LOST, dtype=np.float32)
        self.record = np.full(n, -1, dtype=np.int64)
        self.records = np.empty((1024, 4), dtype=np.int64)
        self.scores[self.graph.start] = 0.0
        self._follow_start()

    def _follow_start(self) -> None:
        """Reach the anchors of shorter histories before the first frame."""
        g = self.graph
        for u in range(g.emitting, len(g.emission)):
            for arc in range(g.first[u], g.first[u + 1]):
                v = g.target[arc]
                if v >= g.emitting and self.scores[u] + self.weights[arc] > self.scores[v]:
                    self.scores[v] = self.scores[u] + self.weights[arc]

    def advance(self, frames: NDArray[np.float32]) -> None:
        """Take more frames.

        Parameters
        ----------
        frames : array of shape (n_frames, n_states), float32
            Scaled log probability of each frame in each state.
        """
        g = self.graph
        self.records, self.count = _advance(
            g.emission,
            g.first,
            g.target,
            self.weights,
            g.token,
            self.scores,
            self.record,
            np.ascontiguousarray(frames, dtype=np.float32),
            self.frame,
            np.float32(self.beam),
            self.records,
            self.count,
        )
        self.frame += len(frames)

    @property
    def final_scores(self) -> NDArray[np.float32]:
        """Score of ending the utterance now, at each node."""
        ended: NDArray[np.float32] = self.scores + np.float32(self.language_weight) * self.graph.final
        return ended

    def best(self) -> tuple[list[Token], float]:
        """Return the tokens of the best path that ends now, and its score.

        Returns
        -------
        tokens : list of Token
            The tokens with their frames; none if no path can end here.
        score : float
            Log score of the path; -inf if no path can end here.
        """
        ended = self.final_scores
        node = int(np.argmax(ended))
        score = float(ended[node])
        return ([] if score == -np.inf else self.tokens(int(self.record[node]))), score

    def tokens(self, record: int) -> list[Token]:
        """Read back the tokens of a path.

        Parameters
        ----------
        record : int
            The last record of the path.

        Returns
        -------
        list of Token
            The tokens with their frames.
        """
        found: list[tuple[int, int]] = []
        while record >= 0:
            before, token, frame, _ = self.records[record]
            if token >= 0:
                found.append((int(token), int(frame)))
            record = int(before)
        found.reverse()
        starts = [0, *(frame for _, frame in found)]
        return [Token(self.graph.tokens[token], a, b) for (token, b), a in zip(found, starts, strict=False)]
