"""The compiled loop of a stream: states and outputs, frame after frame, in constant memory."""

from __future__ import annotations

import math

from numba import njit

from echolearn.execution.compilation import cached_njit
from echolearn.states._activations import COMPILER_OPTIONS, INNER_OPTIONS, activate
from echolearn.validation import Array


@cached_njit(**COMPILER_OPTIONS)
def advance(
    X: Array,
    W: Array,
    indptr: Array,
    indices: Array,
    data: Array,
    W_fb: Array,
    bias: Array,
    a: Array,
    code: int,
    U: Array,
    softmax: bool,
    h: Array,
    y: Array,
    z: Array,
    Y: Array,
) -> int:
    """Advance h (N,) and the fed-back y (n_out,) by eq. 1, frame after frame, and fill Y = H_c U.

    X (K, n_in); W (n_in, N); indptr, indices, data: W_rec; W_fb (n_out, N), or (0, N) for none; U (n_out, M); z (N,):
    work space; Y (K, n_out). Returns -1, or the first frame that is not finite; nothing is changed then.
    """
    N = h.shape[0]
    for t in range(X.shape[0]):
        for j in range(X.shape[1]):
            if not math.isfinite(X[t, j]):
                return t
    for t in range(X.shape[0]):
        for i in range(N):
            z[i] = bias[i]
        for j in range(X.shape[1]):
            x = X[t, j]
            for i in range(N):
                z[i] += x * W[j, i]
        for i in range(N):
            for p in range(indptr[i], indptr[i + 1]):
                z[i] += data[p] * h[indices[p]]
        for o in range(W_fb.shape[0]):
            for i in range(N):
                z[i] += y[o] * W_fb[o, i]
        activate(code, z)
        for i in range(N):
            h[i] += a[i] * (z[i] - h[i])
        for o in range(U.shape[0]):
            s = U[o, -1]
            for i in range(N):
                s += U[o, i] * h[i]
            for j in range(N, U.shape[1] - 1):
                s += U[o, j] * X[t, j - N]
            Y[t, o] = s
        for o in range(y.shape[0]):
            y[o] = Y[t, o]
        if softmax:
            _softmax(y)
    return -1


@njit(**INNER_OPTIONS, **COMPILER_OPTIONS)
def _softmax(y: Array) -> None:
    """Replace logits by their softmax."""
    top = y[0]
    for o in range(y.shape[0]):
        top = max(top, y[o])
    total = y[0] - y[0]
    for o in range(y.shape[0]):
        y[o] = math.exp(y[o] - top)
        total += y[o]
    for o in range(y.shape[0]):
        y[o] /= total
