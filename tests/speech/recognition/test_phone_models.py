"""Durations: counted by hand, proper probabilities, and where one phone ends and the next begins."""

from collections import Counter

import numpy as np
import pytest

from echolearn.speech.recognition._phone_models import hazards, learn_phone_models, phone_segments, state_runs

NAMES = ["a_s2", "a_s3", "a_s4", "b_s2", "b_s3", "b_s4", "sil"]


def test_runs():
    assert [(r.label, r.start, r.length) for r in state_runs(np.array([3, 3, 1, 1, 1, 3]))] == [
        (3, 0, 2),
        (1, 2, 3),
        (3, 5, 1),
    ]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0, 1, 2, 3], [("a", 0, 3), ("b", 3, 4)]),
        ([0, 2, 0], [("a", 0, 2), ("a", 2, 3)]),  # states begin again: the phone is repeated
        ([2, 0], [("a", 0, 1), ("a", 1, 2)]),
        ([1, 1], [("a", 0, 2)]),
        ([6, 6, 0], [("sil", 0, 2), ("a", 2, 3)]),
    ],
)
def test_segments(labels, expected):
    assert phone_segments(np.array(labels), NAMES) == expected


def test_hazards_without_prior_are_the_shares_that_end(monkeypatch):
    monkeypatch.setattr("echolearn.speech.recognition._phone_models.PRIOR_OBSERVATIONS", 0.0)
    found = hazards(Counter({1: 2, 2: 4, 5: 2}), positions=3)
    # 2 of 8 end after one frame, 4 of 6 after two; the last two last from the third to the fifth frame: 2 of 6
    np.testing.assert_allclose(found, [2 / 8, 4 / 6, 2 / 6])


def test_hazards_of_a_state_never_seen_are_proper_probabilities():
    found = hazards(Counter())
    assert ((found > 0) & (found < 1)).all()


def test_probabilities_of_a_phone_add_up_to_one_and_never_lead_back():
    labels = [np.array([0, 0, 1, 2, 2, 2, 3, 5, 6, 6]), np.array([1, 1, 2, 3, 4, 5, 6])]
    models = {model.name: model for model in learn_phone_models(labels, NAMES)}
    assert list(models) == ["a", "b", "sil"]
    for model in models.values():
        n = len(model.labels)
        assert model.entry.sum() == pytest.approx(1)
        np.testing.assert_allclose(model.next.sum(axis=1), 1)
        assert (np.tril(model.next[:, :n]) == 0).all()
        assert ((model.leaving > 0) & (model.leaving < 1)).all()
    assert models["a"].labels == (0, 1, 2)
    assert models["a"].entry[1] > models["b"].entry[1]  # one a begins with its second state, no b does
    assert models["b"].next[0, 2] > models["a"].next[0, 2]  # one b leaves its second state out


def test_longer_states_are_left_later():
    short, long = learn_phone_models([np.r_[[0] * 2, [3] * 9] for _ in range(50)], NAMES)[:2]
    assert short.leaving[0, 1] > 0.8
    assert long.leaving[0, 1] < 0.1
