"""Checks of single arguments, rules for parameters, and the types of arrays.

A check returns the value in the form that the library computes with, or raises ValueError with a message that names the
argument, what was given and what was expected.
"""

from __future__ import annotations

import difflib
import inspect
import math
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # an array of any dtype

# Sequences or targets as users hold them: an array, a data frame, a list of arrays of different lengths, or a source of
# sequences on a cluster. `echolearn.sequences` finds out which.
SequencesLike: TypeAlias = object
# What an estimator answers, in the form of X: one array, or one per sequence.
Answers: TypeAlias = Array | list[Array]


# Single arguments


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number that float64 can hold. Fractions and decimals do not mix with
    arrays."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def check_number(name: str, value: object) -> float:
    """Return a finite number as a float."""
    if not is_number(value):
        raise ValueError(f"{name}={value!r:.80}; expected a finite number.")
    return float(value)


def check_positive(name: str, value: object) -> float:
    """Return a finite number above 0 as a float."""
    if not is_number(value) or not value > 0:
        raise ValueError(f"{name}={value!r:.80}; expected a number > 0.")
    return float(value)


def check_integer(name: str, value: object, minimum: int) -> int:
    """Return an integer of any type, at least `minimum`, as an int."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
        raise ValueError(f"{name}={value!r:.80}; expected a whole number >= {minimum}.")
    return int(value)


def check_boolean(name: str, value: object) -> bool:
    """Return True or False as a bool. Numbers are refused."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={value!r:.80}; expected True or False.")
    return bool(value)


def check_pair(name: str, value: object) -> tuple[Any, Any]:
    """Return the two members (X, y) of a tuple or list."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(f"{name}={value!r:.80}; expected a pair (X, y).")
    return value[0], value[1]


def check_path(name: str, value: object) -> Path:
    """Return the path of a file or folder as a Path."""
    if not isinstance(value, (str, PathLike)) or not _is_path_name(str(value)):
        raise ValueError(f"{name}={value!r:.80}; expected the path of a file or folder.")
    return Path(value)


def _is_path_name(path: str) -> bool:
    try:
        return path != "" and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def check_float_dtype(value: object) -> np.dtype[Any]:
    """Return float32 or float64, given by name, type or dtype, as a dtype."""
    name = value if isinstance(value, (str, np.dtype)) else getattr(value, "__name__", "")
    if str(name) not in ("float32", "float64"):
        raise ValueError(f"dtype={value!r:.80}; expected 'float32' or 'float64'.")
    return np.dtype(str(name))


def as_generator(random_state: int | np.random.Generator | None) -> np.random.Generator:
    """Return the generator itself, a new one from a seed, or one that differs every time (None)."""
    if random_state is not None and not isinstance(random_state, np.random.Generator):
        check_integer("random_state", random_state, 0)
    return np.random.default_rng(random_state)


def finite_array(name: str, value: object) -> NDArray[np.float64]:
    """Return a new float64 array of finite numbers, of any shape."""
    try:
        array = np.asarray(value)
        x = np.array(array, dtype=np.float64) if array.dtype.kind in "fiubO" else None
    except (TypeError, ValueError, OverflowError):
        x = None
    if x is None:
        what = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"{value!r:.80}"
        raise ValueError(f"{name} is {what}; expected finite numbers.")
    if not np.isfinite(x).all():
        raise ValueError(f"{name} has shape {x.shape} and holds NaN or infinity; give finite numbers.")
    return x


# Rules: what a parameter may be, in code for the check and in words for the message

MAX_COUNT = 2**31  # no count comes near it, and beyond it array indices overflow
MAX_NUMBER = 1e100  # products of larger numbers may overflow


@dataclass(frozen=True)
class Rule:
    """What a parameter may be: a test of the value, and the words that complete "expected ..."."""

    allows: Callable[[object], bool]
    expected: str


def one_of(*words: str | int) -> Rule:
    """Return the rule for one of a few words or integers."""

    def allows(value: object) -> bool:
        return isinstance(value, (str, int)) and any(value == word for word in words)

    return Rule(allows, "one of " + ", ".join(map(repr, words)))


def whole_number(minimum: int) -> Rule:
    """Return the rule for an integer, at least `minimum`, that can count something."""

    def allows(value: object) -> bool:
        return is_integer(value) and minimum <= int(value) < MAX_COUNT

    return Rule(allows, f"a whole number >= {minimum}")


def number(allows: Callable[[float], bool], expected: str) -> Rule:
    """Return the rule for a finite number for which `allows` holds."""
    # as a float of Python: a float32 would be compared in its own precision, in which a limit may be infinite
    return Rule(lambda value: is_number(value) and bool(allows(float(value))), expected)


def or_none(rule: Rule, meaning: str) -> Rule:
    """Return the rule for None, which stands for `meaning`, or what another rule allows."""
    return Rule(lambda value: value is None or rule.allows(value), f"{rule.expected}, or None ({meaning})")


def any_of(*rules: Rule, expected: str) -> Rule:
    """Return the rule for what at least one of several rules allows."""
    return Rule(lambda value: any(rule.allows(value) for rule in rules), expected)


POSITIVE = number(lambda v: 0 < v <= MAX_NUMBER, f"a number > 0, at most {MAX_NUMBER:g}")
NON_NEGATIVE = number(lambda v: 0 <= v <= MAX_NUMBER, f"a number >= 0, at most {MAX_NUMBER:g}")
BOOLEAN = Rule(lambda value: isinstance(value, (bool, np.bool_)), "True or False")


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer of any type (but not a bool)."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Return whether a value is a list, a tuple or a 1-D array."""
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1)


def check_each(settings: Mapping[str, object], rules: Mapping[str, Rule]) -> None:
    """Raise ValueError for the first setting that breaks its rule. Settings without a rule pass."""
    for name, value in settings.items():
        if name in rules and not rules[name].allows(value):
            raise ValueError(f"{name}={shown(value)}; expected {rules[name].expected}.")


def shown(value: object) -> str:
    """Return a value in words; of a matrix, which would fill the screen, its shape."""
    if not isinstance(value, type) and getattr(value, "ndim", 0) > 1:  # a dense or a sparse one
        return f"an array of shape {value.shape}"  # type: ignore[attr-defined]
    return f"{value!r:.80}"


# Names of settings


def check_name(name: object, known: Iterable[str], where: str) -> None:
    """Raise ValueError unless `name` is one of `known`. The message begins with `where` the name was given, and
    suggests the nearest known name, or lists all of them where none is near."""
    known = sorted(known)
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"{where}: there is no setting {name!r:.80}; {hint(name, known)}")


# Our settings, and what other libraries call them: scikit-learn, reservoirpy, PyRCN, reservoir-computing, Keras, ...
SYNONYMS = {
    "hidden_units": (
        "units n_units num_units n_reservoir n_reservoirs reservoir_size res_size N size n_hidden hidden hidden_size "
        "hidden_dim hidden_layer_size hidden_layer_sizes n_neurons n_nodes nodes n_internal_units"
    ),
    "spectral_radius": "sr rho radius lambda_ lam spectral_rad",
    "leak": "lr leak_rate leaky_rate leaking_rate leakage leaky a",
    "step_size": "lr learning_rate learning_rate_init eta step alpha_",
    "random_state": "seed random_seed rng rand_seed",
    "input_scaling": "input_scale input_gain scale_in w_in_scale in_scaling input_scalings",
    "bias_scaling": "bias bias_scale use_bias",
    "feedback_scaling": "fb_scaling feedback_scale fb_scale",
    "feedback": "fb teacher_forcing output_feedback fb_node Win_fb",
    "ridge": "regularization regularisation reg reg_param alpha alphas mu beta l2 w_ridge weight_decay C ridge_param",
    "connections": "density connectivity rc_connectivity sparsity k_in k_rec fan_in degree",
    "ensemble": "blocks n_estimators n_blocks n_networks",
    "washout": "warmup transient transients n_transient n_drop discard skip burn_in",
    "epochs": "max_iter n_epochs num_epochs n_iter iterations",
    "batch_size": "batch minibatch_size",
    "bidirectional": "bidir bi_directional",
    "activation": "act activation_function nonlinearity func",
    "patience": "early_stopping n_iter_no_change",
    "validation_fraction": "validation_split val_fraction validation_size",
    "clip": "gradient_clipping max_norm clip_norm grad_clip clipnorm",
    "input_noise": "noise state_noise noise_rc noise_level noise_in",
    "state_noise": "noise noise_rc noise_level",
    "direct": "input_to_readout input_to_output concat_input",
    "readout": "readout_type output_activation",
    "optimizer": "solver optimiser",
    "class_weight": "class_weights weights",
    "layers": "n_layers hidden_layers depth",
    "topology": "W reservoir_type graph",
}


def hint(name: object, known: Collection[str]) -> str:
    """Return words that lead from an unknown name to the known one: a synonym, the nearest one, or all of them."""
    synonyms = [ours for ours, others in SYNONYMS.items() if ours in known and name in others.split()]
    near = synonyms or difflib.get_close_matches(str(name)[:100], sorted(known), 1)
    return f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(sorted(known))}."


# Names of columns: wherever data have names, they must be those of the fit


def column_names(X: object) -> list[str] | None:
    """Return the names of the columns of a table, or of the entries of one row of it; None: they have none."""
    if isinstance(X, np.ndarray):
        return None
    index = getattr(X, "index", None) if getattr(X, "ndim", 0) == 1 else None
    names = getattr(X, "columns", None if callable(index) else index)
    listed = [] if names is None else list(names)
    return listed if listed and all(isinstance(name, str) for name in listed) else None


def check_columns(X: object, expected: Sequence[str] | Array | None, name: str = "X") -> None:
    """Raise ValueError if X names its columns otherwise than those of the fit. Arrays are read by position."""
    if expected is None or not len(expected):
        return
    found, wanted = column_names(X), list(expected)
    if found is not None and found != wanted:
        raise ValueError(
            f"{name} has the columns {found!r:.200}; expected those of the fit, in their order: {wanted!r:.200}. "
            f"Select them by name, {name}[columns], or give {name}.to_numpy() to have them read by position."
        )


def warn_user(text: str, category: type[Warning]) -> None:
    """Warn with the line of the user's code that called echolearn."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("echolearn."):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level + 1)
