"""Recognition of sound while it is heard."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toyspeech
from echolearn.speech.features import mfcc
from echolearn.speech.recipe import FeatureRecipe
from echolearn.speech.recognition.recognizer import Recognizer
from echolearn.speech.samples import as_samples


def heard(stream, pieces):
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


@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("pause", [None, 0.5])
@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(0, 100_000), max_size=30))
def test_any_pieces_give_what_the_whole_recording_gives(recording, words, pause, cuts):
    _, samples = recording
    recognizer = toyspeech.recognizer()
    found = heard(recognizer.stream(words=words, pause=pause), np.split(samples, sorted(cuts)))
    offline = recognizer.recognize(samples, pause=pause)
    assert found == (offline.words if words else offline.phones)


def test_pieces_of_one_sample_and_of_ten_milliseconds(recording):
    _, samples = recording
    recognizer = toyspeech.recognizer()
    part = samples[:20_000]
    offline = recognizer.recognize(part).words
    assert heard(recognizer.stream(pause=None), np.split(part, range(160, len(part), 160))) == offline
    short = part[:2_000]
    assert heard(recognizer.stream(pause=None), np.split(short, range(1, 2_000))) == recognizer.recognize(short).words


def test_sentences_are_final_at_pauses(recording):
    said, samples = recording
    stream = toyspeech.recognizer().stream(pause=0.4)
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
    stream = toyspeech.recognizer().stream(pause=0.5)
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
    stream = toyspeech.recognizer().stream()
    update = stream.push(samples[:16_000])
    look_ahead = toyspeech.recognizer().features.look_ahead
    assert update.seconds == pytest.approx((98 - look_ahead) * 0.01)


@pytest.mark.parametrize("rate", [8_000, 44_100])
def test_other_rates_and_integers(recording, rate):
    from scipy.signal import resample_poly

    _, samples = recording
    given_ = np.round(resample_poly(samples, rate // 100, 160)).astype(np.int16)
    recognizer = toyspeech.recognizer()
    found = heard(recognizer.stream(pause=None, rate=rate), np.split(given_, range(441, len(given_), 441)))
    assert found == recognizer.recognize(as_samples(given_), rate=rate).words


def test_frames_may_be_given_instead_of_samples(recording):
    _, samples = recording
    recognizer = toyspeech.recognizer()
    offline = recognizer.recognize(samples).words
    for frames in (mfcc(samples), recognizer.inputs(samples)):
        stream = recognizer.stream(pause=None)
        final = [token for piece in np.array_split(frames, 17) for token in stream.push_frames(piece).final]
        assert (*final, *stream.finish().final) == offline


def test_a_stream_of_nothing():
    assert toyspeech.recognizer().stream().finish().final == ()
    stream = toyspeech.recognizer().stream()
    assert stream.push(np.zeros(0)).text == ""
    stream.finish()
    with pytest.raises(ValueError, match="the stream has ended"):
        stream.push(np.zeros(5))


def test_what_cannot_be_streamed_is_refused():
    recognizer = toyspeech.recognizer(words=False)
    both = Recognizer(toyspeech.network(bidirectional=True), recognizer.phones, None, recognizer.features)
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
        toyspeech.recognizer().stream().push(samples[:40_000] / 32768)


def test_a_stream_of_minutes_keeps_no_more_than_one_of_seconds():
    recognizer = toyspeech.recognizer(words=False)
    stream = recognizer.stream()
    frames = np.random.default_rng(0).normal(size=(2_000, 117)).astype(np.float32)
    sizes = []
    for _ in range(60):  # 20 minutes
        stream.push_frames(frames)
        sizes.append(stream._search.search.records.nbytes)  # noqa: SLF001
    assert sizes[-1] == sizes[5] < 5_000_000
