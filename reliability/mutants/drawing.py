"""Mutants of a source file: every small change that the operators below can make in its syntax tree, and draws of them.

Nothing is changed in docstrings, annotations, decorators, texts of errors, warnings and progress, assertions,
`__all__`, overloads, protocols, `__repr__`, and keywords such as `zip(strict=True)`: no choice is made there.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).resolve().parents[2] / "src" / "echolearn"
PACKAGES = tuple(sorted(path.parent.name for path in SOURCE.glob("*/__init__.py")))

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
# Functions and methods that stand for opposite choices.
OPPOSITES = [
    ("min", "max"),
    ("argmin", "argmax"),
    ("nanmin", "nanmax"),
    ("minimum", "maximum"),
    ("any", "all"),
    ("floor", "ceil"),
    ("zeros", "ones"),
    ("zeros_like", "ones_like"),
    ("mean", "sum"),
    ("cumsum", "cumprod"),
    ("hstack", "vstack"),
    ("union", "intersection"),
]
SWAPPED = {a: b for pair in OPPOSITES for a, b in (pair, pair[::-1])}
BUILTIN = {"min", "max", "any", "all"}
# Parts of the data: one is read in the place of another.
PARTS = {"train": ("valid", "test"), "valid": ("test", "train"), "test": ("valid", "train")}
SPLITS = {"train": ("everything",), "held_out": ("train",), "everything": ("train",), "valid_known": ("test",)}
WORDS = {"warn", "_warn", "say", "note", "print", "Problem", "one", "write", "info", "debug", "cast", "TypeVar", "log"}
SILENT = {"say", "note", "print", "info", "debug", "log"}  # a call of these that is missing changes no result
# Keywords that assert something or change no result, as in `zip(strict=True)` and `get_params(deep=False)`.
HARMLESS = {None, "stacklevel", "strict", "copy", "deep", "indent"}
UNTOUCHED = {"__repr__", "__str__", "_repr_html_", "__dir__", "as_text"}


@dataclass(frozen=True)
class Mutant:
    """A change of one stretch of a source file; lines count from 1, columns are UTF-8 bytes from 0.

    lines: the first and the last line of the statement that is changed; inside: the qualified name of the function;
    function: the first and the last line of its body.
    """

    path: str
    operator: str
    start: tuple[int, int]
    end: tuple[int, int]
    new: str
    lines: tuple[int, int]
    inside: str
    function: tuple[int, int] | None

    @property
    def package(self) -> str:
        return self.path.split("/")[2]

    def key(self, source: str) -> str:
        """Return a name of the mutant that holds as long as the file stays the same."""
        digest = hashlib.sha256(source.encode()).hexdigest()[:8]
        content = hashlib.sha256(repr((self.start, self.end, self.new)).encode()).hexdigest()[:8]
        return f"{self.path}:{self.start[0]}:{digest}:{content}"

    def apply(self, source: str) -> str:
        """Return the source with the change."""
        lines = source.encode().splitlines(keepends=True)
        (first, a), (last, b) = self.start, self.end
        head = b"".join(lines[: first - 1]) + lines[first - 1][:a]
        tail = lines[last - 1][b:] + b"".join(lines[last:])
        return (head + self.new.encode() + tail).decode()


def mutants_of(path: Path, root: Path) -> list[list[Mutant]]:
    """Return all mutants of a file, grouped by the place and the operator, in the order of the file."""
    source = path.read_text(encoding="utf-8")
    collector = _Collector(path.relative_to(root).as_posix())
    collector.visit(ast.parse(source))
    sites: dict[tuple[object, ...], list[Mutant]] = {}
    for mutant in collector.found:
        sites.setdefault((mutant.start, mutant.end, mutant.operator), []).append(mutant)
    return list(sites.values())


def draw(root: Path, package: str, count: int, seed: int) -> list[Mutant]:
    """Return `count` mutants of a package, each at a place of its own, drawn alike from all its places."""
    files = sorted((root / "src" / "echolearn" / package).rglob("*.py"))
    sites = [site for path in files for site in mutants_of(path, root)]
    rng = np.random.default_rng([seed, *package.encode()])
    drawn: list[Mutant] = []
    for k in rng.permutation(len(sites)):
        mutant = sites[k][rng.integers(len(sites[k]))]
        if len(drawn) == count:
            break
        if _compiles(mutant.apply((root / mutant.path).read_text(encoding="utf-8"))):
            drawn.append(mutant)
    return drawn


def function_around(source: str, line: int) -> tuple[int, int] | None:
    """Return the first and the last line of the body of the innermost function with this line; None outside of any."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    bodies = [(node.body[0].lineno, node.end_lineno or 0) for node in functions if node.lineno <= line]
    return max((body for body in bodies if body[1] >= line), default=None)


def _compiles(source: str) -> bool:
    """Return whether a source is one; `pass` cannot stand everywhere where a statement was."""
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


class _Collector(ast.NodeVisitor):
    """Collects the mutants of one file."""

    def __init__(self, path: str):
        self.path = path
        self.found: list[Mutant] = []
        self.names: list[str] = []  # of the classes and functions around the node
        self.functions: list[tuple[int, int]] = []  # their lines, without the heads
        self.lines = (1, 1)  # of the statement around the node
        self.assigned: list[set[str]] = [set()]  # names that have a value already, by function

    def _add(self, node: ast.AST, operator: str, new: ast.AST | str) -> None:
        text = new if isinstance(new, str) else ast.unparse(ast.fix_missing_locations(new))
        if isinstance(node, ast.expr) and not isinstance(new, ast.Constant):
            text = f"({text})"
        start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        inside, function = ".".join(self.names), self.functions[-1] if self.functions else None
        self.found.append(Mutant(self.path, operator, start, end, text, self.lines, inside, function))

    # What is left alone

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave texts alone."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave assertions alone."""

    def visit_Import(self, node: ast.Import) -> None:
        """Leave imports alone."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Leave imports alone."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._statement(node)
        if node.value is not None:
            self.visit(node.value)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if any(ast.unparse(base).startswith(("Protocol", "TypedDict")) for base in node.bases):
            return
        self.names.append(node.name)
        self._block(node.body)
        self.names.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in UNTOUCHED or any("overload" in ast.unparse(d) for d in node.decorator_list):
            return
        self.names.append(node.name)
        self.functions.append((node.body[0].lineno, node.end_lineno or node.lineno))
        self.assigned.append({a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)})
        self.lines = (node.lineno, node.body[0].lineno - 1)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        self._block(node.body)
        self.assigned.pop()
        self.functions.pop()
        self.names.pop()

    def visit_Module(self, node: ast.Module) -> None:
        self._block(node.body)

    def _block(self, body: list[ast.stmt]) -> None:
        for k, statement in enumerate(body):
            docstring = k == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if not docstring:
                self.visit(statement)

    # Statements

    def _statement(self, node: ast.stmt, header: ast.expr | None = None) -> None:
        """Note where a statement is; a compound one ends with its header."""
        last = node.end_lineno if header is None else header.end_lineno
        self.lines = (node.lineno, last or node.lineno)

    def visit_Expr(self, node: ast.Expr) -> None:
        self._statement(node)
        if isinstance(node.value, ast.Call):
            if _called(node.value) not in SILENT:
                self._add(node, "statement removed", "pass")
            self.visit(node.value)

    def _removed(self, node: ast.stmt) -> None:
        self._statement(node)
        self._add(node, "statement removed", "pass")

    visit_Raise = visit_Continue = visit_Break = _removed

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._statement(node)
        self._add(node, "statement removed", "pass")
        if type(node.op) in ARITHMETIC and not _is_text(node.value):
            new = copy.deepcopy(node)
            new.op = ARITHMETIC[type(node.op)]()
            self._add(node, "arithmetic", new)
        self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._statement(node)
        names = {n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        if "__all__" in names or (not self.names and isinstance(node.value, ast.Subscript)):
            return  # an alias of a type
        if self.names and (names <= self.assigned[-1] or not isinstance(node.targets[0], ast.Name)):
            self._add(node, "statement removed", "pass")
        self.assigned[-1] |= names
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_Return(self, node: ast.Return) -> None:
        self._statement(node)
        if node.value is not None and not _is_constant(node.value, None):
            self._add(node, "result", "return None")
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        self._statement(node, node.test)
        if "TYPE_CHECKING" in ast.unparse(node.test):
            return
        self._condition(node.test)
        self._block(node.body)
        self._block(node.orelse)

    def visit_While(self, node: ast.While) -> None:
        self._statement(node, node.test)
        self._condition(node.test)
        self._block(node.body)

    def visit_For(self, node: ast.For) -> None:
        self._statement(node, node.iter)
        self.assigned[-1] |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        self.visit(node.iter)
        self._block(node.body)
        self._block(node.orelse)

    def visit_With(self, node: ast.With) -> None:
        self._statement(node, node.items[-1].context_expr)
        for item in node.items:
            self.visit(item.context_expr)
        self._block(node.body)

    def visit_Try(self, node: ast.Try) -> None:
        for body in (node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody):
            self._block(body)

    # Expressions

    def _condition(self, test: ast.expr) -> None:
        if not isinstance(test, (ast.Compare, ast.Constant)):
            self._add(test, "condition", ast.UnaryOp(ast.Not(), test))
        self.visit(test)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test)
        self.visit(node.body)
        self.visit(node.orelse)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.visit(node.iter)
        for test in node.ifs:
            self._condition(test)

    def visit_Compare(self, node: ast.Compare) -> None:
        for k, op in enumerate(node.ops):
            for other in COMPARISONS[type(op)]:
                new = copy.deepcopy(node)
                new.ops[k] = other()
                self._add(node, "comparison", new)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        new = copy.deepcopy(node)
        new.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._add(node, "and, or", new)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in ARITHMETIC and not (_is_text(node.left) or _is_text(node.right)):
            new = copy.deepcopy(node)
            new.op = ARITHMETIC[type(node.op)]()
            self._add(node, "arithmetic", new)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, (ast.USub, ast.Not)):
            self._add(node, "sign", copy.deepcopy(node.operand))
        if isinstance(node.operand, ast.Constant):
            return  # -1 is a number
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        for value in _others(node.value):
            operator = "part" if isinstance(value, str) else "constant"
            self._add(node, operator, ast.Constant(value))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        names = PARTS if node.attr in PARTS and "parts" in ast.unparse(node.value) else SPLITS
        for name in names.get(node.attr, ()):
            if isinstance(node.ctx, ast.Load):
                self._add(node, "part", ast.Attribute(copy.deepcopy(node.value), name, ast.Load()))
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        bounds = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for bound in bounds:
            for side in (bound.lower, bound.upper) if isinstance(bound, ast.Slice) else ():
                if side is not None and not isinstance(side, ast.Constant):
                    self._add(side, "slice", ast.BinOp(copy.deepcopy(side), ast.Add(), ast.Constant(1)))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = _called(node)
        if name in WORDS or name.endswith(("Error", "Warning")):
            return
        if name in (SWAPPED if isinstance(node.func, ast.Attribute) else BUILTIN):
            new = copy.deepcopy(node)
            if isinstance(new.func, ast.Attribute):
                new.func.attr = SWAPPED[name]
            else:
                new.func = ast.Name(SWAPPED[name], ast.Load())
            self._add(node, "opposite", new)
        for k, keyword in enumerate(node.keywords):
            if keyword.arg not in HARMLESS:
                new = copy.deepcopy(node)
                del new.keywords[k]
                self._add(node, "keyword removed", new)
        self.visit(node.func)
        for argument in node.args:
            self.visit(argument)
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg not in HARMLESS:
                self.visit(keyword.value)


def _called(node: ast.Call) -> str:
    """Return the last part of the name of what is called."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _is_text(node: ast.expr) -> bool:
    """Return whether an operand is a text, a list or a type, for which only some operators have a meaning."""
    if isinstance(node, (ast.JoinedStr, ast.List, ast.Tuple, ast.Subscript)):
        return not isinstance(node, ast.Subscript) or "[" in ast.unparse(node.value)
    return isinstance(node, ast.Constant) and not isinstance(node.value, (int, float))


def _is_constant(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _others(value: object) -> Iterator[object]:
    """Yield the values that take the place of a constant."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1, 2 * value if value > 1 else 0 if value else 2)
    elif isinstance(value, float):
        yield from (2 * value, value / 2) if value else (1.0,)
    elif isinstance(value, str):
        yield from PARTS.get(value, ())
