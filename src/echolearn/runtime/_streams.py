"""Models that run continuously, one frame at a time: one stream, or many side by side as one product."""

from __future__ import annotations

from copy import copy
from os import PathLike
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from echolearn.modelfile.snapshot import fingerprint, read_snapshot, write_snapshot
from echolearn.runtime._layers import Running, RunningDeep, RunningLayer
from echolearn.runtime._opening import check_can_stream, decode, encode, labels_or_values, last_known, running_from
from echolearn.runtime._plan import Plan, Resumption
from echolearn.validation import Array, check_columns, check_path


class Streams:
    """Many streams of one model that advance together: a call takes one frame of every device. n: devices; None for a
    single one, without their axis. end: of the training series, to continue from there. `steps` (n,): frames so far."""

    def __init__(self, plan: Plan, network: RunningLayer | RunningDeep, n: int | None, end: Resumption | None = None):
        check_can_stream(plan)
        self._plan, self._network = plan, network
        self._many: tuple[int, ...] = () if n is None else (n,)
        self._known: Array = np.empty(0)
        self.reset()
        if end is not None:
            begin = running_from(network, end)
            self._now = Running(*(np.broadcast_to(p, (*self._many, p.shape[-1])) for p in (begin.h, begin.y)))
            if end.known is not None:
                self._known = np.broadcast_to(end.known, self._known.shape)

    def reset(self, which: ArrayLike | None = None) -> Self:
        """Return to the initial state; which: indices or a mask of the devices that do, None for all."""
        plan, start = self._plan, self._network.start(*self._many)
        unknown = np.full((*self._many, plan.n_features), np.nan)
        steps = np.zeros(self._many, np.int64)
        if which is None:
            self._now, self._known, self.steps = start, unknown, steps
            return self
        chosen = np.zeros(self._many, bool)
        chosen[np.asarray(which)] = True
        rows = chosen[:, None]
        self._now = Running(np.where(rows, start.h, self._now.h), np.where(rows, start.y, self._now.y))
        self._known = np.where(rows, unknown, self._known)
        self.steps = np.where(chosen, steps, self.steps)
        return self

    def step(self, x: ArrayLike) -> Array:
        """Return the probabilities or values (n, n_outputs) after one more frame of every device, (n, n_features)."""
        return decode(self._plan.answer, self._advance(x))

    def predict(self, x: ArrayLike) -> Array:
        """Return labels or values after one more frame of every device, as `predict` of the estimator does."""
        return labels_or_values(self._plan.answer, self._advance(x))

    def save(self, path: str | PathLike[str]) -> None:
        """Save the present states of all devices, to continue later or in another process."""
        write_snapshot(check_path("path", path), self._arrays(), self._identity())

    def resume(self, path: str | PathLike[str]) -> Self:
        """Continue where `save` was called, with the same model: the same frames give the same bits from there on."""
        snapshot = read_snapshot(check_path("path", path), self._arrays(), self._identity())
        self._now = Running(snapshot["h"], snapshot["y"])
        self._known, self.steps = snapshot["known"], snapshot["steps"]
        return self

    def _arrays(self) -> dict[str, Array]:
        """Return what a snapshot holds."""
        return {"h": self._now.h, "y": self._now.y, "known": self._known, "steps": self.steps}

    def _identity(self) -> str:
        """Return the fingerprint of all that decides on the next answers beside the running state."""
        plan = self._plan
        return fingerprint(plan.precision, plan.inputs, plan.network, plan.answer, self._many)

    def copy(self) -> Self:
        """Return independent streams that continue from the present state."""
        return copy(self)  # a step replaces arrays, and never writes into them

    @property
    def states(self) -> Array:
        """A copy of the states of all layers, an array of shape (n, n_units); of a `Stream`, (n_units,)."""
        return self._now.h.copy()

    def _advance(self, frame: ArrayLike) -> Array:
        """Return the outputs (..., n_out) after one more frame; nothing has moved if it is refused."""
        plan = self._plan
        x = self._frame(frame)
        carries = plan.carried is not None
        with np.errstate(over="ignore", invalid="ignore"):
            inputs = encode(plan.inputs, x[None], self._known)[0] if carries else encode(plan.inputs, x)
            inputs = inputs.astype(self._network.dtype)
            if not np.isfinite(inputs).all():
                raise ValueError("a frame holds NaN or infinity; the stream has not moved. Fill the gap, or reset().")
            Y, now = self._network.step(inputs, self._now)
        if not np.isfinite(Y).all():
            raise FloatingPointError(
                "the outputs are not finite: a frame holds numbers too large for this model, or units without bounds "
                "(relu, identity) have diverged. The stream has not moved: reset() it; scale its frames."
            )
        self._now, self.steps = now, np.asarray(self.steps + 1)
        if carries:
            self._known = last_known(x[None], self._known)
        return Y

    def _frame(self, frame: ArrayLike) -> Array:
        """Return a frame of every device as numbers."""
        shape = (*self._many, self._plan.n_features)
        check_columns(frame, self._plan.feature_names)
        try:
            x = np.asarray(frame)
        except ValueError:
            x = np.empty(0, object)
        if x.shape != shape or x.dtype.kind not in "fiub":
            raise ValueError(f"a frame has shape {shape} here and holds numbers; given {x.dtype} of shape {x.shape}.")
        return x


class Stream(Streams):
    """One stream of a model, which takes one frame (n_features,) at a time; its answers have no axis of devices."""

    def __init__(self, plan: Plan, network: RunningLayer | RunningDeep, end: Resumption | None = None):
        super().__init__(plan, network, None, end)
