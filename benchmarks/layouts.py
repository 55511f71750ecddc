"""Data layouts as users have them: how each is read, or how it is refused.

    python -m benchmarks.layouts

Every layout is made from the same sequences, fitted by a small `ESNClassifier` if it has one label per step and by a
`SeriesClassifier` if it has one per series, and compared with the fit to a plain list of (steps, features) arrays: the
same readout and the same answers mean that it was read right. `LAYOUTS` is the table; tests/sequences/test_layouts.py
checks every row of it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from echolearn import ESNClassifier, SeriesClassifier
from echolearn.exceptions import InputWarning

SMALL = {"hidden_units": 5, "reservoir": {"connections": 2}, "learn": "none", "readout": "ridge", "ridge": 1.0}
CASES, STEPS, CHANNELS = 12, 30, 3
RIGHT, WARNED, REFUSED, WRONG = "read right", "read right, and said so", "refused", "MISREAD"


class Tensor:
    """Stands for a tensor of PyTorch: NumPy cannot read it before it is detached and in main memory."""

    def __init__(self, values: Any):
        self.values = np.asarray(values)
        self.shape, self.ndim = self.values.shape, self.values.ndim

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> Any:
        return self.values


class ArrayLike:
    """Stands for an array of JAX, TensorFlow, CuPy or xarray: NumPy reads it by __array__."""

    def __init__(self, values: Any):
        self.values = np.asarray(values)
        self.shape, self.ndim, self.dtype = self.values.shape, self.values.ndim, self.values.dtype

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype=dtype)


class PolarsFrame:
    """Stands for a data frame of polars: columns, but no index."""

    def __init__(self, columns: Mapping[str, Any]):
        self.data = {name: np.asarray(values) for name, values in columns.items()}
        self.columns = list(columns)
        self.shape = (len(next(iter(self.data.values()))), len(columns))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, name: Any) -> Any:
        return self.data[name] if isinstance(name, str) else PolarsFrame({n: self.data[n] for n in name})

    def to_numpy(self) -> Any:
        return np.column_stack(list(self.data.values()))


class XarrayDataset:
    """Stands for a Dataset of xarray."""

    data_vars = ("a", "b")


def waves(lengths: Any, channels: int = CHANNELS, seed: int = 0) -> list[Any]:
    """Return smooth sequences (steps, channels): two classes of frequencies, with random phases."""
    rng = np.random.default_rng(seed)
    made = []
    for i, n in enumerate(lengths):
        phases, t = rng.uniform(0, 6, channels), np.arange(n)[:, None]
        made.append(np.sin(t * (0.2 + 0.2 * (i % 2)) + phases) + 0.05 * rng.standard_normal((n, channels)))
    return made


EQUAL = waves([STEPS] * CASES)
RAGGED = waves(range(20, 20 + 2 * CASES, 2), seed=1)
SINGLE = [x[:, :1] for x in EQUAL]
SINGLE_RAGGED = [x[:, :1] for x in RAGGED]
ONE = [waves([200], seed=2)[0]]
NOISE = [np.random.default_rng(3).standard_normal((200, 10))]
SQUARE = list(np.random.default_rng(7).standard_normal((6, 9, 9)))
SHORT = [np.random.default_rng(8).standard_normal((n, 9)) for n in (3, 4, 5, 6, 7, 8) * 2]  # fewer steps than features
SPECTRA = [np.cumsum(np.cumsum(np.random.default_rng(4).standard_normal((200, 40)), axis=0), axis=1) / 100]
LABELS = [("low", "high")[i % 2] for i in range(CASES)]
IDS = [f"case {i}" for i in range(CASES)]
DATES = pd.date_range("2024-01-01", periods=200, freq="h")


def steps_of(X: list[Any]) -> list[Any]:
    """Return one label per step: the sign of the first feature."""
    return [np.where(x[:, 0] > x[:, 0].mean(), "up", "down") for x in X]


def panel(X: list[Any], names: Any = ("instance", "time")) -> Any:
    """Return sequences as one data frame with an index (sequence, time)."""
    pairs = [(i, t) for i, x in zip(IDS, X, strict=False) for t in range(len(x))]
    index = pd.MultiIndex.from_tuples(pairs, names=names)
    return pd.DataFrame(np.concatenate(X), index=index, columns=["a", "b", "c"][: X[0].shape[1]])


def padded(X: list[Any]) -> Any:
    """Return sequences as a 3-D array, NaN behind their ends."""
    out = np.full((len(X), max(map(len, X)), X[0].shape[1]), np.nan)
    for row, x in zip(out, X, strict=True):
        row[: len(x)] = x
    return out


def padded_labels(X: list[Any]) -> Any:
    """Return one label per step as a 2-D array, "?" behind the ends."""
    out = np.full((len(X), max(map(len, X))), "?", dtype="U4")
    for row, y in zip(out, steps_of(X), strict=True):
        row[: len(y)] = y
    return out


def masked(X: list[Any]) -> Any:
    """Return sequences as a masked 3-D array, 0 behind their ends."""
    filled = padded(X)
    return np.ma.masked_array(np.nan_to_num(filled), np.isnan(filled))


def nested(X: list[Any]) -> Any:
    """Return sequences as sktime's nested_univ: a data frame with a Series in every cell."""
    return pd.DataFrame(
        {f"dim_{j}": [pd.Series(x[:, j]) for x in X] for j in range(X[0].shape[1])}, index=IDS[: len(X)]
    )


def objects(X: list[Any]) -> Any:
    """Return sequences as a 1-D array of objects."""
    out = np.empty(len(X), object)
    out[:] = X
    return out


def cells(X: list[Any]) -> Any:
    """Return sequences as an array (cases, channels) of 1-D series."""
    out = np.empty((len(X), X[0].shape[1]), object)
    for i, x in enumerate(X):
        for j in range(x.shape[1]):
            out[i, j] = x[:, j]
    return out


def shuffled(frame: Any, seed: int = 0) -> Any:
    """Return a table or Series with its rows in another order."""
    return frame.iloc[np.random.default_rng(seed).permutation(len(frame))]


def long(X: list[Any]) -> Any:
    """Return sequences as a long data frame with columns for sequence and time, in the order of time."""
    return panel(X, ("id", "time")).reset_index().sort_values(["time", "id"], ignore_index=True)


def dated(x: Any, index: Any = DATES) -> Any:
    """Return one sequence as a data frame with an index of dates."""
    return pd.DataFrame(x, index=index, columns=["a", "b", "c"])


@dataclass(frozen=True)
class Layout:
    """A way in which data come.

    make: X and y. like: the sequences and the targets that must be read. more: `layout` or `lengths`. expected: RIGHT,
    WARNED or REFUSED; words: in the warning or the error. answer: the type of predictions. series: whether there is one
    label per series, which a `SeriesClassifier` learns.
    """

    name: str
    make: Callable[[], tuple[Any, Any]]
    like: tuple[list[Any], list[Any]] | None = None
    expected: str = RIGHT
    words: str = ""
    answer: type = list
    more: dict[str, Any] = field(default_factory=dict)
    series: bool = True


def right(name: str, make: Callable[[], tuple[Any, Any]], like: Any, answer: type = np.ndarray, **more: Any) -> Layout:
    """Return a layout that is read without a word."""
    return Layout(name, make, like, RIGHT, answer=answer, more=more, series=_per_series(like))


def said(name: str, make: Callable[[], tuple[Any, Any]], like: Any, words: str, answer: type = np.ndarray) -> Layout:
    """Return a layout that is read with a warning."""
    return Layout(name, make, like, WARNED, words, answer, series=_per_series(like))


def refused(name: str, make: Callable[[], tuple[Any, Any]], words: str, *, series: bool = True, **more: Any) -> Layout:
    """Return a layout that is refused."""
    return Layout(name, make, None, REFUSED, words, more=more, series=series)


def _per_series(like: tuple[list[Any], list[Any]]) -> bool:
    """Return whether there is one label per series."""
    return np.ndim(like[1][0]) == 0


A, R, S, SR = (EQUAL, LABELS), (RAGGED, LABELS), (SINGLE, LABELS), (SINGLE_RAGGED, LABELS)
AS, RS, SRS, ONES = ((X, steps_of(X)) for X in (EQUAL, RAGGED, SINGLE_RAGGED, ONE))
BY_NAME = tuple([values[i] for i in np.argsort(IDS)] for values in R)  # a draw of units sees series in their order
TF, CF = "layout='time_first'", "layout='channels_first'"


def _noisy_rows() -> Any:
    return np.random.default_rng(5).standard_normal((CASES, STEPS)), LABELS


def _integers(dtype: str) -> tuple[list[Any], list[Any]]:
    return [np.round(8 * np.abs(x)).astype(dtype) for x in RAGGED], LABELS


def _long_labels() -> Any:
    labels = pd.Series(np.concatenate(RS[1]), panel(RAGGED, ("id", "time")).index)
    return labels.loc[pd.MultiIndex.from_frame(long(RAGGED)[["id", "time"]])].to_numpy()


def _with_time() -> Any:
    return pd.DataFrame(ONE[0], columns=["a", "b", "c"]).assign(time=np.arange(200.0))


ARRAYS = [
    right("list of (steps, features), one label each", lambda: R, R),
    right("list of (steps, features), labels per step", lambda: RS, RS, list),
    right("tuple of (steps, features)", lambda: (tuple(RAGGED), tuple(LABELS)), R),
    right("nested lists", lambda: ([x.tolist() for x in RAGGED], LABELS), R),
    right("3-D array (cases, steps, features)", lambda: (np.stack(EQUAL), np.array(LABELS)), A),
    right("3-D array, labels (cases, steps)", lambda: (np.stack(EQUAL), np.stack(AS[1])), AS),
    refused(
        "aeon numpy3D (cases, channels, timepoints)",
        lambda: (np.stack(EQUAL).swapaxes(1, 2), np.array(LABELS)),
        f"Set {TF} or {CF}",
    ),
    right(
        "aeon numpy3D, layout='channels_first'",
        lambda: (np.stack(EQUAL).swapaxes(1, 2), LABELS),
        A,
        layout="channels_first",
    ),
    right("aeon numpy3D, labels per timepoint", lambda: (np.stack(EQUAL).swapaxes(1, 2), np.stack(AS[1])), AS),
    right("aeon numpy3D of one channel (cases, 1, timepoints)", lambda: (np.stack(SINGLE).swapaxes(1, 2), LABELS), S),
    right("aeon list of (channels, timepoints) of different lengths", lambda: ([x.T for x in RAGGED], LABELS), R),
    refused(
        "aeon list of (channels, timepoints) of one length", lambda: ([x.T for x in EQUAL], LABELS), f"{TF} or {CF}"
    ),
    right(
        "aeon list of one length, layout='channels_first'",
        lambda: ([x.T for x in EQUAL], LABELS),
        A,
        layout="channels_first",
    ),
    right("aeon list, labels per timepoint", lambda: ([x.T for x in RAGGED], RS[1]), RS, list),
    right("UCR 2-D (cases, timepoints), one label per row", lambda: (np.stack(SINGLE)[:, :, 0], LABELS), S),
    right("UCR 2-D, layout='rows'", lambda: (np.stack(SINGLE)[:, :, 0], LABELS), S, layout="rows"),
    right("UCR 2-D of different lengths, NaN behind them", lambda: (padded(SINGLE_RAGGED)[:, :, 0], LABELS), SR),
    right("UCR 2-D of noise, more columns than rows", _noisy_rows, ([x[:, None] for x in _noisy_rows()[0]], LABELS)),
    right(
        "UCR 2-D, as many columns as rows",
        lambda: (np.stack(SINGLE)[:, :CASES, 0], LABELS),
        ([x[:CASES] for x in SINGLE], LABELS),
    ),
    right("UCR 2-D as lists of numbers", lambda: (np.stack(SINGLE)[:, :, 0].tolist(), LABELS), S),
    refused("UCR 2-D turned (timepoints, cases)", lambda: (np.stack(SINGLE)[:, :, 0].T, LABELS), "Pass X.T"),
    refused(
        "UCR 2-D, labels per timepoint", lambda: (np.stack(SINGLE)[:, :, 0], np.stack(steps_of(SINGLE))), "Use ESN"
    ),
    right("one series (steps, features), labels per step", lambda: (ONE[0], ONES[1][0]), ONES),
    right(
        "one series of 10 features of noise, labels per step",
        lambda: (NOISE[0], steps_of(NOISE)[0]),
        (NOISE, steps_of(NOISE)),
    ),
    right(
        "one series of 40 smooth features, labels per step",
        lambda: (SPECTRA[0], steps_of(SPECTRA)[0]),
        (SPECTRA, steps_of(SPECTRA)),
    ),
    refused(
        "one series (channels, timepoints), labels per timepoint", lambda: (ONE[0].T, ONES[1][0]), "X.T", series=False
    ),
    refused("one 1-D series", lambda: (ONE[0][:, 0], ONES[1][0]), "X[:, None]", series=False),
    right("list of 1-D series of different lengths", lambda: ([x[:, 0] for x in SINGLE_RAGGED], LABELS), SR),
    right("list of 1-D series of one length", lambda: ([x[:, 0] for x in SINGLE], LABELS), S),
    right("list of 1-D series, labels per step", lambda: ([x[:, 0] for x in SINGLE_RAGGED], SRS[1]), SRS, list),
    right("lists of numbers of different lengths", lambda: ([x[:, 0].tolist() for x in SINGLE_RAGGED], LABELS), SR),
    right(
        "list of short 1-D arrays, one label each",
        lambda: (list(NOISE[0][:12, :3]), LABELS),
        ([x[:, None] for x in NOISE[0][:12, :3]], LABELS),
    ),
    refused(
        "list of 1-D arrays for a network with labels per step: series, or steps?",
        lambda: (list(NOISE[0][:12, :3]), LABELS),
        "numpy.array(X)",
        series=False,
    ),
    refused(
        "list of 1-D features, labels per step", lambda: (list(ONE[0].T), ONES[1][0]), "column_stack", series=False
    ),
    refused("more features than steps (12, 5, 9)", lambda: (NOISE[0][:54].reshape(12, 5, 9), LABELS), f"{TF} or {CF}"),
    right(
        "more features than steps (12, 5, 9), layout='time_first'",
        lambda: (NOISE[0][:54].reshape(12, 5, 9), LABELS),
        (list(NOISE[0][:54].reshape(12, 5, 9)), LABELS),
        layout="time_first",
    ),
    said(
        "as many features as steps (6, 9, 9), labels per step",
        lambda: (np.stack(SQUARE), np.stack(steps_of(SQUARE))),
        (SQUARE, steps_of(SQUARE)),
        f"Set {TF} to confirm it, or {CF}",
    ),
    refused("one label per series for a network with labels per step", lambda: A, "Use SeriesClassifier", series=False),
    refused(
        "aeon numpy3D, one label per case, for a network with labels per step",
        lambda: (np.stack(EQUAL).swapaxes(1, 2), LABELS),
        "Use SeriesClassifier",
        series=False,
    ),
    refused("labels per step for a classifier of series", lambda: AS, "Use ESNClassifier"),
    right(
        "joined 2-D array with lengths=", lambda: (np.concatenate(RAGGED), LABELS), R, lengths=[len(x) for x in RAGGED]
    ),
    right("3-D array, NaN behind the ends", lambda: (padded(RAGGED), LABELS), R),
    right(
        "3-D array, NaN behind the ends, labels per step",
        lambda: (padded(RAGGED), padded_labels(RAGGED)),
        RS,
        np.ma.MaskedArray,
    ),
    right(
        "3-D array (cases, channels, timepoints), NaN behind the ends",
        lambda: (padded(RAGGED).swapaxes(1, 2), LABELS),
        R,
    ),
    refused(
        "3-D array of more features than steps, NaN behind the ends",
        lambda: (padded(SHORT), LABELS),
        f"{TF} or {CF}",
    ),
    right(
        "masked 3-D array, masked behind the ends",
        lambda: (masked(RAGGED), padded_labels(RAGGED)),
        RS,
        np.ma.MaskedArray,
    ),
    right(
        "padded 3-D array with lengths=",
        lambda: (np.nan_to_num(padded(RAGGED)), LABELS),
        R,
        lengths=[len(x) for x in RAGGED],
    ),
    refused(
        "masked array, masked inside",
        lambda: ([np.ma.masked_array(x, x > 1) for x in RAGGED], LABELS),
        "masked entries",
    ),
    right("array of objects, a sequence each", lambda: (objects(RAGGED), LABELS), R),
    right("array of objects (cases, channels), a 1-D series each", lambda: (cells(RAGGED), LABELS), R),
    right("Fortran order", lambda: ([np.asfortranarray(x) for x in RAGGED], LABELS), R),
    right("integers", lambda: _integers("int16"), _integers("float64")),
    right("booleans", lambda: ([x > 0 for x in RAGGED], LABELS), ([(x > 0).astype(float) for x in RAGGED], LABELS)),
    right("float16", lambda: _integers("float16"), _integers("float64")),
]

CONTAINERS = [
    right("torch tensor (cases, steps, features)", lambda: (Tensor(np.stack(EQUAL)), np.array(LABELS)), A),
    right(
        "list of torch tensors, labels as tensors",
        lambda: ([Tensor(x) for x in RAGGED], [Tensor(y == "up") for y in RS[1]]),
        (RAGGED, [y == "up" for y in RS[1]]),
        list,
    ),
    right("JAX, TensorFlow or xarray array", lambda: (ArrayLike(np.stack(EQUAL)), ArrayLike(LABELS)), A),
    refused("xarray Dataset", lambda: (XarrayDataset(), LABELS), "to_dataarray()"),
    right(
        "dictionary id -> array, labels by id",
        lambda: (dict(zip(IDS, RAGGED, strict=True)), dict(zip(IDS[::-1], LABELS[::-1], strict=True))),
        R,
        dict,
    ),
    right(
        "dictionary id -> array, labels per step",
        lambda: (dict(zip(IDS, RAGGED, strict=True)), dict(zip(IDS, RS[1], strict=True))),
        RS,
        dict,
    ),
    right(
        "dictionary id -> 1-D series", lambda: ({i: x[:, 0] for i, x in zip(IDS, SINGLE, strict=True)}, LABELS), S, dict
    ),
    refused(
        "dictionary of columns",
        lambda: (dict(zip("abc", ONE[0].T, strict=True)), ONES[1][0]),
        "column_stack",
        series=False,
    ),
    refused("dictionary, labels of other ids", lambda: (dict(zip(IDS, RAGGED, strict=True)), {"x": 1}), "other keys"),
]

TABLES = [
    right("data frame, labels per step", lambda: (pd.DataFrame(ONE[0]), pd.Series(ONES[1][0])), ONES, pd.Series),
    right("data frame with a DatetimeIndex", lambda: (dated(ONE[0]), pd.Series(ONES[1][0], DATES)), ONES, pd.Series),
    said(
        "DatetimeIndex, not sorted",
        lambda: (shuffled(dated(ONE[0])), shuffled(pd.Series(ONES[1][0], DATES), 1)),
        ONES,
        "sorted",
        pd.Series,
    ),
    said(
        "DatetimeIndex, irregular",
        lambda: (dated(ONE[0], DATES[0] + pd.to_timedelta(np.cumsum(np.arange(200) ** 2), "s")), ONES[1][0]),
        ONES,
        "evenly spaced",
        pd.Series,
    ),
    refused(
        "labels with another index",
        lambda: (dated(ONE[0]), pd.Series(ONES[1][0], DATES + pd.Timedelta("1h"))),
        "y.to_numpy()",
        series=False,
    ),
    right(
        "UCR data frame, one series per row",
        lambda: (pd.DataFrame(np.stack(SINGLE)[:, :, 0], index=IDS), pd.Series(LABELS, IDS)),
        S,
        pd.Series,
    ),
    right(
        "pandas panel (instance, time), labels by instance",
        lambda: (panel(RAGGED), pd.Series(LABELS, IDS).iloc[::-1]),
        R,
        pd.Series,
    ),
    right(
        "pandas panel, labels per row in another order",
        lambda: (panel(RAGGED), shuffled(pd.Series(np.concatenate(RS[1]), panel(RAGGED).index))),
        RS,
        pd.Series,
    ),
    right("pandas panel of one feature as a Series", lambda: (panel(SINGLE_RAGGED)["a"], LABELS), SR, pd.Series),
    said(
        "pandas panel, rows in any order",
        lambda: (panel(RAGGED).iloc[::-1].sort_index(level=0, sort_remaining=False), pd.Series(LABELS, IDS)),
        BY_NAME,
        "sorted",
        pd.Series,
    ),
    refused(
        "pandas panel (time, instance)",
        lambda: (panel(RAGGED).swaplevel(), np.concatenate(RS[1])),
        "X.swaplevel()",
        series=False,
    ),
    refused(
        "pandas panel, two rows for one time", lambda: (pd.concat([panel(RAGGED), panel(RAGGED)]), LABELS), "groupby"
    ),
    right("sktime nested_univ", lambda: (nested(RAGGED), pd.Series(LABELS, IDS)), R, pd.Series),
    right(
        "long data frame with id and time, labels by id",
        lambda: (long(RAGGED), pd.Series(LABELS, IDS)),
        BY_NAME,
        pd.Series,
    ),
    right("long data frame with id and time, labels per row", lambda: (long(RAGGED), _long_labels()), RS, pd.Series),
    refused("long data frame, one row per value", lambda: (long(RAGGED).melt(["id", "time"]), LABELS), "X.pivot("),
    refused("data frame with a column of ids", lambda: (long(RAGGED).drop(columns="time"), LABELS), "cumcount()"),
    refused(
        "data frame with a column of dates",
        lambda: (dated(ONE[0]).rename_axis("date").reset_index(), ONES[1][0]),
        "X.set_index('date')",
        series=False,
    ),
    said(
        "data frame with a column of time",
        lambda: (_with_time(), ONES[1][0]),
        ([_with_time().to_numpy()], ONES[1]),
        "X.set_index('time')",
        pd.Series,
    ),
    refused("Series", lambda: (pd.Series(ONE[0][:, 0]), ONES[1][0]), "X.to_frame()", series=False),
    right(
        "list of data frames, labels per step",
        lambda: ([pd.DataFrame(x) for x in RAGGED], [pd.Series(y) for y in RS[1]]),
        RS,
        list,
    ),
    refused(
        "list of data frames, columns in another order",
        lambda: ([pd.DataFrame(x)[[0, 2, 1] if i else [0, 1, 2]] for i, x in enumerate(RAGGED)], LABELS),
        "[x[columns] for x in X]",
    ),
    right("list of Series, one each", lambda: ([pd.Series(x[:, 0]) for x in SINGLE_RAGGED], LABELS), SR),
    right(
        "polars frame, labels per step",
        lambda: (PolarsFrame(dict(zip("abc", ONE[0].T, strict=True))), ONES[1][0]),
        ONES,
    ),
    right(
        "polars frame with id and time, one label per id",
        lambda: (PolarsFrame(dict(panel(RAGGED).reset_index().rename(columns={"instance": "id"}))), LABELS),
        R,
    ),
]
LAYOUTS = [*ARRAYS, *CONTAINERS, *TABLES]


@dataclass(frozen=True)
class Seen:
    """How a layout was read: RIGHT, WARNED, REFUSED or WRONG, and what was said."""

    verdict: str
    said: str
    answer: type | None = None


def fitted(X: Any, y: Any, series: bool, layout: str = "auto", lengths: Any = None) -> tuple[Any, Any]:
    """Return a small network that is fitted to data, and its answers to them; series: with one label per series."""
    esn = SeriesClassifier(5, layout=layout) if series else ESNClassifier(**SMALL, layout=layout)
    esn.fit(X, y, lengths=lengths)
    return esn, esn.predict(X, lengths=lengths)


def flat(answer: Any) -> list[Any]:
    """Return the entries of answers in any form, in order; masked ones are left out."""
    if isinstance(answer, Mapping):
        answer = list(answer.values())
    if isinstance(answer, np.ma.MaskedArray):
        return list(answer.compressed())
    if isinstance(answer, (list, tuple, pd.Series)) or np.ndim(answer) > 1:
        return [entry for part in answer for entry in flat(part)]
    return [answer] if np.ndim(answer) == 0 else list(answer)


def try_layout(layout: Layout) -> Seen:
    """Fit a network to a layout, and return how it was read."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            X, y = layout.make()
            esn, answer = fitted(X, y, layout.series, **layout.more)
        except (TypeError, ValueError) as problem:
            return Seen(REFUSED, str(problem))
        texts = [str(w.message) for w in caught if issubclass(w.category, InputWarning)]
        if layout.like is None:
            return Seen(WRONG, "\n".join(texts), type(answer))
        wanted, expected = fitted(*layout.like, layout.series, layout="time_first")
    same = wanted.input_weights_.shape == esn.input_weights_.shape and np.allclose(
        wanted.readout_weights_, esn.readout_weights_, rtol=1e-6, atol=1e-9
    )
    # of a shuffled table, answers come in its order
    verdict = (WARNED if texts else RIGHT) if same and sorted(flat(answer)) == sorted(flat(expected)) else WRONG
    return Seen(verdict, "\n".join(texts), type(answer))


def table() -> list[tuple[str, Seen, bool]]:
    """Return every layout with how it was read, and whether that is right, or a refusal with the line that mends it."""
    rows = []
    for layout in LAYOUTS:
        seen = try_layout(layout)
        rows.append((layout.name, seen, seen.verdict == layout.expected and layout.words in seen.said))
    return rows


def main() -> int:
    rows = table()
    print(f"| layout ({len(rows)}) | seen |\n|---|---|")
    for name, seen, good in rows:
        text = " ".join(seen.said.split())
        said_so = f": {text[:150]}" if text else ""
        print(f"| {name} | {'' if good else 'WRONG '}{seen.verdict}{said_so} |")
    wrong = sum(not good for _, _, good in rows)
    print(f"\n{len(rows)} layouts, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
