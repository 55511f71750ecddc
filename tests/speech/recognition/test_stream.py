"""Recognition of sound while it arrives."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toyspeech
from echolearn.speech import mfcc
from echolearn.speech._audio import as_samples
from echolearn.speech._feature_recipe import FeatureRecipe
from echolearn.speech.recognition import Lexicon, Recognizer, estimate
from echolearn.speech.recognition._decoder import Decoder, DecodingWeights
from echolearn.speech.recognition._graph import phone_graph, word_graph
from echolearn.speech.recognition._phone_models import learn_phone_models
from echolearn.speech.recognition._stream import PAUSE_GRID_FRAMES, StreamSearch
from toyspeech import RATE


def final_tokens(stream, pieces):
    """Return all final tokens of a stream of pieces."""
    final = [token for piece in pieces for token in stream.push(piece).final]
    return (*final, *stream.finish().final)


@pytest.fixture(scope="module")
def recording():
    """Some sentences with pauses between them, as one recording."""
    rng = np.random.default_rng(5)
    said = [toyspeech.sentence(rng) for _ in range(4)]
    pieces = [toyspeech.say(words, rng)[0] for words in said]
    silence = (rng.normal(size=12_000) * 60).astype(np.float32)
    return said, np.concatenate([part for piece in pieces for part in (piece, silence)])


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("pause", [None, 0.5])
@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(0, 100_000), max_size=30))
def test_any_pieces_give_what_the_whole_recording_gives(recording, deep, words, pause, cuts):
    _, samples = recording
    recognizer = toyspeech.recognizer(deep=deep)
    found = final_tokens(recognizer.stream(words=words, pause=pause, rate=RATE), np.split(samples, sorted(cuts)))
    offline = recognizer.recognize(samples, pause=pause, rate=RATE)
    assert found == (offline.words if words else offline.phones)


def test_pieces_of_one_sample_and_of_ten_milliseconds(recording):
    _, samples = recording
    recognizer = toyspeech.recognizer()
    part = samples[:20_000]
    offline = recognizer.recognize(part, rate=RATE).words
    assert final_tokens(recognizer.stream(pause=None, rate=RATE), np.split(part, range(160, len(part), 160))) == offline
    short = part[:2_000]
    assert (
        final_tokens(recognizer.stream(pause=None, rate=RATE), np.split(short, range(1, 2_000)))
        == recognizer.recognize(short, rate=RATE).words
    )


def test_sentences_are_final_at_pauses(recording):
    said, samples = recording
    stream = toyspeech.recognizer().stream(pause=0.4, rate=RATE)
    sentences, seconds = [], []
    for piece in np.split(samples, range(1600, len(samples), 1600)):
        update = stream.push(piece)
        assert update.text.startswith(update.stable)
        if update.pause:
            sentences.append(update.stable)
            seconds.append(update.seconds)
    assert sentences == [" ".join(words) for words in said]
    assert stream.finish().final == ()
    assert seconds == sorted(seconds)


def test_partial_results_come_before_final_ones(recording):
    said, samples = recording
    stream = toyspeech.recognizer().stream(pause=0.5, rate=RATE)
    partial = []
    for piece in np.split(samples, range(1600, len(samples), 1600)):
        update = stream.push(piece)
        if update.pause:
            break
        partial.append(update.text)
    assert partial[-1] == " ".join(said[0])
    assert any(text and text != partial[-1] for text in partial) or len(said[0]) == 1


def test_a_hypothesis_follows_the_sound_by_the_look_ahead(recording):
    _, samples = recording
    stream = toyspeech.recognizer().stream(rate=RATE)
    update = stream.push(samples[:16_000])
    look_ahead = toyspeech.recognizer().features.look_ahead
    assert update.seconds == pytest.approx((98 - look_ahead) * 0.01)


@pytest.mark.parametrize("rate", [8_000, 44_100])
def test_other_rates_and_integers(recording, rate):
    from scipy.signal import resample_poly

    _, samples = recording
    given_ = np.round(resample_poly(samples, rate // 100, 160)).astype(np.int16)
    recognizer = toyspeech.recognizer()
    found = final_tokens(recognizer.stream(pause=None, rate=rate), np.split(given_, range(441, len(given_), 441)))
    assert found == recognizer.recognize(as_samples(given_), rate=rate).words


def test_frames_may_be_given_instead_of_samples(recording):
    _, samples = recording
    recognizer = toyspeech.recognizer()
    offline = recognizer.recognize(samples, rate=RATE).words
    for frames in (mfcc(samples), recognizer.inputs(samples, rate=RATE)):
        stream = recognizer.stream(pause=None)
        final = [token for piece in np.array_split(frames, 17) for token in stream.push_frames(piece).final]
        assert (*final, *stream.finish().final) == offline


def test_a_stream_of_nothing():
    assert toyspeech.recognizer().stream().finish().final == ()
    stream = toyspeech.recognizer().stream(rate=RATE)
    assert stream.push(np.zeros(0)).text == ""
    stream.finish()
    with pytest.raises(ValueError, match="the stream has ended"):
        stream.push(np.zeros(5))


def test_what_cannot_be_streamed_is_refused():
    recognizer = toyspeech.recognizer(words=False)
    for network in (toyspeech.network(bidirectional=True), toyspeech.deep_network(bidirectional=True)):
        both = Recognizer(network, recognizer.phones, None, recognizer.features)
        with pytest.raises(ValueError, match="bidirectional=True"):
            both.stream()
    whole = Recognizer(recognizer.model, recognizer.phones, None, FeatureRecipe())
    with pytest.raises(ValueError, match="--normalise running"):
        whole.stream()
    with pytest.raises(ValueError, match="knows no words"):
        recognizer.stream(words=True)
    with pytest.raises(ValueError, match="pause is 0"):
        recognizer.stream(pause=0)
    ready = Recognizer(recognizer.model, recognizer.phones)
    with pytest.raises(ValueError, match="use push_frames"):
        ready.stream().push(np.zeros(10))
    with pytest.raises(ValueError, match=r"expected \(n_frames, 117\)"):
        ready.stream().push_frames(np.zeros((3, 13)))
    with pytest.raises(ValueError, match="NaN"):
        ready.stream().push_frames(np.full((3, 117), np.nan))


def test_samples_of_the_wrong_scale_are_noticed(recording):
    _, samples = recording
    with pytest.warns(UserWarning, match="full_scale=1.0"):
        toyspeech.recognizer().stream(rate=RATE).push(samples[:40_000] / 32768)


def test_a_stream_of_minutes_keeps_no_more_than_one_of_seconds():
    recognizer = toyspeech.recognizer(words=False)
    stream = recognizer.stream()
    frames = np.random.default_rng(0).normal(size=(2_000, 117)).astype(np.float32)
    sizes = []
    for _ in range(60):  # 20 minutes
        stream.push_frames(frames)
        sizes.append(stream._search.search.records.nbytes)  # noqa: SLF001
    assert sizes[-1] == sizes[5] < 5_000_000


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
    search = StreamSearch(one.search(), SILENT, pause)
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
    search, whole = StreamSearch(one.search(), SILENT), one.search()
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
    search = StreamSearch(one.search(), SILENT, pause=20)
    spoken = noisy(np.random.default_rng(0), ["sil", "n", "ow"])
    assert search.advance(spoken) == ([], False)
    silence = noisy(np.random.default_rng(1), ["sil"], frames=30)
    found = [(search.search.frame, *search.advance(silence[k : k + 1])) for k in range(len(silence))]
    pauses = [(frame, final) for frame, final, pause in found if pause]
    assert [[token.name for token in final] for _, final in pauses] == [["NO"]]
    end = pauses[0][1][0].end
    assert 20 <= pauses[0][0] + 1 - end < 20 + PAUSE_GRID_FRAMES
    assert not any(final for frame, final, pause in found if not pause)


def test_without_a_pause_nothing_is_given_up():
    one = decoder("words", beam=1000.0)
    search = StreamSearch(one.search(), SILENT)
    final, pause = search.advance(noisy(np.random.default_rng(0), ["sil", "n", "ow", "sil", "sil", "sil", "sil"]))
    assert (final, pause) == ([], False)


def test_a_long_stream_takes_no_more_memory_than_a_short_one():
    rng = np.random.default_rng(0)
    one = decoder("phones")
    search = StreamSearch(one.search(), SILENT)
    sizes, tokens = [], 0
    for _ in range(240):
        phones = [PHONES[k] for k in rng.integers(5, size=42)]
        tokens += len(search.advance(noisy(rng, phones))[0])  # 20 minutes altogether
        sizes.append(search.search.records.nbytes)
    assert search.search.frame == 240 * 42 * 12
    assert tokens > 5000
    assert sizes[-1] == sizes[10] < 2_000_000
