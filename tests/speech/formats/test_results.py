"""Results of recognition: what they may hold."""

from __future__ import annotations

import pytest

from echolearn.speech.formats import (
    Recognised,
    TimedToken,
)
from speechresults import yes


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ((yes(name=""),), "has no name"),
        ((yes(name="yes sir"),), "without blanks"),
        ((yes(name="yes\u200bsir"),), "without blanks"),
        ((yes(start=-0.1),), "is no time"),
        ((yes(end=float("nan")),), "is no time"),
        ((yes(end=1e9),), "is no time"),
        ((yes(end=0.05),), "before it starts"),
        ((yes(confidence=1.5),), "expected 0 to 1"),
        ((yes(confidence=float("nan")),), "expected 0 to 1"),
        ((yes(), yes(start=0.05)), "order of their times"),
        ((yes(), yes(start=0.48, end=0.6)), "lasts until 0.5"),
    ],
)
def test_impossible_results_are_refused(found: tuple[TimedToken, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Recognised("u", found)
    with pytest.raises(ValueError, match=message):
        Recognised("u", (), phones=found)
    with pytest.raises(ValueError, match=message):
        Recognised("u", (), states=found)


def test_other_fields_of_a_result_are_checked() -> None:
    Recognised("u", (yes(), yes(start=0.491, end=0.6)))  # rounded times overlap a little
    for changes in ({"utterance": "a b"}, {"channel": 0}, {"seconds": 0.4}, {"seconds": float("inf")}):
        with pytest.raises(ValueError, match="cannot be a result"):
            Recognised(**{"utterance": "u", "tokens": (yes(),), **changes})
