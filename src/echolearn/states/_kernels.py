"""The compiled loops: the recurrence (eq. 1), and its transpose with the gradient on the pattern of W_rec.

Frames are rows. A batch is packed step by step, longest sequence first: step t has the rows
``offsets[t] : offsets[t] + active[t]``, one for each sequence that is still running.

There are two versions of each loop. `few` runs one sequence after another, and each unit gathers its inputs; a sparse
matrix is given as two (k, N) arrays, whose column i has the indices and values of its row i, padded with zeros. `many`
runs LANES sequences in parallel in (N, LANES) tiles, so that one vector instruction serves all of them; a sparse matrix
is given as CSR. Sequence b of step t is row offsets[t] + b stride: with stride 1 the packed batch, with stride L one
sequence cut into chunks of L steps (see `states.chunked`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from echolearn._typing import Array
from echolearn.sequences.batching import LANES
from echolearn.states._activations import OPTIONS, activate, times_slope
from echolearn.states._simd import STEPS, add_outer, add_product, load, store

# The number of sequences from which on `many` is faster, by bytes per number. Measured on a busy machine with 100 and
# 1000 units: three float32 sequences are 1.3 to 1.5 times faster forward and 0.9 to 2.1 times backward; six float64
# sequences (10 connections) 0.8 to 1.0 times, eight 1.0 to 1.3 times.
MANY = {4: 3, 8: 7}
FLUSH = 256  # steps after which float32 partial sums are added to float64 ones


@njit(nogil=True, cache=True, **OPTIONS)
def forward_few(
    place: Array, value: Array, a: Array, code: int, active: Array, offsets: Array, h0: Array, F: Array, H: Array
) -> None:
    """Compute eq. 1 with leak: h_t = (1 - a) h_{t-1} + a f(z_t), z_t = drive_t + W_rec h_{t-1}.

    place, value (k, N): W_rec; a (N,); h0 (B, N). F (K, N) has the drive W'x + W_fb y + bias on entry and f(z) on
    return; H (K, N) is filled. F and H may be the same array, which then ends as H.
    """
    N = H.shape[1]
    h = np.empty(N, H.dtype)
    z = np.empty(N, H.dtype)
    for s in range(active[0]):
        h[:] = h0[s]
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
            _leak(a, z, h)
            F[r] = z
            H[r] = h


@njit(nogil=True, cache=True, **OPTIONS)
def forward_many(
    indptr: Array,
    indices: Array,
    data: Array,
    a: Array,
    code: int,
    active: Array,
    offsets: Array,
    stride: int,
    h0: Array,
    F: Array,
    H: Array,
    keep_F: bool,
) -> None:
    """Compute what `forward_few` does; indptr, indices, data: W_rec. Without `keep_F`, F is not kept and may be H."""
    N = H.shape[1]
    h = np.empty((N, LANES), H.dtype)
    z = np.empty((N, LANES), H.dtype)
    flat_h, flat_z, flat_a = h.reshape(N * LANES), z.reshape(N * LANES), _spread(a)
    for first in range(0, active[0], LANES):
        load(h0, first, 1, min(LANES, active[0] - first), h)
        for t in range(active.shape[0]):
            live = min(LANES, active[t] - first)
            if live <= 0:
                break
            r = offsets[t] + first * stride
            load(F, r, stride, live, z)
            add_product(indptr, indices, data, h, z)
            activate(code, flat_z)
            _leak(flat_a, flat_z, flat_h)
            if keep_F:
                store(z, F, r, stride, live)
            store(h, H, r, stride, live)


@njit(nogil=True, cache=True, **OPTIONS)
def _spread(a: Array) -> Array:
    """Return a (N,) as a flat tile, the same in every lane: one loop over a flat tile is faster than one per row."""
    tile = np.empty((a.shape[0], LANES), a.dtype)
    for i in range(a.shape[0]):
        tile[i] = a[i]
    return tile.reshape(a.shape[0] * LANES)


@njit(nogil=True, cache=True, **OPTIONS)
def _leak(a: Array, z: Array, h: Array) -> None:
    """Set h to (1 - a) h + a z."""
    for i in range(h.shape[0]):
        h[i] += a[i] * (z[i] - h[i])


@njit(nogil=True, cache=True, **OPTIONS)
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
) -> tuple[Array, Array]:
    """Carry the error at each state back through time: the transpose of `forward_few`.

    delta_t = dE/dh_t + (1 - a) delta_{t+1} + W_rec' Z_{t+1},   Z_t = a f'(z_t) delta_t,
    where the terms of t+1 are dropped if ``cut[t + 1]`` says that a block starts there.

    place (k, N): W_rec; place_T, value_T: its transpose. D (K, N) has dE/dH on entry and Z on return. Returns, in
    float64, dE/dW_rec = Σ Z_t h_{t-1}' on the pattern (k, N), and dE/da = Σ delta_t (f(z_t) - h_{t-1}) (N,).
    """
    N = H.shape[1]
    dE_dW_rec = np.zeros((place.shape[0], N))
    dE_da = np.zeros(N)
    delta = np.empty(N, H.dtype)
    z = np.empty(N, H.dtype)
    sum_W = np.zeros((place.shape[0], N), H.dtype)
    sum_a = np.zeros(N, H.dtype)
    unflushed = 0
    for s in range(active[0]):
        last = active.shape[0] - 1
        while s >= active[last]:
            last -= 1
        for t in range(last, -1, -1):
            r = offsets[t] + s
            if t == last or cut[t + 1]:
                delta[:] = 0
            else:
                for i in range(N):
                    delta[i] -= a[i] * delta[i]
                for k in range(place_T.shape[0]):
                    for i in range(N):
                        delta[i] += value_T[k, i] * z[place_T[k, i]]
            before = H[offsets[t - 1] + s] if t > 0 else h0[s]
            for i in range(N):
                delta[i] += D[r, i]
                sum_a[i] += delta[i] * (F[r, i] - before[i])
                z[i] = a[i] * delta[i]
            times_slope(code, F[r], z)
            for i in range(N):
                D[r, i] = z[i]
            for k in range(place.shape[0]):
                for i in range(N):
                    sum_W[k, i] += z[i] * before[place[k, i]]
            unflushed += 1
            if unflushed == FLUSH:
                dE_dW_rec += sum_W
                dE_da += sum_a
                sum_W[:] = 0
                sum_a[:] = 0
                unflushed = 0
    return dE_dW_rec + sum_W, dE_da + sum_a


@njit(nogil=True, cache=True, **OPTIONS)
def backward_many(
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
    h0: Array,
    F: Array,
    H: Array,
    D: Array,
    ahead: Array,
) -> tuple[Array, Array]:
    """Compute what `backward_few` does; indptr, indices: the pattern of W_rec; with _T: its transpose.

    ahead (2, B, N): (1 - a) delta and Z, on entry of the step after the last one, on return of the first step. Returns
    dE/dW_rec in CSR order, and dE/da.
    """
    N = H.shape[1]
    dE_dW_rec = np.zeros(indices.shape[0])
    dE_da = np.zeros((N, LANES))
    delta = np.empty((N, LANES), H.dtype)
    error = np.empty((N, LANES), H.dtype)
    f = np.empty((N, LANES), H.dtype)
    Z = np.empty((STEPS, N, LANES), H.dtype)  # Z of the latest steps, and the states before them
    before = np.empty((STEPS, N, LANES), H.dtype)
    flat_a, flat_da, flat_f = _spread(a), dE_da.reshape(N * LANES), f.reshape(N * LANES)
    flat_error, flat_delta = error.reshape(N * LANES), delta.reshape(N * LANES)
    for first in range(0, active[0], LANES):
        lanes = min(LANES, active[0] - first)
        s = 0
        load(ahead[0], first, 1, lanes, delta)
        load(ahead[1], first, 1, lanes, Z[-1])
        for t in range(active.shape[0] - 1, -1, -1):
            live = min(LANES, active[t] - first)
            if live <= 0:
                continue
            r = offsets[t] + first * stride
            load(D, r, stride, live, error)
            load(F, r, stride, live, f)
            if t > 0:
                load(H, offsets[t - 1] + first * stride, stride, live, before[s])
            else:
                load(h0, first, 1, live, before[s])
            if t + 1 < active.shape[0] and cut[t + 1]:
                delta[:] = 0
            else:
                add_product(indptr_T, indices_T, data_T, Z[s - 1], delta)
            flat_Z, flat_before = Z[s].reshape(N * LANES), before[s].reshape(N * LANES)
            _at_drive(flat_a, flat_error, flat_f, flat_before, flat_delta, flat_Z, flat_da)
            times_slope(code, flat_f, flat_Z)
            store(Z[s], D, r, stride, live)
            s += 1
            if s == STEPS:
                add_outer(indptr, indices, Z, before, dE_dW_rec)
                s = 0
        store(delta, ahead[0], first, 1, lanes)
        store(Z[s - 1], ahead[1], first, 1, lanes)
        if s > 0:
            Z[s:] = 0
            before[s:] = 0
            add_outer(indptr, indices, Z, before, dE_dW_rec)
    return dE_dW_rec, dE_da.sum(axis=1)


@njit(nogil=True, cache=True, **OPTIONS)
def _at_drive(a: Array, error: Array, f: Array, before: Array, delta: Array, z: Array, dE_da: Array) -> None:
    """Compute delta += dE/dh, z = a delta, dE/da += delta (f - h_{t-1}) and, for the previous step, delta *= 1 - a."""
    for i in range(delta.shape[0]):
        d = delta[i] + error[i]
        dE_da[i] += d * (f[i] - before[i])
        z[i] = a[i] * d
        delta[i] = d - z[i]
