"""Settings from a TOML file or from `--set name=value`; every name is checked against the known ones."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from echolearn.validation import check_name

Settings = dict[str, Any]  # values of TOML
NO_GROUPS: Mapping[str, Iterable[str]] = {}


def read(path: Path) -> Settings:
    """Return the content of a TOML file; ValueError where it is none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as problem:  # also numbers too long for Python, and bytes that are no text
        raise ValueError(f"{path} is not a TOML file: {problem}") from problem


def options_and_tables(
    content: Mapping[str, object], options: Iterable[str], tables: Iterable[str], where: str
) -> tuple[Settings, dict[str, Settings]]:
    """Divide a file's content into the options of a command and its tables of estimator settings."""
    plain: Settings = {}
    nested: dict[str, Settings] = {}
    for key, value in content.items():
        name = key.replace("-", "_")
        check_name(name, [*options, *tables], where)
        if (name in tables) != isinstance(value, dict):
            expected = "a table: write it as" if name in tables else "one value, not a table such as"
            raise ValueError(f"{where}: {name} is {expected} [{name}]")
        if isinstance(value, dict):
            nested[name] = value
        else:
            plain[name] = ",".join(map(str, value)) if isinstance(value, list) else value
    return plain, nested


def assignments(texts: Iterable[str]) -> Settings:
    """Parse `name=value` and `learning.step_size=0.01`. Values are written as in TOML; words need no quotes."""
    settings: Settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set {text}: expected name=value, such as spectral_radius=0.95")
        group, dot, key = name.strip().partition(".")
        try:
            parsed = tomllib.loads(f"value = {value}")["value"]
        except (ValueError, RecursionError):
            parsed = value.strip()
            if parsed in ("True", "False") or parsed.startswith(("(", "[", "{", "'", '"')):
                raise ValueError(
                    f"--set {name}={parsed[:60]}: the value is not TOML; expected false, 0.5, a word, [0.1, 0.9] or "
                    "{a = 1}"
                ) from None
        if dot:
            settings[group] = {**(settings[group] if isinstance(settings.get(group), dict) else {}), key: parsed}
        else:
            settings[group] = parsed
    return settings


def estimator_settings(
    assigned: Mapping[str, object], known: Iterable[str], where: str, groups: Mapping[str, Iterable[str]] = NO_GROUPS
) -> Settings:
    """Return settings with checked names and Python's values: "none" as None, which TOML lacks; `leak` as a pair.
    groups: the names inside of settings that are tables themselves."""
    known = set(known) - {"hidden_units", "units", "initial_state", "augment"}
    settings: Settings = {}
    homes = {key: group for group, keys in groups.items() for key in keys}
    for name, value in assigned.items():
        if name in homes:
            raise ValueError(f"{where}: {name} is part of {homes[name]}: write {homes[name]}.{name} = ...")
        check_name(name, {*known, *homes}, where)
        if isinstance(value, dict) and name in groups:
            settings[name] = estimator_settings(value, groups[name], f"{where} {name}")
            continue
        if isinstance(value, str) and value.lower() == "none" and name != "learn":
            value = None
        settings[name] = tuple(value) if name == "leak" and isinstance(value, list) else value
    return settings
