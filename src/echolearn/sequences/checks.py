"""Checks of the numbers in X: a single sequence, the place of a gap, finite results; means and scales."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from sklearn.utils import check_array

from echolearn.execution.executor import Remote
from echolearn.sequences.answers import Form, TableForm, TablesForm
from echolearn.sequences.tables import holds_dates
from echolearn.validation import Array


def check_sequence(x: object, name: str, *, gaps: bool = False, places: Places | None = None, number: int = 0) -> Array:
    """Return a (steps, features) array of finite floats in native byte order; not a copy if it is one already.

    gaps: whether NaN is allowed too. places: the names of what stands in sequence `number`, for the error message.
    """
    if np.ma.is_masked(x):
        raise ValueError(f"{name} has masked entries; fill or drop the frames that lack a value.")
    if isinstance(x, np.ndarray):
        if x.dtype.kind in "MO" and holds_dates(x):
            raise ValueError(
                f"{name} holds dates; expected numbers. Leave the column of dates out; of a data frame, make it the "
                "index: X.set_index(NAME)."
            )
        x = np.asarray(x)  # not a subclass, whose slices and products mean something else
        if x.ndim == 2 and x.size and x.dtype in (np.float32, np.float64) and x.dtype.isnative:
            with np.errstate(all="ignore"):
                if np.isfinite(x.sum()):  # cheap, and NaN or infinity cannot hide in a sum
                    return x
        if x.ndim == 1 and name != "X":
            raise ValueError(
                f"{name} has shape {x.shape}; expected (steps, features). For one feature per step, pass x[:, None]."
            )
    if hasattr(x, "shape") and len(x.shape) == 2 and x.shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s): {name} has no steps; drop empty sequences.")
    try:
        finite = "allow-nan" if gaps else True
        checked: Array = check_array(x, dtype=[np.float64, np.float32], input_name=name, ensure_all_finite=finite)
    except (TypeError, ValueError, OverflowError) as problem:
        kind = TypeError if isinstance(problem, TypeError) else ValueError
        cure = " For one feature per step, pass X[:, None]." if getattr(x, "ndim", 0) == 1 else ""
        about = cure or _about_gaps(problem, x, places or Places(), number)
        raise kind(
            f"{name} is not an array of shape (steps, features) with finite numbers"
            f"{', nor a list of such arrays' if name == 'X' else ''}. {problem}{about}"
        ) from problem
    return checked.astype(checked.dtype.newbyteorder("="), copy=False)


def _about_gaps(problem: Exception, x: object, places: Places, number: int) -> str:
    """Return where the first NaN or infinity stands and what to do about it, if that is the problem."""
    if "NaN" not in str(problem) and "infinity" not in str(problem):
        return ""
    where = places.of_gap(x, number)
    if "NaN" not in str(problem):
        return where
    return (
        f"{where} An estimator with missing='carry' fills gaps with the last known value and tells the network where "
        "they were; missing='mean' fills them with the mean."
    )


def check_finite(values: Array, what: str) -> None:
    """Refuse results with NaN or infinity."""
    # A sum of squares is four times as fast as a look at every number; a sum that overflows is not yet a failure.
    if not np.isfinite(np.vdot(values, values)) and not np.isfinite(values).all():
        raise ValueError(
            f"{what} are not finite: X holds numbers too large for this dtype, or units without bounds (relu, "
            "identity) have diverged. Scale X to about 1; units without bounds need a smaller spectral radius."
        )


MAX_STANDARDISED = 1e290  # largest number that is standardised: forecasts and sums of such numbers stay finite


def mean_and_scale(table: Array, name: str) -> tuple[Array, Array]:
    """Return the mean and the standard deviation of each column; the scale of a constant column is 1.

    The square of 1e200 is infinite and that of 1e-200 is zero, so the numbers are first divided by a power of two that
    brings them near 1.
    """
    table = table.astype(np.float64)
    peak = np.abs(table).max(axis=0)
    if (peak > MAX_STANDARDISED).any():
        raise ValueError(f"{name} holds {peak.max():.3g}, so large that float64 has no room for sums; scale it first.")
    power = np.frexp(peak)[1]
    near_one = np.ldexp(table, -power)
    mean, scale = near_one.mean(axis=0), near_one.std(axis=0)
    return np.ldexp(mean, power), np.where(scale > 1e-12 * np.abs(mean), np.ldexp(scale, power), 1.0)


@dataclass(frozen=True, eq=False)
class Places:
    """The names of sequences, rows and columns, where they have any. columns: of a data frame; form: of X."""

    columns: Sequence[Hashable] | None = None
    form: Form | None = None

    def of_gap(self, x: object, number: int) -> str:
        """Return where the first NaN or infinity of sequence `number` stands, as a sentence; "" where there is none."""
        try:
            gaps = ~np.isfinite(np.asarray(x, np.float64))
        except (TypeError, ValueError):
            return ""
        if gaps.ndim != 2 or not gaps.any():
            return ""
        step, j = (int(place) for place in np.argwhere(gaps)[0])
        named = self.columns is not None and len(self.columns) == gaps.shape[1]
        column = repr(self.columns[j]) if named and self.columns is not None else str(j)
        return f" The first is in row {step}{self._label(number, step)}{self._sequence(number)}, column {column}."

    def _sequence(self, number: int) -> str:
        names = None if self.form is None else self.form.names
        return "" if names is None or number >= len(names) else f" of the sequence {names[number]!r:.60}"

    def _label(self, number: int, step: int) -> str:
        """Return the label that the index has for a row of one table; steps are counted in the order of time."""
        form = self.form
        if isinstance(form, TablesForm) and number < len(form.forms):
            form, number = form.forms[number], 0
        if not isinstance(form, TableForm) or form.index is None or number >= len(form.rows):
            return ""
        if type(form.index).__name__ == "RangeIndex" or step >= len(form.rows[number]):
            return ""
        label = form.index[form.rows[number][step]]
        shown = label[-1] if isinstance(label, tuple) else label
        return f" ({form.index.names[-1] or 'index'} {shown!s:.40})"


TENSOR = ("detach", "cpu", "numpy")  # the methods of a tensor of PyTorch


def as_array(x: object) -> object:
    """Return a tensor, or another object that NumPy can read, as an array; what it cannot read as it is."""
    if isinstance(x, (np.ndarray, list, tuple, str, bytes, Remote)):
        return x
    if all(hasattr(x, name) for name in TENSOR):
        try:
            return np.asarray(cast("Tensor", x).detach().cpu().numpy())
        except (TypeError, RuntimeError, ValueError) as problem:
            raise TypeError(
                f"NumPy cannot read a tensor of X or y: {problem!s:.120}. Pass x.to_dense().float(), or x.numpy()."
            ) from problem
    if hasattr(x, "__array__") and hasattr(x, "shape"):
        return np.asarray(x)
    return x


class Tensor(Protocol):
    """The part of PyTorch's tensors that is used here."""

    def detach(self) -> Tensor:
        """Return the tensor without gradient."""

    def cpu(self) -> Tensor:
        """Return the tensor in main memory."""

    def numpy(self) -> Array:
        """Return the tensor as an array."""
