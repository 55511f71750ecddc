"""Results as JSON: read as they were written, and refused with the place if they are damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echolearn.exceptions import CorpusError
from echolearn.speech.formats import (
    Recognised,
    TimedToken,
    read_json,
    write_json,
)
from speechresults import quiet, tokens


@quiet
@given(st.lists(st.tuples(tokens(), tokens(), tokens()), max_size=3))
def test_json_is_read_as_it_was_written(tmp_path: Path, drawn: list[tuple[tuple[TimedToken, ...], ...]]) -> None:
    results = [
        Recognised(f"u/{k}", t, p, k + 1, s, seconds=1000.5 if k % 2 else None) for k, (t, p, s) in enumerate(drawn)
    ]
    write_json(tmp_path / "a.json", results)
    assert read_json(tmp_path / "a.json") == results


JSON_HEAD = '{"format": "echolearn-recognition", "version": 1, "utterances": ['


ONE = '{"utterance": "u", "tokens": [{"name": "a", "start": 0, "end": 1}]}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (JSON_HEAD + ONE, "line 1: is no JSON"),
        (JSON_HEAD + "\n" + ONE + "\n]", "line 3: is no JSON"),
        ("[]", "the document: is '\\[\\]'; expected an object"),
        (JSON_HEAD.replace("1", "2") + "]}", "version '2'"),
        (JSON_HEAD.replace("1", "true") + "]}", "version 'True'"),
        (JSON_HEAD.replace('"version": 1, ', "") + "]}", "lacks 'version'"),
        (JSON_HEAD + ONE + "," + ONE + "]}", r"utterances\[1\]: 'u' occurs twice"),
        (JSON_HEAD + ONE.replace("name", "nam") + "]}", r"utterances\[0\].tokens\[0\]: has the unknown key 'nam'"),
        (JSON_HEAD + ONE.replace('"a"', "7") + "]}", r"tokens\[0\]: a token has no name"),
        (JSON_HEAD + ONE.replace('"a"', '"\\ud800"') + "]}", r"without blanks and control characters"),
        (JSON_HEAD + ONE.replace("1", "NaN") + "]}", "NaN is no number"),
        (JSON_HEAD + ONE.replace("1", "1e999") + "]}", r"end: is 'inf'; expected a number"),
        (JSON_HEAD + ONE.replace("1", "9" * 5000) + "]}", "cannot be read as JSON"),
        (JSON_HEAD + ONE.replace("1", "true") + "]}", r"tokens\[0\].end: is 'True'"),
        (JSON_HEAD + ONE.replace("1", "[1]") + "]}", "expected a number"),
        (JSON_HEAD + ONE.replace('"start": 0', '"start": 0, "start": 0') + "]}", "a key occurs twice"),
        (JSON_HEAD + ONE.replace('"tokens"', '"channel": 1.0, "tokens"') + "]}", "channel: is '1.0'"),
        (JSON_HEAD + ONE.replace('"tokens"', '"seconds": 0.5, "tokens"') + "]}", "after its 0.5 seconds"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_damaged_json_is_refused_with_the_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match=message):
        read_json(path)
