"""One error carries all the problems of a corpus, and lines are counted as editors count them."""

from __future__ import annotations

from pathlib import Path

import pytest

from echolearn.exceptions import CorpusError, Problem
from echolearn.speech import read_phn
from echolearn.speech._text import raise_any


def test_message_shows_thirty_problems_and_the_error_holds_all() -> None:
    error = CorpusError(Problem(f"{k}.wav", "bad") for k in range(50))
    assert len(error.problems) == 50
    assert "29.wav" in str(error)
    assert "30.wav" not in str(error)
    assert "20 more" in str(error)


def test_error_of_one_problem() -> None:
    assert str(CorpusError.one("a.wav", "bad")) == "a.wav: bad"


def test_error_is_raised_only_if_there_is_a_problem() -> None:
    raise_any([])
    with pytest.raises(CorpusError, match="2 problems"):
        raise_any([Problem("a.wav", "bad"), Problem("b.wav", "bad")])


def test_lines_are_counted_as_editors_do(tmp_path: Path) -> None:
    (tmp_path / "a.phn").write_bytes(b"0 1 a\r\n1 2 b\r2 3 c\n\n3 2 d\n")
    with pytest.raises(CorpusError, match="line 5 is '3 2 d'"):
        read_phn(tmp_path / "a.phn")
    (tmp_path / "a.phn").write_bytes(b"0 1 a\n1 2 b\x85\n")
    with pytest.raises(CorpusError, match="line 2: is not text"):
        read_phn(tmp_path / "a.phn")
