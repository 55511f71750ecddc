"""Adapters that take the parameters of an estimator of echolearn, with their names and defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, signature

from echolearn.fitting.settings import Parameters

Constructor = Callable[..., None]


def parameters_of(estimator: type, *, without: Iterable[str] = ()) -> Callable[[Constructor], Constructor]:
    """Return a decorator for `__init__`: it takes, stores and shows the parameters of another class beside its own.

    Libraries read the signature of a constructor to find out what can be set, cloned and searched over. The signature
    is the other class's as it is, so that a parameter that is added there is here too. without: names that the adapter
    decides on itself.
    """
    theirs = [p for name, p in signature(estimator).parameters.items() if name not in set(without)]

    def decorate(init: Constructor) -> Constructor:
        own = [p for p in signature(init).parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
        names = {p.name for p in own}
        first, *rest = own
        merged = [first, *_in_order([*(p for p in theirs if p.name not in names), *rest])]
        shown = signature(init).replace(parameters=merged)

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


def _in_order(parameters: list[Parameter]) -> list[Parameter]:
    """Return parameters as a signature needs them: keyword-only ones last."""
    return sorted(parameters, key=lambda p: p.kind)


def chosen_parameters(adapter: object, estimator: type) -> Parameters:
    """Return the parameters of an adapter that its estimator has too."""
    return {name: getattr(adapter, name) for name in signature(estimator).parameters if hasattr(adapter, name)}


def checked_settings() -> list[Parameters]:
    """Return the settings with which other libraries check classifiers and regressors: defaults, and learned."""
    return [{"hidden_units": 8}, {"hidden_units": 5, "pooling": "mean", "epochs": 2, "missing": "carry"}]
