"""Phones of known segments against every way through their states."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from echolearn.speech.recognition._decoder import scaled_logarithms
from echolearn.speech.recognition._segments import duration_probabilities, learn_segments, segment_error
from reference.segments import inside

NAMES = ["a_s2", "a_s3", "a_s4", "b_s2", "b_s3", "sil"]


def labels():
    return [np.array([5, 0, 1, 1, 2, 3, 4, 5]), np.array([5, 5, 3, 3, 4, 0, 2, 5]), np.array([5, 0, 1, 2, 0, 1, 2, 5])]


def classifier(**changes):
    return replace(learn_segments(labels(), NAMES), **changes)


@pytest.mark.parametrize("seed", range(12))
def test_a_known_segment_is_the_phone_of_the_best_way_through_its_states(seed):
    rng = np.random.default_rng(seed)
    one = classifier(prior_exponent=0.4)
    P = rng.dirichlet(np.full(len(NAMES), 0.4), size=6)
    frames = scaled_logarithms(P, one.priors, 0.4)
    bounds = [(0, 1), (1, 4), (4, 6)]
    expected = []
    for start, end in bounds:
        scores = [
            inside(frames[start:end], model) + lasting[min(end - start, len(lasting)) - 1]
            for model, lasting in zip(one.models, one.durations, strict=True)
        ]
        expected.append(one.models[int(np.argmax(scores))].name)
    assert one.classify(P, bounds) == expected


def sure(spoken, wrong=1e-6):
    P = np.full((len(spoken), len(NAMES)), wrong)
    P[np.arange(len(spoken)), spoken] = 1
    return P / P.sum(axis=1, keepdims=True)


def test_durations_decide_where_probabilities_do_not():
    P = np.full((5, len(NAMES)), 1 / len(NAMES))
    one = classifier(prior_exponent=0.0)
    usual, rare = np.log([1e-9, 1e-9, 1e-9, 0.9]), np.log([0.9, 1e-9, 1e-9, 1e-9])
    for long in range(len(one.models)):
        lasting = tuple(usual if k == long else rare for k in range(len(one.models)))
        assert replace(one, durations=lasting).classify(P, [(0, 4)]) == [one.models[long].name]


def test_errors_of_known_segments_are_counted():
    truth = np.array([5, 0, 1, 2, 3, 4, 0, 0, 5])
    P = sure(truth)
    P[4:6] = sure(np.array([0, 1]))  # b sounds like a
    one = classifier()
    assert segment_error(one, [P], [truth], NAMES) == 1 / 3
    assert segment_error(one, [P], [truth], NAMES, phone_map={"b": "a"}) == 0
    assert segment_error(one, [P], [truth], NAMES, phone_map={"b": None}) == 0
    assert math.isnan(segment_error(one, [P[:1]], [truth[:1]], NAMES))


def test_states_count_in_their_order():
    P = sure(np.array([0, 1, 2]), wrong=0.2)
    P[:, 3:5] = 0.2
    truth = [np.array([0, 1, 2])]
    one = classifier(prior_exponent=0.0, durations=(np.zeros(3),) * 3)
    assert segment_error(one, [P], truth, NAMES) == 0
    assert segment_error(one, [P[::-1]], truth, NAMES) == 1  # the same frames backwards are more like b


def test_durations_have_a_sum_of_one_and_lean_on_a_curve_where_they_are_few():
    many = np.exp(duration_probabilities(Counter({3: 10_000, 9: 10_000})))
    few = np.exp(duration_probabilities(Counter({3: 1, 9: 1})))
    assert many.sum() == pytest.approx(1)
    assert few.sum() == pytest.approx(1)
    assert len(many) == len(few) == 14
    assert many[[2, 8]] == pytest.approx([0.5, 0.5], abs=0.01)
    assert few[4] > 0.05 > 0.01 > many[4]
