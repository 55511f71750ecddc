"""`plan_of`: from a fitted estimator or pipeline to the `Plan` that every export is written from."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from echolearn.estimators._base import SequenceEstimator
from echolearn.estimators._display import ExportMixin
from echolearn.exceptions import ExportError
from echolearn.persistence.save import plan_of as plan_of_model
from echolearn.runtime._plan import Plan


def plan_of(model: BaseEstimator) -> Plan:
    """Return the plan of a fitted estimator of echolearn, or of a pipeline that ends in one.

    The plan has the same contents as the file that `save` writes.

    Parameters
    ----------
    model : estimator of echolearn, or sklearn.pipeline.Pipeline
        The fitted model. The steps of a pipeline before the network may be StandardScaler, MinMaxScaler, MaxAbsScaler,
        RobustScaler, PCA and SimpleImputer, in `FrameWise` or without it.

    Returns
    -------
    Plan
        The operations and arrays of the model.

    Raises
    ------
    ExportError
        If the model, or an option of it, cannot be exported; the message names it.

    See Also
    --------
    export_model : Write the model to a file.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import ESNRegressor
    >>> from echolearn.export import plan_of
    >>> X = np.random.default_rng(0).normal(size=(100, 1))
    >>> plan = plan_of(ESNRegressor(10, learn="none").fit(X, np.roll(X[:, 0], 1)))
    >>> plan.estimator, plan.n_features, plan.layer.W.shape
    ('ESNRegressor', 1, (1, 10))
    """
    network = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(network, ExportMixin):
        raise ExportError(
            f"{type(network).__name__} cannot be exported; expected a classifier, regressor or forecaster of "
            "echolearn, or a Pipeline that ends in one."
        )
    check_is_fitted(network)
    try:
        if isinstance(model, SequenceEstimator):
            fitted = model.model_
        else:  # forecasters and pipelines, which a single network does not load
            fitted = load("echolearn.estimators._functions").fitted(model)
        return plan_of_model(fitted)
    except ExportError:
        raise
    except (TypeError, ValueError) as problem:  # what no file can hold
        raise ExportError(f"{type(model).__name__} cannot be exported: {problem}") from problem


def check_runs_forward(plan: Plan, what: str) -> None:
    """Raise ExportError if answers need the end of a sequence; statistics of all frames so far do not."""
    if not plan.per_step and plan.summary is None:
        raise ExportError(
            f"{plan.estimator} cannot be exported to {what}: its readout sees whole series. Export the sequence graph "
            "of ONNX (step=False)."
        )
    if plan.runs_backward:
        raise ExportError(
            f"bidirectional=True cannot be exported to {what}: half of the units begin at the end of a sequence. "
            "Export the sequence graph of ONNX (step=False), or fit a network with bidirectional=False."
        )


def load(module: str) -> ModuleType:
    """Import what only some exports need: one format, forecasters and pipelines, or speech."""
    return import_module(module)
