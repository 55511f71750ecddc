"""Functions of whole models, an estimator or a pipeline that ends in one: `save`, `load` and `stream`."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from os import PathLike
from typing import get_args

from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from echolearn.estimators._base import SequenceEstimator
from echolearn.estimators._classifier import ESNClassifier, StepClassifier
from echolearn.estimators._deep_esn import DeepESNClassifier, DeepESNRegressor
from echolearn.estimators._forecaster import ESNForecaster
from echolearn.estimators._framewise import FrameWise
from echolearn.estimators._regressor import ESNRegressor, StepRegressor
from echolearn.estimators._series import SeriesClassifier, SeriesRegressor
from echolearn.fitting.model import FittedModel
from echolearn.fitting.parameters import flat_settings, grouped_settings
from echolearn.persistence.load import Saved, read_model
from echolearn.persistence.pipeline import FittedPipeline, Step
from echolearn.persistence.save import save_model
from echolearn.persistence.transformers import transformer_parts
from echolearn.readout.online import OnlineRule
from echolearn.streams._estimator import EstimatorStream
from echolearn.streams._pipeline import PipelineStream
from echolearn.validation import SequencesLike, check_boolean

DeepEstimator = DeepESNClassifier | DeepESNRegressor
AnyEstimator = ESNClassifier | ESNRegressor | SeriesClassifier | SeriesRegressor | DeepEstimator | ESNForecaster
NETWORKS: dict[str, type[AnyEstimator]] = {kind.__name__: kind for kind in get_args(AnyEstimator)}


def save(model: BaseEstimator, path: str | PathLike[str], *, sums: bool = False) -> None:
    """Save a fitted estimator, or a fitted pipeline that ends in one, to one safetensors file.

    Parameters
    ----------
    model : estimator of echolearn, or sklearn.pipeline.Pipeline
        The fitted estimator or pipeline. The steps of a pipeline before the network are `FrameWise` transformers, or
        transformers without it. They may be StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, SimpleImputer,
        PCA and PolynomialFeatures: their arrays are written, no code. Others are refused.
    path : str or path-like
        The file to write, for example "model.safetensors". It appears when it is complete, and replaces one that
        exists. The endings of pickles, JSON and exported files are refused.
    sums : bool, default=False
        Whether to save the statistics G and Q too, from which `partial_fit` and online learning continue. The file
        becomes larger by the square of the number of units.

    Raises
    ------
    TypeError or ValueError
        If the model is not fitted, or has a step or a setting that the file cannot hold; the message names it.

    See Also
    --------
    echolearn.load : Read the file back.
    echolearn.runtime.load : Run the file with NumPy alone.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, echolearn
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X = [50 + 9 * np.random.default_rng(seed).normal(size=(100, 1)) for seed in range(3)]
    >>> network = echolearn.ESNRegressor(10, learn="none")
    >>> model = make_pipeline(echolearn.FrameWise(StandardScaler()), network).fit(X, [np.roll(x[:, 0], 1) for x in X])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> echolearn.save(model, path)
    >>> bool((echolearn.load(path).predict(X[0]) == model.predict(X[0])).all())
    True
    """
    if isinstance(model, ESNForecaster):
        model.save(path)
    elif isinstance(model, SequenceEstimator):
        model.save(path, sums=sums)
    else:
        check_boolean("sums", sums)
        save_model(fitted(model), path, statistics=sums)


def load(path: str | PathLike[str]) -> AnyEstimator | Pipeline:
    """Return a fitted estimator or pipeline from a file that its `save` method, or `echolearn.save`, wrote.

    Parameters
    ----------
    path : str or path-like
        The model file.

    Returns
    -------
    estimator or Pipeline
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
    model = read_model(path)
    if not isinstance(model, FittedPipeline):
        return estimator_of(model)
    steps = [(step.name, _framewise(step.transformer) if step.framewise else step.transformer) for step in model.steps]
    return Pipeline([*steps, (model.name, estimator_of(model.model))])


def _framewise(transformer: BaseEstimator) -> FrameWise:
    """Return the step that has this fitted transformer."""
    step = FrameWise(clone(transformer))
    step.transformer_, step.n_features_in_ = transformer, transformer.n_features_in_
    return step


def estimator_of(model: FittedModel) -> AnyEstimator:
    """Return the fitted estimator of a model."""
    kind = NETWORKS[model.estimator]
    known = {*signature(kind).parameters, *(key for settings in kind.groups.values() for key in settings)}
    settings = {name: value for name, value in model.settings.items() if name in known}  # a file may have former ones
    estimator: AnyEstimator = kind(**grouped_settings(settings, kind))
    estimator.model_ = model
    return estimator


def stream(
    model: BaseEstimator, *, online: OnlineRule | None = None, warm_up: SequencesLike = None
) -> EstimatorStream | PipelineStream:
    """Return a fitted estimator or pipeline as a stream that takes one frame or a chunk of frames at a time.

    Parameters
    ----------
    model : ESNClassifier, ESNRegressor, DeepESNClassifier, DeepESNRegressor, or sklearn.pipeline.Pipeline
        The fitted estimator or pipeline. The steps of a pipeline before the network may be those that `save` supports.
    online : RLS or LMS, default=None
        The rule by which the readout continues to learn. None: the readout does not change.
    warm_up : array of shape (n_steps, n_features), pair, or "cold", default=None
        Frames before those of the stream, as in the `stream` method of the estimators. They pass through the
        transformers too.

    Returns
    -------
    EstimatorStream or PipelineStream
        A stream at its start. `PipelineStream` has the methods of the network's stream.

    Raises
    ------
    TypeError
        If the model does not end in a network with one target per step.

    See Also
    --------
    echolearn.streams._stream.Stream : A stream of a reservoir with a readout that is not fitted.
    echolearn.monitoring.Monitor : Warnings about unusual frames of a stream.

    Examples
    --------
    >>> import numpy as np, echolearn
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X = 50 + 9 * np.random.default_rng(0).normal(size=(100, 1))
    >>> network = echolearn.ESNRegressor(10, learn="none")
    >>> model = make_pipeline(echolearn.FrameWise(StandardScaler()), network).fit(X, np.roll(X[:, 0], 1))
    >>> running = echolearn.stream(model, warm_up="cold")  # from the start of the series, not from its end
    >>> answers = [running.predict(frame) for frame in X]
    >>> bool(np.allclose(answers, model.predict(X), atol=1e-3))
    True
    """
    if isinstance(model, (StepClassifier, StepRegressor)):
        return model.stream(online=online, warm_up=warm_up)
    alone = isinstance(model, (SequenceEstimator, ESNForecaster))
    steps, (_, network) = ([], ("", model)) if alone else _taken_apart(model)
    if not isinstance(network, (StepClassifier, StepRegressor)):
        raise TypeError(
            f"{type(network).__name__} has no stream: a network with one target per step streams, alone or at the end "
            "of a pipeline."
        )
    for _, step in steps:
        transformer_parts(_inner(step))  # refuses those whose answer to one frame may depend on others
    if warm_up is not None and not isinstance(warm_up, str):
        frames, *targets = warm_up if isinstance(warm_up, tuple) else (warm_up,)
        for _, step in steps:
            frames = step.transform(frames)
        warm_up = (frames, *targets) if targets else frames
    running = network.stream(online=online, warm_up=warm_up)
    names = getattr(steps[0][1], "feature_names_in_", None) if steps else running.feature_names
    return PipelineStream([_inner(step) for _, step in steps], running, names)


def fitted(model: BaseEstimator) -> Saved:
    """Return what was fitted: of an estimator its model, of a pipeline the transformers too."""
    if isinstance(model, (SequenceEstimator, ESNForecaster)):
        return _with_present_settings(model)
    steps, (name, network) = _taken_apart(model)
    known = [Step(key, _inner(step), isinstance(step, FrameWise)) for key, step in steps]
    return FittedPipeline(known, name, _with_present_settings(network))


def _with_present_settings(network: BaseEstimator) -> FittedModel:
    model: FittedModel = network.model_
    return replace(model, settings=flat_settings(network))


def _taken_apart(model: BaseEstimator) -> tuple[list[tuple[str, BaseEstimator]], tuple[str, BaseEstimator]]:
    """Return the transformers of a fitted pipeline, and its network, by their names."""
    if not isinstance(model, Pipeline):
        raise TypeError(f"{type(model).__name__} is neither an estimator of echolearn nor a Pipeline that ends in one.")
    *steps, last = model.steps
    if not isinstance(last[1], (SequenceEstimator, ESNForecaster)):
        raise TypeError(f"the pipeline ends in {type(last[1]).__name__}; expected a network of echolearn.")
    check_is_fitted(last[1])
    kept = [(name, step) for name, step in steps if step is not None and step != "passthrough"]
    for _, step in kept:
        check_is_fitted(step)
    return kept, last


def _inner(step: BaseEstimator) -> BaseEstimator:
    """Return the fitted transformer of a step."""
    return step.transformer_ if isinstance(step, FrameWise) else step
