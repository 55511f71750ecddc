"""Tests of the plan of `echolearn phones`."""

from __future__ import annotations

import re
from typing import Any

import pytest

from echolearn import ESNClassifier, StackedClassifier
from echolearn.experiments.estimate import CorpusSize
from echolearn.experiments.phone_plan import SYSTEMS, PhonePlan, cost_of_system, decoding_seconds, estimate_text
from echolearn.experiments.phone_scoring import TRIALS, PhoneScoring
from echolearn.speech.corpus import Corpus
from echolearn.speech.recognition._tuning import tune
from echolearn.training.cost_model import TYPICAL


def test_systems_differ_in_what_they_are_called_by_alone() -> None:
    plan = PhonePlan(units=21, seed=3, changes={"epochs": 2})
    fixed, learned, both, stack = (plan.estimator(system) for system in SYSTEMS)
    own = learned.get_params(deep=False)
    assert own == ESNClassifier(21, random_state=3, epochs=2).get_params(deep=False)
    assert fixed.get_params(deep=False) == {**own, "learn": "none"}
    assert both.get_params(deep=False) == {**own, "bidirectional": True}
    assert isinstance(stack, StackedClassifier)
    assert [layer.hidden_units for layer in stack.layers] == [11, 10]  # type: ignore[union-attr]
    assert [layer.epochs for layer in stack.layers] == [2, 2]  # type: ignore[union-attr]
    assert stack.random_state == 3


def test_epochs_of_a_stack_are_those_of_its_layers_and_the_joint_ones() -> None:
    plan = PhonePlan(units=20, changes={"epochs": 4})
    assert [plan.epochs(system, 100) for system in SYSTEMS] == [0, 4, 4, 4 + 4 + 6]
    assert plan.layer_epochs("stacked", 100) == [4, 4]
    assert plan.layer_epochs("learned", 100) == []


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
        ({"changes": {"ensemble": 2}}, "leave stacked out"),
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
    costs = {system: cost_of_system(plan, system, size, TYPICAL).seconds for system in SYSTEMS}
    assert 0 < costs["fixed"] < costs["learned"]
    assert costs["stacked"] > 0
    text = estimate_text(plan, size, TYPICAL)
    assert [line.split()[0] for line in text.splitlines()[2:6]] == list(SYSTEMS)
    minutes, seconds = map(int, re.findall(r"about (\d+):(\d+)", text)[0])
    assert 60 * minutes + seconds == pytest.approx(sum(costs.values()) + 4 * decoding_seconds(size, None), abs=2)


def test_the_time_of_decoding_is_that_of_the_trials_on_valid_and_of_one_pass_over_test() -> None:
    size = CorpusSize.of_synthetic(60_000)
    more_valid = CorpusSize(size.data, {**size.frames, "valid": size.frames["valid"] + 25_000})
    more_test = CorpusSize(size.data, {**size.frames, "test": size.frames["test"] + 25_000})
    trials = decoding_seconds(more_valid, 2) - decoding_seconds(size, 2)
    assert trials == pytest.approx(TRIALS * (decoding_seconds(more_test, 2) - decoding_seconds(size, 2)))
    assert decoding_seconds(size, 3) == pytest.approx(3 * decoding_seconds(size, 2))
    assert decoding_seconds(size, 2) < decoding_seconds(size, None)


def test_trials_are_those_of_a_tuning_that_finds_nothing_better(corpus: Corpus) -> None:
    tried = []
    tune(PhoneScoring.of(corpus).decoder, lambda found: tried.append(found) or 0.5, {})  # type: ignore[func-returns-value]
    assert len(tried) == TRIALS
