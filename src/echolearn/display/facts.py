"""One line about an object: what it is and how large, instead of thousands of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields

MAX_TEXT_CHARACTERS = 60  # characters of a text


def one_line(thing: object, facts: Iterable[str]) -> str:
    """Return `<Kind: fact, fact>`; empty facts are left out."""
    return f"<{type(thing).__name__}: {', '.join(fact for fact in facts if fact)}>"


def counted(count: int, name: str, plural: str = "") -> str:
    """Return `1 unit` or `1,200 units`."""
    return f"{count:,} {name if count == 1 else plural or name + 's'}"


def brief(thing: object) -> str:
    """Return one line about a dataclass: arrays by their shapes, collections by their sizes; without what is None."""
    named = ((field.name, getattr(thing, field.name)) for field in fields(thing) if field.repr)  # type: ignore[arg-type]
    return one_line(thing, (f"{name} {_value(value)}" for name, value in named if value is not None))


def _value(value: object) -> str:
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return str(shape)
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return counted(len(value), "entry", "entries")
    if isinstance(value, float):
        return f"{value:.4g}"
    text = repr(value)
    return text if len(text) <= MAX_TEXT_CHARACTERS else f"{text[:MAX_TEXT_CHARACTERS]}..."
