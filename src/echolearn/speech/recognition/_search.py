"""Beam search for the best path through a decoding graph, compiled, frame by frame.

Scores are log probabilities of the best path to each node. A frame is taken in three steps: from every node that is
alive along its arcs to nodes that emit, whose emission is added; nodes worse than the best one by more than the beam
die; then, without taking a frame, from nodes that emit to anchors, and from anchors to later anchors. Every anchor
that is reached leaves a record (record before it, token, frame), from which the tokens of a path are read back. Of
equal scores the first in the order of the arcs wins. The best score of a frame is subtracted from all and added to an
offset, so that scores in single precision stay exact however long a stream is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echolearn.execution.compilation import cached_njit
from echolearn.speech.recognition._graph import Graph, Routes


class Token(NamedTuple):
    """A recognised phone or word: its first frame, the frame after its last, and its probability if computed."""

    name: str
    start: int
    end: int
    confidence: float | None = None


@cached_njit(nogil=True)
def _reach(
    routes: Routes,
    scores: NDArray[np.float32],
    record: NDArray[np.int64],
    alive: NDArray[np.int64],
    fresh: NDArray[np.float32],
    carried: NDArray[np.int64],
    reached: NDArray[np.int64],
) -> int:
    """Go from the nodes that are alive to those that emit; return how many were reached. The old scores are erased."""
    n_reached = 0
    for u in alive:
        for arc in range(routes.first[u], routes.first[u + 1]):
            v = routes.target[arc]
            if v < routes.emitting and scores[u] + routes.weight[arc] > fresh[v]:
                if fresh[v] == -np.inf:
                    reached[n_reached] = v
                    n_reached += 1
                fresh[v] = scores[u] + routes.weight[arc]
                carried[v] = record[u]
    for u in alive:
        scores[u] = -np.inf
    return n_reached


@cached_njit(nogil=True)
def _pass_on(
    u: int,
    routes: Routes,
    scores: NDArray[np.float32],
    record: NDArray[np.int64],
    carried: NDArray[np.int64],
    completed: NDArray[np.int32],
) -> None:
    """Go from one node to the anchors behind it, without taking a frame."""
    for arc in range(routes.first[u], routes.first[u + 1]):
        v = routes.target[arc]
        if v >= routes.emitting and scores[u] + routes.weight[arc] > scores[v]:
            scores[v] = scores[u] + routes.weight[arc]
            carried[v] = record[u]
            completed[v] = routes.token[arc]


@cached_njit(nogil=True)
def _advance(
    routes: Routes,
    scores: NDArray[np.float32],
    record: NDArray[np.int64],
    frames: NDArray[np.float32],
    began: int,
    beam: np.float32,
    records: NDArray[np.int64],
    count: int,
) -> tuple[NDArray[np.int64], int, float]:
    """Take frames of log emissions: update scores and record (one per node); return the records, their number, and the
    sum of what was subtracted from the scores.
    """
    offset = 0.0
    n_nodes, n_emitting = len(routes.emission), routes.emitting
    fresh, carried = np.full(n_nodes, -np.inf, dtype=np.float32), np.empty(n_nodes, dtype=np.int64)
    completed, reached = np.empty(n_nodes, dtype=np.int32), np.empty(n_emitting, dtype=np.int64)
    alive = np.flatnonzero(scores > -np.inf)
    buffer = np.empty(n_nodes, dtype=np.int64)
    for t in range(len(frames)):
        n_reached = _reach(routes, scores, record, alive, fresh, carried, reached)
        best = np.float32(-np.inf)
        for v in reached[:n_reached]:
            fresh[v] += frames[t, routes.emission[v]]
            best = max(best, fresh[v])
        offset += float(best)
        n_alive = 0
        for v in reached[:n_reached]:
            if fresh[v] >= best - beam:
                buffer[n_alive] = v
                n_alive += 1
                scores[v], record[v] = fresh[v] - best, carried[v]
                _pass_on(v, routes, scores, record, carried, completed)
            fresh[v] = -np.inf
        if count + n_nodes - n_emitting > len(records):
            records = np.concatenate((records, np.empty((len(records) + n_nodes - n_emitting, 4), dtype=np.int64)))
        for u in range(n_emitting, n_nodes):
            if scores[u] > -np.inf:
                buffer[n_alive] = u
                n_alive += 1
                records[count, 0], records[count, 1] = carried[u], completed[u]
                records[count, 2], records[count, 3] = began + t + 1, u
                record[u] = count
                count += 1
                _pass_on(u, routes, scores, record, carried, completed)
        alive = buffer[:n_alive].copy()
    return records, count, offset


@dataclass
class Search:
    """A search in progress."""

    graph: Graph
    weights: NDArray[np.float32]  # of every arc
    language_weight: float = 1.0  # factor of the probability of ending
    beam: float = np.inf
    scores: NDArray[np.float32] = field(init=False)  # of the best path to each node, without the offset
    record: NDArray[np.int64] = field(init=False)  # the last record of this path
    records: NDArray[np.int64] = field(init=False)  # record before, token, frame, anchor
    count: int = field(init=False, default=0)  # of records
    frame: int = field(init=False, default=0)
    offset: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        n = len(self.graph.emission)
        self.scores = np.full(n, -np.inf, dtype=np.float32)
        self.record = np.full(n, -1, dtype=np.int64)
        self.records = np.empty((1024, 4), dtype=np.int64)
        self.scores[self.graph.start] = 0.0
        # The anchors of shorter histories are reached before the first frame, and leave no record.
        routes, carried, completed = self.graph.routes(self.weights), self.record.copy(), np.empty(n, dtype=np.int32)
        for u in range(self.graph.emitting, n):
            _pass_on(u, routes, self.scores, self.record, carried, completed)

    def advance(self, frames: NDArray[np.float32]) -> None:
        """Take more frames of scaled log probabilities (n_frames, n_states)."""
        self.records, self.count, offset = _advance(
            self.graph.routes(self.weights),
            self.scores,
            self.record,
            np.ascontiguousarray(frames, dtype=np.float32),
            self.frame,
            np.float32(self.beam),
            self.records,
            self.count,
        )
        self.frame += len(frames)
        self.offset += offset

    def best(self) -> tuple[list[Token], float]:
        """Return the tokens of the best path that ends now, and its log score; -inf if none can end here."""
        ended = np.full(len(self.scores), -np.inf, dtype=np.float32)
        can_end = self.graph.final > -np.inf
        ended[can_end] = self.scores[can_end] + np.float32(self.language_weight) * self.graph.final[can_end]
        node = int(np.argmax(ended))
        score = float(ended[node]) + self.offset
        return ([] if score == -np.inf else self.tokens(int(self.record[node]))), score

    def tokens(self, record: int) -> list[Token]:
        """Read back the tokens of a path from its last record."""
        tokens: list[Token] = []
        while record >= 0:
            before, token, end, _ = self.records[record]
            if token >= 0:
                start = self.records[before, 2] if before >= 0 else 0
                tokens.append(Token(self.graph.tokens[token], int(start), int(end)))
            record = int(before)
        return tokens[::-1]
