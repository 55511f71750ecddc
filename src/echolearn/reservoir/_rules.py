"""What the settings of a random reservoir may be."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from echolearn.reservoir._activations import ACTIVATIONS, activation_names
from echolearn.reservoir._topologies import TOPOLOGIES
from echolearn.validation import (
    MAX_NUMBER,
    NON_NEGATIVE,
    POSITIVE,
    Rule,
    is_integer,
    is_list,
    is_number,
    one_of,
    or_none,
    whole_number,
)

_TOPOLOGY_NAME = one_of(*TOPOLOGIES)


def _is_square_matrix(value: object) -> bool:
    if isinstance(value, np.ndarray):
        entries = value
    elif isinstance(value, (sparse.sparray, sparse.spmatrix)):
        entries = value.data
    else:
        return False
    square = value.ndim == 2 and value.shape[0] == value.shape[1]
    return bool(square and entries.dtype.kind in "fiu" and np.isfinite(entries).all())


def _is_leak(value: object) -> bool:
    if isinstance(value, tuple):
        return len(value) == 2 and all(map(is_number, value)) and 0 < value[0] <= value[1] <= 1
    if isinstance(value, np.ndarray):
        numbers = value.ndim == 1 and value.size > 0 and value.dtype.kind in "fiu"
        return bool(numbers and np.isfinite(value).all() and (value > 0).all() and (value <= 1).all())
    return is_number(value) and 0 < value <= 1


RESERVOIR_RULES: dict[str, Rule] = {
    "hidden_units": whole_number(1),
    "spectral_radius": or_none(POSITIVE, "topology's matrix as it is"),
    "connections": whole_number(1),
    "topology": Rule(
        lambda v: _TOPOLOGY_NAME.allows(v) or _is_square_matrix(v),
        f"{_TOPOLOGY_NAME.expected}, or a square matrix of finite numbers",
    ),
    "input_scaling": Rule(
        lambda v: POSITIVE.allows(v) or (is_list(v) and all(map(NON_NEGATIVE.allows, v)) and any(map(bool, v))),
        f"a number > 0, at most {MAX_NUMBER:g}, or a list of such numbers (some may be 0), one per feature",
    ),
    "bias_scaling": NON_NEGATIVE,
    "feedback_scaling": POSITIVE,
    "activation": Rule(
        lambda value: isinstance(value, str) and value in activation_names(),
        one_of(*ACTIVATIONS).expected + ", or a name registered by echolearn.reservoir.register",
    ),
    "leak": Rule(
        _is_leak,
        "a number in (0, 1], a pair (low, high) of such numbers to spread the leaks over, or an array of them, one per "
        "unit",
    ),
    "initial_state": Rule(
        lambda v: v is None or (is_list(v) and all(map(is_number, v))), "None (zero), or finite numbers, one per unit"
    ),
    "random_state": Rule(
        lambda v: v is None or isinstance(v, np.random.Generator) or (is_integer(v) and v >= 0),
        "a whole number >= 0, a numpy.random.Generator, or None (another network every time)",
    ),
}
