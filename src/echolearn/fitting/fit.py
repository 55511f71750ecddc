"""The fit of an estimator: from what the user gave to a fitted model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from echolearn.execution.blas import one_blas_thread
from echolearn.execution.executor import LOCAL, active_executor
from echolearn.fitting.advice.after import Examination, warn_of_outcome
from echolearn.fitting.advice.before import warn_of_extreme_values
from echolearn.fitting.codecs import LabelSetCodec, TargetCodec
from echolearn.fitting.data import (
    FitData,
    OpenedTargets,
    TargetRule,
    Validation,
    Weighing,
    check_kind,
    open_data,
    open_validation,
    warn_of_input_scale,
)
from echolearn.fitting.ensemble import fit_ensemble
from echolearn.fitting.inputs import InputCodec
from echolearn.fitting.model import FittedModel, end_of_training
from echolearn.fitting.parameters import Parameters, flat_settings
from echolearn.fitting.settings import NetworkSettings, check_beside_reservoir
from echolearn.fitting.stages import Callback, FitRequest, fit_network
from echolearn.fitting.summaries import Prefixes, fit_prefixes, fit_summary
from echolearn.readout.deep_network import DeepNetwork, feature_statistics
from echolearn.readout.network import Network, Readout
from echolearn.readout.ridge import solve
from echolearn.readout.solver import MIN_ITERATIVE_UNITS, Ridge, chosen_ridge
from echolearn.readout.statistics import Statistics, collect
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.opening import Sequences, check_long_enough
from echolearn.training.history import History
from echolearn.validation import Array, Rule, SequencesLike, check_each

OTHER_JOBS = {  # the class for targets of the other kind
    "ESNClassifier": "SeriesClassifier",
    "ESNRegressor": "SeriesRegressor",
    "SeriesClassifier": "ESNClassifier",
    "SeriesRegressor": "ESNRegressor",
}


def open_fit(
    estimator: BaseEstimator,
    X: SequencesLike,
    y: SequencesLike,
    lengths: ArrayLike | None,
    *,
    rule: TargetRule,
    sample_weight: object,
) -> tuple[NetworkSettings, FitData]:
    """Check the parameters of an estimator and the data of its fit; rule: which targets are missing."""
    settings = NetworkSettings.of(flat_settings(estimator))
    check_beside_reservoir(estimator)
    gaps = settings.missing != "error"
    data = open_data(X, y, lengths, gaps=gaps, layout=settings.layout, rule=rule, sample_weight=sample_weight)
    check_job(type(estimator).__name__, data, per_step=True)
    check_long_enough(data.given, settings.washout_steps)
    return settings, data


def open_by_rules(
    estimator: BaseEstimator,
    X: SequencesLike,
    y: SequencesLike,
    lengths: ArrayLike | None,
    *,
    rules: Mapping[str, Rule],
    rule: TargetRule,
    sample_weight: object,
    series: bool = False,
) -> FitData:
    """Check parameters by an estimator's own rules, and the data of its fit; series: one target per series."""
    params = flat_settings(estimator)
    check_each(params, rules)
    data = open_data(
        X,
        y,
        lengths,
        gaps=params["missing"] != "error",
        layout=params["layout"],
        series=series,
        rule=rule,
        sample_weight=sample_weight,
    )
    if series:
        check_job(type(estimator).__name__, data, per_step=False)
    check_long_enough(data.given, params.get("washout", 0))
    return data


def check_job(name: str, data: FitData, *, per_step: bool) -> None:
    """Refuse targets that another estimator is for; name: of the present one."""
    if data.per_step == per_step:
        return
    count, kinds = len(data.given.X), ("step", "series")
    if not per_step and all(isinstance(labels, np.ndarray) and (labels == labels[0]).all() for labels in data.entries):
        raise ValueError(
            f"y has one target per step, the same for all steps of a series; {name} learns one target per series. Pass "
            "one of each: [labels[0] for labels in y], or y.groupby(level=0).first() of a pandas y with the index of X."
        )
    if per_step:
        kinds = ("series", "step")
        found = f"y has one target for each of the {count} sequences of X"
    else:
        found = "y has one target per step"
    raise ValueError(
        f"{found}; {name} learns one target per {kinds[1]}. Use {OTHER_JOBS[name]} for one target per {kinds[0]}."
    )


def fit_series(estimator: BaseEstimator, data: FitData, codec: TargetCodec, weighing: Weighing) -> FittedModel:
    """Return the model of one target per series."""
    if active_executor() is not LOCAL:
        raise ValueError(f"{type(estimator).__name__} is fitted in this process, not on a cluster: leave it out.")
    params = flat_settings(estimator)
    inputs, train = encoded(data, codec, weighing, params)
    network, left_out = fit_summary(train, params)
    cures = "more series" if isinstance(params["ridge"], str) else "ridge='auto', or more series"
    warn_of_outcome(Examination(left_out, data="left-out", cures=cures), codec)
    model = fitted_model(estimator, data, codec, inputs, network=network)
    return replace(model, codec=calibrated(codec, model, data)) if isinstance(codec, LabelSetCodec) else model


def prefixes_of(model: FittedModel, given: Sequences, targets: OpenedTargets, class_weights: Array | None) -> Prefixes:
    """Return readouts of the prefixes of training series, for a model of one label per series."""
    check_kind(targets, per_step=False, name="training")
    check_long_enough(given, model.single.view.washout)
    inputs = model.inputs.dataset(given.X, per_step=False, dtype=model.dtype)
    data = targets.dataset(inputs.X, model.codec, model.dtype, class_weights)
    return fit_prefixes(model.single, data, model.settings)


def encoded(data: FitData, codec: TargetCodec, weighing: Weighing, params: Parameters) -> tuple[InputCodec, Dataset]:
    """Return how inputs are encoded, and the data as the network sees them."""
    dtype = params["dtype"]
    placed = Dataset.place(data.given.X, (), None, per_step=data.per_step, dtype=dtype)
    inputs = InputCodec.of(placed, standardize=params["standardize"], missing=params["missing"])
    if params["standardize"] and isinstance(data.given.X[0], np.ndarray):  # those on a cluster are not fetched for this
        warn_of_extreme_values(data.given.X, inputs.scale)
    return inputs, data.targets.dataset(inputs.encode_all(placed), codec, dtype, weighing[1])


def fit_model(
    estimator: BaseEstimator,
    settings: NetworkSettings,
    data: FitData,
    codec: TargetCodec,
    weighing: Weighing,
    *,
    validation: Validation | None = None,
    callback: Callback | None = None,
    checkpoint: str | PathLike[str] | None = None,
) -> tuple[FittedModel, bool]:
    """Return what was fitted to one target per step, and whether Ctrl-C ended the learning early."""
    settings = settings.resolved(data.given.lengths)
    if isinstance(codec, LabelSetCodec):
        settings = replace(settings, readout="ridge")
    params = flat_settings(estimator)
    inputs, train = encoded(data, codec, weighing, params)
    washout = settings.washout_steps
    if not train.target_weights(washout).any():
        raise ValueError("no target counts after the washout; use a smaller washout, or other weights.")
    settings = settings.for_inputs(inputs.n_features, inputs.n_in)
    warn_of_input_scale(train.X, settings)
    held_out = open_validation(validation, codec, inputs, weighing, like=train, washout=washout, layout=data.layout)
    request = FitRequest(
        owner=type(estimator).__name__,
        params=params,
        settings=settings,
        data=train,
        validation=held_out,
        loss=codec.error,
        callback=callback,
        checkpoint=checkpoint,
    )
    count = settings.networks()
    fit = fit_network(request) if count == 1 else fit_ensemble(request, count)
    with one_blas_thread():
        end = end_of_training(fit.network, train, data.given, inputs)
    model = replace(
        fitted_model(estimator, data, codec, inputs, network=fit.network, history=fit.history),
        refinement=fit.refinement,
        training_end=end,
        initial_reservoir=fit.initial_reservoir,
    )
    warn_of_outcome(fit.examination, codec)
    if isinstance(codec, LabelSetCodec):
        model = replace(model, codec=calibrated(codec, model, data))
    return model, fit.interrupted


def fitted_model(
    estimator: BaseEstimator,
    data: FitData,
    codec: TargetCodec,
    inputs: InputCodec,
    *,
    network: Network | DeepNetwork,
    history: History | None = None,
) -> FittedModel:
    """Return what was fitted."""
    return FittedModel(
        estimator=type(estimator).__name__,
        settings=flat_settings(estimator),
        network=network,
        codec=codec,
        inputs=inputs,
        history=History() if history is None else history,
        feature_names=data.feature_names,
        target_names=data.target_names,
        layout=data.layout,
    )


def calibrated(codec: LabelSetCodec, model: FittedModel, data: FitData) -> LabelSetCodec:
    """Return a codec whose probabilities fit the labels of the training data, in one pass over them."""
    network, targets = model.network, data.targets
    encoded = model.inputs.dataset(data.given.X, per_step=targets.per_step, dtype=model.dtype)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        outputs = network.outputs(encoded)
    first = network.view.washout if targets.per_step else 0
    weights = targets.weights or [np.ones(np.shape(e)[:-1]) for e in targets.entries]
    Y = np.concatenate([o[first:] for o in outputs])
    T = np.concatenate([np.atleast_2d(e)[first:] for e in targets.encoded(codec)])
    w = np.concatenate([np.atleast_1d(v)[first:] for v in weights])
    return codec.calibrated(Y[w > 0], T[w > 0], w[w > 0])


def add_sequences(
    model: FittedModel, ridge: Ridge, given: Sequences, targets: OpenedTargets, class_weights: Array | None
) -> FittedModel:
    """Return a model with sequences added to the statistics of its ridge readout, which is solved again."""
    network, before, per_step = model.network, known_statistics(model), model.per_step
    check_kind(targets, per_step=per_step, name="partial_fit")
    inputs = model.inputs.dataset(given.X, per_step=per_step, dtype=model.dtype)
    data = targets.dataset(inputs.X, model.codec, model.dtype, class_weights)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        if isinstance(network, DeepNetwork):
            s = feature_statistics(network, data)
        else:
            s = collect(network.reservoir, data, network.view)
        s += before
        mu = chosen_ridge(s, ridge)
        readout = Readout(solve(s, mu, intercept=True), False, mu, statistics=s)
    network = replace(network, readout=readout)
    return replace(model, network=network, training_end=end_of_training(network, data, given, model.inputs))


def known_statistics(model: FittedModel) -> Statistics:
    """Return the statistics that the ridge readout was solved from, or raise ValueError if there are none."""
    statistics = model.network.readout.statistics
    if statistics is None:
        raise ValueError(
            "this model has no statistics of its fit to add to: it was saved without them, its readout is a "
            "softmax, it is an ensemble, or it has "
            f"{MIN_ITERATIVE_UNITS} units or more. Fit a smaller one with a ridge readout and ensemble=1, and save it "
            "with save(path, sums=True) to continue later."
        )
    return statistics
