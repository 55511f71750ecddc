"""Lattices as text files in HTK's standard lattice format, which HTK, SRILM, Kaldi's tools and others read.

Words stand on the links. A link has an acoustic score a= and a language score l=, both natural logarithms; its total is
a + lmscale * l + wdpenalty, the last for links with a word only. Links without a word are !NULL.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from echolearn.modelfile.atomic import write_atomically
from echolearn.speech.errors import CorpusError
from echolearn.speech.features import FRAME_SECONDS
from echolearn.speech.recognition.lattices import NONE, Lattice

NULL = "!NULL"
_SILENT = {NULL, "!SENT_START", "!SENT_END", "<s>", "</s>"}  # words of other tools that are no tokens
_HEADER = {"NODES": "N", "LINKS": "L"}
_FIELD = re.compile(r'(?P<key>[A-Za-z_]+)=(?P<value>"(?:[^"\\]|\\.)*"|[^"\s]\S*)(?=\s|$)')


def write_slf(path: str | Path, lattice: Lattice, *, utterance: str | None = None) -> None:
    """Write a lattice.

    Parameters
    ----------
    path : str or Path
        The file; one that exists is replaced, completely or not at all.
    lattice : Lattice
        The lattice.
    utterance : str, optional
        Name of the utterance, for the head of the file.

    Raises
    ------
    ValueError
        If a token cannot be written: it is empty or contains a blank, or it is a mark such as ``!NULL``.
    """
    used = {lattice.tokens[token] for token in np.unique(lattice.token) if token >= 0}
    for name in sorted(used):
        if name.split() != [name] or name in _SILENT or '"' in name or "\\" in name:
            raise ValueError(f"a lattice file cannot hold the token {name!r}: expected no blanks or quotes")
    head = ["VERSION=1.0"]
    if utterance is not None:
        head.append(f'UTTERANCE="{_escaped(utterance)}"')
    head.append(f"base=2.718281828459045 acscale=1 lmscale={lattice.language_weight!r} wdpenalty={-lattice.penalty!r}")
    head.append(f"start=0 end={len(lattice.frame) - 1}")
    head.append(f"N={len(lattice.frame)} L={len(lattice.start)}")
    nodes = [f"I={k} t={frame * FRAME_SECONDS:.4f}" for k, frame in enumerate(lattice.frame.tolist())]
    columns = (lattice.start, lattice.end, lattice.token, lattice.acoustic, lattice.language)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    links = [
        f"J={k} S={start} E={end} W={lattice.tokens[token] if token >= 0 else NULL} a={acoustic!r} l={language!r}"
        for k, (start, end, token, acoustic, language) in enumerate(rows)
    ]
    write_atomically(Path(path), ("\n".join([*head, *nodes, *links]) + "\n").encode())


def _escaped(text: str) -> str:
    if "\n" in text or "\r" in text:
        raise ValueError(f"the name of the utterance {text!r} has more than one line")
    return text.replace("\\", "\\\\").replace('"', '\\"')


@dataclass(frozen=True)
class _Line:
    """A line of a lattice file: its number and its fields."""

    path: Path
    number: int
    fields: Mapping[str, str]

    def problem(self, what: str) -> CorpusError:
        return CorpusError.one(self.path, f"line {self.number}: {what}")

    def whole(self, key: str, below: int) -> int:
        """Return a field that counts from 0."""
        text = self.fields.get(key)
        if text is None:
            raise self.problem(f"there is no {key}=; expected a number from 0 to {below - 1}")
        if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) >= below:
            raise self.problem(f"{key}={text}; expected a number from 0 to {below - 1}")
        return int(text)

    def number_of(self, key: str, default: float) -> float:
        """Return a field that is a finite number."""
        text = self.fields.get(key)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.problem(f"{key}={text}; expected a finite number")
        return value


def read_slf(path: str | Path) -> Lattice:
    """Read a lattice.

    Parameters
    ----------
    path : str or Path
        A text file in HTK's standard lattice format. Words may stand on the links or on the nodes. Marks of the start
        and end of sentences are no tokens.

    Returns
    -------
    Lattice
        The lattice. Its nodes are numbered anew where the file has them out of order; a node without a time lies at
        frame 0.

    Raises
    ------
    CorpusError
        With the file and the line: a field that is no number, a node or link that is missing or there twice, a link
        backwards in time or around in a circle, a node that is not between start and end.
    """
    path = Path(path)
    lines = _lines(path)
    head, sizes = _read_head(path, lines)
    size = {key: _size(sizes, key) for key in ("N", "L")}
    if size["N"] < 2:
        raise sizes.problem(f"N={size['N']}; expected at least a node to start and one to end")
    body = list(lines)
    nodes = _numbered(path, [line for line in body if "I" in line.fields], "I", size["N"])
    links = _numbered(path, [line for line in body if "I" not in line.fields], "J", size["L"])
    return _assemble(path, head, nodes, links)


def _lines(path: Path) -> Iterator[_Line]:
    """Yield the lines that are neither empty nor comments."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError.one(path, f"is not a lattice that can be read ({error})") from error
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields: dict[str, str] = {}
        for match in _FIELD.finditer(line):
            value = match["value"]
            if value.startswith('"'):
                value = re.sub(r"\\(.)", r"\1", value[1:-1])
            key = _HEADER.get(match["key"], match["key"])
            if key in fields:
                raise CorpusError.one(path, f"line {number}: {key}= stands there twice")
            fields[key] = value
        rest = _FIELD.sub("", line).split()
        if rest:
            raise CorpusError.one(path, f"line {number}: {rest[0]!r}; expected fields such as S=0 or W=word")
        yield _Line(path, number, fields)


def _read_head(path: Path, lines: Iterator[_Line]) -> tuple[dict[str, _Line], _Line]:
    """Return the line of each field of the head, up to the sizes N= and L=."""
    head: dict[str, _Line] = {}
    for line in lines:
        if "I" in line.fields or "J" in line.fields:
            raise line.problem("a node or link before the numbers of nodes and links; expected N= and L=")
        if not head and "VERSION" not in line.fields and "N" not in line.fields:
            raise line.problem("expected VERSION=1.0 at the beginning of a lattice")
        head.update(dict.fromkeys(line.fields, line))
        if "N" in line.fields:
            return head, line
    raise CorpusError.one(path, "ends before the numbers of nodes and links; expected a line with N= and L=")


def _size(line: _Line, key: str) -> int:
    return line.whole(key, 10**9)


def _numbered(path: Path, lines: list[_Line], key: str, expected: int) -> list[_Line]:
    """Return nodes or links in the order of their numbers."""
    found: dict[int, _Line] = {}
    for line in lines:
        number = line.whole(key, expected)
        if number in found:
            raise line.problem(f"{key}={number} stands on line {found[number].number}, too")
        found[number] = line
    missing = [k for k in range(min(expected, len(found) + 1)) if k not in found]
    if len(found) < expected:
        what = "nodes" if key == "I" else "links"
        raise CorpusError.one(path, f"has {len(found)} of {expected} {what}; {key}={missing[0]} is missing")
    return [found[k] for k in range(expected)]


def _assemble(path: Path, head: Mapping[str, _Line], nodes: list[_Line], links: list[_Line]) -> Lattice:
    """Put a lattice together, its nodes in an order in which every link leads onward."""
    n = len(nodes)
    ends = [(line.whole("S", n), line.whole("E", n)) for line in links]
    order = _topological(n, ends, links)
    place = {node: k for k, node in enumerate(order)}
    _check_ends(path, head, order, ends)
    times = [node.number_of("t", math.nan) for node in nodes]
    frame = np.array([0 if math.isnan(times[k]) else round(times[k] / FRAME_SECONDS) for k in order], dtype=np.int64)
    for line, (start, end) in zip(links, ends, strict=True):
        if times[end] < times[start]:
            raise line.problem(f"a link back in time, from {times[start]} s to {times[end]} s")
    words = [_word(line, nodes[end]) for line, (_, end) in zip(links, ends, strict=True)]
    tokens = tuple(sorted({word for word in words if word is not None}))
    number = {word: k for k, word in enumerate(tokens)}
    rows = sorted(range(len(links)), key=lambda k: (place[ends[k][0]], place[ends[k][1]], k))
    scale = _scores(head)
    return Lattice(
        frame=frame,
        start=np.array([place[ends[k][0]] for k in rows], dtype=np.int64),
        end=np.array([place[ends[k][1]] for k in rows], dtype=np.int64),
        token=np.array([number.get(words[k] or "", NONE) for k in rows], dtype=np.int64),
        acoustic=np.array([scale["acscale"] * scale["log"] * links[k].number_of("a", 0.0) for k in rows], dtype=float),
        language=np.array([scale["log"] * links[k].number_of("l", 0.0) for k in rows], dtype=float),
        tokens=tokens,
        language_weight=scale["lmscale"],
        penalty=-scale["wdpenalty"] * scale["log"],
    )


def _scores(head: Mapping[str, _Line]) -> dict[str, float]:
    """Return the factors of the head, and the natural logarithm of the base of the logarithms as ``log``."""

    def value(key: str, default: float) -> float:
        return head[key].number_of(key, default) if key in head else default

    base = value("base", math.e)
    if base <= 0 or base == 1:
        raise head["base"].problem(f"base={base}; expected the base of the logarithms, such as 2.718")
    found = {"acscale": value("acscale", 1.0), "lmscale": value("lmscale", 1.0), "wdpenalty": value("wdpenalty", 0.0)}
    return {**found, "log": 1.0 if abs(base - math.e) < 1e-3 else math.log(base)}


def _word(link: _Line, end: _Line) -> str | None:
    """Return the word of a link, which may stand on the node that it leads to; None for no word."""
    word = link.fields.get("W", end.fields.get("W", NULL))
    return None if word in _SILENT else word


def _topological(n: int, ends: list[tuple[int, int]], links: list[_Line]) -> list[int]:
    """Return the nodes in an order in which every link leads onward; the first of those that are free comes first."""
    following: list[list[int]] = [[] for _ in range(n)]
    waiting = [0] * n
    for start, end in ends:
        following[start].append(end)
        waiting[end] += 1
    free = [node for node in range(n) if not waiting[node]]
    order = []
    for node in free:
        order.append(node)
        for end in following[node]:
            waiting[end] -= 1
            if not waiting[end]:
                free.append(end)
    if len(order) < n:
        circle = next(k for k, (_, end) in enumerate(ends) if waiting[end])
        raise links[circle].problem("this link leads around in a circle; expected one that leads onward")
    return order


def _check_ends(path: Path, head: Mapping[str, _Line], order: list[int], ends: list[tuple[int, int]]) -> None:
    """Refuse a lattice in which some node is neither the only start nor the only end nor between both."""
    for what, key, node, used in (
        ("start", "start", order[0], {end for _, end in ends}),
        ("end", "end", order[-1], {start for start, _ in ends}),
    ):
        others = [k for k in range(len(order)) if k not in used and k != node]
        if others and ends:
            raise CorpusError.one(path, f"nodes {node} and {others[0]} both {what} the lattice; expected one {what}")
        if ends and key in head and head[key].whole(key, len(order)) != node:
            raise head[key].problem(f"{key}={head[key].fields[key]}, but the links {what} at node {node}")
