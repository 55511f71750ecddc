"""Lattices: the many ways in which an utterance may be read, with their scores.

A lattice is a graph whose nodes are points in time (an anchor of the decoding graph at a frame) and whose arcs are
tokens with the score of their best path in between. From it come the best hypotheses in order, the probability of
every arc given the whole utterance, and from these the confidences of recognised tokens: the probability that this
token is spoken at a frame, summed over its arcs whatever their bounds, in the mean of the token's frames (after F.
Wessel, R. Schlueter, K. Macherey and H. Ney, "Confidence measures for large vocabulary continuous speech recognition",
IEEE Transactions on Speech and Audio Processing 9(3), 2001, who take the largest of the frames; on AN4's validation
part that was too sure of itself, with a normalised cross entropy below 0).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echolearn.execution.compilation import cached_njit
from echolearn.speech.recognition._search import Search, Token
from echolearn.speech.recognition._trellis import lattice_arcs

_SCORE_ROUNDING = 1e-9


class Hypothesis(NamedTuple):
    """A sequence of phones or words that an utterance may be read as, and the log score of its best path."""

    tokens: tuple[str, ...]
    score: float


@dataclass(frozen=True)
class Lattice:
    """The paths that are not much worse than the best one, as a graph from the first node to the last. Every arc leads
    to a node of a higher number. Arcs are sorted by the node that they start at."""

    frame: NDArray[np.int64]  # of each node
    start: NDArray[np.int64]  # node of each arc, and so on below
    end: NDArray[np.int64]
    token: NDArray[np.int64]  # index into `tokens`; -1 for none, such as a silence between words or a back-off
    acoustic: NDArray[np.float64]  # score by the network and the durations, weighted
    language: NDArray[np.float64]  # log probability by the language model, not weighted
    tokens: tuple[str, ...]
    best: tuple[Token, ...]  # the tokens of the best path, as the decoder found it
    language_weight: float = 1.0
    penalty: float = 0.0
    beam: float = math.inf  # all paths that are not worse than the best one by more than this are in the lattice

    @property
    def scores(self) -> NDArray[np.float64]:
        """Total score of each arc."""
        return np.asarray(self.acoustic + self.language_weight * self.language - self.penalty * (self.token >= 0))

    def _totals(
        self, scores: NDArray[np.float64], *, summed: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the score of the best path to and from each node, or the logarithms of the sums of all paths."""
        n = len(self.frame)
        # The way back is a way forward on which nodes and arcs are counted from the end.
        start, end = (np.ascontiguousarray(n - 1 - one[::-1]) for one in (self.end, self.start))
        after = _totals(n, start, end, np.ascontiguousarray(scores[::-1]), summed)[::-1]
        return _totals(n, self.start, self.end, scores, summed), after

    def nbest(self, n: int) -> list[Hypothesis]:
        """Return the best sequences of tokens, all different, in order of their scores: n, or all within the beam."""
        # The search goes from prefix to prefix. A prefix has the best score to every node that its tokens can reach,
        # and since the best way from there to the end is known, the best prefix is always one of the next hypothesis.
        scores = self.scores
        rest = self._totals(scores)[1].tolist()
        lowest = rest[0] - self.beam
        arcs = self._arcs_by_node(scores)
        hypotheses: list[Hypothesis] = []
        waiting: list[tuple[float, int, tuple[int, ...], dict[int, float] | None]] = []
        if rest[0] > -math.inf:
            waiting.append((-rest[0], 0, (), {0: 0.0}))
        made = 0
        while waiting and len(hypotheses) < n:
            cost, _, tokens, reached = heapq.heappop(waiting)
            if reached is None:
                hypotheses.append(Hypothesis(tuple(self.tokens[token] for token in tokens), -cost))
                continue
            ended, following = _extend(reached, arcs, rest, lowest)
            made += 1
            if -math.inf < ended >= lowest - _SCORE_ROUNDING:
                heapq.heappush(waiting, (-ended, made, tokens, None))
            for token, nodes in following.items():
                made += 1
                priority = max(score + rest[node] for node, score in nodes.items())
                heapq.heappush(waiting, (-priority, made, (*tokens, token), nodes))
        return hypotheses

    def _arcs_by_node(self, scores: NDArray[np.float64]) -> list[list[tuple[int, int, float]]]:
        """Return the arcs of each node: end, token and score."""
        arcs: list[list[tuple[int, int, float]]] = [[] for _ in self.frame]
        columns = (self.start.tolist(), self.end.tolist(), self.token.tolist(), scores.tolist())
        for start, end, token, score in zip(*columns, strict=True):
            arcs[start].append((end, token, score))
        return arcs

    def posteriors(self, scale: float = 1.0) -> NDArray[np.float64]:
        """Return the probability of each arc given the whole utterance; with a scale of 1 nearly all is on one path."""
        scaled = scale * self.scores
        before, after = self._totals(scaled, summed=True)
        return np.asarray(np.exp(before[self.start] + scaled + after[self.end] - after[0]))

    def confidences(self, tokens: Sequence[Token], scale: float = 1.0) -> list[Token]:
        """Return tokens with the probability that each is spoken at a frame, in the mean of its frames."""
        posteriors = self.posteriors(scale)
        length = int(self.frame[-1]) + 1
        number = {name: k for k, name in enumerate(self.tokens)}
        present: dict[str, NDArray[np.float64]] = {}
        rated = []
        for token in tokens:
            if token.name not in present:
                arcs = np.flatnonzero(self.token == number.get(token.name, -2))
                change = np.bincount(self.frame[self.start[arcs]], posteriors[arcs], minlength=length)
                change -= np.bincount(self.frame[self.end[arcs]], posteriors[arcs], minlength=length)
                present[token.name] = np.cumsum(change)
            inside = present[token.name][token.start : token.end]
            rated.append(token._replace(confidence=float(np.clip(inside.mean(), 0.0, 1.0))))
        return rated

    def pruned(self, beam: float) -> Lattice:
        """Return the lattice without the arcs whose best path is worse than the best one by more than a beam."""
        scores, n = self.scores, len(self.frame)
        before, after = self._totals(scores)
        kept = before[self.start] + scores + after[self.end] >= after[0] - beam - _SCORE_ROUNDING
        used = np.zeros(n, dtype=np.bool_)
        used[[0, n - 1]] = True
        used[self.start[kept]] = used[self.end[kept]] = True
        number = np.cumsum(used) - 1
        return replace(
            self,
            frame=self.frame[used],
            start=number[self.start[kept]],
            end=number[self.end[kept]],
            token=self.token[kept],
            acoustic=self.acoustic[kept],
            language=self.language[kept],
            beam=min(beam, self.beam),
        )


def build_lattice(search: Search, frames: NDArray[np.float32], *, penalty: float, beam: float) -> Lattice:
    """Return the lattice of an utterance by a search without frames yet; it has no arcs if no path can end."""
    frame, arcs = lattice_arcs(search, frames, beam)
    return Lattice(
        frame=frame,
        start=arcs.start,
        end=arcs.end,
        token=arcs.token,
        acoustic=arcs.score - search.language_weight * arcs.language + penalty * (arcs.token >= 0),
        language=arcs.language,
        tokens=search.graph.tokens,
        best=tuple(search.best()[0]),
        language_weight=search.language_weight,
        penalty=penalty,
    ).pruned(beam)


def _extend(
    reached: dict[int, float], arcs: list[list[tuple[int, int, float]]], rest: list[float], lowest: float
) -> tuple[float, dict[int, dict[int, float]]]:
    """Extend a prefix from its nodes: return the score of ending, and the nodes reached with every next token."""
    inside = dict(reached)
    waiting = sorted(inside)
    following: dict[int, dict[int, float]] = {}
    while waiting:
        node = heapq.heappop(waiting)
        for end, token, score in arcs[node]:
            total = inside[node] + score
            if total + rest[end] < lowest - _SCORE_ROUNDING:
                continue
            nodes = inside if token < 0 else following.setdefault(token, {})
            if token < 0 and end not in inside:
                heapq.heappush(waiting, end)
            if total > nodes.get(end, -math.inf):
                nodes[end] = total
    return inside.get(len(rest) - 1, -math.inf), following


@cached_njit(nogil=True)
def _totals(
    n: int, start: NDArray[np.int64], end: NDArray[np.int64], score: NDArray[np.float64], summed: bool
) -> NDArray[np.float64]:
    """Return the score of the best path from the first node to each, or the logarithm of the sum of all paths."""
    total = np.full(n, -np.inf)
    total[0] = 0.0
    for k in range(len(start)):
        through = total[start[k]] + score[k]
        total[end[k]] = np.logaddexp(total[end[k]], through) if summed else max(total[end[k]], through)
    return total
