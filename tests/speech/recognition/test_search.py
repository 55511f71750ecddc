"""The compiled search against a slow one on random graphs, whole and in pieces."""

import numpy as np
import pytest

from echolearn.speech.recognition import estimate
from echolearn.speech.recognition._graph import GraphBuilder, phone_graph
from echolearn.speech.recognition._phone_models import learn_phone_models
from echolearn.speech.recognition._search import Search
from reference.decoding import best_path


def add_arc(builder, source, target, *, duration=0.0, language=0.0, token=-1):
    builder.add_pairs(np.array([source]), np.array([target]), np.array([duration]), language, token)


def random_graph(rng):
    """Return a random graph of some nodes and anchors in which every anchor may end an utterance."""
    builder = GraphBuilder()
    nodes = [builder.add_node(int(rng.integers(4))) for _ in range(rng.integers(2, 9))]
    anchors = [builder.add_anchor() for _ in range(rng.integers(1, 5))]
    for node in nodes:
        for other in rng.choice(nodes, size=2):
            add_arc(builder, node, int(other), duration=float(rng.normal()))
        if rng.random() < 0.6:
            add_arc(
                builder, node, int(rng.choice(anchors)), duration=float(rng.normal()), token=int(rng.integers(-1, 3))
            )
    for k, anchor in enumerate(anchors):
        add_arc(builder, anchor, int(rng.choice(nodes)), language=float(rng.normal()))
        if k + 1 < len(anchors):
            add_arc(builder, anchor, anchors[int(rng.integers(k + 1, len(anchors)))], language=float(rng.normal()))
        builder.final[anchor] = float(rng.normal())
    return builder.build(anchors[0], ["a", "b", "c"])


@pytest.mark.parametrize("seed", range(60))
def test_the_search_finds_what_a_slow_search_finds(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng)
    weights = graph.weights(duration_weight=0.7, language_weight=1.3, penalty=0.2)
    frames = rng.normal(size=(rng.integers(1, 9), 4)).astype(np.float32)
    search = Search(graph, weights, 1.3)
    search.advance(frames)
    found, score = search.best()
    expected, expected_score = best_path(graph, weights, 1.3, frames)
    if expected_score == -np.inf:
        assert score == -np.inf
        assert found == []
    else:
        assert score == pytest.approx(expected_score, abs=1e-4)
        assert [(token.name, token.end) for token in found] == expected


@pytest.mark.parametrize("seed", range(10))
def test_a_search_in_pieces_is_the_same_search(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng)
    weights = graph.weights(duration_weight=1.0, language_weight=1.0, penalty=0.0)
    frames = rng.normal(size=(20, 4)).astype(np.float32)
    whole, pieces = Search(graph, weights, beam=3.0), Search(graph, weights, beam=3.0)
    whole.advance(frames)
    for piece in np.split(frames, [1, 7, 8, 15]):
        pieces.advance(piece)
    assert pieces.best() == whole.best()
    np.testing.assert_array_equal(pieces.scores, whole.scores)


@pytest.mark.parametrize("seed", range(10))
def test_a_long_stream_is_searched_as_exactly_as_a_short_one(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng)
    weights = graph.weights(duration_weight=1.0, language_weight=1.0, penalty=0.0)
    frames = rng.normal(size=(5000, 4)).astype(np.float32)
    near, far = Search(graph, weights), Search(graph, weights)
    near.advance(frames)
    far.advance(frames - np.float32(100.0))
    assert far.best()[0] == near.best()[0]
    if near.best()[1] > -np.inf:
        assert far.best()[1] == pytest.approx(near.best()[1] - 100 * len(frames), abs=0.1)


NAMES = ["a_s2", "a_s3", "a_s4", "b_s2", "b_s3", "b_s4", "sil_s2", "sil_s3", "sil_s4"]


def utterances():
    return [np.repeat([6, 7, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8], 3), np.repeat([6, 7, 8, 3, 4, 5, 0, 1, 2, 6, 7, 8], 2)]


def emissions(labels, wrong=0.01):
    P = np.full((len(labels), len(NAMES)), wrong)
    P[np.arange(len(labels)), labels] = 1 - wrong * (len(NAMES) - 1)
    return np.log(P).astype(np.float32)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_certain_emissions_give_the_phones_that_were_spoken(order):
    phones = learn_phone_models(utterances(), NAMES)
    transcripts = [["sil", "a", "b", "sil"], ["sil", "b", "a", "sil"]]
    graph = phone_graph(phones, estimate(transcripts, order=order))
    search = Search(graph, graph.weights(duration_weight=1.0, language_weight=1.0, penalty=0.0))
    labels = np.repeat([6, 7, 8, 0, 1, 2, 0, 1, 2, 6, 7, 8], 3)
    search.advance(emissions(labels, wrong=1e-9))
    assert [token[:3] for token in search.best()[0]] == [
        ("sil", 0, 9),
        ("a", 9, 18),
        ("a", 18, 27),
        ("sil", 27, 36),
    ]


def test_the_language_model_decides_where_emissions_do_not():
    phones = learn_phone_models(utterances(), NAMES)
    graph = phone_graph(phones, estimate([["sil", "a", "sil"]] * 9 + [["sil", "b", "sil"]], order=2))
    labels = np.repeat([6, 7, 8, 0, 1, 2, 6, 7, 8], 3)
    unclear = emissions(labels)
    unclear[9:18, 0:6] = 0.0
    search = Search(graph, graph.weights(duration_weight=1.0, language_weight=1.0, penalty=0.0))
    search.advance(unclear)
    assert [token.name for token in search.best()[0]] == ["sil", "a", "sil"]


def test_a_larger_penalty_gives_fewer_tokens():
    phones = learn_phone_models(utterances(), NAMES)
    graph = phone_graph(phones, estimate([["sil", "a", "b", "sil"], ["sil", "b", "a", "sil"]], order=2))
    frames = np.random.default_rng(0).normal(size=(200, len(NAMES))).astype(np.float32)

    def tokens(penalty):
        search = Search(graph, graph.weights(duration_weight=1.0, language_weight=1.0, penalty=penalty))
        search.advance(frames)
        return len(search.best()[0])

    assert tokens(-10.0) > tokens(0.0) > tokens(10.0) > 0
