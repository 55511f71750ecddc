"""Tests of the estimated cost of a table."""

from __future__ import annotations

import pytest

from echolearn import ESNClassifier
from echolearn.paper import estimate
from echolearn.paper.cells import costs_of
from echolearn.paper.estimate import CorpusSize, cost_of_cell, memory_text
from echolearn.paper.table1 import FULL_FRAMES, Cell, Plan, estimate_text, plan_of
from echolearn.speech import Corpus
from echolearn.training.cost_model import TYPICAL_RATES


def seconds(column: str, units: int = 500, frames: int = 35_000) -> float:
    estimator = Plan().estimator(Cell(units, column, 0))
    return cost_of_cell(estimator, CorpusSize.of_synthetic(frames), TYPICAL_RATES).seconds


def test_the_size_of_a_corpus_is_counted(corpus: Corpus) -> None:
    size = CorpusSize.of(corpus)
    assert size.data.lengths.sum() == corpus.frames["train"]
    assert size.data.held_out == corpus.frames["valid"]
    assert size.data.n_in == corpus.features[0].shape[1]
    assert size.data.n_out == len(corpus.state_names)


def test_the_size_of_synthetic_speech_is_known_before_it_is_made() -> None:
    size = CorpusSize.of_synthetic(FULL_FRAMES)
    assert abs(size.data.lengths.sum() - FULL_FRAMES) < 1_000
    assert size.data.held_out == 122_487


def test_learning_more_units_and_more_data_cost_more() -> None:
    assert seconds("esn") < seconds("W_Wrec_m3") < seconds("W_Wrec_m3", units=1_000)
    assert seconds("esn_ours") < seconds("ours") < seconds("ours", frames=70_000)
    assert seconds("esn_ours_ensemble") < seconds("ours_ensemble")


@pytest.mark.parametrize("threads", [1, 2])
def test_the_networks_of_an_ensemble_share_the_cores(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echolearn.training.cost_model.thread_count", lambda: threads)
    one = seconds("ours_ensemble", units=500)
    assert seconds("ours_ensemble", units=1_000) == pytest.approx(2 * one)


def test_every_cell_has_a_cost_and_the_full_table_can_be_estimated() -> None:
    plan, size = plan_of(full=True), CorpusSize.of_synthetic(FULL_FRAMES)
    costs = costs_of(plan, size, TYPICAL_RATES)
    assert list(costs) == plan.cells()
    features = 4 * 117 * sum(size.frames.values())
    assert all(cost.seconds > 0 and cost.nbytes > features for cost in costs.values())
    assert costs[Cell(30_000, "W_Wrec_m3", 0)].seconds > 10 * costs[Cell(30_000, "esn", 0)].seconds


def test_the_text_has_every_cell_and_marks_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(units=(100, 2_000), seeds=3, columns=("esn", "ours"))
    monkeypatch.setattr(estimate, "available_memory", lambda: 1e12)
    lines = estimate_text(plan, CorpusSize.of_synthetic(35_000), TYPICAL_RATES).splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["100", "2,000"]
    assert all(line.count(" GB") == 2 for line in lines[2:4])
    assert lines[4].startswith("all 12 cells (3 seeds): about ")
    monkeypatch.setattr(estimate, "available_memory", lambda: 5e8)
    lines = estimate_text(plan, CorpusSize.of_synthetic(35_000), TYPICAL_RATES).splitlines()
    assert lines[2].count("!") == 0
    assert lines[3].count("!") == 2
    assert lines[-1].startswith("!: more than the 0.5 GB that are free")


@pytest.mark.parametrize(("free", "expected"), [(2e10, 11.5), (1e10, 0.0)])
def test_memory_of_kept_states_counts_where_there_is_room_for_them(
    free: float, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The states of 30,000 units in 191,934 frames of 2 bytes are kept in 20 GB, and computed again in 10."""
    for module in ("echolearn.readout.large.conjugate_gradients", "echolearn.paper.estimate"):
        monkeypatch.setattr(f"{module}.available_memory", lambda: free)
    size = CorpusSize.of_synthetic(191_934)
    cost = cost_of_cell(ESNClassifier.paper(30_000), size, TYPICAL_RATES)
    assert cost.kept_bytes / 1e9 == pytest.approx(expected, rel=0.01)
    assert memory_text(cost) == f"{cost.nbytes / 1e9 + cost.kept_bytes / 1e9:.1f} GB"
    assert cost_of_cell(ESNClassifier.paper(500), size, TYPICAL_RATES).kept_bytes == 0
