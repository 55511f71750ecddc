"""The compiled loops: the recurrence, and its transpose with the gradient on W_rec's own pattern.

Frames are rows. A batch is packed step by step, longest sequence first: step t holds the rows
``offsets[t] : offsets[t] + active[t]``, one for each sequence still running.

There are two ways through the same sums. `few`: one sequence after another, each unit gathering its inputs; a
sparse matrix comes as two (k, N) arrays, column i holding the places and values of its row i, padded with zeros.
`many`: up to sixteen sequences side by side in (N, lanes) tiles, so that one vector instruction serves all of
them; a sparse matrix comes as CSR. `many` wins from four sequences on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

ACTIVATIONS = {"sigmoid": 0, "tanh": 1, "relu": 2, "identity": 3}
MANY = 4  # sequences from which `many` is the faster way
LANES = 16
TILE = 128  # columns (steps × lanes) whose outer products with W_rec's pattern are summed at once
FLUSH = 256  # steps after which float32 partial sums move on to float64

# The compiler may reorder and fuse sums, but NaN and infinity stay honest. Division must not raise, or the
# loop would not vectorise.
_OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract", "nsz", "arcp"}, "error_model": "numpy"}


@njit(inline="always", **_OPTIONS)
def _tanh(x: Any) -> Any:
    """Rational x P(x²)/Q(x²) on [-8, 8]: at most 4e-7 from tanh in float32, and free of calls.

    P and Q are the least-maximum-error fit of degrees 3 and 4 in x², found by linear programs.
    """
    one = np.float32(1.0)
    high = np.float32(8.0)
    x = high if x > high else x
    x = -high if x < -high else x
    u = x * x
    p = np.float32(2.938366860873609e-3) + u * np.float32(1.1305663617561342e-5)
    p = np.float32(0.9999993627977622) + u * (np.float32(0.12913194318824717) + u * p)
    q = np.float32(2.3696583427620897e-4) + u * np.float32(2.4224627497386684e-7)
    q = one + u * (np.float32(0.46246291006020995) + u * (np.float32(0.02376189032614955) + u * q))
    return x * p / q


@njit(nogil=True, cache=True, **_OPTIONS)
def _activate(code: int, z: Any) -> None:
    """f in place."""
    if code == 0:
        for i in range(z.shape[0]):
            if z.itemsize == 4:
                z[i] = np.float32(0.5) + np.float32(0.5) * _tanh(np.float32(0.5) * z[i])
            else:
                z[i] = 0.5 + 0.5 * math.tanh(0.5 * z[i])
    elif code == 1:
        for i in range(z.shape[0]):
            if z.itemsize == 4:
                z[i] = _tanh(z[i])
            else:
                z[i] = math.tanh(z[i])
    elif code == 2:
        for i in range(z.shape[0]):
            z[i] = 0 if z[i] < 0 else z[i]  # in this order NaN stays NaN


@njit(nogil=True, cache=True, **_OPTIONS)
def _times_slope(code: int, f: Any, z: Any) -> None:
    """z *= f'(.), told from f(.) alone."""
    for i in range(z.shape[0]):
        if code == 0:
            z[i] *= f[i] * (1 - f[i])
        elif code == 1:
            z[i] *= 1 - f[i] * f[i]
        elif code == 2 and f[i] == 0:
            z[i] = 0


@njit(nogil=True, cache=True, **_OPTIONS)
def forward_few(place: Any, value: Any, a: Any, code: int, active: Any, offsets: Any, h0: Any, F: Any, H: Any) -> None:
    """Eq. 1 with leak: h_t = (1 - a) h_{t-1} + a f(z_t), z_t = drive_t + W_rec h_{t-1}.

    place, value (k, N): W_rec; a (N,); h0 (B, N). F (K, N) holds the drive W'x + W_fb y + bias on entry and
    f(z) on return; H (K, N) is filled.
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
            _activate(code, z)
            for i in range(N):
                F[r, i] = z[i]
                h[i] += a[i] * (z[i] - h[i])
                H[r, i] = h[i]


@njit(nogil=True, cache=True, **_OPTIONS)
def forward_many(
    indptr: Any, indices: Any, data: Any, a: Any, code: int, active: Any, offsets: Any, h0: Any, F: Any, H: Any
) -> None:
    """As `forward_few`; indptr, indices, data: W_rec."""
    N = H.shape[1]
    for first in range(0, active[0], LANES):
        L = min(LANES, active[0] - first)
        h = np.empty((N, L), H.dtype)
        z = np.empty((N, L), H.dtype)
        for b in range(L):
            for i in range(N):
                h[i, b] = h0[first + b, i]
        for t in range(active.shape[0]):
            live = min(L, active[t] - first)
            if live <= 0:
                break
            r = offsets[t] + first
            _load(F, r, live, z)
            _add_product(indptr, indices, data, h, z)
            _activate(code, z.reshape(N * L))
            _leak(a, z, h)
            _store(z, r, live, F)
            _store(h, r, live, H)


@njit(nogil=True, cache=True, **_OPTIONS)
def _load(M: Any, r: int, live: int, tile: Any) -> None:
    """Rows r ... of M into the lanes of a tile (N, lanes); lanes that have ended hold zero."""
    for b in range(live):
        for i in range(tile.shape[0]):
            tile[i, b] = M[r + b, i]
    for b in range(live, tile.shape[1]):
        for i in range(tile.shape[0]):
            tile[i, b] = 0


@njit(nogil=True, cache=True, **_OPTIONS)
def _store(tile: Any, r: int, live: int, M: Any) -> None:
    for b in range(live):
        for i in range(tile.shape[0]):
            M[r + b, i] = tile[i, b]


@njit(nogil=True, cache=True, **_OPTIONS)
def _leak(a: Any, z: Any, h: Any) -> None:
    for i in range(h.shape[0]):
        for b in range(h.shape[1]):
            h[i, b] += a[i] * (z[i, b] - h[i, b])


@njit(nogil=True, cache=True, **_OPTIONS)
def _add_product(indptr: Any, indices: Any, data: Any, h: Any, z: Any) -> None:
    """z += A h for a CSR matrix A and tiles h, z (N, lanes); five terms at a time save loads and stores of z."""
    L = h.shape[1]
    for i in range(z.shape[0]):
        p = indptr[i]
        while p + 5 <= indptr[i + 1]:
            j0, j1, j2, j3, j4 = indices[p], indices[p + 1], indices[p + 2], indices[p + 3], indices[p + 4]
            w0, w1, w2, w3, w4 = data[p], data[p + 1], data[p + 2], data[p + 3], data[p + 4]
            for b in range(L):
                z[i, b] += w0 * h[j0, b] + w1 * h[j1, b] + w2 * h[j2, b] + w3 * h[j3, b] + w4 * h[j4, b]
            p += 5
        while p < indptr[i + 1]:
            for b in range(L):
                z[i, b] += data[p] * h[indices[p], b]
            p += 1


@njit(nogil=True, cache=True, **_OPTIONS)
def backward_few(
    place: Any,
    place_T: Any,
    value_T: Any,
    a: Any,
    code: int,
    active: Any,
    offsets: Any,
    cut: Any,
    h0: Any,
    F: Any,
    H: Any,
    D: Any,
) -> Any:
    """The transpose of `forward_few`: the error at each state, carried back through time.

    delta_t = dE/dh_t + (1 - a) delta_{t+1} + W_rec' Z_{t+1},   Z_t = a f'(z_t) delta_t
    and what comes from t+1 is dropped where ``cut[t + 1]`` says that a block starts there.

    place (k, N): W_rec; place_T, value_T: its transpose. D (K, N) holds dE/dH on entry and Z on return.
    Returns, in float64, dE/dW_rec = Σ Z_t h_{t-1}' on the pattern (k, N), and
    dE/da = Σ delta_t (f(z_t) - h_{t-1}) (N,).
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
                    delta[i] *= 1 - a[i]
                for k in range(place_T.shape[0]):
                    for i in range(N):
                        delta[i] += value_T[k, i] * z[place_T[k, i]]
            before = H[offsets[t - 1] + s] if t > 0 else h0[s]
            for i in range(N):
                delta[i] += D[r, i]
                sum_a[i] += delta[i] * (F[r, i] - before[i])
                z[i] = a[i] * delta[i]
            _times_slope(code, F[r], z)
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


@njit(nogil=True, cache=True, **_OPTIONS)
def backward_many(
    indptr: Any,
    indices: Any,
    indptr_T: Any,
    indices_T: Any,
    data_T: Any,
    a: Any,
    code: int,
    active: Any,
    offsets: Any,
    cut: Any,
    h0: Any,
    F: Any,
    H: Any,
    D: Any,
) -> Any:
    """As `backward_few`; indptr, indices: W_rec's pattern; with _T: its transpose. dE/dW_rec in CSR order.

    Z and the states before are gathered for some steps in tiles with time along the rows, so that an entry of
    dE/dW_rec is a dot product of two rows.
    """
    N = H.shape[1]
    dE_dW_rec = np.zeros(indices.shape[0])
    dE_da = np.zeros(N)
    for first in range(0, active[0], LANES):
        L = min(LANES, active[0] - first)
        delta = np.zeros((N, L), H.dtype)
        z = np.zeros((N, L), H.dtype)
        error = np.zeros((N, L), H.dtype)
        f = np.zeros((N, L), H.dtype)
        before = np.zeros((N, L), H.dtype)
        Z_tile = np.zeros((N, TILE), H.dtype)
        H_tile = np.zeros((N, TILE), H.dtype)
        filled = 0
        for t in range(active.shape[0] - 1, -1, -1):
            live = min(L, active[t] - first)
            if live <= 0:
                continue
            r = offsets[t] + first
            _load(D, r, live, error)
            _load(F, r, live, f)
            if t > 0:
                _load(H, offsets[t - 1] + first, live, before)
            else:
                _load(h0, first, live, before)
            if t + 1 < active.shape[0] and not cut[t + 1]:
                _decay(a, delta)
                _add_product(indptr_T, indices_T, data_T, z, delta)
            else:
                delta[:] = 0
            _at_drive(a, error, f, before, delta, z, dE_da)
            _times_slope(code, f.reshape(N * L), z.reshape(N * L))
            _store(z, r, live, D)
            _append(z, Z_tile, filled)
            _append(before, H_tile, filled)
            filled += L
            if filled + L > TILE or t == 0:
                _add_on_pattern(indptr, indices, Z_tile, H_tile, filled, dE_dW_rec)
                filled = 0
    return dE_dW_rec, dE_da


@njit(nogil=True, cache=True, **_OPTIONS)
def _decay(a: Any, delta: Any) -> None:
    for i in range(delta.shape[0]):
        for b in range(delta.shape[1]):
            delta[i, b] *= 1 - a[i]


@njit(nogil=True, cache=True, **_OPTIONS)
def _at_drive(a: Any, error: Any, f: Any, before: Any, delta: Any, z: Any, dE_da: Any) -> None:
    """delta += dE/dh; z = a delta; dE/da += Σ delta (f - h_{t-1})."""
    for i in range(delta.shape[0]):
        total = delta.dtype.type(0)
        for b in range(delta.shape[1]):
            d = delta[i, b] + error[i, b]
            total += d * (f[i, b] - before[i, b])
            delta[i, b] = d
            z[i, b] = a[i] * d
        dE_da[i] += total


@njit(nogil=True, cache=True, **_OPTIONS)
def _append(tile: Any, wide: Any, at: int) -> None:
    for i in range(tile.shape[0]):
        for b in range(tile.shape[1]):
            wide[i, at + b] = tile[i, b]


@njit(nogil=True, cache=True, **_OPTIONS)
def _add_on_pattern(indptr: Any, indices: Any, Z: Any, H: Any, width: int, out: Any) -> None:
    """out += (Z H') at the places of a CSR pattern, over the first `width` columns."""
    for i in range(Z.shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            s = Z.dtype.type(0)
            for c in range(width):
                s += Z[i, c] * H[j, c]
            out[p] += s
