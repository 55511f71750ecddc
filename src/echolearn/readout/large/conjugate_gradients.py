"""The readout of large networks without their Gram matrix: conjugate gradients over streamed states.

G = H_c'H_c costs K M² operations and M² numbers (M = N + n_in + 1): hours at N = 30,000. A product H_c'(H_c D) costs
K M n_out, so a few conjugate gradients on

    (H_c'H_c + mu I) U = H_c'T,        the intercept (last row of U) not penalised,

are far cheaper. A sketch of G (`sketch.py`) as preconditioner keeps their number small. Where targets have weights
w, diag(w) stands between the two factors of every product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import linalg

from echolearn.execution.executor import LOCAL
from echolearn.execution.memory import available_memory
from echolearn.execution.threads import on_worker_thread, tree_sum
from echolearn.modelfile.checkpoint import Checkpoint, weights_fingerprint
from echolearn.readout.large.sketch import Operator, Sketch
from echolearn.readout.ridge import refuse_infinite
from echolearn.readout.statistics import residual, weighted
from echolearn.readout.view import MAX_FRAMES_PER_PASS, ReadoutView, stream_observations
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import Batch, group_sequences
from echolearn.sequences.dataset import Dataset
from echolearn.validation import Array

MAX_SOLVER_ITERATIONS = 20  # at most
SOLVER_TOLERANCE = 1e-3  # an iteration that lowers E by a smaller share is the last one
MAX_WHOLE_NUMBER = 32767  # float32 states are rounded to so many steps from 0 to the largest of a chunk
MAX_KEPT_MEMORY_SHARE = 0.75  # of the free memory, up to which the states are kept from one pass to the next
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


class _Chunk(NamedTuple):
    """The rows H_c = [scale H, X, 1] of some frames, their targets T and their weights (None: 1)."""

    H: Array
    scale: float
    X: Array
    T: Array
    w: Array | None

    def times(self, D: Array) -> Array:
        """Return H_c D."""
        N = self.H.shape[1]
        Y = self.H @ D[:N]
        Y *= self.scale
        if self.X.shape[1]:
            Y += self.X @ D[N:-1]
        Y += D[-1]
        return np.asarray(Y)

    def transpose_times(self, Y: Array, *, intercept: bool) -> Array:
        """Return H_c'Y = [scale H, X, 1]'Y, or [scale H, X, 0]'Y without an intercept (M, n_out), as float64."""
        constant = intercept * Y.sum(axis=0, dtype=np.float64)
        return np.vstack([self.H.T @ (self.scale * Y), self.X.T @ Y, constant])


def stream_chunks(reservoir: Reservoir, view: ReadoutView, batch: Batch) -> Iterator[_Chunk]:
    """Yield the chunks of a batch, float32 states as whole numbers of at most 16 bits.

    Rounding to 1/32,767 of the largest state of a chunk acts like a ridge of about 3e-10 of the mean diagonal of G.
    """
    for seen in stream_observations(reservoir, view, batch):
        H, scale = seen.H, 1.0
        if H.dtype == np.float32 and H.size:
            largest = max(H.max(), -H.min())
            refuse_infinite(largest)
            scale = float(largest) / MAX_WHOLE_NUMBER or 1.0
            H *= np.float32(1 / scale)
            np.rint(H, out=H)
        yield _Chunk(H, scale, seen.X, seen.T, seen.w)


def kept_bytes(frames: int, N: int, itemsize: int) -> int:
    """Return the bytes of states that are kept, `itemsize` each before they are rounded; 0 without room for them."""
    free, needed = available_memory(), frames * N * (2 if itemsize == 4 else itemsize)
    return needed if free is not None and needed <= MAX_KEPT_MEMORY_SHARE * free else 0


class _Passes:
    """Passes over the states of all the data. The first one keeps them where there is room; others compute them again.

    The states are the same numbers either way, and so are the bits of a solution.
    """

    def __init__(self, reservoir: Reservoir, data: Dataset, view: ReadoutView):
        self.reservoir, self.data, self.view = reservoir, data, view
        self.groups = list(group_sequences(data.lengths, MAX_FRAMES_PER_PASS))
        alone = data.executor is LOCAL and not on_worker_thread()  # nothing else counts on the same memory
        keeps = alone and kept_bytes(data.frames, reservoir.N, data.dtype.itemsize) > 0
        self.kept = data.executor.keep(data, self._small_chunks, self.groups) if keeps else None

    def _small_chunks(self, data: Dataset, which: Array) -> list[_Chunk]:
        chunks = stream_chunks(self.reservoir, self.view, data.batch(which))
        return [c._replace(H=c.H.astype(np.int16 if c.H.dtype == np.float32 else c.H.dtype)) for c in chunks]

    def sum(self, function: Callable[[_Chunk], Array]) -> Array:
        """Return the sum of function(chunk) over all the data."""
        reservoir, view, dtype = self.reservoir, self.view, self.data.dtype

        def sum_of_group(data: Dataset, which: Array) -> Array:
            return tree_sum(map(function, stream_chunks(reservoir, view, data.batch(which))))

        def sum_of_kept(chunks: list[_Chunk]) -> Array:
            room = np.empty(
                (max(len(c.H) for c in chunks), reservoir.N), dtype
            )  # one for all chunks: new memory takes longer than the copy

            def of_kept(c: _Chunk) -> Array:
                np.copyto(room[: len(c.H)], c.H)
                return function(c._replace(H=room[: len(c.H)]))

            return tree_sum(map(of_kept, chunks))

        if self.kept is not None:
            return np.asarray(self.data.executor.sum_kept(sum_of_kept, self.kept))
        return np.asarray(self.data.sum(sum_of_group, self.groups))


def solve_iteratively(
    reservoir: Reservoir,
    data: Dataset,
    view: ReadoutView,
    mu: float,
    sketch: Sketch,
    *,
    U: Array | None = None,
    iterations: int | None = None,
    say: Callable[[str], object] = lambda text: None,
    checkpoint: Checkpoint | None = None,
) -> Array:
    """Return U of all the data, started from the given U or from 0, in one pass for R and one for every iteration.

    say: called with a line of text about every pass. With a checkpoint, the progress is kept between passes, and a
    solution that was interrupted resumes from it.
    """
    inverse, passes, intercept, n_out = sketch.inverse(mu), _Passes(reservoir, data, view), view.intercept, data.n_out
    U_0 = np.zeros((view.rows(reservoir), n_out)) if U is None else U.astype(np.float64)
    U_start = None if U is None else U.astype(data.dtype)

    def product(D: Array) -> Array:
        say("ridge readout: one more pass over the data ...")
        D = D.astype(data.dtype)
        return passes.sum(lambda c: c.transpose_times(weighted(c.times(D), c.w), intercept=intercept))

    def pull(c: _Chunk) -> Array:
        """Return H_c'(T - H_c U_0), and below it a row with the sums of squares of T - H_c U_0."""
        Y = np.zeros((len(c.T), n_out), c.H.dtype) if U_start is None else c.times(U_start)
        R = -residual(Y, c.T)
        weighted_R = weighted(R, c.w)
        return np.vstack([c.transpose_times(weighted_R, intercept=intercept), column_dots(R, weighted_R)])

    def start() -> Progress:
        first = passes.sum(pull)
        refuse_infinite(first)
        R = first[:-1] - penalised(U_0, mu)
        return Progress(U_0, R, inverse(R), float(first[-1].sum() + np.vdot(U_0, penalised(U_0, mu))))

    if checkpoint is None:
        at = conjugate_gradients(product, start(), inverse, mu, iterations=iterations)
    else:
        owner = weights_fingerprint(reservoir.weights(), (view, mu))
        at = _resume(checkpoint, owner, (view.rows(reservoir), data.n_out)) or start()
        keep = partial(_keep, checkpoint, owner)
        at = conjugate_gradients(product, at, inverse, mu, iterations=iterations, pause=keep)
    say(f"ridge readout: error {at.E / sketch.n:.4f} after {at.count} conjugate gradients")
    return at.U


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
