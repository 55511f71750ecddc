"""One long sequence, run as 16 chunks (float32) or 8 chunks (float64) in parallel.

The first of the chunks, which have L steps each, starts in the initial state. The others start from zero, which is
wrong; but an echo state network forgets where it started. So each chunk is run again from the end of the previous one,
and only until it agrees with its own first run (see `agreement`): from there on the first run was right. A network that
does not forget in time is run step by step.

float64 states take twice as long to agree, in tiles twice as wide: so there are half as many chunks.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import DTypeLike

from echolearn.reservoir import Reservoir
from echolearn.reservoir._activations import ACTIVATIONS
from echolearn.sequences.batch import LANES
from echolearn.states import _kernels as kernels
from echolearn.states._kernels import compressed, drive
from echolearn.validation import Array

MIN_CHUNK_STEPS = 64  # the least steps of a chunk (chosen, not measured)
STEPS_PER_COMPARISON = 64  # steps of the second run between two comparisons with the first


def agreement(dtype: DTypeLike) -> float:
    """Return the difference of two runs, relative to the largest number, at which they agree.

    float32: what rounding alone explains. float64: 1e-12, of which every later step forgets a part.
    """
    return max(32 * float(np.finfo(dtype).eps), 1e-12)


def chunk_count(dtype: DTypeLike) -> int:
    """Return the number of chunks of a sequence."""
    return LANES * 4 // np.dtype(dtype).itemsize


def run_in_chunks(reservoir: Reservoir, X: Array, X_fb: Array | None, h0: Array, *, F: Array, H: Array) -> int:
    """Run one sequence with drive F in chunks, after the steps left over; return their length, or 0 and F unchanged."""
    dtype, (K, N) = X.dtype, F.shape
    chunks = chunk_count(dtype)
    L = K // chunks
    # Without connections, a unit would forget its start by a factor 1 - a per step.
    forgotten = np.log(agreement(dtype)) / np.log1p(-min(0.9, reservoir.leak.min()))
    if max(MIN_CHUNK_STEPS, 2 * forgotten) > L:
        return 0
    units = (reservoir.leak.astype(dtype), ACTIVATIONS[reservoir.activation])
    forward_many = partial(kernels.forward_many, compressed(reservoir.W_rec, dtype), *units, keep_F=F is not H)
    left = K - chunks * L
    start = np.zeros((chunks, N), dtype)
    start[:1] = h0
    if left:
        forward_many(active=np.ones(left, np.int64), offsets=np.arange(left), stride=1, h0=h0, F=F, H=H)
        start[0] = H[left - 1]
    X_cut, F_cut, H_cut = (M[left:].reshape(chunks, L, -1) for M in (X, F, H))

    def forward(begin: int, end: int, start: Array) -> Array:
        active = np.full(end - begin, chunks)
        forward_many(active=active, offsets=np.arange(begin, end), stride=L, h0=start, F=F[left:], H=H[left:])
        return H_cut[:, end - 1].copy()

    start[1:] = forward(0, L, start)[:-1]
    for begin in range(0, L, STEPS_PER_COMPARISON):
        end = min(begin + STEPS_PER_COMPARISON, L)
        before = H_cut[:, end - 1].copy()
        fed = None if X_fb is None else X_fb[left:].reshape(chunks, L, -1)[:, begin:end]
        F_cut[:, begin:end] = drive(reservoir, X_cut[:, begin:end], fed)
        start = forward(begin, end, start)
        with np.errstate(over="ignore", invalid="ignore"):
            apart = np.abs(start - before).max() / np.abs(start).max()
        if apart <= agreement(dtype) or np.array_equal(start, before):
            return int(L)
        if not np.isfinite(apart) or (2 * end > L and apart > agreement(dtype) ** 0.5):
            break  # half of the steps are done, and less than half of the agreement has been reached
    F[:] = drive(reservoir, X, X_fb)
    return 0
