"""Rules for the parameters of estimators: what each may be, in code for the check and in words for the message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TypeGuard

import numpy as np
from scipy import sparse

from echolearn.validation.values import is_number

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
            raise ValueError(f"{name}={_shown(value)}; expected {rules[name].expected}.")


def _shown(value: object) -> str:
    """Return a value in words; of a matrix, which would fill the screen, its shape."""
    if isinstance(value, (np.ndarray, sparse.sparray, sparse.spmatrix)) and value.ndim > 1:
        return f"an array of shape {value.shape}"
    return f"{value!r:.80}"
