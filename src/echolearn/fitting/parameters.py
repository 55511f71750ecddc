"""The parameters of an estimator: by name, those that are given together, and all of them beside each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from echolearn.reservoir import Reservoir
from echolearn.validation import check_name, hint, shown

Parameters = Mapping[str, Any]  # of an estimator, by their names
Arguments = dict[str, Any]  # of its constructor, or all of its settings

# What `learning=` may hold, with its defaults: how weights are learned. Most of it is for comparisons with the paper.
LEARNING: Parameters = {
    "step_size": None,
    "batch_size": "auto",
    "lookback": None,
    "patience": "auto",
    "refine_epochs": 5,
    "learn_leak": True,
    "optimizer": "adam",
    "momentum": "fista",
    "clip": None,
    "renormalize": False,
    "gradient": "exact",
    "case": 2,
    "targets": "all",
    "direct": True,
    "fit_intercept": True,
}
# A regressor has no softmax readout to refine.
REGRESSION_LEARNING: Parameters = {name: default for name, default in LEARNING.items() if name != "refine_epochs"}
# What `learning=` may hold where a series is continued in a closed loop.
LOOP_LEARNING: Parameters = {
    **{name: LEARNING[name] for name in ("step_size", "lookback", "learn_leak", "optimizer", "clip", "renormalize")},
    "batch_size": 8,
    "patience": None,
    "loop_steps": 1,
}
# What `reservoir=` may hold where a reservoir is drawn: arguments of `Reservoir.random` beside those of the estimator.
DRAWING: Parameters = {
    "connections": 10,
    "topology": "random",
    "activation": "tanh",
    "bias_scaling": 0.1,
    "feedback_scaling": 0.1,
    "initial_state": None,
}
# In a closed loop, feedback goes through the input weights.
LOOP_DRAWING: Parameters = {name: default for name, default in DRAWING.items() if name != "feedback_scaling"}


# What `learning=` of a deep network may hold.
DEEP_LEARNING: Parameters = {"step_size": 0.02, "batch_size": 4, "patience": None}
DEEP_LABEL_LEARNING: Parameters = {**DEEP_LEARNING, "label_smoothing": 0.0}

# Settings of earlier versions without a successor of their own, and what to write instead.
FORMER_SETTINGS = {
    "pooling": "SeriesClassifier and SeriesRegressor take one label or value per series.",
    "plasticity": "write reservoir=intrinsic_plasticity(Reservoir.random(...), X).",
}


class NamedSettings(BaseEstimator):
    """An estimator that answers an unknown setting with the name that was probably meant.

    It does so in the constructor and in `set_params`, and so in grids and pipelines. groups: names and defaults of
    settings that are given together, as a dict.
    """

    groups: ClassVar[Mapping[str, Parameters]] = {}

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _checked(cls.__init__, cls)  # type: ignore[method-assign]

    def set_params(self, **params: object) -> Self:
        """Change settings by their names.

        Parameters
        ----------
        **params : dict
            The settings, as in the constructor.

        Returns
        -------
        estimator
            The estimator itself.
        """
        known = self.get_params()
        for name in params:
            if name.partition("__")[0] not in known:
                raise ValueError(_unknown(type(self), name, list(known)))
        return super().set_params(**params)  # type: ignore[no-any-return]


def _checked(init: Callable[..., None], owner: type[NamedSettings]) -> Callable[..., None]:
    """Return a constructor that explains unknown keywords; its signature stays what it is."""
    parameters = signature(init).parameters.values()
    known = [p.name for p in parameters if p.name != "self"]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return init

    @wraps(init)
    def checked(self: NamedSettings, *arguments: object, **settings: object) -> None:
        try:
            init(self, *arguments, **settings)
        except TypeError as problem:
            unknown = [name for name in settings if name not in known]
            if not unknown or "unexpected keyword" not in str(problem):  # some have an explanation of their own
                raise
            raise TypeError(_unknown(owner, unknown[0], known)) from None

    return checked


def _unknown(owner: type[NamedSettings], name: str, known: list[str]) -> str:
    """Return the refusal of a setting, with where it is or which one was probably meant."""
    homes = {key: group for group, settings in owner.groups.items() for key in settings}
    where = {key: f"{key} is part of {group}: write {group}={{{key!r}: ...}}." for key, group in homes.items()}
    cure = where.get(name) or FORMER_SETTINGS.get(name) or hint(name, [*known, *homes])
    for word in cure.removesuffix("?").split() if cure.startswith("did") else ():
        cure += f" {where[word]}" if word in where else ""
    return f"{owner.__name__} has no setting {name!r:.80}; {cure}"


class GroupedSettings(NamedSettings):
    """An estimator some of whose settings are given together, in `learning` and `reservoir`.

    They can be searched and set as `learning__step_size`, as those of a step of a pipeline. fixed: settings of the
    network that are no parameters of the estimator.
    """

    groups: ClassVar[Mapping[str, Parameters]] = {"learning": LEARNING, "reservoir": DRAWING}
    fixed: ClassVar[Parameters] = {}

    def get_params(self, deep: bool = True) -> Arguments:
        """Return the settings by their names.

        Parameters
        ----------
        deep : bool, default=True
            Whether those inside of `learning` and `reservoir` are returned too, as `learning__step_size`.

        Returns
        -------
        dict
            The settings.
        """
        params: Arguments = super().get_params(deep=False)
        for name, defaults in self.groups.items() if deep else ():
            if name in params and (params[name] is None or isinstance(params[name], Mapping)):
                params |= {f"{name}__{key}": value for key, value in {**defaults, **(params[name] or {})}.items()}
        return params

    def set_params(self, **params: object) -> Self:
        """Change settings by their names.

        Parameters
        ----------
        **params : dict
            The settings, as in the constructor; one inside of `learning` or `reservoir` as `learning__step_size`.

        Returns
        -------
        estimator
            The estimator itself.
        """
        inside = {name: value for name, value in params.items() if name.partition("__")[0] in self.groups}
        super().set_params(
            **{name: value for name, value in params.items() if name not in inside or name in self.groups}
        )
        for name, value in inside.items():
            group, _, key = name.partition("__")
            if key:
                present = getattr(self, group)
                if not (present is None or isinstance(present, Mapping)):
                    raise ValueError(f"{name}={value!r:.80} beside {group}={shown(present)}; expected a dict or None.")
                check_name(key, self.groups[group], group)
                setattr(self, group, {**(present or {}), key: value})
        return self


def flat_settings(estimator: GroupedSettings) -> Arguments:
    """Return all settings of an estimator by name, those inside of `learning` and `reservoir` beside the others."""
    params = estimator.get_params(deep=False)
    flat = {**{name: value for name, value in params.items() if name != "learning"}, **estimator.fixed}
    for name, defaults in estimator.groups.items():
        value = params.get(name)
        if not (value is None or isinstance(value, Mapping) or (name == "reservoir" and isinstance(value, Reservoir))):
            what = "None, a Reservoir, or a dict" if name == "reservoir" else "None or a dict"
            raise ValueError(f"{name}={shown(value)}; expected {what} of these settings: {', '.join(defaults)}.")
        group = value if isinstance(value, Mapping) else {}
        for key in group:
            check_name(key, defaults, name)
        flat |= {**defaults, **group}
    if not isinstance(params.get("reservoir"), Reservoir):
        flat["reservoir"] = None
    # a number of NumPy's would keep its size: 8000 // np.uint8(2) fails
    return {name: int(value) if isinstance(value, np.integer) else value for name, value in sorted(flat.items())}


def grouped_settings(flat: Parameters, estimator: type[GroupedSettings]) -> Arguments:
    """Return the arguments of an estimator's constructor, from all of its settings beside each other."""
    inside = {*estimator.fixed, *(key for settings in estimator.groups.values() for key in settings)}
    params = {name: value for name, value in flat.items() if name not in inside}
    for name, defaults in estimator.groups.items():
        group = {key: flat[key] for key in defaults if key in flat and not equal(flat[key], defaults[key])}
        if not isinstance(params.get(name), Reservoir):
            params[name] = group or None
    return params


def merged_settings(*several: Parameters) -> Arguments:
    """Return settings in which later ones replace earlier ones, also inside of `learning` and `reservoir`."""
    merged: Arguments = {}
    for settings in several:
        for name, value in settings.items():
            both = isinstance(merged.get(name), Mapping) and (value is None or isinstance(value, Mapping))
            merged[name] = {**merged[name], **(value or {})} if both else value
    return merged


def equal(given: object, other: object) -> bool:
    """Return whether two settings are the same; one number equals an array that is full of it."""
    if isinstance(given, tuple) or isinstance(other, tuple):
        return given == other if isinstance(given, tuple) and isinstance(other, tuple) else False
    if sparse.issparse(given) or sparse.issparse(other):
        return given is other
    a, b = np.asarray(given), np.asarray(other)
    return a.shape in ((), b.shape) and bool(np.all(a == b))
