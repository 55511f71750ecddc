"""Series and exogenous inputs as a user gives them, and the form in which forecasts go back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from echolearn.fitting.codecs import ValueCodec
from echolearn.sequences.checks import mean_and_scale
from echolearn.sequences.opening import Sequences, open_sequences
from echolearn.validation import Answers, Array, SequencesLike, check_columns, check_integer, column_names


@dataclass(frozen=True, eq=False)
class SeriesForm:
    """The form of the series of a fit, in which later ones must come and forecasts go.

    codec: mean and scale of each dimension, and whether series are 1-D; many: whether they were a list; names: of all
    columns of data frames, those of exogenous inputs last; [] without any.
    """

    codec: ValueCodec
    exogenous_mean: Array
    exogenous_scale: Array
    many: bool
    names: list[str]

    @property
    def dims(self) -> int:
        """The number of dimensions of the series."""
        return len(self.codec.mean)

    @property
    def n_features(self) -> int:
        """The number of dimensions and exogenous inputs."""
        return self.dims + len(self.exogenous_mean)

    def open(self, series: SequencesLike, name: str, *, gaps: bool) -> Sequences:
        """Return series with the columns of the fit; name: of the argument."""
        self._check_columns(series, self.names[: self.dims], name)
        return open_series(series, name, self.dims, gaps=gaps)[0]

    def open_new(self, new: SequencesLike, count: int, *, gaps: bool) -> Sequences:
        """Return values that follow those of `count` series; a single number is one value of one series."""
        if np.ndim(new) == 0:  # type: ignore[arg-type]
            new = np.reshape(np.asarray(new, dtype=np.float64), 1)
        opened = self.open(new, "new", gaps=gaps)
        if len(opened.X) != count:
            raise ValueError(f"new has {len(opened.X)} series; expected {count}, those of fit.")
        return opened

    def open_exogenous(self, exogenous: SequencesLike, lengths: Array, many: bool) -> list[Array]:
        """Return exogenous inputs in their scale, one array (length, inputs) per series."""
        self._check_columns(exogenous, self.names[self.dims :], "exogenous")
        rows = open_exogenous(exogenous, lengths, len(self.exogenous_mean), many)
        return standardised(rows, self.exogenous_mean, self.exogenous_scale)

    def standardised(self, series: Sequence[Array]) -> list[Array]:
        """Return series in standard deviations from their mean."""
        return standardised(series, self.codec.mean, self.codec.scale)

    def answer(self, values: Sequence[Array], many: bool) -> Answers:
        """Return values (..., steps, dims) in units, one array per series, as series come: 1-D, and as a list."""
        shaped = [v[..., 0] for v in values] if self.codec.one_value else list(values)
        return shaped if many else shaped[0]

    def _check_columns(self, table: SequencesLike, names: list[str], name: str) -> None:
        """Refuse a data frame whose columns are not those of the fit."""
        if self.names and frame_columns(table) is not None:
            check_columns(table[0] if isinstance(table, (list, tuple)) else table, names, name)


@dataclass(frozen=True, eq=False)
class SeriesData:
    """The data of a fit: series Y in units and Z standardised, (steps, dims), E (steps, inputs) standardised."""

    Y: list[Array]
    Z: list[Array]
    E: list[Array]
    form: SeriesForm

    @classmethod
    def open(cls, series: SequencesLike, exogenous: SequencesLike, *, gaps: bool, dtype: str) -> SeriesData:
        """Return the data of a fit, checked; gaps: whether NaN may stand for a missing value."""
        opened, one_value = open_series(series, "series", None, gaps=gaps)
        if opened.lengths.max() == 1 and opened.X[0].shape[1] > 1:
            raise ValueError(
                f"series has one row of {opened.X[0].shape[1]} values: one step. Time runs down the rows; expected an "
                "array of shape (steps,) or (steps, dims). Pass series.T."
            )
        many = opened.kind != "one"
        mean, scale = mean_and_scale(_without_gaps(opened.X), "series")
        rows = open_exogenous(exogenous, opened.lengths, None, many)
        exogenous_mean, exogenous_scale = mean_and_scale(np.concatenate(rows), "exogenous")
        names = [*(frame_columns(series) or []), *(frame_columns(exogenous) or [])]
        n_features = len(mean) + len(exogenous_mean)
        form = SeriesForm(
            codec=ValueCodec(mean, scale, one_value, dtype),
            exogenous_mean=exogenous_mean,
            exogenous_scale=exogenous_scale,
            many=many,
            names=names if len(names) == n_features > 1 else [],
        )
        return cls(opened.X, form.standardised(opened.X), standardised(rows, exogenous_mean, exogenous_scale), form)

    @property
    def lengths(self) -> Array:
        """The length of each series."""
        return np.array([len(y) for y in self.Y])


def inputs_of(z: Array, e: Array) -> Array:
    """Return [x_t, e_{t+1}] for every step but the last: (steps - 1, dims + inputs)."""
    return np.hstack([z[:-1], e[1:]])


def standardised(rows: Sequence[Array], mean: Array, scale: Array) -> list[Array]:
    """Return arrays in standard deviations from their mean."""
    return [(r - mean) / scale for r in rows]


def time_index(series: object) -> object | None:
    """Return the index of a pandas series or frame, of the first one in a list, or None."""
    first = series[0] if isinstance(series, (list, tuple)) and series else series
    index = getattr(first, "index", None)
    return None if index is None or callable(index) else index


def frame_columns(table: SequencesLike) -> list[str] | None:
    """Return the names of the columns of a data frame, or of the first one in a list; None for all else."""
    first = table[0] if isinstance(table, (list, tuple)) and len(table) else table
    return column_names(first) if getattr(first, "ndim", 0) == 2 else None


def _without_gaps(series: Sequence[Array]) -> Array:
    """Return the values of all series (n, dims), gaps filled with the mean of their column."""
    table = np.concatenate(series)
    gaps = np.isnan(table)
    if not gaps.any():
        return table
    if gaps.all(axis=0).any():
        raise ValueError("series: a column has no value at all, only gaps. Leave it out.")
    return np.where(gaps, np.nanmean(table, axis=0), table)


def open_series(series: SequencesLike, name: str, dims: int | None, *, gaps: bool = False) -> tuple[Sequences, bool]:
    """Return one series (steps,) or (steps, dims), or a list of such, as float64; and whether they are 1-D.

    gaps: whether NaN, for a missing value, is allowed.
    """
    try:
        listed = list(series) if isinstance(series, (list, tuple)) else []
        many = any(np.ndim(s) > 0 for s in listed)
        arrays = listed if many else [cast("ArrayLike", series)]
        one_value = all(np.ndim(y) == 1 for y in arrays)
        columns = [np.asarray(y)[:, None] if np.ndim(y) == 1 else y for y in arrays]
        opened = open_sequences(columns if many else columns[0], None, dims, "this forecaster", gaps=gaps)
    except (TypeError, ValueError) as problem:
        kind = TypeError if isinstance(problem, TypeError) else ValueError
        raise kind(f"{name}: {problem}") from problem
    return Sequences([x.astype(np.float64) for x in opened.X], opened.kind), one_value


def check_steps_ahead(steps: object, *, updates: bool = True) -> None:
    """Refuse a number of steps to forecast that is none; updates: whether the forecaster takes in further values."""
    shape = getattr(steps, "shape", None)
    if shape or isinstance(steps, (list, tuple)):
        kind = f"an array of shape {shape}" if shape else f"a list of {len(cast('list[object]', steps))} entries"
        more = "; to take in values that follow the training series, call update(data) first" if updates else ""
        raise ValueError(
            f"horizon is {kind}; expected a whole number, how many values to forecast, for example predict(10). To "
            f"forecast what follows other data, call predict(10, warm_up=data){more}."
        )
    check_integer("horizon", steps, 1)


def open_exogenous(exogenous: SequencesLike, lengths: Array, width: int | None, many: bool) -> list[Array]:
    """Return exogenous rows, one array (length, inputs) per series; without any, arrays with no columns."""
    if exogenous is None:
        if width:
            raise ValueError(f"this forecaster was fitted with {width} exogenous inputs: give exogenous= for them too.")
        return [np.empty((n, 0)) for n in lengths]
    if width == 0:
        raise ValueError("exogenous is given, but this forecaster was fitted without. Leave it out, or fit with it.")
    opened, _ = open_series(exogenous, "exogenous", width)
    if (opened.kind != "one") != many or len(opened.X) != len(lengths):
        kind = "one array" if opened.kind == "one" else f"a list of {len(opened.X)}"
        wanted = f"a list of {len(lengths)}" if many else "one array"
        raise ValueError(f"exogenous is {kind}; expected {wanted}, as the series were when fitting.")
    for i, (e, n) in enumerate(zip(opened.X, lengths, strict=True)):
        if len(e) != n:
            raise ValueError(f"exogenous of series {i} has {len(e)} rows; expected {n}, one per step.")
    return opened.X
