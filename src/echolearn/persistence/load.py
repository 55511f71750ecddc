"""Fitted models from the arrays and facts of a file, refused where these contradict each other."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from echolearn import persistence
from echolearn.exceptions import ModelFileError
from echolearn.fitting.codecs import ClassCodec, LabelSetCodec, TargetCodec, ValueCodec
from echolearn.fitting.inputs import InputCodec
from echolearn.fitting.model import FittedModel, TrainingEnd
from echolearn.fitting.parameters import Parameters
from echolearn.fitting.settings import DEEP_RULES, SERIES_RULES, NetworkSettings
from echolearn.modelfile.layout import MODEL, RECOGNIZER, Facts
from echolearn.modelfile.reader import file_kind, read_tensors
from echolearn.modelfile.schema import (
    CLASSIFIERS,
    DEEP,
    FORECASTER,
    GIVEN_RESERVOIR,
    NETWORK,
    NETWORKS,
    SERIES,
    SETS_OF_UNITS,
    SUMMARY,
    TENSORS,
    arrays_of,
    check_delays,
    layout_of,
)
from echolearn.modelfile.values import as_count, as_finite, as_truth, as_whole, as_words, history_rows
from echolearn.persistence.pipeline import FittedPipeline, check_file, checked_pipeline, restore_steps, step_name
from echolearn.readout.deep_network import DeepNetwork
from echolearn.readout.network import Network, Readout
from echolearn.readout.statistics import Statistics
from echolearn.readout.summary import Summary
from echolearn.readout.view import ReadoutView
from echolearn.reservoir import Reservoir
from echolearn.reservoir._deep_reservoir import DeepReservoir
from echolearn.training.history import History
from echolearn.validation import Array, check_each, check_path

Saved = FittedModel | FittedPipeline


def read_model(path: str | PathLike[str]) -> Saved:
    """Return the model of a file, or raise ModelFileError."""
    place = check_path("path", path)
    if file_kind(place) == RECOGNIZER:
        raise ModelFileError(
            f"{place} is a recogniser of speech: load it with echolearn.speech.recognition.load_recognizer."
        )
    tensors, facts = read_tensors(place, MODEL, check_file)
    try:
        return restore(tensors, facts)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as problem:
        raise ModelFileError(f"{place} is not a model this version understands: {problem}") from problem


def restore(tensors: dict[str, Array], facts: Facts) -> Saved:
    """Return the model, or raise an error of any of the usual kinds where something does not fit."""
    if "steps" not in facts:
        return restore_network(tensors, facts)
    steps, network = restore_steps(tensors, facts), restore_network(arrays_of(NETWORK, tensors), facts[NETWORK])
    return checked_pipeline(FittedPipeline(steps, step_name(facts["name"]), network))


def restore_network(tensors: dict[str, Array], facts: Facts) -> FittedModel:
    """Return the model of a network or a forecaster."""
    model = restore_model(tensors, facts)
    return persistence.restore_forecaster(model, tensors, facts) if model.estimator == FORECASTER else model


def restore_model(tensors: dict[str, Array], facts: Facts) -> FittedModel:
    """Return the model of one network."""
    settings = dict(facts["settings"])
    if isinstance(settings.get("class_weight"), list):
        settings["class_weight"] = dict(settings["class_weight"])
    if facts["estimator"] not in NETWORKS:
        raise KeyError(facts["estimator"])
    for name, value in tensors.items():
        gaps = name in TENSORS and TENSORS[name].gaps
        if value.dtype.kind == "f" and not gaps and not np.isfinite(value).all():
            raise ValueError(f"{name} holds NaN or infinity")
    network: Network | DeepNetwork
    if facts["estimator"] in DEEP:
        network = _deep_network(tensors, facts, settings)
    else:
        network = _one_layer(tensors, facts, settings)
    if as_truth(facts["per_step"]) != network.per_step:
        raise ValueError("a model of whole series answers per step, or one of steps per series")
    inputs = _inputs(tensors, _features(tensors, facts), settings.get("missing", "error"))
    names = as_words(facts["feature_names"])
    if names and len(names) != inputs.n_features:
        raise ValueError(f"{len(names)} names of {inputs.n_features} features")
    return FittedModel(
        estimator=facts["estimator"],
        settings=settings,
        network=network,
        codec=_codec(tensors, facts, settings["dtype"]),
        history=History(history_rows(tensors, facts["history_columns"])),
        feature_names=names,
        inputs=inputs,
        training_end=_training_end(tensors),
        layout=layout_of(facts),
        target_names=as_words(facts.get("target_names", [])),
        recipe=_recipe(facts),
    )


def _one_layer(tensors: dict[str, Array], facts: Facts, settings: dict[str, Any]) -> Network:
    """Return a network of one layer; arrays that are settings are put back into them."""
    if "initial_state" in settings:
        settings["initial_state"] = tensors.get("initial_state")
    if isinstance(settings.get("leak"), list):
        settings["leak"] = np.asarray(settings["leak"])
    if settings.get("topology", "") is None:
        N = settings["hidden_units"]
        settings["topology"] = tensors["topology"] if "topology" in tensors else _square(tensors, "topology", N)
    W_rec = _square(tensors, "W_rec", tensors["W"].shape[1])
    if settings.get("reservoir") is not None:
        settings |= {"reservoir": _given_reservoir(tensors, W_rec, settings["reservoir"]), "initial_state": None}
    build = _series_network if facts["estimator"] in SERIES else _step_network
    return build(tensors, facts, settings, W_rec)


def _deep_network(tensors: dict[str, Array], facts: Facts, settings: dict[str, Any]) -> DeepNetwork:
    """Return a deep network, if it is what its settings announce."""
    settings["leak"] = tuple(settings["leak"])
    check_each(settings, DEEP_RULES)
    pairs = settings["units"] // 4 if settings["bidirectional"] else 0
    stacks = tuple(DeepReservoir(arrays_of(str(k), tensors), pairs) for k in range(as_count(facts["stacks"])))
    readout = _readout(tensors, facts, settings.get("readout", "ridge"))
    return DeepNetwork(stacks, readout, as_truth(facts["per_step"]))


def _step_network(tensors: dict[str, Array], facts: Facts, settings: Parameters, W_rec: sparse.csr_array) -> Network:
    """Return a network that answers at every step, if it is what its settings announce."""
    typed = NetworkSettings.of(settings)
    if "washout" in facts:
        typed = replace(typed, washout=as_whole(facts["washout"]))
    reservoir = _reservoir(tensors, W_rec, typed.activation)
    if not typed.hidden_units // typed.networks() <= reservoir.N <= typed.hidden_units:
        # of an ensemble that was interrupted, some may be missing
        raise ValueError(f"W has {reservoir.N} units, but hidden_units={typed.hidden_units}")
    if typed.bidirectional != (reservoir.backward is not None):
        raise ValueError(f"bidirectional={typed.bidirectional}, but its units run otherwise")
    if not typed.fit_intercept and tensors["U"][-1].any():
        raise ValueError("fit_intercept=False, but U has an intercept")
    return Network(reservoir, _readout(tensors, facts, typed.readout), typed.task().view())


def _series_network(tensors: dict[str, Array], facts: Facts, settings: Parameters, W_rec: sparse.csr_array) -> Network:
    """Return a network that answers for whole series, if it is what its settings announce."""
    check_each(settings, SERIES_RULES)
    check_delays(tensors["delays"])
    reservoir = _reservoir(tensors, W_rec, "tanh")
    units, left = divmod(reservoir.N, len(SETS_OF_UNITS))
    if left or settings["hidden_units"] not in ("auto", units):
        raise ValueError(f"W has {reservoir.N} units, but hidden_units={settings['hidden_units']}")
    washout = as_whole(facts.get("washout", settings["washout"]))
    view = ReadoutView(washout, False, summary=Summary(**{name: tensors[name] for name in SUMMARY}))
    return Network(reservoir, _readout(tensors, facts, settings.get("readout", "ridge")), view)


def _recipe(facts: Facts) -> Facts | None:
    """Return how raw data become X, if the file says it."""
    recipe = facts.get("recipe")
    if recipe is not None and not isinstance(recipe, dict):
        raise ValueError(f"{recipe!r:.40} is not a recipe of features")
    return recipe


def _inputs(tensors: dict[str, Array], n_in: int, missing: str) -> InputCodec:
    """Return how inputs are encoded."""
    if "input_mean" not in tensors:
        return InputCodec.identity(n_in)
    mean, scale, fill, flagged = (tensors[f"input_{name}"] for name in ("mean", "scale", "fill", "flagged"))
    if not ((scale > 0) & (scale < 1e300)).all():
        raise ValueError("a scale of the inputs is not positive")
    inputs = InputCodec(mean, scale, missing, fill, flagged)
    if inputs.n_in != n_in or (flagged.any() and missing != "carry"):
        raise ValueError(f"{n_in} inputs; expected {inputs.n_in}, features and flags of gaps")
    return inputs


def _training_end(tensors: dict[str, Array]) -> TrainingEnd | None:
    if "end_state" not in tensors:
        return None
    if "backward" in tensors or "thresholds" in tensors:
        raise ValueError("a network of whole sequences does not continue a series")
    return TrainingEnd(tensors["end_state"], tensors.get("end_fed_back"), tensors["end_known"], tensors["opening"])


def _given_reservoir(tensors: dict[str, Array], W_rec: sparse.csr_array, activation: str) -> Reservoir:
    """Return the reservoir that the user gave; its connections, directions and initial state are the fitted ones."""
    start = GIVEN_RESERVOIR
    kept = {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}
    kept |= {name: tensors[name] for name in ("initial_state", "backward") if name in tensors}
    return _weights(kept, sparse.csr_array((kept["W_rec"], W_rec.indices, W_rec.indptr), shape=W_rec.shape), activation)


def _weights(tensors: dict[str, Array], W_rec: sparse.csr_array, activation: str) -> Reservoir:
    """Return the reservoir of arrays that have the names of its fields."""
    rest = {name: tensors.get(name) for name in ("bias", "W_fb", "initial_state", "backward")}
    return Reservoir(tensors["W"], W_rec, activation, tensors["leak"], **rest)


def _reservoir(tensors: dict[str, Array], W_rec: sparse.csr_array, activation: str) -> Reservoir:
    if not W_rec.has_canonical_format:
        raise ValueError("W_rec has a connection twice, or columns out of order")
    return _weights(tensors, W_rec, activation)


def _square(tensors: dict[str, Array], name: str, N: int) -> sparse.csr_array:
    """Return a sparse matrix (N, N), every index in its place: the compiled loops trust them."""
    parts = tuple(tensors.pop(f"{name}.{part}") for part in ("data", "indices", "indptr"))
    if parts[2][-1] != len(parts[1]):
        raise ValueError(f"{name} has {len(parts[1])} entries, its rows end at {parts[2][-1]}")
    S = sparse.csr_array(parts, shape=(N, N))
    try:
        S.check_format(full_check=True)
    except ValueError as problem:
        raise ValueError(f"{name}'s indices: {problem}") from None
    return S


def _readout(tensors: dict[str, Array], facts: Facts, kind: str) -> Readout:
    strength = as_finite(facts["strength"]) if "strength" in facts else None
    statistics = None
    if "G" in tensors:
        statistics = Statistics(tensors["G"], tensors["Q"], as_finite(facts["tt"]), as_finite(facts["n"]))
    softmax = kind == "softmax" and "label_slopes" not in tensors  # rows of labels have a ridge readout
    return Readout(tensors["U"], softmax, as_finite(facts["ridge"]), strength, statistics)


def _codec(tensors: dict[str, Array], facts: Facts, dtype: str) -> TargetCodec:
    """Return what the readout's outputs stand for."""
    if facts["estimator"] in CLASSIFIERS:
        classes = tensors["classes"] if "classes" in tensors else np.array(facts["class_names"])
        if len(classes) < 2 or not (classes[1:] > classes[:-1]).all():
            raise ValueError("the classes are fewer than two, or out of order")
        if "label_slopes" not in tensors:
            return ClassCodec(classes)
        if not (tensors["label_slopes"] > 0).all():
            raise ValueError("a slope of the probabilities is not a positive number")
        return LabelSetCodec(classes, tensors["label_slopes"])
    mean, scale, one_value = tensors["target_mean"], tensors["target_scale"], as_truth(facts["one_value"])
    if not ((scale > 0) & (scale < 1e154)).all() or (one_value and len(mean) != 1):
        raise ValueError("a scale of the targets is not positive, or one value per step has several")
    return ValueCodec(mean, scale, one_value, dtype)


def _features(tensors: dict[str, Array], facts: Facts) -> int:
    """Return the number of inputs; a forecaster counts values and exogenous inputs, its network may see others."""
    if facts["estimator"] == FORECASTER:
        return len(tensors["target_mean"]) + len(tensors["exogenous_mean"])
    return int(facts["features"])
