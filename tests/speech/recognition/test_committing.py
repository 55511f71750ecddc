"""Tokens that become final while a search runs."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echolearn.speech.recognition.committing import GRID, CommittingSearch
from echolearn.speech.recognition.decoder import Decoder, DecodingWeights
from echolearn.speech.recognition.graph import phone_graph, word_graph
from echolearn.speech.recognition.lexicon import Lexicon
from echolearn.speech.recognition.ngrams import estimate
from echolearn.speech.recognition.phonemodels import learn_phone_models

PHONES = ["n", "ow", "y", "eh", "sil"]
NAMES = [f"{phone}_s{state}" for phone in PHONES for state in (2, 3, 4)]
SILENT = [12, 13, 14]


def labels_of(phones, frames=2):
    return np.concatenate([np.repeat(3 * PHONES.index(p) + np.arange(3), frames) for p in phones])


@cache
def decoder(kind, beam=20.0):
    spoken = ["sil n ow sil", "sil y eh n ow sil", "n ow n sil y eh"]
    models = learn_phone_models([labels_of(text.split()) for text in spoken], NAMES)
    if kind == "phones":
        graph = phone_graph(models, estimate([text.split() for text in spoken], order=2))
    else:
        lexicon = Lexicon({"NO": (("n", "ow"),), "YES": (("y", "eh"),), "KNOWN": (("n", "ow", "n"),)})
        graph = word_graph(models, lexicon, estimate([["NO", "YES"], ["KNOWN", "NO"]], order=2), silence="sil")
    return Decoder(graph, np.full(len(NAMES), 1 / len(NAMES)), DecodingWeights(beam=beam, language_weight=1.0))


def noisy(rng, phones, sharpness=3.0, frames=4):
    labels = labels_of(phones, frames)
    scores = sharpness * np.eye(len(NAMES))[labels] + rng.normal(size=(len(labels), len(NAMES)))
    return scores.astype(np.float32)


def in_pieces(one, frames, cuts, pause):
    search = CommittingSearch(one.search(), SILENT, pause)
    final = []
    for piece in np.split(frames, sorted(cuts)):
        more, _ = search.advance(piece)
        final += more
    return final + search.finish()


@pytest.mark.parametrize("kind", ["phones", "words"])
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 999), st.lists(st.integers(0, 700), max_size=25))
def test_the_final_tokens_are_those_of_one_search_over_the_whole(kind, seed, cuts):
    rng = np.random.default_rng(seed)
    frames = noisy(rng, [PHONES[k] for k in rng.integers(5, size=60)], sharpness=rng.uniform(0.5, 4.0))
    one = decoder(kind)
    search = one.search()
    search.advance(frames)
    assert in_pieces(one, frames, cuts, None) == search.best()[0]


@pytest.mark.parametrize("kind", ["phones", "words"])
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 999), st.lists(st.integers(0, 700), max_size=25))
def test_pieces_do_not_matter_to_pauses(kind, seed, cuts):
    rng = np.random.default_rng(seed)
    phones = [p for k in rng.integers(4, size=30) for p in ([PHONES[k]] if k else ["sil", "sil", "sil"])]
    frames = noisy(rng, phones, sharpness=rng.uniform(0.5, 4.0))
    one = decoder(kind)
    assert in_pieces(one, frames, cuts, 12) == in_pieces(one, frames, [], 12)


@pytest.mark.parametrize("kind", ["phones", "words"])
def test_what_is_final_is_a_beginning_of_the_best_path_at_any_time(kind):
    rng = np.random.default_rng(0)
    frames = noisy(rng, [PHONES[k] for k in rng.integers(5, size=60)])
    one = decoder(kind)
    search, whole = CommittingSearch(one.search(), SILENT), one.search()
    final = []
    for piece in np.split(frames, range(7, len(frames), 7)):
        final += search.advance(piece)[0]
        whole.advance(piece)
        live = np.flatnonzero(whole.scores > -np.inf)
        paths = [whole.tokens(int(whole.record[node])) for node in live]
        assert all(path[: len(final)] == final for path in paths)
        if len(final) < min(map(len, paths)):  # nothing that all paths share is kept back
            assert len({path[len(final)] for path in paths}) > 1
        best = whole.tokens(int(whole.record[int(np.argmax(whole.scores[: whole.graph.emitting]))]))
        assert final + search.partial() == best


def test_what_was_said_before_a_pause_is_final_at_the_pause():
    one = decoder("words", beam=1000.0)  # so that no path dies by itself
    search = CommittingSearch(one.search(), SILENT, pause=20)
    spoken = noisy(np.random.default_rng(0), ["sil", "n", "ow"])
    assert search.advance(spoken) == ([], False)
    silence = noisy(np.random.default_rng(1), ["sil"], frames=30)
    found = [(search.search.frame, *search.advance(silence[k : k + 1])) for k in range(len(silence))]
    pauses = [(frame, final) for frame, final, pause in found if pause]
    assert [[token.name for token in final] for _, final in pauses] == [["NO"]]
    end = pauses[0][1][0].end
    assert 20 <= pauses[0][0] + 1 - end < 20 + GRID
    assert not any(final for frame, final, pause in found if not pause)


def test_without_a_pause_nothing_is_given_up():
    one = decoder("words", beam=1000.0)
    search = CommittingSearch(one.search(), SILENT)
    final, pause = search.advance(noisy(np.random.default_rng(0), ["sil", "n", "ow", "sil", "sil", "sil", "sil"]))
    assert (final, pause) == ([], False)


def test_a_long_stream_takes_no_more_memory_than_a_short_one():
    rng = np.random.default_rng(0)
    one = decoder("phones")
    search = CommittingSearch(one.search(), SILENT)
    sizes, tokens = [], 0
    for _ in range(240):
        phones = [PHONES[k] for k in rng.integers(5, size=42)]
        tokens += len(search.advance(noisy(rng, phones))[0])  # 20 minutes altogether
        sizes.append(search.search.records.nbytes)
    assert search.search.frame == 240 * 42 * 12
    assert tokens > 5000
    assert sizes[-1] == sizes[10] < 2_000_000
