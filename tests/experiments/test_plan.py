"""Tests of the plan of Table 1."""

from __future__ import annotations

import pytest

from echolearn.experiments.plan import COLUMNS, Cell, Plan


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
    }
    assert {e.random_state for e in given.values()} == {7}
    assert {(e.spectral_radius, e.ridge, e.step_size) for c, e in given.items() if COLUMNS[c].paper} == {
        (3.9, 1e-8, 0.07)
    }


def test_our_learned_column_says_how_many_networks_share_its_units() -> None:
    for units, networks in ((100, 1), (300, 1), (500, 2), (2_000, 8)):
        assert Plan().estimator(Cell(units, "ours", 0)).ensemble == networks
        for column in set(COLUMNS) - {"ours"}:
            assert Plan().estimator(Cell(units, column, 0)).ensemble == 1
    assert Plan(ours={"ensemble": 1}).estimator(Cell(500, "ours", 0)).ensemble == 1


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
    ],
)
def test_impossible_plans_are_refused(plan: Plan, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        plan.check()
