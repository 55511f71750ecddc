"""C as text: templates, names that are allowed, strings that are safe, arrays of numbers, structs with their sizes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib import resources

import numpy as np

from echolearn.exceptions import ExportError
from echolearn.validation import Array

LINE_CHARACTERS = 118
MAX_NAME_CHARACTERS = 40
MAX_STRING_BYTES = 1000  # C99 promises 4095 characters, and a byte may become four of them
SIZES_BYTES = {"float": 4, "double": 8, "int": 4, "unsigned int": 4, "short": 2, "unsigned short": 2, "signed char": 1}


def check_name(name: object) -> str:
    """Return a name that may begin the names of functions in C, or raise ExportError."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name, re.ASCII):
        raise ExportError(
            f"name={name!r:.60} cannot begin names in C; expected a letter, then letters, digits and underscores."
        )
    if "__" in name or name.endswith("_") or len(name) > MAX_NAME_CHARACTERS:
        raise ExportError(
            f"name={name!r:.60} has two underscores in a row or one at its end, which C++ reserves, or more than "
            f"{MAX_NAME_CHARACTERS} characters; expected another one, for example 'esn'."
        )
    return name


def templates(file: str) -> dict[str, str]:
    """Return the parts of a file of templates by their names, which stand before them in lines `//// NAME`."""
    text = resources.files("echolearn.export.c").joinpath("templates", file).read_text(encoding="ascii")
    _, *parts = re.split(r"^//// (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def fill_in(template: str, tokens: dict[str, str]) -> str:
    """Return a template with a text in every place where the name of a token stands after a dollar sign."""
    names = "|".join(sorted(tokens, key=len, reverse=True))
    return re.sub(rf"\$({names})", lambda match: tokens[match[1]], template)


def c_string(text: str) -> str:
    """Return a string literal of any text, in UTF-8: everything but plain characters is an escape of three digits."""
    plain = re.compile(rb"[A-Za-z0-9 _.,:;+*/=()\[\]{}<>|~^!#%&@'-]")
    encoded = text.encode("utf-8", "surrogatepass")
    if b"\0" in encoded or len(encoded) > MAX_STRING_BYTES:
        raise ExportError(
            f"the name {text!r:.60} cannot be a string in C: it holds a zero byte, or more than "
            f"{MAX_STRING_BYTES} bytes."
        )
    return '"' + "".join(chr(b) if plain.fullmatch(bytes([b])) else f"\\{b:03o}" for b in encoded) + '"'


def c_number(value: float, kind: str) -> str:
    """Return one number as a constant of its kind."""
    if kind not in ("float", "double"):
        return str(int(value))
    text = f"{value:.9g}" if kind == "float" else repr(float(value))
    text = text if any(mark in text for mark in ".e") else f"{text}.0"
    return f"{text}f" if kind == "float" else text


def smallest_unsigned(values: Array) -> str:
    """Return the smaller type of whole numbers that holds all values."""
    return "unsigned short" if values.max(initial=0) < 65536 else "unsigned int"


@dataclass
class Constants:
    """The arrays of numbers of one header, and how many bytes they take."""

    prefix: str
    text: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, name: str, values: Array, kind: str) -> str:
        """Add an array and return its name in C."""
        flat = np.ravel(values)
        if kind == "float":
            with np.errstate(over="ignore"):
                flat = flat.astype(np.float32)
        if not np.isfinite(flat).all():
            raise ExportError(f"{name} holds numbers that are too large for {kind}; use numbers='float64'.")
        full = f"{self.prefix}_{name}"
        self.text.append(f"static const {kind} {full}[{len(flat)}] = {{\n{_wrapped(flat, kind)}\n}};")
        self.size += len(flat) * SIZES_BYTES[kind]
        return full


def _wrapped(values: Array, kind: str) -> str:
    """Return numbers with commas, in lines of at most `LINE_CHARACTERS` characters."""
    lines: list[str] = []
    line = "   "
    for value in values.tolist():
        item = f" {c_number(value, kind)},"
        if len(line) + len(item) > LINE_CHARACTERS:
            lines.append(line)
            line = "   "
        line += item
    return "\n".join([*lines, line.rstrip(",")])


@dataclass
class Struct:
    """The fields of a struct."""

    fields: list[tuple[str, str, int, str]] = field(default_factory=list)

    def add(self, kind: str, name: str, count: int, meaning: str) -> None:
        """Add a field; count: 0 for a single number, otherwise the length of an array."""
        self.fields.append((kind, name, count, meaning))

    def lines(self) -> str:
        """Return the fields as C."""
        return "\n".join(
            f"    {kind} {name}{f'[{count}]' if count else ''}; /* {meaning} */"
            for kind, name, count, meaning in self.fields
        )

    def size(self) -> int:
        """Return the bytes of the struct where numbers are aligned to their size, as compilers do."""
        place, widest = 0, 1
        for kind, _, count, _ in self.fields:
            size = SIZES_BYTES[kind]
            place = -(-place // size) * size + size * max(count, 1)
            widest = max(widest, size)
        return -(-place // widest) * widest
