"""Tests of the figures of the report on phones: which utterances and systems are shown, and what is counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from echolearn.paper import phone_figures
from echolearn.paper.phone_figures import ReportedSystem, best_system, confusion_table, shown_utterances
from echolearn.paper.phone_scoring import PhoneScoring
from echolearn.speech import Corpus, Evaluation
from echolearn.speech._features import FrameList
from echolearn.speech._phone_set import state_names
from echolearn.speech._scoring import Pair
from echolearn.speech.recognition._search import Token

PHONES = ("aa", "b", "sil")


@pytest.fixture
def spoken(corpus: Corpus) -> Corpus:
    """Return a corpus of four test utterances of 400, 100, 2,500 and 200 frames."""
    lengths = [400, 100, 2_500, 200]
    return replace(
        corpus,
        features=FrameList.of_lengths(np.zeros((sum(lengths), 5), np.float32), lengths, context=1),
        labels=[np.zeros(n, np.int16) for n in lengths],
        split=("test",) * 4,
        utterances=("a", "b", "c", "d"),
        speakers=("s", "s", "t", "t"),
        audio=("",) * 4,
        state_names=state_names(PHONES),
    )


def evaluation(**pairs: list[Pair]) -> Evaluation:
    return Evaluation(pairs, dict.fromkeys(pairs, "s"))


RIGHT, WRONG = ("aa", "aa"), ("aa", "b")


def test_the_shortest_the_median_and_the_worst_utterance_are_shown(spoken: Corpus) -> None:
    found = evaluation(a=[RIGHT] * 5 + [WRONG], b=[WRONG], c=[WRONG] * 9, d=[RIGHT] * 6)
    # c is too long to show, b has too few phones to be the worst
    assert shown_utterances(spoken, found) == {"shortest": 1, "of median length": 3, "worst": 0}


def test_an_utterance_is_shown_once(spoken: Corpus) -> None:
    found = evaluation(a=[RIGHT] * 6, b=[WRONG] * 6, c=[RIGHT], d=[RIGHT])
    assert shown_utterances(spoken, found) == {"shortest and worst": 1, "of median length": 3}


def test_where_all_are_long_or_short_of_phones_some_are_shown(spoken: Corpus) -> None:
    long = replace(spoken, labels=[np.zeros(3_000 + k, np.int16) for k in range(4)])
    found = evaluation(a=[RIGHT], b=[RIGHT], c=[WRONG], d=[RIGHT])
    assert shown_utterances(long, found) == {"shortest": 0, "of median length and worst": 2}


def test_confusions_have_rows_for_insertions_and_columns_for_deletions() -> None:
    pairs: list[Pair] = [("aa", "aa"), ("aa", "b"), ("aa", None), (None, "b"), ("aa", "aa")]
    counts, rows, columns = confusion_table(evaluation(u=pairs), ["b", "aa", "zh", "sil"])
    assert rows == ["aa", "(inserted)"]
    assert columns == ["b", "aa", "(deleted)"]
    assert counts.tolist() == [[1, 2, 1], [1, 0, 0]]


def reported(name: str, valid: float, test: float) -> ReportedSystem:
    row: Any = {"system": name, "valid": {"phone_error": valid}, "test": {"phone_error": test}}
    return ReportedSystem(row, evaluation(), [], {}, lambda: None)  # type: ignore[arg-type, return-value]


def test_the_best_system_is_the_best_on_valid() -> None:
    systems = [reported("fixed", 0.3, 0.1), reported("learned", 0.2, 0.4)]
    assert best_system(systems).name == "learned"


def test_phones_of_both_sides_are_marked_by_the_alignment(spoken: Corpus) -> None:
    """Spoken sil aa b, recognised aa aa sil: one right, one substituted; with q left out and closures as silences."""
    names = state_names(("aa", "q", "dcl", "b"))
    labels = np.repeat([6, 0, 3, 9], 10).astype(np.int16)
    one = replace(spoken, labels=[labels], split=("test",), utterances=("a",), speakers=("s",), state_names=names)
    task = PhoneScoring.of(one, "phone39")
    heard = [("aa", 0, 12), ("q", 12, 14), ("aa", 14, 30), ("dcl", 30, 40)]
    found = task.evaluate("test", {"a": [Token(*token) for token in heard]})
    assert found.alignments["a"] == [("aa", "aa"), ("b", "aa")]

    class Network:
        classes_ = np.array(names)

        def predict_proba(self, X: list[np.ndarray]) -> list[np.ndarray]:
            return [np.eye(len(names))[labels]]

    model: Any = Network()
    system = ReportedSystem({}, found, [], {"a": heard}, lambda: model)  # type: ignore[typeddict-item]
    shown = phone_figures.decoded(one, 0, task, system, model=model, samples=None)
    assert [(s.name, s.start, s.kind) for s in shown.spoken] == [
        ("sil", 0, "silence"),
        ("aa", 10, "right"),
        ("b", 30, "substitution"),
    ]
    assert [(s.name, s.start, s.kind) for s in shown.recognised] == [
        ("aa", 0, "right"),
        ("aa", 14, "substitution"),
        ("sil", 30, "silence"),
    ]
    assert shown.names == ["b", "aa", "sil"]
    assert shown.posteriors[35].tolist() == [1, 0, 0]
    assert shown.posteriors[25].tolist() == [0, 0, 0]  # a frame of q, which is left out


def test_deletions_and_insertions_aremarked_phones(spoken: Corpus) -> None:
    task = PhoneScoring.of(spoken)
    pairs: list[Pair] = [("aa", None), ("b", "b"), (None, "aa")]
    ours = phone_figures.marked_phones([("aa", 0, 1), ("b", 1, 2)], pairs, task, 0)
    theirs = phone_figures.marked_phones([("b", 0, 1), ("aa", 1, 2)], pairs, task, 1)
    assert [s.kind for s in ours] == ["deletion", "right"]
    assert [s.kind for s in theirs] == ["right", "insertion"]
