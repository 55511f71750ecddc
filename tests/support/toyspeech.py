"""A toy language of tones: samples, state labels and words of utterances, a corpus of them, and a recogniser."""

from __future__ import annotations

from functools import cache

import numpy as np

from echolearn import DeepESNClassifier, ESNClassifier
from echolearn.speech import Corpus, mfcc, with_differences
from echolearn.speech._feature_recipe import FeatureRecipe
from echolearn.speech._features import FrameList, first_frame, frame_count
from echolearn.speech.recognition import Lexicon, Recognizer, estimate
from echolearn.speech.recognition._decoder import learn_phone_task, word_task
from toys import grouped

RATE = 16_000
TONES = {"sil": 0.0, "n": 300.0, "ow": 700.0, "y": 2600.0, "eh": 1500.0, "s": 5200.0}
PHONES = tuple(TONES)
LEXICON = Lexicon({"NO": (("n", "ow"),), "YES": (("y", "eh", "s"), ("y", "eh")), "SO": (("s", "ow"),)})
# neither the alphabetical order of a network's classes, nor without a state that nobody says
STATE_NAMES = (*(f"{phone}_s{state}" for phone in reversed(PHONES) for state in (2, 3, 4)), "zh_s2")


def say(words, rng, pause=(0.1, 0.3)):
    """Return samples, phones with the times of their ends, of words with silence around and between them."""
    phones = [("sil", rng.uniform(*pause))]
    for word in words:
        variants = LEXICON.pronunciations[word]
        for phone in variants[rng.integers(len(variants))]:
            phones.append((phone, rng.uniform(0.07, 0.14)))
        phones.append(("sil", rng.uniform(*pause)))
    pieces = [_sound(TONES[phone], seconds, rng) for phone, seconds in phones]
    ends = np.cumsum([len(piece) for piece in pieces]) / RATE
    return np.concatenate(pieces), [(phone, float(end)) for (phone, _), end in zip(phones, ends, strict=True)]


def _sound(tone, seconds, rng):
    t = np.arange(round(seconds * RATE)) / RATE
    noise = rng.normal(size=len(t)) * 60
    return (noise + (2500 * np.sin(2 * np.pi * tone * t) if tone else 0)).astype(np.float32)


def labels_of(phones, n_frames):
    """Return the state labels of an utterance, three states of equal length per phone."""
    labels = np.empty(n_frames, dtype=np.int16)
    start = 0.0
    for phone, end in phones:
        edges = [min(n_frames, first_frame(start + k * (end - start) / 3)) for k in range(4)]
        for state in range(3):
            labels[edges[state] : edges[state + 1]] = STATE_NAMES.index(f"{phone}_s{state + 2}")
        labels[edges[3] :] = STATE_NAMES.index(f"{phone}_s4")
        start = end
    return labels


def sentence(rng):
    return [("NO", "YES", "SO")[k] for k in rng.integers(3, size=rng.integers(1, 4))]


@cache
def speech(seed=0, utterances=40):
    """Return (words, samples, labels) of utterances."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(utterances):
        words = sentence(rng)
        samples, phones = say(words, rng)
        found.append((tuple(words), samples, labels_of(phones, frame_count(len(samples)))))
    return found


class ToyCorpus(Corpus):
    """A corpus whose words are given."""

    said: tuple[tuple[str, ...], ...] = ()

    @property
    def words(self):
        return self.said


@cache
def corpus(normalise="running"):
    """Return a corpus of toy speech: 30 utterances of train, 6 of valid and 4 of test."""
    spoken = speech()
    rows = [with_differences(mfcc(samples)) for _, samples, _ in spoken]
    features = FrameList.of_lengths(np.concatenate(rows), [len(one) for one in rows])
    features = features.scaled_like(range(30), running=normalise == "running")
    made = ToyCorpus(
        name="toy",
        features=features,
        labels=[labels for _, _, labels in spoken],
        split=("train",) * 30 + ("valid",) * 6 + ("test",) * 4,
        utterances=tuple(f"u{k:02}" for k in range(40)),
        speakers=tuple(f"s{k % 5}" for k in range(40)),
        state_names=STATE_NAMES,
        recipe=FeatureRecipe(normalise=normalise, scale=features.scale),
    )
    object.__setattr__(made, "said", tuple(words for words, _, _ in spoken))
    return made


@cache
def network(**settings):
    """Return a network that was fitted to the toy corpus."""
    own, names = corpus(), np.array(STATE_NAMES)
    X, y = own.part("train")
    how = {"learn": "none", "readout": "ridge", "random_state": 0, **settings}
    return ESNClassifier(30, **grouped(how)).fit(X, [names[one] for one in y])


@cache
def deep_network(**settings):
    """Return a deep network that was fitted to the toy corpus."""
    own, names = corpus(), np.array(STATE_NAMES)
    X, y = own.part("train")
    return DeepESNClassifier(**{"units": 16, "layers": 2, "epochs": 10, **settings}).fit(X, [names[one] for one in y])


@cache
def recognizer(words=True, deep=False) -> Recognizer:
    """Return a recogniser of the toy language with the default weights, which need no tuning here."""
    own, model = corpus(), deep_network() if deep else network()
    states = model.classes_.tolist()
    train = own.which("train")
    phones = learn_phone_task([np.array([states.index(STATE_NAMES[s]) for s in own.labels[k]]) for k in train], states)
    grams = estimate([own.said[k] for k in train], vocabulary=LEXICON.words)
    return Recognizer(model, phones, word_task(phones, LEXICON, grams) if words else None, own.recipe)
