"""Tests of the check of names."""

import pytest

from echolearn.validation.names import check_name

KNOWN = ["spectral_radius", "leak", "ridge"]


def test_a_known_name_is_accepted() -> None:
    check_name("leak", KNOWN, "space")
    check_name("leak", (name for name in KNOWN), "space")


def test_a_misspelt_name_is_answered_with_the_nearest_known_one() -> None:
    with pytest.raises(ValueError, match=r"^space: there is no setting 'leek'; did you mean leak\?$"):
        check_name("leek", KNOWN, "space")


def test_a_name_unlike_all_known_ones_is_answered_with_their_list() -> None:
    with pytest.raises(ValueError, match=r"there is no setting 'zzz'; known are leak, ridge, spectral_radius\."):
        check_name("zzz", KNOWN, "space")


@pytest.mark.parametrize("name", [None, 3, ("leak",), "x" * 100_000])
def test_anything_else_is_refused_in_a_short_message(name: object) -> None:
    with pytest.raises(ValueError, match="there is no setting") as caught:
        check_name(name, KNOWN, "space")
    assert len(str(caught.value)) < 200
