"""Settings from a TOML file or from `--set name=value`, every name checked against the ones there are."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from echolearn.validation.names import check_name


def read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as problem:  # also numbers too long for Python, and bytes that are no text
        raise ValueError(f"{path} is not a TOML file: {problem}") from problem


def divided(
    content: Mapping[str, Any], options: Iterable[str], tables: Iterable[str], where: str
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """A file's content as command options and tables of estimator settings."""
    plain: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for key, value in content.items():
        name = key.replace("-", "_")
        check_name(name, [*options, *tables], where)
        if (name in tables) != isinstance(value, dict):
            what = "a table: write it as" if name in tables else "one value, not a table such as"
            raise ValueError(f"{where}: {name} is {what} [{name}]")
        if isinstance(value, dict):
            nested[name] = value
        else:
            plain[name] = ",".join(map(str, value)) if isinstance(value, list) else value
    return plain, nested


def assignments(texts: Iterable[str]) -> dict[str, Any]:
    """`name=value` texts; values as in TOML, words without quotes allowed."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set {text}: expected name=value, such as spectral_radius=0.95")
        try:
            found[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except (ValueError, RecursionError):
            found[name.strip()] = value.strip()
    return found


def estimator_settings(given: Mapping[str, Any], known: Iterable[str], where: str) -> dict[str, Any]:
    """Checked names, and values as Python has them: "none" for None (TOML has no such thing), pairs for leak."""
    known = set(known) - {"hidden_units", "initial_state"}
    settings = {}
    for name, value in given.items():
        check_name(name, known, where)
        if isinstance(value, str) and value.lower() == "none" and name != "learn":
            value = None
        settings[name] = tuple(value) if name == "leak" and isinstance(value, list) else value
    return settings
