"""Phone lists, names of states, and espeak-ng's phones."""

from __future__ import annotations

from echolearn.speech import ENGLISH, TIMIT_61
from echolearn.speech._phone_set import fold_espeak, phones_of_states, split_state, state_names


def test_names_of_states_are_written_and_split() -> None:
    assert state_names(["aa", "b"]) == ("aa_s2", "aa_s3", "aa_s4", "b_s2", "b_s3", "b_s4")
    assert [split_state(n) for n in ("aa[2]", "ax-h_s4", "aa_s3_1", "sil")] == [
        ("aa", 0),
        ("ax-h", 2),
        ("aa", 1),
        ("sil", None),
    ]
    assert len(set(TIMIT_61)) == 61


def test_phones_of_states_come_back_once_in_their_order() -> None:
    assert phones_of_states(state_names(TIMIT_61)) == TIMIT_61
    assert phones_of_states(state_names(ENGLISH)) == ENGLISH
    assert phones_of_states(["b[4]", "aa_s2", "b_s2", "sil"]) == ("b", "aa", "sil")


def test_espeak_phones_fold_to_the_list() -> None:
    assert [fold_espeak(n) for n in ("'aU", ",3:", "tS", "_:", ";", "", "'", "weird")] == [
        "aw",
        "er",
        "ch",
        "sil",
        "",
        "",
        "",
        None,
    ]
