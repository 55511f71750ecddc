"""Model and checkpoint files written by hand from docs/reference/model_file.md, and many ways to damage or forge one.

The writers here share no code with the package: they are a second implementation of the format, and write its older
version too. `truncations`, `flips`, `rearranged` and `random_headers` make damaged files, whose checksum is wrong;
`forged` makes files with false content under a checksum that is right for it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

DTYPES = {"f8": "F64", "f4": "F32", "f2": "F16", "i8": "I64", "i4": "I32", "u1": "U8", "b1": "BOOL"}

Parts = tuple[dict[str, Any], dict[str, Any]]  # arrays and facts, both by name


def header_of(tensors: dict[str, np.ndarray]) -> tuple[dict[str, Any], bytes]:
    """Return the header of the arrays, and their bytes, one array after another in order of name."""
    header, data = {}, b""
    for name in sorted(tensors):
        raw = np.ascontiguousarray(tensors[name]).tobytes()
        about = {"dtype": DTYPES[tensors[name].dtype.str[1:]], "shape": list(tensors[name].shape)}
        header[name] = {**about, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    return header, data


def checksum(header: dict[str, Any], data: bytes, text: str) -> str:
    """Return the checksum: over the facts as written in the file, then each array's line and bytes."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(header):
        start, stop = header[name]["data_offsets"]
        lengths = " ".join(str(n) for n in header[name]["shape"])
        digest.update(f"\n{name} {header[name]['dtype']} {lengths}\n".encode() + data[start:stop])
    return digest.hexdigest()


def assembled(header: Any, data: bytes) -> bytes:
    """Return a file of this header (JSON, or any bytes) and data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def written(parts: Parts, kind: str, *, text: str | None = None, **header_changes: Any) -> bytes:
    """Return a whole file with a right checksum.

    text: the facts, if not those of `parts`; header_changes: other headers of single arrays.
    """
    tensors, facts = parts
    header, data = header_of(tensors)
    header |= header_changes
    text = json.dumps(facts) if text is None else text
    try:
        sum_ = checksum(header, data, text)
    except (TypeError, ValueError, KeyError, AttributeError):
        sum_ = "0" * 64  # such a header has no bytes to sum
    return assembled({"__metadata__": {kind: text, "sha256": sum_}, **header}, data)


def taken_apart(content: bytes, kind: str) -> Parts:
    """Return the arrays and facts of a sound file."""
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + length])
    facts = json.loads(header.pop("__metadata__")[kind])
    numpy = {name: code for code, name in DTYPES.items()}
    tensors = {}
    for name, about in header.items():
        start, stop = (8 + length + place for place in about["data_offsets"])
        tensors[name] = np.frombuffer(content[start:stop], "<" + numpy[about["dtype"]]).reshape(about["shape"])
    return tensors, facts


def truncations(content: bytes, count: int) -> Iterator[bytes]:
    """Yield the file cut off at `count` places, evenly far apart: after every byte, if it has not more."""
    for length in np.unique(np.linspace(0, len(content) - 1, min(count, len(content))).astype(int)):
        yield content[:length]


def flips(content: bytes, rng: np.random.Generator, count: int) -> Iterator[bytes]:
    """Yield files with one to three flipped bits, as often in the header alone as in the whole file."""
    header = 8 + struct.unpack("<Q", content[:8])[0]
    for _ in range(count):
        spoiled = bytearray(content)
        end = header if rng.random() < 0.5 else len(content)
        for place in rng.integers(0, end, rng.integers(1, 4)):
            spoiled[place] ^= 1 << rng.integers(8)
        yield bytes(spoiled)


def rearranged(content: bytes, rng: np.random.Generator, count: int) -> Iterator[bytes]:
    """Yield files with a part removed, doubled, zeroed, replaced by noise or moved, or with noise at the end."""
    for _ in range(count):
        a, b, c = np.sort(rng.integers(0, len(content), 3))
        part = content[a:b]
        ways = (
            lambda: content[:a] + content[b:],  # noqa: B023
            lambda: content[:b] + part + content[b:],  # noqa: B023
            lambda: content[:a] + bytes(len(part)) + content[b:],  # noqa: B023
            lambda: content[:a] + rng.bytes(len(part)) + content[b:],  # noqa: B023
            lambda: content[:a] + content[b:c] + part + content[c:],  # noqa: B023
            lambda: content + rng.bytes(int(rng.integers(1, 100))),
        )
        yield ways[rng.integers(len(ways))]()


def random_headers(content: bytes, rng: np.random.Generator, count: int) -> Iterator[bytes]:
    """Yield files with random bytes, random header lengths, or random JSON before the true arrays."""
    length = struct.unpack("<Q", content[:8])[0]
    for _ in range(count):
        way = rng.integers(4)
        if way == 0:
            yield rng.bytes(int(rng.integers(0, 200)))
        elif way == 1:
            yield struct.pack("<Q", int(rng.integers(0, 2**63)) >> int(rng.integers(64))) + content[8:]
        elif way == 2:
            noise = rng.bytes(int(rng.integers(2, 300)))
            yield assembled(noise, content[8 + length :])
        else:
            yield assembled(json.dumps(random_json(rng, 4)).encode(), content[8 + length :])


WORDS = (
    "", "W", "U", "dtype", "shape", "data_offsets", "__metadata__", "F64", "echolearn-model", "../../etc/passwd",
    "/dev/zero", "C:\\W", "W\0", "W/../U", "\ud800", "\U0001f600" * 9, "os.system", "__class__", "tuple",
    "float", "inf", "nan",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 127, 255, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30, -(10**30), 10**300,
    0.0, -0.0, 0.5, 1.5, -1.5, 1e-320, 1e300, 1e308, -1e308,
)  # fmt: skip


def random_json(rng: np.random.Generator, depth: int) -> Any:
    """Return a random value that JSON can hold, nested at most `depth` levels."""
    way = rng.integers(8 if depth else 5)
    if way == 0:
        return [None, True, False][rng.integers(3)]
    if way in (1, 2):
        return NUMBERS[rng.integers(len(NUMBERS))]
    if way in (3, 4):
        return WORDS[rng.integers(len(WORDS))]
    if way == 5:
        return [random_json(rng, depth - 1) for _ in range(rng.integers(5))]
    if way == 6:
        return {"tuple": [random_json(rng, depth - 1) for _ in range(rng.integers(4))]}
    return {WORDS[rng.integers(len(WORDS))]: random_json(rng, depth - 1) for _ in range(rng.integers(5))}


def forged(parts: Parts, kind: str, rng: np.random.Generator, count: int) -> Iterator[bytes]:
    """Yield files with false content under a right checksum.

    False are shapes, dtypes, offsets, names or values, or names are repeated, nesting is deep, numbers are not finite,
    parts are missing, or the kind or version is another one.
    """
    ways = (_shapes, _dtypes, _places, _names, _numbers, _values, _repeated, _deep, _not_finite, _missing, _mixed)
    for i in range(count):
        yield ways[i % len(ways)](parts, kind, rng)


def _shapes(parts: Parts, kind: str, rng: np.random.Generator) -> bytes:
    """Give an array another shape, or the header of the same bytes another shape."""
    tensors, facts = parts
    name = rng.choice(sorted(tensors))
    value = tensors[name]
    if rng.random() < 0.5:
        size = tuple(int(n) + int(rng.integers(-2, 3)) for n in value.shape)
        return written(({**tensors, name: np.resize(value, np.maximum(size, 0))}, facts), kind)
    about = header_of(tensors)[0][name]
    shape = [int(rng.choice([n, 0, 1, -1, 2**31, 2**62, 2**63, 2**64, n * 8])) for n in [*value.shape, 1]]
    return written(parts, kind, **{name: {**about, "shape": shape[: rng.integers(0, len(shape) + 1)]}})


def _dtypes(parts: Parts, kind: str, rng: np.random.Generator) -> bytes:
    """Give an array another dtype, or the header of the same bytes another dtype."""
    tensors, facts = parts
    name = rng.choice(sorted(tensors))
    if rng.random() < 0.5:
        with np.errstate(all="ignore"):
            other = tensors[name].astype(rng.choice(["f4", "f8", "i8", "u1", "f2", "?"]))
        return written(({**tensors, name: other}, facts), kind)
    about = header_of(tensors)[0][name]
    dtype = rng.choice(["I64", "U64", "C64", "BF16", "F8_E4M3", "object", "O", "<f8", "V8"])
    return written(parts, kind, **{name: {**about, "dtype": str(dtype)}})


def _places(parts: Parts, kind: str, rng: np.random.Generator) -> bytes:
    """Let arrays share bytes, leave gaps, end before they begin, or reach past the end."""
    header = header_of(parts[0])[0]
    name = rng.choice(sorted(header))
    start, stop = header[name]["data_offsets"]
    moved = rng.choice([0, 8, -8, 1, start, 2**40], 2)
    return written(
        parts, kind, **{name: {**header[name], "data_offsets": [int(start + moved[0]), int(stop + moved[1])]}}
    )


def _names(parts: Parts, kind: str, rng: np.random.Generator) -> bytes:
    """Use paths and other dangerous words as names of arrays and of the estimator."""
    tensors, facts = parts
    word = WORDS[rng.integers(len(WORDS))]
    if rng.random() < 0.3:
        return written((tensors, {**facts, "estimator": word}), kind)
    name = rng.choice(sorted(tensors))
    renamed = {word if n == name else n: v for n, v in tensors.items()}
    return written((renamed if rng.random() < 0.5 else {**tensors, word: tensors[name]}, facts), kind)


def _numbers(parts: Parts, kind: str, rng: np.random.Generator) -> bytes:
    """Replace one number of an array, for example by NaN or infinity."""
    tensors, facts = parts
    full = [name for name in sorted(tensors) if tensors[name].size]
    name = rng.choice(full)
    value = tensors[name].copy()
    choices = [np.nan, np.inf, -np.inf, 1e308, 5e-324, -1.0, 2.0**62, 0.0]
    with np.errstate(all="ignore"):
        value.flat[rng.integers(value.size)] = np.array(rng.choice(choices)).astype(value.dtype)
    return written(({**tensors, name: value}, facts), kind)


def _some_fact(facts: dict[str, Any], rng: np.random.Generator) -> tuple[dict[str, Any], str]:
    """Return a dictionary among the facts and the name of one of its entries, to be changed."""
    at = facts
    while True:
        name = sorted(at)[rng.integers(len(at))]
        if not isinstance(at[name], dict) or not at[name] or rng.random() < 0.1:
            return at, name
        at = at[name]


def _values(parts: Parts, kind: str, rng: np.random.Generator) -> bytes:
    """Replace one fact or setting: by another type, a huge number, a path."""
    facts = copy.deepcopy(parts[1])
    at, name = _some_fact(facts, rng)
    at[name] = random_json(rng, 2)
    return written((parts[0], facts), kind)


def _repeated(parts: Parts, kind: str, rng: np.random.Generator) -> bytes:
    """Repeat a name, in the header or, with another value, among the facts."""
    tensors, facts = parts
    if rng.random() < 0.5:
        name = sorted(facts)[rng.integers(len(facts))]
        text = json.dumps(facts)
        return written(parts, kind, text=text[:-1] + f", {json.dumps(name)}: {json.dumps(random_json(rng, 1))}}}")
    header, data = header_of(tensors)
    text = json.dumps(facts)
    header = {"__metadata__": {kind: text, "sha256": checksum(header, data, text)}, **header}
    name = sorted(header)[rng.integers(len(header))]
    raw = json.dumps(header)[:-1] + f", {json.dumps(name)}: {json.dumps(header[name])}}}"
    return assembled(raw.encode(), data)


def _deep(parts: Parts, kind: str, rng: np.random.Generator) -> bytes:
    """Nest a value in a hundred to a million levels, or make a list of as many values."""
    depth = int(10 ** rng.uniform(2, 6))
    opened, closed = [("[", "]"), ('{"a":', "}"), ("[{},", "]")][rng.integers(3)]
    nested = opened * depth + "0" + closed * depth if rng.random() < 0.7 else "[" + "{}," * depth + "0]"
    if rng.random() < 0.5:
        name = sorted(parts[1])[rng.integers(len(parts[1]))]
        rest = json.dumps({n: v for n, v in parts[1].items() if n != name})
        return written(parts, kind, text=rest[:-1] + f", {json.dumps(name)}: {nested}}}")
    return assembled(f'{{"W": {nested}}}'.encode(), b"")


def _not_finite(parts: Parts, kind: str, rng: np.random.Generator) -> bytes:
    """Write NaN, Infinity, 1e999 or a number of thousands of digits as JSON."""
    facts = copy.deepcopy(parts[1])
    at, name = _some_fact(facts, rng)
    at[name] = "@"
    literal = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 5000, "1" + "0" * 400][rng.integers(7)]
    return written(parts, kind, text=json.dumps(facts).replace('"@"', literal))


def _missing(parts: Parts, kind: str, rng: np.random.Generator) -> bytes:
    """Remove an array or a fact."""
    tensors, facts = dict(parts[0]), copy.deepcopy(parts[1])
    if rng.random() < 0.5:
        del tensors[rng.choice(sorted(tensors))]
    else:
        at, name = _some_fact(facts, rng)
        del at[name]
    return written((tensors, facts), kind)


def _mixed(parts: Parts, kind: str, rng: np.random.Generator) -> bytes:
    """Name another kind of file or another version, or add metadata."""
    tensors, facts = parts
    way = rng.integers(4)
    if way == 0:
        return written(parts, ["echolearn-model", "echolearn-checkpoint", "other"][rng.integers(3)])
    if way == 1:
        return written((tensors, {**facts, "format_version": random_json(rng, 1)}), kind)
    if way == 2:
        return written((tensors, {**facts, "format": WORDS[rng.integers(len(WORDS))]}), kind)
    header, data = header_of(tensors)
    more = {WORDS[rng.integers(len(WORDS))]: random_json(rng, 1)}
    text = json.dumps(facts)
    return assembled({"__metadata__": {kind: text, "sha256": checksum(header, data, text), **more}, **header}, data)
