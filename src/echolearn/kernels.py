"""The compiled loops: the recurrence, and its transpose with the gradient on W_rec's own pattern.

Frames are rows. A batch is packed step by step, longest sequence first: step t holds the rows
``offsets[t] : offsets[t] + active[t]``, one for each sequence still running. A sparse matrix comes as two
(k, N) arrays, column i holding the places and values of its row i, padded with zeros.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

ACTIVATIONS = {"sigmoid": 0, "tanh": 1, "relu": 2, "identity": 3}
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


@njit(inline="always", **_OPTIONS)
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


@njit(inline="always", **_OPTIONS)
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
def forward(place: Any, value: Any, a: Any, code: int, active: Any, offsets: Any, h0: Any, F: Any, H: Any) -> None:
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
def backward(
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
    """The transpose of `forward`: the error at each state, carried back through time.

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
