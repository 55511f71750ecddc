"""The public names of echolearn with their parameters, as tests/api.json keeps them.

    python tests/support/api_snapshot.py

writes that file anew. Annotations are left out: they may change without a change for those who call.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from sourcetree import PUBLIC, ROOT, Definition, Function, bases, decorators, find, path_of, tree

SNAPSHOT = ROOT / "tests" / "api.json"
COMMAND = "python tests/support/api_snapshot.py"
Names = dict[str, str | list[str]]  # what a name stands for, or the parameters with which it is called


def public_names() -> Names:
    """Return what stands in `__all__` of each public module, classes with their methods; modules that lack it: nothing.

    A name that another module has made public before is recorded by that name.
    """
    found: Names = {}
    known: dict[Any, str] = {}
    for module in PUBLIC:
        for name in _listed(module):
            place = f"{module}.{name}"
            if module.startswith("echolearn.interop."):  # other libraries are needed to import it
                found |= _written(place, find(module, name))
                continue
            thing = getattr(import_module(module), name)
            defined = isinstance(thing, type) or inspect.isroutine(thing)
            first = known.setdefault(thing, place) if defined else place
            found |= _described(place, thing) if first == place else {place: f"is {first}"}
    return dict(sorted(found.items()))


def _listed(module: str) -> list[str]:
    """Return `__all__` of a module."""
    path = path_of(module)
    for node in tree(path).body if path.is_file() else []:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


# ---------------------------------------------------------------- of objects


def _described(place: str, thing: Any) -> Names:
    if inspect.isroutine(thing):
        return {place: _parameters(thing)}
    if not isinstance(thing, type):
        return {place: type(thing).__name__}
    own = next((base for base in thing.__mro__ if not _is_ours(base)), object)
    made = _is_ours(thing.__init__) or _is_ours(thing.__new__) or hasattr(thing, "_fields")  # a named tuple
    found: Names = {place: _parameters(thing) if made else f"a class of the kind {own.__name__}"}
    for name in dir(thing):
        member = inspect.getattr_static(thing, name)
        if name.startswith("_"):
            continue
        if isinstance(member, property) or type(member).__name__ == "cached_property":
            found[f"{place}.{name}"] = "property"
        elif callable(getattr(thing, name)) and _is_ours(getattr(thing, name)):
            found[f"{place}.{name}"] = _parameters(getattr(thing, name))
    return found


def _is_ours(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).split(".")[0] == "echolearn"


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Return the parameters with their defaults; * and / stand where they stand in the signature."""
    signature = inspect.signature(function)
    shown = [
        one.replace(annotation=one.empty, default=one.empty if one.default is one.empty else _Shown(one.default))
        for one in signature.parameters.values()
        if one.name not in ("self", "cls")
    ]
    plain = signature.replace(parameters=shown, return_annotation=signature.empty)
    return _split(str(plain)[1:-1])


class _Shown:
    """A default whose text is the same in every process."""

    def __init__(self, value: Any):
        text = getattr(value, "__qualname__", None) or repr(value)
        self._text = "..." if text == "<factory>" else text  # a dataclass makes the value anew every time

    def __repr__(self) -> str:
        return self._text


def _split(text: str) -> list[str]:
    """Return the parameters of the text of a signature."""
    arguments = ast.parse(f"def f({text}): pass").body[0].args  # type: ignore[attr-defined]
    return _of_arguments(arguments)


# ---------------------------------------------------------------- of sources


def _written(place: str, definition: Definition | None) -> Names:
    """Return what the source of a class or function says."""
    if definition is None:
        return {place: "a value"}
    if isinstance(definition.node, Function):
        return {place: _of_arguments(definition.node.args)}
    found: Names = {place: f"a class of the kind {ast.unparse(definition.node.bases[-1])}"}
    for holder in reversed([definition, *bases(definition)]):
        for node in holder.node.body:  # type: ignore[union-attr]
            if isinstance(node, Function) and node.name == "__init__":
                found[place] = _of_arguments(node.args)
            elif isinstance(node, Function) and not node.name.startswith("_"):
                is_property = "property" in decorators(node)
                found[f"{place}.{node.name}"] = "property" if is_property else _of_arguments(node.args)
    return found


def _of_arguments(arguments: ast.arguments) -> list[str]:
    """Return the parameters of a definition with their defaults."""
    return [text for text in _texts(arguments) if text not in ("self", "cls")]


def _texts(arguments: ast.arguments) -> Iterator[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    for number, (one, default) in enumerate(zip(positional, defaults, strict=True), start=1):
        yield one.arg if default is None else f"{one.arg}={ast.unparse(default)}"
        if number == len(arguments.posonlyargs):
            yield "/"
    if arguments.vararg is not None:
        yield f"*{arguments.vararg.arg}"
    elif arguments.kwonlyargs:
        yield "*"
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield one.arg if default is None else f"{one.arg}={ast.unparse(default)}"
    if arguments.kwarg is not None:
        yield f"**{arguments.kwarg.arg}"


# ---------------------------------------------------------------- the file


def read() -> Names:
    return dict(json.loads(SNAPSHOT.read_text()))


def write() -> None:
    """Write one line per name."""
    lines = [f" {json.dumps(name)}: {json.dumps(what)}" for name, what in public_names().items()]
    SNAPSHOT.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write()
    print(f"written: {SNAPSHOT.relative_to(ROOT)} ({len(read())} names)")
