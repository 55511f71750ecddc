from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from echolearn.experiments import fitted_cells as cells
from echolearn.experiments import table1
from echolearn.experiments.table1 import COLUMNS, PAPER_TIMIT, Cell, Plan
from echolearn.speech.corpus import Corpus, open_corpus
from smallcorpus import arrays, write

SMALL = Plan(units=(8, 12), epochs=3, ours={"epochs": 3})


class Recorder:
    """Remembers what it is told; stops at a given epoch of a given column like Ctrl-C."""

    def __init__(self, stop: tuple[str, int] | None = None):
        self.stop = stop
        self.said: list[str] = []
        self.kept: list[Cell] = []
        self.fitted: list[Cell] = []
        self.epochs: list[int] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def plan(self, plan: Plan, work: Mapping[Cell, float]) -> None:
        assert all(w > 0 for w in work.values())

    def start(self, cell: Cell, epochs: int) -> None:
        self.epochs = []

    def epoch(self, cell: Cell, row: Mapping[str, float]) -> None:
        self.epochs.append(int(row["epoch"]))
        if self.stop == (cell.column, int(row["epoch"])):
            raise KeyboardInterrupt

    def finish(self, cell: Cell, result: Mapping[str, Any], kept: bool) -> None:
        (self.kept if kept else self.fitted).append(cell)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return open_corpus(f"features:{write(tmp_path_factory.mktemp('corpus') / 'small.npz')}")


@pytest.fixture(scope="module")
def run_once(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("out")
    return out, table1.run(corpus, SMALL, out, Recorder())


def without_clocks(table: Mapping[str, Any]) -> dict[str, Any]:
    clocks = ("seconds", "frames_per_second", "peak_memory_mb")
    rows = []
    for row in table["rows"]:
        columns = {c: {k: v for k, v in e.items() if k not in clocks} for c, e in row["columns"].items()}
        rows.append({**row, "columns": columns})
    return {**table, "rows": rows}


def test_the_table_has_the_documented_schema(run_once: tuple[Path, dict[str, Any]]) -> None:
    out, table = run_once
    assert json.loads((out / "table1.json").read_text()) == json.loads(json.dumps(table))
    assert [row["units"] for row in table["rows"]] == [8, 12]
    assert table["complete"] is True
    assert table["synthetic"] is False
    assert table["frames"] == {p: int(_frames(p)) for p in ("train", "valid", "test")}
    for row in table["rows"]:
        assert list(row["columns"]) == list(COLUMNS)
        for entry in row["columns"].values():
            assert 0 <= entry["test_error"] <= 1
            assert 0 <= entry["valid_error"] <= 1
            assert entry["seconds"] > 0
            assert entry["frames_per_second"] > 0
            assert entry["peak_memory_mb"] > 1
            assert entry["spectral_radius"] > 0
            assert entry["seeds"] == [0]
    assert {p.name for p in out.iterdir()} == {"cells", "report.html", "table1.csv", "table1.json", "table1.md"}


def _frames(part: str) -> Any:
    given = arrays()
    return given["lengths"][given["split"] == part].sum()


def test_errors_are_those_of_the_saved_models(corpus: Corpus, run_once: tuple[Path, dict[str, Any]]) -> None:
    out, table = run_once
    names = np.array(corpus.state_names)
    model = cells.Shelf(out / "cells", print).model("W_Wrec_m3-12-0")
    X, y = corpus.part("test")
    error = 1 - model.score(list(X), [names[labels] for labels in y])
    assert table["rows"][1]["columns"]["W_Wrec_m3"]["test_error"] == pytest.approx(error, abs=1e-6)


def test_finished_cells_are_kept(corpus: Corpus, run_once: tuple[Path, dict[str, Any]]) -> None:
    out, table = run_once
    again = Recorder()
    assert table1.run(corpus, SMALL, out, again) == table
    assert again.fitted == []
    assert again.kept == SMALL.cells()


def test_force_starts_over(corpus: Corpus, tmp_path: Path) -> None:
    plan = Plan(units=(5,), epochs=2, columns=("esn", "W_m1"))
    first = table1.run(corpus, plan, tmp_path, Recorder())
    watch = Recorder()
    second = table1.run(corpus, plan, tmp_path, watch, force=True)
    assert watch.fitted == plan.cells()
    assert without_clocks(first) == without_clocks(second)


def test_other_settings_are_computed_again_and_said(corpus: Corpus, tmp_path: Path) -> None:
    plan = Plan(units=(5,), epochs=2, columns=("esn", "W_m1"))
    table1.run(corpus, plan, tmp_path, Recorder())
    watch = Recorder()
    table1.run(corpus, Plan(units=(5,), epochs=3, columns=("esn", "W_m1")), tmp_path, watch)
    assert [cell.column for cell in watch.kept] == ["esn"]
    assert any("W_m1-5-0.json was made with other settings" in text for text in watch.said)


def test_another_corpus_is_noticed(corpus: Corpus, tmp_path: Path) -> None:
    plan = Plan(units=(5,), columns=("esn",))
    table1.run(corpus, plan, tmp_path / "out", Recorder())
    other = open_corpus(f"features:{write(tmp_path / 'other.npz', **arrays(seed=1))}")
    watch = Recorder()
    table1.run(other, plan, tmp_path / "out", watch)
    assert watch.kept == []


def test_a_damaged_cell_is_computed_again_and_said(corpus: Corpus, tmp_path: Path) -> None:
    plan = Plan(units=(5,), columns=("esn",))
    first = table1.run(corpus, plan, tmp_path, Recorder())
    path = tmp_path / "cells" / "esn-5-0.json"
    changed = json.loads(path.read_text())
    changed["cell"]["test_error"] += 0.01
    for content in ('{"fingerprint"', json.dumps(changed), "[" * 100_000, "3"):
        path.write_text(content)
        watch = Recorder()
        second = table1.run(corpus, plan, tmp_path, watch)
        assert any("is damaged" in text for text in watch.said)
        assert without_clocks(first) == without_clocks(second)


def test_a_cell_of_an_earlier_version_is_kept(corpus: Corpus, tmp_path: Path) -> None:
    """It had no checksum."""
    plan = Plan(units=(5,), columns=("esn",))
    table1.run(corpus, plan, tmp_path, Recorder())
    path = tmp_path / "cells" / "esn-5-0.json"
    path.write_text(json.dumps(json.loads(path.read_text())["cell"]))
    watch = Recorder()
    table1.run(corpus, plan, tmp_path, watch)
    assert [cell.column for cell in watch.kept] == ["esn"]


@pytest.mark.parametrize("column", ["W_Wrec_m3", "ours"])
def test_a_stopped_cell_goes_on_after_its_last_epoch(corpus: Corpus, tmp_path: Path, column: str) -> None:
    plan = Plan(units=(6,), epochs=4, columns=("esn", column), ours={"epochs": 4})
    whole = table1.run(corpus, plan, tmp_path / "whole", Recorder())
    with pytest.raises(KeyboardInterrupt):
        table1.run(corpus, plan, tmp_path / "cut", Recorder(stop=(column, 2)))
    assert len(list((tmp_path / "cut" / "cells").glob("*.checkpoint"))) == 1
    watch = Recorder()
    resumed = table1.run(corpus, plan, tmp_path / "cut", watch)
    assert watch.epochs == [3, 4]
    assert [cell.column for cell in watch.kept] == ["esn"]
    assert without_clocks(resumed) == without_clocks(whole)
    assert list((tmp_path / "cut" / "cells").glob("*.checkpoint")) == []
    name = f"{column}-6-0.json"
    histories = [json.loads((tmp_path / o / "cells" / name).read_text())["cell"]["history"] for o in ("whole", "cut")]
    for row, same in zip(*histories, strict=True):
        assert {k: v for k, v in row.items() if k != "seconds"} == {k: v for k, v in same.items() if k != "seconds"}


def test_several_seeds_are_averaged(corpus: Corpus, tmp_path: Path) -> None:
    plan = Plan(units=(5,), seeds=3, columns=("esn",))
    table = table1.run(corpus, plan, tmp_path, Recorder())
    each = [json.loads((tmp_path / f"cells/esn-5-{s}.json").read_text())["cell"]["test_error"] for s in range(3)]
    entry = table["rows"][0]["columns"]["esn"]
    assert entry["seeds"] == [0, 1, 2]
    assert entry["test_error"] == pytest.approx(np.mean(each), abs=1e-6)
    assert entry["test_error_deviation"] == pytest.approx(np.std(each, ddof=1), abs=1e-6)


def test_gains_by_hand() -> None:
    errors = {"esn": 0.8, "W_Wrec_m3": 0.6, "esn_ours": 0.5, "ours": 0.4}
    columns = {name: {"test_error": error} for name, error in errors.items()}
    assert table1.gains(columns) == {"relative_gain": 0.25, "relative_gain_ours": 0.2}
    assert table1.gains({"esn": {"test_error": 0.8}}) == {"relative_gain": None, "relative_gain_ours": None}


def test_the_papers_gains_follow_from_its_errors() -> None:
    for row in PAPER_TIMIT:
        errors = row["test_error"]
        assert row["relative_gain"] == pytest.approx(1 - errors["W_Wrec_m3"] / errors["esn"], abs=2e-3)
        assert list(errors.values()) == sorted(errors.values(), reverse=True)


def test_columns_are_the_papers_and_ours() -> None:
    plan = Plan(targets="last", gradient="printed")
    given = {c: plan.estimator(Cell(10, c, 7)) for c in COLUMNS}
    learn = {c: (e.learn, e.lookback, e.targets, e.gradient, e.readout) for c, e in given.items()}
    assert learn == {
        "esn": ("none", 3, "all", "exact", "ridge"),
        "W_m1": ("input", 1, "last", "printed", "ridge"),
        "W_Wrec_m1": ("both", 1, "last", "printed", "ridge"),
        "W_Wrec_m3": ("both", 3, "last", "printed", "ridge"),
        "W_Wrec_full": ("both", None, "all", "exact", "ridge"),
        "esn_ours": ("none", None, "all", "exact", "softmax"),
        "ours": ("both", None, "all", "exact", "softmax"),
    }
    assert {e.random_state for e in given.values()} == {7}
    assert {(e.spectral_radius, e.ridge, e.step_size) for c, e in given.items() if COLUMNS[c].paper} == {
        (3.9, 1e-8, 0.07)
    }


def test_fixed_and_learned_networks_start_from_the_same_weights(
    run_once: tuple[Path, dict[str, Any]],
) -> None:
    shelf = cells.Shelf(run_once[0] / "cells", print)
    for fixed, learned in (("esn", "W_Wrec_m3"), ("esn_ours", "ours")):
        a, b = (shelf.model(f"{c}-8-0").recurrent_weights_ for c in (fixed, learned))
        assert (a.indices == b.indices).all()


def test_states_without_training_frames_count_as_errors(tmp_path: Path) -> None:
    given = arrays()
    owner = np.repeat(np.arange(len(given["lengths"])), given["lengths"])
    valid = given["split"][owner] == "valid"
    labels, names = given["labels"].copy(), np.array([*given["state_names"], "zh_s2"])
    first = np.flatnonzero(valid)[0]
    labels[first] = len(names) - 1
    corpus = open_corpus(f"features:{write(tmp_path / 'x.npz', labels=labels, state_names=names)}")
    watch = Recorder()
    table = table1.run(corpus, Plan(units=(5,), columns=("esn",)), tmp_path / "out", watch)
    assert any("zh_s2" in text for text in watch.said)
    assert table["rows"][0]["columns"]["esn"]["valid_error"] > 0


def test_wrong_plans_are_refused_before_anything_is_computed(corpus: Corpus, tmp_path: Path) -> None:
    for plan, word in (
        (Plan(columns=("esm",)), "esm"),
        (Plan(units=()), "units"),
        (Plan(paper={"ridge": -1}), "ridge"),
    ):
        with pytest.raises(ValueError, match=word):
            table1.run(corpus, plan, tmp_path / "out", Recorder())
    assert not (tmp_path / "out").exists()


def test_the_confusion_matrix_by_hand() -> None:
    said = np.array(["aa_s2", "aa_s3", "b_s2", "b_s2"])
    heard = np.array(["aa_s4", "b_s2", "b_s3", "b_s2"])
    assert cells.confusion(said, heard, ("aa", "b")).tolist() == [[1, 1], [0, 2]]


def test_the_fingerprint_sees_every_part_of_a_corpus(tmp_path: Path) -> None:
    base = arrays()
    seen = {cells.fingerprint_of(open_corpus(f"features:{write(tmp_path / 'a.npz')}"))}
    for name in ("features", "labels", "split", "utterances"):
        changed = base[name].copy()
        if name in ("features", "labels"):
            changed[3] = changed[3] - 1 if (changed[3] > 0).all() else changed[3] + 1
        else:
            changed[[0, 5]] = changed[[5, 0]]
        seen.add(cells.fingerprint_of(open_corpus(f"features:{write(tmp_path / 'b.npz', **{name: changed})}")))
    assert len(seen) == 5
