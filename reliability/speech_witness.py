"""A second reader of speech files, which shares no code with that of echolearn, for the campaign of damaged files.

Each function takes the bytes of a file and returns its content as plain values, or raises `Invalid`. The readers are
slow and plain: regular expressions over whole lines, exact fractions for numbers, one byte after another for binary
files, and for TextGrids Praat's own rule (every free-standing number, string and flag counts, nothing else does)
together with a template: the values are put into the long and into the short form, and one of them must give exactly
the words of the file. JSON is parsed by a parser of its own.

The grammars are those of docs/reference/speech_files.md: fields are separated by spaces and tabs; lines end in LF, CR
LF or CR; a number has at most 30 digits before and after its point and an exponent of at most three; a time is from 0
to 1e8 seconds; tokens of one utterance stand next to each other, in the order of their times, and overlap by at most
10 ms.
"""

from __future__ import annotations

import itertools
import math
import re
import struct
import unicodedata
from fractions import Fraction
from typing import Any

NUMBER = r"[-+]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?"
LONGEST = 10**8
OVERLAP = Fraction(1, 100) + Fraction(1, 10**9)
TILES = Fraction(1, 1000) + Fraction(1, 10**9)


class Invalid(Exception):
    """The file is not one of its format."""


def need(condition: object, what: str = "") -> None:
    """Raise Invalid unless something holds."""
    if not condition:
        raise Invalid(what)


def text_of(raw: bytes) -> str:
    """Return the text of a file: UTF-8, or UTF-16 with a mark, without characters that nobody sees."""
    try:
        if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
            text = raw.decode("utf-16")
        else:
            text = raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid("encoding") from error
    for c in set(text) - set(" \t\r\n"):
        hidden = c.isspace() or unicodedata.category(c) in ("Cc", "Cs") or c in "\u200b\u2060\ufeff"
        need(not hidden, f"character {c!r}")
    return text


def lines_of(raw: bytes) -> list[str]:
    """Return the lines that are not blank."""
    lines = text_of(raw).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [line.strip(" \t") for line in lines if line.strip(" \t")]


def exact(text: str) -> Fraction:
    """Return the number that a text holds, which a double must be able to hold."""
    need(re.fullmatch(NUMBER, text), f"number {text[:20]}")
    value = Fraction(text)
    try:
        float(value)
    except OverflowError as error:
        raise Invalid("too large") from error
    return value


def a_time(text: str) -> Fraction:
    """Return a time in seconds."""
    value = exact(text)
    need(0 <= value <= LONGEST, "time")
    return value


def a_channel(text: str) -> int:
    """Return the number of a channel."""
    need(re.fullmatch(r"[1-9][0-9]?|[AB]", text), "channel")
    return {"A": 1, "B": 2}.get(text) or int(text)


def in_order(rows: list[Any]) -> None:
    """Compare rows (name, start, end, ...) with the rules for their times."""
    for _, start, end, *_ in rows:
        need(start <= end, "end before start")
    for before, after in itertools.pairwise(rows):
        need(before[1] <= after[1] and before[2] - after[1] <= OVERLAP, "order")


def grouped(rows: list[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    """Collect values by key; the rows of a key must stand next to each other."""
    keys = [key for k, (key, _) in enumerate(rows) if k == 0 or rows[k - 1][0] != key]
    need(rows and len(set(keys)) == len(keys), "groups")
    return {key: [value for other, value in rows if other == key] for key in keys}


def ctm(raw: bytes) -> Any:
    """Read a CTM file."""
    rows = []
    for line in lines_of(raw):
        if line[:2] == ";;":
            continue
        match = re.fullmatch(r"(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)(?:\s+(\S+))?", line)
        need(match, "line")
        name, channel, start, length, token, sure = match.groups()
        confidence = None if sure in (None, "NA") else exact(sure)
        need(confidence is None or 0 <= confidence <= 1, "confidence")
        begin = a_time(start)
        end = begin + a_time(length)
        need(end <= LONGEST)
        rows.append(((name, a_channel(channel)), (token, begin, end, confidence)))
    found = grouped(rows)
    for tokens in found.values():
        in_order(tokens)
    return [(key, [_floats(token) for token in tokens]) for key, tokens in found.items()]


def _floats(values: Any) -> tuple[Any, ...]:
    return tuple(float(v) if isinstance(v, Fraction) else v for v in values)


def stm(raw: bytes) -> Any:
    """Read an STM file."""
    rows = []
    for line in lines_of(raw):
        if line[:2] == ";;":
            continue
        match = re.fullmatch(r"(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)(?:\s+(<\S*>|<>)(?=\s|$))?(.*)", line)
        need(match, "line")
        name, channel, speaker, start, end, label, words = match.groups()
        need(label is None or re.fullmatch("<[^<>]*>", label), "label")
        need("{" not in words and "}" not in words, "alternatives")
        begin, stop = a_time(start), a_time(end)
        need(float(begin) < float(stop), "times")  # as doubles: 1e-400 is 0
        row = (speaker, begin, stop, label or "", tuple(words.split()))
        rows.append(((name, a_channel(channel)), row))
    found = grouped(rows)
    for segments in found.values():
        for before, after in itertools.pairwise(segments):
            need(before[1] <= after[1], "order")
            need(before[0] != after[0] or before[2] - after[1] <= OVERLAP, "overlap")
    return [(*key, *_floats(row)) for key, row in rows]


def mlf(raw: bytes) -> Any:
    """Read a master label file."""
    lines = lines_of(raw)
    need(lines and lines[0] == "#!MLF!#" and lines[-1] == "." and len(lines) > 1, "frame")
    found: dict[str, Any] = {}
    for entry in "\n".join(lines[1:-1]).split("\n.\n"):
        head, *labels = entry.split("\n")
        if not labels and head == "":
            raise Invalid("empty")
        match = re.fullmatch(r'"([^"]+)"', head)
        need(match, "head")
        name = re.sub(r"\.\w+$", "", match[1].replace("\\", "/"))
        name = (name[2:] if name.startswith("*/") else name).lstrip("/")
        need(name and not re.search(r"\s", name) and name not in found, "name")
        found[name] = _mlf_rows(labels)
    return list(found.items())


def _mlf_rows(labels: list[str]) -> list[Any]:
    rows: list[Any] = []
    phone = ""
    for line in labels:
        match = re.fullmatch(r"([0-9]{1,18})\s+([0-9]{1,18})\s+(\S+)(?:\s+(\S+))?(?:\s+(\S+))?(?:\s.*)?", line)
        need(match and not line.startswith('"') and line != ".", "label")
        start, end, name, score, aux = match.groups()
        need(int(start) <= int(end) and (score is None or exact(score) is not None), "label")
        if name in ("s2", "s3", "s4"):
            phone = aux or phone
            need(phone, "state without phone")
            name = f"{phone}_{name}"
        need(not rows or rows[-1][3] <= int(start) / 10**7, "order")
        rows.append((name, int(start) / 10**7, int(end) / 10**7, int(start) / 10**7))
    return [row[:3] for row in rows]


def lexicon(raw: bytes) -> Any:
    """Read a pronunciation dictionary."""
    found: dict[str, list[Any]] = {}
    for line in lines_of(raw):
        if line.startswith((";;;", "#")):
            continue
        words = []
        for word in line.split():
            if word.startswith("#") and words:
                break
            words.append(word)
        need(len(words) > 1, "no phones")
        head, phones = words[0], tuple(words[1:])
        variant = re.fullmatch(r"(.+?)\([0-9]+\)", head)
        if variant:
            head = variant[1]
            need(head in found, "variant")
        need(phones not in found.get(head, []), "twice")
        found.setdefault(head, []).append(phones)
    need(found, "empty")
    return sorted(found.items())


def arpa(raw: bytes) -> Any:
    """Read a language model: probabilities and back-off weights as natural logarithms."""
    lines = lines_of(raw)
    need("\\data\\" in lines, "no data")
    lines = lines[lines.index("\\data\\") + 1 :]
    counts = []
    while lines and lines[0] != "\\1-grams:":
        match = re.fullmatch(r"ngram[ \t]+([0-9]{1,2})[ \t]*=[ \t]*([0-9]{1,12})", lines.pop(0))
        need(match and int(match[1]) == len(counts) + 1, "count")
        counts.append(int(match[2]))
    need(counts and lines, "counts")
    heads = [f"\\{k + 1}-grams:" for k in range(len(counts))] + ["\\end\\"]
    found: dict[Any, Any] = {}
    for order in range(1, len(counts) + 1):
        need(lines and lines.pop(0) == heads[order - 1], "head")
        rows = []
        while lines and lines[0] != heads[order]:
            rows.append(lines.pop(0))
        need(len(rows) == counts[order - 1], "number")
        for row in rows:
            _arpa_entry(row, order, found)
    need(lines == ["\\end\\"], "end")
    return len(counts), sorted(found.items())


def _arpa_entry(row: str, order: int, found: dict[Any, Any]) -> None:
    need(row[0] != "\\", "section")
    fields = row.split()
    need(len(fields) in (order + 1, order + 2), "fields")
    gram = tuple(fields[1 : order + 1])
    p = _logarithm(fields[0])
    need(p <= 1e-6 or gram == ("<s>",), "above 1")
    need(gram not in found, "twice")
    need(order == 1 or (gram[:-1] in found and gram[-1:] in found), "history")
    found[gram] = (min(p, 0.0), _logarithm(fields[-1]) if len(fields) == order + 2 else None)


def _logarithm(text: str) -> float:
    if text.lower() in ("-inf", "-infinity"):
        return -math.inf
    value = float(exact(text))
    need(value <= 99, "logarithm")
    return -math.inf if value <= -99 else value * math.log(10)


def textgrid(raw: bytes) -> Any:
    """Read all interval tiers of a TextGrid."""
    words, values = _praat_pieces(text_of(raw))
    strings = [v for kind, v in values if kind == "string"]
    need(len(strings) >= 2 and strings[0] in ("ooTextFile", "ooTextFile short") and strings[1] == "TextGrid", "header")
    rest = iter(values[2:])
    long_form: list[Any] = []

    def value(kind: str, label: str) -> Any:
        found = next(rest, None)
        need(found and found[0] == kind, f"expected a {kind}")
        long_form.append(label)
        return found[1]

    def bounds(label: str) -> tuple[Fraction, Fraction]:
        start, end = a_time(value("number", label)), a_time(value("number", "xmax="))
        need(start < end, "bounds")
        return start, end

    whole = bounds("xmin=")
    need(value("flag", "tiers?") == "<exists>", "tiers")
    tiers = []
    for k in range(_count(value("number", "size="))):
        kind = value("string", f"{'item[]:' if k == 0 else ''}item[{k + 1}]:class=")
        need(kind in ("IntervalTier", "TextTier"), "kind")
        name, own = value("string", "name="), bounds("xmin=")
        need(all(abs(a - b) <= TILES for a, b in zip(own, whole, strict=True)), "bounds of the tier")
        rows = []
        if kind == "TextTier":
            for i in range(_count(value("number", "points:size="))):
                a_time(value("number", f"points[{i + 1}]:number=|points[{i + 1}]:time="))
                value("string", "mark=")
            continue
        for i in range(_count(value("number", "intervals:size="))):
            rows.append((*bounds(f"intervals[{i + 1}]:xmin="), value("string", "text=").strip()))
        edges = [(own[0], rows[0][0])] if rows else []
        edges += [(a[1], b[0]) for a, b in itertools.pairwise(rows)]
        need(rows and all(abs(a - b) <= TILES for a, b in [*edges, (rows[-1][1], own[1])]), "tiles")
        tiers.append((name, [_floats(row) for row in rows]))
    need(next(rest, None) is None and tiers, "end")
    _compare_words(words, long_form)
    return tiers


def _count(text: str) -> int:
    need(re.fullmatch("[0-9]{1,9}", text), "count")
    return int(text)


def _compare_words(words: list[str], long_form: list[str]) -> None:
    """The words before each value, without their blanks, are those of the long form, or there are none."""
    need(words[0] in ("", "Filetype=") and words[1] in ("", "Objectclass=") and words[-1] == "", "header")
    between = words[2:-1]
    short = not any(between)
    need(short or all(a and a in b.split("|") for a, b in zip(between, long_form, strict=True)), "words")


def _praat_pieces(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the values in order, and the words before each of them and after the last."""
    values: list[tuple[str, str]] = []
    words = [""]
    for inside, part in _quoted(text):
        if inside:
            values.append(("string", part))
            words.append("")
            continue
        for word in part.split():
            kind = "number" if word[0] in "+-.0123456789" or word[0].isdecimal() else "flag"
            if kind == "number" or re.fullmatch(r"<\w*>", word):
                values.append((kind, word))
                words.append("")
            else:
                words[-1] += word
    return words, values


def _quoted(text: str) -> list[tuple[bool, str]]:
    """Return the stretches outside and inside quotation marks, of which two stand for one inside a string."""
    parts: list[tuple[bool, str]] = []
    at, inside, current = 0, False, ""
    while at < len(text):
        if inside and text[at : at + 2] == '""':
            current += '"'
            at += 1
        elif text[at] == '"':
            need(not inside or text[at + 1 : at + 2] in ("", " ", "\t", "\r", "\n"), "no blank after a string")
            parts.append((inside, current))
            inside, current = not inside, ""
        else:
            current += text[at]
        at += 1
    need(not inside, "open string")
    return [*parts, (False, current)]


def json_results(raw: bytes) -> Any:
    """Read recognition results."""
    document = _Json(text_of(raw)).document()
    need(type(document) is dict and sorted(document) == ["format", "utterances", "version"], "document")
    need(document["format"] == "echolearn-recognition" and type(document["version"]) is int, "format")
    need(document["version"] == 1 and type(document["utterances"]) is list, "version")
    found = []
    for row in document["utterances"]:
        need(type(row) is dict and {"utterance", "tokens"} <= set(row), "utterance")
        need(set(row) <= {"utterance", "tokens", "channel", "seconds", "phones", "states"}, "keys")
        channel = row.get("channel", 1)
        need(type(channel) is int and 1 <= channel <= 99, "channel")
        need(_is_name(row["utterance"]), "name")
        need(row["tokens"] is not None, "tokens")
        levels = [_json_tokens(row.get(level)) for level in ("tokens", "phones", "states")]
        seconds = row.get("seconds")
        if seconds is not None:
            need(_is_number(seconds) and 0 <= seconds <= LONGEST, "seconds")
            need(all(token[2] <= seconds for level in levels for token in level), "too short")
            seconds = float(seconds)
        found.append((row["utterance"], channel, seconds, *levels))
    need(len({row[:2] for row in found}) == len(found), "twice")
    return found


def _is_name(value: Any) -> bool:
    if type(value) is not str or not value or any(c.isspace() for c in value):
        return False
    return not any(unicodedata.category(c) in ("Cc", "Cs") or c in "\u200b\u2060\ufeff" for c in value)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and abs(value) < 1e300


def _json_tokens(rows: Any) -> list[Any]:
    need(rows is None or type(rows) is list, "tokens")
    found = []
    for row in rows or []:
        need(type(row) is dict and {"name", "start", "end"} <= set(row), "token")
        need(set(row) <= {"name", "start", "end", "confidence"} and _is_name(row["name"]), "token")
        times = row["start"], row["end"]
        sure = row.get("confidence")
        need(all(_is_number(t) and 0 <= t <= LONGEST for t in times), "times")
        need(sure is None or (_is_number(sure) and 0 <= sure <= 1), "confidence")
        found.append((row["name"], *map(float, times), None if sure is None else float(sure)))
    in_order([(name, Fraction(start), Fraction(end)) for name, start, end, _ in found])
    return found


class _Json:
    """A parser of JSON as RFC 8259 defines it, in which no key may occur twice."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0

    def document(self) -> Any:
        value = self.value()
        self.blanks()
        need(self.at == len(self.text), "more than one value")
        return value

    def blanks(self) -> None:
        self.take(r"[ \t\r\n]*")

    def take(self, pattern: str) -> str | None:
        match = re.compile(pattern).match(self.text, self.at)
        self.at = match.end() if match else self.at
        return match[0] if match else None

    def value(self) -> Any:
        self.blanks()
        if self.take(r"\{"):
            return self.members()
        if self.take(r"\["):
            return self.elements()
        if self.text[self.at : self.at + 1] == '"':
            return self.string()
        word = self.take("true|false|null")
        if word:
            return {"true": True, "false": False, "null": None}[word]
        number = self.take(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
        need(number and len(number) < 4000, "value")
        return int(number) if re.fullmatch("-?[0-9]+", number) else float(number)

    def members(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.nest()
        self.blanks()
        while not self.take(r"\}"):
            need(not found or self.take(","), "comma")
            self.blanks()
            key = self.string()
            self.blanks()
            need(self.take(":") and key not in found, "key")
            found[key] = self.value()
            self.blanks()
        self.depth -= 1
        return found

    def elements(self) -> list[Any]:
        found: list[Any] = []
        self.nest()
        self.blanks()
        while not self.take(r"\]"):
            need(not found or self.take(","), "comma")
            found.append(self.value())
            self.blanks()
        self.depth -= 1
        return found

    def nest(self) -> None:
        self.depth += 1
        need(self.depth < 100, "depth")

    def string(self) -> str:
        raw = self.take(r'"([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
        need(raw, "string")
        escapes = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

        def plain(match: re.Match[str]) -> str:
            code = match[1]
            return chr(int(code[1:], 16)) if code[0] == "u" else escapes.get(code, code)

        text = re.sub(r"\\(u[0-9a-fA-F]{4}|.)", plain, raw[1:-1])
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def ark(raw: bytes) -> Any:
    """Read an archive of Kaldi: (name, type, shape, values, how exact they are)."""
    found, at = [], 0
    while at < len(raw):
        space = raw.find(b" ", at, at + 4096)
        need(space > at, "name")
        try:
            name = raw[at:space].decode()
        except UnicodeDecodeError as error:
            raise Invalid("name") from error
        need(_is_name(name) and name not in [row[0] for row in found], "name")
        read = _ark_binary if raw[space + 1 : space + 3] == b"\0B" else _ark_text
        value, at = read(raw, space + 1)
        found.append((name, *value))
    return found


def _ark_text(raw: bytes, at: int) -> tuple[Any, int]:
    end = raw.find(b"\n", at)
    need(end >= 0, "cut")
    first = raw[at:end].removesuffix(b"\r").strip(b" \t")
    if first[:1] != b"[":
        fields = [field for field in re.split("[ \t]+", first.decode("latin-1")) if field]
        need(all(re.fullmatch("-?[0-9]{1,10}", f) and -(2**31) <= int(f) < 2**31 for f in fields), "integers")
        return ("i4", (len(fields),), [int(f) for f in fields], 0.0), end + 1
    close = raw.find(b"]", at)
    end = raw.find(b"\n", close)
    need(close >= 0 and end >= 0 and not raw[close + 1 : end].removesuffix(b"\r").strip(b" \t"), "cut")
    content = raw[raw.find(b"[", at) + 1 : close].decode("latin-1").replace("\r\n", "\n")
    rows = [[exact(f) for f in re.split("[ \t]+", row) if f] for row in content.split("\n")]
    largest = Fraction(2**24 - 1) * 2**104
    need(all(abs(v) <= largest for row in rows for v in row), "32 bits")
    if b"\n" not in raw[at:close]:
        return ("f4", (len(rows[0]),), [_single(v) for v in rows[0]], 0.0), end + 1
    rows = [row for row in rows if row]
    need(len({len(row) for row in rows}) <= 1, "rows")
    shape = (len(rows), len(rows[0])) if rows else (0,)
    return ("f4", shape, [_single(v) for row in rows for v in row], 0.0), end + 1


def _single(value: Fraction) -> float:
    return float(struct.unpack("<f", struct.pack("<f", float(value)))[0])


def _ark_binary(raw: bytes, at: int) -> tuple[Any, int]:
    at += 2

    def number(form: str) -> Any:
        nonlocal at
        size = struct.calcsize(form)
        need(len(raw) - at >= size, "cut")
        at += size
        return struct.unpack_from(form, raw, at - size)[0]

    def size() -> int:
        need(number("<b") == 4, "size")
        found = int(number("<i"))
        need(found >= 0, "negative")
        return found

    def many(form: str, count: int) -> list[Any]:
        need(len(raw) - at >= count * struct.calcsize(form), "cut")
        return [number(form) for _ in range(count)]

    if raw[at : at + 1] == b"\4":
        count = size()
        need(len(raw) - at >= 5 * count, "cut")
        values = [number("<i") for _ in range(count) if number("<b") == 4]
        need(len(values) == count, "size of a number")
        return ("i4", (count,), values, 0.0), at
    kind = raw[at : raw.find(b" ", at)] if b" " in raw[at : at + 4] else b""
    at += len(kind) + 1
    if kind in (b"FM", b"DM", b"FV", b"DV"):
        shape = tuple(size() for _ in range(2 if kind[1:] == b"M" else 1))
        values = many("<f" if kind[:1] == b"F" else "<d", math.prod(shape))
        need(all(map(math.isfinite, values)), "finite")
        return ("f4" if kind[:1] == b"F" else "f8", shape, values, 0.0), at
    need(kind in (b"CM", b"CM2", b"CM3"), "kind")
    low, span, rows, columns = number("<f"), number("<f"), number("<i"), number("<i")
    need(math.isfinite(low) and math.isfinite(span) and span >= 0 and rows >= 0 and columns >= 0, "header")
    need(abs(low) + span < 3.4e38, "range")
    if kind == b"CM":
        values = _ark_columns(many, low, span, (rows, columns))
    else:
        steps = 65535 if kind == b"CM2" else 255
        values = [low + span * code / steps for code in many("<H" if kind == b"CM2" else "<B", rows * columns)]
    return ("f4", (rows, columns), values, 1e-5 * (abs(low) + span)), at


def _ark_columns(many: Any, low: float, span: float, shape: tuple[int, int]) -> list[float]:
    rows, columns = shape
    quantiles = many("<H", 4 * columns)
    heads = [quantiles[4 * k : 4 * k + 4] for k in range(columns)]
    need(all(head == sorted(head) for head in heads), "quantiles")
    codes = many("<B", rows * columns)
    found = []
    for i in range(rows):
        for k, head in enumerate(heads):
            q = [low + span * x / 65535 for x in head]
            code = codes[k * rows + i]
            j, first, last = (0, 0, 64) if code <= 64 else (1, 64, 192) if code <= 192 else (2, 192, 255)
            found.append(q[j] + (q[j + 1] - q[j]) * (code - first) / (last - first))
    return found


def scp(raw: bytes, arrays: dict[tuple[str, int], Any]) -> Any:
    """Read a script file; arrays: (file, offset) to a matrix as a list of rows, for every place that has one."""
    found: dict[str, Any] = {}
    for line in lines_of(raw):
        match = re.fullmatch(r"(\S+)\s+(\S.*?):([0-9]{1,15})(\[([^\[\],]*)(?:,([^\[\],]*))?\])?", line)
        need(match and match[1] not in found, "line")
        name, file, offset = match[1], match[2], int(match[3])
        need((file, offset) in arrays and not file.startswith("|"), "place")
        rows = arrays[file, offset]
        if match[4]:
            rows = rows[_slice(match[5], len(rows))]
            rows = [row[_slice(match[6] or "", len(row))] for row in rows]
        found[name] = rows
    need(found, "empty")
    return list(found.items())


def _slice(text: str, size: int) -> slice:
    if text in ("", ":"):
        return slice(None)
    match = re.fullmatch("([0-9]{1,9}):([0-9]{1,9})", text)
    need(match and int(match[1]) <= int(match[2]) < size, "range")
    return slice(int(match[1]), int(match[2]) + 1)
