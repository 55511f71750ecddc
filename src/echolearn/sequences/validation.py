"""Checks of what a user hands in: sequences and targets in any of their forms, or an error that says what to do."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_array

from echolearn.execution.executor import Remote
from echolearn.sequences.answers import AnswerList
from echolearn.sequences.arrangement import arrange
from echolearn.sequences.feature_columns import holds_dates
from echolearn.sequences.forms import Form
from echolearn.sequences.places import Places
from echolearn.sequences.tables import id_columns, is_table
from echolearn.sequences.targets import Target
from echolearn.sequences.unpacking import Unpacked, as_array, unpack
from echolearn.validation.array_types import Answers, Array, SequencesLike
from echolearn.validation.values import finite_array

if TYPE_CHECKING:
    import pandas as pd

MARKED = " (a classifier leaves out steps that are marked by a label of their own: ignore_label=)"


@dataclass(frozen=True, eq=False)
class InputSequences:
    """Checked sequences: X, one array (steps, n_in) each, and the form in which they were given.

    kind: "one" (a 2-D array), "list", "stack" (a 3-D array) or "joined" (a 2-D array with lengths). form: of another
    container, in which answers go back.
    """

    X: list[Array]
    kind: Literal["one", "list", "stack", "joined"]
    form: Form | None = None

    @property
    def lengths(self) -> Array:
        """The number of steps of each sequence."""
        return np.array([len(x) for x in self.X])

    @property
    def names(self) -> list[Hashable] | None:
        """The names of the sequences, if they have any."""
        return None if self.form is None else self.form.names

    def in_given_form(self, results: list[Array]) -> Answers:
        """Return results, one array per sequence, in the form in which the sequences were given."""
        if self.form is not None:
            return cast("Answers", self.form.per_step(results))
        if self.kind == "list":
            return AnswerList(results)
        if self.kind == "stack":
            return np.stack(results)
        return results[0] if self.kind == "one" else np.concatenate(results)

    def per_sequence(self, results: Array) -> Answers:
        """Return results, one entry or row per sequence, in the form in which the sequences were given."""
        return results if self.form is None else cast("Answers", self.form.per_sequence(results))

    def split(self, y: Answers) -> list[Array]:
        """Return a y with one entry per step, in the form of the sequences, as one array per sequence."""
        return self.parts(y if self.form is None else cast("Answers", self.form.targets(y)))

    def parts(self, y: Answers) -> list[Array]:
        """Return a y with one entry per step, already out of its container, as one array per sequence."""
        if self.kind == "one":
            return [np.asarray(y)]
        if self.kind == "joined":
            return np.split(np.asarray(y), np.cumsum(self.lengths)[:-1])
        return list(y)


def open_sequences(
    X: SequencesLike,
    lengths: ArrayLike | None = None,
    n_features: int | None = None,
    owner: str = "this network",
    *,
    gaps: bool = False,
    layout: str = "time_first",
) -> InputSequences:
    """Check sequences: a 2-D array (steps, features), a list of them, a 3-D array, or a 2-D array with `lengths`.

    They may be in other containers (`unpack`), and in another layout (`layouts.choose_layout`). n_features: the number
    of features that the `owner` expects, if it is known. gaps: whether NaN is allowed.
    """
    unpacked = unpack(X)
    arranged = arrange(unpacked, layout, lengths, n_features)
    data, lengths = arranged.data, arranged.lengths
    check = partial(check_sequence, gaps=gaps, places=Places(_columns(unpacked, layout), arranged.form))
    if arranged.form is None:
        _refuse_one_axis(data, n_features, layout)
    given = _remote_sequences(data) or _several_sequences(data, lengths, check) or _one_array(data, lengths, check)
    given = given if arranged.form is None else replace(given, form=arranged.form)
    widths = {x.shape[1] for x in given.X}
    if len(widths) > 1:
        turned = len({len(x) for x in given.X}) == 1
        cure = " Their first axes are of one length: if these are channels, pass [x.T for x in X]." if turned else ""
        raise ValueError(f"sequences have different numbers of features, {sorted(widths)}; expected one number.{cure}")
    if n_features is not None and widths != {n_features}:
        _refuse_width(given, n_features, owner, layout)
    return given


def _refuse_one_axis(data: object, n_features: int | None, layout: str) -> None:
    """Refuse numbers along one axis: one series of one feature, or one frame of a network that is fitted."""
    numbers = isinstance(data, (list, tuple)) and len(data) and all(isinstance(v, (int, float)) for v in data)
    x = np.asarray(data) if numbers else data
    if not isinstance(x, np.ndarray) or x.ndim != 1 or x.dtype.kind not in "fiub" or layout == "rows":
        return
    given = f"X has shape {x.shape}; expected (steps, {n_features or 'features'}): Expected 2D array, got 1D array."
    if n_features is None or n_features == 1:
        raise ValueError(f"{given} Reshape your data: for one series of one feature, pass X[:, None].")
    if len(x) == n_features:
        raise ValueError(
            f"{given} Reshape your data: for one step, pass X[None]. To give one step after another to a network that "
            "keeps its state, use esn.stream() and stream.predict(x)."
        )
    raise ValueError(f"{given} Reshape your data: give the {n_features} features of the fit at each step, as columns.")


def _columns(unpacked: Unpacked, layout: str) -> list[Hashable] | None:
    """Return the names of the features of a data frame, if X was one."""
    steps = unpacked.features is None or (layout == "rows" and unpacked.table)  # its columns are steps
    return None if steps else list(cast("pd.DataFrame", unpacked.features).columns)


def _refuse_width(given: InputSequences, n_features: int, owner: str, layout: str) -> NoReturn:
    """Refuse sequences with another number of features than the owner expects."""
    turned = all(len(x) == n_features for x in given.X)
    found = "first" if layout == "channels_first" else "last"
    how = {"one": "X.T", "stack": "X.transpose(0, 2, 1)"}.get(given.kind, "[x.T for x in X]")
    cure = f" The other axis has {n_features}: pass {how}." if turned and given.form is None else ""
    raise ValueError(
        f"X has {given.X[0].shape[1]} features, but {owner} is expecting {n_features} features as input: the ones it "
        f"was fitted with, along the {found} axis, time along the {'last' if found == 'first' else 'first'}.{cure}"
    )


def _remote_sequences(X: object) -> InputSequences | None:
    """Return sequences on a cluster, which were checked there, or None for others."""
    return InputSequences(X, "list") if isinstance(X, list) and len(X) and isinstance(X[0], Remote) else None


def _several_sequences(X: object, lengths: ArrayLike | None, check: Callable[..., Array]) -> InputSequences | None:
    """Return the sequences of a list or a 3-D array, or None for others."""
    if not _is_several(X):
        return None
    assert isinstance(X, (np.ndarray, list, tuple))
    if lengths is not None:
        raise ValueError("lengths goes with one 2-D array of joined sequences; X is already a list of sequences.")
    if len(X) == 0:
        raise ValueError("X is an empty list; expected at least one sequence of shape (steps, features).")
    stack = isinstance(X, np.ndarray) and X.dtype != object
    checked = [check(x, f"sequence {i}", number=i) for i, x in enumerate(X)]
    return InputSequences(checked, "stack" if stack else "list")


def _one_array(X: object, lengths: ArrayLike | None, check: Callable[..., Array]) -> InputSequences:
    """Return the sequence, or the joined sequences, of a 2-D array."""
    whole = check(X, "X")
    if lengths is None:
        return InputSequences([whole], "one")
    return InputSequences(np.split(whole, _ends(lengths, len(whole))[:-1]), "joined")


def _is_several(X: object) -> bool:
    """Return whether X is a list of sequences or a 3-D array, rather than one 2-D array."""
    if isinstance(X, np.ndarray):
        return X.ndim == 3 or (X.dtype == object and X.ndim == 1 and len(X) > 0 and np.ndim(X[0]) == 2)
    if isinstance(X, (list, tuple)):
        return len(X) == 0 or any(np.ndim(x) >= 2 if hasattr(x, "ndim") else _depth(x) >= 2 for x in X)
    return False


def _depth(x: object) -> int:
    """Return how deep plain lists are nested; NumPy refuses to make an array of ragged ones."""
    depth = 0
    while isinstance(x, (list, tuple)) and len(x):
        x, depth = x[0], depth + 1
    return depth


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


def _ends(lengths: ArrayLike, total: int) -> Array:
    """Return the end of each of the joined sequences."""
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


def check_has_time(given: InputSequences) -> None:
    """Refuse data in which every sequence has a single step."""
    if given.lengths.max() == 1:
        raise ValueError(
            f"every sequence has one step (n_samples = {len(given.X)}): there is no time in this data. Time runs "
            "along the first axis of each (steps, features) array. If it runs along the last, set "
            "layout='channels_first'."
        )


def check_long_enough(given: InputSequences, washout: int) -> None:
    """Refuse sequences of which the washout leaves nothing."""
    short = np.flatnonzero(given.lengths <= washout)
    if len(short):
        raise ValueError(
            f"washout={washout}, but sequence {short[0]} has {given.lengths[short[0]]} steps and nothing of it would "
            "be left. Use a smaller washout, or drop sequences that short."
        )


def open_values(
    T: ArrayLike | Sequence[ArrayLike], given: InputSequences, per_step: bool, weights: Sequence[Array] | None = None
) -> list[Array]:
    """Check target values; return (steps, n_out) per sequence, or (n_out,) with one target per sequence.

    weights: those of the targets, as `open_weights` returns them; targets of weight 0 may be NaN.
    """
    if not isinstance(T, (list, tuple)) and np.ndim(cast("ArrayLike", T)) == 0:
        raise ValueError(f"T is {T!r:.80}; expected targets in the form of X.")
    several = [T] if given.kind == "one" and per_step else cast("Sequence[object]", T)
    if weights is not None and len(weights) == len(several):
        several = [_zeros_for_missing(t, w) for t, w in zip(several, weights, strict=True)]
    entries = [finite_array("T", t) for t in several]
    if len(entries) != len(given.X):
        raise ValueError(f"T has {len(entries)} entries, but X has {len(given.X)} sequences; expected one each.")
    for i, (t, x) in enumerate(zip(entries, given.X, strict=True)):
        if per_step and (t.ndim not in (1, 2) or len(t) != len(x)):
            raise ValueError(f"T of sequence {i} has shape {t.shape}; expected ({len(x)}, outputs), one row per step.")
        if not per_step and t.ndim != 1:
            raise ValueError(f"T of sequence {i} has shape {t.shape}; expected (outputs,), one row per sequence.")
    return [t[:, None] if per_step and t.ndim == 1 else t for t in entries]


def _zeros_for_missing(t: object, w: Array) -> object:
    """Return the targets of a sequence with zeros for NaN of weight 0; what does not fit is left as it is."""
    try:
        given = np.asarray(t)
    except ValueError:
        return t
    if given.dtype.kind != "f" or given.shape[: w.ndim] != w.shape:
        return t
    counts = (w > 0).reshape(w.shape + (1,) * (given.ndim - w.ndim))
    return np.where(counts | ~np.isnan(given), given, 0.0)


def open_targets(y: object, given: InputSequences, *, missing: bool = False) -> tuple[list[Target], bool]:
    """Check targets; return one entry per sequence, and whether each has one target per step.

    missing: whether NaN, and None among labels, may stand for a target that is missing.
    """
    columns = list(cast("pd.DataFrame", y).columns) if is_table(y) else []
    if len(columns) > 1 and (ids := id_columns(cast("pd.DataFrame", y))):
        rest = [name for name in columns if name not in ids]
        raise ValueError(
            f"y is a table with the column {ids[0]!r}, which names sequences and is not a target. Pass the column of "
            f"the targets alone, y[{rest[-1] if rest else columns[-1]!r}], in the order of X."
        )
    try:
        return _opened_targets(y, given, missing)
    except ValueError as problem:
        if len(columns) < 2:
            raise
        raise ValueError(
            f"{problem} y is a table with the columns {columns!r:.200}; if one of them is the target, pass "
            f"y[{columns[-1]!r}]."
        ) from problem


def _opened_targets(y: object, given: InputSequences, missing: bool) -> tuple[list[Target], bool]:
    if y is None:
        raise ValueError("y is None: this estimator requires y to be passed, but the target y is None.")
    if sparse.issparse(y):
        raise TypeError("y is sparse; pass y.toarray().")
    y = as_array(y if given.form is None else given.form.targets(y))
    if given.kind in ("one", "joined"):
        return _targets_of_one_array(_labels(y, missing), given)
    if not hasattr(y, "__len__") or isinstance(y, (str, bytes, dict, set)) or getattr(y, "shape", True) == ():
        raise ValueError(f"y is {y!r:.80}; expected one entry per sequence.")
    n = len(given.X)
    if len(y) != n:
        raise ValueError(f"y has {len(y)} entries, but X has {n} sequences; {_forms_of_targets(len(y), given)}")
    if isinstance(y, np.ndarray) and y.dtype != object and y.ndim == 1:
        return list(_labels(y, missing)), False
    entries = [_labels(entry, missing) for entry in cast("Sequence[object]", y)]
    if all(np.ndim(entry) == 0 for entry in entries):
        return list(_labels([entry[()] for entry in entries], missing)), False
    if any(np.ndim(entry) == 0 for entry in entries):
        raise ValueError("y mixes sequences with a single label and sequences with one label per step; use one form.")
    wrong = [i for i, entry in enumerate(entries) if len(entry) != len(given.X[i])]
    if not wrong:
        return list(entries), True
    rows = _rows_of_labels(y, entries, int(given.lengths.min()))
    if rows is not None:
        return rows, False
    if len({entry.shape for entry in entries}) == 1 and entries[0].ndim == 1 and entries[0].dtype.kind == "f":
        return list(entries), False
    raise ValueError(_wrong_length(entries, given, wrong))


def _wrong_length(entries: Sequence[Array], given: InputSequences, wrong: list[int]) -> str:
    """Return the refusal of targets of other lengths than their sequences; wrong: the numbers of these sequences."""
    i, names = wrong[0], given.names
    name = "" if names is None else f" ({names[i]!r:.60})"
    text = (
        f"y[{i}] has {len(entries[i])} entries, but sequence {i}{name} has {len(given.X[i])} steps; expected one label "
        "or value per step, or a single one for the whole sequence."
    )
    if len(wrong) == len(entries) and all(_is_row_of_labels(entry, entries[0]) for entry in entries):
        return (
            f"{text} Give a row of 0 and 1 for each sequence, several labels at once, as an array of shape (1, labels)."
        )
    others = (
        f"The other {len(entries) - len(wrong)} are as long as their sequences. " if len(wrong) < len(entries) else ""
    )
    return f"{text} {others}Look whether y[{i}] belongs to this sequence, and give it {len(given.X[i])} entries."


def _is_row_of_labels(entry: Array, like: Array) -> bool:
    """Return whether targets may be several labels of a whole sequence: 0 and 1, as many as others have."""
    return entry.shape == like.shape and entry.dtype.kind in "iub" and bool(((entry == 0) | (entry == 1)).all())


def _forms_of_targets(found: int, given: InputSequences) -> str:
    """Return which forms y may have beside several sequences; found: how many entries it has."""
    n, total = len(given.X), int(given.lengths.sum())
    forms = (
        f"expected one entry per sequence: {n} labels or values, one for each, or a list of {n} arrays with one label "
        "or value per step."
    )
    if found == total:
        return f"{forms} There are as many steps in all: pass np.split(y, np.cumsum([len(x) for x in X])[:-1])."
    return f"{forms} Look which {'sequence has no label' if found < n else 'label has no sequence'}."


def _rows_of_labels(y: object, entries: Sequence[Array], shortest: int) -> list[Target] | None:
    """Return one row of 0 and 1 per sequence, several labels each, or None for others.

    They come as entries of shape (1, labels), or as one 2-D array whose columns are so few that they cannot be taken
    for the steps of the `shortest` sequence, some of which lack a label.
    """
    widths = {entry.shape for entry in entries}
    marked = len(widths) == 1 and entries[0].ndim == 2 and len(entries[0]) == 1
    plain = isinstance(y, np.ndarray) and y.ndim == 2 and 1 < y.shape[1] <= shortest // 2
    if not (marked or plain) or not all(e.dtype.kind in "iub" and ((e == 0) | (e == 1)).all() for e in entries):
        return None
    return [entry[0] if marked else entry for entry in entries]


def _targets_of_one_array(y: Array, given: InputSequences) -> tuple[list[Target], bool]:
    """Return the targets of the sequences of a 2-D array, and whether there is one per step."""
    if y.ndim == 0:
        raise ValueError(f"y is {y.tolist()!r:.80}; expected one label or value per step.")
    total = int(given.lengths.sum())
    if len(y) == total:
        return list(given.parts(y)), True
    if given.kind == "joined" and len(y) == len(given.X):
        return list(y), False
    also = f", or one per sequence ({len(given.X)})" if given.kind == "joined" else ""
    raise ValueError(
        f"y has {len(y)} entries, but X has {total} steps: found input variables with inconsistent numbers of "
        f"samples. Give one label or value per step ({total}){also}."
    )


def _labels(given: object, missing: bool) -> Array:
    """Return labels or values as an array; NaN and None are refused unless they may stand for missing targets."""
    if np.ma.is_masked(given):
        raise ValueError("y has masked entries; fill or drop the steps that lack a target.")
    try:
        y: Array = np.asarray(as_array(given))
    except ValueError:
        raise ValueError(
            f"y has entries of different shapes: {given!r:.80}; expected one label or value each."
        ) from None
    if y.dtype.kind == "f" and not (np.isfinite(y) | (missing & np.isnan(y))).all():
        cure = "" if missing else MARKED
        raise ValueError(f"Input y contains NaN or infinity; remove or fill those entries{cure}.")
    if y.dtype.kind == "O" and any(_is_no_label(e, missing) for e in y.flat):
        cure = "" if missing else MARKED
        raise ValueError(f"Input y contains NaN or infinity or None; remove or fill those entries{cure}.")
    if y.dtype.kind == "c":
        raise ValueError("Complex data not supported: y holds complex numbers.")
    return y


def _is_no_label(value: object, missing: bool) -> bool:
    """Return whether an object is None, NaN or infinity; None and NaN may stand for missing targets."""
    if value is None:
        return not missing
    return isinstance(value, float) and not (math.isfinite(value) or (missing and math.isnan(value)))


def concatenate_targets(y: Sequence[Target], per_step: bool) -> Array:
    """Return the targets of all sequences as one array."""
    try:
        return np.asarray(np.concatenate(y) if per_step else y)
    except (TypeError, ValueError):
        shapes = sorted({str(np.shape(entry)[1:] if per_step else np.shape(entry)) for entry in y})
        raise ValueError(f"y has entries of shapes {', '.join(shapes)[:80]}; expected one shape and kind.") from None


def check_finite(values: Array, what: str) -> None:
    """Refuse results with NaN or infinity."""
    # A sum of squares is four times as fast as a look at every number; a sum that overflows is not yet a failure.
    if not np.isfinite(np.vdot(values, values)) and not np.isfinite(values).all():
        raise ValueError(
            f"{what} are not finite: X holds numbers too large for this dtype, or units without bounds (relu, "
            "identity) have diverged. Scale X, use dtype='float64', or a smaller spectral_radius."
        )
