"""How probable each state is at each frame, over all paths through a decoding graph (forward and backward sums).

The sums are taken over probabilities, not logarithms: those of a frame are divided by their sum, and the logarithms of
these sums add up to that of the total. No path is given up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit
from numpy.typing import NDArray

from echolearn.speech.recognition.decoder import SMALLEST, DecodingWeights
from echolearn.speech.recognition.graph import Graph
from echolearn.validation.array_types import Array

Floats = NDArray[np.float64]


@njit(cache=True, nogil=True)
def _pass_on(
    n_emitting: int, first: NDArray[np.int64], target: NDArray[np.int32], factor: Floats, values: Floats
) -> None:
    """Add what reaches anchors without taking a frame."""
    for u in range(len(values)):
        if values[u] > 0:
            for arc in range(first[u], first[u + 1]):
                if target[arc] >= n_emitting:
                    values[target[arc]] += values[u] * factor[arc]


@njit(cache=True, nogil=True)
def _forward(
    emission: NDArray[np.int32],
    n_emitting: int,
    first: NDArray[np.int64],
    target: NDArray[np.int32],
    factor: Floats,
    start: int,
    frames: Floats,
    forward: Floats,
) -> float:
    """Fill `forward` (n_frames, n_nodes), rows divided by the sum over emitting nodes; return Σ log of these sums."""
    before = np.zeros(len(emission))
    before[start] = 1.0
    _pass_on(n_emitting, first, target, factor, before)
    total = 0.0
    for t in range(len(frames)):
        now = forward[t]
        for u in range(len(before)):
            if before[u] > 0:
                for arc in range(first[u], first[u + 1]):
                    if target[arc] < n_emitting:
                        now[target[arc]] += before[u] * factor[arc]
        scale = 0.0
        for v in range(n_emitting):
            now[v] *= frames[t, emission[v]]
            scale += now[v]
        if scale == 0.0:
            return -np.inf
        now[:n_emitting] /= scale
        total += np.log(scale)
        _pass_on(n_emitting, first, target, factor, now)
        before = now
    return total


@njit(cache=True, nogil=True)
def _collect(
    n_emitting: int, first: NDArray[np.int64], target: NDArray[np.int32], factor: Floats, backward: Floats
) -> None:
    """Carry what follows anchors back to the nodes before them, last node first; anchors lead to later anchors only."""
    for u in range(len(backward) - 1, -1, -1):
        for arc in range(first[u], first[u + 1]):
            if target[arc] >= n_emitting:
                backward[u] += factor[arc] * backward[target[arc]]


@njit(cache=True, nogil=True)
def _backward(
    emission: NDArray[np.int32],
    n_emitting: int,
    first: NDArray[np.int64],
    target: NDArray[np.int32],
    factor: Floats,
    final: Floats,
    frames: Floats,
    forward: Floats,
    occupied: Floats,
) -> float:
    """Fill `occupied` (n_frames, n_states); return the probability of ending, given the last frame; 0: none can end."""
    after = final.copy()
    _collect(n_emitting, first, target, factor, after)
    ended = 0.0
    for t in range(len(frames) - 1, -1, -1):
        total = 0.0
        for v in range(n_emitting):
            total += forward[t, v] * after[v]
        if total == 0.0:
            return 0.0
        if t == len(frames) - 1:
            ended = total
        for v in range(n_emitting):
            occupied[t, emission[v]] += forward[t, v] * after[v] / total
        before = np.zeros(len(after))
        for u in range(len(before)):
            for arc in range(first[u], first[u + 1]):
                v = target[arc]
                if v < n_emitting:
                    before[u] += factor[arc] * frames[t, emission[v]] * after[v]
        _collect(n_emitting, first, target, factor, before)
        after = before / before.max()
    return ended


@dataclass(frozen=True)
class AllPaths:
    """All paths through a decoding graph, with probabilities.

    Parameters
    ----------
    graph : Graph
        The graph.
    priors : array of shape (n_states,)
        Share of each state among the training frames.
    weights : DecodingWeights, optional
        How much each part of a score counts. The beam is not used.
    """

    graph: Graph
    priors: Floats
    weights: DecodingWeights = field(default_factory=lambda: DecodingWeights(language_weight=1.0))

    def occupancies(self, probabilities: Array) -> tuple[Floats, float]:
        """Return how probable each state is at each frame, given the whole utterance.

        Parameters
        ----------
        probabilities : array of shape (n_frames, n_states)
            Probability of each state at each frame, by the network.

        Returns
        -------
        occupancies : array of shape (n_frames, n_states)
            The probabilities; every row has the sum 1.
        score : float
            Logarithm of the sum of all paths' scores; its derivative by the log probability of a state at a frame is
            the occupancy.

        Raises
        ------
        ValueError
            If no path through the graph is as short as the utterance.
        """
        g, w = self.graph, self.weights
        arcs = g.weights(duration_weight=w.duration_weight, language_weight=w.language_weight, penalty=w.penalty)
        factor = np.exp(arcs.astype(np.float64))
        final = (
            np.exp(w.language_weight * g.final.astype(np.float64)) if w.language_weight else (g.final > -np.inf) * 1.0
        )
        scaled = np.log(np.maximum(probabilities, SMALLEST)).astype(np.float64)
        scaled -= w.prior_exponent * np.log(np.maximum(self.priors, SMALLEST))
        highest = scaled.max(axis=1)
        frames = np.exp(scaled - highest[:, None])
        forward = np.zeros((len(frames), len(g.emission)))
        occupied = np.zeros(frames.shape)
        total = _forward(g.emission, g.emitting, g.first, g.target, factor, g.start, frames, forward)
        ended = 0.0
        if total > -np.inf:
            ended = _backward(g.emission, g.emitting, g.first, g.target, factor, final, frames, forward, occupied)
        if ended == 0.0:
            raise ValueError(f"no path through the graph has {len(frames)} frames")
        return occupied, float(total + np.log(ended) + highest.sum())
