"""Names of settings that an estimator does not have, answered with the one that was probably meant."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, Self

from sklearn.base import BaseEstimator

from echolearn.validation import hint


class NamedSettings(BaseEstimator):
    """An estimator that answers an unknown setting with the name that was probably meant.

    It does so in the constructor and in `set_params`, and so in grids and pipelines.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _checked(cls.__init__, cls.__name__)  # type: ignore[method-assign]

    def set_params(self, **params: Any) -> Self:
        """Change settings by their names.

        Parameters
        ----------
        **params : dict
            The settings, as in the constructor; those of a layer as `name__setting`.

        Returns
        -------
        estimator
            The estimator itself.
        """
        known = self.get_params()
        for name in params:
            if name.partition("__")[0] not in known:
                raise ValueError(f"{type(self).__name__} has no setting {name!r:.80}; {hint(name, list(known))}")
        return super().set_params(**params)  # type: ignore[no-any-return]


def _checked(init: Callable[..., None], owner: str) -> Callable[..., None]:
    """Return a constructor that explains unknown keywords; its signature stays what it is."""
    parameters = signature(init).parameters.values()
    known = [p.name for p in parameters if p.name != "self"]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return init

    @wraps(init)
    def checked(self: NamedSettings, *arguments: Any, **settings: Any) -> None:
        try:
            init(self, *arguments, **settings)
        except TypeError as problem:
            unknown = [name for name in settings if name not in known]
            if not unknown or "unexpected keyword" not in str(problem):  # some have an explanation of their own
                raise
            raise TypeError(f"{owner} has no setting {unknown[0]!r:.80}; {hint(unknown[0], known)}") from None

    return checked
