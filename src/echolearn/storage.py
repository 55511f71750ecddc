"""The model file: one safetensors file with every matrix, the settings, classes, version and a checksum.

No code is ever executed on loading. The file is written beside its final name and moved into place when it is
whole, so that at any moment either the old or the new file is there.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes
from scipy import sparse

from echolearn.readout import Sums
from echolearn.reservoir import Reservoir

Array = NDArray[Any]

FORMAT = "echolearn-model"
FORMAT_VERSION = 1
TENSORS = {
    "W": 2, "W_rec.data": 1, "W_rec.indices": 1, "W_rec.indptr": 1, "leak": 1, "bias": 1, "W_fb": 2,
    "initial_state": 1, "U": 2, "classes": 1, "target_mean": 1, "target_scale": 1,
    "G": 2, "Q": 2, "topology": 2, "topology.data": 1, "topology.indices": 1, "topology.indptr": 1,
    "exogenous_mean": 1, "exogenous_scale": 1, "last_state": 2, "last_value": 2, "residuals": 2,
}  # fmt: skip
FORECASTING = ("exogenous_mean", "exogenous_scale", "last_state", "last_value", "residuals")  # only a forecaster has


class ModelFileError(ValueError):
    """The file is not a whole, unchanged echolearn model."""


def save(estimator: Any, path: str | os.PathLike[str], *, sums: bool = False) -> None:
    """Write a fitted estimator to `path`, atomically; `sums`: with G and Q, to add sequences later."""
    tensors = {name: value for name, value in _tensors(estimator).items() if value is not None}
    facts = _facts(estimator, tensors)
    if sums:
        s = estimator._sums
        tensors |= {"G": s.G, "Q": s.Q}
        facts |= {"tt": s.tt, "n": s.n}
    write_tensors(Path(path), tensors, facts, FORMAT)


def write_tensors(path: Path, tensors: dict[str, Array], facts: dict[str, Any], kind: str) -> None:
    """One safetensors file: arrays, and plain values with version and checksum, under the name of its kind."""
    tensors = {name: _plain(value) for name, value in tensors.items()}
    facts = {"format": kind, "format_version": FORMAT_VERSION, **facts}
    facts["sha256"] = _checksum(tensors, facts)
    write_atomically(path, to_bytes(tensors, metadata={kind: json.dumps(facts)}))


def write_atomically(path: Path, content: bytes) -> None:
    """Temporary file, fsync, rename, fsync of the folder."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as problem:
        raise OSError(problem.errno, f"cannot write {path}: {problem.strerror}") from problem
    finally:
        temporary.unlink(missing_ok=True)


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


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
        "U": estimator._U,
        "classes": classes if classes is not None and classes.dtype.kind in "iufb" else None,
        "target_mean": getattr(estimator, "target_mean_", None),
        "target_scale": getattr(estimator, "target_scale_", None),
        **_topology_tensors(getattr(estimator, "topology", "random")),
        **{name: getattr(estimator, f"{name}_", None) for name in FORECASTING},
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


def _given_topology(tensors: dict[str, Array]) -> Any:
    if "topology" in tensors:
        return tensors["topology"]
    parts = (tensors["topology.data"], tensors["topology.indices"], tensors["topology.indptr"])
    N = len(tensors["topology.indptr"]) - 1
    S = sparse.csr_array(parts, shape=(N, N))
    S.check_format(full_check=True)
    return S


def _plain(value: Array) -> Array:
    """C order and native bytes: safetensors scrambles anything else without a word."""
    value = np.asarray(value)
    return np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("="))


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
        "settings": {name: _json(value) for name, value in settings.items()},
        "features": int(estimator.n_features_in_),
        "feature_names": list(getattr(estimator, "feature_names_in_", [])),
        "per_step": bool(estimator.per_step_),
        "one_value": bool(getattr(estimator, "_one_value", False)),
        "many": bool(getattr(estimator, "_many", False)),
        "ridge": float(estimator.ridge_),
        "history": [dict(row) for row in estimator.history_],
    }
    if hasattr(estimator, "strength_"):
        facts["strength"] = float(estimator.strength_)
    if hasattr(estimator, "classes_") and "classes" not in tensors:
        names = estimator.classes_.tolist()
        if not all(isinstance(name, str) for name in names):
            raise TypeError(f"classes of type {type(names[0]).__name__} cannot be saved; use numbers or strings.")
        facts["class_names"] = names
    return facts


def _json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return {"tuple": [_json(v) for v in value]}
    if isinstance(value, list):
        return [_json(v) for v in value]
    return value


def _from_json(value: Any) -> Any:
    return tuple(value["tuple"]) if isinstance(value, dict) else value


def _checksum(tensors: dict[str, Array], facts: dict[str, Any]) -> str:
    digest = hashlib.sha256()
    plain = {name: value for name, value in facts.items() if name != "sha256"}
    digest.update(json.dumps(plain, sort_keys=True).encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name} {value.dtype.str} {value.shape}".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()


def load(path: str | os.PathLike[str]) -> Any:
    """A fitted estimator from a file that `save` wrote; anything else is refused with ModelFileError."""
    path = Path(path)
    tensors, facts = read_tensors(path, FORMAT, TENSORS)
    try:
        return _rebuild(tensors, facts)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as problem:
        raise ModelFileError(f"{path} is not a model this version understands: {problem}") from problem


def read_tensors(
    path: Path, kind: str, allowed: dict[str, int] | None = None
) -> tuple[dict[str, Array], dict[str, Any]]:
    """What `write_tensors` wrote, whole and unchanged; `allowed` names the arrays there may be, with their ndim."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if kind not in metadata:
                raise ModelFileError(f"{path} is a safetensors file, but not an {kind} file.")
            facts = json.loads(metadata[kind])
            names = set(file.keys())
            if not isinstance(facts, dict) or (allowed is not None and not names <= set(allowed)):
                raise ModelFileError(f"{path} holds parts that no {kind} file has: {sorted(names)}.")
            if facts.get("format_version") != FORMAT_VERSION:
                raise ModelFileError(
                    f"{path} has format version {facts.get('format_version')!r}; this echolearn reads version "
                    f"{FORMAT_VERSION}. Install the echolearn that wrote it ({facts.get('echolearn')!r}) or newer."
                )
            tensors = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, json.JSONDecodeError, UnicodeDecodeError) as problem:
        raise ModelFileError(f"{path} is damaged, cut short, or not an {kind} file: {problem}") from problem
    if facts.get("sha256") != _checksum(tensors, facts):
        raise ModelFileError(
            f"{path} is damaged: its checksum does not match. Take it from a backup, or save it again."
        )
    for name, value in tensors.items():
        if allowed is not None and value.ndim != allowed[name]:
            raise ModelFileError(f"{path}: {name} has {value.ndim} dimensions; expected {allowed[name]}.")
    return tensors, facts


def _rebuild(tensors: dict[str, Array], facts: dict[str, Any]) -> Any:
    from echolearn.estimators import ESNClassifier, ESNRegressor
    from echolearn.forecaster import ESNForecaster
    from echolearn.training import History

    kinds = {kind.__name__: kind for kind in (ESNClassifier, ESNForecaster, ESNRegressor)}
    settings = {name: _from_json(value) for name, value in facts["settings"].items()}
    settings["initial_state"] = tensors.get("initial_state")
    if settings.get("topology", "") is None:
        settings["topology"] = _given_topology(tensors)
    estimator = kinds[facts["estimator"]](**settings)
    W = tensors["W"]
    recurrent = (tensors["W_rec.data"], tensors["W_rec.indices"], tensors["W_rec.indptr"])
    W_rec = sparse.csr_array(recurrent, shape=(W.shape[1], W.shape[1]))
    W_rec.check_format(full_check=True)  # the compiled loops trust its places
    estimator.reservoir_ = Reservoir(
        W=W,
        W_rec=W_rec,
        activation=settings["activation"],
        leak=tensors["leak"],
        bias=tensors.get("bias"),
        W_fb=tensors.get("W_fb"),
        initial_state=tensors.get("initial_state"),
    )
    estimator.n_features_in_ = facts["features"]
    if facts["feature_names"]:
        estimator.feature_names_in_ = np.array(facts["feature_names"], dtype=object)
    estimator.per_step_ = facts["per_step"]
    estimator.ridge_ = facts["ridge"]
    estimator.history_ = History(facts["history"])
    if "strength" in facts:
        estimator.strength_ = facts["strength"]
    if facts["estimator"] == "ESNClassifier":
        estimator.classes_ = tensors["classes"] if "classes" in tensors else np.array(facts["class_names"])
    else:
        estimator.target_mean_, estimator.target_scale_ = tensors["target_mean"], tensors["target_scale"]
        estimator._one_value = facts["one_value"]
    if facts["estimator"] == "ESNForecaster":
        estimator._many = facts["many"]
        for name in FORECASTING:
            setattr(estimator, f"{name}_", tensors[name])
    rows = W.shape[1] + estimator.direct * W.shape[0] + 1
    outputs = len(estimator.classes_) if facts["estimator"] == "ESNClassifier" else len(estimator.target_mean_)
    if tensors["U"].shape != (rows, outputs) or W.shape[0] != facts["features"]:
        raise ValueError(f"U has shape {tensors['U'].shape}; expected {(rows, outputs)}")
    if "G" in tensors and (tensors["G"].shape != (rows, rows) or tensors["Q"].shape != (rows, outputs)):
        raise ValueError(f"G has shape {tensors['G'].shape}; expected {(rows, rows)}")
    estimator._U = tensors["U"]
    estimator._sums = Sums(tensors["G"], tensors["Q"], facts["tt"], facts["n"]) if "G" in tensors else None
    return estimator
