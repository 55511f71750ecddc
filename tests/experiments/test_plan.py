"""Tests of the plan of Table 1."""

from __future__ import annotations

import pytest

from echolearn import ESNClassifier
from echolearn.experiments import plan as plans
from echolearn.experiments.plan import COLUMNS, Cell, Plan, full_plan, quick_plan
from echolearn.speech import timit


def test_columns_are_those_of_the_paper_and_ours() -> None:
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
        "esn_ours_ensemble": ("none", None, "all", "exact", "softmax"),
        "ours_ensemble": ("both", None, "all", "exact", "softmax"),
    }
    assert {e.random_state for e in given.values()} == {7}
    assert {(e.spectral_radius, e.ridge, e.step_size) for c, e in given.items() if COLUMNS[c].paper} == {
        (3.9, 1e-8, 0.07)
    }


def test_only_the_columns_of_ensembles_split_their_units() -> None:
    for units, networks in ((100, 2), (300, 2), (500, 2), (1_000, 4), (2_000, 8)):
        for column in COLUMNS:
            split = networks if column in ("esn_ours_ensemble", "ours_ensemble") else 1
            assert Plan().estimator(Cell(units, column, 0)).ensemble == split
    changed = Plan(columns=("ours", "ours_ensemble"), ours={"ensemble": 5})
    assert [changed.estimator(cell).ensemble for cell in changed.cells()[:2]] == [1, 5]
    Plan(ours={"ensemble": 1}).check()  # without columns of ensembles there is nothing to refuse


def test_fixed_and_learned_columns_of_ours_differ_in_learning_alone() -> None:
    plan = Plan(ours={"leak": (0.1, 1.0)})
    for fixed, learned in (("esn_ours", "ours"), ("esn_ours_ensemble", "ours_ensemble")):
        a, b = (plan.estimator(Cell(500, column, 3)).get_params(deep=False) for column in (fixed, learned))
        assert {name for name in a if a[name] != b[name]} == {"learn"}


def test_rows_and_columns_by_default() -> None:
    assert quick_plan() == Plan()
    assert quick_plan().columns == ("esn", "W_m1", "W_Wrec_m1", "W_Wrec_m3", "W_Wrec_full", "esn_ours", "ours")
    full = full_plan()
    assert (full.units, full.epochs) == ((100, 500, 2_000, 10_000, 30_000), 40)
    assert full.columns == quick_plan(columns=("all",)).columns == tuple(COLUMNS)
    for plan in (quick_plan, full_plan):
        assert plan((7,), 3, ("esn",)) == Plan(units=(7,), epochs=3, columns=("esn",))


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
    ],
)
def test_impossible_plans_are_refused(plan: Plan, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        plan.check()


def test_the_full_table_has_the_sizes_and_the_epochs_of_the_paper() -> None:
    assert plans.FULL_UNITS == (100, 500, 2_000, 10_000, 30_000)
    assert plans.FULL_EPOCHS == ESNClassifier.paper(10).epochs == 40
    assert plans.FULL_FRAMES == timit.FRAMES["train"] == 1_124_823
    assert plans.DEMO_FRAMES == 35_000
    assert (Plan().units, Plan().seeds, Plan().epochs) == ((100, 500), 1, 20)


def test_epochs_are_those_of_the_plan_in_the_paper_s_learned_columns_alone() -> None:
    epochs = {c: Plan(epochs=7).estimator(Cell(10, c, 0)).epochs for c in COLUMNS}
    ours = ESNClassifier(10).epochs
    wanted = {c: 7 if column.paper else ours for c, column in COLUMNS.items()}
    assert epochs == {**wanted, "esn": 40}
