"""The source of echolearn as syntax trees, and which of its names are public. Nothing is imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "echolearn"
Function = (ast.FunctionDef, ast.AsyncFunctionDef)
Node = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
# The public packages and modules: what their `__all__` lists is public, and nothing else. The others are internal.
PUBLIC = (
    *("echolearn", "echolearn.exceptions", "echolearn.datasets", "echolearn.metrics", "echolearn.reservoir"),
    *("echolearn.states", "echolearn.readout", "echolearn.gradients", "echolearn.streams", "echolearn.diagnostics"),
    *("echolearn.monitoring", "echolearn.tuning", "echolearn.cluster", "echolearn.runtime", "echolearn.export"),
    *("echolearn.interop.aeon", "echolearn.interop.sktime", "echolearn.interop.reservoirpy"),
    *("echolearn.speech", "echolearn.speech.formats", "echolearn.speech.recognition"),
)


@dataclass(frozen=True)
class Definition:
    """A class or function, its dotted name, and the module that holds it."""

    name: str
    module: str
    node: Node


def path_of(module: str) -> Path:
    """Return the file of a dotted module name."""
    base = ROOT / "src" / Path(*module.split("."))
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


@cache
def tree(path: Path) -> ast.Module:
    """Return a file's syntax tree, in which every node knows its `parent`."""
    result = ast.parse(path.read_text(), str(path))
    for node in ast.walk(result):
        for child in ast.iter_child_nodes(node):
            child.parent = node  # type: ignore[attr-defined]
    return result


def source_files() -> list[Path]:
    """Return all files of src."""
    return sorted(PACKAGE.rglob("*.py"))


@cache
def _by_type() -> dict[type, list[tuple[Path, ast.AST]]]:
    """Return all nodes of src with their files, by the type of the node."""
    result: dict[type, list[tuple[Path, ast.AST]]] = {}
    for path in source_files():
        for node in ast.walk(tree(path)):
            result.setdefault(type(node), []).append((path, node))
    return result


def nodes(*kinds: type) -> Iterator[tuple[Path, ast.AST]]:
    """Yield every node of these types in src, with its file."""
    for kind in kinds:
        yield from _by_type().get(kind, [])


def parents(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a node is inside of, from the inside out."""
    while (node := getattr(node, "parent", None)) is not None:
        yield node


def place(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(ROOT)}:{node.lineno}"


def is_compiled(node: ast.AST) -> bool:
    """Whether numba compiles this function, or one that it is inside of."""
    return any(
        re.search(r"\b(njit|cached_njit|intrinsic)\b", ast.unparse(decorator))
        for function in (node, *parents(node))
        if isinstance(function, Function)
        for decorator in function.decorator_list
    )


def imported_modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the dotted modules of echolearn that an import statement names."""
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [str(node.module)]
    return [name for name in names if name == "echolearn" or name.startswith("echolearn.")]


@cache
def constant(module: str, name: str) -> Any:
    """Return the value of a module-level literal."""
    for node in tree(path_of(module)).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    raise LookupError(f"{module} has no {name}")


@cache
def defined_names(path: Path) -> set[str]:
    """Return the names of the classes, functions, methods, fields and module-level variables that a file defines."""
    defined = {node.name for node in ast.walk(tree(path)) if isinstance(node, (ast.ClassDef, *Function))}
    classes = [node for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
    defined |= {ast.unparse(field.target) for c in classes for field in c.body if isinstance(field, ast.AnnAssign)}
    targets = [t for node in tree(path).body if isinstance(node, ast.Assign) for t in node.targets]
    targets += [node.target for node in tree(path).body if isinstance(node, ast.AnnAssign)]
    return defined | {target.id for target in targets if isinstance(target, ast.Name)}


@cache
def names_of_any(path: Path) -> set[str]:
    """Return the names by which a module calls `Any`: its own aliases, and those that it imports from echolearn."""
    names = {"Any"}
    for node in tree(path).body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            names |= {ast.unparse(target)} if ast.unparse(node.value) in ("Any", "typing.Any") else set()
        elif isinstance(node, ast.ImportFrom) and imported_modules(node):
            source = path_of(str(node.module))
            aliases = names_of_any(source) if source.name != "__init__.py" else set()
            names |= {alias.asname or alias.name for alias in node.names if alias.name in aliases}
    return names


def uses_of_any(path: Path) -> int:
    """Return how often a module uses `Any`, under whatever name."""
    names = names_of_any(path)
    return sum(
        (isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Attribute) and node.attr == "Any")
        for node in ast.walk(tree(path))
    )


def statements(path: Path) -> Iterator[ast.stmt]:
    """Yield the statements of a module, also those below `if TYPE_CHECKING`."""
    for node in tree(path).body:
        yield node
        if isinstance(node, ast.If):
            yield from node.body


def find(module: str, name: str) -> Definition | None:
    """Return where a name of a module is defined, following re-exports; None for one that is no class or function."""
    for node in statements(path_of(module)):
        if isinstance(node, (ast.ClassDef, *Function)) and node.name == name:
            return Definition(f"{module}.{name}", module, node)
        if isinstance(node, ast.ImportFrom) and imported_modules(node):
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    return find(str(node.module), alias.name)
    return None


def exported_names() -> Iterator[tuple[str, str]]:
    """Yield (module, name) for all that the public packages list in `__all__`."""
    for module in PUBLIC:
        if path_of(module).exists() and "__all__" in defined_names(path_of(module)):
            yield from ((module, name) for name in constant(module, "__all__"))


@cache
def public_definitions() -> list[Definition]:
    """Return every public class and function once, and the public methods of those classes."""
    found: dict[str, Definition] = {}
    for module, name in exported_names():
        definition = find(module, name)
        if definition is None:
            continue
        found[definition.name] = definition
        if isinstance(definition.node, ast.ClassDef):
            for holder in (definition, *bases(definition)):
                for node in holder.node.body:
                    if isinstance(node, Function) and not node.name.startswith("_"):
                        found.setdefault(
                            f"{holder.name}.{node.name}", Definition(f"{holder.name}.{node.name}", holder.module, node)
                        )
    return [found[name] for name in sorted(found)]


def bases(definition: Definition) -> list[Definition]:
    """Return the base classes of a class that are echolearn's own, nearest first."""
    assert isinstance(definition.node, ast.ClassDef)
    result = []
    for base in definition.node.bases:
        name = ast.unparse(base).split("[")[0]
        inherited = find(definition.module, name) if "." not in name else None
        if inherited is not None and isinstance(inherited.node, ast.ClassDef):
            result += [inherited, *bases(inherited)]
    return result


def decorators(node: Node) -> str:
    return " ".join(ast.unparse(decorator) for decorator in node.decorator_list)


def parameters(definition: Definition) -> list[str]:
    """Return the parameters of a function, or those with which a class is made."""
    node = definition.node
    if isinstance(node, ast.ClassDef):
        for holder in (definition, *bases(definition)):
            for child in holder.node.body:
                if isinstance(child, Function) and child.name == "__init__":
                    return parameters(Definition(holder.name, holder.module, child))
        if "dataclass" in decorators(node) or any(ast.unparse(base) == "NamedTuple" for base in node.bases):
            return [
                child.target.id
                for child in node.body
                if isinstance(child, ast.AnnAssign)
                and isinstance(child.target, ast.Name)
                and "ClassVar" not in ast.unparse(child.annotation)
                and "init=False" not in ast.unparse(child)
            ]
        return []
    if "property" in decorators(node):
        return []
    a = node.args
    named = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if x is not None]
    return [name for name in named if name not in ("self", "cls") and not name.startswith("_")]


def returns_something(node: Node) -> bool:
    if isinstance(node, ast.ClassDef) or "property" in decorators(node):
        return False
    return node.returns is None or ast.unparse(node.returns) not in ("None", "NoReturn", "Never")
