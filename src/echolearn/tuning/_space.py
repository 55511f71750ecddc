"""The search space: which settings are searched, and in which ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sklearn.base import BaseEstimator

from echolearn.estimators import DeepESNClassifier, DeepESNRegressor
from echolearn.training.optimizers import default_step_size
from echolearn.validation import check_name

if TYPE_CHECKING:  # optional
    import optuna

Options = tuple[float, float] | list[object]  # a range, searched evenly in its logarithm; or choices
Space = Mapping[str, tuple[float, float] | Sequence[object]]  # as a user gives it

# The ridge and the penalty of the softmax readout are absent: every fit chooses them itself.
FIXED_WEIGHTS_SPACE: dict[str, Options] = {
    "spectral_radius": (0.2, 1.0),
    "input_scaling": (0.01, 2.0),
    "reservoir__bias_scaling": (0.01, 1.0),
    "leak": [(0.03, 0.9), (0.1, 1.0), (0.3, 1.0), 1.0],
}
LEARNED_WEIGHTS_SPACE: dict[str, Options] = {**FIXED_WEIGHTS_SPACE, "learning__step_size": (0.001, 0.03)}
SERIES_UNITS: list[object] = ["auto", 10, 30, 100, 300, 1000]
SERIES_SPACE: dict[str, Options] = {"hidden_units": SERIES_UNITS, "standardize": [True, False]}
DEEP_SPACE: dict[str, Options] = {
    "layers": (2, 8),
    "dropout": [None, 0.0, 0.1, 0.2, 0.3],
    "leak": [(0.01, 0.3), (0.03, 0.63), (0.1, 0.9)],
    "learning__step_size": (0.005, 0.08),
}


def pipeline_prefix(estimator: BaseEstimator) -> str:
    """Return what a Pipeline puts before the names of its last step's settings; "" for a network."""
    return f"{estimator.steps[-1][0]}__" if hasattr(estimator, "steps") else ""


def answers_per_series(estimator: BaseEstimator) -> bool:
    """Return whether an estimator, or the last step of a Pipeline, learns one target per series."""
    return bool(getattr(_last_step(estimator), "per_series", False))


def _last_step(estimator: BaseEstimator) -> BaseEstimator:
    """Return an estimator, or the last step of a Pipeline."""
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator


def checked_space(estimator: BaseEstimator, space: Space | None) -> dict[str, Options]:
    """Return the space by the names of the estimator's settings; ValueError where a name or a range is impossible."""
    known, prefix = estimator.get_params(), pipeline_prefix(estimator)
    if space is None:
        if answers_per_series(estimator):
            own = known[f"{prefix}hidden_units"]
            space = SERIES_SPACE | {"hidden_units": list(dict.fromkeys([own, *SERIES_UNITS]))}
        elif isinstance(_last_step(estimator), (DeepESNClassifier, DeepESNRegressor)):
            space = DEEP_SPACE
        else:
            fixed = known[f"{prefix}learn"] == "none" or known[f"{prefix}epochs"] == 0
            space = FIXED_WEIGHTS_SPACE if fixed else LEARNED_WEIGHTS_SPACE
    if not isinstance(space, Mapping):
        raise TypeError(f"space={space!r:.80}; expected ranges and choices by the names of settings.")
    full: dict[str, Options] = {}
    for name, options in space.items():
        full_name = name if name in known else prefix + name
        check_name(full_name, known, "space")
        full[full_name] = _checked_options(name, options)
    if not full:
        raise ValueError("space is empty; give at least one setting to search.")
    return full


def _checked_options(name: str, options: object) -> Options:
    if isinstance(options, list) and options:
        return options
    if isinstance(options, tuple) and len(options) == 2 and all(isinstance(v, (int, float)) for v in options):
        low, high = options
        if 0 < low <= high:
            return low, high
    raise ValueError(
        f"space: {name} is {options!r}; expected a pair (low, high) with 0 < low <= high, or a list of choices."
    )


def suggested(trial: optuna.Trial, name: str, options: Options) -> object:
    """Return the value that Optuna proposes. Choices are stored by their index, because they may be of any type."""
    if isinstance(options, list):
        return options[trial.suggest_categorical(name, list(range(len(options))))]
    low, high = options
    if isinstance(low, int) and isinstance(high, int):
        return trial.suggest_int(name, low, high, log=True)
    return trial.suggest_float(name, low, high, log=True)


def initial_values(estimator: BaseEstimator, space: Mapping[str, Options]) -> dict[str, object]:
    """Return the estimator's own settings as far as they lie in the space, as Optuna stores them."""
    values: dict[str, object] = {}
    params, prefix = estimator.get_params(), pipeline_prefix(estimator)
    if params.get(f"{prefix}learning__step_size", 0) is None:
        step = default_step_size(params[f"{prefix}learning__optimizer"], params[f"{prefix}hidden_units"])
        params[f"{prefix}learning__step_size"] = step
    for name, options in space.items():
        value = params[name]
        if isinstance(options, list):
            if value in options:
                values[name] = options.index(value)
        elif isinstance(value, (int, float)) and options[0] <= value <= options[1]:
            values[name] = value
    return values
