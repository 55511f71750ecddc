"""Tests of the plan of Table 1."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from echolearn import DeepESNClassifier, ESNClassifier
from echolearn.execution.executor import LocalExecutor, executing_on
from echolearn.paper import table1
from echolearn.paper import table1 as plans
from echolearn.paper.cells import CellStore
from echolearn.paper.fits import made_with
from echolearn.paper.table1 import COLUMNS, PAPER_TIMIT, Cell, Plan, averaged, plan_of, relative_gain
from echolearn.speech import Corpus, open_corpus
from echolearn.speech._sources import timit
from recordedprogress import RecordedProgress
from smallcorpus import arrays, write


def test_columns_are_those_of_the_paper_and_ours() -> None:
    plan = Plan(targets="last", gradient="printed")
    given = {c: plan.estimator(Cell(10, c, 7)) for c in COLUMNS if COLUMNS[c].kind != "deep"}
    names = ("learn", "learning__lookback", "learning__targets", "learning__gradient", "readout")
    learn = {c: tuple(e.get_params()[name] for name in names) for c, e in given.items()}
    assert learn == {
        "esn": ("none", 3, "all", "exact", "ridge"),
        "W_m1": ("input", 1, "last", "printed", "ridge"),
        "W_Wrec_m1": ("both", 1, "last", "printed", "ridge"),
        "W_Wrec_m3": ("both", 3, "last", "printed", "ridge"),
        "W_Wrec_full": ("both", None, "all", "exact", "ridge"),
        "esn_ours": ("none", None, "all", "exact", "softmax"),
        "ours": ("both", None, "all", "exact", "softmax"),
        "esn_ours_ensemble": ("none", None, "all", "exact", "softmax"),
        "ours_ensemble": ("both", None, "all", "exact", "softmax"),
    }
    assert {e.random_state for e in given.values()} == {7}
    assert {
        (e.spectral_radius, e.ridge, e.learning["step_size"]) for c, e in given.items() if COLUMNS[c].kind == "paper"
    } == {(3.9, 1e-8, 0.07)}


def test_only_the_columns_of_ensembles_split_their_units() -> None:
    for units, networks in ((100, 2), (300, 2), (500, 2), (1_000, 4), (2_000, 8)):
        for column in COLUMNS:
            split = networks if column in ("esn_ours_ensemble", "ours_ensemble") else 1
            assert Plan().estimator(Cell(units, column, 0)).ensemble == split
    changed = Plan(columns=("ours", "ours_ensemble"), ours={"ensemble": 5})
    assert [changed.estimator(cell).ensemble for cell in changed.cells()[:2]] == [1, 5]
    Plan(ours={"ensemble": 1}).check()  # without columns of ensembles there is nothing to refuse


def test_a_deep_network_has_about_as_many_weights_as_one_layer_of_the_row() -> None:
    inputs, states = 117, 102
    for settings, layers in (({"epochs": 4}, 6), ({"epochs": 4, "layers": 3}, 3)):
        for units in (100, 500, 2_000):
            deep = Plan(deep=settings).estimator(Cell(units, "deep", 3))
            assert (type(deep).__name__, deep.epochs, deep.random_state) == ("DeepESNClassifier", 4, 3)
            assert deep.layers == layers
            one_layer = inputs * units + 10 * units + (units + inputs) * states
            weights = 2 * deep.layers * deep.units**2 + deep.units * (inputs + states)
            assert 0.8 < weights / one_layer < 1.25


def test_deep_networks_have_their_defaults_and_the_settings_of_their_own_table() -> None:
    plan = Plan(ours={"epochs": 9, "leak": 0.3}, deep={"leak": (0.1, 0.5), "learning": {"batch_size": 2}})
    learned = plan.estimator(Cell(500, "deep", 3))
    wanted = DeepESNClassifier(96, 6, leak=(0.1, 0.5), learning={"batch_size": 2}, random_state=3)
    assert learned.get_params(deep=False) == wanted.get_params(deep=False)
    assert Plan(deep={"units": 10}).estimator(Cell(500, "deep", 3)).units == 10


def test_fixed_and_learned_columns_of_ours_differ_in_learning_alone() -> None:
    plan = Plan(ours={"leak": (0.1, 1.0)})
    for fixed, learned in (("esn_ours", "ours"), ("esn_ours_ensemble", "ours_ensemble")):
        a, b = (plan.estimator(Cell(500, column, 3)).get_params(deep=False) for column in (fixed, learned))
        assert {name for name in a if a[name] != b[name]} == {"learn"}
    deep = Plan(deep={"epochs": 7})
    a, b = (deep.estimator(Cell(500, column, 3)).get_params(deep=False) for column in ("esn_deep", "deep"))
    assert {name: (a[name], b[name]) for name in a if a[name] != b[name]} == {"epochs": (0, 7)}


def test_rows_and_columns_by_default() -> None:
    assert plan_of() == Plan()
    of_paper = ("esn", "W_m1", "W_Wrec_m1", "W_Wrec_m3", "W_Wrec_full")
    assert plan_of().columns == (*of_paper, "esn_ours", "ours", "esn_deep", "deep")
    full = plan_of(full=True)
    assert (full.units, full.epochs) == ((100, 500, 2_000, 10_000, 30_000), 40)
    assert full.columns == plan_of(columns=("all",)).columns == tuple(COLUMNS)
    for wide in (False, True):
        assert plan_of(units=(7,), epochs=3, columns=("esn",), full=wide) == Plan(
            units=(7,), epochs=3, columns=("esn",)
        )


def test_small_networks_come_first() -> None:
    cells = Plan(units=(5, 7), seeds=2, columns=("esn", "ours")).cells()
    assert [cell.name for cell in cells[:4]] == ["esn-5-0", "esn-5-1", "ours-5-0", "ours-5-1"]
    assert [cell.units for cell in cells] == 4 * [5] + 4 * [7]


@pytest.mark.parametrize(
    ("plan", "word"),
    [
        (Plan(columns=("esm",)), "esm"),
        (Plan(columns=()), "columns: none"),
        (Plan(units=()), "units"),
        (Plan(seeds=0), "seeds=0"),
        (Plan(paper={"ridge": -1}), "ridge"),
        (Plan(ours={"leak": 7}), "leak"),
        (Plan(columns=("ours_ensemble",), ours={"ensemble": 1}), "ensemble=1"),
        (Plan(deep={"units": 7}), "even whole number"),
        (Plan(deep={"leak": 0.5}), "leak"),
    ],
)
def test_impossible_plans_are_refused(plan: Plan, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        plan.check()


def test_the_full_table_has_the_sizes_and_the_epochs_of_the_paper() -> None:
    assert plans.FULL_UNITS == (100, 500, 2_000, 10_000, 30_000)
    assert plans.FULL_EPOCHS == ESNClassifier.paper(10).epochs == 40
    assert plans.FULL_FRAMES == timit.PART_FRAMES["train"] == 1_124_823
    assert plans.DEMO_FRAMES == 35_000
    assert (Plan().units, Plan().seeds, Plan().epochs) == ((100, 500), 1, 20)


def test_epochs_are_those_of_the_plan_in_the_paper_s_learned_columns_alone() -> None:
    epochs = {c: Plan(epochs=7).estimator(Cell(10, c, 0)).epochs for c in COLUMNS}
    ours = ESNClassifier(10).epochs
    wanted = {c: 7 if column.kind == "paper" else ours for c, column in COLUMNS.items()}
    assert epochs == {**wanted, "esn": 40, "esn_deep": 0}


# Table 1 of the paper, copied from its page: hidden units; state error in per cent of the fixed network, of W learned
# with m = 1, of W and W_rec learned with m = 1 and with m = 3; relative gain of the last over the first in per cent.
TABLE_1 = """
    100     75.5  66.7  64.0  63.2  16.3
    500     70.1  59.8  57.5  56.8  19.0
    2,000   63.8  54.2  52.7  52.1  18.3
    10,000  57.1  49.5  48.0  46.8  18.0
    30,000  53.3  45.9  44.5  43.0  19.3
"""
PAPER_COLUMNS = ("esn", "W_m1", "W_Wrec_m1", "W_Wrec_m3")


def test_the_figures_of_the_paper_are_those_of_its_table() -> None:
    printed = [[float(field.replace(",", "")) for field in line.split()] for line in TABLE_1.strip().splitlines()]
    assert [row["units"] for row in PAPER_TIMIT] == [line[0] for line in printed]
    for row, (_, *errors, gain) in zip(PAPER_TIMIT, printed, strict=True):
        assert tuple(row["test_error"]) == PAPER_COLUMNS
        assert [100 * error for error in row["test_error"].values()] == pytest.approx(errors, rel=1e-12)
        assert 100 * row["relative_gain"] == pytest.approx(gain, rel=1e-12)


def test_the_table_that_we_compare_with_adds_up() -> None:
    """The gain of every row follows from its errors, to the last digit but for one unit of rounding."""
    for row in TABLE_1.strip().splitlines():
        _, fixed, _, _, learned, gain = (float(field.replace(",", "")) for field in row.split())
        assert 100 * (fixed - learned) / fixed == pytest.approx(gain, abs=0.1)


def test_gains_by_hand() -> None:
    errors = {"esn": 0.8, "W_Wrec_m3": 0.6, "esn_ours": 0.5, "ours": 0.4, "W_m1": 0.0}
    columns: Any = {name: {"test_error": error} for name, error in errors.items()}
    assert relative_gain(columns, "esn", "W_Wrec_m3") == 0.25
    assert relative_gain(columns, "esn_ours", "ours") == 0.2
    thirds: Any = {"esn": {"test_error": 0.3}, "ours": {"test_error": 0.2}}
    assert relative_gain(thirds, "esn", "ours") == 0.3333
    assert relative_gain(columns, "esn", "W_Wrec_full") is None
    assert relative_gain(columns, "W_m1", "ours") is None  # no error is left to lower


def test_the_gains_of_the_paper_follow_from_its_errors() -> None:
    for row in PAPER_TIMIT:
        errors = row["test_error"]
        assert row["relative_gain"] == pytest.approx(1 - errors["W_Wrec_m3"] / errors["esn"], abs=2e-3)
        assert list(errors.values()) == sorted(errors.values(), reverse=True)


def test_averages_by_hand() -> None:
    def result(error: float, memory: float | None) -> Any:
        rest = {"seconds": 1.0, "frames_per_second": 2.0, "spectral_radius": 3.9, "epochs": 4}
        return {"test_error": error, "valid_error": error, "peak_memory_mb": memory, **rest}

    entry = averaged([(0, result(0.2, 100.0)), (1, result(0.4, None))])
    assert entry["test_error"] == pytest.approx(0.3)
    assert entry["test_error_deviation"] == pytest.approx(np.sqrt(0.02), abs=1e-6)
    assert entry["peak_memory_mb"] == 100.0
    assert entry["seeds"] == [0, 1]
    one = averaged([(5, result(0.2, None))])
    assert "test_error_deviation" not in one
    assert one["peak_memory_mb"] is None


SMALL = Plan(units=(8, 12), epochs=3, columns=tuple(COLUMNS), ours={"epochs": 3}, deep={"layers": 2, "epochs": 3})
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
            assert entry["weights"] > 100
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


def test_the_fixed_deep_network_is_the_learned_one_before_its_first_epoch(corpus: Corpus, finished: Run) -> None:
    fixed, learned = (CellStore(finished[0] / "cells", print).load_model(f"{c}-8-0") for c in ("esn_deep", "deep"))
    drawn = SMALL.estimator(Cell(8, "deep", 0)).set_params(epochs=0, readout="ridge")
    names = np.array(corpus.state_names)
    X, y = corpus.part("train")
    start = drawn.fit(list(X), [names[labels] for labels in y]).network_.reservoir.weights
    for name, value in start.items():
        np.testing.assert_array_equal(fixed.network_.reservoir.weights[name], value)
    for name in ("W_0", "1/W_in", "2/W_out", "1/alpha", "2/theta"):
        assert (learned.network_.reservoir.weights[name] != start[name]).any()
    row = finished[1]["rows"][0]
    assert row["columns"]["esn_deep"]["weights"] == row["columns"]["deep"]["weights"]
    assert row["columns"]["esn_deep"]["epochs"] == 0
    errors = [row["columns"][column]["test_error"] for column in ("esn_deep", "deep")]
    assert row["relative_gain_deep"] == pytest.approx(1 - errors[1] / errors[0], abs=1e-4)


def test_the_epoch_of_a_deep_network_is_chosen_on_the_validation_part(finished: Run) -> None:
    for units in (8, 12):
        cell = json.loads((finished[0] / "cells" / f"deep-{units}-0.json").read_text())["cell"]
        assert cell["valid_error"] == pytest.approx(min(row["valid_error"] for row in cell["history"]), abs=1e-6)


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


def test_finished_cells_are_reused(corpus: Corpus, finished: Run) -> None:
    out, table = finished
    again = RecordedProgress()
    assert table1.run(corpus, SMALL, out, again) == table
    assert again.fitted == []
    assert again.reused == SMALL.cells()
    one = table1.run(corpus, replace(SMALL, units=(12,)), out, Silent())
    assert json.loads((out / "table1.json").read_text()) == json.loads(json.dumps(one))
    assert [row["units"] for row in one["rows"]] == [12]


def test_the_first_table_on_disk_has_all_finished_cells(corpus: Corpus, tmp_path: Path) -> None:
    """A run with more seeds than the one before shows at any time what both have found."""
    columns = ("esn", "W_m1")
    table1.run(corpus, Plan(units=(5,), epochs=2, columns=columns), tmp_path, Silent())
    stop = RecordedProgress(("W_m1", "epoch", 1))
    with pytest.raises(KeyboardInterrupt):
        table1.run(corpus, Plan(units=(5,), epochs=2, seeds=2, columns=columns), tmp_path, stop)
    row = json.loads((tmp_path / "table1.json").read_text())["rows"][0]
    assert {name: entry["seeds"] for name, entry in row["columns"].items()} == {"esn": [0, 1], "W_m1": [0]}


def test_force_computes_all_cells_again(corpus: Corpus, tmp_path: Path) -> None:
    plan = Plan(units=(5,), epochs=2, columns=("esn", "W_m1"))
    first = table1.run(corpus, plan, tmp_path, Silent())
    again = RecordedProgress()
    second = table1.run(corpus, plan, tmp_path, again, force=True)
    assert again.fitted == plan.cells()
    assert without_clocks(first) == without_clocks(second)


def test_cells_with_other_settings_are_computed_again_and_reported(
    corpus: Corpus,
    tmp_path: Path,
) -> None:
    plan = Plan(units=(5,), epochs=2, columns=("esn", "W_m1"))
    table1.run(corpus, plan, tmp_path, Silent())
    again = RecordedProgress()
    table1.run(corpus, Plan(units=(5,), epochs=3, columns=("esn", "W_m1")), tmp_path, again)
    assert [cell.column for cell in again.reused] == ["esn"]
    assert any("W_m1-5-0.json was made with other settings" in text for text in again.notes)


def test_cells_of_another_corpus_are_computed_again(corpus: Corpus, tmp_path: Path) -> None:
    plan = Plan(units=(5,), columns=("esn",))
    table1.run(corpus, plan, tmp_path / "out", Silent())
    other = open_corpus(f"features:{write(tmp_path / 'other.npz', **arrays(seed=1))}")
    again = RecordedProgress()
    table1.run(other, plan, tmp_path / "out", again)
    assert again.reused == []


def test_a_damaged_cell_is_computed_again_and_reported(corpus: Corpus, tmp_path: Path) -> None:
    plan = Plan(units=(5,), columns=("esn",))
    first = table1.run(corpus, plan, tmp_path, Silent())
    path = tmp_path / "cells" / "esn-5-0.json"
    changed = json.loads(path.read_text())
    changed["cell"]["test_error"] += 0.01
    for content in ('{"fingerprint"', json.dumps(changed), "[" * 100_000, "3"):
        path.write_text(content)
        again = RecordedProgress()
        second = table1.run(corpus, plan, tmp_path, again)
        assert any("is damaged" in text for text in again.notes)
        assert without_clocks(first) == without_clocks(second)


@pytest.mark.parametrize("column", ["W_Wrec_m3", "ours", "deep"])
def test_a_stopped_cell_resumes_after_its_last_epoch(
    corpus: Corpus,
    tmp_path: Path,
    column: str,
) -> None:
    deep = {"layers": 2, "epochs": 4}
    plan = Plan(units=(6,), epochs=4, columns=("esn", column), ours={"epochs": 4}, deep=deep)
    whole = table1.run(corpus, plan, tmp_path / "whole", Silent())
    with pytest.raises(KeyboardInterrupt):
        table1.run(corpus, plan, tmp_path / "cut", RecordedProgress((column, "epoch", 2)))
    assert len(list((tmp_path / "cut" / "cells").glob("*.checkpoint"))) == 1
    again = RecordedProgress()
    resumed = table1.run(corpus, plan, tmp_path / "cut", again)
    assert again.epochs[column] == [3, 4]
    assert [cell.column for cell in again.reused] == ["esn"]
    assert without_clocks(resumed) == without_clocks(whole)
    assert list((tmp_path / "cut" / "cells").glob("*.checkpoint")) == []
    name = f"{column}-6-0.json"
    histories = [json.loads((tmp_path / o / "cells" / name).read_text())["cell"]["history"] for o in ("whole", "cut")]
    for row, same in zip(*histories, strict=True):
        assert {k: v for k, v in row.items() if k != "seconds"} == {k: v for k, v in same.items() if k != "seconds"}


def test_with_a_cluster_deep_networks_are_fitted_in_this_process(corpus: Corpus, tmp_path: Path) -> None:
    plan = Plan(units=(6,), columns=("esn_deep", "deep"), deep={"layers": 2, "epochs": 1})
    with executing_on(LocalExecutor()):  # another one than that of this process, as a cluster's is
        with_cluster = table1.run(corpus, plan, tmp_path / "cluster", Silent())
    assert without_clocks(table1.run(corpus, plan, tmp_path / "here", Silent())) == without_clocks(with_cluster)


def test_several_seeds_are_averaged(corpus: Corpus, tmp_path: Path) -> None:
    plan = Plan(units=(5,), seeds=3, columns=("esn",))
    table = table1.run(corpus, plan, tmp_path, Silent())
    each = [json.loads((tmp_path / f"cells/esn-5-{s}.json").read_text())["cell"]["test_error"] for s in range(3)]
    entry = table["rows"][0]["columns"]["esn"]
    assert entry["seeds"] == [0, 1, 2]
    assert entry["test_error"] == pytest.approx(np.mean(each), abs=1e-6)
    assert entry["test_error_deviation"] == pytest.approx(np.std(each, ddof=1), abs=1e-6)
    assert entry["test_errors"] == pytest.approx(each, abs=1e-6)


def test_states_without_training_frames_count_as_errors(tmp_path: Path) -> None:
    given = arrays()
    owner = np.repeat(np.arange(len(given["lengths"])), given["lengths"])
    valid = given["split"][owner] == "valid"
    labels, names = given["labels"].copy(), np.array([*given["state_names"], "zh_s2"])
    first = np.flatnonzero(valid)[0]
    labels[first] = len(names) - 1
    corpus = open_corpus(f"features:{write(tmp_path / 'x.npz', labels=labels, state_names=names)}")
    recorded = RecordedProgress()
    table = table1.run(corpus, Plan(units=(5,), columns=("esn",)), tmp_path / "out", recorded)
    assert any("zh_s2" in text for text in recorded.notes)
    assert table["rows"][0]["columns"]["esn"]["valid_error"] > 0


def test_an_impossible_plan_is_refused_before_anything_is_written(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="esm"):
        table1.run(corpus, Plan(columns=("esm",)), tmp_path / "out", Silent())
    assert not (tmp_path / "out").exists()
