"""The public names and their parameters are those of tests/api.json: a change of them is a decision, no accident."""

from __future__ import annotations

from api_snapshot import COMMAND, Names, public_names, read


def differences(old: Names, new: Names) -> list[str]:
    """Return one line per name that was removed, is new, or has other parameters."""
    lines = [f"{name}: removed" for name in old if name not in new]
    lines += [f"{name}: new, {_shown(new[name])}" for name in new if name not in old]
    changed = [name for name in old if name in new and old[name] != new[name]]
    return lines + [f"{name}: {_change(old[name], new[name])}" for name in changed]


def _change(before: str | list[str], after: str | list[str]) -> str:
    if isinstance(before, str) or isinstance(after, str):
        return f"was {_shown(before)}, is {_shown(after)}"
    lost, gained = ([one for one in a if one not in b] for a, b in ((before, after), (after, before)))
    if not lost and not gained:
        return f"another order of parameters: was {_shown(before)}, is {_shown(after)}"
    return "; ".join(f"{word} {', '.join(some)}" for word, some in (("without", lost), ("with", gained)) if some)


def _shown(what: str | list[str]) -> str:
    return what if isinstance(what, str) else f"({', '.join(what)})"


def test_public_names_and_parameters_are_those_of_the_snapshot():
    found = differences(read(), public_names())
    assert not found, (
        f"{len(found)} public names differ from tests/api.json. If that is intended, write it anew by\n"
        f"    {COMMAND}\n" + "\n".join(found)
    )


def test_every_change_is_named():
    old = {"a.f": ["x", "*", "y=1"], "a.g": ["x"], "a.h": ["x", "y"], "a.K": "a class of the kind UserWarning"}
    new = {"a.f": ["x", "*", "y=2", "z"], "a.h": ["y", "x"], "a.K": ["x"], "a.new": "property"}
    assert differences(old, new) == [
        "a.g: removed",
        "a.new: new, property",
        "a.f: without y=1; with y=2, z",
        "a.h: another order of parameters: was (x, y), is (y, x)",
        "a.K: was a class of the kind UserWarning, is (x)",
    ]
    assert differences(old, old) == []
