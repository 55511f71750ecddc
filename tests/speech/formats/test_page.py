"""The page docs/reference/speech_files.md: its examples run one after another and print what a reader expects."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "speech_files.md").read_text(encoding="utf-8")
PRINTED = [
    "grids/ann/u1.TextGrid",
    "ann/u1 1 0.10 0.40 yes 0.93",
    "ann/u1 1 0.50 0.40 sir",
    "TimedToken(name='yes', start=0.1, end=0.5, confidence=0.93)",
    "('yes', 'sir')",
    "['yes', 'sir'] ['y', 'eh']",
    "True",
    "Segment(start=0.5, end=0.9, name='sir')",
    "(3, 13)",
    "(2, 13)",
    "('u1', 'u2') ('yes', 'sir') (3, 13)",
]


def test_the_examples_print_what_a_reader_expects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) > 8
    for example in examples:
        exec(compile(example, "speech_files.md", "exec"), names)
    assert capsys.readouterr().out.splitlines() == PRINTED


def test_the_functions_of_the_table_exist() -> None:
    rows = re.findall(r"^\|.*\|(.*)\|(.*)\| `([\w.]+)` \|$", PAGE, re.M)
    assert len(rows) == 10
    for read, write, module in rows:
        found = importlib.import_module(f"echolearn.{module}")
        for name in re.findall(r"`(\w+)", read + write):
            assert hasattr(found, name), f"{module} has no {name}"
