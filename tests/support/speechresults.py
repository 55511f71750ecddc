"""Results of recognition for tests of their formats."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from echolearn.speech.formats import TimedToken

quiet = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


NAMES = st.text(st.characters(blacklist_categories=("Z", "C")), min_size=1, max_size=4)


def tokens(confidences: bool = True) -> st.SearchStrategy[tuple[TimedToken, ...]]:
    """Draw tokens with times in units of 100 ns and gaps between them."""
    sure = st.one_of(st.none(), st.integers(0, 1000).map(lambda k: k / 1000)) if confidences else st.none()
    rows = st.lists(st.tuples(st.integers(0, 3 * 10**7), st.integers(1, 3 * 10**7), NAMES, sure), max_size=6)

    def build(found: list[tuple[int, int, str, float | None]]) -> tuple[TimedToken, ...]:
        made, at = [], 0
        for gap, length, name, confidence in found:
            made.append(TimedToken(name, (at + gap) / 10**7, (at + gap + length) / 10**7, confidence))
            at += gap + length
        return tuple(made)

    return rows.map(build)


def yes(**changes: object) -> TimedToken:
    """Return a token with some of its fields changed."""
    return TimedToken("yes", 0.1, 0.5)._replace(**changes)
