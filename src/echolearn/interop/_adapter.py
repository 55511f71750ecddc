"""What the adapters of sktime and aeon share: the parameters of our estimators, panels, one target per case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from echolearn.estimators import SeriesClassifier, SeriesRegressor
from echolearn.fitting.parameters import Parameters
from echolearn.validation import Array

if TYPE_CHECKING:  # an optional dependency
    import pandas as pd

    Panel = Array | Sequence[Array] | Sequence[pd.DataFrame]

Constructor = Callable[..., None]
# with which other libraries check classifiers and regressors (the defaults, and others) and forecasters
PANEL_SETTINGS: list[Parameters] = [
    {"hidden_units": 8},
    {"hidden_units": 5, "ridge": 1.0, "missing": "carry", "dtype": "float64"},
]
FORECASTER_SETTINGS: Parameters = {"hidden_units": 5, "reservoir": {"connections": 3}, "washout": 1, "ridge": 1.0}


def parameters_of(estimator: type, *, without: Iterable[str] = ()) -> Callable[[Constructor], Constructor]:
    """Return a decorator for `__init__`, which takes, stores and shows the parameters of another class beside its own,
    as libraries read the signature. without: names that the adapter decides on itself."""
    theirs = [p for name, p in signature(estimator).parameters.items() if name not in set(without)]

    def decorate(init: Constructor) -> Constructor:
        first, *ours = (p for p in signature(init).parameters.values() if p.kind is not Parameter.VAR_KEYWORD)
        names = {p.name for p in ours}
        merged = sorted([*(p for p in theirs if p.name not in names), *ours], key=lambda p: p.kind)  # keyword-only last
        shown = signature(init).replace(parameters=[first, *merged])

        @wraps(init)
        def constructor(self: object, *args: object, **kwargs: object) -> None:
            bound = shown.bind(self, *args, **kwargs)
            bound.apply_defaults()
            arguments = dict(list(bound.arguments.items())[1:])
            for name, value in arguments.items():
                setattr(self, name, value)
            init(self, **arguments)

        constructor.__signature__ = shown  # type: ignore[attr-defined]
        return constructor

    return decorate


def chosen_parameters(adapter: object, estimator: type) -> Parameters:
    """Return the parameters of an adapter that its estimator has too."""
    return {name: getattr(adapter, name) for name in signature(estimator).parameters if hasattr(adapter, name)}


def time_first(panel: Panel) -> list[Array]:
    """Return one array (n_steps, n_channels) per case of a panel of arrays (n_channels, n_steps) or of tables."""
    return [
        case.to_numpy(dtype=np.float64)
        if hasattr(case, "to_numpy")
        else np.ascontiguousarray(np.asarray(case, dtype=np.float64).T)
        for case in panel
    ]


def one_or_many(values: Array) -> Array:
    """Return a series (n_steps, 1) as (n_steps,), and one with several columns as it is."""
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def as_columns(values: Array) -> Array:
    """Return a series (n_steps,) as one column; one with several columns as it is."""
    return values[:, None] if values.ndim == 1 else values


class PanelAdapter:
    """A mixin for the classifiers and regressors of other libraries: one target per case of a panel."""

    _estimator: ClassVar[type[SeriesClassifier] | type[SeriesRegressor]]

    def _fit(self, X: Panel, y: Array) -> Self:
        parameters = {**chosen_parameters(self, self._estimator), "layout": "time_first"}
        self.esn_ = self._estimator(**parameters).fit(time_first(X), y)
        return self

    def _predict(self, X: Panel) -> Array:
        return np.asarray(self.esn_.predict(time_first(X)))
