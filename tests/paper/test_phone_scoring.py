"""Tests of phones from the probabilities of a network: what is found by name, and what each part is used for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from echolearn.paper import cells, phone_scoring, table1
from echolearn.paper.cells import CellStore
from echolearn.paper.phone_scoring import (
    PhoneScoring,
    default_level,
    frame_errors,
    level_errors,
    part_probabilities,
    recognise,
    state_probabilities,
)
from echolearn.paper.table1 import Plan
from echolearn.paper.table1_report import LEVELS, markdown, plain_text
from echolearn.speech import Corpus
from echolearn.speech._phone_set import state_names
from echolearn.speech.recognition._decoder import DecodingWeights
from echolearn.speech.recognition._phone_models import phone_segments
from echolearn.speech.recognition._search import Token
from echolearn.speech.recognition._segments import learn_segments


class Network:
    """Answers every frame with the same probabilities, of classes in an order of their own."""

    def __init__(self, **probabilities: float):
        self.classes_ = np.array(list(probabilities))
        self.answer = np.array(list(probabilities.values()))

    def predict_proba(self, X: list[np.ndarray]) -> list[np.ndarray]:
        return [np.tile(self.answer, (len(x), 1)) for x in X]


def with_labels(corpus: Corpus, part: str, change: Any) -> Corpus:
    """Return the corpus with other labels in one part."""
    changed = [change(y) if own == part else y for y, own in zip(corpus.labels, corpus.split, strict=True)]
    return replace(corpus, labels=changed)


def test_columns_are_found_by_name() -> None:
    """The network has its classes in another order, and lacks the state c."""
    network: Any = Network(d=0.2, b=0.3, a=0.5)
    (P,) = state_probabilities(network, [np.zeros((2, 1))], ["a", "b", "c", "d"])
    np.testing.assert_allclose(P, [[0.5, 0.3, 0.0, 0.2]] * 2, rtol=1e-6)


def test_a_network_of_another_corpus_is_refused() -> None:
    network: Any = Network(x=1.0)
    with pytest.raises(ValueError, match="state x is not one of the corpus"):
        state_probabilities(network, [np.zeros((2, 1))], ["a"])


def test_states_that_are_not_sorted_are_decoded_as_they_are_named(corpus: Corpus) -> None:
    """With the states of the corpus renumbered, the same network recognises the same phones."""
    order = np.random.default_rng(0).permutation(len(corpus.state_names))
    place = np.argsort(order)
    names = tuple(corpus.state_names[k] for k in order)
    other = replace(corpus, state_names=names, labels=[place[y].astype(np.int16) for y in corpus.labels])
    answers = np.random.default_rng(1).dirichlet(np.ones(len(names)), 40)

    class Fixed(Network):
        def predict_proba(self, X: list[np.ndarray]) -> list[np.ndarray]:
            return [answers for _ in X]

    network: Any = Fixed(**dict.fromkeys(sorted(names), 0.0))
    found = []
    for one in (corpus, other):
        (P,) = state_probabilities(network, [np.zeros((40, 1))], one.state_names)
        found.append([token.name for token in PhoneScoring.of(one).decoder.decode(P)])
    assert found[0] == found[1]
    assert len(set(found[0])) > 1


def test_priors_durations_and_n_gram_come_from_train_alone(corpus: Corpus) -> None:
    own = PhoneScoring.of(corpus).decoder
    for part, same in (("valid", True), ("test", True), ("train", False)):
        other = PhoneScoring.of(with_labels(corpus, part, lambda y: np.roll(y, 7) % 4)).decoder
        equal = [
            np.array_equal(own.priors, other.priors),
            np.array_equal(own.graph.duration, other.graph.duration),
            np.array_equal(own.graph.language, other.graph.language),
        ]
        assert equal == [same] * 3, part


def test_weights_are_tuned_on_valid(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    task = PhoneScoring.of(corpus)
    seen: list[set[str]] = []
    errors = iter([0.3, 0.2, 0.3, 0.3])

    def recorded(decoder: Any, references: Any, probabilities: Any, **_: Any) -> Any:
        seen.append(set(references) | set(probabilities))
        assert references == task.spoken["valid"]
        return decoder, next(errors)

    monkeypatch.setattr(phone_scoring, "tune_phones", recorded)
    uniform = {name: np.full((30, 9), 1 / 9, np.float32) for name in task.spoken["valid"]}
    assert task.tuned(uniform)[1] == 3, "the trigram had the smaller error"
    assert task.tuned(uniform)[1] == 2, "of equal errors that of the bigram"
    assert seen == 4 * [{corpus.utterances[k] for k in corpus.which("valid")}]


def test_a_trigram_begins_with_the_weights_of_the_bigram(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    task = PhoneScoring.of(corpus)
    begun: list[DecodingWeights] = []

    def recorded(decoder: Any, *_: Any, choices: Any, **__: Any) -> Any:
        begun.append(decoder.weights)
        assert set(choices) >= {"language_weight", "penalty"}
        return replace(decoder, weights=DecodingWeights(prior_exponent=0.123)), 0.1

    monkeypatch.setattr(phone_scoring, "tune_phones", recorded)
    task.tuned({})
    assert begun == [task.decoder.weights, DecodingWeights(prior_exponent=0.123)]
    assert PhoneScoring.of(corpus, order=3).tuned({})[1] == 3
    assert len(begun) == 3


def test_silences_do_not_count_unless_they_are_wanted(corpus: Corpus) -> None:
    task = PhoneScoring.of(corpus)
    spoken = {name: [Token(p, k, k + 1) for k, p in enumerate(phones)] for name, phones in task.spoken["test"].items()}
    quiet = {name: [t for t in tokens if t.name != "sil"] for name, tokens in spoken.items()}
    silences = sum(phones.count("sil") for phones in task.spoken["test"].values())
    everything = sum(map(len, task.spoken["test"].values()))
    assert task.evaluate("test", quiet).total.errors == 0
    assert task.evaluate("test", quiet).total.reference == everything - silences
    assert task.evaluate_with_silence("test", spoken).total.errors == 0
    assert task.evaluate_with_silence("test", quiet).total.deletions == silences > 0


def test_phones_are_folded_for_timit_and_where_it_is_asked(corpus: Corpus) -> None:
    assert default_level("timit:/x") == "phone39"
    assert default_level("synthetic") == "corpus"
    names = state_names(["ix", "zh", "sil"])
    other = replace(corpus, state_names=names)
    assert PhoneScoring.of(other).classes == ("ix", "zh", "sil")
    assert PhoneScoring.of(other, "phone39").classes == ("ih", "sh", "sil")
    assert PhoneScoring.of(replace(other, name="timit:/x")).classes == ("ih", "sh", "sil")
    task = PhoneScoring.of(other, "phone39")
    name, phones = next(iter(task.spoken["test"].items()))
    assert "ix" in phones  # what is decoded is not folded, only what is scored
    heard = {n: [Token("ih" if p == "ix" else p, 0, 1) for p in ps] for n, ps in task.spoken["test"].items()}
    with pytest.raises(ValueError, match="does not name 'ih'"):
        task.evaluate("test", heard)
    assert task.phone_class("ix") == "ih"
    assert name


def test_frame_errors_by_hand(corpus: Corpus) -> None:
    """Two utterances of three phones: wrong states of the right phone, wrong phones, and a phone that is left out."""
    names = state_names(["ih", "ix", "q"])
    labels = [np.array([0, 1, 3, 6], np.int16), np.array([0, 4, 4, 4], np.int16)]
    small = replace(corpus, state_names=names, labels=labels, split=("test",) * 2, utterances=("a", "b"))
    found = {"a": [0, 2, 0, 0], "b": [6, 4, 1, 5]}
    P = {name: np.eye(9, dtype=np.float32)[states] for name, states in found.items()}
    assert frame_errors(small, "test", P, None) == (6 / 8, 4 / 8)
    folding = {"ih": "ih", "ix": "ih", "q": None}
    assert frame_errors(small, "test", P, folding) == (6 / 8, 1 / 7)


PLAN = Plan(units=(8,), columns=("esn", "esn_ours"))


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table1, "draw_figures", lambda *_: [])


@pytest.fixture(scope="module")
def tables(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the tables of all levels from one folder, in which networks are fitted at the first alone."""
    out = tmp_path_factory.mktemp("out")
    found: dict[str, Any] = {"out": out}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table1, "draw_figures", lambda *_: [])
        for level in LEVELS:
            found[level] = table1.run(corpus, replace(PLAN, level=level), out, Silent())
            patch.setattr(cells, "measured_fit", lambda *_, **__: pytest.fail("a kept network was fitted again"))
    return found


class Silent:
    """Progress that nobody looks at."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def errors(table: Any, column: str = "esn_ours") -> tuple[float, float]:
    entry = table["rows"][0]["columns"][column]
    return entry["valid_error"], entry["test_error"]


def test_every_level_has_its_own_errors_and_says_so(tables: dict[str, Any]) -> None:
    for level in LEVELS:
        assert tables[level]["level"] == tables[level]["settings"]["level"] == level
        assert LEVELS[level].title in markdown(tables[level])
    assert LEVELS["recognition"].title in plain_text(tables["recognition"])
    assert "errors of states" in plain_text(tables["recognition"])
    assert "errors of states" not in plain_text(tables["state"])
    assert len({errors(tables[level]) for level in ("state", "phone39", "segment", "recognition")}) == 4
    # the three phones of this corpus are the same in 48 and 39 classes
    assert errors(tables["phone48"]) == errors(tables["phone39"])
    assert errors(tables["phone39"])[1] < errors(tables["state"])[1]


def test_errors_at_a_level_by_hand(corpus: Corpus, tables: dict[str, Any]) -> None:
    model = CellStore(tables["out"] / "cells", print).load_model("esn_ours-8-0")
    X, labels = corpus.part("test")
    found = np.concatenate(model.predict(list(X)))
    names = np.array(corpus.state_names)[np.concatenate(labels)]
    wrong = np.mean([a.split("_")[0] != b.split("_")[0] for a, b in zip(found, names, strict=True)])
    assert errors(tables["phone39"])[1] == pytest.approx(wrong, abs=1e-6)


def test_segments_are_scored_by_what_train_says_of_them(corpus: Corpus, tables: dict[str, Any]) -> None:
    model = CellStore(tables["out"] / "cells", print).load_model("esn_ours-8-0")
    decoder = learn_segments(corpus.part("train")[1], corpus.state_names)
    labels, P = corpus.part("test")[1], list(part_probabilities(model, corpus, "test").values())
    wrong = total = 0
    for y, one in zip(labels, P, strict=True):
        spoken = [(phone, a, b) for phone, a, b in phone_segments(y, corpus.state_names) if phone != "sil"]
        heard = decoder.classify(one, [(a, b) for _, a, b in spoken])
        wrong += sum(phone != other for (phone, _, _), other in zip(spoken, heard, strict=True))
        total += len(spoken)
    assert errors(tables["segment"])[1] == pytest.approx(wrong / total, abs=1e-6)


def test_recognition_is_tuned_on_valid(corpus: Corpus, tables: dict[str, Any]) -> None:
    model = CellStore(tables["out"] / "cells", print).load_model("esn_ours-8-0")
    task, calls = PhoneScoring.of(corpus), []

    class Watched(PhoneScoring):
        def tuned(self, probabilities: Any, progress: Any = None) -> Any:
            calls.append(set(probabilities))
            return task.decoder, 2

    watched = Watched(**{f: getattr(task, f) for f in PhoneScoring.__dataclass_fields__})
    valid, test = level_errors(model, corpus, "recognition", watched)
    assert calls == [{corpus.utterances[k] for k in corpus.which("valid")}]
    again = task.evaluate("test", recognise(task.decoder, part_probabilities(model, corpus, "test"))).total.error_rate
    assert test == again
    assert valid >= errors(tables["recognition"])[0] - 1e-6  # tuned weights are no worse on valid; tables are rounded


def test_scores_are_kept_and_belong_to_their_network(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(PLAN, columns=("esn",), level="phone39")
    first = table1.run(corpus, plan, tmp_path, Silent())
    path = tmp_path / "cells" / "esn-8-0.phone39.json"
    assert json.loads(path.read_text())["score"]["test_error"] == pytest.approx(errors(first, "esn")[1], abs=1e-6)
    with monkeypatch.context() as patch:
        patch.setattr("echolearn.paper.table1.level_errors", lambda *_: pytest.fail("scored again"))
        assert table1.run(corpus, plan, tmp_path, Silent()) == first
    other = table1.run(corpus, replace(plan, paper={"ridge": 10.0}), tmp_path, Silent())
    assert errors(other, "esn") != errors(first, "esn")
    table1.run(corpus, plan, tmp_path, Silent(), force=True)
    assert path.exists()


def test_an_unknown_level_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected one of state, phone48"):
        table1.run(corpus, replace(PLAN, level="words"), tmp_path / "out", Silent())
    assert not (tmp_path / "out").exists()
