"""The words an estimator understands, each with what it may be. One table, one message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from echolearn.reservoir.activations import ACTIVATIONS
from echolearn.reservoir.topologies import TOPOLOGIES
from echolearn.validation.values import is_number

MOST = 2**31  # no count comes near it, and beyond it array indices overflow
Rule = tuple[Callable[[Any], bool], str]


def _one_of(*words: Any) -> Rule:
    def known(value: Any) -> bool:
        return any(value is w or (isinstance(value, (str, int)) and value == w) for w in words)

    return known, "one of " + ", ".join(map(repr, words))


def _whole(least: int) -> Rule:
    def allowed(value: Any) -> bool:
        return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) < MOST

    return allowed, f"a whole number >= {least}"


def _seed(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def _or_none(rule: Rule, meaning: str) -> Rule:
    return (lambda v: v is None or rule[0](v)), f"{rule[1]}, or None ({meaning})"


_MOST = 1e100  # whose products are still numbers


def _truth(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


def _path(value: Any) -> bool:
    listed = isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1)
    return listed and len(value) > 0 and all(is_number(v) and v > 0 for v in value)


def _scales(value: Any) -> bool:
    listed = isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1)
    return listed and len(value) > 0 and all(map(_NOT_NEGATIVE[0], value)) and any(v > 0 for v in value)


def _state(value: Any) -> bool:
    listed = isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1)
    return value is None or (listed and all(is_number(v) for v in value))


def _square(value: Any) -> bool:
    if sparse.issparse(value):
        entries = value.data
    elif isinstance(value, np.ndarray):
        entries = value
    else:
        return False
    shape = value.shape
    return bool(len(shape) == 2 and shape[0] == shape[1] and entries.dtype.kind in "fiu" and np.isfinite(entries).all())


def _leak(value: Any) -> bool:
    if isinstance(value, tuple):
        return len(value) == 2 and all(map(is_number, value)) and 0 < value[0] <= value[1] <= 1
    return is_number(value) and 0 < value <= 1


_POSITIVE: Rule = (lambda v: is_number(v) and 0 < v <= _MOST), f"a number > 0, at most {_MOST:g}"
_NOT_NEGATIVE: Rule = (lambda v: is_number(v) and 0 <= v <= _MOST), f"a number >= 0, at most {_MOST:g}"
_TRUTH: Rule = _truth, "True or False"

RULES: dict[str, Rule] = {
    "hidden_units": _whole(1),
    "blocks": _or_none(_whole(1), "as many as make good learners of their size"),
    "spectral_radius": _or_none(_POSITIVE, "topology's matrix as it is"),
    "connections": _whole(1),
    "topology": (
        lambda v: (isinstance(v, str) and v in TOPOLOGIES) or _square(v),
        f"one of {', '.join(map(repr, TOPOLOGIES))}, or a square matrix of finite numbers",
    ),
    "input_scaling": (
        lambda v: _POSITIVE[0](v) or _scales(v),
        f"a number > 0, at most {_MOST:g}, or a list of such numbers (some may be 0), one a feature",
    ),
    "bidirectional": _TRUTH,
    "bias_scaling": _NOT_NEGATIVE,
    "feedback_scaling": _POSITIVE,
    "activation": _one_of(*ACTIVATIONS),
    "leak": (_leak, "a number in (0, 1], or a pair (low, high) of such numbers to spread the leaks over"),
    "learn_leak": _TRUTH,
    "plasticity": _or_none(
        ((lambda v: is_number(v) and 1e-3 <= v <= 1), "a number from 0.001 to 1"), "no intrinsic plasticity"
    ),
    "feedback": _TRUTH,
    "initial_state": (_state, "None (zero), or finite numbers, one a unit"),
    "washout": _whole(0),
    "direct": _TRUTH,
    "pooling": (
        lambda v: (isinstance(v, str) and v in ("mean", "last")) or _whole(1)[0](v),
        "'mean', 'last', or a whole number >= 1 (into how many parts time is cut, each with its own mean)",
    ),
    "noise": _NOT_NEGATIVE,
    "ridge": (
        lambda v: (isinstance(v, str) and v == "auto") or (is_number(v) and v >= 0) or _path(v),
        "a number >= 0, a list of numbers > 0 to choose from, or 'auto'",
    ),
    "readout": _one_of("ridge", "softmax"),
    "learn": _one_of("none", "input", "both"),
    "lookback": _or_none(_whole(1), "the whole sequence"),
    "targets": _one_of("all", "last"),
    "gradient": _one_of("exact", "printed"),
    "case": _one_of(1, 2),
    "optimizer": _one_of("adam", "fista"),
    "momentum": _one_of("fista", "printed"),
    "step_size": _or_none(_POSITIVE, "chosen from the number of hidden units"),
    "refine_epochs": _whole(0),
    "joint_epochs": _whole(0),
    "sees": _one_of("output", "output+input", "output+hidden"),
    "epochs": _or_none(_whole(0), "as many as the data need"),
    "batch_size": _or_none(_whole(1), "all sequences at once"),
    "clip": _or_none(_POSITIVE, "no clipping"),
    "renormalize": _TRUTH,
    "validation_fraction": ((lambda v: is_number(v) and 0 <= v < 1), "a number in [0, 1); 0 holds nothing back"),
    "patience": (
        lambda v: (isinstance(v, str) and v == "auto") or _or_none(_whole(1), "")[0](v),
        "a whole number >= 1, 'auto' (a quarter of the epochs), or None (no early stopping)",
    ),
    "dtype": _one_of("float32", "float64"),
    "random_state": (
        lambda v: v is None or isinstance(v, np.random.Generator) or _seed(v),
        "a whole number >= 0, a numpy.random.Generator, or None (another network every time)",
    ),
    "verbose": (
        (lambda v: _truth(v) or _whole(0)[0](v)),
        "0 (silent), 1 (a line an epoch) or 2 (never rewritten)",
    ),
}


def check_each(settings: Mapping[str, Any]) -> None:
    """Every setting against its rule; the first that breaks it is named."""
    for name, value in settings.items():
        if name in RULES:
            allowed, words = RULES[name]
            if not allowed(value):
                matrix = sparse.issparse(value) or (isinstance(value, np.ndarray) and value.ndim > 1)
                shown = f"an array of shape {value.shape}" if matrix else f"{value!r:.80}"
                raise ValueError(f"{name}={shown}; expected {words}.")


def check(settings: Mapping[str, Any]) -> None:
    """Every setting of an estimator, and whether they go together."""
    check_each(settings)
    _check_topology(settings)
    state, units = settings.get("initial_state"), settings.get("hidden_units")
    if state is not None and len(state) != units:
        raise ValueError(f"initial_state has shape ({len(state)},); expected {units} finite numbers, one a unit.")
    if settings.get("bidirectional"):
        _check_directions(settings)
    unknown_to_paper = settings.get("feedback") or settings.get("leak") != 1 or settings.get("learn_leak")
    if settings.get("gradient") == "printed" and settings.get("learn") != "none" and unknown_to_paper:
        raise ValueError(
            "gradient='printed': the paper's formulas know neither leak nor feedback. Set leak=1, "
            "learn_leak=False and feedback=False, or gradient='exact'."
        )


def _check_directions(settings: Mapping[str, Any]) -> None:
    """What units that begin at the end of a sequence ask of other settings."""
    for cannot, why in (
        (settings["hidden_units"] < 2, "hidden_units=1: there must be a unit for each direction. Give 2 or more"),
        (settings["feedback"], "feedback=True: what is fed back is not there yet at the end of a sequence. Set one"),
        (settings["gradient"] == "printed", "gradient='printed': the paper's formulas run one way. Use 'exact'"),
        (
            not isinstance(settings["topology"], str),
            "topology is a matrix of all units, but each direction has a network of its own. Name a topology",
        ),
    ):
        if cannot:
            raise ValueError(f"bidirectional=True with {why}, or bidirectional=False.")


def _check_topology(settings: Mapping[str, Any]) -> None:
    """What a given matrix, and intrinsic plasticity, ask of other settings."""
    topology = settings.get("topology", "random")
    given = not isinstance(topology, str)
    if given and topology.shape[0] != settings.get("hidden_units"):
        raise ValueError(
            f"topology is a matrix of shape {topology.shape}, but hidden_units={settings.get('hidden_units')!r}. "
            f"Set hidden_units={topology.shape[0]}."
        )
    if given and (settings.get("blocks") or 1) > 1:
        raise ValueError(f"blocks={settings['blocks']!r}; expected None or 1, since topology is a matrix of all units.")
    if settings.get("spectral_radius", 1) is None and (not given or settings.get("renormalize")):
        raise ValueError(
            "spectral_radius=None; expected a number > 0, unless topology is a matrix to be taken as it is (and not "
            "renormalised). Set spectral_radius, for example 0.9."
        )
    if settings.get("plasticity") is not None:
        known = settings.get("activation") in ("tanh", "sigmoid") and not settings.get("feedback")
        if not known or (settings.get("activation") == "sigmoid" and settings["plasticity"] >= 1):
            raise ValueError(
                f"plasticity={settings['plasticity']!r}; expected None, or tanh or sigmoid units (these with a "
                "plasticity below 1) without feedback."
            )
