"""The door: what a user hands in -> checked sequences and targets, or an error that says what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from echolearn.execution.executor import Remote
from echolearn.validation.values import finite_array

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Given:
    """Sequences as they came: X, one (steps, n_in) array each; kind says how to give answers back.

    kind: "one" (a 2-D array), "list", "stack" (a 3-D array) or "joined" (a 2-D array with lengths).
    """

    X: list[Array]
    kind: str

    @property
    def lengths(self) -> Array:
        return np.array([len(x) for x in self.X])

    def answer(self, parts: list[Array]) -> Any:
        """One array a sequence, in the form in which the sequences came."""
        if self.kind == "list":
            return parts
        if self.kind == "stack":
            return np.stack(parts)
        return parts[0] if self.kind == "one" else np.concatenate(parts)

    def split(self, y: Any) -> Any:
        """A per-step y in the same form, to one array a sequence."""
        if self.kind == "one":
            return [y]
        if self.kind == "joined":
            return np.split(y, np.cumsum(self.lengths)[:-1])
        return list(y)


def open_sequences(X: Any, lengths: Any = None, n_features: int | None = None, owner: str = "this network") -> Given:
    """A 2-D array (steps, features), a list of them, a 3-D array, or a 2-D array with `lengths`."""
    if sparse.issparse(X) or (isinstance(X, (list, tuple)) and any(sparse.issparse(x) for x in X)):
        raise TypeError("X is sparse; sequences must be dense arrays: pass X.toarray().")
    if isinstance(X, list) and len(X) and isinstance(X[0], Remote):
        given = Given(X, "list")  # on a cluster, and checked there
    elif _is_many(X):
        if lengths is not None:
            raise ValueError("lengths goes with one 2-D array of joined sequences; X is already a list of sequences.")
        if len(X) == 0:
            raise ValueError("X is an empty list; expected at least one sequence of shape (steps, features).")
        given = Given(
            [checked_sequence(x, f"sequence {i}") for i, x in enumerate(X)],
            "stack" if isinstance(X, np.ndarray) and X.dtype != object else "list",
        )
    else:
        whole = checked_sequence(X, "X")
        if lengths is None:
            given = Given([whole], "one")
        else:
            given = Given(np.split(whole, _ends(lengths, len(whole))[:-1]), "joined")
    widths = {x.shape[1] for x in given.X}
    if len(widths) > 1:
        raise ValueError(f"sequences have different numbers of features, {sorted(widths)}; expected one number.")
    if n_features is not None and widths != {n_features}:
        raise ValueError(
            f"X has {widths.pop()} features, but {owner} is expecting {n_features} features as input: the ones it was "
            "fitted with, time along the first axis."
        )
    return given


def _is_many(X: Any) -> bool:
    if isinstance(X, np.ndarray):
        return X.ndim == 3 or (X.dtype == object and X.ndim == 1 and len(X) > 0 and np.ndim(X[0]) == 2)
    if isinstance(X, (list, tuple)):
        return len(X) == 0 or any(np.ndim(x) >= 2 if hasattr(x, "ndim") else _depth(x) >= 2 for x in X)
    return False


def _depth(x: Any) -> int:
    """Nesting of plain lists, without asking NumPy to make an array of ragged ones."""
    depth = 0
    while isinstance(x, (list, tuple)) and len(x):
        x, depth = x[0], depth + 1
    return depth


def checked_sequence(x: Any, name: str) -> Array:
    """A (steps, features) array of finite floats in native byte order; not copied where it is one already."""
    if np.ma.is_masked(x):
        raise ValueError(f"{name} has masked entries; fill or drop the frames that lack a value.")
    if isinstance(x, np.ndarray):
        x = np.asarray(x)  # not a subclass, whose slices and products mean something else
    if (
        isinstance(x, np.ndarray)
        and x.ndim == 2
        and x.dtype in (np.float32, np.float64)
        and x.dtype.isnative
        and x.shape[0] > 0
        and x.shape[1] > 0
    ):
        with np.errstate(all="ignore"):
            if np.isfinite(x.sum()):  # cheap, and NaN or infinity cannot hide in a sum
                return x
    if isinstance(x, np.ndarray) and x.ndim == 1 and name != "X":
        raise ValueError(
            f"{name} has shape {x.shape}; expected (steps, features). For one feature a step pass x[:, None]."
        )
    if hasattr(x, "shape") and len(x.shape) == 2 and x.shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s): {name} has no steps; drop empty sequences.")
    try:
        checked: Array = check_array(x, dtype=[np.float64, np.float32], input_name=name)
    except (TypeError, ValueError, OverflowError) as problem:
        kind = TypeError if isinstance(problem, TypeError) else ValueError
        raise kind(
            f"{name} is not an array of shape (steps, features) with finite numbers"
            f"{', nor a list of such arrays' if name == 'X' else ''}. {problem}"
        ) from problem
    return checked.astype(checked.dtype.newbyteorder("="), copy=False)


def _ends(lengths: Any, total: int) -> Array:
    try:
        given = np.asarray(lengths)
    except ValueError:
        given = np.empty(0)
    whole = given.ndim == 1 and given.dtype.kind in "iu" and not (given < 1).any()
    if not whole or sum(given.tolist()) != total:
        added = f" with sum {sum(given.tolist())}" if whole else ""
        raise ValueError(
            f"lengths must be positive whole numbers that add up to the {total} rows of X; "
            f"given {lengths!r:.80}{added}."
        )
    return np.cumsum(given)


def check_has_time(given: Given) -> None:
    if given.lengths.max() == 1:
        raise ValueError(
            f"every sequence has one step (n_samples = {len(given.X)}): there is no time in this data. Time runs "
            "along the first axis of each (steps, features) array."
        )


def check_long_enough(given: Given, washout: int) -> None:
    short = np.flatnonzero(given.lengths <= washout)
    if len(short):
        raise ValueError(
            f"washout={washout}, but sequence {short[0]} has {given.lengths[short[0]]} steps and nothing of it would "
            "be left. Use a smaller washout, or drop sequences that short."
        )


def open_values(T: Any, given: Given, per_step: bool) -> list[Array]:
    """Target values as (steps, n_out), or (n_out,) where there is one row a sequence."""
    if not isinstance(T, (list, tuple)) and np.ndim(T) == 0:
        raise ValueError(f"T is {T!r:.80}; expected targets in the form of X.")
    entries = [_numbers(t) for t in ([T] if given.kind == "one" and per_step else T)]
    if len(entries) != len(given.X):
        raise ValueError(f"T has {len(entries)} entries, but X has {len(given.X)} sequences; expected one each.")
    for i, (t, x) in enumerate(zip(entries, given.X, strict=True)):
        if per_step and (t.ndim not in (1, 2) or len(t) != len(x)):
            raise ValueError(f"T of sequence {i} has shape {t.shape}; expected ({len(x)}, outputs), a row a step.")
        if not per_step and t.ndim != 1:
            raise ValueError(f"T of sequence {i} has shape {t.shape}; expected (outputs,), one row a sequence.")
    return [t[:, None] if per_step and t.ndim == 1 else t for t in entries]


def _numbers(t: Any) -> Array:
    return finite_array("T", t)


def open_targets(y: Any, given: Given) -> tuple[list[Any], bool]:
    """y as one entry a sequence, and whether it has an entry a step."""
    if y is None:
        raise ValueError("y is None: this estimator requires y to be passed, but the target y is None.")
    if sparse.issparse(y):
        raise TypeError("y is sparse; pass y.toarray().")
    n, total = len(given.X), int(given.lengths.sum())
    if given.kind in ("one", "joined"):
        y = _labels(y)
        if y.ndim == 0:
            raise ValueError(f"y is {y.tolist()!r:.80}; expected one label or value a step.")
        if len(y) == total:
            return list(given.split(y)), True
        if given.kind == "joined" and len(y) == n:
            return list(y), False
        raise ValueError(
            f"y has {len(y)} entries, but X has {total} steps: found input variables with inconsistent numbers of "
            "samples. Give one label or value a step."
        )
    if not hasattr(y, "__len__") or isinstance(y, (str, bytes, dict, set)) or getattr(y, "shape", True) == ():
        raise ValueError(f"y is {y!r:.80}; expected one entry a sequence.")
    if len(y) != n:
        raise ValueError(f"y has {len(y)} entries, but X has {n} sequences; expected one entry a sequence.")
    if isinstance(y, np.ndarray) and y.dtype != object and y.ndim == 1:
        return list(_labels(y)), False
    entries = [_labels(entry) for entry in y]
    if all(np.ndim(entry) == 0 for entry in entries):
        return list(_labels([entry[()] for entry in entries])), False
    if any(np.ndim(entry) == 0 for entry in entries):
        raise ValueError("y mixes sequences with one label and sequences with a label a step; use one form.")
    wrong = [i for i, entry in enumerate(entries) if len(entry) != len(given.X[i])]
    if not wrong:
        return entries, True
    if len({entry.shape for entry in entries}) == 1 and entries[0].ndim == 1 and entries[0].dtype.kind == "f":
        return entries, False
    i = wrong[0]
    raise ValueError(
        f"y[{i}] has {len(entries[i])} entries, but sequence {i} has {len(given.X[i])} steps; expected one label or "
        "value a step, or a single one for the whole sequence."
    )


def _labels(given: Any) -> Array:
    if np.ma.is_masked(given):
        raise ValueError("y has masked entries; fill or drop the steps that lack a target.")
    try:
        y: Array = np.asarray(given)
    except ValueError:
        raise ValueError(
            f"y has entries of different shapes: {given!r:.80}; expected one label or value each."
        ) from None
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity; remove or fill those entries.")
    if y.dtype.kind == "O" and any(e is None or (isinstance(e, float) and not np.isfinite(e)) for e in y.flat):
        raise ValueError("Input y contains NaN or infinity or None; remove or fill those entries.")
    if y.dtype.kind == "c":
        raise ValueError("Complex data not supported: y holds complex numbers.")
    return y


def flat(y: Sequence[Any], per_step: bool) -> Array:
    """All entries one after another."""
    try:
        return np.asarray(np.concatenate(y) if per_step else y)
    except (TypeError, ValueError):
        shapes = sorted({str(np.shape(entry)[1:] if per_step else np.shape(entry)) for entry in y})
        raise ValueError(f"y has entries of shapes {', '.join(shapes)[:80]}; expected one shape and kind.") from None


def check_finite(values: Array, what: str) -> None:
    # A sum of squares is four times as fast as a look at every number; where it is not finite, that still counts.
    if not np.isfinite(np.vdot(values, values)) and not np.isfinite(values).all():
        raise ValueError(
            f"{what} are not finite: X holds numbers too large for this dtype, or units without bounds (relu, "
            "identity) have run away. Scale X, use dtype='float64', or a smaller spectral_radius."
        )
