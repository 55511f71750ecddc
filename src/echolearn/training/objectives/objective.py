"""What the epoch loop needs of an objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from echolearn.modelfile.checkpoint import Shape
from echolearn.modelfile.layout import Facts, Tensors
from echolearn.validation import Array

Snapshot = TypeVar("Snapshot")  # the weights of an objective at one time
Pause = Callable[[], object]  # called where the state of training is complete and may be kept


class Objective(Protocol[Snapshot]):
    """What is minimised, and the weights while it is minimised.

    error_name: the name of its error in the history; step_size: shown in the history and in warnings; validates:
    whether there are held-out data; batch_size: sequences per mini-batch (None: one step per epoch, on all of them);
    lengths: the number of steps of each training sequence.
    """

    error_name: str
    step_size: float

    @property
    def validates(self) -> bool: ...

    @property
    def batch_size(self) -> int | None: ...

    @property
    def lengths(self) -> Array: ...

    def begin_epoch(self, pause: Pause) -> None:
        """Prepare for the steps of an epoch; `pause` may be called where the state can be kept."""

    def step(self, which: Array, done: float) -> tuple[float, float]:
        """Take a step on some sequences; return their total error and number of targets.

        done: epochs since the start of the training, with their fraction.
        """

    def end_epoch(self) -> None:
        """Complete an epoch after its steps."""

    def validation_error(self) -> float:
        """Return the error of the newest weights on the held-out data."""

    def measurements(self) -> dict[str, float]:
        """Return measurements of the last step, such as norms of gradients."""

    def row(self, number: int, measurements: dict[str, float], seconds: float) -> dict[str, float]:
        """Return the row of history of epoch `number` beside its errors; seconds: since the start."""

    def snapshot(self) -> Snapshot:
        """Return the newest weights; later steps must not change them."""

    def restart(self, snapshot: Snapshot) -> None:
        """Start again from a snapshot, with a smaller step size and an optimizer without memory."""

    def is_stable(self, snapshot: Snapshot) -> bool:
        """Return whether these weights give finite results."""

    def pack(self, name: str, snapshot: Snapshot) -> Tensors:
        """Return the arrays of a snapshot for a checkpoint, under names that begin with `name`."""

    def unpack(self, name: str, tensors: Tensors) -> Snapshot:
        """Return the snapshot that `pack` was given."""

    def shapes(self) -> dict[str, Shape]:
        """Return the shapes of all arrays that a checkpoint may hold, by name."""

    def state_dict(self, *, inside_epoch: bool) -> tuple[Tensors, Facts]:
        """Return arrays and plain values from which `load_state_dict` resumes to the bit."""

    def load_state_dict(self, tensors: Tensors, facts: Facts) -> None:
        """Resume from what `state_dict` returned."""
