"""Decisions about segments against every way to cut an utterance."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from echolearn.speech.recognition.decoder import DecodingWeights, scaled_logarithms
from echolearn.speech.recognition.segments import duration_probabilities, learn_segments, segment_error
from reference.segments import best_segments, inside

NAMES = ["a_s2", "a_s3", "a_s4", "b_s2", "b_s3", "sil"]


def labels():
    return [np.array([5, 0, 1, 1, 2, 3, 4, 5]), np.array([5, 5, 3, 3, 4, 0, 2, 5]), np.array([5, 0, 1, 2, 0, 1, 2, 5])]


def decoder(**weights):
    return replace(learn_segments(labels(), NAMES), weights=DecodingWeights(**weights))


@pytest.mark.parametrize("seed", range(12))
def test_the_best_segments_of_all(seed):
    rng = np.random.default_rng(seed)
    one = decoder(prior_exponent=0.4, language_weight=1.3, duration_weight=0.8, penalty=0.3)
    P = rng.dirichlet(np.full(len(NAMES), 0.4), size=rng.integers(1, 6))
    _, expected = best_segments(one, scaled_logarithms(P, one.priors, 0.4))
    assert [token[:3] for token in one.decode(P)] == expected


@pytest.mark.parametrize("seed", range(12))
def test_a_known_segment_is_the_phone_of_the_best_way_through_its_states(seed):
    rng = np.random.default_rng(seed)
    one = decoder(prior_exponent=0.4, duration_weight=0.8)
    P = rng.dirichlet(np.full(len(NAMES), 0.4), size=6)
    frames = scaled_logarithms(P, one.priors, 0.4)
    bounds = [(0, 1), (1, 4), (4, 6)]
    expected = []
    for start, end in bounds:
        scores = [
            inside(frames[start:end], model, 0.8) + 0.8 * lasting[min(end - start, len(lasting)) - 1]
            for model, lasting in zip(one.models, one.durations, strict=True)
        ]
        expected.append(one.models[int(np.argmax(scores))].name)
    assert one.classify(P, bounds) == expected


def sure(spoken, wrong=1e-6):
    P = np.full((len(spoken), len(NAMES)), wrong)
    P[np.arange(len(spoken)), spoken] = 1
    return P / P.sum(axis=1, keepdims=True)


def test_sure_probabilities_give_the_segments_that_were_spoken():
    spoken = np.array([5, 0, 1, 2, 0, 2, 3, 3, 4, 5])
    found = [token[:3] for token in decoder().decode(sure(spoken))]
    assert found == [("sil", 0, 1), ("a", 1, 4), ("a", 4, 6), ("b", 6, 9), ("sil", 9, 10)]
    assert decoder().decode(np.empty((0, len(NAMES)))) == []


def test_no_segment_is_longer_than_its_phone_may_be():
    found = decoder(penalty=50.0).decode(sure(np.full(40, 5)))
    longest = {model.name: len(one) for model, one in zip(decoder().models, decoder().durations, strict=True)}
    assert found[-1].end == 40
    assert all(token.end - token.start <= longest[token.name] for token in found)


def test_durations_decide_where_probabilities_do_not():
    P = np.full((6, len(NAMES)), 1 / len(NAMES))
    P[0], P[-1] = sure(np.array([5]))[0], sure(np.array([5]))[0]
    one = decoder(language_weight=0.0, prior_exponent=0.0, duration_weight=1.0)
    short = replace(one, durations=tuple(np.log([0.9, 0.1 - 4e-9, 1e-9, 1e-9, 1e-9, 1e-9]) for _ in one.durations))
    long = replace(one, durations=tuple(np.log([0.1 - 4e-9, 1e-9, 1e-9, 0.9, 1e-9, 1e-9]) for _ in one.durations))
    assert sorted(t.end - t.start for t in long.decode(P)) == [1, 1, 4]
    assert max(t.end - t.start for t in short.decode(P)) <= 2


def test_errors_of_known_segments_are_counted():
    truth = np.array([5, 0, 1, 2, 3, 4, 0, 0, 5])
    P = sure(truth)
    P[4:6] = sure(np.array([0, 1]))  # b sounds like a
    assert segment_error([P], [truth], NAMES) == 1 / 3
    assert segment_error([P], [truth], NAMES, decoder=decoder()) == 1 / 3
    assert segment_error([P], [truth], NAMES, phone_map={"b": "a"}) == 0
    assert segment_error([P], [truth], NAMES, phone_map={"b": None}) == 0
    assert segment_error([P], [truth], NAMES, ignore=()) == 1 / 5
    assert math.isnan(segment_error([P[:1]], [truth[:1]], NAMES))


def test_states_count_in_their_order():
    P = sure(np.array([0, 1, 2]), wrong=0.2)
    P[:, 3:5] = 0.2
    truth = [np.array([0, 1, 2])]
    assert segment_error([P], truth, NAMES) == 0
    assert segment_error([P[::-1]], truth, NAMES) == 1  # the same frames backwards are more like b


def test_durations_have_a_sum_of_one_and_lean_on_a_curve_where_they_are_few():
    many = np.exp(duration_probabilities(Counter({3: 10_000, 9: 10_000})))
    few = np.exp(duration_probabilities(Counter({3: 1, 9: 1})))
    assert many.sum() == pytest.approx(1)
    assert few.sum() == pytest.approx(1)
    assert len(many) == len(few) == 14
    assert many[[2, 8]] == pytest.approx([0.5, 0.5], abs=0.01)
    assert few[4] > 0.05 > 0.01 > many[4]
