"""The model file: every matrix, the settings, classes, version and checksum (docs/reference/model_file.md)."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import numpy as np
from scipy import sparse

from echolearn import __version__, persistence, runtime
from echolearn.fitting.codecs import ClassCodec, LabelSetCodec, ValueCodec
from echolearn.fitting.inputs import InputCodec
from echolearn.fitting.model import FittedModel
from echolearn.fitting.parameters import Parameters
from echolearn.modelfile.layout import MODEL, Facts, entries_of
from echolearn.modelfile.schema import FORECASTER, GIVEN_RESERVOIR, NETWORK, SUMMARY, check_contents
from echolearn.modelfile.values import from_json, history_tensors, to_json
from echolearn.modelfile.writer import storable, write_tensors
from echolearn.persistence.load import Saved, restore
from echolearn.persistence.pipeline import FittedPipeline, check_file, step_parts
from echolearn.readout.deep_network import DeepNetwork
from echolearn.readout.network import Network
from echolearn.reservoir import Reservoir
from echolearn.validation import Array, check_path

PICKLE_ENDINGS, EXPORT_ENDINGS = (".pkl", ".pickle", ".joblib"), (".onnx", ".h", ".html")


def check_model_path(path: object) -> Path:
    """Return the path of a model file; endings of other kinds of files are refused with the call that writes them."""
    place = check_path("path", path)
    ending = place.suffix.lower()
    if ending in PICKLE_ENDINGS:
        how = f"for a pickle, call joblib.dump(esn, {str(path)!r:.200})"
    elif ending in EXPORT_ENDINGS:
        how = f"for this kind of file, call esn.export({str(path)!r:.200})"
    elif ending == ".json":
        how = "weights are not written as JSON; echolearn.load reads the safetensors file back"
    else:
        return place
    raise ValueError(
        f"path={str(path)!r:.200}: save writes a safetensors file, expected an ending such as "
        f"{str(place.with_suffix('.safetensors'))!r:.200}; {how}."
    )


def save_model(model: Saved, path: str | PathLike[str], *, statistics: bool = False) -> None:
    """Write a fitted model to `path`, atomically; statistics: with G and Q, to add sequences later."""
    place = check_model_path(path)
    tensors, facts = contents_of(model, statistics=statistics)
    _check_loads(model, tensors, facts)
    write_tensors(place, tensors, facts, MODEL)


def plan_of(model: Saved) -> runtime.Plan:
    """Return the operations and arrays of a model, by which the runtime and the exports compute."""
    tensors, facts = contents_of(model)
    check_contents(entries_of(tensors), facts)
    return runtime.plan_from_contents(tensors, facts)


def contents_of(model: Saved, *, statistics: bool = False) -> tuple[dict[str, Array], Facts]:
    """Return the arrays and facts of a model's file; statistics: with G and Q."""
    if not isinstance(model, FittedPipeline):
        return model_parts(model, statistics=statistics)
    tensors, known = model_parts(model.model, statistics=statistics)
    arrays, steps = step_parts(model.steps)
    facts: Facts = {"echolearn": __version__, "estimator": "Pipeline", "steps": steps, "name": model.name}
    return arrays | {f"{NETWORK}/{array}": value for array, value in tensors.items()}, {**facts, NETWORK: known}


def model_parts(model: FittedModel, *, statistics: bool = False) -> tuple[dict[str, Array], Facts]:
    """Return the arrays and facts of a fitted model; statistics: with G and Q."""
    named = {name: value for name, value in _tensors(model).items() if value is not None}
    tensors, facts = {name: storable(name, value) for name, value in named.items()}, _facts(model)
    if statistics:
        s = model.network.readout.statistics
        if s is None:
            raise ValueError("this network has no statistics of its fit to save: use sums=False.")
        tensors |= {"G": s.G, "Q": s.Q}
        facts |= {"tt": float(s.tt), "n": float(s.n)}
    return tensors, facts


def _check_loads(model: Saved, tensors: dict[str, Array], facts: Facts) -> None:
    """Raise ValueError unless a file with these arrays and facts could be loaded, and is this model."""
    try:
        check_file(entries_of(tensors), facts)
        if _choices_of(restore(dict(tensors), from_json(to_json(facts)))) != _choices_of(model):
            raise ValueError("the settings are not those of its network")
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as problem:
        raise ValueError(
            f"this network cannot be saved, because no file with it could be loaded: {problem}. If settings were "
            "changed since it was fitted, fit it again."
        ) from problem


def _choices_of(model: Saved) -> tuple[object, ...]:
    """Return what decides about the answers of a model beside its arrays, and is restored from the settings."""
    found = model.model if isinstance(model, FittedPipeline) else model
    network, missing = found.network, found.inputs.missing
    if isinstance(network, DeepNetwork):
        return missing, network.readout.softmax, *(stack.backward_pairs for stack in network.stacks)
    return missing, network.readout.softmax, network.reservoir.activation


def _weights(network: Network | DeepNetwork) -> dict[str, Array | None]:
    """Return the weights of a network of one layer, and what its summary has; those of stack k as "k/name"."""
    if isinstance(network, DeepNetwork):
        return {f"{k}/{name}": value for k, stack in enumerate(network.stacks) for name, value in stack.weights.items()}
    r, summary = network.reservoir, network.view.summary
    return {
        "W": r.W,
        **_sparse_tensors("W_rec", r.W_rec),
        "leak": r.leak,
        "bias": r.bias,
        "W_fb": r.W_fb,
        "initial_state": r.initial_state,
        "backward": r.backward,
        **({} if summary is None else {name: getattr(summary, name) for name in SUMMARY}),
    }


def _tensors(model: FittedModel) -> dict[str, Array | None]:
    network, codec, end = model.network, model.codec, model.training_end
    reservoir = model.settings.get("reservoir")
    given = reservoir.weights() if isinstance(reservoir, Reservoir) else {}  # what learning may have changed
    targets: dict[str, Array | None] = {}
    ended: dict[str, Array | None] = {}
    if end is not None:
        ended = {"end_state": end.state, "end_fed_back": end.fed_back, "end_known": end.known, "opening": end.opening}
    if isinstance(codec, ClassCodec):
        targets["classes"] = codec.labels if codec.labels.dtype.kind in "iufb" else None
    elif isinstance(codec, LabelSetCodec):
        targets |= {"classes": codec.labels, "label_slopes": codec.slopes}
    elif isinstance(codec, ValueCodec):
        targets |= {"target_mean": codec.mean, "target_scale": codec.scale}
    return {
        **_weights(network),
        "U": model.network.readout.U,
        **_input_tensors(model.inputs),
        **ended,
        **targets,
        **_topology_tensors(model.settings.get("topology", "random")),
        **{f"{GIVEN_RESERVOIR}{name}": value for name, value in given.items()},
        **(persistence.forecast_tensors(model) if model.estimator == FORECASTER else {}),
        **history_tensors(model.history)[0],
    }


def _input_tensors(inputs: InputCodec) -> dict[str, Array]:
    """Return how inputs are encoded, unless they are left as they are."""
    if inputs.is_identity:
        return {}
    return {f"input_{name}": getattr(inputs, name) for name in ("mean", "scale", "fill", "flagged")}


def _topology_tensors(topology: str | Array | sparse.csr_array) -> dict[str, Array]:
    """Return a given matrix, sparse if it is."""
    if isinstance(topology, str):
        return {}
    return _sparse_tensors("topology", topology) if sparse.issparse(topology) else {"topology": topology}


def _sparse_tensors(name: str, matrix: sparse.csr_array) -> dict[str, Array]:
    S = sparse.csr_array(matrix)
    parts = {"data": S.data, "indices": S.indices.astype(np.int64), "indptr": S.indptr.astype(np.int64)}
    return {f"{name}.{part}": value for part, value in parts.items()}


def _facts(model: FittedModel) -> Facts:
    settings, readout, codec = _plain_settings(model.settings), model.network.readout, model.codec
    if "initial_state" in settings:
        settings["initial_state"] = None  # it is a tensor
    network = model.network
    summary = network.view.summary
    if not isinstance(settings.get("topology", "random"), str):
        settings["topology"] = None  # and so is this
    if settings.get("reservoir") is not None:
        settings["reservoir"] = settings["reservoir"].activation  # the rest are tensors
    known = persistence.forecast_facts(model) if model.estimator == FORECASTER else {}
    facts: Facts = {
        "echolearn": __version__,
        "estimator": model.estimator,
        "settings": settings,
        "features": int(network.reservoir.n_in) // (1 if summary is None else 2 * len(summary.delays)),
        "washout": int(model.network.view.washout),
        "feature_names": list(model.feature_names),
        "per_step": model.per_step,
        "layout": model.layout,
        "one_value": bool(isinstance(codec, ValueCodec) and codec.one_value),
        "many": known.pop("many", False),
        "ridge": float(readout.ridge),
        "history_columns": history_tensors(model.history)[1],
    }
    facts |= known
    if isinstance(network, DeepNetwork):
        facts["stacks"] = len(network.stacks)
    if model.target_names:
        facts["target_names"] = list(model.target_names)
    if model.recipe is not None:
        facts["recipe"] = model.recipe
    if readout.strength is not None:
        facts["strength"] = float(readout.strength)
    if isinstance(codec, ClassCodec) and codec.labels.dtype.kind not in "iufb":
        names = codec.labels.tolist()
        if not all(isinstance(name, str) for name in names):
            raise TypeError(f"classes of type {type(names[0]).__name__} cannot be saved; use numbers or strings.")
        facts["class_names"] = names
    return facts


def _plain_settings(settings: Parameters) -> Facts:
    """Return settings for a file: without a random generator, which has moved since, and a dict as pairs."""
    plain = dict(settings)
    if isinstance(plain.get("random_state"), np.random.Generator):
        plain["random_state"] = None
    if callable(plain.get("augment")):
        plain["augment"] = None  # no code is saved
    if isinstance(plain.get("class_weight"), Mapping):  # whose labels may be numbers, unlike the names of JSON
        plain["class_weight"] = [list(pair) for pair in plain["class_weight"].items()]
    return plain
