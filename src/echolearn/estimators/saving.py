"""The model file: one safetensors file with every matrix, the settings, classes, version and a checksum.

No code is ever executed on loading. The file is written beside its final name and moved into place when it is
whole, so that at any moment either the old or the new file is there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from echolearn.estimators import parameters as rules
from echolearn.estimators import saving_stacks as stackfile
from echolearn.modelfile.history import history_rows, history_tensors
from echolearn.modelfile.json_values import from_json, to_json
from echolearn.modelfile.layout import DTYPES, Entry, Facts, entries_of
from echolearn.modelfile.layout import ModelFileError as ModelFileError
from echolearn.modelfile.reader import read_tensors
from echolearn.modelfile.writer import storable, write_tensors
from echolearn.readout.statistics import Sums
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import parts_of
from echolearn.validation.values import check_path, is_number

Array = NDArray[Any]

FORMAT = "echolearn-model"
ANY = tuple(DTYPES)
# Every array there may be: its dtypes, and its shape. A letter means one length in the whole file; M: rows of U.
TENSORS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "W": (("F64",), ("n_in", "N")),
    "W_rec.data": (("F64",), ("connections",)),
    "W_rec.indices": (("I64",), ("connections",)),
    "W_rec.indptr": (("I64",), ("N + 1",)),
    "leak": (("F64",), ("N",)),
    "bias": (("F64",), ("N",)),
    "W_fb": (("F64",), ("N", "n_out")),
    "initial_state": (("F64",), ("N",)),
    "backward": (("BOOL",), ("N",)),
    "U": (("F64",), ("M", "n_out")),
    "G": (("F64",), ("M", "M")),
    "Q": (("F64",), ("M", "n_out")),
    "classes": (ANY, ("n_out",)),
    "target_mean": (("F64",), ("n_out",)),
    "target_scale": (("F64",), ("n_out",)),
    "topology": (ANY, ("hidden_units", "hidden_units")),
    "topology.data": (ANY, ("links",)),
    "topology.indices": (("I64",), ("links",)),
    "topology.indptr": (("I64",), ("hidden_units + 1",)),
    "exogenous_mean": (("F64",), ("inputs",)),
    "exogenous_scale": (("F64",), ("inputs",)),
    "last_state": (("F32", "F64"), ("series", "N")),
    "last_value": (("F64",), ("series", "n_out")),
    "residuals": (("F64",), ("residuals", "n_out")),
    "history": (("F64",), ("epochs", "columns")),
    "history.there": (("BOOL",), ("epochs", "columns")),
}
CORE = {"W", "W_rec.data", "W_rec.indices", "W_rec.indptr", "leak", "U"}
SPARSE = {"topology.data", "topology.indices", "topology.indptr"}
FORECASTING = ("exogenous_mean", "exogenous_scale", "last_state", "last_value", "residuals")  # only a forecaster has


def save(estimator: Any, path: str | os.PathLike[str], *, sums: bool = False) -> None:
    """Write a fitted estimator to `path`, atomically; `sums`: with G and Q, to add sequences later."""
    place = check_path("path", path)
    tensors, facts = stackfile.parts(estimator, _parts) if hasattr(estimator, "layers_") else _parts(estimator)
    if sums:
        s = estimator._sums
        tensors |= {"G": s.G, "Q": s.Q}
        facts |= {"tt": float(s.tt), "n": float(s.n)}
    try:
        check(entries_of(tensors), facts)
        _rebuild(dict(tensors), from_json(to_json(facts)))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as problem:
        raise ValueError(
            f"this network cannot be saved, for no file with it could be loaded: {problem}. If settings were changed "
            "since it was fitted, fit it again."
        ) from problem
    write_tensors(place, tensors, facts, FORMAT)


def _parts(estimator: Any) -> tuple[dict[str, Array], Facts]:
    tensors = {name: storable(name, value) for name, value in _tensors(estimator).items() if value is not None}
    return tensors, _facts(estimator, tensors)


def _tensors(estimator: Any) -> dict[str, Array | None]:
    r = estimator.reservoir_
    classes = getattr(estimator, "classes_", None)
    return {
        "W": r.W,
        "W_rec.data": r.W_rec.data,
        "W_rec.indices": r.W_rec.indices.astype(np.int64),
        "W_rec.indptr": r.W_rec.indptr.astype(np.int64),
        "leak": r.leak,
        "bias": r.bias,
        "W_fb": r.W_fb,
        "initial_state": r.initial_state,
        "backward": r.backward,
        "U": estimator._U,
        "classes": classes if classes is not None and classes.dtype.kind in "iufb" else None,
        "target_mean": getattr(estimator, "target_mean_", None),
        "target_scale": getattr(estimator, "target_scale_", None),
        **_topology_tensors(getattr(estimator, "topology", "random")),
        **{name: getattr(estimator, f"{name}_", None) for name in FORECASTING},
        **history_tensors(estimator.history_)[0],
    }


def _topology_tensors(topology: Any) -> dict[str, Array]:
    """A given matrix, sparse if it is."""
    if isinstance(topology, str):
        return {}
    if not sparse.issparse(topology):
        return {"topology": topology}
    S = sparse.csr_array(topology)
    return {
        "topology.data": S.data,
        "topology.indices": S.indices.astype(np.int64),
        "topology.indptr": S.indptr.astype(np.int64),
    }


def _facts(estimator: Any, tensors: dict[str, Array]) -> dict[str, Any]:
    from echolearn import __version__

    settings = estimator.get_params(deep=False)
    settings["initial_state"] = None  # it is a tensor
    if not isinstance(estimator.topology, str):
        settings["topology"] = None  # and so is this
    if isinstance(settings["random_state"], np.random.Generator):
        settings["random_state"] = None  # it has moved on since, and cannot be told again
    facts = {
        "echolearn": __version__,
        "estimator": type(estimator).__name__,
        "settings": settings,
        "features": int(estimator.n_features_in_),
        "feature_names": list(getattr(estimator, "feature_names_in_", [])),
        "per_step": bool(estimator.per_step_),
        "one_value": bool(getattr(estimator, "_one_value", False)),
        "many": bool(getattr(estimator, "_many", False)),
        "ridge": float(estimator.ridge_),
        "history_columns": history_tensors(estimator.history_)[1],
    }
    if hasattr(estimator, "strength_"):
        facts["strength"] = float(estimator.strength_)
    if hasattr(estimator, "classes_") and "classes" not in tensors:
        names = estimator.classes_.tolist()
        if not all(isinstance(name, str) for name in names):
            raise TypeError(f"classes of type {type(names[0]).__name__} cannot be saved; use numbers or strings.")
        facts["class_names"] = names
    return facts


def load(path: str | os.PathLike[str]) -> Any:
    """A fitted estimator from a file that `save` wrote; anything else is refused with ModelFileError."""
    path = check_path("path", path)
    tensors, facts = read_tensors(path, FORMAT, check)
    try:
        return _rebuild(tensors, facts)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as problem:
        raise ModelFileError(f"{path} is not a model this version understands: {problem}") from problem


def check(entries: Mapping[str, Entry], facts: Facts) -> None:
    """Which arrays there are, and their dtypes and shapes, against one another and the settings (ValueError)."""
    if "layers" in facts:
        stackfile.check(entries, facts, check)
        return
    unknown = sorted(set(entries) - set(TENSORS))
    if unknown:
        raise ValueError(f"it holds arrays that no {FORMAT} file has: {unknown[0]!r:.40}")
    settings = from_json(facts["settings"])
    if not isinstance(settings, dict):
        raise ValueError("the settings are not values by name")
    _check_names(set(entries), settings, facts)
    lengths = _lengths(entries["W"], settings, facts)
    for name, (dtypes, symbols) in TENSORS.items():
        if name not in entries:
            continue
        entry = entries[name]
        if entry.dtype not in dtypes:
            raise ValueError(f"{name} holds {entry.dtype}; expected {' or '.join(dtypes)}")
        shape = tuple(lengths.setdefault(s, n) for s, n in zip(symbols, entry.shape, strict=False))
        if shape != entry.shape or len(symbols) != len(entry.shape):
            raise ValueError(f"{name} has shape {entry.shape}; expected ({', '.join(symbols)}), here {shape}")


def _lengths(W: Entry, settings: Facts, facts: Facts) -> dict[str, int]:
    """The lengths that settings and facts tell, by their letters in `TENSORS`."""
    rules.check_each({name: settings[name] for name in ("hidden_units", "direct")})
    units, n_in, N = settings["hidden_units"], _count(facts["features"]), W.shape[-1]
    parts = parts_of(None if _truth(facts["per_step"]) else settings.get("pooling"))
    lengths = {"hidden_units": units, "hidden_units + 1": units + 1, "N": N, "N + 1": N + 1, "n_in": n_in}
    lengths["M"] = parts * (N + settings["direct"] * n_in) + 1
    for names, letter in (("class_names", "n_out"), ("history_columns", "columns")):
        if names in facts:
            lengths[letter] = len(_words(facts[names]))
    return lengths


def _check_names(names: set[str], settings: Facts, facts: Facts) -> None:
    """The arrays that this estimator must have and may have."""
    kind = facts["estimator"]
    must, may = set(CORE), {"bias", "initial_state"}
    if kind == "ESNClassifier":
        must |= set() if "class_names" in facts else {"classes"}
    else:
        must |= {"target_mean", "target_scale"}
    if kind == "ESNForecaster":
        must |= set(FORECASTING)
    if settings.get("feedback"):
        must |= {"W_fb"}
    if settings.get("bidirectional"):
        must |= {"backward"}
    if settings.get("topology", "") is None:
        must |= SPARSE if SPARSE & names else {"topology"}
    if "tt" in facts:
        must |= {"G", "Q"}
    if "history_columns" in facts:
        must |= {"history", "history.there"}
    if not must <= names <= must | may:
        lacking, odd = sorted(must - names), sorted(names - must - may)
        raise ValueError(f"{kind!r:.40} lacks the arrays {lacking}" if lacking else f"{kind!r:.40} has no arrays {odd}")


def _count(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError(f"{value!r:.40} is not a count")
    return value


def _finite(value: Any, least: float = 0.0) -> float:
    if not is_number(value) or value < least:
        raise ValueError(f"{value!r:.40} is not a finite number >= {least:g}")
    return float(value)


def _truth(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"{value!r:.40} is neither true nor false")
    return value


def _words(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ValueError(f"{value!r:.40} is not a list of words")
    return value


def _history(tensors: dict[str, Array], facts: Facts) -> list[dict[str, float]]:
    if "history_columns" in facts:
        return history_rows(tensors, facts["history_columns"])
    rows = facts["history"]  # of version 1
    if not isinstance(rows, list) or not all(type(v) in (int, float) for row in rows for v in row.values()):
        raise ValueError(f"{rows!r:.40} is not a history")
    return rows


def _square(tensors: dict[str, Array], name: str, N: int) -> Any:
    """A sparse matrix (N, N), every index in its place: the compiled loops trust them."""
    parts = tuple(tensors.pop(f"{name}.{part}") for part in ("data", "indices", "indptr"))
    if parts[2][-1] != len(parts[1]):
        raise ValueError(f"{name} has {len(parts[1])} entries, its rows end at {parts[2][-1]}")
    S = sparse.csr_array(parts, shape=(N, N))
    try:
        S.check_format(full_check=True)
    except ValueError as problem:
        raise ValueError(f"{name}'s indices: {problem}") from None
    return S


def _rebuild(tensors: dict[str, Array], facts: Facts) -> Any:
    if "layers" in facts:
        return stackfile.rebuild(tensors, facts, _rebuild)
    from echolearn.estimators.classifier import ESNClassifier
    from echolearn.estimators.forecaster import ESNForecaster
    from echolearn.estimators.regressor import ESNRegressor
    from echolearn.training.loop import History

    kinds = {kind.__name__: kind for kind in (ESNClassifier, ESNForecaster, ESNRegressor)}
    settings = dict(facts["settings"])
    settings["initial_state"] = tensors.get("initial_state")
    if settings.get("topology", "") is None:
        N = settings["hidden_units"]
        settings["topology"] = tensors["topology"] if "topology" in tensors else _square(tensors, "topology", N)
    estimator = kinds[facts["estimator"]](**settings)
    rules.check(estimator.get_params(deep=False))
    for name, value in tensors.items():
        if value.dtype.kind == "f" and name != "history" and not np.isfinite(value).all():
            raise ValueError(f"{name} holds NaN or infinity")
    W = tensors["W"]
    blocks = getattr(estimator, "_blocks", 1)  # stopped early, some of them may be missing
    if not estimator.hidden_units // blocks <= W.shape[1] <= estimator.hidden_units:
        raise ValueError(f"W has {W.shape[1]} units, but hidden_units={estimator.hidden_units}")
    W_rec = _square(tensors, "W_rec", W.shape[1])
    if not W_rec.has_canonical_format:
        raise ValueError("W_rec has a connection twice, or columns out of order")
    estimator.reservoir_ = Reservoir(
        W=W,
        W_rec=W_rec,
        activation=estimator.activation,
        leak=tensors["leak"],
        bias=tensors.get("bias"),
        W_fb=tensors.get("W_fb"),
        initial_state=tensors.get("initial_state"),
        backward=tensors.get("backward"),
    )
    if estimator.bidirectional != (estimator.reservoir_.backward is not None):
        raise ValueError(f"bidirectional={estimator.bidirectional}, but its units run otherwise")
    estimator.n_features_in_ = facts["features"]
    if facts["feature_names"]:
        estimator.feature_names_in_ = np.array(_words(facts["feature_names"]), dtype=object)
        if len(estimator.feature_names_in_) != facts["features"]:
            raise ValueError(f"{len(estimator.feature_names_in_)} names of {facts['features']} features")
    estimator.per_step_ = _truth(facts["per_step"])
    estimator.ridge_ = _finite(facts["ridge"])
    estimator.history_ = History(_history(tensors, facts))
    if "strength" in facts:
        estimator.strength_ = _finite(facts["strength"])
    _rebuild_targets(estimator, tensors, facts)
    estimator._U = tensors["U"]
    estimator._sums = None
    if "G" in tensors:
        estimator._sums = Sums(tensors["G"], tensors["Q"], _finite(facts["tt"]), _finite(facts["n"]))
    return estimator


def _rebuild_targets(estimator: Any, tensors: dict[str, Array], facts: Facts) -> None:
    """What the readout's outputs stand for."""
    if facts["estimator"] == "ESNClassifier":
        classes = tensors["classes"] if "classes" in tensors else np.array(facts["class_names"])
        if len(classes) < 2 or not (classes[1:] > classes[:-1]).all():
            raise ValueError("the classes are fewer than two, or out of order")
        estimator.classes_ = classes
        return
    estimator.target_mean_, estimator.target_scale_ = tensors["target_mean"], tensors["target_scale"]
    estimator._one_value = _truth(facts["one_value"])
    scales = tensors["target_scale"]
    if not ((scales > 0) & (scales < 1e154)).all() or (estimator._one_value and len(estimator.target_mean_) != 1):
        raise ValueError("a scale of the targets is none, or one value a step has several")
    if facts["estimator"] == "ESNForecaster":
        estimator._many = _truth(facts["many"])
        for name in FORECASTING:
            setattr(estimator, f"{name}_", tensors[name])
        series = len(tensors["last_state"])
        wide = len(estimator.target_mean_) + len(estimator.exogenous_mean_)
        if series < 1 or (series > 1 and not estimator._many) or len(tensors["residuals"]) < 1:
            raise ValueError(f"{series} series and {len(tensors['residuals'])} residuals")
        if wide != facts["features"] or not (estimator.exogenous_scale_ > 0).all():
            raise ValueError(f"{facts['features']} inputs; expected {wide}, values and exogenous inputs")
