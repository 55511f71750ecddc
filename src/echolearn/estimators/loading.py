"""The function `load`, which returns a fitted estimator from its file."""

from __future__ import annotations

from os import PathLike

import numpy as np
from sklearn.pipeline import Pipeline

from echolearn.estimators._base import set_fitted
from echolearn.estimators._forecaster import ESNForecaster
from echolearn.estimators.classifier import ESNClassifier
from echolearn.estimators.model_layout import FORMAT
from echolearn.estimators.pipelines import check_file, restore_pipeline
from echolearn.estimators.regressor import ESNRegressor
from echolearn.estimators.restoring import restore
from echolearn.estimators.stacked import StackedClassifier, StackedRegressor
from echolearn.exceptions import ModelFileError
from echolearn.fitting.model import FittedModel, FittedStack
from echolearn.modelfile.layout import RECOGNIZER
from echolearn.modelfile.reader import file_kind, read_tensors
from echolearn.validation import check_path

NETWORKS = {kind.__name__: kind for kind in (ESNClassifier, ESNForecaster, ESNRegressor)}
STACKS = {kind.__name__: kind for kind in (StackedClassifier, StackedRegressor)}
SingleEstimator = ESNClassifier | ESNForecaster | ESNRegressor
StackEstimator = StackedClassifier | StackedRegressor


def load(path: str | PathLike[str]) -> SingleEstimator | StackEstimator | Pipeline:
    """Return a fitted estimator or pipeline from a file that its `save` method, or `echolearn.save`, wrote.

    Parameters
    ----------
    path : str or path-like
        The model file.

    Returns
    -------
    ESNClassifier, ESNRegressor, ESNForecaster, StackedClassifier, StackedRegressor or Pipeline
        The estimator or pipeline, as it was saved.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ModelFileError
        The file is damaged, or is not a model file that this version can read. No code in a file is ever executed.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, echolearn
    >>> X = np.random.default_rng(0).normal(size=(100, 1))
    >>> esn = echolearn.ESNRegressor(10, learn="none").fit(X, np.roll(X[:, 0], 1))
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> esn.save(path)
    >>> bool((echolearn.load(path).predict(X) == esn.predict(X)).all())
    True
    """
    place = check_path("path", path)
    if file_kind(place) == RECOGNIZER:
        raise ModelFileError(
            f"{place} is a recogniser of speech: load it with echolearn.speech.recognition.load_recognizer."
        )
    tensors, facts = read_tensors(place, FORMAT, check_file)
    try:
        if "steps" not in facts:
            return estimator_of(restore(tensors, facts))
        steps, name, model = restore_pipeline(tensors, facts)
        return Pipeline([*steps, (name, estimator_of(model))])
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as problem:
        raise ModelFileError(f"{place} is not a model this version understands: {problem}") from problem


def estimator_of(model: FittedModel | FittedStack) -> SingleEstimator | StackEstimator:
    """Return the fitted estimator of a model."""
    return _stack(model) if isinstance(model, FittedStack) else _single(model)


def _single(model: FittedModel) -> SingleEstimator:
    estimator: SingleEstimator = NETWORKS[model.estimator](**model.settings)
    set_fitted(estimator, model.network, model.codec, model.history, model.inputs)
    estimator.training_end_ = model.training_end
    if model.feature_names:
        estimator.feature_names_in_ = np.array(model.feature_names, dtype=object)
    estimator.target_names_ = model.target_names
    if model.recipe is not None:
        estimator.recipe_ = model.recipe
    if isinstance(estimator, ESNForecaster):
        assert model.forecast is not None
        estimator.forecast_ = model.forecast
    else:
        estimator.layout_ = model.layout
    return estimator


def _stack(model: FittedStack) -> StackEstimator:
    layers = [_single(layer) for layer in model.layers]
    stack: StackEstimator = STACKS[model.estimator](layers, **model.settings)
    stack.layers_, stack.scales_, stack.history_ = layers, list(model.scales), model.history
    stack.layout_ = model.layout
    return stack
