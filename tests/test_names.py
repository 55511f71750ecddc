"""The rules for files, constants and records (CONTRIBUTING.md): what a reader may expect of the listing."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import sourcetree
from sourcetree import PACKAGE, Function, nodes, place
from test_structure import expect_none

# Small modules with one importer that stay apart, and why.
APART = {
    "cli/configuration.py",  # files of settings and what --set says, beside the options
    "gradients/as_printed.py",  # the formulas as the paper prints them, beside the exact ones
    "speech/_synthetic/sentences.py",  # words: data
}
# Records that have the fields of another and mean something else: derivatives are named after what they are derivatives
# of, the runtime has records of its own because it runs with NumPy alone, tokens are in frames or in seconds, an
# observation is one row of the arrays of observations.
RECORDS_OF_THEIR_OWN = {
    *("Gradients", "Reservoir", "TrainingEnd", "Resumption", "Token", "TimedToken", "Observation"),
}
COMPILED = {"_loops.py", "_simd.py", "_kernels.py", "_activations.py", "_stepping.py"}
REPEATED = {"__init__.py", "_loops.py", "_base.py"}  # names that say what kind of file it is, not its subject
# Words that end like an activity and name a thing of the field.
NOUNS = {"smoothing", "scoring", "tuning", "opening", "typing"}
BARE = {
    *("FAR", "MANY", "FEW", "LEAST", "MOST", "GOOD", "POOR", "SMALL", "LARGE", "LONGEST", "SHORTEST", "ENOUGH", "SAME"),
    *("NUMBERS", "FRAMES", "STEPS", "SECONDS", "NEAR", "OFTEN", "WIDE", "LARGEST", "SMALLEST", "HELPS", "CLEARLY"),
    *("UNITS", "FEWEST", "REST", "UNUSUAL", "BYTES", "SHOWN", "LIMIT", "TRIES", "ROUGH", "KNOWN", "OTHER"),
}

PRIVATE_WORDS = {"asked", "heard", "hears", "mended", "said", "told"}
NAMED_OTHERWISE = {("_synthetic", "sentences.py")}  # a list of English words


def _relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def _module(path: Path) -> str:
    name = ".".join(("echolearn", *path.relative_to(PACKAGE).with_suffix("").parts))
    return name.removesuffix(".__init__")


@cache
def _importers() -> dict[str, set[Path]]:
    """Return which files of src import each module."""
    found: dict[str, set[Path]] = defaultdict(set)
    modules = {_module(path) for path in sourcetree.source_files()}
    for path, node in nodes(ast.Import, ast.ImportFrom):
        for module in sourcetree.imported_modules(node):
            names = [f"{module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []
            for name in (module, *names):
                if name in modules:
                    found[name].add(path)
    return found


def test_a_small_module_with_one_importer_beside_it_is_part_of_that_importer():
    """Modules under 150 lines; compiled loops are excepted, and packages, whose names are for the outside."""

    def offends(path: Path) -> bool:
        importers = _importers()[_module(path)]
        beside = len(importers) == 1 and next(iter(importers)).parent == path.parent
        lazy = next(iter(importers)).name == "__init__.py" if beside else False
        small = len(path.read_text().splitlines()) < 150
        return (
            beside
            and not lazy
            and small
            and path.name not in COMPILED | {"__init__.py"}
            and _relative(path) not in APART
        )

    expect_none(
        "single importers",
        (
            f"{_relative(path)} is imported by {_relative(next(iter(_importers()[_module(path)])))} alone"
            for path in sourcetree.source_files()
            if offends(path)
        ),
    )


def test_a_file_name_occurs_at_most_twice():
    files = Counter(path.name.lstrip("_") if path.name not in REPEATED else path.name for path in _named())
    expect_none("file names", (f"{name} occurs {count} times" for name, count in files.items() if count > 2))


def _named() -> list[Path]:
    return [path for path in sourcetree.source_files() if path.name not in REPEATED]


def test_modules_are_nouns():
    expect_none(
        "module names",
        (
            _relative(path)
            for path in _named()
            if re.search(r"(?:^|_)\w+ing$", path.stem.lstrip("_")) and path.stem.lstrip("_").split("_")[-1] not in NOUNS
        ),
    )


def _constants() -> dict[str, set[Path]]:
    """Return the modules that define each constant, by its name."""
    found: dict[str, set[Path]] = defaultdict(set)
    for path in sourcetree.source_files():
        for node in sourcetree.tree(path).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            for target in targets if isinstance(node, (ast.Assign, ast.AnnAssign)) else []:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name) and re.fullmatch(r"_?[A-Z][A-Z0-9_]*", name.id):
                        found[name.id].add(path)
    return found


def test_a_constant_has_its_name_in_at_most_two_modules():
    expect_none(
        "constants",
        (
            f"{name}: {', '.join(sorted(map(_relative, paths)))}"
            for name, paths in _constants().items()
            if len(paths) > 2 and len(name.strip("_")) > 1
        ),
    )


def test_a_constant_is_a_noun_that_says_its_unit():
    expect_none(
        "constants",
        (f"{_relative(path)}: {name}" for name, paths in _constants().items() if name in BARE for path in paths),
    )


def _records() -> dict[str, frozenset[str]]:
    """Return the fields of every dataclass and NamedTuple, by where it stands."""
    found = {}
    for path, node in nodes(ast.ClassDef):
        if "dataclass" in sourcetree.decorators(node) or any(ast.unparse(b) == "NamedTuple" for b in node.bases):
            fields = frozenset(
                child.target.id
                for child in node.body
                if isinstance(child, ast.AnnAssign) and "ClassVar" not in ast.unparse(child.annotation)
            )
            found[f"{place(path, node)} {node.name}"] = fields
    return found


def test_no_record_is_a_part_of_another():
    """Four fields or more with the same names: one of the two holds the other, or they are one."""
    records = _records()
    expect_none(
        "records",
        (
            f"{name} is a part of {other}"
            for name, fields in records.items()
            for other, more in records.items()
            if name != other and len(fields) > 3 and fields <= more and name.split()[1] not in RECORDS_OF_THEIR_OWN
        ),
    )


def test_fitted_attributes_have_no_default():
    expect_none(
        "getattr",
        (
            f"{place(path, node)} {ast.unparse(node)}"
            for path, node in nodes(ast.Call)
            if re.fullmatch(r"getattr\(self, '\w+_', .+\)", ast.unparse(node))
        ),
    )


def test_no_closure_is_called_part():
    closures = (
        place(path, node)
        for path, node in nodes(*Function)
        if node.name == "part" and any(isinstance(outer, Function) for outer in sourcetree.parents(node))
    )
    expect_none("closures", closures)


def _identifiers(node: ast.AST) -> list[str]:
    """Return the names that a node gives or uses, and texts without blanks, such as keys."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) and " " not in node.value else []
    return [name for name in (getattr(node, key, None) for key in ("id", "attr", "arg", "name")) if name is not None]


def test_identifiers_are_words_of_the_field():
    kinds = (ast.Name, ast.Attribute, ast.arg, ast.keyword, ast.ClassDef, *Function, ast.Constant)
    expect_none(
        "identifiers",
        (
            f"{place(path, node)} {name}"
            for path, node in nodes(*kinds)
            if (path.parent.name, path.name) not in NAMED_OTHERWISE
            for name in _identifiers(node)
            if PRIVATE_WORDS & set(name.lower().split("_"))
        ),
    )
