"""Series and exogenous inputs as a user gives them, and the form in which forecasts go back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from echolearn.fitting.codecs import ValueCodec
from echolearn.forecasting.calendar import Calendar, on_calendar, rows_in_order
from echolearn.sequences.checks import mean_and_scale
from echolearn.sequences.opening import Sequences, open_sequences
from echolearn.validation import Answers, Array, SequencesLike, check_columns, check_integer, column_names

if TYPE_CHECKING:  # an optional dependency
    import pandas as pd

Seed: TypeAlias = int | np.random.Generator | None


@dataclass(frozen=True)
class Continuation:
    """How many steps to forecast, after which series (None: those of the fit), and exogenous inputs for all of them."""

    steps: int
    warm_up: SequencesLike = None
    exogenous: SequencesLike = None

    def __post_init__(self) -> None:
        check_steps_ahead(self.steps)


@dataclass(frozen=True)
class OpenedSeries(Sequences):
    """Series as arrays (steps, dims), and of those of pandas the labels of their rows and their calendars."""

    one_value: bool = True  # whether they are 1-D
    labels: tuple[pd.Index | None, ...] = ()
    calendars: tuple[Calendar | None, ...] = ()


@dataclass(frozen=True, eq=False)
class SeriesForm:
    """The form of the series of a fit, in which later ones must come and forecasts go."""

    codec: ValueCodec  # mean and scale of each dimension, and whether series are 1-D
    exogenous_mean: Array
    exogenous_scale: Array
    many: bool  # whether the series were a list
    names: list[str]  # of the columns of data frames, those of exogenous inputs last; "" for those of arrays
    calendars: tuple[Calendar | None, ...]  # of each series, at its last known step; None without labels

    @property
    def dims(self) -> int:
        """The number of dimensions of the series."""
        return len(self.codec.mean)

    @property
    def n_features(self) -> int:
        """The number of dimensions and exogenous inputs."""
        return self.dims + len(self.exogenous_mean)

    def open(self, series: SequencesLike, name: str, *, gaps: bool) -> OpenedSeries:
        """Return series with the columns of the fit; name: of the argument."""
        self._check_columns(series, self.names[: self.dims], name)
        return open_series(series, name, self.dims, gaps=gaps)

    def open_new(self, new: SequencesLike, *, gaps: bool) -> tuple[OpenedSeries, Self]:
        """Return values that follow those of the fit, at their dates, and the form after them."""
        if not isinstance(new, (list, tuple)) and np.ndim(new) == 0:  # type: ignore[arg-type]
            new = np.reshape(np.asarray(new, dtype=np.float64), 1)  # one value of one series
        self._check_columns(new, self.names[: self.dims], "new")
        tables, many = _tables(new)
        if len(tables) != len(self.calendars):
            raise ValueError(f"new has {len(tables)} series; expected {len(self.calendars)}, those of fit.")
        placed = [_after(table, calendar) for table, calendar in zip(tables, self.calendars, strict=True)]
        opened = open_series(placed if many else placed[0], "new", self.dims, gaps=gaps, dates=False)
        calendars = tuple(c and c.after(len(x)) for c, x in zip(self.calendars, opened.X, strict=True))
        labels = tuple(c and c.ahead(len(x)) for c, x in zip(self.calendars, opened.X, strict=True))
        return replace(opened, labels=labels, calendars=self.calendars), replace(self, calendars=calendars)

    def open_exogenous(self, exogenous: SequencesLike, series: OpenedSeries, steps: int = 0) -> list[Array]:
        """Return exogenous inputs in their scale, one array per series, for its rows and so many steps after them."""
        self._check_columns(exogenous, self.names[self.dims :], "exogenous")
        rows = open_exogenous(exogenous, series, len(self.exogenous_mean), steps)
        return [(e - self.exogenous_mean) / self.exogenous_scale for e in rows]

    @property
    def ends(self) -> OpenedSeries:
        """The series of the fit without any rows: what follows them follows here."""
        nothing = [np.empty((0, self.dims)) for _ in self.calendars]
        labels = tuple(c and c.ahead(0) for c in self.calendars)
        return OpenedSeries(nothing, "list" if self.many else "one", labels=labels, calendars=self.calendars)

    def standardised(self, series: Sequence[Array]) -> list[Array]:
        """Return series in standard deviations from their mean."""
        return [(y - self.codec.mean) / self.codec.scale for y in series]

    def answer(self, values: Sequence[Array], series: OpenedSeries) -> Answers:
        """Return values (..., steps, dims) in units that follow each series, in its form: 1-D, with labels, a list."""
        shaped = [v[..., 0] if self.codec.one_value else v for v in values]
        for j, calendar in enumerate(series.calendars):
            if calendar is not None and values[j].ndim == 2:  # sample paths have no labels
                shaped[j] = calendar.labelled(shaped[j])
        return shaped if series.kind != "one" else shaped[0]

    def _check_columns(self, table: SequencesLike, names: list[str], name: str) -> None:
        """Refuse a data frame whose columns are not those of the fit."""
        if any(names) and frame_columns(table) is not None:
            check_columns(table[0] if isinstance(table, (list, tuple)) else table, names, name)


@dataclass(frozen=True, eq=False)
class SeriesData:
    """The data of a fit."""

    Y: list[Array]  # (steps, dims) of each series, in its units
    Z: list[Array]  # standardised
    E: list[Array]  # (steps, inputs), standardised
    form: SeriesForm

    @classmethod
    def open(
        cls, series: SequencesLike, exogenous: SequencesLike, *, gaps: bool, dtype: str, one_scale: bool = False
    ) -> SeriesData:
        """Return the data of a fit, checked; gaps: whether values may be missing (NaN); one_scale: for all columns."""
        opened = open_series(series, "series", None, gaps=gaps)
        if opened.lengths.max() == 1 and opened.X[0].shape[1] > 1:
            raise ValueError(
                f"series has one row of {opened.X[0].shape[1]} values: one step. Time runs down the rows; expected an "
                "array of shape (steps,) or (steps, dims). Pass series.T."
            )
        values = np.concatenate(opened.X)
        gaps_at = np.isnan(values)
        if gaps_at.all(axis=0).any():
            raise ValueError("series: a column has no value at all, only gaps. Leave it out.")
        if gaps_at.any():
            values = np.where(gaps_at, np.nanmean(values, axis=0), values)
        mean, scale = mean_and_scale(values, "series")
        scale = scale * np.sqrt(len(values) / (~gaps_at).sum(axis=0))  # of the known values
        if one_scale:
            middle = mean.mean()
            scale = np.full_like(scale, np.sqrt((scale**2 + (mean - middle) ** 2).mean()))
            mean = np.full_like(mean, middle)
        rows = open_exogenous(exogenous, opened, None)
        exogenous_mean, exogenous_scale = mean_and_scale(np.concatenate(rows), "exogenous")
        names = [*(frame_columns(series) or [""] * len(mean)), *(frame_columns(exogenous) or [""] * rows[0].shape[1])]
        form = SeriesForm(
            codec=ValueCodec(mean, scale, opened.one_value, dtype),
            exogenous_mean=exogenous_mean,
            exogenous_scale=exogenous_scale,
            many=opened.kind != "one",
            names=names if len(names) == len(mean) + len(exogenous_mean) > 1 else [],
            calendars=opened.calendars,
        )
        E = [(e - exogenous_mean) / exogenous_scale for e in rows]
        return cls(opened.X, form.standardised(opened.X), E, form)

    @property
    def lengths(self) -> Array:
        """The length of each series."""
        return np.array([len(y) for y in self.Y])


def inputs_of(z: Array, e: Array) -> Array:
    """Return [x_t, e_{t+1}] for every step but the last: (steps - 1, dims + inputs)."""
    return np.hstack([z[:-1], e[1:]])


def frame_columns(table: SequencesLike) -> list[str] | None:
    """Return the names of the columns of a data frame, or of the first one in a list; None for all else."""
    first = table[0] if isinstance(table, (list, tuple)) and len(table) else table
    return column_names(first) if getattr(first, "ndim", 0) == 2 else None


def _tables(series: SequencesLike) -> tuple[list[ArrayLike], bool]:
    """Return each series, and whether they were given as a list."""
    several = cast("Sequence[ArrayLike]", series)
    if getattr(series, "ndim", 0) == 3 or (isinstance(series, (list, tuple)) and any(np.ndim(s) > 0 for s in several)):
        return list(several), True
    return [cast("ArrayLike", series)], False


def open_series(
    series: SequencesLike, name: str, dims: int | None, *, gaps: bool = False, dates: bool = True
) -> OpenedSeries:
    """Return one series (steps,) or (steps, dims), or a list of such, as float64; dates: whether at their dates."""
    try:
        tables, many = _tables(series)
        placed: list[tuple[pd.DataFrame, Calendar | None]]
        placed = [on_calendar(table, name) if dates else (table, None) for table in tables]
        one_value = all(np.ndim(y) == 1 for y, _ in placed)
        columns = [np.asarray(y)[:, None] if np.ndim(y) == 1 else y for y, _ in placed]
        opened = open_sequences(columns if many else columns[0], None, dims, "this forecaster", gaps=gaps)
    except (TypeError, ValueError) as problem:
        kind, words = TypeError if isinstance(problem, TypeError) else ValueError, str(problem)
        raise kind(words if words.startswith(f"{name}: ") else f"{name}: {words}") from problem
    X = [x.astype(np.float64) for x in opened.X]
    labels, calendars = zip(*((None if c is None else y.index, c) for y, c in placed), strict=True)
    return OpenedSeries(X, opened.kind, one_value=one_value, labels=labels, calendars=calendars)


def refuse_targets(y: object) -> None:
    """Refuse a second argument of `fit`, which a forecaster would not look at."""
    if y is not None:
        raise ValueError(
            "y is given, but a forecaster takes the series itself as its first argument. Write fit(y), with its dates "
            "as the index of a pandas Series. ESNForecaster takes what is known in advance as fit(y, exogenous=X)."
        )


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


def open_exogenous(exogenous: SequencesLike, series: OpenedSeries, width: int | None, steps: int = 0) -> list[Array]:
    """Return exogenous rows, one array per series, for its rows and so many steps after them; without any, no columns.

    Rows with dates are taken by the dates of the series.
    """
    lengths, many = series.lengths + steps, series.kind != "one"
    if exogenous is None:
        if width:
            raise ValueError(f"this forecaster was fitted with {width} exogenous inputs: give exogenous= for them too.")
        return [np.empty((n, 0)) for n in lengths]
    if width == 0:
        raise ValueError("exogenous is given, but this forecaster was fitted without. Leave it out, or fit with it.")
    tables, listed = _tables(exogenous)
    if listed != many or len(tables) != len(lengths):
        kind = f"a list of {len(tables)}" if listed else "one array"
        wanted = f"a list of {len(lengths)}" if many else "one array"
        raise ValueError(f"exogenous is {kind}; expected {wanted}, as the series were when fitting.")
    each = zip(tables, series.labels, series.calendars, strict=True)
    rows = [_at_dates(table, labels, calendar, steps) for table, labels, calendar in each]
    opened = open_series(rows if many else rows[0], "exogenous", width, dates=False)
    for i, (e, n) in enumerate(zip(opened.X, lengths, strict=True)):
        if len(e) != n:
            raise ValueError(f"exogenous of series {i} has {len(e)} rows; expected {n}, one per step.")
    return opened.X


def _at_dates(table: pd.DataFrame, labels: pd.Index, calendar: Calendar | None, steps: int) -> pd.DataFrame:
    """Return the rows of a table at the dates of a series and of so many steps after it; without dates, as it is."""
    table, has_dates = rows_in_order(table, "exogenous")
    if not has_dates or calendar is None or calendar.kind == "numbers" or (calendar.kind == "rows" and steps):
        return table
    wanted = labels.append(calendar.ahead(steps)) if steps else labels
    try:
        missing = wanted.difference(table.index)
    except TypeError:  # one of them has a zone
        missing = wanted
    if len(missing):
        raise ValueError(
            f"exogenous has no row for {missing[0]}, a date of the series. Its dates must be those of the series and, "
            "for a forecast, of the steps to come; or give it as an array, one row per step."
        )
    return table.reindex(wanted)


def _after(table: pd.DataFrame, calendar: Calendar | None) -> pd.DataFrame:
    """Return rows at the labels that follow a calendar: dates, or numbers such as years, unless they count from 0."""
    table, has_dates = rows_in_order(table, "new")
    dtype = getattr(getattr(table, "index", None), "dtype", np.dtype(object))
    has_numbers = dtype.kind in "iu" and table.index[0] != 0
    if calendar is None or not (has_numbers if calendar.kind == "numbers" else has_dates and calendar.kind != "rows"):
        return table
    labels, last = calendar.ahead(len(table)), table.index.max()
    try:
        while labels[-1] < last:
            labels = calendar.ahead(2 * len(labels))
        missing = table.index.difference(labels)
    except TypeError:  # one of them has a zone
        missing = table.index
    if len(missing):
        raise ValueError(
            f"new has a row for {missing[0]}, which does not follow: the next dates are {labels[0]}, and so on. Give "
            "the rows after the last one known, at the dates of the same calendar."
        )
    return table.reindex(labels[labels <= last])


def path_generator(seed: Seed) -> np.random.Generator:
    """Return the generator of sample paths; a generator as seed is advanced."""
    return np.random.default_rng(seed).spawn(6)[-1]


def check_scorable(lengths: Array, washout: int, horizon: int) -> None:
    """Refuse series that are too short for forecasts `horizon` steps ahead after the washout."""
    least = washout + horizon + 2
    if lengths.min() < least:
        raise ValueError(
            f"a series has {lengths.min()} steps; washout={washout} and horizon={horizon} need at least {least}."
        )
