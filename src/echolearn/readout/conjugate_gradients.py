"""The readout of large networks, without their Gram matrix: conjugate gradients over streamed states.

G = H_c'H_c costs K M² operations and M² numbers (M = N + n_in + 1): hours at N = 30,000. A product H_c'(H_c D) costs
K M n_out, so a few conjugate gradients on

    (H_c'H_c + mu I) U = H_c'T,        the intercept (last row of U) not penalised,

are far cheaper. What keeps them few is a sketch of G from a sample of frames (Nyström's method): the states' variance
falls off steeply, and the leading directions of some thousand frames are those of a million.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from echolearn.modelfile.checkpoint import Checkpoint, weights_fingerprint
from echolearn.readout import collect as passes
from echolearn.readout import statistics as readout
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import Data, ends, groups

Array = NDArray[Any]
Operator = Callable[[Array], Array]

FROM = 8000  # hidden units from which the readout is found this way
SAMPLE = 3000  # frames that a sketch is made of
RANK = 750  # of its directions that are kept
TAIL = 0.6  # what lies beyond them, in units of the weakest one kept
ITERATIONS = 8  # of conjugate gradients at most, and
TOLERANCE = 3e-3  # none after one that has lowered E by less than this share
SPANNED = 1e-5  # of their strongest direction: what directions of descent span beyond float32's rounding


@dataclass(frozen=True, eq=False)
class Sketch:
    """G of n frames, roughly: [H X] has the mean `mean` (M - 1,) and about it the Gram matrix
    V diag(values) V' + tail (I - VV'),  V (M - 1, r) orthonormal, values (r,) falling. square: the mean of
    its diagonal, as far as the rows tell."""

    V: Array
    values: Array
    tail: float
    mean: Array
    n: float
    square: float

    def inverse(self, mu: float) -> Operator:
        """R (M, n_out) -> (G + mu I)^-1 R, the intercept not penalised.

        About their mean, states and intercept do not meet: with S = [[I, 0], [-mean', 1]] the inverse is
        S diag((V diag(values) V' + tail (I - VV') + mu I)^-1, 1/n) S'.
        """
        V = self.V
        rest = 1 / (self.tail + mu)
        gain = (1 / (self.values + mu) - rest)[:, None].astype(V.dtype)

        def apply(R: Array) -> Array:
            mean = self.mean.astype(R.dtype)
            D = R[:-1] - mean[:, None] * R[-1]
            leading = V @ (gain * (V.T @ D.astype(V.dtype, copy=False)))
            D *= rest
            D += leading
            return np.vstack([D, R[-1] / self.n - mean @ D])

        return apply


def sketch(H_c: Array, n: float, rank: int = RANK) -> Sketch:
    """From rows of H_c (k, M), its last column ones, that stand for n frames."""
    mean = H_c[:, :-1].mean(axis=0, dtype=np.float64)
    readout.refuse_infinite(mean)
    H = H_c[:, :-1] - mean.astype(H_c.dtype)
    k, M = H.shape
    # HH' and H'H have the same eigenvalues, and one's eigenvectors give the other's: the smaller is taken.
    small = (H @ H.T if k < M else H.T @ H).astype(np.float64)
    values, E = linalg.eigh(small, subset_by_index=[max(0, len(small) - rank), len(small) - 1])
    # what is weaker was lost to rounding in the product; a constant H leaves nothing
    keep = values > 10 * np.finfo(H.dtype).eps * max(values[-1], np.finfo(float).tiny)
    values, E = values[keep][::-1], E[:, keep][:, ::-1]
    V = H.T @ (E / np.sqrt(values)).astype(H.dtype) if k < M else np.ascontiguousarray(E, H.dtype)
    scale = n / k
    square = scale * float(np.trace(small)) / M
    tail = TAIL * scale * float(values[-1]) if len(values) else 0.0
    return Sketch(V, scale * values, tail, mean, n, square)


def choose_ridge(
    seen: tuple[Array, Array], path: Sequence[float], n_out: int, held_out: tuple[Array, Array] | None
) -> float:
    """The mu of `path` that serves a sample of rows (H_c, T) best, on held-out ones or by cross-validation.

    Seen as a prior, mu is the noise's variance over that of the weights and does not depend on the number of frames:
    the sample's own sums, not scaled up, are asked, in the basis of their leading directions.
    """
    base = sketch(seen[0], len(seen[0]))

    def turned(rows: tuple[Array, Array]) -> readout.Sums:
        H_c, T = rows
        centred = H_c[:, :-1] - base.mean.astype(H_c.dtype)
        return readout.sums(np.hstack([centred @ base.V, H_c[:, -1:]]), T, n_out)

    held = None if held_out is None else turned(held_out)
    return readout.choose_ridge(turned(seen), path, intercept=True, held_out=held)[0]


@dataclass(frozen=True, eq=False)
class Way:
    """How far conjugate gradients have come, in `count` iterations: U (M, n_out), R = -1/2 dE/dU, the directions D to
    go on in, and E = ||H_c U - T||² + mu ||U||²."""

    U: Array
    R: Array
    D: Array
    E: float
    count: int = 0


def conjugate_gradients(
    product: Operator,
    at: Way,
    inverse: Operator,
    mu: float,
    *,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
    pause: Callable[[Way], object] = lambda at: None,
) -> Way:
    """On to a better U. product: D -> H_c'(H_c D).

    The columns share their directions (O'Leary's block conjugate gradients, 1980): the step is the best there is among
    D's columns, D S^-1 D'R with S = D'(G + mu I)D, and lowers E by tr(R'D S^-1 D'R), so E is known on the way.
    """
    while at.count < iterations:
        D = _orthonormal(at.D)
        A = product(D) + penalised(D, mu)
        S = _inverse_of(D.T @ A)
        slope = D.T @ at.R
        step = S @ slope
        gain = float(np.vdot(step, slope))
        U, R, E = at.U + D @ step, at.R - A @ step, at.E - gain
        Z = inverse(R)
        at = Way(U, R, Z - D @ (S @ (A.T @ Z)), E, at.count + 1)
        if not gain > tolerance * E:
            break
        pause(at)
    return at


def _orthonormal(D: Array) -> Array:
    """A basis of what D spans (Dubrulle, Retooling the method of block conjugate gradients, 2001): columns that lean
    on each other would be lost to rounding in D'(G + mu I)D, and without them all that follows is slow."""
    return np.linalg.qr(D * ratio(np.ones(D.shape[1]), np.sqrt(dots(D, D))))[0]


def _inverse_of(S: Array) -> Array:
    """S^-1 (n_out, n_out), without the directions that its columns hardly span: they are rounding errors."""
    scale = np.sqrt(np.diag(S).clip(0))
    scale = ratio(np.ones_like(scale), scale)
    return np.asarray(scale[:, None] * linalg.pinvh((S + S.T) / 2 * scale[:, None] * scale, rtol=SPANNED) * scale)


def penalised(U: Array, mu: float) -> Array:
    """mu U, the intercept free."""
    out = mu * U
    out[-1] = 0
    return out


def dots(A: Array, B: Array) -> Array:
    """a'b for each pair of columns."""
    return np.asarray(np.einsum("ij,ij->j", A, B))


def ratio(a: Array, b: Array) -> Array:
    """a / b; 0 for a column that has come to its end."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


# Over the data


def solve(
    reservoir: Reservoir, data: Data, task: passes.Task, mu: float, rng: np.random.Generator, U: Array | None = None
) -> Array:
    """U of all the data, from the given one or from 0."""
    H_c, _ = sample(reservoir, data, task, rng)
    return fit(reservoir, data, task, mu, sketch(H_c, float(rows(data, task).sum())), U)


def fit(
    reservoir: Reservoir,
    data: Data,
    task: passes.Task,
    mu: float,
    about: Sketch,
    U: Array | None = None,
    say: Callable[[str], object] = lambda text: None,
    checkpoint: Checkpoint | None = None,
) -> Array:
    """As `solve`, with a sketch at hand: a pass over the data for R, and one for every iteration. With a checkpoint the
    way so far is kept between passes, and gone on from."""

    def pull(data: Data, which: Array) -> Pull:
        result = Pull(np.zeros((M, data.n_out)), 0.0)
        for H, X, T in passes.streamed(reservoir, task, data.batch(which)):
            X = X[:, : X.shape[1] * task.direct]
            Y = np.zeros((len(T), data.n_out), H.dtype) if U is None else readout.outputs(H, X, U.astype(H.dtype))
            R = readout.residual(Y, T)
            result += Pull(-pulled(H, X, R), float(np.vdot(R, R)))
        return result

    def product(D: Array) -> Array:
        say("ridge readout: one more pass over the data ...")
        D = D.astype(data.dtype)

        def part(data: Data, which: Array) -> Array:
            result = np.zeros((M, data.n_out))
            for H, X, _ in passes.streamed(reservoir, task, data.batch(which)):
                X = X[:, : X.shape[1] * task.direct]
                result += pulled(H, X, readout.outputs(H, X, D))
            return result

        return np.asarray(data.total(part, groups(data.lengths, passes.FRAMES)))

    def begun() -> Way:
        start: Pull = data.total(pull, groups(data.lengths, passes.FRAMES))
        readout.refuse_infinite(start.R)
        U_0 = np.zeros_like(start.R) if U is None else U.astype(np.float64)
        R = start.R - penalised(U_0, mu)
        return Way(U_0, R, inverse(R), start.squared + float(np.vdot(U_0, penalised(U_0, mu))))

    M, inverse = len(about.mean) + 1, about.inverse(mu)
    if checkpoint is None:
        at = conjugate_gradients(product, begun(), inverse, mu)
    else:
        whose = weights_fingerprint(reservoir, (task, mu))
        at = _kept(checkpoint, whose, (M, data.n_out)) or begun()
        at = conjugate_gradients(product, at, inverse, mu, pause=lambda at: _keep(checkpoint, whose, at))
    say(f"ridge readout: error {at.E / about.n:.4f} after {at.count} conjugate gradients")
    return at.U


def _keep(checkpoint: Checkpoint, whose: str, at: Way) -> None:
    if checkpoint.due():
        facts = {"whose": whose, "E": at.E, "count": at.count, "history": []}
        checkpoint.save({"U": at.U, "R": at.R, "D": at.D}, facts)


def _kept(checkpoint: Checkpoint, whose: str, shape: tuple[int, int]) -> Way | None:
    """None, too, if it is the way of other weights, as after learning was stopped and went on."""
    state = checkpoint.load(dict.fromkeys("URD", shape))
    if state is None or state[1].get("whose") != whose:
        return None
    with checkpoint.restoring():
        tensors, facts = state
        return Way(tensors["U"], tensors["R"], tensors["D"], float(facts["E"]), int(facts["count"]))


def pulled(H: Array, X: Array, Y: Array) -> Array:
    """H_c'Y = [H X 1]'Y in float64."""
    return np.vstack([H.T @ Y, X.T @ Y, Y.sum(axis=0, dtype=np.float64)])


@dataclass(eq=False)
class Pull:
    """H_c'(T - H_c U) and ||T - H_c U||². Additive."""

    R: Array
    squared: float

    def __iadd__(self, other: Pull) -> Pull:
        self.R += other.R
        self.squared += other.squared
        return self


def rows(data: Data, task: passes.Task) -> Array:
    """How many rows of H_c each sequence gives (see `Selection`)."""
    if task.pooling is not None:
        return np.ones(len(data.X), int)
    if task.targets == "last":
        return np.array([len(ends(n, task.washout, task.lookback)) for n in data.lengths])
    return np.asarray(data.lengths - task.washout)


def sample(
    reservoir: Reservoir, data: Data, task: passes.Task, rng: np.random.Generator, frames: int = SAMPLE
) -> tuple[Array, Array]:
    """About `frames` rows of H_c and their targets: a quarter of the rows of random sequences, or all there are."""
    order, count = rng.permutation(len(data.X)), rows(data, task)
    counts = np.cumsum(count[order])
    chosen = order[: 1 + int(np.searchsorted(counts, 4 * frames))]
    share = min(1.0, frames / counts[len(chosen) - 1])

    def part(data: Data, which: Array, pick: Array) -> tuple[Array, Array]:
        H_c, T, _, _ = passes.observed(reservoir, task, data.batch(which))
        return H_c[pick], T[pick]

    items = []
    for which in groups(data.lengths[chosen], passes.FRAMES):
        k = int(count[chosen[which]].sum())
        items.append((chosen[which], rng.permutation(k)[: int(np.ceil(share * k))]))
    H_c, T = zip(*data.each(part, items), strict=True)
    return np.vstack(H_c), np.concatenate(T)


def some(data: Data, task: passes.Task, frames: int, rng: np.random.Generator) -> Data:
    """Random sequences with about so many rows, or all of them."""
    order = rng.permutation(len(data.X))
    return data.subset(np.sort(order[: 1 + int(np.searchsorted(np.cumsum(rows(data, task)[order]), frames))]))
