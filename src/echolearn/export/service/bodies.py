"""Bodies and messages: read within a size and a time, parsed to checked sequences of frames, and answered as JSON.

The parsers are pure functions; what they refuse, they refuse with a sentence. Answers have the form of the question.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import NoReturn

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from echolearn.export.service.limits import Limits, Refusal, malformed, not_acceptable
from echolearn.export.service.models import About, Json, NetworkModel, Query
from echolearn.validation import Array

LINGER_SECONDS = 2.0
BODY_READ_KEY = "echolearn.body_read"  # in a scope: whether the whole body has been read
NPY_MAGIC = b"\x93NUMPY"
_NUMBER_TYPES = {int, float, type(None)}


async def read_body(request: Request, limits: Limits) -> bytes:
    """Return the body; Refusal as soon as it is known to be too large, or when it takes too long."""
    most = limits.body_bytes
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:20]) > most:
        raise _too_large(f"{length[:20]} bytes", most)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                size += len(chunk)
                if size > most:
                    raise _too_large("more bytes", most)
                chunks.append(chunk)
    except TimeoutError:
        raise Refusal(
            408, "slow-body", f"the body did not arrive within {limits.body_seconds:g} s; send it at once."
        ) from None
    return b"".join(chunks)


def _too_large(what: str, most: int) -> Refusal:
    return Refusal(413, "body-size", f"the body has {what}; this service takes at most {most:,}.")


def noting(scope: Scope, receive: Receive) -> Receive:
    """Return `receive` that notes in the scope when the whole body has been read."""

    async def noted() -> Message:
        message = await receive()
        scope[BODY_READ_KEY] = not message.get("more_body", False)
        return message

    return noted


class RefusedResponse(Response):
    """A refusal. The rest of a body that is still on its way is drained for a moment, so that its sender reads it."""

    def __init__(self, refusal: Refusal, most: int) -> None:
        answer = refusal.response()
        super().__init__(answer.body, answer.status_code, dict(answer.headers))
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                size = 0
                while not scope.get(BODY_READ_KEY) and size <= 4 * self._most:
                    size += len((await receive()).get("body", b""))
        await send({"type": "http.response.body", "body": b""})


def parse_body(kind: str, body: bytes, about: About, most: int) -> Query:
    """Return the sequences in a body of this media type; most: frames of all of them."""
    if kind in ("application/octet-stream", "application/x-npy") or (kind == "" and body.startswith(NPY_MAGIC)):
        query = parse_npy(body, about.n_features)
    elif kind in ("application/json", ""):
        query = parse_json_body(body, about)
    elif kind == "text/csv":
        query = Query([parse_csv(body, about)], many=False)
    else:
        raise Refusal(
            415,
            "media-type",
            f"the body is {kind!r:.80}; expected Content-Type: application/json, text/csv, or application/octet-stream "
            "for a .npy file.",
        )
    return check_size(query, most)


def check_size(query: Query, most: int) -> Query:
    """Return a query, unless a sequence is empty, infinite or, together with the others, too long."""
    frames = sum(map(len, query.sequences or ()))
    if max(frames, query.steps) > most:
        what = f"{frames:,} frames" if frames > most else f"a forecast of {query.steps:,} steps"
        raise Refusal(413, "frames", f"the request has {what}; this service takes at most {most:,}.")
    for k, x in enumerate(query.sequences or ()):
        if len(x) == 0:
            raise not_acceptable(f"sequence {k} of X has no frames; expected at least one.")
        if np.isinf(x).any():
            raise not_acceptable(
                f"sequence {k} of X holds infinity; expected finite numbers, or null for missing ones."
            )
    if query.sequences == []:
        raise not_acceptable("X has no sequences; expected at least one frame.")
    return query


def parse_json(text: str | bytes) -> object:
    """Return the value of a JSON text; NaN and Infinity, which are not JSON, are refused."""
    try:
        return json.loads(text, parse_constant=_not_json)
    except (ValueError, RecursionError) as problem:  # also of UTF-8, and of numbers with thousands of digits
        sentence = "it is nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        raise malformed(f"the text is not JSON: {sentence[:200]}.") from None


def _not_json(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON; write null for a missing value")


def parse_json_body(body: bytes, about: About) -> Query:
    """Return the sequences of {"X": ...}, and of a forecaster the steps of {"steps": n} and exogenous inputs."""
    value = parse_json(body)
    forecasts = about.task == "forecast"
    expected = '{"steps": 10} or {"X": [[..], ..], "steps": 10}' if forecasts else '{"X": [[..], ..]}'
    if not isinstance(value, dict):
        raise malformed(f"the body is a JSON {_kind(value)}; expected an object such as {expected}.")
    allowed = {"X", "steps", *(["exogenous"] if about.n_inputs else [])} if forecasts else {"X"}
    if unknown := sorted(set(value) - allowed):
        raise malformed(f"the body has {unknown[0]!r:.60}, which means nothing here; expected {expected}.")
    steps = value.get("steps", 0)
    if forecasts and (type(steps) is not int or steps < 1):
        raise malformed(f"steps is {value.get('steps')!r:.40}; expected a whole number from 1 on, as in {expected}.")
    if "X" not in value and not forecasts:
        raise malformed(f"the body has no X; expected {expected}.")
    inputs, many = None, False
    if value.get("exogenous") is not None:
        inputs, many = sequences_of(value["exogenous"], about.n_inputs, "exogenous")
    if value.get("X") is None:
        return Query(None, many, steps, inputs)
    sequences, many = sequences_of(value["X"], about.n_features)
    return Query(sequences, many, steps, inputs)


def sequences_of(X: object, n: int, name: str = "X") -> tuple[list[Array], bool]:
    """Return sequences of frames with n numbers from nested lists, and whether there is a list of them."""
    form = f"expected frames of {n} {'number' if n == 1 else 'numbers'}, [[..], ..], or a list of such sequences"
    if not isinstance(X, list):
        raise malformed(f"{name} is a JSON {_kind(X)}; {form}.")
    if not X:
        return [], False
    first = X[0]
    if not isinstance(first, list):
        if n != 1:
            raise not_acceptable(f"{name} is one list of {len(X):,} entries; {form}.")
        return [frames_of([[x] for x in X], 1, name)], False
    if first and isinstance(first[0], list):
        return [frames_of(x, n, f"sequence {k} of {name}") for k, x in enumerate(X)], True
    return [frames_of(X, n, name)], False


def frames_of(rows: object, n: int, name: str) -> Array:
    """Return frames (steps, n) from a list of lists of numbers; null is NaN."""
    if not isinstance(rows, list) or not all(type(row) is list for row in rows):
        raise malformed(f"{name} holds something else than frames; expected lists of {n} numbers.")
    for k, row in enumerate(rows):
        if len(row) != n:
            raise not_acceptable(f"frame {k} of {name} has {len(row):,} numbers; expected {n}.")
    if not set(map(type, chain.from_iterable(rows))) <= _NUMBER_TYPES:
        raise malformed(f"{name} holds entries that are not numbers; expected numbers, or null for missing ones.")
    try:
        return np.array(rows, dtype=np.float64).reshape(len(rows), n)
    except OverflowError:
        raise not_acceptable(f"{name} holds a number too large for a float.") from None


def _kind(value: object) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "truth value", type(None): "null"}
    return names.get(type(value), "number")


def parse_csv(body: bytes, about: About) -> Array:
    """Return the frames of a table with commas between; its first line may be names, an empty field is missing."""
    try:
        rows = [row for row in csv.reader(io.StringIO(body.decode("utf-8-sig")), strict=True) if row]
    except (UnicodeDecodeError, csv.Error) as problem:
        raise malformed(f"the body is not a table in CSV and UTF-8: {problem!s:.200}.") from None
    if not rows:
        return np.empty((0, about.n_features))
    names = None if all(map(_is_number, rows[0])) else [field.strip() for field in rows[0]]
    order = None if names is None else _columns(names, about)
    first, n = int(names is not None), about.n_features if order is None else len(names or ())
    for k, row in enumerate(rows[first:]):
        if len(row) != n:
            raise not_acceptable(f"line {k + 1 + first} has {len(row):,} fields; expected {n}, with commas between.")
    try:
        table = np.array([[_number(field) for field in row] for row in rows[first:]]).reshape(-1, n)
    except ValueError as problem:
        raise malformed(f"the table holds a field that is not a number: {problem!s:.80}.") from None
    return table if order is None else table[:, order]


def _columns(names: list[str], about: About) -> list[int] | None:
    """Return where the model's features stand among the names; None: as they are, for a model without names."""
    if len(names) != about.n_features:
        found = f"the table has {len(names):,} column{'' if len(names) == 1 else 's'}"
        named = f": {', '.join(about.feature_names)}" if about.feature_names else ""
        raise not_acceptable(f"{found}; expected {about.n_features}, with commas between{named}.")
    if not about.feature_names:
        return None
    if missing := [name for name in about.feature_names if name not in names]:
        raise not_acceptable(f"the table has no column {missing[0]!r:.80}; expected {', '.join(about.feature_names)}.")
    return [names.index(name) for name in about.feature_names]


def _is_number(field: str) -> bool:
    try:
        _number(field)
    except ValueError:
        return False
    return True


def _number(field: str) -> float:
    if not field.strip():
        return math.nan
    if "_" in field:
        raise ValueError(repr(field))
    return float(field)


def parse_npy(body: bytes, n: int) -> Query:
    """Return the sequence (steps, n), or the sequences (k, steps, n), of a .npy file. Nothing is unpickled. The bytes
    that the header promises are compared with those that are there before any array is made."""
    file = io.BytesIO(body)
    try:
        version = np.lib.format.read_magic(file)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, fortran, dtype = readers[version](file, max_header_size=2000)
    except (ValueError, KeyError, TypeError, SyntaxError, RecursionError, OverflowError, MemoryError):
        raise malformed("the body is not a .npy file of version 1 or 2, as numpy.save writes it.") from None
    if dtype.kind not in "fiu" or dtype.itemsize > 8:
        raise not_acceptable(f"the array has dtype {str(dtype)!r:.60}; expected float32, float64 or integers.")
    if any(type(k) is not int or k < 0 for k in shape):
        raise malformed("the header of the .npy file has no valid shape.")
    present, promised = len(body) - file.tell(), math.prod(shape) * dtype.itemsize
    if present != promised:
        raise malformed(f"the header of the .npy file promises {promised:,} bytes, and {present:,} are there.")
    if len(shape) == 1 and n == 1:
        shape = (*shape, 1)
    if len(shape) not in (2, 3) or shape[-1] != n:
        raise not_acceptable(f"the array has shape {shape!s:.80}; expected (steps, {n}) or (sequences, steps, {n}).")
    values = np.frombuffer(body, dtype, offset=file.tell()).reshape(shape, order="F" if fortran else "C")
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(values, dtype=np.float64)
    return Query(list(array) if len(shape) == 3 else [array], many=len(shape) == 3)


def parse_message(message: str | bytes, n: int) -> tuple[Array, bool] | str:
    """Return the frames (k, n) of a message of a stream and whether it is a single one; or the command it carries.
    Numbers that are not finite are left to the stream, which knows whether it can fill gaps."""
    if isinstance(message, bytes):
        if len(message) == 0 or len(message) % (4 * n):
            raise not_acceptable(
                f"the message has {len(message):,} bytes; expected {4 * n} (float32, little-endian, {n} numbers) or a "
                "multiple of it."
            )
        return np.frombuffer(message, "<f4").reshape(-1, n), len(message) == 4 * n
    value = parse_json(message)
    if isinstance(value, dict):
        return command_of(value, ("reset", "end"))
    if not isinstance(value, list) or not value:
        raise malformed(f"the message is not a frame; expected [..] with {n} numbers, or [[..], ..].")
    single = not isinstance(value[0], list)
    return frames_of([value] if single else value, n, "the message"), single


def command_of(value: dict[str, object], known: Sequence[str]) -> str:
    command = value.get("command")
    if set(value) != {"command"} or not isinstance(command, str) or command not in known:
        choices = " or ".join(f'{{"command": "{name}"}}' for name in known)
        raise malformed(f"the message is an object that means nothing here; expected {choices}.")
    return command


def answer(model: NetworkModel, query: Query) -> Json:
    """Return the answer to a request; what the model refuses is a Refusal."""
    try:
        rows = model.respond(query)
    except (ValueError, FloatingPointError) as problem:
        raise not_acceptable(str(problem)) from problem
    answers = [described(model.about, one) for one in rows]
    classes: Json = {"classes": list(model.about.classes)} if model.about.classes else {}
    if not query.many and len(answers) == 1:
        return {**classes, **answers[0]}
    return {**classes, **{key: [one[key] for one in answers] for key in answers[0]}}


def described(about: About, rows: Array) -> Json:
    if not np.isfinite(rows).all():
        raise not_acceptable("the answers are not finite: X holds numbers that are too large for this model.")
    if about.task not in ("classes", "labels"):
        values = (rows[:, 0] if rows.shape[1] == 1 else rows).tolist()
        return {"values": values if about.per_step else values[0]}
    labels = labels_of(about, rows)
    if about.per_step:
        return {"labels": labels, "probabilities": rows.tolist()}
    return {"labels": labels[0], "probabilities": rows[0].tolist()}


def labels_of(about: About, rows: Array) -> list[object]:
    """Return the most probable class of each row, or the labels that are more probable than not."""
    if about.task == "labels":
        return [[label for label, p in zip(about.classes, row, strict=True) if p > 0.5] for row in rows.tolist()]
    return [about.classes[k] for k in rows.argmax(axis=1).tolist()]


def stream_answer(about: About, step: int, rows: Array, single: bool) -> Json:
    """Return the answer to one frame, or to a chunk of them; step: the number of the first of these frames."""
    key = "probabilities" if about.task in ("classes", "labels") else "values"
    numbers: Json = {key: rows[0].tolist() if single else rows.tolist()}
    if key == "probabilities":
        labels = labels_of(about, rows)
        numbers = {"label": labels[0], **numbers} if single else {"labels": labels, **numbers}
    return {"step": step, **numbers}
