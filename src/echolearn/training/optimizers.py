"""New weights from gradients   (eq. 36, 37): clipping, FISTA, Adam, renormalisation to lambda.

Weights are a dict of arrays by name ("W", "W_rec": its non-zero values, "W_fb", "bias", "leak": as logits).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echolearn.gradients.exact import Gradients
from echolearn.reservoir.reservoir import Reservoir
from echolearn.reservoir.spectrum import rescaled

Array = NDArray[Any]
Weights = dict[str, Array]


def learned_weights(reservoir: Reservoir, learn: str, learn_leak: bool) -> Weights:
    """The weights that `learn` names: "input": W, W_fb and bias; "both": W_rec too."""
    weights: Weights = {"W": reservoir.W}
    if learn == "both":
        weights["W_rec"] = reservoir.W_rec.data
    if reservoir.W_fb is not None:
        weights["W_fb"] = reservoir.W_fb
    if reservoir.bias is not None:
        weights["bias"] = reservoir.bias
    if learn_leak:
        weights["leak"] = logit(reservoir.leak)
    return weights


def with_learned(reservoir: Reservoir, weights: Weights) -> Reservoir:
    new = dict(weights)
    if "leak" in new:
        new["leak"] = logistic(new["leak"])
    return reservoir.with_weights(**new)


def gradients_of(weights: Weights, g: Gradients, reservoir: Reservoir) -> Weights:
    """The gradient for each learned weight; the leak's goes to its logit: da/dlogit = a (1 - a)."""
    out = {name: getattr(g, name) for name in weights}
    if "leak" in out:
        out["leak"] = out["leak"] * reservoir.leak * (1 - reservoir.leak)
    return out


def logit(a: Array) -> Array:
    a = np.clip(a, 1e-4, 1 - 1e-4)  # a leak of exactly 1 would never move
    return np.asarray(np.log(a / (1 - a)))


def logistic(x: Array) -> Array:
    x = np.clip(x, -50, 50)  # beyond the limits below anyway, and exp cannot overflow
    return np.asarray(np.clip(1 / (1 + np.exp(-x)), 1e-4, 1 - 1e-4))


def norms(gradients: Weights) -> dict[str, float]:
    return {name: float(np.linalg.norm(g)) for name, g in gradients.items()}


def clipped(gradients: Weights, threshold: float | None) -> Weights:
    """Each gradient scaled down to norm `threshold` if it is longer."""
    if threshold is None:
        return gradients
    size = norms(gradients)
    return {name: g * (threshold / size[name]) if size[name] > threshold else g for name, g in gradients.items()}


@dataclass(frozen=True)
class Fista:
    """Eq. 36: w + beta (w - w_before) - alpha g.

    momentum="fista": beta = (m_old - 1) / m_new, as Beck and Teboulle have it; "printed": m_old / m_new
    (eq. 37); m_new = (1 + sqrt(1 + 4 m_old²)) / 2, from 1.
    """

    momentum: str = "fista"
    m: float = 1.0
    before: Weights | None = None

    def state(self) -> tuple[float, dict[str, Weights]]:
        return self.m, {} if self.before is None else {"before": self.before}

    def resumed(self, number: float, kept: dict[str, Weights]) -> Fista:
        return Fista(self.momentum, number, kept.get("before"))

    def step(self, weights: Weights, gradients: Weights, alpha: float) -> tuple[Weights, Fista]:
        m_new = (1 + np.sqrt(1 + 4 * self.m**2)) / 2
        beta = (self.m if self.momentum == "printed" else self.m - 1) / m_new
        before = self.before or weights
        new = {k: w - alpha * gradients[k] + beta * (w - before[k]) for k, w in weights.items()}
        return new, Fista(self.momentum, m_new, weights)


@dataclass(frozen=True)
class Adam:
    """Kingma and Ba's Adam, decay rates 0.9 and 0.99."""

    count: int = 0
    first: Weights | None = None
    second: Weights | None = None

    def state(self) -> tuple[float, dict[str, Weights]]:
        return self.count, {} if self.first is None else {"first": self.first, "second": self.second or {}}

    def resumed(self, number: float, kept: dict[str, Weights]) -> Adam:
        return Adam(int(number), kept.get("first"), kept.get("second"))

    def step(self, weights: Weights, gradients: Weights, alpha: float) -> tuple[Weights, Adam]:
        first = self.first or {k: np.zeros_like(w) for k, w in weights.items()}
        second = self.second or first
        first = {k: 0.9 * first[k] + 0.1 * g for k, g in gradients.items()}
        second = {k: 0.99 * second[k] + 0.01 * g * g for k, g in gradients.items()}
        t = self.count + 1
        new = {
            k: w - alpha * (first[k] / (1 - 0.9**t)) / (np.sqrt(second[k] / (1 - 0.99**t)) + 1e-12)
            for k, w in weights.items()
        }
        return new, Adam(t, first, second)


def default_step(optimizer: str, hidden_units: int) -> float:
    """The paper's 0.07 for FISTA; for Adam 0.01, less for large reservoirs."""
    return 0.07 if optimizer == "fista" else min(0.01, 0.01 * (300 / hidden_units) ** 0.5)


def renormalised(reservoir: Reservoir, spectral_radius: float) -> Reservoir:
    """W_rec scaled back to spectral radius lambda (eq. 3), after each epoch."""
    return reservoir.with_weights(W_rec=rescaled(reservoir.W_rec, spectral_radius).data)
