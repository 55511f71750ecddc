"""Tests of the plan of `echolearn phones`."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from echolearn import DeepESNClassifier, ESNClassifier, load
from echolearn.paper import phones
from echolearn.paper.cells import Cell
from echolearn.paper.estimate import CorpusSize, cost_of_cell
from echolearn.paper.fits import planned_epochs
from echolearn.paper.phone_scoring import DECODER_TRIALS, PhoneScoring, part_probabilities, recognise
from echolearn.paper.phones import SYSTEMS, PhonePlan, decoding_seconds, estimate_text
from echolearn.speech import Corpus, open_corpus
from echolearn.speech._scoring import Evaluation, evaluate
from echolearn.speech.recognition import learn_recognizer
from echolearn.speech.recognition._decoder import DecodingWeights
from echolearn.speech.recognition._tuning import tune
from echolearn.training.cost_model import TYPICAL_RATES
from recordedprogress import RecordedProgress
from smallcorpus import arrays, write
from speechfiles import open_timit, write_timit


def test_systems_differ_in_what_they_are_called_by_alone() -> None:
    plan = PhonePlan(units=21, seed=3, changes={"epochs": 2})
    fixed, learned, both, deep = map(plan.estimator, plan.cells())
    own = learned.get_params(deep=False)
    assert own == ESNClassifier(21, random_state=3, epochs=2).get_params(deep=False)
    assert fixed.get_params(deep=False) == {**own, "learn": "none"}
    assert both.get_params(deep=False) == {**own, "bidirectional": True}
    assert isinstance(deep, DeepESNClassifier)
    assert deep.get_params(deep=False) == DeepESNClassifier(random_state=3, epochs=2).get_params(deep=False)


def test_epochs_are_those_of_all_systems() -> None:
    plan = PhonePlan(units=20, changes={"epochs": 4})
    assert [planned_epochs(plan.estimator(cell), 100) for cell in plan.cells()] == [0, 4, 4, 4]
    many, few = (planned_epochs(PhonePlan().estimator(PhonePlan().cells()[-1]), n) for n in (1000, 100))
    assert few > many > 4  # as many as make the same number of updates


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"systems": ("fixd",)}, "expected some of fixed"),
        ({"systems": ()}, "none"),
        ({"systems": ("fixed", "fixed")}, "each once"),
        ({"level": "phone40"}, "phone39"),
        ({"order": 0}, "1 to 5"),
        ({"units": 1}, "at least 2"),
        ({"changes": {"learn": "none"}}, "what the systems differ by"),
        ({"changes": {"bidirectional": True}}, "what the systems differ by"),
        ({"deep": {"units": 7}}, "even whole number"),
        ({"deep": {"layers": 0}}, "layers=0"),
        ({"changes": {"ridge": -1.0}}, "ridge"),
        ({"changes": {"feedback": True}}, "feedback"),
    ],
)
def test_an_impossible_plan_is_refused(changes: dict[str, Any], word: str) -> None:
    PhonePlan().check()
    with pytest.raises(ValueError, match=word):
        PhonePlan(**changes).check()


def test_the_estimate_has_every_system_and_their_sum() -> None:
    plan, size = PhonePlan(units=300), CorpusSize.of_synthetic(60_000)
    costs = {cell.column: cost_of_cell(plan.estimator(cell), size, TYPICAL_RATES).seconds for cell in plan.cells()}
    assert 0 < costs["fixed"] < costs["learned"]
    assert costs["deep"] > 0
    text = estimate_text(plan, size, TYPICAL_RATES)
    assert [line.split()[0] for line in text.splitlines()[2:6]] == list(SYSTEMS)
    minutes, seconds = map(int, re.findall(r"about (\d+):(\d+)", text)[0])
    assert 60 * minutes + seconds == pytest.approx(sum(costs.values()) + 4 * decoding_seconds(size, None), abs=2)


def test_the_time_of_decoding_is_that_of_the_trials_on_valid_and_of_one_pass_over_test() -> None:
    size = CorpusSize.of_synthetic(60_000)
    more_valid = CorpusSize(size.data, {**size.frames, "valid": size.frames["valid"] + 25_000})
    more_test = CorpusSize(size.data, {**size.frames, "test": size.frames["test"] + 25_000})
    trials = decoding_seconds(more_valid, 2) - decoding_seconds(size, 2)
    assert trials == pytest.approx(DECODER_TRIALS * (decoding_seconds(more_test, 2) - decoding_seconds(size, 2)))
    assert decoding_seconds(size, 3) == pytest.approx(3 * decoding_seconds(size, 2))
    assert decoding_seconds(size, 2) < decoding_seconds(size, None)


@pytest.mark.parametrize("gain", [0, 1])
def test_a_tuning_takes_at_most_as_many_trials_as_are_planned(corpus: Corpus, gain: int) -> None:
    """Whether nothing is better than the first weights, or everything that is tried later."""
    tried: list[Evaluation] = []
    spoken = {str(utterance): ["a"] * 100 for utterance in range(9)}

    def evaluated(found: object) -> Evaluation:
        tried.append(evaluate(spoken, {name: ["a"] * gain * len(tried) for name in spoken}))
        return tried[-1]

    tune(PhoneScoring.of(corpus).decoder, evaluated, {})
    trials = len(tried) - 1  # the last call decodes nothing: it counts what was spoken
    assert DECODER_TRIALS / 3 < trials <= DECODER_TRIALS


SMALL = PhonePlan(
    units=16, changes={"epochs": 2, "learning": {"refine_epochs": 1}}, deep={"units": 8, "layers": 2, "epochs": 8}
)
RATES = ("phone_error", "substitutions", "deletions", "insertions")
Run = tuple[Path, dict[str, Any]]


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Return the small corpus with two speakers in its test part."""
    names = np.array([f"s{k % 6}{k % 4}" for k in range(24)])
    return open_corpus(f"features:{write(tmp_path_factory.mktemp('corpus') / 'small.npz', speakers=names)}")


@pytest.fixture(scope="module")
def finished(spoken: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("out")
    return out, phones.run(spoken, SMALL, out, RecordedProgress())


def test_a_recogniser_gives_the_states_of_the_network_of_a_system(finished: Run, spoken: Corpus) -> None:
    """A recogniser computes the same states as `phones` does with the same network, for every system."""
    out, _ = finished
    for cell in SMALL.cells():
        network = load(out / "systems" / f"{cell.name}.safetensors")
        recognizer = learn_recognizer(network, spoken)
        for part in ("valid", "test"):
            of_phones = part_probabilities(network, spoken, part)
            X = [spoken.features[k] for k in spoken.which(part)]
            for P, Q in zip(of_phones.values(), recognizer.probabilities(X), strict=True):
                names, states = np.array(spoken.state_names), np.array(recognizer.phones.states)
                assert names[P.argmax(axis=1)].tolist() == states[Q.argmax(axis=1)].tolist()
                np.testing.assert_allclose(P[:, [spoken.state_names.index(s) for s in states]], Q, atol=1e-6)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the figures of reports out, which take longer than all the rest."""
    monkeypatch.setattr(phones, "draw_figures", lambda *_: [])


def without_clocks(table: Mapping[str, Any]) -> dict[str, Any]:
    clocks = ("seconds", "processor_seconds", "decoding_seconds")
    return {**table, "rows": [{k: v for k, v in row.items() if k not in clocks} for row in table["rows"]]}


def test_the_table_has_the_documented_schema(spoken: Corpus, finished: Run) -> None:
    out, table = finished
    assert json.loads((out / "phones.json").read_text()) == json.loads(json.dumps(table))
    assert (table["corpus"], table["phones"], table["complete"]) == (spoken.name, 3, True)
    assert [row["system"] for row in table["rows"]] == list(SYSTEMS)
    for row in table["rows"]:
        assert row["units"] == (8 if row["system"] == "deep" else 16)
        assert row["bidirectional"] == (row["system"] == "bidirectional")
        assert row["seconds"] > 0
        assert set(row["weights"]) == set(DecodingWeights().__dict__)
        for part in ("valid", "test"):
            score = row[part]
            assert all(isinstance(score[name], float) for name in RATES)
            assert score["phone_error"] == pytest.approx(sum(score[name] for name in RATES[1:]), abs=1e-5)
            assert score["interval"] is None  # too few speakers
            assert 0 < score["frame_phone_error"] <= score["state_error"] < 1
    assert {p.name for p in out.iterdir()} == {"systems", "report.html", "phones.json", "phones.md"}
    assert [(c["system"], c["against"]) for c in table["comparisons"]] == [
        ("learned", "fixed"),
        ("bidirectional", "fixed"),
        ("deep", "fixed"),
        ("bidirectional", "learned"),
        ("deep", "learned"),
    ]


def test_errors_are_those_of_the_kept_networks(spoken: Corpus, finished: Run) -> None:
    out, table = finished
    task = PhoneScoring.of(spoken)
    for row in table["rows"]:
        model = load(out / "systems" / f"{row['system']}-{row['units']}-0.safetensors")
        own = PhoneScoring.of(spoken, order=row["order"])
        decoder = replace(own.decoder, weights=DecodingWeights(**row["weights"]))
        P = part_probabilities(model, spoken, "test")  # type: ignore[arg-type]
        total = task.evaluate("test", recognise(decoder, P)).total
        assert row["test"]["phone_error"] == pytest.approx(total.error_rate, abs=1e-6)
        assert row["test"]["reference_phones"] == total.reference
    gain = 1 - table["rows"][1]["test"]["phone_error"] / table["rows"][0]["test"]["phone_error"]
    assert table["comparisons"][0]["relative_gain"] == pytest.approx(gain, abs=1e-3)


@pytest.mark.usefixtures("plain")
def test_the_test_part_is_read_once_after_the_decoder_is_tuned(
    spoken: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    part_of = {len(np.concatenate(spoken.part(part)[1])): part for part in ("train", "valid", "test")}
    assert len(part_of) == 3
    fit, answer, tune = ESNClassifier.fit, ESNClassifier.predict_proba, PhoneScoring.tuned

    def recorded_fit(self: ESNClassifier, X: Any, y: Any, **options: Any) -> Any:
        calls.append(f"fit {part_of[sum(map(len, X))]} {part_of[sum(map(len, options['validation'][0]))]}")
        return fit(self, X, y, **options)

    def recorded_answer(self: ESNClassifier, X: Any) -> Any:
        calls.append(f"answer {part_of[sum(map(len, X))]}")
        return answer(self, X)

    def recorded_tune(self: PhoneScoring, probabilities: Any, progress: Any = None) -> Any:
        assert set(probabilities) == {spoken.utterances[k] for k in spoken.which("valid")}
        calls.append("tune valid")
        return tune(self, probabilities, progress)

    monkeypatch.setattr(ESNClassifier, "fit", recorded_fit)
    monkeypatch.setattr(ESNClassifier, "predict_proba", recorded_answer)
    monkeypatch.setattr(PhoneScoring, "tuned", recorded_tune)
    phones.run(spoken, replace(SMALL, systems=("learned",)), tmp_path, RecordedProgress())
    assert calls == ["fit train valid", "answer valid", "tune valid", "answer test"]


@pytest.mark.usefixtures("plain")
def test_finished_systems_are_reused(spoken: Corpus, finished: Run, tmp_path: Path) -> None:
    out, table = finished
    again = RecordedProgress()
    shutil.copytree(out, tmp_path / "out")
    assert phones.run(spoken, SMALL, tmp_path / "out", again) == json.loads(json.dumps(table))
    assert [cell.column for cell in again.reused] == list(SYSTEMS)


@pytest.mark.usefixtures("plain")
def test_another_level_or_order_decodes_again_and_fits_nothing(spoken: Corpus, tmp_path: Path) -> None:
    plan = replace(SMALL, systems=("fixed",))
    first = phones.run(spoken, plan, tmp_path, RecordedProgress())
    for change in ({"level": "phone39"}, {"order": 3}):
        again = RecordedProgress()
        second = phones.run(spoken, replace(plan, **change), tmp_path, again)  # type: ignore[arg-type]
        assert again.finished == {Cell(16, "fixed", 0): False}
        assert any("network is kept" in note for note in again.notes)
        assert second["rows"][0]["seconds"] == first["rows"][0]["seconds"]
    last = RecordedProgress()
    assert phones.run(spoken, plan, tmp_path, last) == json.loads(json.dumps(first))
    assert last.finished == {Cell(16, "fixed", 0): True}


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("stop", [("learned", "epoch", 1), ("learned", "decode", 3)])
def test_a_stopped_run_resumes_and_says_that_it_is_incomplete(
    spoken: Corpus, finished: Run, tmp_path: Path, stop: tuple[str, str, int]
) -> None:
    plan = replace(SMALL, systems=("fixed", "learned"))
    with pytest.raises(KeyboardInterrupt):
        phones.run(spoken, plan, tmp_path, RecordedProgress(stop))
    partial = json.loads((tmp_path / "phones.json").read_text())
    assert partial["complete"] is False
    assert [row["system"] for row in partial["rows"]] == ["fixed"]
    assert "Not all systems are finished" in (tmp_path / "phones.md").read_text()
    assert not (tmp_path / "report.html").exists()
    again = RecordedProgress()
    table = phones.run(spoken, plan, tmp_path, again)
    assert again.finished == {Cell(16, "fixed", 0): True, Cell(16, "learned", 0): False}
    assert again.epochs.get("learned", []) == ([2] if stop[1] == "epoch" else [])
    whole = without_clocks(finished[1])["rows"][:2]
    assert without_clocks(table)["rows"] == whole
    assert not list((tmp_path / "systems").glob("*.checkpoint"))


@pytest.mark.usefixtures("plain")
def test_before_the_first_system_the_table_is_there_and_incomplete(spoken: Corpus, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        phones.run(spoken, replace(SMALL, systems=("learned",)), tmp_path, RecordedProgress(("learned", "epoch", 1)))
    table = json.loads((tmp_path / "phones.json").read_text())
    assert (table["rows"], table["complete"]) == ([], False)


@pytest.mark.usefixtures("plain")
def test_force_computes_all_again(spoken: Corpus, tmp_path: Path) -> None:
    plan = replace(SMALL, systems=("fixed",))
    first = phones.run(spoken, plan, tmp_path, RecordedProgress())
    again = RecordedProgress()
    second = phones.run(spoken, plan, tmp_path, again, force=True)
    assert again.finished == {Cell(16, "fixed", 0): False}
    assert without_clocks(first) == without_clocks(second)


@pytest.mark.usefixtures("plain")
def test_a_damaged_score_is_computed_again_and_reported(spoken: Corpus, tmp_path: Path) -> None:
    plan = replace(SMALL, systems=("fixed",))
    first = phones.run(spoken, plan, tmp_path, RecordedProgress())
    (path,) = (tmp_path / "systems").glob("fixed-16-0.*.json")
    changed = json.loads(path.read_text())
    changed["score"]["test"]["phone_error"] /= 2
    for content in (json.dumps(changed), "[", "3"):
        path.write_text(content)
        again = RecordedProgress()
        assert without_clocks(phones.run(spoken, plan, tmp_path, again)) == without_clocks(first)
        assert sum("is damaged" in note for note in again.notes) == 1


def test_a_corpus_without_phones_is_refused_before_anything_is_written(spoken: Corpus, tmp_path: Path) -> None:
    silent = replace(spoken, labels=[np.maximum(y, 6) for y in spoken.labels])
    with pytest.raises(ValueError, match="no phone but silences"):
        phones.run(silent, SMALL, tmp_path / "out", RecordedProgress())
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("plain")
def test_states_without_training_frames_are_decoded_around(tmp_path: Path) -> None:
    given = arrays()
    owner = np.repeat(np.arange(len(given["lengths"])), given["lengths"])
    labels, names = given["labels"].copy(), np.array(["zh_s2", *given["state_names"]])
    labels += 1
    labels[np.flatnonzero(given["split"][owner] == "test")[:3]] = 0
    corpus = open_corpus(f"features:{write(tmp_path / 'x.npz', labels=labels, state_names=names)}")
    table = phones.run(corpus, replace(SMALL, systems=("fixed",)), tmp_path / "out", RecordedProgress())
    assert table["phones"] == 4
    assert 0 < table["rows"][0]["test"]["phone_error"] < 0.8
    assert table["rows"][0]["test"]["interval"] is None  # one speaker


def test_the_report_has_what_it_must(finished: Run) -> None:
    page = (finished[0] / "report.html").read_text()
    for title in (
        "Phone error on test",
        "Errors by kind",
        "Frames against phones",
        "Learning and phone error",
        "Insertions and deletions",
        "Utterance: ",
        "shortest",
        "worst",
        "Phone confusions",
        "Errors by phone",
        "Errors by speaker",
        "Weights of the decoder",
    ):
        assert title in page
    assert page.count("<svg") >= 9
    assert "<script" not in page
    assert not re.findall(r"(?:src|href)=[\"']?(?!#|data:)[\w/]", page)
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "5 features" in page  # no audio
    assert "<audio" not in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_hostile_names_are_escaped_and_are_no_formulas(tmp_path: Path) -> None:
    given = arrays()
    states = np.array([f"{phone}_s{k}" for phone in ("<b>&", r"$\frac{", "sil") for k in (2, 3, 4)])
    utterances = np.array([f"<script>{name}" for name in given["utterances"]])
    people = np.array([f"<i>{k % 5}" for k in range(24)])
    path = write(tmp_path / "x.npz", state_names=states, utterances=utterances, speakers=people)
    corpus = open_corpus(f"features:{path}")
    phones.run(corpus, replace(SMALL, systems=("fixed",)), tmp_path / "out", RecordedProgress())
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<script>" not in page
    assert "<b>&" not in page
    assert "<i>" not in page
    assert "&lt;script&gt;" in page
    assert r"$\frac{" in page


def test_timit_is_decoded_in_61_phones_and_scored_in_39(tmp_path: Path) -> None:
    corpus = open_timit(write_timit(tmp_path / "timit", upper=True, sphere=True))
    plan = replace(SMALL, systems=("fixed",), level="phone39")
    table = phones.run(corpus, plan, tmp_path / "out", RecordedProgress())
    assert table["phones"] == 39
    assert table["states"] == 183
    row = table["rows"][0]
    # Two sentences of one core test speaker, each h# sh iy hv ae dcl y er h#: closures are silence and do not count.
    assert row["test"]["reference_phones"] == 2 * 6
    assert row["valid"]["reference_phones"] == 4 * 6
    assert row["test"]["interval"] is None
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("<audio controls") >= 1
    assert "its spectrogram" in page
    assert "0 to 8 kHz" in page
    own = phones.run(corpus, replace(plan, level="corpus"), tmp_path / "out", RecordedProgress())
    assert own["rows"][0]["test"]["reference_phones"] == 2 * 7
    assert own["phones"] == 61
