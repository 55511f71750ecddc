"""Tests of the table of phone errors as text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from echolearn.reporting import phone_table
from samplephones import table


def test_markdown_has_the_errors_of_every_system_with_intervals() -> None:
    text = phone_table.markdown(table())
    assert "| fixed | 100 | 30.0 | 25.0 to 35.0 | 20.0 | 6.0 | 4.0 | 29.0 | 45.0 | 0:12 |" in text
    assert "| learned | 100 | 24.0 | – |" in text
    assert "learned: 20.0 % below fixed (matched pairs: p = 0.012)" in text
    assert "Not all systems" not in text
    assert "Not all systems" in phone_table.markdown(table(complete=False))


def test_the_headline_says_what_learning_gains_or_loses() -> None:
    assert "from 30.0 % to 24.0 %, 20.0 % relative below" in phone_table.headline(table())
    worse = table()
    worse["rows"][1]["test"]["phone_error"] = 0.33
    assert "10.0 % relative above" in phone_table.headline(worse)
    alone = table(rows=table()["rows"][1:])
    assert phone_table.headline(alone) == "The smallest phone error is that of the system learned: 24.0 %."
    assert phone_table.headline(table(rows=[])) == ""


def test_a_table_without_rows_is_text_too() -> None:
    empty = table(rows=[], comparisons=[], complete=False)
    assert "Not all systems" in phone_table.markdown(empty)
    assert phone_table.plain_text(empty)


def test_what_json_cannot_say_is_not_written(tmp_path: Path) -> None:
    phone_table.write_phone_table(tmp_path, table())
    assert json.loads((tmp_path / "phones.json").read_text()) == table()
    broken = table()
    broken["rows"][0]["test"]["phone_error"] = float("nan")
    with pytest.raises(ValueError, match="JSON"):
        phone_table.write_phone_table(tmp_path, broken)
    assert json.loads((tmp_path / "phones.json").read_text()) == table()
