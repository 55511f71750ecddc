"""Strategies for what users might pass by mistake or on purpose: values, arrays, sequences, targets, files."""

from __future__ import annotations

import decimal
import fractions
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from echolearn import Reservoir

NUMBERS = (
    0, 1, 2, 3, -1, 0.5, 0.9, 1.0, -0.5, 1e-3, 1e-300, 5e-324, 1e300, 1.7e308, float("inf"), float("-inf"),
    float("nan"), np.float32(0.5), np.float64("nan"), np.int64(3), np.uint8(2), np.bool_(True), True, False,
    fractions.Fraction(1, 2), decimal.Decimal("0.5"), 1 + 2j, 10**12, 2**63, 10**400, -(10**30),
)  # fmt: skip
WORDS = (
    "", " ", "auto", "none", "None", "tanh", "sigmoid", "random", "ring", "mean", "last", "both", "input", "softmax",
    "ridge", "float32", "float16", "object", "exact", "0.5", "3", "\0", "ä", "\U0001f600", "../../etc/passwd",
    "a" * 3000, "%s%n", "{}", "\ud800",
)  # fmt: skip
THINGS = (
    None, [], (), {}, set(), b"", b"abc", object(), len, int, range(3), Ellipsis, np.array(0.5), np.array([]),
    np.array(["a"]), np.array([1.0, 2.0]), np.eye(3), np.array([[np.nan]]), np.ma.masked_array([1.0], [True]),
    sparse.csr_array(np.eye(4)), (0.1, 0.9), (0.9, 0.1), (0.1,), (0.1, 0.5, 0.9), (None, None), [0.1, 1.0], [-1.0],
    ["a"],
    [[1, 2], [3]], {"a": 1}, np.datetime64("2020-01-01"), np.random.default_rng(0), np.zeros((0, 3)),
)  # fmt: skip

values = st.one_of(st.sampled_from(NUMBERS), st.sampled_from(WORDS), st.sampled_from(THINGS))

DTYPES = ("f8", "f8", "f8", "f4", "f2", "i8", "i4", "u1", "?", ">f8", ">i4", "c16", "O", "U5", "M8[D]", "g")


def laid_out(x: Any, how: str) -> Any:
    """Return the same numbers in another layout or container."""
    if how == "fortran":
        return np.asfortranarray(x)
    if how == "strided" and x.ndim:
        return np.repeat(x, 2, axis=0)[::2]
    if how == "reversed" and x.ndim:
        return x[::-1].copy()[::-1]
    if how == "readonly":
        x = x.copy()
        x.flags.writeable = False
        return x
    if how == "masked":
        return np.ma.masked_array(x)
    if how == "list":
        return x.tolist()
    if how == "matrix" and x.ndim == 2:
        return np.asmatrix(x)
    if how == "broadcast" and x.ndim == 2:
        return np.broadcast_to(x[:1], x.shape)
    return x


LAYOUTS = ("C", "C", "fortran", "strided", "reversed", "readonly", "masked", "list", "broadcast")
SPOILS = ("none",) * 8 + ("nan", "inf", "huge", "tiny", "constant", "zero", "large", "float max")


def spoil(x: Any, how: str) -> Any:
    """Return an array with some numbers replaced, or all of them scaled, in one of the SPOILS."""
    if x.dtype.kind != "f" or x.size == 0 or how == "none":
        return x
    x = x.copy()
    with np.errstate(all="ignore"):
        if how in ("nan", "inf"):
            x.flat[x.size // 2] = float(how)
        elif how == "float max":
            x.flat[0] = np.finfo(x.dtype).max
        else:
            scale = {"huge": 1e300, "tiny": 1e-310, "constant": 0, "zero": 0, "large": 1e12}[how]
            x *= np.asarray(scale, x.dtype)
            x += np.asarray(how == "constant", x.dtype)
    return x


@st.composite
def matrices(draw: Any, shape: tuple[int, ...]) -> Any:
    """Draw an array of this shape: half of the time a usual one, else one of unusual dtype, layout or numbers."""
    return draw(_made(shape, *draw(_ways)))


_ways = st.one_of(
    st.just(("f8", "none", "C")),
    st.tuples(st.sampled_from(DTYPES), st.sampled_from(SPOILS), st.sampled_from(LAYOUTS)),
)


@st.composite
def _made(draw: Any, shape: tuple[int, ...], dtype: str, spoiled: str, layout: str) -> Any:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    raw = np.asarray(rng.standard_normal(shape) * 2)
    with np.errstate(all="ignore"):
        x = raw.astype("i8").astype(dtype) if dtype[-1] in "OU5D]" else raw.astype(dtype)
    return laid_out(np.asarray(spoil(x, spoiled)), layout)


@st.composite
def plain_sequences(draw: Any, features: int = 2) -> Any:
    """Draw usual sequences, so that other arguments are examined."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return [rng.standard_normal((n, features)) for n in draw(st.lists(st.integers(4, 12), min_size=2, max_size=6))]


@st.composite
def sequences(draw: Any, features: int = 2) -> Any:
    """Draw a list of sequences, a single one, a 3-D array, or another value; half of the time nothing is unusual."""
    if draw(st.booleans()):
        return draw(plain_sequences(features))
    wide = draw(st.sampled_from([features] * 15 + [0, 1, features + 1]))
    way = draw(st.integers(0, 12))
    if way == 9:
        return draw(values)
    if way == 8:
        return draw(matrices(tuple(draw(st.lists(st.integers(0, 4), max_size=4)))))
    if way == 7:
        return draw(matrices((draw(st.integers(0, 5)), draw(st.integers(0, 9)), wide)))
    if way == 6:
        return draw(matrices((draw(st.integers(0, 60)), wide)))
    lengths = draw(st.lists(st.sampled_from([9, 9, 12, 20, 2, 1] + [0] * (way == 0)), min_size=way > 0, max_size=7))
    dtype, spoiled, layout = draw(_ways)
    # one of them is spoiled; all have the same dtype and layout
    which = draw(st.integers(0, max(0, len(lengths) - 1)))
    hows = [(dtype, spoiled if i == which else "none", layout) for i in range(len(lengths))]
    listed = [draw(_made((n, wide), *how)) for n, how in zip(lengths, hows, strict=True)]
    if way == 5 and listed:
        listed[which] = draw(values)
    return tuple(listed) if way == 4 else listed


def _length(x: Any) -> int:
    try:
        return len(x)
    except TypeError:
        return 0


LABELS = (["a", "b"], [0, 1], [True, False], [-3, 7, 2], ["x"], [0.0, 1.5], ["a", 1])


@st.composite
def targets(draw: Any, X: Any, kind: str) -> Any:
    """Draw one target per step, one per sequence, or another value; kind: "labels" or "values"."""
    if draw(st.integers(0, 14)) == 0:
        return draw(st.one_of(values, sequences()))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    names = draw(st.sampled_from([*LABELS[:4] * 3, *LABELS]))
    wide = draw(st.sampled_from([(), (1,), (2,)]))
    spoiled, layout = draw(_ways)[1:]
    off = draw(st.sampled_from([0] * 12 + [-1, 1]))

    def some(n: int) -> Any:
        n = max(0, n + off)
        if kind == "labels":
            mixed = len({type(v) for v in names}) > 1
            return np.array(names, dtype=object if mixed else None)[rng.integers(len(names), size=n)]
        return laid_out(spoil(rng.standard_normal((n, *wide)), spoiled), layout)

    many = isinstance(X, (list, tuple)) or getattr(X, "ndim", 0) == 3
    if not many or draw(st.integers(0, 3)) == 0:
        return some(_length(X))
    return [some(_length(x)) for x in X]


PLAUSIBLE = {
    "hidden_units": [1, 2, 5, np.int64(3)], "ensemble": [1, 2, 9], "spectral_radius": [0.1, 1.0, 3.0, 100.0],
    "connections": [1, 4, 50],
    "topology": ["random", "ring", "delay_line", "small_world", "orthogonal", "groups", "deep"],
    "input_scaling": [1e-6, 1.0, 1e6, [0.5, 0.0], np.array([1.0, 2.0])], "bias_scaling": [0.0, 1.0, 100.0],
    "bidirectional": [True, False], "feedback": [True, False], "feedback_scaling": [0.1, 10.0],
    "activation": ["tanh", "sigmoid", "relu", "identity"],
    "leak": [1.0, 0.01, (0.1, 0.1), (0.01, 1.0), np.full(4, 0.5)],
    "reservoir": [None, {"connections": 1},
                  Reservoir(W=np.ones((2, 4)), W_rec=np.diag([0.5, -0.5, 0.9, 2.0]), activation="tanh")],
    "learn_leak": [True, False],
    "initial_state": [None, np.zeros(4), [0.1] * 4], "washout": [0, 1, 8, 9], "direct": [True, False],
    "fit_intercept": [True, False],
    "pooling": [None, "mean", "last", 1, 3], "ridge": ["auto", 0, 1e-300, 1.0, 1e300, [0.1, 1.0]],
    "readout": ["ridge", "softmax"], "learn": ["none", "input", "both"], "lookback": [None, 1, 3, 100],
    "targets": ["all", "last"], "gradient": ["exact", "printed"], "case": [1, 2], "optimizer": ["adam", "fista"],
    "momentum": ["fista", "printed"], "step_size": [None, 1e-9, 1.0, 1e9], "epochs": [None, 0, 1, 3],
    "refine_epochs": [0, 1, 3], "batch_size": [None, 1, 100], "clip": [None, 1e-9, 1.0], "renormalize": [True, False],
    "validation_fraction": [0, 0.01, 0.5, 0.99], "patience": [None, "auto", 1], "dtype": ["float32", "float64"],
    "layout": ["auto", "time_first", "channels_first", "rows"],
    "random_state": [0, None, 2**70, np.random.default_rng(1)], "input_noise": [0.0, 1e-3, 10.0],
    "learning": [None, {}, {"step_size": 1e-9, "batch_size": 1}, {"stepsize": 1.0}, {1: 2}],
}  # fmt: skip


def setting(name: str) -> Any:
    """Return a strategy for a parameter: a plausible value, or any."""
    name = name.rpartition("__")[2]  # of one inside of `learning` or `reservoir`
    likely = st.sampled_from(PLAUSIBLE[name]) if name in PLAUSIBLE else values
    return st.one_of(likely, likely, values)


@st.composite
def mutated(draw: Any, seeds: list[bytes]) -> bytes:
    """Draw a sound file with some of its bytes changed, removed, doubled, or replaced by those of another."""
    content = bytearray(draw(st.sampled_from(seeds)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    for _ in range(draw(st.integers(0, 4))):
        if not content:
            break
        a, b = sorted(int(n) for n in rng.integers(0, len(content) + 1, 2))
        b = min(b, a + int(2 ** rng.uniform(0, 10)))
        way = rng.integers(7)
        if way == 0:
            del content[a:b]
        elif way == 1:
            content[a:a] = content[a:b]
        elif way == 2:
            content[a:b] = rng.bytes(b - a)
        elif way == 3 and a < len(content):
            content[a] ^= 1 << int(rng.integers(8))
        elif way == 4:
            other = draw(st.sampled_from(seeds))
            content[a:b] = other[a:b]
        elif way == 5:
            content[a:b] = draw(
                st.sampled_from([b"\xff" * 8, b"\0" * 8, b"-1", b"1e999", b"nan", b"99999999999", b'"'])
            )
        else:
            content[a:b] = draw(st.text(max_size=8)).encode("utf-8", "surrogatepass")
    return bytes(content)


@st.composite
def label_texts(draw: Any) -> bytes:
    """Draw lines that look like labels, with unusual numbers and names."""
    number = st.sampled_from(
        [
            "0",
            "100",
            "200",
            "50",
            "-5",
            "1.5",
            "1e3",
            "1e999",
            "nan",
            "inf",
            "²",
            "٣",
            "9" * 30,
            "9" * 400,
            "9" * 5000,
            "",
        ]
    )
    word = st.sampled_from(
        ["aa", "h#", "sil", "s2", "s3", '"', '"x"', '"IntervalTier"', '"phones"', "é", "\0", ".", "#!MLF!#"]
    )
    line = st.lists(st.one_of(number, word), max_size=5).map(" ".join)
    head = draw(st.sampled_from(["", "#!MLF!#\n", '#!MLF!#\n"*/a.lab"\n', '"IntervalTier" "phones" 0 1 ', "\ufeff"]))
    text = head + draw(st.sampled_from(["\n", "\r\n", "\r", " "])).join(draw(st.lists(line, max_size=8)))
    return text.encode(draw(st.sampled_from(["utf-8", "utf-16", "utf-8-sig"])), "surrogatepass")
