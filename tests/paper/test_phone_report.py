"""Tests of the table of phone errors as text."""

from __future__ import annotations

import base64
import io
import json
import re
import wave
from pathlib import Path

import numpy as np
import pytest

from echolearn.paper import phone_report
from echolearn.paper.phone_report import alignment_block, audio_block, phone_page
from echolearn.speech._scoring import MIN_SPEAKERS
from samplephones import table


def test_markdown_has_the_errors_of_every_system_with_intervals() -> None:
    text = phone_report.markdown(table())
    assert "| fixed | 100 | 30.0 | 25.0 to 35.0 | 20.0 | 6.0 | 4.0 | 29.0 | 45.0 | 0:12 |" in text
    assert "| learned | 100 | 24.0 | – |" in text
    assert "learned: 20.0 % below fixed (matched pairs: p = 0.012)" in text
    assert "Not all systems" not in text
    assert "Not all systems" in phone_report.markdown(table(complete=False))


def test_the_text_names_the_classes_and_fits_into_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for level, name in (("phone39", "classes of Lee and Hon"), ("corpus", "phones of the corpus")):
        lines = phone_report.plain_text(table(level=level)).splitlines()
        assert lines[1].startswith(f"Phone error in {table()['phones']} {name}: ")
        tables = [line for line in lines if re.match(r" *(system|fixed|learned)  ", line)]
        assert len(tables) == 6  # two tables of three lines
        assert max(map(len, tables)) <= 80
        assert "cannot be given for fewer than four" in " ".join(lines)
    assert MIN_SPEAKERS == 4


def test_the_headline_says_what_learning_gains_or_loses() -> None:
    assert "from 30.0 % to 24.0 %, 20.0 % relative below" in phone_report.headline(table())
    worse = table()
    worse["rows"][1]["test"]["phone_error"] = 0.33
    assert "10.0 % relative above" in phone_report.headline(worse)
    alone = table(rows=table()["rows"][1:])
    assert phone_report.headline(alone) == "The smallest phone error is that of the system learned: 24.0 %."
    assert phone_report.headline(table(rows=[])) == ""


def test_a_table_without_rows_is_text_too() -> None:
    empty = table(rows=[], comparisons=[], complete=False)
    assert "Not all systems" in phone_report.markdown(empty)
    assert phone_report.plain_text(empty)


def test_what_json_cannot_say_is_not_written(tmp_path: Path) -> None:
    phone_report.write_phone_table(tmp_path, table())
    assert json.loads((tmp_path / "phones.json").read_text()) == table()
    broken = table()
    broken["rows"][0]["test"]["phone_error"] = float("nan")
    with pytest.raises(ValueError, match="JSON"):
        phone_report.write_phone_table(tmp_path, broken)
    assert json.loads((tmp_path / "phones.json").read_text()) == table()


def test_the_page_has_every_system_and_bars_as_long_as_their_errors() -> None:
    page = phone_page(table(), [])
    assert "<b>30.0</b>" in page
    assert "25.0 to 35.0" in page
    assert re.findall(r"--w:([0-9.]+)", page) == ["1.000", "0.800"]
    assert "echolearn[report]" in page  # no figures


def test_the_page_escapes_what_it_is_given() -> None:
    page = phone_page(table(synthetic=False, corpus="wav:<script>x</script>", notes=["<b>"]), [])
    assert "<script>" not in page
    assert "<li>&lt;b&gt;</li>" in page


def test_a_page_of_an_unfinished_table_is_possible() -> None:
    assert "From speech to phones" in phone_page(table(rows=[], comparisons=[]), [])


def test_the_sound_is_the_one_that_was_given() -> None:
    samples = np.array([0.0, 1.4, -32768.0, 40_000.0, -40_000.0])
    block = audio_block(samples)
    encoded = re.findall(r'src="data:audio/wav;base64,([^"]+)"', block)[0]
    with wave.open(io.BytesIO(base64.b64decode(encoded))) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16_000, 1, 2)
        found = np.frombuffer(file.readframes(9), "<i2")
    assert found.tolist() == [0, 1, -32768, 32767, -32768]


def test_aligned_phones_have_a_letter_under_every_error() -> None:
    block = alignment_block([("aa", "aa"), ("b", "<p>"), ("t", None), (None, "s")])
    rows = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in block.split("</tr>")[:3]]
    assert rows == [["aa", "b", "t", "·"], ["aa", "&lt;p&gt;", "·", "s"], ["", "S", "D", "I"]]
    assert block.count("class=e") == 9
