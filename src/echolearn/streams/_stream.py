"""A network that runs continuously: one frame (n_in,) or a chunk (steps, n_in) at a time, in constant memory.

One compiled loop over the frames serves both, so that a stream gives the same bits however it is cut into chunks.
`predict` of an estimator computes the same sums with matrix products over all frames, which add in another order:
the two agree to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from echolearn.display.facts import counted, one_line
from echolearn.modelfile.snapshot import fingerprint, read_snapshot, write_snapshot
from echolearn.readout.online import OnlineRule
from echolearn.reservoir import Reservoir
from echolearn.reservoir._activations import ACTIVATIONS, is_registered
from echolearn.states._steps import advance
from echolearn.validation import Array, check_boolean, check_float_dtype, check_integer, check_path, finite_array


class _LaidOut(NamedTuple):
    """The weights in the order and layout that the compiled loop takes; W_fb and U are transposed."""

    W: Array
    indptr: Array
    indices: Array
    data: Array
    W_fb: Array
    bias: Array
    leak: Array
    activation: int
    U: Array
    softmax: bool


OUTPUTS_NOT_FINITE = (
    "the outputs are not finite: a frame holds numbers too large for this dtype, or units without bounds (relu, "
    "identity) have diverged. reset() the stream; scale its frames."
)


class Stream:
    """A running reservoir with its readout, which takes one frame, or a chunk of frames, at a time.

    `predict` takes the next frame or frames and returns the readout's outputs; a reservoir with feedback weights
    receives the outputs of the previous step. With `online`, `learn` adapts the readout after every frame.

    Parameters
    ----------
    reservoir : Reservoir
        The weights of the state equation, without backward units.
    U : array of shape (n_units + n_features + 1, n_outputs)
        The readout, the intercept last; without `direct`, there are no rows for the features.
    direct : bool, default=True
        Whether the inputs are regressors of the readout beside the states.
    washout : int, default=0
        First frames that are answered but not learned from.
    intercept : bool, default=True
        Whether an online readout learns its intercept. False: the last row of U is not changed.
    softmax : bool, default=False
        Whether outputs are logits: they are fed back, and learned from, as probabilities.
    dtype : {"float64", "float32"}, default="float64"
        The precision of states and outputs.
    online : RLS or LMS, default=None
        The rule by which the readout learns. None: it does not.
    A : array of shape (M, M), default=None
        What RLS continues from: the Gram matrix of a fit plus its ridge.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import Reservoir
    >>> from echolearn.streams import Stream
    >>> from echolearn.readout import RLS
    >>> stream = Stream.untrained(Reservoir.random(1, 20, random_state=0), outputs=1, online=RLS(ridge=1.0))
    >>> for x in np.sin(np.arange(100.0)):
    ...     answer = stream.learn([x], x)
    >>> stream.steps
    100
    """

    def __repr__(self) -> str:
        facts = [
            counted(self.reservoir.N, "unit"),
            counted(self.reservoir.n_in, "input"),
            counted(self._U.shape[1], "output"),
            "" if self._online is None else f"learning by {type(self._online).__name__}",
            f"after {counted(self.steps, 'step')}",
        ]
        return one_line(self, facts)

    def __init__(
        self,
        reservoir: Reservoir,
        U: ArrayLike,
        *,
        direct: bool = True,
        washout: int = 0,
        intercept: bool = True,
        softmax: bool = False,
        dtype: str = "float64",
        online: OnlineRule | None = None,
        A: Array | None = None,
    ):
        if reservoir.backward is not None:
            raise ValueError(
                "bidirectional=True: half of the units begin at the end of a sequence, which a stream has not seen. "
                "Fit a network with bidirectional=False to stream, or predict whole sequences."
            )
        for name, value in (("direct", direct), ("intercept", intercept), ("softmax", softmax)):
            check_boolean(name, value)
        check_integer("washout", washout, 0)
        check_float_dtype(dtype)
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
        self._direct, self._washout, self._softmax = direct, washout, softmax
        self._constant = np.array([float(intercept)])  # what an online readout sees beside states and inputs
        self._fitted_U = self._U  # a rule that learns replaces U, and never writes into it
        self._online, self._P = online, np.empty(0) if online is None else online.start(M, A)
        self._z = np.empty(reservoir.N, dtype)
        self._weights = self._laid_out()
        self.reset()
        self._run(np.empty((0, reservoir.n_in), dtype))  # compiles, so that the first frame need not wait

    @classmethod
    def untrained(cls, reservoir: Reservoir, outputs: int, *, online: OnlineRule, **how: Any) -> Self:
        """Return a stream whose readout is zero, to be learned.

        Parameters
        ----------
        reservoir, online
            As in `Stream`.
        outputs : int
            The number of outputs.
        **how : dict
            Any other parameter of the stream.

        Returns
        -------
        Stream
            A stream in its first state.
        """
        M = reservoir.N + how.get("direct", True) * reservoir.n_in + 1
        return cls(reservoir, np.zeros((M, outputs)), online=online, **how)

    def _laid_out(self) -> _LaidOut:
        """Return the weights as the compiled loop takes them."""
        r, dtype = self.reservoir, self._dtype
        if is_registered(r.activation):
            raise ValueError(f"activation={r.activation!r} is one of your own, which the compiled step does not know.")
        W_fb = np.zeros((0, r.N)) if r.W_fb is None else r.W_fb.T
        bias = np.zeros(r.N) if r.bias is None else r.bias
        return _LaidOut(
            W=np.ascontiguousarray(r.W, dtype),
            indptr=r.W_rec.indptr.astype(np.uint32),
            indices=r.W_rec.indices.astype(np.uint32),
            data=r.W_rec.data.astype(dtype),
            W_fb=np.ascontiguousarray(W_fb, dtype),
            bias=bias.astype(dtype),
            leak=r.leak.astype(dtype),
            activation=ACTIVATIONS[r.activation],
            U=np.ascontiguousarray(self._U.T, dtype),
            softmax=self._softmax,
        )

    def reset(self, state: ArrayLike | None = None) -> Self:
        """Return to the start of a sequence, or to a given state there. What was learned stays learned.

        Parameters
        ----------
        state : array of shape (n_units,), default=None
            The state to continue from. None: the reservoir's initial state.

        Returns
        -------
        Stream
            The stream itself.
        """
        r = self.reservoir
        if state is None:
            state = np.zeros(r.N) if r.initial_state is None else r.initial_state
        h = finite_array("state", state).astype(self._dtype)
        if h.shape != (r.N,):
            raise ValueError(f"state has shape {h.shape}; expected {r.N} finite numbers, one per unit.")
        n_out = self._U.shape[1]
        self._h, self._y = h, np.zeros(n_out, self._dtype)
        self.steps = 0
        return self

    @property
    def state(self) -> Array:
        """A copy of the state h (n_units,)."""
        return self._h.copy()

    @property
    def readout_weights(self) -> Array:
        """A copy of the readout U, the intercept last."""
        return self._U.copy()

    def copy(self) -> Self:
        """Return an independent stream that continues from the present state."""
        return deepcopy(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Save the present state of the stream, to continue later, also in another process.

        Parameters
        ----------
        path : str or path-like
            Where to write. The file appears when it is complete; an existing one is replaced. It holds the running
            state and, with an online readout, what it has learned; not the model.
        """
        write_snapshot(check_path("path", path), self.running(), self.identity())

    def resume(self, path: str | PathLike[str]) -> Self:
        """Continue where `save` was called: the same frames give the same bits from there on.

        Parameters
        ----------
        path : str or path-like
            A file that `save` of a stream of the same model, with the same `online` rule, wrote.

        Returns
        -------
        Stream
            The stream itself.

        Raises
        ------
        ModelFileError
            If the file is damaged, or of another model; the stream stays where it is.
        """
        return self.run_from(read_snapshot(check_path("path", path), self.running(), self.identity()))

    def running(self) -> dict[str, Array]:
        """Return what a snapshot holds: state, what is fed back, the number of steps, and what was learned."""
        arrays = {"h": self._h, "y": self._y, "steps": np.array(self.steps, np.int64)}
        return arrays if self._online is None else {**arrays, "U": self._U, "P": self._P}

    def run_from(self, arrays: Mapping[str, Array]) -> Self:
        """Continue from the arrays that `running` returned.

        Parameters
        ----------
        arrays : dict from str to array
            They are copied.

        Returns
        -------
        Stream
            The stream itself.
        """
        self._h, self._y = arrays["h"].copy(), arrays["y"].copy()
        self.steps = int(arrays["steps"])
        if self._online is not None:
            self._U, self._P = arrays["U"].copy(), arrays["P"].copy()
            self._lay_out()
        return self

    def identity(self) -> str:
        """Return a hash of all that decides on the next answers beside the running state: the model and its use."""
        weights = self._weights._replace(U=self._fitted_U)
        settings = self._direct, self._washout, str(self._dtype), self._online
        return fingerprint(tuple(weights), settings, self._constant)

    def predict(self, X: ArrayLike) -> Array:
        """Return the answer to the next frame, or the answers to a chunk of frames.

        Parameters
        ----------
        X : array of shape (n_features,) or (n_steps, n_features)
            The next frame, or the next frames.

        Returns
        -------
        array
            One answer, or one per frame.
        """
        frames, one = self._frames(X)
        return self._answer(self._run(frames), one)

    def learn(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Return what `predict` answers to each frame, and then take a step of the online readout towards its target.

        Frames of the washout are answered, but not learned from.

        Parameters
        ----------
        X
            As in `predict`.
        y : scalar or array
            The target of each frame.

        Returns
        -------
        array
            One answer, or one per frame, made before learning from it.
        """
        if self._online is None:
            raise ValueError("this stream does not learn: make it with online=RLS() or LMS(), from echolearn.readout.")
        frames, one = self._frames(X)
        T = self._targets([y] if one else y)
        if len(T) != len(frames):
            raise ValueError(f"y has {len(T)} entries for {len(frames)} frames; expected one target per frame.")
        check_frames_finite(frames)
        Y = np.empty((len(frames), self._U.shape[1]), self._dtype)
        for t, x in enumerate(frames):
            Y[t] = self._run(x[None])[0]
            if self.steps > self._washout:
                self._correct(x, T[t])
        return self._answer(Y, one)

    def _correct(self, x: Array, target: Array) -> None:
        assert self._online is not None
        phi = self._regressors(x).astype(np.float64)
        # y holds the newest probabilities: less the target, they are the gradient with respect to the logits
        E = (self._y if self._softmax else phi @ self._U) - target
        P, U = self._online.step(self._P, self._U, phi, E)
        if not np.isfinite(U).all():
            raise FloatingPointError(
                "the online readout has diverged; nothing was learned from this frame. Use a forgetting nearer "
                "to 1, a larger ridge, or a smaller rate."
            )
        self._P, self._U = P, U
        self._lay_out()

    def _regressors(self, x: Array) -> Array:
        """Return what the readout saw of the newest frame x."""
        return np.concatenate([self._h, *([x] if self._direct else []), self._constant])

    def _lay_out(self) -> None:
        """Give the compiled loop the newest U."""
        self._weights.U[:] = self._U.T

    def _frames(self, X: ArrayLike) -> tuple[Array, bool]:
        """Return the frames (steps, n_in), ready for the compiled loop, and whether it is a single one."""
        frames, one = self._given_frames(X, self.reservoir.n_in)
        with np.errstate(over="ignore"):  # what is too large for this dtype is infinite, and refused
            return np.array(frames, dtype=self._dtype, order="C"), one

    def _given_frames(self, X: ArrayLike, n_in: int) -> tuple[Array, bool]:
        """Return checked frames (steps, n_in) as they were given, and whether it is a single one."""
        try:
            x = X if isinstance(X, np.ndarray) else np.asarray(X)
        except ValueError:
            raise ValueError(f"a frame holds {n_in} numbers here; given {X!r:.80}.") from None
        if x.dtype.kind not in "fiub":
            given = f"{x.dtype} entries" if x.dtype != object or x.ndim else f"{X!r:.80}, a {type(X).__name__}"
            values = "; of a dictionary, list(frame.values())" if isinstance(X, Mapping) else ""
            raise ValueError(
                f"a frame holds {n_in} numbers here; given {given}. Pass an array of {n_in} numbers, in the order of "
                f"the features of the fit{values}."
            )
        if x.shape == (n_in,):
            return x[None], True
        if x.ndim != 2 or x.shape[1] != n_in:
            raise ValueError(f"a frame has shape ({n_in},) here, a chunk (steps, {n_in}); given {x.shape}.")
        return x, False

    def _run(self, X: Array) -> Array:
        Y = np.empty((len(X), len(self._y)), self._dtype)
        bad = advance(X, *self._weights, self._h, self._y, self._z, Y)
        if bad >= 0:
            raise _frame_not_finite(bad, len(X))
        self.steps += len(X)
        if not np.isfinite(Y).all():
            raise FloatingPointError(OUTPUTS_NOT_FINITE)
        return Y

    def _answer(self, Y: Array, one: bool) -> Array:
        """Return what outputs stand for; of a single frame, without the axis of time."""
        return Y[0] if one else Y

    def _targets(self, y: object) -> Array:
        """Return y as rows of n_out numbers."""
        given, n_out = finite_array("y", y), self._U.shape[1]
        T = given[:, None] if given.ndim == 1 else given
        if T.ndim != 2 or T.shape[1] != n_out:
            raise ValueError(f"y has shape {given.shape}; expected {n_out} finite numbers per frame.")
        return T


def check_frames_finite(frames: Array) -> None:
    """Refuse frames (steps, n_in) of which one holds NaN or infinity."""
    finite = np.isfinite(frames).all(axis=1)
    if not finite.all():
        raise _frame_not_finite(int(finite.argmin()), len(frames))


def _frame_not_finite(frame: int, frames: int) -> ValueError:
    return ValueError(
        f"frame {frame} of {frames} holds NaN or infinity; the stream has not moved. Fill the gap, or reset()."
    )
