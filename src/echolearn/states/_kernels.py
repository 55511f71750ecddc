"""The compiled loops: the recurrence, and its transpose with the gradient on W_rec's own pattern.

Frames are rows. A batch is packed step by step, longest sequence first: step t holds the rows
``offsets[t] : offsets[t] + active[t]``, one for each sequence still running.

There are two ways through the same sums. `few`: one sequence after another, each unit gathering its inputs; a
sparse matrix comes as two (k, N) arrays, column i holding the places and values of its row i, padded with zeros.
`many`: sixteen sequences side by side in (N, LANES) tiles, so that one vector instruction serves all of them; a
sparse matrix comes as CSR. Sequence b of step t is row offsets[t] + b stride: with stride 1 the packed batch, with
stride L one sequence cut into chunks of L steps (see `states.chunked`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from echolearn._typing import Array
from echolearn.sequences.batching import LANES
from echolearn.states._simd import STEPS, add_outer, add_product, load, store

# Sequences from which `many` is the faster way, by bytes per number. Measured on a busy machine with 100 and 1000
# units: three float32 sequences go forward 1.3 to 1.5 times faster, back 0.9 to 2.1; six float64 ones (10 connections)
# 0.8 to 1.0, eight 1.0 to 1.3.
MANY = {4: 3, 8: 7}
FLUSH = 256  # steps after which float32 partial sums move on to float64

# The compiler may reorder and fuse sums, but NaN and infinity stay honest. Division must not raise, or the
# loop would not vectorise.
OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract", "nsz", "arcp"}, "error_model": "numpy"}


@njit(inline="always", **OPTIONS)
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


@njit(inline="always", **OPTIONS)
def _tanh_64(x: float) -> float:
    """tanh = e / (e + 2), e = exp(2x) - 1: the power series at 2x / 64, doubled six times by e(2y) = e(y) (e(y) + 2).

    At most 2e-15 from tanh, relatively. In a tile 2.3 ns per number, where the library's tanh takes 3.5.
    """
    y = x if x > 0 else -x
    y = 20.0 if y > 20.0 else y
    y *= 1 / 32
    p = 1 / 6227020800 + y * (1 / 87178291200 + y * (1 / 1307674368000 + y * (1 / 20922789888000)))
    p = 1 / 3628800 + y * (1 / 39916800 + y * (1 / 479001600 + y * p))
    p = 1 / 5040 + y * (1 / 40320 + y * (1 / 362880 + y * p))
    p = 1 / 24 + y * (1 / 120 + y * (1 / 720 + y * p))
    e = y * (1 + y * (1 / 2 + y * (1 / 6 + y * p)))
    e *= e + 2
    e *= e + 2
    e *= e + 2
    e *= e + 2
    e *= e + 2
    e *= e + 2
    t = e / (e + 2)
    return t if x > 0 else -t


@njit(nogil=True, cache=True, **OPTIONS)
def activate(code: int, z: Array) -> None:
    """f in place."""
    if code == 0:
        for i in range(z.shape[0]):
            if z.itemsize == 4:
                z[i] = np.float32(0.5) + np.float32(0.5) * _tanh(np.float32(0.5) * z[i])
            else:
                z[i] = 0.5 + 0.5 * _tanh_64(0.5 * z[i])
    elif code == 1:
        for i in range(z.shape[0]):
            if z.itemsize == 4:
                z[i] = _tanh(z[i])
            else:
                z[i] = _tanh_64(z[i])
    elif code == 2:
        for i in range(z.shape[0]):
            z[i] = 0 if z[i] < 0 else z[i]  # in this order NaN stays NaN


@njit(nogil=True, cache=True, **OPTIONS)
def _times_slope(code: int, f: Array, z: Array) -> None:
    """z *= f'(.), computed from f(.) alone."""
    one = z.dtype.type(1)  # a whole number would make the product one of float64
    if code == 0:
        for i in range(z.shape[0]):
            z[i] *= f[i] * (one - f[i])
    elif code == 1:
        for i in range(z.shape[0]):
            z[i] *= one - f[i] * f[i]
    elif code == 2:
        for i in range(z.shape[0]):
            z[i] = z[i] if f[i] != 0 else 0


@njit(nogil=True, cache=True, **OPTIONS)
def forward_few(
    place: Array, value: Array, a: Array, code: int, active: Array, offsets: Array, h0: Array, F: Array, H: Array
) -> None:
    """Eq. 1 with leak: h_t = (1 - a) h_{t-1} + a f(z_t), z_t = drive_t + W_rec h_{t-1}.

    place, value (k, N): W_rec; a (N,); h0 (B, N). F (K, N) holds the drive W'x + W_fb y + bias on entry and
    f(z) on return; H (K, N) is filled. F and H may be the same array: it ends as H.
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
    """As `forward_few`; indptr, indices, data: W_rec. Without `keep_F` there is no f(z) in F, and F may be H."""
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
                    delta[i] -= a[i] * delta[i]
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
    """As `backward_few`; indptr, indices: W_rec's pattern; with _T: its transpose. dE/dW_rec in CSR order.

    ahead (2, B, N): (1 - a) delta and Z of the step after the last on entry, of the first on return.
    """
    N = H.shape[1]
    dE_dW_rec = np.zeros(indices.shape[0])
    dE_da = np.zeros((N, LANES))
    delta = np.empty((N, LANES), H.dtype)
    error = np.empty((N, LANES), H.dtype)
    f = np.empty((N, LANES), H.dtype)
    Z = np.empty((STEPS, N, LANES), H.dtype)  # of the last steps, and the states before them
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
            _times_slope(code, flat_f, flat_Z)
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
    """delta += dE/dh; z = a delta; dE/da += delta (f - h_{t-1}); and, for the step before, delta *= 1 - a."""
    for i in range(delta.shape[0]):
        d = delta[i] + error[i]
        dE_da[i] += d * (f[i] - before[i])
        z[i] = a[i] * d
        delta[i] = d - z[i]
