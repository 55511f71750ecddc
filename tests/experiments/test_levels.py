"""Tests of the levels at which Table 1 is scored."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from echolearn.experiments import table1
from echolearn.experiments.fitted_cells import CellStore
from echolearn.experiments.levels import LEVELS, level_errors
from echolearn.experiments.phone_scoring import PhoneScoring, TunedDecoder, part_probabilities, recognise
from echolearn.experiments.plan import Plan
from echolearn.reporting.table import LEVELS as NAMES
from echolearn.reporting.table import markdown, plain_text
from echolearn.speech.corpus import Corpus
from echolearn.speech.recognition._phone_models import phone_segments
from echolearn.speech.recognition._segments import learn_segments

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
            patch.setattr(table1, "_fitted_cell", lambda *_: pytest.fail("a kept network was fitted again"))
    return found


class Silent:
    """Progress that nobody looks at."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def errors(table: Any, column: str = "esn_ours") -> tuple[float, float]:
    entry = table["rows"][0]["columns"][column]
    return entry["valid_error"], entry["test_error"]


def test_every_level_has_its_own_errors_and_says_so(tables: dict[str, Any]) -> None:
    assert set(NAMES) == set(LEVELS)
    for level in LEVELS:
        assert tables[level]["level"] == tables[level]["settings"]["level"] == level
        assert NAMES[level].title in markdown(tables[level])
    assert NAMES["recognition"].title in plain_text(tables["recognition"])
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
            return TunedDecoder(task.decoder, 2, 0.0)

    watched = Watched(**{f: getattr(task, f) for f in PhoneScoring.__dataclass_fields__})
    valid, test = level_errors(model, corpus, "recognition", lambda: watched)
    assert calls == [{corpus.utterances[k] for k in corpus.which("valid")}]
    again = task.evaluate("test", recognise(task.decoder, part_probabilities(model, corpus, "test"))).total.error_rate
    assert test == again
    assert valid >= errors(tables["recognition"])[0]  # tuned weights are no worse on valid


def test_scores_are_kept_and_belong_to_their_network(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(PLAN, columns=("esn",), level="phone39")
    first = table1.run(corpus, plan, tmp_path, Silent())
    path = tmp_path / "cells" / "esn-8-0.phone39.json"
    assert json.loads(path.read_text())["score"]["test_error"] == pytest.approx(errors(first, "esn")[1], abs=1e-6)
    with monkeypatch.context() as patch:
        patch.setattr("echolearn.experiments.levels.level_errors", lambda *_: pytest.fail("scored again"))
        assert table1.run(corpus, plan, tmp_path, Silent()) == first
    other = table1.run(corpus, replace(plan, paper={"ridge": 10.0}), tmp_path, Silent())
    assert errors(other, "esn") != errors(first, "esn")
    table1.run(corpus, plan, tmp_path, Silent(), force=True)
    assert path.exists()


def test_an_unknown_level_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected one of state, phone48"):
        table1.run(corpus, replace(PLAN, level="words"), tmp_path / "out", Silent())
    assert not (tmp_path / "out").exists()
