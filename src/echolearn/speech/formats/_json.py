"""Results of recognition as JSON files.

The document is one object::

    {"format": "echolearn-recognition", "version": 1, "utterances": [
      {"utterance": "ann/u1", "channel": 1, "seconds": 1.25,
       "tokens": [{"name": "yes", "start": 0.1, "end": 0.5, "confidence": 0.9}],
       "phones": [], "states": []}
    ]}

`utterance` and `tokens` are required. `channel` is 1 if it is missing; `seconds`, `phones`, `states` and `confidence`
may be missing or null. Times are seconds. Other keys are refused, because a misspelt key would be lost silently.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from echolearn.exceptions import CorpusError
from echolearn.modelfile.atomic import write_atomically
from echolearn.speech._text import line_problem, read_text
from echolearn.speech.formats._results import UNITS_PER_SECOND, Recognised, TimedToken, token_problem, units_of

JSON_FORMAT = "echolearn-recognition"
JSON_VERSION = 1
_RESULT_KEYS = ("utterance", "channel", "seconds", "tokens", "phones", "states")
_TOKEN_KEYS = ("name", "start", "end", "confidence")

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None


def write_json(path: str | Path, results: Iterable[Recognised]) -> None:
    """Write results of recognition to a JSON file, one utterance per line.

    Parameters
    ----------
    path : str or Path
        The file; one that exists is replaced, completely or not at all.
    results : iterable of Recognised
        The results, one for each utterance and channel.

    Examples
    --------
    >>> import tempfile
    >>> result = Recognised("u1", (TimedToken("yes", 0.1, 0.5, 0.9),))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_json(f"{folder}/a.json", [result])
    ...     read_json(f"{folder}/a.json") == [result]
    True
    """
    rows, seen = [], set()
    for result in results:
        if (result.utterance, result.channel) in seen:
            raise ValueError(f"channel {result.channel} of the utterance {result.utterance!r} occurs twice")
        seen.add((result.utterance, result.channel))
        rows.append(json.dumps(_document(result), ensure_ascii=False, allow_nan=False))
    head = f'{{"format": "{JSON_FORMAT}", "version": {JSON_VERSION}, "utterances": ['
    write_atomically(Path(path), (f"{head}\n" + ",\n".join(rows) + "\n]}\n").encode())


def _document(result: Recognised) -> dict[str, Json]:
    document: dict[str, Json] = {"utterance": result.utterance, "channel": result.channel}
    if result.seconds is not None:
        document["seconds"] = _exact(result.seconds)
    for level, tokens in (("tokens", result.tokens), ("phones", result.phones), ("states", result.states)):
        if tokens or level == "tokens":
            document[level] = [_token(token) for token in tokens]
    return document


def _token(token: TimedToken) -> dict[str, Json]:
    fields: dict[str, Json] = {"name": token.name, "start": _exact(token.start), "end": _exact(token.end)}
    return fields if token.confidence is None else {**fields, "confidence": round(float(token.confidence), 6)}


def _exact(seconds: float) -> float:
    """Return a time as a whole number of 100 ns, so that 0.1 is not written as 0.10000000000000002."""
    return units_of(seconds) / UNITS_PER_SECOND


def read_json(path: str | Path) -> list[Recognised]:
    """Read recognition results from a JSON file.

    Parameters
    ----------
    path : str or Path
        The file, with the contents that `write_json` writes. A CorpusError names the line, or the place such as
        `utterances[3].tokens[0].start`, of what is wrong; keys that are unknown or doubled are refused, too.

    Returns
    -------
    list of Recognised
        The results in the order of the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_json(f"{folder}/a.json", [Recognised("u1", (TimedToken("yes", 0.1, 0.5),))])
    ...     read_json(f"{folder}/a.json")[0].tokens[0].name
    'yes'
    """
    document = _parsed(path, read_text(path, "recognition results as JSON"))
    reader = _Reader(path)
    top = reader.object(document, "the document", ("format", "version", "utterances"), required=3)
    if top["format"] != JSON_FORMAT or type(top["version"]) is not int or top["version"] != JSON_VERSION:
        what = f"format {str(top['format'])[:40]!r}, version {str(top['version'])[:20]!r}"
        raise reader.problem("the document", f"is of {what}; expected {JSON_FORMAT!r}, version {JSON_VERSION}")
    rows = reader.list(top["utterances"], "utterances")
    results = [reader.result(row, f"utterances[{k}]") for k, row in enumerate(rows)]
    seen: set[tuple[str, int]] = set()
    for k, result in enumerate(results):
        if (result.utterance, result.channel) in seen:
            raise reader.problem(f"utterances[{k}]", f"{result.utterance!r} occurs twice; keep one of the two")
        seen.add((result.utterance, result.channel))
    return results


def _parsed(path: str | Path, text: str) -> Json:
    def constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is no number of JSON")

    def pairs(items: list[tuple[str, Json]]) -> dict[str, Json]:
        members = dict(items)
        if len(members) != len(items):
            raise ValueError(f"a key occurs twice in an object: {', '.join(str(key)[:20] for key, _ in items)}")
        return members

    try:
        parsed: Json = json.loads(text, parse_constant=constant, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise line_problem(path, error.lineno, f"is no JSON ({error.msg}, column {error.colno})") from error
    except RecursionError as error:
        raise CorpusError.one(path, "line 1: the document is nested too deep to be recognition results") from error
    except ValueError as error:
        raise CorpusError.one(path, f"line 1: the document cannot be read as JSON: {str(error)[:120]}") from error
    return parsed


class _Reader:
    """Checks one document, and names the file and the place in it in every error."""

    def __init__(self, path: str | Path) -> None:
        self.path = path

    def result(self, item: Json, place: str) -> Recognised:
        row = self.object(item, place, _RESULT_KEYS, required=0)
        for key in ("utterance", "tokens"):
            if key not in row:
                raise self.problem(place, f"lacks {key!r}")
        channel, seconds = row.get("channel", 1), row.get("seconds")
        if type(channel) is not int:
            raise self.problem(f"{place}.channel", f"is {str(channel)[:40]!r}; expected a whole number")
        optional = {key: [] if row.get(key) is None else row[key] for key in ("phones", "states")}
        lists = {"tokens": row["tokens"], **optional}
        levels = {key: self.tokens(value, f"{place}.{key}") for key, value in lists.items()}
        name = row["utterance"]
        try:
            return Recognised(
                name if isinstance(name, str) else "",
                levels["tokens"],
                levels["phones"],
                channel,
                levels["states"],
                None if seconds is None else self.number(seconds, f"{place}.seconds"),
            )
        except ValueError as error:
            raise self.problem(place, str(error)) from error

    def tokens(self, value: Json, place: str) -> tuple[TimedToken, ...]:
        tokens: list[TimedToken] = []
        for k, row in enumerate(self.list(value, place)):
            where = f"{place}[{k}]"
            fields = self.object(row, where, _TOKEN_KEYS, required=3)
            name, confidence = fields["name"], fields.get("confidence")
            token = TimedToken(
                name if isinstance(name, str) else "",
                self.number(fields["start"], f"{where}.start"),
                self.number(fields["end"], f"{where}.end"),
                None if confidence is None else self.number(confidence, f"{where}.confidence"),
            )
            what = token_problem(tokens[-1] if tokens else None, token)
            if what:
                raise self.problem(where, what)
            tokens.append(token)
        return tuple(tokens)

    def object(self, value: Json, place: str, keys: tuple[str, ...], *, required: int) -> dict[str, Json]:
        """Return an object that has the first `required` of the keys and no others than these."""
        if not isinstance(value, dict):
            raise self.problem(place, f"is {str(value)[:40]!r}; expected an object with {', '.join(keys)}")
        unknown = [key for key in value if key not in keys]
        missing = [key for key in keys[:required] if key not in value]
        if unknown or missing:
            what = f"has the unknown key {unknown[0][:40]!r}" if unknown else f"lacks {missing[0]!r}"
            raise self.problem(place, f"{what}; expected {', '.join(keys)}")
        return value

    def list(self, value: Json, place: str) -> list[Json]:
        if not isinstance(value, list):
            raise self.problem(place, f"is {str(value)[:40]!r}; expected a list")
        return value

    def number(self, value: Json, place: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e300:
            raise self.problem(place, f"is {str(value)[:40]!r}; expected a number")
        return float(value)

    def problem(self, place: str, what: str) -> CorpusError:
        return CorpusError.one(self.path, f"{place}: {what}")
