"""`plan_of`: from a fitted estimator, stack or pipeline to the `Plan` of its export."""

from __future__ import annotations

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from echolearn.estimators._base import SequenceEstimator
from echolearn.estimators._stack import StackedEstimator
from echolearn.estimators.pipelines import contents_of
from echolearn.exceptions import ExportError
from echolearn.runtime.plan import Plan
from echolearn.runtime.planning import plan_from_contents


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
    >>> plan.estimator, plan.n_features, plan.layers[0].W.shape
    ('ESNRegressor', 1, (1, 10))
    """
    network = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(network, (SequenceEstimator, StackedEstimator)):
        raise ExportError(
            f"{type(network).__name__} cannot be exported; expected a classifier, regressor, forecaster or stack of "
            "echolearn, or a Pipeline that ends in one."
        )
    check_is_fitted(network)
    try:
        tensors, facts = contents_of(model)
    except (TypeError, ValueError) as problem:  # what no file can hold
        raise ExportError(f"{type(model).__name__} cannot be exported: {problem}") from problem
    return plan_from_contents(tensors, facts)
