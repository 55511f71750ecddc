"""The method `export` of the estimators: the one call from here to a package above, which is loaded when it is made.

A method is where people look for it; what is exported, and how, only `echolearn.export` knows.
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator


def export_fitted(
    model: BaseEstimator,
    path: str | PathLike[str],
    *,
    name: str,
    step: bool,
    numbers: str | None,
    X: ArrayLike | None,
) -> None:
    """Write a fitted model by `echolearn.export.export_model`."""
    exporting = import_module("echolearn.export")
    exporting.export_model(model, path, name=name, step=step, numbers=numbers, X=X)
