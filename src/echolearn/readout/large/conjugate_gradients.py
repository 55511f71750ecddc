"""The readout of large networks without their Gram matrix: conjugate gradients over streamed states.

G = H_c'H_c costs K M² operations and M² numbers (M = N + n_in + 1): hours at N = 30,000. A product H_c'(H_c D) costs
K M n_out, so a few conjugate gradients on

    (H_c'H_c + mu I) U = H_c'T,        the intercept (last row of U) not penalised,

are far cheaper. A sketch of G (`sketch.py`) as preconditioner keeps their number small. Where targets have weights
w, diag(w) stands between the two factors of every product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from echolearn.modelfile.checkpoint import Checkpoint, weights_fingerprint
from echolearn.readout.large.sketch import Operator, Sketch
from echolearn.readout.network import apply_readout
from echolearn.readout.ridge import refuse_infinite
from echolearn.readout.statistics import residual, weighted
from echolearn.readout.view import MAX_FRAMES_PER_PASS, ReadoutView, stream_states
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import group_sequences
from echolearn.sequences.dataset import Dataset
from echolearn.validation import Array

MAX_SOLVER_ITERATIONS = 8  # at most
SOLVER_TOLERANCE = 3e-3  # an iteration that lowers E by a smaller share is the last one
MIN_RELATIVE_DIRECTION = 1e-5  # weaker directions, relative to the strongest one, are rounding errors of float32


@dataclass(frozen=True, eq=False)
class Progress:
    """The state of conjugate gradients after `count` iterations.

    U (M, n_out): the solution so far; R (M, n_out): -1/2 dE/dU; D (M, n_out): the directions of the next iteration;
    E: ||H_c U - T||² + mu ||U||².
    """

    U: Array
    R: Array
    D: Array
    E: float
    count: int = 0


def conjugate_gradients(
    product: Operator,
    at: Progress,
    inverse: Operator,
    mu: float,
    *,
    iterations: int | None = None,
    tolerance: float = SOLVER_TOLERANCE,
    pause: Callable[[Progress], object] = lambda at: None,
) -> Progress:
    """Return the progress after further iterations.

    product: the function D -> H_c'(H_c D); inverse: the preconditioner; pause: called after every iteration but the
    last, with the progress so far.

    All columns of U share their directions (O'Leary's block conjugate gradients, 1980): the step D S^-1 D'R, with
    S = D'(G + mu I)D, is the best one in the span of D, and lowers E by tr(R'D S^-1 D'R), so that E is always known.
    """
    iterations = MAX_SOLVER_ITERATIONS if iterations is None else iterations
    while at.count < iterations:
        # An orthonormal basis (Dubrulle, Retooling the method of block conjugate gradients, 2001): nearly dependent
        # columns would be lost to rounding in D'(G + mu I)D, and convergence would be slow without them.
        D = np.linalg.qr(at.D * ratio(np.ones(at.D.shape[1]), np.sqrt(column_dots(at.D, at.D))))[0]
        A = product(D) + penalised(D, mu)
        S = _inverse_of(D.T @ A)
        slope = D.T @ at.R
        step = S @ slope
        gain = float(np.vdot(step, slope))
        U, R, E = at.U + D @ step, at.R - A @ step, at.E - gain
        Z = inverse(R)
        at = Progress(U, R, Z - D @ (S @ (A.T @ Z)), E, at.count + 1)
        if not gain > tolerance * E:
            break
        pause(at)
    return at


def _inverse_of(S: Array) -> Array:
    """Return S^-1 (n_out, n_out), without the directions that are nothing but rounding errors."""
    scale = np.sqrt(np.diag(S).clip(0))
    scale = ratio(np.ones_like(scale), scale)
    return np.asarray(
        scale[:, None] * linalg.pinvh((S + S.T) / 2 * scale[:, None] * scale, rtol=MIN_RELATIVE_DIRECTION) * scale
    )


def penalised(U: Array, mu: float) -> Array:
    """Return mu U, with the intercept not penalised."""
    out = mu * U
    out[-1] = 0
    return out


def column_dots(A: Array, B: Array) -> Array:
    """Return the dot products (n_out,) of the columns of A with those of B."""
    return np.asarray(np.einsum("ij,ij->j", A, B))


def ratio(a: Array, b: Array) -> Array:
    """Return a / b, and 0 where b is 0, as for a column that has converged."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


@dataclass(eq=False)
class _Pull:
    """R = H_c'(T - H_c U) and ||T - H_c U||². Additive over batches."""

    R: Array
    squared: float

    def __iadd__(self, other: _Pull) -> _Pull:
        self.R += other.R
        self.squared += other.squared
        return self


def solve_iteratively(
    reservoir: Reservoir,
    data: Dataset,
    view: ReadoutView,
    mu: float,
    sketch: Sketch,
    *,
    U: Array | None = None,
    say: Callable[[str], object] = lambda text: None,
    checkpoint: Checkpoint | None = None,
) -> Array:
    """Return U of all the data, started from the given U or from 0, in one pass for R and one for every iteration.

    say: called with a line of text about every pass. With a checkpoint, the progress is kept between passes, and a
    solution that was interrupted resumes from it.
    """
    inverse = sketch.inverse(mu)

    def product(D: Array) -> Array:
        say("ridge readout: one more pass over the data ...")
        return _gram_product(reservoir, data, view, D.astype(data.dtype))

    def start() -> Progress:
        first = _first_pull(reservoir, data, view, U)
        refuse_infinite(first.R)
        U_0 = np.zeros_like(first.R) if U is None else U.astype(np.float64)
        R = first.R - penalised(U_0, mu)
        return Progress(U_0, R, inverse(R), first.squared + float(np.vdot(U_0, penalised(U_0, mu))))

    if checkpoint is None:
        at = conjugate_gradients(product, start(), inverse, mu)
    else:
        owner = weights_fingerprint(reservoir.weights(), (view, mu))
        at = _resume(checkpoint, owner, (view.rows(reservoir), data.n_out)) or start()
        at = conjugate_gradients(product, at, inverse, mu, pause=lambda at: _keep(checkpoint, owner, at))
    say(f"ridge readout: error {at.E / sketch.n:.4f} after {at.count} conjugate gradients")
    return at.U


def _first_pull(reservoir: Reservoir, data: Dataset, view: ReadoutView, U: Array | None) -> _Pull:
    """Return H_c'(T - H_c U) and ||T - H_c U||² over all the data."""
    M = view.rows(reservoir)

    def pull(data: Dataset, which: Array) -> _Pull:
        result = _Pull(np.zeros((M, data.n_out)), 0.0)
        for H, X, T, w in stream_states(reservoir, view, data.batch(which)):
            Y = np.zeros((len(T), data.n_out), H.dtype) if U is None else apply_readout(H, X, U.astype(H.dtype))
            R = residual(Y, T)
            weighted_R = weighted(R, w)
            result += _Pull(-_times_rows(H, X, weighted_R, intercept=view.intercept), float(np.vdot(R, weighted_R)))
        return result

    return data.sum(pull, group_sequences(data.lengths, MAX_FRAMES_PER_PASS))


def _gram_product(reservoir: Reservoir, data: Dataset, view: ReadoutView, D: Array) -> Array:
    """Return H_c'(H_c D) over all the data."""
    M = view.rows(reservoir)

    def product_of_group(data: Dataset, which: Array) -> Array:
        result = np.zeros((M, data.n_out))
        for H, X, _, w in stream_states(reservoir, view, data.batch(which)):
            result += _times_rows(H, X, weighted(apply_readout(H, X, D), w), intercept=view.intercept)
        return result

    return np.asarray(data.sum(product_of_group, group_sequences(data.lengths, MAX_FRAMES_PER_PASS)))


def _times_rows(H: Array, X: Array, Y: Array, *, intercept: bool) -> Array:
    """Return H_c'Y = [H X 1]'Y, or [H X 0]'Y without an intercept (M, n_out), as float64."""
    return np.vstack([H.T @ Y, X.T @ Y, intercept * Y.sum(axis=0, dtype=np.float64)])


def _keep(checkpoint: Checkpoint, owner: str, at: Progress) -> None:
    """Save the progress, if the last one was saved some time ago; owner: a fingerprint of the weights."""
    if checkpoint.due():
        facts = {"whose": owner, "E": at.E, "count": at.count, "history": []}
        checkpoint.save({"U": at.U, "R": at.R, "D": at.D}, facts)


def _resume(checkpoint: Checkpoint, owner: str, shape: tuple[int, int]) -> Progress | None:
    """Return the progress kept, or None if there is none, or if it belongs to the weights of an earlier solution."""
    state = checkpoint.load(dict.fromkeys("URD", shape))
    if state is None or state[1].get("whose") != owner:
        return None
    with checkpoint.restoring():
        tensors, facts = state
        return Progress(tensors["U"], tensors["R"], tensors["D"], float(facts["E"]), int(facts["count"]))
