"""Mixtures of Gaussians with diagonal covariances, one per state, for forced alignment.

There are S states, M components per state, D columns and T frames.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from echolearn.speech._typing import Frames

VARIANCE_FLOOR = 0.01  # of the variance of all frames
FRAMES_PER_COMPONENT = 20
_SPLIT = 0.2  # deviations by which each half of a split component moves

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Mixtures:
    """One mixture of Gaussians per state."""

    log_weights: Floats  # (S, M); -inf where a state has fewer components
    means: Floats  # (S, M, D)
    variances: Floats  # (S, M, D)
    floor: Floats  # (D,), of all variances

    @property
    def components(self) -> int:
        """The number of components per state, M."""
        return int(self.log_weights.shape[1])

    @classmethod
    def flat(cls, states: int, mean: Floats, variance: Floats) -> Mixtures:
        """Return the same single Gaussian for every state; 1 % of its variance is the floor of all variances."""
        shape = (states, 1, len(mean))
        floor = np.maximum(VARIANCE_FLOOR * variance, 1e-8)
        spread = np.maximum(variance, floor)
        return cls(
            np.zeros((states, 1)),
            np.broadcast_to(mean, shape).copy(),
            np.broadcast_to(spread, shape).copy(),
            floor,
        )

    def component_log_densities(self, X: Frames, states: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return log w + log N(x; m, v) of every component: (T, M, len(states)), float32.

        The square is multiplied out, so that all frames and components are two matrix products.
        """
        means, variances = (a[states].swapaxes(0, 1) for a in (self.means, self.variances))
        precision = 1.0 / variances
        constant = self.log_weights[states].T - 0.5 * (
            (means**2 * precision).sum(axis=2) + np.log(2 * np.pi * variances).sum(axis=2)
        )
        size = (-1, X.shape[1])
        linear = (means * precision).reshape(size).astype(np.float32)
        square = (-0.5 * precision).reshape(size).astype(np.float32)
        out = X @ linear.T + (X * X) @ square.T + constant.reshape(-1).astype(np.float32)
        return np.asarray(out.reshape(len(X), self.components, len(states)), dtype=np.float32)

    def log_densities(self, X: Frames, states: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return log p(x | state): (T, len(states)), float32."""
        each = self.component_log_densities(X, states)
        if self.components == 1:
            return each[:, 0]
        top = each.max(axis=1)
        return np.asarray(top + np.log(np.exp(each - top[:, None]).sum(axis=1)), dtype=np.float32)

    def reestimated(self, X: Frames, labels: NDArray[np.int64]) -> Mixtures:
        """Return mixtures after one step of expectation-maximisation; a state without frames keeps its density."""
        log_weights, means, variances = self.log_weights.copy(), self.means.copy(), self.variances.copy()
        order = np.argsort(labels, kind="stable")
        edges = np.searchsorted(labels[order], np.arange(len(means) + 1))
        for s in range(len(means)):
            rows = X[order[edges[s] : edges[s + 1]]]
            if len(rows) == 0:
                continue
            each = self.component_log_densities(rows, np.array([s]))[:, :, 0].astype(np.float64)
            share = np.exp(each - each.max(axis=1, keepdims=True))
            share /= share.sum(axis=1, keepdims=True)
            count = share.sum(axis=0)
            alive = count > 1e-3
            with np.errstate(divide="ignore"):
                log_weights[s] = np.where(alive, np.log(count / len(rows)), -np.inf)
            per = np.where(alive, count, 1.0)[:, None]
            wide = rows.astype(np.float64)
            fresh = share.T @ wide / per
            spread = np.maximum(share.T @ wide**2 / per - fresh**2, self.floor)
            means[s] = np.where(alive[:, None], fresh, means[s])
            variances[s] = np.where(alive[:, None], spread, variances[s])
        return replace(self, log_weights=log_weights, means=means, variances=variances)

    def grown(self, components: int, counts: NDArray[np.int64]) -> Mixtures:
        """Return mixtures in which the component of the largest weight in each state was split in two repeatedly.

        `counts` has the frames of each state, which gets at most one component per 20 of them.
        """
        extra = components - self.components
        log_weights = np.pad(self.log_weights, ((0, 0), (0, extra)), constant_values=-np.inf)
        means = np.pad(self.means, ((0, 0), (0, extra), (0, 0)))
        variances = np.pad(self.variances, ((0, 0), (0, extra), (0, 0)), constant_values=1.0)
        for s in range(len(means)):
            for new in range(self.components, components):
                if (new + 1) * FRAMES_PER_COMPONENT > counts[s]:
                    break
                old = int(np.argmax(log_weights[s]))
                shift = _SPLIT * np.sqrt(variances[s, old])
                means[s, new], variances[s, new] = means[s, old] + shift, variances[s, old]
                means[s, old] = means[s, old] - shift
                log_weights[s, old] -= np.log(2)
                log_weights[s, new] = log_weights[s, old]
        return replace(self, log_weights=log_weights, means=means, variances=variances)
