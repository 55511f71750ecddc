"""Optimizers, which compute new weights from gradients (eq. 36, 37): Adam, Muon, FISTA and L-BFGS.

Weights are a dict of arrays by name: "W", "W_rec" (its non-zero values), "W_fb", "bias", and "leak" (as logits).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, Self

import numpy as np
from scipy import optimize

from echolearn.execution.threads import map_in_order
from echolearn.gradients.exact import Gradients
from echolearn.reservoir import Reservoir
from echolearn.reservoir._spectrum import rescaled
from echolearn.validation import Array

Weights = dict[str, Array]
ValueAndGradient = Callable[[Weights], tuple[float, Weights]]

MUON_MOMENTUM = 0.95
ADAM_SHARE = 0.3  # the step size of Adam, in units of that of Muon
WEIGHT_DECAY = 0.1  # of matrices, in units of a step
# Polynomials a s + b s³ + c s⁵ of singular values s; each is the one with the smallest maximum of |1 - p(s)| over the
# interval to which those before it have brought 0.01 <= s <= 1 (a linear program; they end in 0.73 to 1.27).
NEWTON_SCHULZ_STEPS = ((8.0934, -23.6205, 17.4462), (3.6366, -2.7219, 0.5365), (2.6613, -1.9772, 0.4526))
MEMORY_PAIRS = 20  # pairs of steps and gradient differences that the curvature is estimated from
DIVERGED_LOG_ERROR = 100.0  # the logarithm, above that of the start, at which an error counts that is not finite


class Optimizer(Protocol):
    """A rule from weights and gradients to new weights. It is immutable: every step returns its successor."""

    def step(self, weights: Weights, gradients: Weights, alpha: float) -> tuple[Weights, Self]:
        """Return the weights after a step of size alpha, and the optimizer that has taken it."""

    memories: ClassVar[tuple[str, ...]]  # names of the arrays, shaped as the weights are, that it keeps

    def state(self) -> tuple[float, dict[str, Weights]]:
        """Return a number and arrays by name from which `resume` continues."""

    def resume(self, number: float, kept: dict[str, Weights]) -> Self:
        """Return the optimizer whose `state` this was."""


@dataclass(frozen=True)
class Fista:
    """Gradient descent with momentum, eq. 36: w + beta (w - w_before) - alpha g.

    momentum "fista": beta = (m_old - 1) / m_new, as in Beck and Teboulle (2009); "printed": beta = m_old / m_new, as
    eq. 37 is printed. m_new = (1 + sqrt(1 + 4 m_old²)) / 2, starting from 1. before: the weights before the last step.
    """

    memories: ClassVar[tuple[str, ...]] = ("before",)

    momentum: str = "fista"
    m: float = 1.0
    before: Weights | None = None

    def state(self) -> tuple[float, dict[str, Weights]]:
        return self.m, {} if self.before is None else {"before": self.before}

    def resume(self, number: float, kept: dict[str, Weights]) -> Fista:
        return Fista(self.momentum, number, kept.get("before"))

    def step(self, weights: Weights, gradients: Weights, alpha: float) -> tuple[Weights, Fista]:
        m_new = (1 + np.sqrt(1 + 4 * self.m**2)) / 2
        beta = (self.m if self.momentum == "printed" else self.m - 1) / m_new
        before = self.before or weights
        new = {k: w - alpha * gradients[k] + beta * (w - before[k]) for k, w in weights.items()}
        return new, Fista(self.momentum, m_new, weights)


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba, 2015), a gradient method with a step size per weight; its decay rates are 0.9 and 0.99.

    An optimizer is immutable: `step` returns new weights together with the optimizer for the next step. The estimators
    use Adam by default; use the class directly to train weights along `loss_and_gradients` yourself.
    """

    memories: ClassVar[tuple[str, ...]] = ("first", "second")

    count: int = 0  # the number of steps so far
    first: Weights | None = None  # running means of the gradients, by the name of the weights; None: zeros
    second: Weights | None = None  # running means of the squares of the gradients; None: zeros

    def state(self) -> tuple[float, dict[str, Weights]]:
        """Return the number of steps and the running means, for a checkpoint."""
        return self.count, {} if self.first is None else {"first": self.first, "second": self.second or {}}

    def resume(self, number: float, kept: dict[str, Weights]) -> Adam:
        """Return the optimizer of a checkpoint."""
        return Adam(int(number), kept.get("first"), kept.get("second"))

    def step(self, weights: Weights, gradients: Weights, alpha: float) -> tuple[Weights, Adam]:
        """Return the weights after one step, and the optimizer for the next."""
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


@dataclass(frozen=True)
class Muon:
    """Muon (Jordan and others, 2024): orthogonalised momentum for matrices, and Adam for all other weights.

    The momentum of a matrix, M = U S V', is replaced by about U V': every direction moves equally far. matrices: the
    names of these weights; alpha is their step size, and `ADAM_SHARE` of it that of Adam. Both let matrices decay. Two
    threads take one half of the matrices each.
    """

    memories: ClassVar[tuple[str, ...]] = ("momentum", *Adam.memories)

    matrices: tuple[str, ...]
    momentum: Weights | None = None
    adam: Adam = field(default_factory=Adam)

    def state(self) -> tuple[float, dict[str, Weights]]:
        """Return the number of steps and all running means, for a checkpoint."""
        number, kept = self.adam.state()
        return number, kept if self.momentum is None else {**kept, "momentum": self.momentum}

    def resume(self, number: float, kept: dict[str, Weights]) -> Muon:
        """Return the optimizer of a checkpoint."""
        return Muon(self.matrices, kept.get("momentum"), self.adam.resume(number, kept))

    def step(self, weights: Weights, gradients: Weights, alpha: float) -> tuple[Weights, Muon]:
        """Return the weights after one step, and the optimizer for the next."""
        before = self.momentum or {name: np.zeros_like(weights[name]) for name in self.matrices}

        def moved(names: tuple[str, ...]) -> tuple[Weights, Weights]:
            momentum = {name: MUON_MOMENTUM * before[name] + gradients[name] for name in names}
            ahead = {name: gradients[name] + MUON_MOMENTUM * momentum[name] for name in names}
            new = {}
            for name, direction in orthogonalized(ahead).items():
                rows, columns = direction.shape
                step = alpha * max(1.0, columns / rows) ** 0.5
                new[name] = (1 - WEIGHT_DECAY * alpha) * weights[name] - step * direction
            return new, momentum

        new, momentum, small = Weights(), Weights(), alpha * ADAM_SHARE
        for some, their_momentum in map_in_order(moved, (self.matrices[::2], self.matrices[1::2])):
            new |= some
            momentum |= their_momentum
        rest = {name: value for name, value in weights.items() if name not in new}
        by_adam, adam = self.adam.step(rest, {name: gradients[name] for name in rest}, small)
        for name, value in by_adam.items():
            new[name] = value if value.ndim < 2 else value - WEIGHT_DECAY * small * rest[name]
        return {name: new[name].astype(value.dtype, copy=False) for name, value in weights.items()}, Muon(
            self.matrices, momentum, adam
        )


def orthogonalized(matrices: Weights) -> Weights:
    """Return matrices with about the same singular vectors and singular values near 1.

    Each step of a Newton-Schulz iteration applies a polynomial a s + b s³ + c s⁵ to the singular values s. Those from
    1 % of the largest on end within 0.73 to 1.27. Matrices of one shape are multiplied together.
    """
    found: Weights = {}
    for shape in sorted({value.shape for value in matrices.values()}):
        names = [name for name, value in matrices.items() if value.shape == shape]
        tall = shape[0] > shape[1]
        X = np.stack([matrices[name].T if tall else matrices[name] for name in names])
        A = X @ X.swapaxes(1, 2)
        squares = np.sqrt(np.einsum("nij,nij->n", A, A))[:, None, None] + np.finfo(A.dtype).tiny  # >= the largest s²
        X /= np.sqrt(squares)
        A /= squares
        for step, numbers in enumerate(NEWTON_SCHULZ_STEPS):
            a, b, c = (X.dtype.type(number) for number in numbers)
            if step:
                A = X @ X.swapaxes(1, 2)
            B = A @ A
            B *= c
            A *= b
            B += A
            X = a * X + B @ X
        found |= {name: x.T if tall else x for name, x in zip(names, X, strict=True)}
    return {name: found[name] for name in matrices}


def default_step_size(optimizer: str, hidden_units: int) -> float:
    """Return the paper's 0.07 for FISTA; for Adam 0.01, and less for more than 300 hidden units."""
    return 0.07 if optimizer == "fista" else min(0.01, 0.01 * (300 / hidden_units) ** 0.5)


class LearnedWeights:
    """A reservoir whose weights are learned, and their optimizer.

    learn: "none"; "input": W, W_fb and bias; "both": also W_rec. prefix: of the names of its arrays in a checkpoint.
    """

    def __init__(self, reservoir: Reservoir, learn: str, learn_leak: bool, optimizer: Optimizer, *, prefix: str = ""):
        self.reservoir, self.learn, self.optimizer, self.prefix = reservoir, learn, optimizer, prefix
        self.weights = learned_weights(reservoir, learn, learn_leak)

    def by_weight(self, g: Gradients) -> Weights:
        """Return the gradient by each learned weight; for the leak a, that by its logit: da/dlogit = a (1 - a)."""
        out = {name: getattr(g, name) for name in self.weights}
        if "leak" in out:
            out["leak"] = out["leak"] * self.reservoir.leak * (1 - self.reservoir.leak)
        return out

    def step(self, gradients: Weights, step_size: float) -> None:
        """Take a step of the optimizer."""
        self.weights, self.optimizer = self.optimizer.step(self.weights, gradients, step_size)
        self.reservoir = with_learned(self.reservoir, self.weights)

    def renormalize(self, spectral_radius: float) -> None:
        """Scale W_rec back to the given spectral radius (eq. 3), if it is learned."""
        if self.learn == "both":
            W_rec = rescaled(self.reservoir.W_rec, spectral_radius).data
            self.reservoir = self.reservoir.with_weights(W_rec=W_rec)
            self.weights["W_rec"] = self.reservoir.W_rec.data

    def state_dict(self) -> tuple[dict[str, Array], float]:
        """Return arrays by name, and the number of the optimizer's state.

        The weights are kept beside those of the reservoir, whose leak, computed from a logit, is rounded.
        """
        number, memories = self.optimizer.state()
        folders = {"weights": self.weights, "reservoir": self.reservoir.weights(), **memories}
        return {
            f"{folder}/{self.prefix}{name}": value
            for folder, values in folders.items()
            for name, value in values.items()
        }, number

    def load_state_dict(self, tensors: dict[str, Array], number: float) -> None:
        """Resume from what `state_dict` returned; arrays of other names are ignored."""
        self.weights = self._under("weights", tensors)
        reservoir = self._under("reservoir", tensors)
        self.reservoir = (
            self.reservoir.with_weights(**reservoir) if reservoir else with_learned(self.reservoir, self.weights)
        )
        memories = {memory: self._under(memory, tensors) for memory in self.optimizer.memories}
        self.optimizer = self.optimizer.resume(number, {name: kept for name, kept in memories.items() if kept})

    def _under(self, folder: str, tensors: dict[str, Array]) -> Weights:
        return weights_under(f"{folder}/{self.prefix}", tensors)


def weights_under(start: str, tensors: dict[str, Array]) -> Weights:
    """Return the arrays whose names begin with `start`, by the rest of their names."""
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}


def learned_weights(reservoir: Reservoir, learn: str, learn_leak: bool) -> Weights:
    """Return the weights that are learned, by name (see `LearnedWeights`)."""
    if learn == "none":
        return {}
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
    """Return the reservoir with new learned weights; its leak is computed from logits."""
    new = dict(weights)
    if "leak" in new:
        new["leak"] = logistic(new["leak"])
    return reservoir.with_weights(**new)


def logit(a: Array) -> Array:
    """Return log(a / (1 - a)), for a leak inside its limits."""
    a = np.clip(a, 1e-4, 1 - 1e-4)  # a leak of exactly 1 would never move
    return np.asarray(np.log(a / (1 - a)))


def logistic(x: Array) -> Array:
    """Return the leak 1 / (1 + exp(-x)), inside its limits."""
    x = np.clip(x, -50, 50)  # exp cannot overflow; the limits below are narrower anyway
    return np.asarray(np.clip(1 / (1 + np.exp(-x)), 1e-4, 1 - 1e-4))


def finite_norms(gradients: Weights, *errors: float) -> dict[str, float]:
    """Return the norm of each gradient; raise FloatingPointError if a norm, or one of the errors, is not finite."""
    norms = {name: float(np.linalg.norm(g)) for name, g in gradients.items()}
    if not np.isfinite([*errors, *norms.values()]).all():
        raise FloatingPointError("the gradient is not finite")
    return norms


def clip_gradients(gradients: Weights, norms: dict[str, float], threshold: float | None) -> Weights:
    """Return each gradient, scaled down to norm `threshold` if its norm is larger."""
    if threshold is None:
        return gradients
    return {name: g * (threshold / norms[name]) if norms[name] > threshold else g for name, g in gradients.items()}


# L-BFGS on the logarithm of an error: for few data without noise, where every gradient is over all of them
#
# Adam's steps stay as large as its step size; near a minimum of 1e-12 they jump around it. L-BFGS takes curvature into
# account and ends orders of magnitude lower. The logarithm makes errors of 1 and of 1e-12 the same problem.


def minimize_log(
    objective: ValueAndGradient, start: Weights, iterations: int, on_iteration: Callable[[int, float, Weights], object]
) -> None:
    """Lower log(error) from `start` by L-BFGS; after each iteration, on_iteration(number, error, weights).

    objective: from weights to the error (> 0) and its gradient; FloatingPointError if it is not finite. The search ends
    when on_iteration returns True, when no step lowers the error, or after the given number of iterations.
    """
    first = np.log(objective(start)[0])
    number = 0

    def of_vector(p: Array) -> tuple[float, Array]:
        try:
            value, gradient = objective(_unflattened(p, start))
        except (FloatingPointError, np.linalg.LinAlgError):
            return first + DIVERGED_LOG_ERROR, np.zeros_like(p)
        slope = _flattened(gradient) / value
        if not (np.isfinite(value) and value > 0 and np.isfinite(slope).all()):
            return first + DIVERGED_LOG_ERROR, np.zeros_like(p)
        return float(np.log(value)), slope

    def after(intermediate_result: optimize.OptimizeResult) -> None:
        nonlocal number
        number += 1
        weights = _unflattened(intermediate_result.x.copy(), start)
        if on_iteration(number, float(np.exp(intermediate_result.fun)), weights):
            raise StopIteration

    optimize.minimize(
        of_vector,
        _flattened(start),
        jac=True,
        method="L-BFGS-B",
        callback=after,
        options={
            "maxiter": iterations,
            "maxfun": 3 * iterations + 20,
            "maxcor": MEMORY_PAIRS,
            "ftol": 0.0,
            "gtol": 0.0,
        },
    )


def _flattened(weights: Weights) -> Array:
    return np.concatenate([value.ravel() for value in weights.values()])


def _unflattened(p: Array, like: Weights) -> Weights:
    """Return the vector as weights with the names and shapes of others."""
    ends = np.cumsum([value.size for value in like.values()])
    parts = np.split(p, ends[:-1])
    return {name: part.reshape(value.shape) for (name, value), part in zip(like.items(), parts, strict=True)}
