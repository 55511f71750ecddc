"""A network that runs on: one frame (n_in,) or a chunk (steps, n_in) at a time, in constant memory.

One compiled loop over the frames serves both, so that a stream gives the same bits however it is cut into chunks.
`predict` of an estimator computes the same sums with matrix products over all frames, which add in another order:
the two agree to rounding.
"""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any, Self

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from echolearn.readout.online import LMS, RLS
from echolearn.reservoir.activations import ACTIVATIONS
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import one_hot
from echolearn.states._kernels import _OPTIONS, _activate
from echolearn.validation.values import check_boolean, check_float_dtype, check_integer, finite_array

Array = NDArray[Any]


@njit(nogil=True, cache=True, **_OPTIONS)
def _advance(
    X: Any,
    W: Any,
    indptr: Any,
    indices: Any,
    data: Any,
    W_fb: Any,
    bias: Any,
    a: Any,
    code: int,
    U: Any,
    softmax: bool,
    h: Any,
    y: Any,
    z: Any,
    Y: Any,
) -> int:
    """Eq. 1 and Y = H_c U, frame after frame; h (N,) and the fed-back y (n_out,) move on.

    X (K, n_in); W (n_in, N); indptr, indices, data: W_rec; W_fb (n_out, N), or (0, N) for none; U (n_out, M);
    z (N,): room to work in; Y (K, n_out) is filled. Returns the first frame that is not finite, having moved
    nothing, or -1.
    """
    N = h.shape[0]
    for t in range(X.shape[0]):
        for j in range(X.shape[1]):
            if not np.isfinite(X[t, j]):
                return t
    for t in range(X.shape[0]):
        z[:] = bias
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
        _activate(code, z)
        for i in range(N):
            h[i] += a[i] * (z[i] - h[i])
        for o in range(U.shape[0]):
            s = U[o, -1]
            for i in range(N):
                s += U[o, i] * h[i]
            for j in range(N, U.shape[1] - 1):
                s += U[o, j] * X[t, j - N]
            Y[t, o] = s
        if softmax:
            _softmax(Y[t], y)
        else:
            y[:] = Y[t]
    return -1


@njit(nogil=True, cache=True, **_OPTIONS)
def _softmax(logits: Any, out: Any) -> None:
    top = logits.max()
    total = out.dtype.type(0)
    for o in range(out.shape[0]):
        out[o] = np.exp(logits[o] - top)
        total += out[o]
    for o in range(out.shape[0]):
        out[o] /= total


class Stream:
    """A reservoir and its readout U (M, n_out), running. `predict` takes the next frame or frames and gives the
    readout's outputs; a reservoir with W_fb hears the outputs of the step before.

    pooling: None, or how frames make one answer ("mean", "last"): then each answer is for the sequence so far.
    softmax: outputs are fed back, and learned by, as probabilities. online: RLS or LMS, for `learn`; A (M, M): what
    RLS goes on from.
    """

    def __init__(
        self,
        reservoir: Reservoir,
        U: ArrayLike,
        *,
        direct: bool = True,
        washout: int = 0,
        pooling: str | None = None,
        softmax: bool = False,
        dtype: str = "float64",
        online: RLS | LMS | None = None,
        A: Array | None = None,
    ):
        if reservoir.backward is not None:
            raise ValueError(
                "bidirectional=True: half of the units begin at the end of a sequence, which a stream has not seen. "
                "Fit a network with bidirectional=False to stream, or predict whole sequences."
            )
        if pooling is not None and not (isinstance(pooling, str) and pooling in ("mean", "last")):
            raise ValueError(f"pooling={pooling!r:.80} needs the end of a sequence; a stream knows 'mean' and 'last'.")
        check_boolean("direct", direct)
        check_boolean("softmax", softmax)
        check_integer("washout", washout, 0)
        check_float_dtype("dtype", dtype)
        self._U = finite_array("U", U)
        M = reservoir.N + direct * reservoir.n_in + 1
        if self._U.ndim != 2 or len(self._U) != M:
            raise ValueError(
                f"U has shape {self._U.shape}; expected ({M}, outputs): {reservoir.N} units, "
                f"{direct * reservoir.n_in} inputs and the intercept."
            )
        n_out = self._U.shape[1]
        if reservoir.W_fb is not None and reservoir.W_fb.shape[1] != n_out:
            raise ValueError(f"W_fb takes {reservoir.W_fb.shape[1]} outputs, but U gives {n_out}.")
        self.reservoir, self._dtype = reservoir, np.dtype(dtype)
        self._direct, self._washout, self._pooling, self._soft = direct, washout, pooling, softmax
        self._online, self._P = online, np.empty(0) if online is None else online.start(M, A)
        self._x, self._z = np.empty((1, reservoir.n_in), dtype), np.empty(reservoir.N, dtype)
        self._weights = self._laid_out()
        self.reset()
        self._run(np.empty((0, reservoir.n_in), dtype))  # compiles, so that the first frame need not wait

    @classmethod
    def untrained(cls, reservoir: Reservoir, outputs: int, *, online: RLS | LMS, **how: Any) -> Self:
        """A stream whose U is zero, to be learned."""
        M = reservoir.N + how.get("direct", True) * reservoir.n_in + 1
        return cls(reservoir, np.zeros((M, outputs)), online=online, **how)

    def _laid_out(self) -> tuple[Any, ...]:
        """The weights in the order and layout that the compiled loop takes."""
        r, dtype = self.reservoir, self._dtype
        W_fb = np.zeros((0, r.N)) if r.W_fb is None else r.W_fb.T
        bias = np.zeros(r.N) if r.bias is None else r.bias
        return (
            np.ascontiguousarray(r.W, dtype),
            r.W_rec.indptr.astype(np.uint32),
            r.W_rec.indices.astype(np.uint32),
            r.W_rec.data.astype(dtype),
            np.ascontiguousarray(W_fb, dtype),
            bias.astype(dtype),
            r.leak.astype(dtype),
            ACTIVATIONS[r.activation],
            np.ascontiguousarray(self._U.T, dtype),
            self._soft,
        )

    def reset(self, state: ArrayLike | None = None) -> Self:
        """Back to the start of a sequence, or to a given state (N,) there. What was learned stays learned."""
        r = self.reservoir
        if state is None:
            state = np.zeros(r.N) if r.initial_state is None else r.initial_state
        h = finite_array("state", state).astype(self._dtype)
        if h.shape != (r.N,):
            raise ValueError(f"state has shape {h.shape}; expected {r.N} finite numbers, one a unit.")
        n_out = self._U.shape[1]
        self._h, self._y = h, np.zeros(n_out, self._dtype)
        self._total: Array = np.zeros(n_out)
        self.steps = 0
        return self

    @property
    def state(self) -> Array:
        """A copy of h (N,)."""
        return self._h.copy()

    @property
    def readout_weights(self) -> Array:
        """A copy of U (M, n_out), the intercept last."""
        return self._U.copy()

    def copy(self) -> Self:
        """A stream that goes on from here by itself."""
        return deepcopy(self)

    def predict(self, X: ArrayLike) -> Any:
        """The answer to the next frame (n_in,), or the answers to a chunk of them (steps, n_in)."""
        frames, one = self._frames(X)
        return self._answer(self._pooled(self._run(frames)), one)

    def learn(self, X: ArrayLike, y: Any) -> Any:
        """What `predict` answers to each frame, and then a step of the online readout towards its y.

        Frames of the washout are answered, not learned from.
        """
        if self._online is None or self._pooling is not None:
            raise ValueError(
                "this stream answers for whole sequences: learn needs a target a step."
                if self._pooling is not None
                else "this stream does not learn: make it with online=RLS() or LMS(), from echolearn.online."
            )
        frames, one = self._frames(X)
        T = self._targets([y] if one else y)
        if len(T) != len(frames):
            raise ValueError(f"y has {len(T)} entries for {len(frames)} frames; expected a target a frame.")
        finite = np.isfinite(frames).all(axis=1)
        if not finite.all():
            raise _not_finite(int(finite.argmin()), len(frames))
        Y = np.empty((len(frames), self._U.shape[1]), self._dtype)
        for t, x in enumerate(frames):
            Y[t] = self._run(x[None])[0]
            if self.steps > self._washout:
                self._correct(x, T[t])
        return self._answer(Y, one)

    def _correct(self, x: Array, target: Array) -> None:
        assert self._online is not None
        phi = np.concatenate([self._h, x, [1.0]] if self._direct else [self._h, [1.0]]).astype(np.float64)
        # y holds the newest probabilities: less the target, they are the gradient of the cross entropy by the logits
        E = (self._y if self._soft else phi @ self._U) - target
        P, U = self._online.step(self._P, self._U, phi, E)
        if not np.isfinite(U).all():
            raise FloatingPointError(
                "the online readout has diverged; nothing was learned from this frame. Use a forgetting nearer "
                "to 1, a larger ridge, or a smaller rate."
            )
        self._P, self._U = P, U
        self._weights[-2][:] = U.T

    def _frames(self, X: ArrayLike) -> tuple[Array, bool]:
        """The frames (steps, n_in), ready for the compiled loop, and whether it is a single one."""
        n_in = self._x.shape[1]
        try:
            x = X if isinstance(X, np.ndarray) else np.asarray(X)
        except ValueError:
            raise ValueError(f"a frame holds {n_in} numbers here; given {X!r:.80}.") from None
        if x.dtype.kind not in "fiub":
            raise ValueError(f"a frame holds {n_in} numbers here; given {x.dtype} entries.")
        if x.shape == (n_in,):
            with np.errstate(over="ignore"):  # what is too large for this dtype is infinite, and refused
                self._x[0] = x
            return self._x, True
        if x.ndim != 2 or x.shape[1] != n_in:
            raise ValueError(f"a frame has shape ({n_in},) here, a chunk (steps, {n_in}); given {x.shape}.")
        with np.errstate(over="ignore"):
            return np.array(x, dtype=self._dtype, order="C"), False

    def _run(self, X: Array) -> Array:
        Y = np.empty((len(X), len(self._y)), self._dtype)
        bad = _advance(X, *self._weights, self._h, self._y, self._z, Y)
        if bad >= 0:
            raise _not_finite(bad, len(X))
        self.steps += len(X)
        if not np.isfinite(Y).all():
            raise FloatingPointError(
                "the outputs are not finite: a frame holds numbers too large for this dtype, or units without bounds "
                "(relu, identity) have run away. reset() the stream; scale its frames."
            )
        return Y

    def _pooled(self, Y: Array) -> Array:
        """Running means over the frames since the washout: U is linear, so outputs may be averaged for states.
        During the washout there is no mean yet, and the newest frame speaks for itself."""
        if self._pooling != "mean":
            return Y
        first = self.steps - len(Y)  # steps before these
        late = max(0, min(len(Y), self._washout - first))
        means = np.array(Y, dtype=np.float64)
        sums = np.cumsum(np.vstack([self._total, means[late:]]), axis=0)
        self._total = sums[-1]
        counts = np.arange(first + late, self.steps) + 1 - self._washout
        means[late:] = sums[1:] / counts[:, None]
        return means.astype(self._dtype)

    def _answer(self, Y: Array, one: bool) -> Any:
        return Y[0] if one else Y

    def _targets(self, y: Any) -> Array:
        """y as rows of n_out numbers."""
        T = finite_array("y", y)
        T = T[:, None] if T.ndim == 1 else T
        n_out = self._U.shape[1]
        if T.ndim != 2 or T.shape[1] != n_out:
            raise ValueError(f"y has shape {np.shape(y)}; expected {n_out} finite numbers a frame.")
        return T


def _not_finite(frame: int, frames: int) -> ValueError:
    return ValueError(
        f"frame {frame} of {frames} holds NaN or infinity; the stream has not moved. Fill the gap, or reset()."
    )


class EstimatorStream(Stream):
    """The stream of a fitted estimator. A later fit of the estimator does not touch it."""

    def __init__(self, esn: Any, online: RLS | LMS | None):
        self._esn = copy(esn)
        softmax = getattr(esn, "readout", "ridge") == "softmax"
        if softmax and isinstance(online, RLS):
            raise ValueError("RLS fits squared errors, this readout is a softmax. Use LMS(), or readout='ridge'.")
        super().__init__(
            esn.reservoir_,
            esn._U,
            direct=esn.direct,
            washout=esn.washout,
            pooling=None if esn.per_step_ else esn.pooling,
            softmax=softmax,
            dtype=esn.dtype,
            online=online,
            A=esn._penalised_gram() if isinstance(online, RLS) and online.ridge is None else None,
        )

    def _answer(self, Y: Array, one: bool) -> Any:
        answers = self._esn._decided(Y)
        return answers[0] if one else answers

    def _targets(self, y: Any) -> Array:
        return np.asarray((super()._targets(y) - self._esn.target_mean_) / self._esn.target_scale_)


class ClassifierStream(EstimatorStream):
    """The stream of a fitted ESNClassifier: labels, or probabilities."""

    def predict_proba(self, X: ArrayLike) -> Any:
        """As `predict`, the probabilities of the classes instead of labels. Each call takes new frames."""
        frames, one = self._frames(X)
        P = self._esn._likely(self._pooled(self._run(frames)))
        return P[0] if one else P

    def _targets(self, y: Any) -> Array:
        known = {label: k for k, label in enumerate(self._esn.classes_.tolist())}
        try:
            labels = np.asarray(y).ravel().tolist()
            unknown = [label for label in labels if label not in known]
        except (TypeError, ValueError):  # not hashable, or of several shapes
            labels, unknown = [], [y]
        if unknown:
            raise ValueError(f"y holds labels that were not there when fitting: {unknown[:5]!r:.200}.")
        return one_hot(np.array([known[label] for label in labels], int), len(known), np.float64)
