"""The check of the prose (tools/words.py) reads all of a page, and only its prose."""

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "words.py"


@pytest.fixture
def findings(tmp_path):
    """Return a function that writes a page and returns the lines in which the tool finds something."""
    spec = importlib.util.spec_from_file_location("words", TOOL)
    words = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(words)
    words.ROOT = tmp_path

    def lines(text):
        (tmp_path / "page.md").write_text(text, encoding="utf-8")
        return [int(finding.split(":")[1]) for finding in words.idioms(tmp_path / "page.md")]

    return lines


@pytest.mark.parametrize(
    "before", ["| a table |", "    an indented command", "```\ncode\n```", "<!-- a\ncomment -->", "`code`"]
)
def test_prose_after_other_blocks_is_checked(findings, before):
    assert findings(f"{before}\n\nAll errors were mended.\n") == [before.count("\n") + 3]


@pytest.mark.parametrize(
    "block", ["| mended |", "    mended", "```\nmended\n```", "<!-- mended -->", "`mended`", "[fixed](mended)"]
)
def test_other_blocks_are_not_checked(findings, block):
    assert findings(f"Text.\n\n{block}\n\nText.\n") == []
