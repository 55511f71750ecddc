"""The rules of the source tree (docs/explanation/architecture.md), checked on its syntax trees."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from numpydoc.docscrape import NumpyDocString, Parameter

import sourcetree
from sourcetree import PACKAGE, ROOT, Function, nodes, place

COMPILED = {PACKAGE / "states" / "_loops.py", PACKAGE / "states" / "_simd.py"}
EQUATION = re.compile(
    r"\beqs?(?:uations?)?(?:\.\s*|\s+|_)\(?(\d+(?:\)?\s*(?:,|/|-|–|and|to|,\s*and)\s*\(?\d+)*)", re.IGNORECASE
)


def expect_none(check: str, offences: Iterable[str]) -> None:
    """Fail with the list of offences."""
    found = sorted(offences)
    assert not found, f"{check}: {len(found)} offences\n" + "\n".join(found)


def test_the_package_has_few_entries():
    entries = sorted(
        path.name for path in PACKAGE.iterdir() if path.name not in ("__pycache__", "__main__.py", "py.typed")
    )
    assert len(entries) <= 32, entries


def test_no_function_is_longer_than_fifty_lines():
    """The docstring does not count; the signature does. Compiled loops are excepted."""

    def lines(node: ast.AST) -> int:
        first = node.body[0]
        docstring = ast.get_docstring(node, clean=False) is not None
        return node.end_lineno - node.lineno + 1 - docstring * (first.end_lineno - first.lineno + 1)

    expect_none(
        "length",
        (
            f"{place(path, node)} {node.name}: {lines(node)} lines"
            for path, node in nodes(*Function)
            if path not in COMPILED and lines(node) > 50
        ),
    )


def test_no_function_has_more_than_five_positional_parameters():
    """Functions that numba compiles are excepted: it does not know keyword-only parameters."""

    def positional(node: ast.AST) -> int:
        names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        inside = isinstance(node.parent, ast.ClassDef) and "staticmethod" not in sourcetree.decorators(node)
        return len(names) - inside

    expect_none(
        "positional",
        (
            f"{place(path, node)} {node.name}: {positional(node)} parameters"
            for path, node in nodes(*Function)
            if positional(node) > 5 and not sourcetree.is_compiled(node)
        ),
    )


def test_no_function_imports_from_echolearn():
    """An import inside a function hides a cycle. Commands are excepted: they load what they need when they run.

    So is `export`, a method of the estimators that calls the package above them.
    """
    allowed = {
        PACKAGE / "__init__.py",
        PACKAGE / "estimators" / "_display.py",
        *(PACKAGE / "cli").glob("*.py"),
    }

    def ours(node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            return bool(re.match(r"(importlib\.)?(import_module|__import__)\(.*echolearn", ast.unparse(node)))
        return bool(sourcetree.imported_modules(node))

    expect_none(
        "function-level imports",
        (
            f"{place(path, node)} {ast.unparse(node)}"
            for path, node in nodes(ast.Import, ast.ImportFrom, ast.Call)
            if path not in allowed and ours(node) and any(isinstance(p, Function) for p in sourcetree.parents(node))
        ),
    )


def test_no_import_from_echolearn_is_for_type_checking_only():
    lazy = {
        PACKAGE / name
        for name in (
            "__init__.py",
            "cluster/__init__.py",
            "estimators/__init__.py",
            "persistence/__init__.py",
            "runtime/__init__.py",
            "speech/__init__.py",
            "speech/formats/__init__.py",
            "export/__init__.py",
            "export/write.py",
        )
    }
    expect_none(
        "type-checking imports",
        (
            f"{place(path, node)} {ast.unparse(node)}"
            for path, node in nodes(ast.Import, ast.ImportFrom)
            if path not in lazy
            and sourcetree.imported_modules(node)
            and any(isinstance(p, ast.If) and "TYPE_CHECKING" in ast.unparse(p.test) for p in sourcetree.parents(node))
        ),
    )


def test_few_annotations_are_any():
    """At most 250 in all of src. Every use of the name counts, imports aside, and every use of another name for it."""
    count = {str(path.relative_to(ROOT)): sourcetree.uses_of_any(path) for path in sourcetree.source_files()}
    total = sum(count.values())
    expect_none("Any", [f"{n:4} {where}" for where, n in count.items() if n and total > 250])


@cache
def _sections(definition: sourcetree.Definition) -> NumpyDocString:
    """Return the parsed docstring; what numpydoc warns of is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return NumpyDocString(inspect.cleandoc(ast.get_docstring(definition.node) or ""))


def _listed(definition: sourcetree.Definition) -> dict[str, Parameter]:
    """Return the entries of a docstring by the name of the parameter; a dataclass may list its own as attributes."""
    sections = ["Parameters", "Other Parameters"]
    if isinstance(definition.node, ast.ClassDef):
        sections.append("Attributes")
    entries = [entry for section in sections for entry in _sections(definition)[section]]
    return {name.strip().lstrip("*"): entry for entry in entries for name in entry.name.split(",")}


def _is_explained(name: str, entry: Parameter) -> bool:
    """Whether an entry has a type and a text. **settings have no type; "As in `fit`." refers to one that has both."""
    text = " ".join(entry.desc).strip()
    if reference := re.match(r"As in `(\w+)`", text):
        others = [d for d in sourcetree.public_definitions() if d.name.endswith(f".{reference[1]}")]
        return any(name in _listed(other) and bool(_listed(other)[name].type) for other in others)
    return bool(text) and (bool(entry.type) or entry.name.startswith("*"))


def _docstring_offences(definition: sourcetree.Definition) -> Iterable[str]:
    """Yield what the docstring of a public class or function lacks."""
    if not ast.get_docstring(definition.node):
        yield "no docstring"
        return
    try:
        sections, listed = _sections(definition), _listed(definition)
    except Exception as error:
        yield f"not numpydoc: {error}"
        return
    wanted = sourcetree.parameters(definition)
    missing = [name for name in wanted if name not in listed]
    bare = [name for name in wanted if name in listed and not _is_explained(name, listed[name])]
    named = [name for entry in sections["Parameters"] for name in re.split(r",\s*", entry.name)]
    unknown = [name for name in named if name.lstrip("*") not in wanted]
    if missing:
        yield f"parameters not listed: {', '.join(missing)}"
    if bare:
        yield f"parameters without a type or an explanation: {', '.join(bare)}"
    if unknown:
        yield f"parameters that do not exist: {', '.join(unknown)}"
    if wanted and sourcetree.returns_something(definition.node) and not (sections["Returns"] or sections["Yields"]):
        yield "no Returns"


def test_every_public_parameter_is_explained():
    """Public classes, their public methods, and public functions have numpydoc docstrings that list all parameters."""
    public = sourcetree.public_definitions()
    assert {"echolearn.reservoir._reservoir.Reservoir", "echolearn.datasets._chaos.lorenz"} <= {d.name for d in public}
    expect_none(
        "docstrings",
        (f"{d.name}: {offence}" for d in public for offence in _docstring_offences(d)),
    )


def _has_example(definition: sourcetree.Definition, public: dict[str, sourcetree.Definition]) -> bool:
    """Whether a docstring has an example, or names a public class or function whose docstring has it."""
    text = ast.get_docstring(definition.node) or ""
    entries = [str(name) for names, _ in _sections(definition)["See Also"] for name, _ in names]
    named = [name for name in entries if "it has an example" in " ".join(text.split(f"{name} : ")[1:])]
    named += re.findall(r"`(\w+)` has an example", " ".join(text.split()))
    others = [ast.get_docstring(public[name].node) or "" for name in named if name in public]
    return any("\n>>> " in one for one in (text, *others))


def test_every_public_name_has_an_example():
    """The examples run with the other doctests. The classes of warnings and errors share that of their module."""
    own = [d for d in sourcetree.public_definitions() if not isinstance(d.node.parent, ast.ClassDef)]
    public = {d.name.rsplit(".", 1)[1]: d for d in own}
    others = [d for d in own if d.module != "echolearn.exceptions"]
    assert len(others) > 100
    expect_none("examples", (d.name for d in others if not _has_example(d, public)))
    assert ">>> " in (ast.get_docstring(sourcetree.tree(sourcetree.path_of("echolearn.exceptions"))) or "")


def _numbers(text: str) -> set[int]:
    """Return the equation numbers that a mention such as "34, 35" or "4-9" stands for."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:\s*(?:-|–|to)\s*(\d+))?", text):
        found |= set(range(int(first), int(last or first) + 1))
    return found


def _mentions(path: Path) -> dict[int, int]:
    """Return the equation numbers that a file names, each with the line of its last mention."""
    text = path.read_text()
    return {
        number: text.count("\n", 0, mention.start()) + 1
        for mention in EQUATION.finditer(text)
        for number in _numbers(mention[1])
    }


def _equations() -> dict[int, str]:
    """Return the table of docs/explanation/notation.md: equation number -> where it is implemented."""
    table = (ROOT / "docs" / "explanation" / "notation.md").read_text().split("## Equations")[1]
    return {int(row[0]): row[3] for row in re.findall(r"^\| (\d+) \| (.+?) \| (.+) \| (.+) \|$", table, re.M)}


def test_equation_numbers_are_those_of_the_table():
    table = _equations()
    assert list(table) == list(range(1, 43))
    assert _numbers(EQUATION.search("as eq. 34/35 and 41/42 say")[1]) == {34, 35, 41, 42}
    assert _numbers(EQUATION.search("Eq. 4-9, by other")[1]) == {4, 5, 6, 7, 8, 9}
    files = [
        path
        for folder in ("src", "tests", "benchmarks", "examples", "reliability", "docs")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md")
    ]
    mentions = {path: _mentions(path) for path in [*files, *ROOT.glob("*.md")]}
    assert sum(map(len, mentions.values())) > 40
    expect_none(
        "equations",
        (
            f"{path.relative_to(ROOT)}:{line} eq. {number} is not in docs/explanation/notation.md"
            for path, found in mentions.items()
            for number, line in found.items()
            if number not in table
        ),
    )


def test_equations_are_named_where_the_table_says():
    expect_none(
        "equation places",
        (
            f"{path} does not name eq. {number}"
            for number, where in _equations().items()
            for path in re.findall(r"`((?:src|tests)/.+?\.py)`", where)
            if not (ROOT / path).exists() or number not in _mentions(ROOT / path)
        ),
    )


def _layers() -> list[str]:
    """Return the packages from the ground up, as import-linter knows them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    return list(reversed(layers))


def test_every_package_is_a_layer():
    entries = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert sorted(_layers()) == sorted(entries - {"__init__", "__main__", "_lazy"})


def test_paths_in_documents_exist():
    """Every file of the repository that a document names is there; echolearn/... stands for src/echolearn/..."""
    documents = [*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
    named = re.compile(r"(?<![\w/.-])((?:src|tests|benchmarks|reliability|examples|docs|tools|echolearn)/[\w/.-]*\w)")
    found = [(document, path) for document in documents for path in named.findall(document.read_text())]
    assert len(found) > 20
    expect_none(
        "paths",
        (
            f"{document.relative_to(ROOT)} names {path}"
            for document, path in found
            if not any((base / path).exists() for base in (ROOT, ROOT / "src"))
        ),
    )


def _architecture() -> str:
    return (ROOT / "docs" / "explanation" / "architecture.md").read_text()


def _rows() -> dict[str, list[str]]:
    """Return the table of packages in docs/explanation/architecture.md: package -> [purpose, imports, main names]."""
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|(.*)\|(.*)\|$", _architecture(), re.M)
    return {package: [cell.strip() for cell in cells] for package, *cells in rows}


def _package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def test_the_page_has_every_package_from_the_ground_up():
    assert list(_rows()) == _layers()


def test_the_page_says_what_each_package_imports():
    found: dict[str, set[str]] = {package: set() for package in _layers()}
    for path, node in nodes(ast.Import, ast.ImportFrom):
        for module in sourcetree.imported_modules(node):
            if _package_of(path) in found and "." in module:
                found[_package_of(path)].add(module.split(".")[1])
    expected = {p: ", ".join(q for q in _layers() if q in found[p] - {p}) or "–" for p in found}
    expect_none(
        "architecture",
        (
            f"{p}: the page says {row[1]}; it imports {expected[p]}"
            for p, row in _rows().items()
            if row[1] != expected[p]
        ),
    )


def test_the_page_names_files_and_definitions_that_exist():
    """`path.py: name` in the picture, paths anywhere, and the main names of the packages."""
    text = _architecture()
    offences = [
        path
        for path in re.findall(r"(?<![\w/.])([a-z_]+/[\w/]*\.py)\b", text)
        if not any((base / path).exists() for base in (PACKAGE, ROOT))
    ]
    named = [
        (PACKAGE / path, name)
        for path, names in re.findall(r"([\w/]+\.py): ([\w, ]+?)(?:  |$|`)", text, re.M)
        for name in names.split(", ")
    ]
    assert len(named) > 5
    for path, name in named:
        if path.exists() and name not in sourcetree.defined_names(path):
            offences.append(f"{path.relative_to(PACKAGE)} has no {name}")
    for package, (_, _, names) in _rows().items():
        files = [path for path in sourcetree.source_files() if _package_of(path) == package]
        for name in re.findall(r"`(\w+)`", names):
            if not any(name in sourcetree.defined_names(path) for path in files):
                offences.append(f"{package} has no {name}")
    everything = set().union(*map(sourcetree.defined_names, sourcetree.source_files()))
    known = everything | set(_layers()) | {"echolearn", "imports"}
    offences += [f"{name} is defined nowhere" for name in re.findall(r"`([A-Za-z_]\w*)`", text) if name not in known]
    expect_none("architecture", offences)
