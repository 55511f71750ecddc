"""The compiled loops: the recurrence (eq. 1), and its transpose with the gradient on the pattern of W_rec.

`states._kernels` calls them with the memory that they work in: what NumPy can do outside need not be compiled. Only
plain loops stand here, because every array expression would take the compiler as long as the rest of a loop.
"""

from __future__ import annotations

from numba import njit

from echolearn.execution.compilation import cached_njit
from echolearn.states._activations import COMPILER_OPTIONS, INNER_OPTIONS, activate, precise_tanh, times_slope
from echolearn.states._simd import Lanes, add_outer, add_product, add_statistics, load, store
from echolearn.validation import Array

STEPS_PER_FLUSH = 256  # steps after which float32 partial sums are added to float64 ones


@cached_njit(**COMPILER_OPTIONS)
def forward_few(
    place: Array,
    value: Array,
    a: Array,
    code: int,
    active: Array,
    offsets: Array,
    starts: Array,
    F: Array,
    H: Array,
    z: Array,
) -> None:
    """Run one sequence after another; starts (B, N): the states at the start, overwritten; z (N,): work space."""
    N = H.shape[1]
    for s in range(active[0]):
        h = starts[s]
        for t in range(active.shape[0]):
            if s >= active[t]:
                break
            r = offsets[t] + s
            for i in range(N):
                z[i] = F[r, i]
            for k in range(place.shape[0]):
                for i in range(N):
                    z[i] += value[k, i] * h[place[k, i]]
            activate(code, z)
            for i in range(N):
                h[i] += a[i] * (z[i] - h[i])
            for i in range(N):
                F[r, i] = z[i]
            for i in range(N):
                H[r, i] = h[i]


@cached_njit(**COMPILER_OPTIONS)
def forward_many(
    lanes: Lanes,
    indptr: Array,
    indices: Array,
    data: Array,
    a: Array,
    code: int,
    active: Array,
    offsets: Array,
    stride: int,
    starts: Array,
    F: Array,
    H: Array,
    keep_F: bool,
    z: Array,
) -> None:
    """Run L sequences in parallel; lanes: L zeros (see `states._simd`).

    a (N L,): the leak in every lane; starts: tiles; z: work space, a tile.
    """
    L = len(lanes)
    for g in range(starts.shape[0]):
        h = starts[g]
        for t in range(active.shape[0]):
            live = min(L, active[t] - g * L)
            if live <= 0:
                break
            r = offsets[t] + g * L * stride
            load(lanes, F, r, stride, live, z)
            add_product(lanes, indptr, indices, data, h, z)
            activate(code, z)
            for i in range(z.shape[0]):
                h[i] += a[i] * (z[i] - h[i])
            if keep_F:
                store(lanes, z, F, r, stride, live)
            store(lanes, h, H, r, stride, live)


@cached_njit(**COMPILER_OPTIONS)
def backward_few(
    place: Array,
    place_T: Array,
    value_T: Array,
    a: Array,
    code: int,
    active: Array,
    offsets: Array,
    cut: Array,
    h0: Array,
    F: Array,
    H: Array,
    D: Array,
    delta: Array,
    z: Array,
    part_W: Array,
    part_a: Array,
    sum_W: Array,
    sum_a: Array,
) -> None:
    """Carry errors back; part_W, sum_W (k, N), part_a, sum_a (N,): zeros; the parts precise as H, sums in float64."""
    N = H.shape[1]
    unflushed = 0
    for s in range(active[0]):
        last = active.shape[0] - 1
        while s >= active[last]:
            last -= 1
        for t in range(last, -1, -1):
            r = offsets[t] + s
            if t == last or cut[t + 1]:
                for i in range(N):
                    delta[i] = 0
            else:
                for i in range(N):
                    delta[i] -= a[i] * delta[i]
                for k in range(place_T.shape[0]):
                    for i in range(N):
                        delta[i] += value_T[k, i] * z[place_T[k, i]]
            before = H[offsets[t - 1] + s] if t > 0 else h0[s]
            for i in range(N):
                delta[i] += D[r, i]
                part_a[i] += delta[i] * (F[r, i] - before[i])
                z[i] = a[i] * delta[i]
            times_slope(code, F[r], z)
            for i in range(N):
                D[r, i] = z[i]
            for k in range(place.shape[0]):
                for i in range(N):
                    part_W[k, i] += z[i] * before[place[k, i]]
            unflushed += 1
            if unflushed == STEPS_PER_FLUSH:
                _flush(part_W, part_a, sum_W, sum_a)
                unflushed = 0
    _flush(part_W, part_a, sum_W, sum_a)


@njit(**INNER_OPTIONS, **COMPILER_OPTIONS)
def _flush(part_W: Array, part_a: Array, sum_W: Array, sum_a: Array) -> None:
    """Add the partial sums to the float64 ones, and set them to zero."""
    for i in range(part_a.shape[0]):
        sum_a[i] += part_a[i]
        part_a[i] = 0
    for k in range(part_W.shape[0]):
        for i in range(part_W.shape[1]):
            sum_W[k, i] += part_W[k, i]
            part_W[k, i] = 0


@cached_njit(**COMPILER_OPTIONS)
def backward_many(
    lanes: Lanes,
    indptr: Array,
    indices: Array,
    indptr_T: Array,
    indices_T: Array,
    data_T: Array,
    a: Array,
    code: int,
    active: Array,
    offsets: Array,
    stride: int,
    cut: Array,
    starts: Array,
    F: Array,
    H: Array,
    D: Array,
    deltas: Array,
    Zs: Array,
    tiles: Array,
    dE_dW_rec: Array,
    dE_da: Array,
) -> None:
    """Carry errors back; starts, deltas, Zs: tiles of h0 and of what comes from ahead, the latter two overwritten.

    tiles (2 S + 2, N L): work space, S = `steps_at_once`. dE_dW_rec (nnz,), dE_da (N L,): zeros in float64, added to.
    """
    L, S = len(lanes), tiles.shape[0] // 2 - 1
    error, f = tiles[2 * S], tiles[2 * S + 1]
    Z, before = tiles[:S], tiles[S : 2 * S]  # Z of the latest steps, and the states before them
    for g in range(starts.shape[0]):
        s = 0
        delta = deltas[g]
        _copy(Zs[g], Z[S - 1])
        for t in range(active.shape[0] - 1, -1, -1):
            live = min(L, active[t] - g * L)
            if live <= 0:
                continue
            r = offsets[t] + g * L * stride
            load(lanes, D, r, stride, live, error)
            load(lanes, F, r, stride, live, f)
            if t > 0:
                load(lanes, H, offsets[t - 1] + g * L * stride, stride, live, before[s])
            else:
                _copy(starts[g], before[s])
            if t + 1 < active.shape[0] and cut[t + 1]:
                for i in range(delta.shape[0]):
                    delta[i] = 0
            else:
                add_product(lanes, indptr_T, indices_T, data_T, Z[s - 1], delta)
            _at_drive(a, error, f, before[s], delta, Z[s], dE_da)
            times_slope(code, f, Z[s])
            store(lanes, Z[s], D, r, stride, live)
            s += 1
            if s == S:
                add_outer(lanes, indptr, indices, Z, before, dE_dW_rec)
                s = 0
        _copy(Z[s - 1], Zs[g])
        if s > 0:
            for k in range(s, S):
                for i in range(delta.shape[0]):
                    Z[k, i] = 0
                    before[k, i] = 0
            add_outer(lanes, indptr, indices, Z, before, dE_dW_rec)


@njit(**INNER_OPTIONS, **COMPILER_OPTIONS)
def _copy(source: Array, target: Array) -> None:
    """Copy one tile to another."""
    for i in range(target.shape[0]):
        target[i] = source[i]


@njit(**INNER_OPTIONS, **COMPILER_OPTIONS)
def _at_drive(a: Array, error: Array, f: Array, before: Array, delta: Array, z: Array, dE_da: Array) -> None:
    """Compute delta += dE/dh, z = a delta, dE/da += delta (f - h_{t-1}) and, for the previous step, delta *= 1 - a."""
    for i in range(delta.shape[0]):
        d = delta[i] + error[i]
        dE_da[i] += d * (f[i] - before[i])
        z[i] = a[i] * d
        delta[i] = d - z[i]


@cached_njit(**COMPILER_OPTIONS)
def summarize(
    lanes: Lanes,
    W: tuple[Array, Array, Array],
    bias: Array,
    W_rec: tuple[Array, Array, Array],
    a: Array,
    X: Array,
    width: int,
    active: Array,
    washout: int,
    slope: float,
    offsets: Array,
    counts: Array,
    H: Array,
    z: Array,
    ends: Array,
    sums: Array,
    extremes: Array,
    above: Array,
) -> None:
    """Run L sequences of tanh units from states of 0, and add states after the washout to statistics.

    X: the tiles of inputs, `width` numbers further for every step; W: CSR, whose columns are places in the tiles of the
    first step. bias, a, z, ends: tiles; ends: the last states. counts (`STEPS_PER_SUM`,) and H
    (`STEPS_PER_SUM`, N L): work space, H zeros.
    """
    L, S = len(lanes), H.shape[0]
    slope = H.dtype.type(slope)
    for first in range(0, active.shape[0], S):
        for s in range(S):
            t = first + s
            counts[s] = 0
            if t >= active.shape[0]:
                continue
            _copy(bias, z)
            add_product(lanes, W[0], W[1], W[2], X[t * width :], z)
            before, h = H[s - 1], H[s]
            add_product(lanes, W_rec[0], W_rec[1], W_rec[2], before, z)
            precise_tanh(z)
            for i in range(z.shape[0]):
                h[i] = before[i] + a[i] * (z[i] - before[i])
            counts[s] = active[t] if t >= washout else 0
            for b in range(active[t + 1] if t + 1 < active.shape[0] else 0, active[t]):
                for i in range(b, z.shape[0], L):
                    ends[i] = h[i]
        add_statistics(lanes, H, counts, slope, offsets, sums, extremes, above)
