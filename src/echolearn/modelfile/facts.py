"""Single facts of a file, of unknown origin, as values of the expected type."""

from __future__ import annotations

from echolearn.validation import is_number


def as_count(value: object) -> int:
    """Return a whole number > 0, or raise ValueError."""
    if type(value) is not int or value < 1:
        raise ValueError(f"{value!r:.40} is not a count")
    return value


def as_whole(value: object) -> int:
    """Return a whole number >= 0, or raise ValueError."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r:.40} is not a whole number >= 0")
    return value


def as_finite(value: object, least: float = 0.0) -> float:
    """Return a finite number, or raise ValueError."""
    if not is_number(value) or value < least:
        raise ValueError(f"{value!r:.40} is not a finite number >= {least:g}")
    return float(value)


def as_truth(value: object) -> bool:
    """Return True or False, or raise ValueError."""
    if type(value) is not bool:
        raise ValueError(f"{value!r:.40} is neither true nor false")
    return value


def as_words(value: object) -> list[str]:
    """Return a list of texts, or raise ValueError."""
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ValueError(f"{value!r:.40} is not a list of words")
    return value
