"""The recurrence (eq. 1) over a batch, and its transpose: what NumPy prepares for the compiled loops.

Frames are rows. A batch is packed step by step, longest sequence first: step t has the rows
``offsets[t] : offsets[t] + active[t]``, one for each sequence that is still running.

There are two versions of each loop. `few` runs one sequence after another, and each unit gathers its inputs; a sparse
matrix is given as two (k, N) arrays, whose column i has the indices and values of its row i, padded with zeros. `many`
runs 4, 8 or 16 sequences in parallel, so that one vector instruction serves all; a sparse matrix is given as CSR.
Sequence b of step t is row offsets[t] + b stride: with stride 1 the packed batch, with stride L one sequence cut into
chunks of L steps (see `chunks.py`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.core import event
from numpy.typing import DTypeLike
from scipy import sparse

from echolearn.display.progress import show_line
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import LANES
from echolearn.states import _loops as loops
from echolearn.states._simd import STEPS_PER_SUM, steps_at_once
from echolearn.validation import Array

# The number of sequences from which on `many` is faster, by bytes per number. Measured on a busy machine with 100 and
# 1000 units: three float32 sequences are 1.3 to 1.5 times faster forward and 0.9 to 2.1 times backward; six float64
# sequences (10 connections) 0.8 to 1.0 times, eight 1.0 to 1.3 times.
MIN_PARALLEL_SEQUENCES = {4: 3, 8: 7}

Matrix = tuple[Array, Array, Array]  # indptr, indices and data of compressed rows
Units = tuple[Matrix, Array, Matrix, Array]  # W', bias (N,), W_rec, leaks (N,)

TILE_LANES = (4, 8, LANES)  # lanes of a tile
CACHE_LINE_BYTES = 64

COMPILING_TEXT = "echolearn: compiling its loops for this machine (once; a few seconds) ..."


def drive(reservoir: Reservoir, X: Array, X_fb: Array | None, out: Array | None = None) -> Array:
    """Return W'x + W_fb y + bias of every frame (K, N): the argument of the activation in eq. 1 without W_rec h."""
    F = np.matmul(X, reservoir.W.astype(X.dtype), out)
    if X_fb is not None:
        assert reservoir.W_fb is not None
        F += X_fb @ reservoir.W_fb.T.astype(X.dtype)
    if reservoir.bias is not None:
        F += reservoir.bias.astype(X.dtype)
    return np.asarray(F)


def compressed(W_rec: sparse.csr_array, dtype: DTypeLike) -> tuple[Array, Array, Array]:
    """Return indptr, indices and data for the kernels; unsigned indices need no check for negative ones."""
    return W_rec.indptr.astype(np.uint32), W_rec.indices.astype(np.uint32), W_rec.data.astype(dtype)


def padded(W_rec: sparse.csr_array, dtype: DTypeLike) -> tuple[Array, Array]:
    """Return a CSR matrix as indices and values (k, N), whose column i has its row i, padded with zeros."""
    N = W_rec.shape[0]
    position, row = padded_positions(W_rec)
    k = int(np.diff(W_rec.indptr).max(initial=0))
    place = np.zeros((k, N), np.uint32)
    value = np.zeros((k, N), dtype)
    place[position, row] = W_rec.indices
    value[position, row] = W_rec.data
    return place, value


def padded_positions(W_rec: sparse.csr_array) -> tuple[Array, Array]:
    """Return the position in the padded (k, N) layout of each non-zero of a CSR matrix."""
    counts = np.diff(W_rec.indptr)
    row = np.repeat(np.arange(W_rec.shape[0]), counts)
    position = np.arange(len(W_rec.data)) - np.repeat(W_rec.indptr[:-1], counts)
    return position, row


def forward_few(
    matrix: tuple[Array, Array], a: Array, code: int, *, active: Array, offsets: Array, h0: Array, F: Array, H: Array
) -> None:
    """Compute eq. 1 with leak: h_t = (1 - a) h_{t-1} + a f(z_t), z_t = drive_t + W_rec h_{t-1}.

    matrix: W_rec as two (k, N) arrays; a (N,); h0 (B, N). F (K, N) has the drive W'x + W_fb y + bias on entry and f(z)
    on return; H (K, N) is filled. F and H may be the same array, which then ends as H.
    """
    loops.forward_few(*matrix, a, code, active, offsets, np.array(h0, order="C"), F, H, np.empty_like(a))


def forward_many(
    matrix: tuple[Array, Array, Array],
    a: Array,
    code: int,
    *,
    active: Array,
    offsets: Array,
    stride: int,
    h0: Array,
    F: Array,
    H: Array,
    keep_F: bool,
) -> None:
    """Compute what `forward_few` does; matrix: W_rec as CSR. Without `keep_F`, F is not kept and may be H."""
    L = lanes_for(len(h0))
    leaks, starts, z = np.repeat(a, L), _tiles(h0, L), np.empty(len(a) * L, a.dtype)
    loops.forward_many((0,) * L, *matrix, leaks, code, active, offsets, stride, starts, F, H, keep_F, z)


def backward_few(
    matrices: tuple[Array, Array, Array],
    a: Array,
    code: int,
    *,
    active: Array,
    offsets: Array,
    cut: Array,
    h0: Array,
    F: Array,
    H: Array,
    D: Array,
) -> tuple[Array, Array]:
    """Carry the error at each state back through time: the transpose of `forward_few`.

    delta_t = dE/dh_t + (1 - a) delta_{t+1} + W_rec' Z_{t+1},   Z_t = a f'(z_t) delta_t,
    where the terms of t+1 are dropped if ``cut[t + 1]`` says that a block starts there.

    matrices: the places of W_rec (k, N), and places and values of its transpose. D (K, N) has dE/dH on entry and Z on
    return. Returns, in float64, dE/dW_rec = Σ Z_t h_{t-1}' on the pattern (k, N), and
    dE/da = Σ delta_t (f(z_t) - h_{t-1}) (N,).
    """
    pattern = matrices[0].shape
    work = (np.empty_like(a), np.empty_like(a), np.zeros(pattern, a.dtype), np.zeros_like(a))
    sums = np.zeros(pattern), np.zeros(len(a))
    h0 = np.ascontiguousarray(h0)
    loops.backward_few(*matrices, a, code, active, offsets, cut, h0, F, H, D, *work, *sums)
    return sums


def backward_many(
    matrices: tuple[Array, Array, Array, Array, Array],
    a: Array,
    code: int,
    *,
    active: Array,
    offsets: Array,
    stride: int,
    cut: Array,
    h0: Array,
    F: Array,
    H: Array,
    D: Array,
    ahead: Array,
) -> tuple[Array, Array]:
    """Compute what `backward_few` does; matrices: indptr and indices of W_rec, and its transpose, as CSR.

    ahead (2, B, N): (1 - a) delta and Z, on entry of the step after the last one, on return of the first step. Returns
    dE/dW_rec in CSR order, and dE/da.
    """
    N, L = len(a), lanes_for(len(h0))
    leaks, starts, deltas, Zs = np.repeat(a, L), _tiles(h0, L), _tiles(ahead[0], L), _tiles(ahead[1], L)
    tiles = np.empty((2 * steps_at_once(L) + 2, N * L), a.dtype)
    sums = np.zeros(len(matrices[1])), np.zeros(N * L)
    order = (active, offsets, stride, cut)
    loops.backward_many((0,) * L, *matrices, leaks, code, *order, starts, F, H, D, deltas, Zs, tiles, *sums)
    ahead[0], ahead[1] = _from_tiles(deltas, L, len(h0)), _from_tiles(Zs, L, len(h0))
    return sums[0], sums[1].reshape(N, L).sum(axis=1)


def summarize(units: Units, X: Array, *, lengths: Array, washout: int, slope: float, offsets: Array) -> list[Array]:
    """Run up to L sequences from states of 0, in descending order of their lengths, and return their statistics.

    units: of tanh. X (rows, n, L): what the units see; step t
    begins at row t, and W says how much further each input is. offsets (Q, N): of h slope + offset, which is cut off at
    0 and 1. Returns the sums of states and of their squares (2, B, N), extremes (2, B, N), the sums above (Q, B, N),
    and the last states (B, N).
    """
    W, bias, W_rec, a = units
    N, L, B = len(a), X.shape[2], len(lengths)
    active = np.searchsorted(-lengths, -np.arange(lengths[0]), side="left")
    rows = aligned_zeros((6 + STEPS_PER_SUM + len(offsets), N * L), a.dtype)
    z, ends, biases, leaks = rows[:4]
    extremes, H, above = np.split(rows[4:], [2, 2 + STEPS_PER_SUM])
    biases[:], leaks[:] = np.repeat([bias, a], L, axis=1)
    extremes[:] = [[-np.inf], [np.inf]]
    sums = aligned_zeros((2, N * L), np.float64)
    how = X.reshape(-1), X.shape[1] * L, active, washout, slope, offsets
    work = np.empty(STEPS_PER_SUM, np.int64), H, z, ends
    loops.summarize((0,) * L, W, biases, W_rec, leaks, *how, *work, sums, extremes, above)
    return [M.reshape(-1, N, L).transpose(0, 2, 1)[:, :B] for M in (sums, extremes, above, ends)]


def aligned_zeros(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Return zeros that begin at a cache line: a vector of 16 numbers that lies in two is read half as fast."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.zeros(size + CACHE_LINE_BYTES, np.uint8)
    first = -memory.ctypes.data % CACHE_LINE_BYTES
    return memory[first : first + size].view(dtype).reshape(shape)


def lanes_for(sequences: int) -> int:
    """Return how many of so many sequences run in parallel; lanes without one take as long as others, so few."""
    return next((lanes for lanes in TILE_LANES if sequences <= lanes), TILE_LANES[-1])


def _tiles(M: Array, L: int) -> Array:
    """Return one row per sequence (B, N) as tiles (groups, N L): L sequences each, zero where there is none."""
    B, N = M.shape
    groups = -(-B // L)
    rows = np.zeros((groups * L, N), M.dtype)
    rows[:B] = M
    return np.ascontiguousarray(rows.reshape(groups, L, N).transpose(0, 2, 1)).reshape(groups, N * L)


def _from_tiles(tiles: Array, L: int, B: int) -> Array:
    """Return tiles as one row per sequence (B, N)."""
    return np.asarray(tiles.reshape(len(tiles), -1, L).transpose(0, 2, 1).reshape(len(tiles) * L, -1)[:B])


class Announcement(event.Listener):
    """A listener to numba that prints `COMPILING_TEXT` when a function of echolearn is first not in its cache."""

    def __init__(self) -> None:
        self.made = False

    def on_start(self, compilation: Any) -> None:
        """Print the line, unless it was printed before or the function is someone else's."""
        if not self.made and compilation.data["dispatcher"].py_func.__module__.startswith("echolearn."):
            self.made = True
            show_line(COMPILING_TEXT)

    def on_end(self, compilation: object) -> None:
        """Do nothing: the end of a compilation shows itself."""


event.register("numba:compile", Announcement())
