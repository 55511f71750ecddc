"""A recogniser, learned from a corpus of toy speech."""

from dataclasses import replace

import numpy as np
import pytest

import toyspeech
from echolearn import SeriesClassifier
from echolearn.speech.recognition import Lexicon, Recognizer
from echolearn.speech.recognition._decoder import WORD_WEIGHTS, learn_phone_task
from echolearn.speech.recognition._ngrams import word_list
from echolearn.speech.recognition._phone_models import spoken_phones
from toyspeech import RATE

KINDS = ({"bidirectional": True}, {"ensemble": 2})


@pytest.fixture(scope="module")
def new():
    """Utterances that nobody has learned from or tuned on."""
    return toyspeech.speech(seed=1, utterances=10)


@pytest.mark.parametrize("deep", [False, True])
def test_words_and_phones_are_recognised_in_samples(new, deep):
    recognizer = toyspeech.recognizer(deep=deep)
    for words, samples, labels in new:
        found = recognizer.recognize(samples, rate=RATE)
        assert found.text == " ".join(words)
        assert [t.name for t in found.phones] == spoken_phones(labels, toyspeech.STATE_NAMES)
        assert found.frames == len(labels)
        true = next(t for t in found.words if t.name == words[0])
        first = next(k for k, y in enumerate(labels) if not toyspeech.STATE_NAMES[y].startswith("sil"))
        assert abs(true.start - first) <= 3
        assert found.segments("words")[0].start == pytest.approx(true.start * 0.01)


def test_samples_cepstra_and_ready_features_are_the_same_utterance(new):
    recognizer = toyspeech.recognizer()
    samples = new[0][1]
    from echolearn.speech import mfcc

    forms = [samples, mfcc(samples), recognizer.inputs(samples, rate=RATE), np.round(samples).astype(np.int16)]
    found = [recognizer.recognize(form, rate=RATE) for form in forms]
    assert found[0] == found[1] == found[2]
    assert found[3].text == found[0].text
    assert recognizer.recognize(samples / 32768, full_scale=1.0, rate=RATE).text == found[0].text


@pytest.mark.parametrize("rate", [22_050, 48_000])
def test_other_rates_are_resampled(new, rate):
    from scipy.signal import resample_poly

    words, samples, _ = new[0]
    assert toyspeech.recognizer().recognize(resample_poly(samples, rate // 50, 320), rate=rate).text == " ".join(words)


@pytest.mark.parametrize(
    "call",
    [
        lambda own, samples: own.recognize(samples),
        lambda own, samples: own.recognize_all({"a": samples}),
        lambda own, samples: own.nbest(samples, 2),
        lambda own, samples: own.inputs(samples),
        lambda own, samples: own.stream().push(samples),
    ],
)
@pytest.mark.parametrize("as_type", [np.float32, np.int16, list])
def test_samples_without_their_rate_are_refused(new, call, as_type):
    with pytest.raises(ValueError, match="give rate=16000, or the rate at which they were recorded"):
        call(toyspeech.recognizer(), as_type(new[0][1]) if as_type is list else new[0][1].astype(as_type))


def test_features_need_no_rate(new):
    recognizer = toyspeech.recognizer()
    inputs = recognizer.inputs(new[0][1], rate=RATE)
    assert recognizer.recognize(inputs) == recognizer.recognize(new[0][1], rate=RATE)
    assert recognizer.nbest(inputs, 2) == recognizer.nbest(new[0][1], 2, rate=RATE)
    np.testing.assert_array_equal(recognizer.inputs(inputs), inputs)


def test_many_utterances_at_once_are_as_one_by_one(new):
    recognizer = toyspeech.recognizer()
    calls = []
    many = {f"u{k}": samples for k, (_, samples, _) in enumerate(new)}
    found = recognizer.recognize_all(many, rate=RATE, progress=lambda *call: calls.append(call))
    assert found == {name: recognizer.recognize(samples, rate=RATE) for name, samples in many.items()}
    assert calls[-1] == ("recognising", 10, 10)


def test_other_rates_and_scales_of_many_utterances(new):
    recognizer = toyspeech.recognizer()
    samples, how = new[0][1][::2] / 32768, {"rate": RATE // 2, "full_scale": 1.0}
    one = recognizer.recognize(samples, **how)
    assert recognizer.recognize_all({"a": samples}, **how) == {"a": one}
    assert recognizer.nbest(samples, 1, **how)[0][0] == one.text


def test_other_words():
    recognizer = toyspeech.recognizer()
    words, samples, _ = next(one for one in toyspeech.speech(seed=1, utterances=10) if "NO" in one[0])
    lexicon = Lexicon({"NO": (("N", "OW0"),), "YES": (("Y", "EH1"), ("Y", "EH1", "S")), "new": (("s", "ow"),)})
    found = recognizer.with_words(lexicon).recognize(samples, rate=RATE)
    assert "new" not in found.text  # the language model does not list it
    model = word_list(lexicon.words)
    found = recognizer.with_words(lexicon, model).recognize(samples, rate=RATE)
    assert found.text == " ".join(words).replace("SO", "new")
    assert recognizer.with_words(language_model=model).words.lexicon == recognizer.words.lexicon
    first = toyspeech.recognizer(words=False).with_words(lexicon)
    assert first.words.language_model == model
    assert first.words.weights == WORD_WEIGHTS  # those of phones do not suit words
    with pytest.raises(ValueError, match="this recogniser knows no words"):
        toyspeech.recognizer(words=False).with_words()
    with pytest.raises(ValueError, match="no word of the language model"):
        recognizer.with_words(Lexicon({"yeah": (("y", "eh"),)}))
    with pytest.raises(ValueError, match="phones that the model does not know: zh"):
        recognizer.with_words(Lexicon({"yeah": (("zh", "eh"),)}))


def test_a_list_of_words_allows_no_others():
    recognizer = toyspeech.recognizer()
    one = recognizer.with_word_list(["NO", "SO"])
    model = one.words.language_model
    assert model == word_list(["NO", "SO"])
    for _, samples, _ in toyspeech.speech(seed=1, utterances=10):
        assert {t.name for t in one.recognize(samples, rate=RATE).words} <= {"NO", "SO"}
    single = recognizer.with_word_list(["NO", "SO", "YES"], repeat=False)
    assert all(
        len(single.recognize(samples, rate=RATE).words) == 1
        for _, samples, _ in toyspeech.speech(seed=1, utterances=10)
    )
    with pytest.raises(ValueError, match="lacks 1 of 2 words: PERHAPS"):
        recognizer.with_word_list(["NO", "PERHAPS"])
    with pytest.raises(ValueError, match="knows no words"):
        toyspeech.recognizer(words=False).with_word_list(["NO"])


def test_words_need_a_lexicon():
    with pytest.raises(ValueError, match="train it with a lexicon"):
        toyspeech.recognizer(words=False).recognize(toyspeech.speech()[0][1], rate=RATE, words=True)
    assert toyspeech.recognizer().recognize(toyspeech.speech()[0][1], rate=RATE, words=False).words is None


@pytest.mark.parametrize(
    ("utterance", "message"),
    [
        (np.full(399, 100.0), "a frame needs 400"),
        (np.linspace(-1, 1, 1600), "full_scale=1.0"),
        (np.zeros((10, 12)), r"expected samples .* \(n_frames, 117\), or \(n_frames, 13\)"),
        (np.full(1000, np.nan), "NaN"),
    ],
)
def test_what_is_no_utterance_is_refused(utterance, message):
    with pytest.raises(ValueError, match=message):
        toyspeech.recognizer().recognize(utterance, rate=RATE)


def test_a_network_that_does_not_fit_the_phones_is_refused():
    recognizer = toyspeech.recognizer()
    labels = [np.array([0, 1])]
    with pytest.raises(ValueError, match="knows 18 states, the phones have 2"):
        Recognizer(recognizer.model, learn_phone_task(labels, ["a_s2", "b_s2"]))
    names = recognizer.phones.states[::-1]
    with pytest.raises(ValueError, match="in their order"):
        Recognizer(recognizer.model, replace(recognizer.phones, states=names))
    whole = SeriesClassifier(5).fit([np.zeros((4, 1)), np.ones((4, 1))], ["a", "b"])
    with pytest.raises(ValueError, match="every frame"):
        Recognizer(whole, recognizer.phones)


def test_both_directions_and_ensembles_recognise():
    _, samples, labels = toyspeech.speech(seed=1, utterances=10)[0]
    known = toyspeech.recognizer(words=False)
    networks = [network(**how) for network in (toyspeech.network, toyspeech.deep_network) for how in KINDS]
    for network in networks:
        found = Recognizer(network, known.phones, None, known.features).recognize(samples, rate=RATE)
        assert [t.name for t in found.phones] == spoken_phones(labels, toyspeech.STATE_NAMES)


def test_confidences_and_other_hypotheses(new):
    recognizer = toyspeech.recognizer()
    words, samples, _ = new[0]
    found, plain = recognizer.recognize(samples, confidences=True, rate=RATE), recognizer.recognize(samples, rate=RATE)
    assert [t[:3] for t in found.words] == [t[:3] for t in plain.words]
    assert all(0 < t.confidence <= 1 for t in (*found.words, *found.phones))
    assert all(t.confidence is None for t in plain.words)
    with pytest.raises(ValueError, match="pause=None"):
        recognizer.recognize(samples, confidences=True, pause=0.5, rate=RATE)
    texts, scores = zip(*recognizer.nbest(samples, 3, rate=RATE), strict=True)
    assert texts[0] == " ".join(words)
    assert list(scores) == sorted(scores, reverse=True)
    assert len(set(texts)) == len(texts)
    assert " n " in f" {recognizer.nbest(samples, 1, words=False, rate=RATE)[0][0]} " or "NO" not in words
