"""One error carries all the problems of a corpus."""

from __future__ import annotations

import pytest

from echolearn.exceptions import CorpusError, Problem
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
