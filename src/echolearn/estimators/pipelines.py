"""`save` and `stream`: a pipeline of transformers and a network as one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from os import PathLike
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from echolearn import __version__
from echolearn.estimators._base import SequenceEstimator, fitted_model
from echolearn.estimators._stack import StackedEstimator, fitted_stack
from echolearn.estimators.classifier import ESNClassifier
from echolearn.estimators.framewise import FrameWise
from echolearn.estimators.model_layout import check_layout
from echolearn.estimators.regressor import ESNRegressor
from echolearn.estimators.restoring import restore
from echolearn.estimators.saving import check_model_path, model_parts, write_model
from echolearn.estimators.streams import EstimatorStream
from echolearn.estimators.transformers import (
    KNOWN,
    check_transformer,
    outputs,
    restore_transformer,
    transformer_parts,
)
from echolearn.fitting.model import FittedModel, FittedStack
from echolearn.modelfile.facts import as_truth
from echolearn.modelfile.layout import Entry, Facts
from echolearn.modelfile.snapshot import fingerprint, read_snapshot, write_snapshot
from echolearn.readout.online import OnlineRule
from echolearn.validation import Array, SequencesLike, check_boolean, check_columns, check_path

MODEL = "model"  # the prefix of the network's arrays; those of the steps have their number
MOST_STEPS = 100
Steps = list[tuple[str, BaseEstimator]]


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
    if isinstance(model, StackedEstimator):
        model.save(path)
    elif isinstance(model, SequenceEstimator):
        model.save(path, sums=sums)
    else:
        arrays, facts = contents_of(model, sums=check_boolean("sums", sums))
        write_model(check_model_path(path), arrays, facts, check_file, restore_pipeline)


def contents_of(model: BaseEstimator, *, sums: bool = False) -> tuple[dict[str, Array], Facts]:
    """Return the arrays and facts of the file that `save` writes for a fitted estimator or pipeline."""
    if isinstance(model, (SequenceEstimator, StackedEstimator)):
        return model_parts(_fitted(model), statistics=sums)
    steps, (name, network) = _taken_apart(model)
    tensors, known = model_parts(_fitted(network), statistics=sums)
    arrays, step_facts = _step_parts(steps)
    facts: Facts = {"echolearn": __version__, "estimator": "Pipeline", "steps": step_facts}
    facts |= {"name": name, MODEL: known}
    return arrays | {f"{MODEL}/{array}": value for array, value in tensors.items()}, facts


def stream(
    model: BaseEstimator, *, online: OnlineRule | None = None, warm_up: SequencesLike = None
) -> EstimatorStream | PipelineStream:
    """Return a fitted estimator or pipeline as a stream that takes one frame or a chunk of frames at a time.

    Parameters
    ----------
    model : ESNClassifier, ESNRegressor, or sklearn.pipeline.Pipeline
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
        If the model does not end in an ESNClassifier or ESNRegressor.

    See Also
    --------
    echolearn.estimators.streams.Stream : A stream of a reservoir with a readout that is not fitted.
    echolearn.diagnostics.Monitor : Warnings about unusual frames of a stream.

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
    if isinstance(model, (ESNClassifier, ESNRegressor)):
        return model.stream(online=online, warm_up=warm_up)
    steps, (_, network) = _taken_apart(model)
    if not isinstance(network, (ESNClassifier, ESNRegressor)):
        raise TypeError(f"{type(network).__name__} has no stream; a pipeline that streams ends in a single network.")
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


def _taken_apart(model: BaseEstimator) -> tuple[Steps, tuple[str, BaseEstimator]]:
    """Return the transformers of a fitted pipeline, and its network, by their names."""
    if not isinstance(model, Pipeline):
        raise TypeError(f"{type(model).__name__} is neither an estimator of echolearn nor a Pipeline that ends in one.")
    *steps, last = model.steps
    if not isinstance(last[1], (SequenceEstimator, StackedEstimator)):
        raise TypeError(f"the pipeline ends in {type(last[1]).__name__}; expected a network of echolearn.")
    check_is_fitted(last[1])
    kept = [(name, step) for name, step in steps if step is not None and step != "passthrough"]
    for _, step in kept:
        check_is_fitted(step)
    return kept, last


def _inner(step: BaseEstimator) -> BaseEstimator:
    """Return the fitted transformer of a step."""
    return step.transformer_ if isinstance(step, FrameWise) else step


def _fitted(network: BaseEstimator) -> FittedModel | FittedStack:
    return fitted_stack(network) if isinstance(network, StackedEstimator) else fitted_model(network)


def _step_parts(steps: Steps) -> tuple[dict[str, Array], list[Facts]]:
    """Return the arrays of all steps under their numbers, and the facts of each."""
    arrays: dict[str, Array] = {}
    facts: list[Facts] = []
    for number, (name, step) in enumerate(steps):
        own, known = transformer_parts(_inner(step))
        arrays |= {f"{number}/{array}": value for array, value in own.items()}
        facts.append({"name": name, "framewise": isinstance(step, FrameWise), **known})
    return arrays, facts


def check_file(entries: Mapping[str, Entry], facts: Facts) -> None:
    """Raise ValueError unless the arrays are those of a network, a stack or a pipeline with these facts."""
    if "steps" not in facts:
        check_layout(entries, facts)
        return
    steps = facts["steps"]
    if not isinstance(steps, list) or len(steps) > MOST_STEPS or not all(isinstance(step, dict) for step in steps):
        raise ValueError(f"{steps!r:.40} are not the steps of a pipeline")
    if not isinstance(facts[MODEL], dict) or facts["estimator"] != "Pipeline":
        raise ValueError("a pipeline without a network, or steps of something else")
    by_owner: dict[str, dict[str, Entry]] = {owner: {} for owner in [*map(str, range(len(steps))), MODEL]}
    for name, entry in entries.items():
        owner, _, array = name.partition("/")
        if owner not in by_owner:
            raise ValueError(f"it holds arrays of no step: {name!r:.40}")
        by_owner[owner][array] = entry
    for number, step in enumerate(steps):
        check_transformer(by_owner[str(number)], step)
    check_layout(by_owner[MODEL], facts[MODEL])


RestoredSteps = tuple[Steps, str, FittedModel | FittedStack]


def restore_pipeline(tensors: dict[str, Array], facts: Facts) -> RestoredSteps:
    """Return the fitted transformers, and the name and model of the network; refuse what does not fit together."""

    def own(owner: str) -> dict[str, Array]:
        prefix = f"{owner}/"
        return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}

    steps: Steps = []
    passed_on: int | None = None
    for number, known in enumerate(facts["steps"]):
        transformer = restore_transformer(own(str(number)), known)
        if passed_on is not None and known["features"] != passed_on:
            raise ValueError(f"step {number} takes {known['features']} features; the one before gives {passed_on}")
        passed_on = outputs(transformer)
        steps.append((_name(known["name"]), _framewise(transformer) if as_truth(known["framewise"]) else transformer))
    model = restore(own(MODEL), facts[MODEL])
    first = model.layers[0] if isinstance(model, FittedStack) else model
    if passed_on is not None and first.inputs.n_features != passed_on:
        raise ValueError(f"the network takes {first.inputs.n_features} features; the steps give {passed_on}")
    names = [name for name, _ in steps] + [_name(facts["name"])]
    if len(set(names)) != len(names):
        raise ValueError("two steps have one name")
    return steps, names[-1], model


def _name(name: object) -> str:
    if not isinstance(name, str) or not name or "__" in name:
        raise ValueError(f"{name!r:.40} is not the name of a step")
    return name


def _framewise(transformer: BaseEstimator) -> FrameWise:
    """Return the step that has this fitted transformer."""
    step = FrameWise(clone(transformer))
    step.transformer_, step.n_features_in_ = transformer, transformer.n_features_in_
    return step


def _gives_probabilities(running: PipelineStream) -> bool:
    return hasattr(running.network, "predict_proba")


class PipelineStream:
    """The stream of a pipeline, in which frames pass through the transformers and then the network.

    Parameters
    ----------
    transformers : list of transformers of scikit-learn
        The fitted transformers, in their order.
    network : EstimatorStream
        The stream of the network.
    feature_names : array of str, default=None
        The names of the columns of the fit, if it had any.

    Attributes
    ----------
    network : EstimatorStream
        The stream of the network: its `state`, `steps` and `readout_weights`.
    feature_names : array of str or None
        The names of the columns of the fit. A frame that has names must have these, in this order; arrays are read by
        position.
    """

    def __init__(
        self,
        transformers: Sequence[BaseEstimator],
        network: EstimatorStream,
        feature_names: Array | None = None,
    ):
        self._transformers, self.network, self.feature_names = transformers, network, feature_names
        self._elementwise = all(KNOWN[type(transformer).__name__].elementwise for transformer in transformers)

    def _transformed(self, X: ArrayLike) -> Array:
        """Return a frame or a chunk as the network takes it, with the same bits however frames are cut into chunks."""
        check_columns(X, self.feature_names)
        try:
            given = np.asarray(X)
        except ValueError:
            raise ValueError(f"a frame holds numbers; given {X!r:.80}.") from None
        if not self._transformers:
            return given
        n_in = self._transformers[0].n_features_in_
        if given.dtype.kind not in "fiub" or given.ndim not in (1, 2) or given.shape[-1] != n_in:
            raise ValueError(
                f"a frame has shape ({n_in},) here, a chunk (steps, {n_in}), and holds numbers; given {given.shape} "
                f"of {given.dtype}."
            )
        frames = np.atleast_2d(given if given.dtype in (np.float32, np.float64) else given.astype(float))
        if len(frames) == 0:
            return np.empty((0, outputs(self._transformers[-1])))
        # a product over many rows at once may add in another order than one over a single row
        parts = [frames] if self._elementwise else [frame[None] for frame in frames]
        for transformer in self._transformers:
            parts = [transformer.transform(part) for part in parts]
        return np.concatenate(parts).reshape(*given.shape[:-1], -1)

    def predict(self, X: ArrayLike) -> Array:
        """Return the answer to the next frame, or the answers to a chunk of frames.

        Parameters
        ----------
        X : array of shape (n_features,) or (n_steps, n_features)
            The next frame, or the next frames.

        Returns
        -------
        array
            One answer, or one per frame.
        """
        return self.network.predict(self._transformed(X))

    @available_if(_gives_probabilities)
    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probabilities of the classes, where `predict` returns labels; only of a classifier.

        Parameters
        ----------
        X : array of shape (n_features,) or (n_steps, n_features)
            The next frame, or the next frames.

        Returns
        -------
        array
            One row of probabilities, or one per frame.
        """
        answers: Array = self.network.predict_proba(self._transformed(X))  # type: ignore[attr-defined]
        return answers

    def learn(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Return what `predict` answers to each frame, and then take a step of the online readout towards its target.

        Parameters
        ----------
        X : array of shape (n_features,) or (n_steps, n_features)
            The next frame, or the next frames.
        y : scalar or array
            The target of each frame.

        Returns
        -------
        array
            One answer, or one per frame, made before learning from it.
        """
        return self.network.learn(self._transformed(X), y)

    def reset(self, state: ArrayLike | None = None) -> Self:
        """Return to the start of a sequence, or to a given state there. What was learned stays learned.

        Parameters
        ----------
        state : array of shape (n_units,), default=None
            The state to continue from. None: the reservoir's initial state.

        Returns
        -------
        PipelineStream
            The stream itself.
        """
        self.network.reset(state)
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Save the present state of the stream, to continue later, also in another process.

        Parameters
        ----------
        path : str or path-like
            The file to write. It appears when it is complete, and replaces one that exists.
        """
        write_snapshot(check_path("path", path), self.network.running(), self.identity())

    def resume(self, path: str | PathLike[str]) -> Self:
        """Continue where `save` was called: the same frames give the same bits from there on.

        Parameters
        ----------
        path : str or path-like
            A file that `save` of a stream of the same pipeline, with the same `online` rule, wrote.

        Returns
        -------
        PipelineStream
            The stream itself.
        """
        self.network.run_from(read_snapshot(check_path("path", path), self.network.running(), self.identity()))
        return self

    def identity(self) -> str:
        """Return a hash of all that decides on the next answers beside the running state.

        Returns
        -------
        str
            The same for streams of the same pipeline with the same settings.
        """
        return fingerprint([transformer_parts(t) for t in self._transformers], self.network.identity())

    def copy(self) -> Self:
        """Return an independent stream that continues from the present state.

        Returns
        -------
        PipelineStream
            An independent copy.
        """
        return deepcopy(self)
