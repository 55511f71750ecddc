"""Tests of a run of Table 1: what it writes, and how it resumes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from echolearn import ESNClassifier
from echolearn.experiments import table1
from echolearn.experiments.fitted_cells import CellStore
from echolearn.experiments.plan import COLUMNS, Plan
from echolearn.experiments.provenance import made_with
from echolearn.speech.corpus import Corpus, open_corpus
from smallcorpus import arrays, write

SMALL = Plan(units=(8, 12), epochs=3, columns=tuple(COLUMNS), ours={"epochs": 3})
Run = tuple[Path, dict[str, Any]]


class Silent:
    """Progress that nobody looks at."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


@pytest.fixture(scope="module")
def finished(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("out")
    return out, table1.run(corpus, SMALL, out, Silent())


def without_clocks(table: Mapping[str, Any]) -> dict[str, Any]:
    clocks = ("seconds", "processor_seconds", "frames_per_second", "peak_memory_mb")
    rows = []
    for row in table["rows"]:
        columns = {c: {k: v for k, v in e.items() if k not in clocks} for c, e in row["columns"].items()}
        rows.append({**row, "columns": columns})
    return {**table, "rows": rows}


def test_the_table_has_the_documented_schema(finished: Run) -> None:
    out, table = finished
    assert json.loads((out / "table1.json").read_text()) == json.loads(json.dumps(table))
    assert [row["units"] for row in table["rows"]] == [8, 12]
    assert table["complete"] is True
    assert table["synthetic"] is False
    assert table["made_with"] == [made_with()]
    assert len(table["digest"]) == 16
    given = arrays()
    frames = {part: int(given["lengths"][given["split"] == part].sum()) for part in ("train", "valid", "test")}
    assert table["frames"] == frames
    for row in table["rows"]:
        assert list(row["columns"]) == list(COLUMNS)
        for entry in row["columns"].values():
            assert 0 <= entry["test_error"] <= 1
            assert 0 <= entry["valid_error"] <= 1
            assert entry["seconds"] > 0
            assert entry["processor_seconds"] > 0
            assert entry["epochs"] in (0, 3)
            assert entry["frames_per_second"] > 0
            assert entry["peak_memory_mb"] > 1
            assert entry["spectral_radius"] > 0
            assert entry["seeds"] == [0]
    assert {p.name for p in out.iterdir()} == {"cells", "report.html", "table1.csv", "table1.json", "table1.md"}


def test_errors_are_those_of_the_saved_models(corpus: Corpus, finished: Run) -> None:
    out, table = finished
    names = np.array(corpus.state_names)
    model = CellStore(out / "cells", print).load_model("W_Wrec_m3-12-0")
    X, y = corpus.part("test")
    error = 1 - model.score(list(X), [names[labels] for labels in y])
    assert table["rows"][1]["columns"]["W_Wrec_m3"]["test_error"] == pytest.approx(error, abs=1e-6)


def test_fixed_and_learned_networks_start_from_the_same_weights(finished: Run) -> None:
    store = CellStore(finished[0] / "cells", print)
    for fixed, learned in (("esn", "W_Wrec_m3"), ("esn_ours", "ours"), ("esn_ours_ensemble", "ours_ensemble")):
        a, b = (store.load_model(f"{c}-8-0").recurrent_weights_ for c in (fixed, learned))
        assert (a.indices == b.indices).all()


def test_the_test_part_is_read_once_and_after_the_fit(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, int]] = []
    fit, predict = ESNClassifier.fit, ESNClassifier.predict

    def recorded_fit(self: ESNClassifier, X: Any, y: Any, **options: Any) -> Any:
        calls.append(("fit", sum(map(len, X)) + sum(map(len, options["validation"][0]))))
        return fit(self, X, y, **options)

    def recorded_predict(self: ESNClassifier, X: Any) -> Any:
        calls.append(("predict", sum(map(len, X))))
        return predict(self, X)

    monkeypatch.setattr(ESNClassifier, "fit", recorded_fit)
    monkeypatch.setattr(ESNClassifier, "predict", recorded_predict)
    monkeypatch.setattr(table1, "draw_figures", lambda *_: [])
    table1.run(corpus, Plan(units=(5,), epochs=2, columns=("W_m1",)), tmp_path, Silent())
    train, valid, test = (corpus.frames[part] for part in ("train", "valid", "test"))
    assert len({train, valid, test}) == 3
    assert calls == [("fit", train + valid), ("predict", valid), ("predict", test)]


def test_each_learned_column_of_ours_has_a_fixed_one_of_the_same_form(finished: Run) -> None:
    store = CellStore(finished[0] / "cells", print)
    for column, networks in (("esn_ours", 1), ("ours", 1), ("esn_ours_ensemble", 2), ("ours_ensemble", 2)):
        model = store.load_model(f"{column}-12-0")
        blocks = model.recurrent_weights_.toarray().reshape(2, 6, 2, 6)
        assert bool(blocks[0, :, 1].any() or blocks[1, :, 0].any()) == (networks == 1)
        assert model.readout == "softmax"
    row = finished[1]["rows"][1]
    for pair in (("esn_ours", "ours"), ("esn_ours_ensemble", "ours_ensemble")):
        fixed, learned = (row["columns"][column]["test_error"] for column in pair)
        assert row[f"relative_gain_{pair[1]}"] == pytest.approx(1 - learned / fixed, abs=1e-4)


def test_finished_cells_are_reused(corpus: Corpus, finished: Run, progress: Any) -> None:
    out, table = finished
    again = progress()
    assert table1.run(corpus, SMALL, out, again) == table
    assert again.fitted == []
    assert again.reused == SMALL.cells()
    one = table1.run(corpus, replace(SMALL, units=(12,)), out, Silent())
    assert json.loads((out / "table1.json").read_text()) == json.loads(json.dumps(one))
    assert [row["units"] for row in one["rows"]] == [12]


def test_the_first_table_on_disk_has_all_finished_cells(corpus: Corpus, tmp_path: Path, progress: Any) -> None:
    """A run with more seeds than the one before shows at any time what both have found."""
    columns = ("esn", "W_m1")
    table1.run(corpus, Plan(units=(5,), epochs=2, columns=columns), tmp_path, Silent())
    stop = progress(stop=("W_m1", 1))
    with pytest.raises(KeyboardInterrupt):
        table1.run(corpus, Plan(units=(5,), epochs=2, seeds=2, columns=columns), tmp_path, stop)
    row = json.loads((tmp_path / "table1.json").read_text())["rows"][0]
    assert {name: entry["seeds"] for name, entry in row["columns"].items()} == {"esn": [0, 1], "W_m1": [0]}


def test_force_computes_all_cells_again(corpus: Corpus, tmp_path: Path, progress: Any) -> None:
    plan = Plan(units=(5,), epochs=2, columns=("esn", "W_m1"))
    first = table1.run(corpus, plan, tmp_path, Silent())
    again = progress()
    second = table1.run(corpus, plan, tmp_path, again, force=True)
    assert again.fitted == plan.cells()
    assert without_clocks(first) == without_clocks(second)


def test_cells_with_other_settings_are_computed_again_and_reported(
    corpus: Corpus, tmp_path: Path, progress: Any
) -> None:
    plan = Plan(units=(5,), epochs=2, columns=("esn", "W_m1"))
    table1.run(corpus, plan, tmp_path, Silent())
    again = progress()
    table1.run(corpus, Plan(units=(5,), epochs=3, columns=("esn", "W_m1")), tmp_path, again)
    assert [cell.column for cell in again.reused] == ["esn"]
    assert any("W_m1-5-0.json was made with other settings" in text for text in again.notes)


def test_cells_of_another_corpus_are_computed_again(corpus: Corpus, tmp_path: Path, progress: Any) -> None:
    plan = Plan(units=(5,), columns=("esn",))
    table1.run(corpus, plan, tmp_path / "out", Silent())
    other = open_corpus(f"features:{write(tmp_path / 'other.npz', **arrays(seed=1))}")
    again = progress()
    table1.run(other, plan, tmp_path / "out", again)
    assert again.reused == []


def test_a_damaged_cell_is_computed_again_and_reported(corpus: Corpus, tmp_path: Path, progress: Any) -> None:
    plan = Plan(units=(5,), columns=("esn",))
    first = table1.run(corpus, plan, tmp_path, Silent())
    path = tmp_path / "cells" / "esn-5-0.json"
    changed = json.loads(path.read_text())
    changed["cell"]["test_error"] += 0.01
    for content in ('{"fingerprint"', json.dumps(changed), "[" * 100_000, "3"):
        path.write_text(content)
        again = progress()
        second = table1.run(corpus, plan, tmp_path, again)
        assert any("is damaged" in text for text in again.notes)
        assert without_clocks(first) == without_clocks(second)


@pytest.mark.parametrize("column", ["W_Wrec_m3", "ours"])
def test_a_stopped_cell_resumes_after_its_last_epoch(
    corpus: Corpus, tmp_path: Path, column: str, progress: Any
) -> None:
    plan = Plan(units=(6,), epochs=4, columns=("esn", column), ours={"epochs": 4})
    whole = table1.run(corpus, plan, tmp_path / "whole", Silent())
    with pytest.raises(KeyboardInterrupt):
        table1.run(corpus, plan, tmp_path / "cut", progress(stop=(column, 2)))
    assert len(list((tmp_path / "cut" / "cells").glob("*.checkpoint"))) == 1
    again = progress()
    resumed = table1.run(corpus, plan, tmp_path / "cut", again)
    assert again.epochs == [3, 4]
    assert [cell.column for cell in again.reused] == ["esn"]
    assert without_clocks(resumed) == without_clocks(whole)
    assert list((tmp_path / "cut" / "cells").glob("*.checkpoint")) == []
    name = f"{column}-6-0.json"
    histories = [json.loads((tmp_path / o / "cells" / name).read_text())["cell"]["history"] for o in ("whole", "cut")]
    for row, same in zip(*histories, strict=True):
        assert {k: v for k, v in row.items() if k != "seconds"} == {k: v for k, v in same.items() if k != "seconds"}


def test_several_seeds_are_averaged(corpus: Corpus, tmp_path: Path) -> None:
    plan = Plan(units=(5,), seeds=3, columns=("esn",))
    table = table1.run(corpus, plan, tmp_path, Silent())
    each = [json.loads((tmp_path / f"cells/esn-5-{s}.json").read_text())["cell"]["test_error"] for s in range(3)]
    entry = table["rows"][0]["columns"]["esn"]
    assert entry["seeds"] == [0, 1, 2]
    assert entry["test_error"] == pytest.approx(np.mean(each), abs=1e-6)
    assert entry["test_error_deviation"] == pytest.approx(np.std(each, ddof=1), abs=1e-6)
    assert entry["test_errors"] == pytest.approx(each, abs=1e-6)


def test_states_without_training_frames_count_as_errors(tmp_path: Path, progress: Any) -> None:
    given = arrays()
    owner = np.repeat(np.arange(len(given["lengths"])), given["lengths"])
    valid = given["split"][owner] == "valid"
    labels, names = given["labels"].copy(), np.array([*given["state_names"], "zh_s2"])
    first = np.flatnonzero(valid)[0]
    labels[first] = len(names) - 1
    corpus = open_corpus(f"features:{write(tmp_path / 'x.npz', labels=labels, state_names=names)}")
    recorded = progress()
    table = table1.run(corpus, Plan(units=(5,), columns=("esn",)), tmp_path / "out", recorded)
    assert any("zh_s2" in text for text in recorded.notes)
    assert table["rows"][0]["columns"]["esn"]["valid_error"] > 0


def test_an_impossible_plan_is_refused_before_anything_is_written(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="esm"):
        table1.run(corpus, Plan(columns=("esm",)), tmp_path / "out", Silent())
    assert not (tmp_path / "out").exists()
