"""The exact gradient through a closed loop that is unrolled over k steps, with the readout in closed form.

From the states h_s and values x_s of some steps s of a series, the network runs k steps on its own outputs, with error

    L = Σ_s Σ_{j=1..k} ||x̂_{s+j} - x_{s+j}||² / k,        x̂_s = x_s,
    h_{j+1} = (1 - a) h_j + a f(z_j),     z_j = W'[x̂_j, e] + W_rec h_j + b,     x̂_{j+1} = U'[h_{j+1}, x̂_j, e, 1].

U minimises the error of one step, not L, so its own motion counts for k > 1 (docs/explanation/derivation.md). With P =
dL/dU of the unrolled loop, Λ = (H_c'H_c + mu I)^-1 P, and R = H_c U - T of the one-step fit,

    dL/dH_c = -H_c Λ U' - R Λ'     at every step of the fit, and dL/dh_s besides at the steps where a loop starts.

From there the way back through the driven run is that of `gradients.exact`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from echolearn.gradients.exact import Gradients, through_time
from echolearn.readout.orthogonal import OrthogonalFactors
from echolearn.readout.view import stack
from echolearn.reservoir import Reservoir
from echolearn.reservoir._activations import activate, is_registered, slope
from echolearn.sequences.batch import Batch
from echolearn.states.closed_loop import Ring
from echolearn.states.run import run
from echolearn.validation import Array


@dataclass(frozen=True, eq=False)
class Series:
    """One series as a network learns it: inputs X (K, dims + exogenous) and the values T (K, dims) that follow them.

    A series on a `Ring` has one sequence per block, step by step: X (K * blocks, width) and T (K * blocks, size).
    """

    batch: Batch
    T: Array
    washout: int
    direct: bool

    @property
    def X(self) -> Array:
        return self.batch.X

    @property
    def blocks(self) -> int:
        return len(self.batch.lengths)

    @property
    def steps(self) -> int:
        return len(self.batch.active)

    @property
    def first(self) -> int:
        """The first row after the washout."""
        return self.washout * self.blocks

    @property
    def ring(self) -> Ring:
        size = self.T.shape[1]
        return Ring.of(self.blocks * size, size, self.X.shape[1] if self.blocks > 1 else size)

    @property
    def values(self) -> Array:
        """T as (K, dims)."""
        return self.T.reshape(self.steps, -1)

    def rows(self, M: Array, at: Array) -> Array:
        """Return the rows of M, of all blocks, at some steps."""
        return M.reshape(self.steps, self.blocks, -1)[at].reshape(len(at) * self.blocks, -1)

    def until(self, step: int) -> Series:
        """Return the series before a step."""
        return replace(self, batch=self.batch.steps(0, step), T=self.T[: step * self.blocks])


@dataclass(frozen=True, eq=False)
class LoopGradient:
    """The result of the unrolled loops: L, dL/dU (M, n_out), dL/dh (B, N) at their starts, and dL by each weight."""

    loss: float
    U: Array
    start: Array
    weights: Gradients


def one_step(reservoir: Reservoir, series: list[Series], mu: float) -> tuple[float, Gradients]:
    """Return E = min_U ||H_c U - T||² + mu ||U||² of driven series, and its gradient by the envelope theorem."""
    runs = [run(reservoir, s.batch) for s in series]
    factors = factored(series, [states.H for states in runs])
    U_h, R = factors.readout(mu)[: reservoir.N], factors.residual(mu)
    total: Gradients | None = None
    for s, states, part in zip(series, runs, _parts(series, R), strict=True):
        dE_dH = np.zeros_like(states.H)
        dE_dH[s.first :] = 2 * part @ U_h.T
        total = _sum(total, through_time(reservoir, s.batch, states, dE_dH, lookback=None, washout=0))
    assert total is not None
    return factors.loss(mu), total


def several_steps(reservoir: Reservoir, series: list[Series], mu: float, k: int) -> tuple[float, Gradients]:
    """Return L of loops of k steps, started every k steps after the washout of driven series, and its gradient."""
    runs = [run(reservoir, s.batch) for s in series]
    factors = factored(series, [states.H for states in runs])
    U, R = factors.readout(mu), factors.residual(mu)
    starts = [np.arange(max(s.washout, 1), s.steps - k + 1, k) for s in series]
    loops = [
        through_loop(reservoir, U, s, s.rows(states.H, at - 1), at=at, k=k)
        for s, states, at in zip(series, runs, starts, strict=True)
    ]
    adjoint, of_H = factors.adjoint(mu, np.sum([loop.U for loop in loops], axis=0))
    dL_dH = -of_H @ U[: reservoir.N].T - R @ adjoint[: reservoir.N].T
    total: Gradients | None = None
    for s, states, at, loop, part in zip(series, runs, starts, loops, _parts(series, dL_dH), strict=True):
        D = np.zeros_like(states.H)
        D[s.first :] = part
        np.add.at(D.reshape(s.steps, -1), at - 1, loop.start.reshape(len(at), -1))
        total = _sum(total, loop.weights)
        total = _sum(total, through_time(reservoir, s.batch, states, D, lookback=None, washout=0))
    assert total is not None
    return sum(loop.loss for loop in loops), total


def factored(series: list[Series], H: list[Array]) -> OrthogonalFactors:
    """Return the factors of the states and inputs of all series after their washouts."""
    rows = [
        stack(h[s.first :], s.X[s.first :], direct=s.direct, intercept=True) for s, h in zip(series, H, strict=True)
    ]
    return OrthogonalFactors.of(np.vstack(rows), np.vstack([s.T[s.first :] for s in series]))


def through_loop(reservoir: Reservoir, U: Array, s: Series, h: Array, *, at: Array, k: int) -> LoopGradient:
    """Return L and its derivatives for loops of k steps, started at steps `at` of a series in the states h (B, N)."""
    N, a, ring, size = reservoir.N, reservoir.leak, s.ring, s.T.shape[1]
    width = ring.columns.shape[1]
    W_rec = reservoir.W_rec.toarray()
    bias = 0.0 if reservoir.bias is None else reservoir.bias
    U_h, U_x = U[:N], U[N:-1] if s.direct else np.zeros((s.X.shape[1], size))
    before, V, F, kept, R = [h], [], [], [], []
    x = ring.own(s.rows(s.X, at)[:, :width])
    for j in range(k):
        v = np.hstack([ring.seen(x), s.rows(s.X, at + j)[:, width:]])
        z = v @ reservoir.W + before[-1] @ W_rec.T + bias
        f = activate(reservoir.activation, z)
        before.append((1 - a) * before[-1] + a * f)
        y = before[-1] @ U_h + v @ U_x + U[-1]
        x = y.reshape(len(at), -1)
        V.append(v)
        F.append(f)
        kept.append(z if is_registered(reservoir.activation) else f)  # what the slope is computed from
        R.append(y - s.rows(s.T, at + j))
    dU, dW, dW_rec = np.zeros_like(U), np.zeros_like(reservoir.W), np.zeros_like(W_rec)
    db, da, delta_h, delta_x = np.zeros(N), np.zeros(N), np.zeros_like(h), np.zeros((len(h), size))
    for j in range(k - 1, -1, -1):
        delta_x = delta_x + 2 * R[j] / k
        dU[:N] += before[j + 1].T @ delta_x
        dU[-1] += delta_x.sum(axis=0)
        if s.direct:
            dU[N:-1] += V[j].T @ delta_x
        delta = delta_h + delta_x @ U_h.T
        Z = a * slope(reservoir.activation, kept[j]) * delta
        dW += V[j].T @ Z
        dW_rec += Z.T @ before[j]
        db += Z.sum(axis=0)
        da += (delta * (F[j] - before[j])).sum(axis=0)
        delta_h = (1 - a) * delta + Z @ W_rec
        delta_x = ring.back((Z @ reservoir.W.T + delta_x @ U_x.T)[:, :width]).reshape(-1, size)
    pattern = reservoir.W_rec.tocoo()
    weights = Gradients(
        W=dW, W_rec=dW_rec[pattern.row, pattern.col], W_fb=None, bias=None if reservoir.bias is None else db, leak=da
    )
    return LoopGradient(float((np.array(R) ** 2).sum()) / k, dU, delta_h, weights)


def _parts(series: list[Series], rows: Array) -> list[Array]:
    """Return rows of all series, after their washouts, one array per series."""
    return np.split(rows, np.cumsum([len(s.T) - s.first for s in series])[:-1])


def _sum(total: Gradients | None, more: Gradients) -> Gradients:
    if total is None:
        return more
    total += more
    return total
