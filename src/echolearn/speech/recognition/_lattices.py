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
from numba import njit
from numpy.typing import NDArray

from echolearn.speech.recognition._search import Search, Token
from echolearn.speech.recognition._trellis import search_trellis

BEAM = 20.0
NONE = -1
_ROUNDING = 1e-9


class Hypothesis(NamedTuple):
    """A sequence of tokens that an utterance may be read as.

    Parameters
    ----------
    tokens : tuple of str
        The phones or words.
    score : float
        Log score of the best path with these tokens.
    """

    tokens: tuple[str, ...]
    score: float


@dataclass(frozen=True)
class Lattice:
    """The paths that are not much worse than the best one, as a graph.

    Parameters
    ----------
    frame : array of shape (n_nodes,), int64
        The frame at which each node lies. Every path leads from the first node to the last, and every arc to a node of
        a higher number.
    start, end : array of shape (n_arcs,), int64
        The nodes between which each arc lies; arcs are sorted by `start`.
    token : array of shape (n_arcs,), int64
        The token of each arc, an index into `tokens`; -1 for none, such as a silence between words or a back-off.
    acoustic : array of shape (n_arcs,)
        Score of each arc by the network and the durations, weighted.
    language : array of shape (n_arcs,)
        Log probability of each arc by the language model, not weighted.
    tokens : tuple of str
        The tokens.
    language_weight : float, default 1.0
        Factor of the language model.
    penalty : float, default 0.0
        Subtracted for every token.
    beam : float, default infinity
        All paths that are not worse than the best one by more than this are in the lattice.
    decoded : tuple of Token or None, default None
        What the decoder found. None means the best path of the lattice, which is the same unless the scores of two
        paths are equal to the last digit.
    """

    frame: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    token: NDArray[np.int64]
    acoustic: NDArray[np.float64]
    language: NDArray[np.float64]
    tokens: tuple[str, ...]
    language_weight: float = 1.0
    penalty: float = 0.0
    beam: float = math.inf
    decoded: tuple[Token, ...] | None = None

    @property
    def scores(self) -> NDArray[np.float64]:
        """Total score of each arc."""
        scores: NDArray[np.float64] = (
            self.acoustic + self.language_weight * self.language - self.penalty * (self.token >= 0)
        )
        return scores

    def best(self) -> list[Token]:
        """Return the tokens of the best path.

        Returns
        -------
        list of Token
            The tokens with their frames, as the decoder found them; none if the lattice is empty.
        """
        return list(self._best_path() if self.decoded is None else self.decoded)

    def _best_path(self) -> list[Token]:
        """Return the tokens of the best path by the scores of the arcs."""
        into, arc_into = _forward_best(len(self.frame), self.start, self.end, self.scores)
        found: list[Token] = []
        node = len(self.frame) - 1
        while into[node] > -math.inf and node > 0:
            arc = arc_into[node]
            node = self.start[arc]
            if self.token[arc] >= 0:
                name = self.tokens[self.token[arc]]
                found.append(Token(name, int(self.frame[node]), int(self.frame[self.end[arc]])))
        return found[::-1]

    def nbest(self, n: int) -> list[Hypothesis]:
        """Return the best sequences of tokens, all different, in order of their scores.

        The search goes from prefix to prefix. A prefix has the best score to every node that its tokens can reach, and
        since the best way from there to the end is known, the best prefix of all is always one of the next hypothesis.

        Parameters
        ----------
        n : int
            How many to return.

        Returns
        -------
        list of Hypothesis
            At most `n`; fewer if fewer are within the lattice's beam.
        """
        scores = self.scores
        rest = _backward_best(len(self.frame), self.start, self.end, scores).tolist()
        lowest = rest[0] - self.beam
        arcs = self._arcs_by_node(scores)
        found: list[Hypothesis] = []
        waiting: list[tuple[float, int, tuple[int, ...], dict[int, float] | None]] = []
        if rest[0] > -math.inf:
            waiting.append((-rest[0], 0, (), {0: 0.0}))
        made = 0
        while waiting and len(found) < n:
            cost, _, tokens, reached = heapq.heappop(waiting)
            if reached is None:
                found.append(Hypothesis(tuple(self.tokens[token] for token in tokens), -cost))
                continue
            ended, following = _extend(reached, arcs, rest, lowest)
            made += 1
            if -math.inf < ended >= lowest - _ROUNDING:
                heapq.heappush(waiting, (-ended, made, tokens, None))
            for token, nodes in following.items():
                made += 1
                priority = max(score + rest[node] for node, score in nodes.items())
                heapq.heappush(waiting, (-priority, made, (*tokens, token), nodes))
        return found

    def _arcs_by_node(self, scores: NDArray[np.float64]) -> list[list[tuple[int, int, float]]]:
        """Return the arcs of each node: end, token and score."""
        arcs: list[list[tuple[int, int, float]]] = [[] for _ in self.frame]
        columns = (self.start.tolist(), self.end.tolist(), self.token.tolist(), scores.tolist())
        for start, end, token, score in zip(*columns, strict=True):
            arcs[start].append((end, token, score))
        return arcs

    def posteriors(self, scale: float = 1.0) -> NDArray[np.float64]:
        """Return the probability of each arc given the whole utterance.

        Parameters
        ----------
        scale : float, default 1.0
            Factor of all scores. Frames are not independent, so that scores are too sure of themselves: with 1 nearly
            all probability is on one path. `calibrate` finds the factor with which probabilities mean what they say.

        Returns
        -------
        array of shape (n_arcs,)
            The probabilities. The arcs that cross any point in time have a sum of 1. A token that a language model both
            lists and reaches by back-off has a path for each, and both count.
        """
        scaled = scale * self.scores
        before = _forward_sum(len(self.frame), self.start, self.end, scaled)
        after = _backward_sum(len(self.frame), self.start, self.end, scaled)
        found: NDArray[np.float64] = np.exp(before[self.start] + scaled + after[self.end] - after[0])
        return found

    def confidences(self, tokens: Sequence[Token], scale: float = 1.0) -> list[Token]:
        """Return tokens with their confidences.

        Parameters
        ----------
        tokens : sequence of Token
            Tokens with their frames, such as those of `best`.
        scale : float, default 1.0
            As in `posteriors`.

        Returns
        -------
        list of Token
            The same tokens. The confidence of one is the probability that this token is spoken at a frame, summed over
            all arcs of the same token, in the mean of its frames.
        """
        posteriors = self.posteriors(scale)
        length = int(self.frame[-1]) + 1
        number = {name: k for k, name in enumerate(self.tokens)}
        present: dict[str, NDArray[np.float64]] = {}
        found = []
        for token in tokens:
            if token.name not in present:
                arcs = np.flatnonzero(self.token == number.get(token.name, -2))
                change = np.bincount(self.frame[self.start[arcs]], posteriors[arcs], minlength=length)
                change -= np.bincount(self.frame[self.end[arcs]], posteriors[arcs], minlength=length)
                present[token.name] = np.cumsum(change)
            inside = present[token.name][token.start : token.end]
            found.append(token._replace(confidence=float(np.clip(inside.mean(), 0.0, 1.0))))
        return found

    def pruned(self, beam: float) -> Lattice:
        """Return the lattice without the arcs whose best path is worse than the best one by more than a beam.

        Parameters
        ----------
        beam : float
            How much worse a path may be.

        Returns
        -------
        Lattice
            The smaller lattice.
        """
        scores, n = self.scores, len(self.frame)
        before, _ = _forward_best(n, self.start, self.end, scores)
        after = _backward_best(n, self.start, self.end, scores)
        kept = before[self.start] + scores + after[self.end] >= after[0] - beam - _ROUNDING
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


def build_lattice(search: Search, frames: NDArray[np.float32], *, penalty: float, beam: float = BEAM) -> Lattice:
    """Search an utterance and return its lattice.

    Parameters
    ----------
    search : Search
        A search that has taken no frame yet.
    frames : array of shape (n_frames, n_states), float32
        Scaled log probabilities of the utterance.
    penalty : float
        What the arcs of the search contain for every token.
    beam : float, default 20.0
        How far below the best path a path may be.

    Returns
    -------
    Lattice
        The lattice; without arcs if no path can end.
    """
    trellis = search_trellis(search, frames)
    tokens, _ = search.best()
    frame, arcs = trellis.arcs(beam)
    return Lattice(
        frame=frame,
        start=arcs.start,
        end=arcs.end,
        token=arcs.token,
        acoustic=arcs.score - search.language_weight * arcs.language + penalty * (arcs.token >= 0),
        language=arcs.language,
        tokens=search.graph.tokens,
        language_weight=search.language_weight,
        penalty=penalty,
        decoded=tuple(tokens),
    ).pruned(beam)


def _extend(
    reached: dict[int, float], arcs: list[list[tuple[int, int, float]]], rest: list[float], lowest: float
) -> tuple[float, dict[int, dict[int, float]]]:
    """Go on from the nodes of a prefix: return the score of ending, and the nodes reached with every next token."""
    inside = dict(reached)
    waiting = sorted(inside)
    following: dict[int, dict[int, float]] = {}
    while waiting:
        node = heapq.heappop(waiting)
        for end, token, score in arcs[node]:
            total = inside[node] + score
            if total + rest[end] < lowest - _ROUNDING:
                continue
            nodes = inside if token == NONE else following.setdefault(token, {})
            if token == NONE and end not in inside:
                heapq.heappush(waiting, end)
            if total > nodes.get(end, -math.inf):
                nodes[end] = total
    return inside.get(len(rest) - 1, -math.inf), following


@njit(cache=True, nogil=True)
def _forward_best(
    n: int, start: NDArray[np.int64], end: NDArray[np.int64], score: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the score of the best path from the first node to each, and its last arc."""
    best, arc = np.full(n, -np.inf), np.full(n, -1)
    best[0] = 0.0
    for k in range(len(start)):
        if best[start[k]] + score[k] > best[end[k]]:
            best[end[k]] = best[start[k]] + score[k]
            arc[end[k]] = k
    return best, arc


@njit(cache=True, nogil=True)
def _backward_best(
    n: int, start: NDArray[np.int64], end: NDArray[np.int64], score: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the score of the best path from each node to the last."""
    best = np.full(n, -np.inf)
    best[n - 1] = 0.0
    for k in range(len(start) - 1, -1, -1):
        best[start[k]] = max(best[start[k]], score[k] + best[end[k]])
    return best


@njit(cache=True, nogil=True)
def _forward_sum(
    n: int, start: NDArray[np.int64], end: NDArray[np.int64], score: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the logarithm of the summed paths from the first node to each."""
    total = np.full(n, -np.inf)
    total[0] = 0.0
    for k in range(len(start)):
        total[end[k]] = np.logaddexp(total[end[k]], total[start[k]] + score[k])
    return total


@njit(cache=True, nogil=True)
def _backward_sum(
    n: int, start: NDArray[np.int64], end: NDArray[np.int64], score: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the logarithm of the summed paths from each node to the last."""
    total = np.full(n, -np.inf)
    total[n - 1] = 0.0
    for k in range(len(start) - 1, -1, -1):
        total[start[k]] = np.logaddexp(total[start[k]], score[k] + total[end[k]])
    return total
