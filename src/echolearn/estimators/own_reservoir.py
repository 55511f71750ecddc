"""A reservoir that the user gives to an estimator: what follows from it, and how it is kept in files."""

from __future__ import annotations

import inspect

import numpy as np
from sklearn.base import BaseEstimator

from echolearn.estimators.parameters import Parameters
from echolearn.modelfile.fingerprints import matrix_fingerprint, weights_fingerprint
from echolearn.reservoir.reservoir import Reservoir
from echolearn.reservoir.spectrum import spectral_radius_of
from echolearn.validation import Array

PREFIX = "reservoir."  # of its arrays in a model file


def with_reservoir(params: Parameters) -> Parameters:
    """Return the parameters of an estimator, with those that a given reservoir decides taken from it."""
    reservoir = params.get("reservoir")
    if not isinstance(reservoir, Reservoir):
        return params
    taken = _taken_from(reservoir)
    taken |= {"topology": "random", "connections": max(1, reservoir.W_rec.nnz // reservoir.N)}
    if params.get("renormalize") is True:
        taken["spectral_radius"] = spectral_radius_of(reservoir.W_rec)
    return {**params, **taken}


def _taken_from(reservoir: Reservoir) -> dict[str, object]:
    return {
        "hidden_units": reservoir.N,
        "activation": reservoir.activation,
        "leak": reservoir.leak,
        "feedback": reservoir.W_fb is not None,
        "bidirectional": reservoir.backward is not None,
        "initial_state": reservoir.initial_state,
    }


def check_beside_reservoir(estimator: BaseEstimator) -> None:
    """Raise ValueError if a parameter of the estimator is neither at its default nor what its reservoir has."""
    params = estimator.get_params(deep=False)
    reservoir = params.get("reservoir")
    if not isinstance(reservoir, Reservoir):
        return
    defaults = inspect.signature(type(estimator)).parameters
    for name, own in _taken_from(reservoir).items():
        given = params[name]
        if not _equal(given, defaults[name].default) and not _equal(given, own):
            raise ValueError(
                f"{name}={given!r:.60} beside reservoir=, which has {name}={own!r:.60}. Leave {name} out, or give "
                "another reservoir (reservoir.with_weights(...) replaces single weights)."
            )
    if params.get("ensemble", 1) != 1:
        raise ValueError(f"ensemble={params['ensemble']!r} beside reservoir=; expected 1: it is one network.")


def _equal(given: object, other: object) -> bool:
    """Return whether two settings are the same; one number equals an array that is full of it."""
    if isinstance(given, tuple) or isinstance(other, tuple):
        return given == other if isinstance(given, tuple) and isinstance(other, tuple) else False
    a, b = np.asarray(given), np.asarray(other)
    return a.shape in ((), b.shape) and bool(np.all(a == b))


def fitting_reservoir(reservoir: Reservoir, n_in: int, n_out: int) -> Reservoir:
    """Return the given reservoir if it takes the inputs and outputs of the data, or raise ValueError."""
    if reservoir.n_in != n_in:
        raise ValueError(f"reservoir has {reservoir.n_in} inputs (W has shape {reservoir.W.shape}); X has {n_in}.")
    if reservoir.W_fb is not None and reservoir.W_fb.shape[1] != n_out:
        raise ValueError(
            f"reservoir feeds back {reservoir.W_fb.shape[1]} outputs (W_fb has shape {reservoir.W_fb.shape}); y makes "
            f"{n_out}: one per class, or one per column of values."
        )
    return reservoir


def reservoir_fingerprint(reservoir: Reservoir) -> str:
    """Return a hash of everything that a reservoir is, for a checkpoint."""
    arrays = {**reservoir.weights(), "initial_state": reservoir.initial_state, "backward": reservoir.backward}
    known = {name: value for name, value in arrays.items() if value is not None}
    return weights_fingerprint(known, (reservoir.activation, matrix_fingerprint(reservoir.W_rec)))


def reservoir_tensors(reservoir: object) -> dict[str, Array]:
    """Return the arrays of a given reservoir in a model file: what learning may have changed."""
    if not isinstance(reservoir, Reservoir):
        return {}
    return {f"{PREFIX}{name}": value for name, value in reservoir.weights().items()}
