"""Keywords that had other names before."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

P = ParamSpec("P")


def former_names(**advice: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Return a decorator of a constructor that refuses former keywords, with what to write instead."""

    def decorate(constructor: Callable[P, None]) -> Callable[P, None]:
        @wraps(constructor)  # its signature, in which scikit-learn looks for the parameters
        def construct(*args: P.args, **kwargs: P.kwargs) -> None:
            for name, instead in advice.items():
                if name in kwargs:
                    raise TypeError(f"{name}={kwargs[name]!r:.40} was given; {instead}")
            constructor(*args, **kwargs)

        return construct

    return decorate
