"""From a network's probabilities to phones: a decoder learned on train, tuned on valid, and its phone error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from echolearn.display.progress import StageProgress
from echolearn.estimators import ESNClassifier
from echolearn.speech import Corpus, Evaluation, evaluate
from echolearn.speech._features import Labels
from echolearn.speech._phone_set import PhoneMap, fold, level_map, phones_of_states, split_state
from echolearn.speech.recognition._decoder import Decoder, learn_phone_task
from echolearn.speech.recognition._phone_models import spoken_phones
from echolearn.speech.recognition._recognizer import StateClassifier
from echolearn.speech.recognition._search import Token
from echolearn.speech.recognition._segments import SegmentClassifier, learn_segments, segment_error
from echolearn.speech.recognition._tuning import (
    BEAM_CHOICES,
    TUNING_ROUNDS,
    WEIGHT_CHOICES,
    evaluate_phones,
    tune_phones,
)
from echolearn.validation import Array

Probabilities = Mapping[str, NDArray[np.float32]]  # of each utterance: (frames, states of the corpus)
# How often `tune` decodes the validation part at most: once to begin with, then for every value but the one that is in
# use, and for every beam.
DECODER_TRIALS = 1 + TUNING_ROUNDS * sum(len(values) - 1 for values in WEIGHT_CHOICES.values()) + len(BEAM_CHOICES)
# A trigram starts from the weights of the bigram; these are tried again.
TRIGRAM_CHOICES = {name: WEIGHT_CHOICES[name] for name in ("language_weight", "penalty")}
TRIGRAM_TRIALS = 1 + TUNING_ROUNDS * sum(len(values) - 1 for values in TRIGRAM_CHOICES.values()) + len(BEAM_CHOICES)
TUNING = (WEIGHT_CHOICES, TRIGRAM_CHOICES, TUNING_ROUNDS, BEAM_CHOICES)  # a kept score depends on what was tried
OWN_PHONES = "corpus"  # the level of the phones that a corpus has


def default_level(corpus: str) -> str:
    """Return the level at which phones of a corpus are scored: 39 classes for TIMIT, else the corpus's own phones."""
    return "phone39" if corpus.startswith("timit:") else OWN_PHONES


@dataclass(frozen=True)
class PhoneScoring:
    """References and decoders by which networks are scored on the phones of a corpus."""

    names: tuple[str, ...]  # of the states
    train_labels: list[Labels]  # of states: what durations, priors and the phone n-gram are learned from
    spoken: Mapping[str, Mapping[str, list[str]]]  # of valid and test: the phones of each utterance, with silences
    speakers: Mapping[str, str]  # of each utterance
    phone_map: PhoneMap | None  # folds phones into the classes that are scored
    order: int | None  # of the phone n-gram; None: 2 or 3, whichever has the smaller phone error on valid

    @classmethod
    def of(cls, corpus: Corpus, level: str | None = None, order: int | None = None) -> PhoneScoring:
        """Return the task of a corpus; level: "corpus", "phone48" or "phone39", None for that of the corpus."""
        level = level or default_level(corpus.name)
        names = corpus.state_names
        phone_map = None if level == OWN_PHONES else level_map(level, phones_of_states(names))
        spoken = {
            part: {corpus.utterances[k]: spoken_phones(corpus.labels[k], names) for k in corpus.which(part)}
            for part in ("valid", "test")
        }
        train = [corpus.labels[k] for k in corpus.which("train")]
        return cls(names, train, spoken, dict(zip(corpus.utterances, corpus.speakers, strict=True)), phone_map, order)

    @property
    def classes(self) -> tuple[str, ...]:
        """The phones that scores distinguish, silence included, in the order of the states."""
        phones = phones_of_states(self.names)
        return phones if self.phone_map is None else tuple(dict.fromkeys(fold(phones, self.phone_map)))

    def phone_class(self, phone: str) -> str | None:
        """Return the class in which a phone is scored; None where it is left out."""
        return phone if self.phone_map is None else self.phone_map[phone]

    @cached_property
    def decoder(self) -> Decoder:
        """The decoder that the training labels give, its weights not tuned yet; a bigram if the order is not given."""
        return learn_phone_task(self.train_labels, self.names, order=self.order or 2).decoder()

    @cached_property
    def trigram_decoder(self) -> Decoder:
        return learn_phone_task(self.train_labels, self.names, order=3).decoder()

    @cached_property
    def segments(self) -> SegmentClassifier:
        """The classifier of phones whose boundaries are known, from the training labels."""
        return learn_segments(self.train_labels, self.names)

    def tuned(self, probabilities: Probabilities, progress: StageProgress | None = None) -> tuple[Decoder, int]:
        """Return the decoder with the weights of the smallest phone error on valid, and the order of its n-gram."""

        def tuned(decoder: Decoder, choices: Mapping[str, Sequence[float]]) -> tuple[Decoder, float]:
            spoken, folds = self.spoken["valid"], self.phone_map
            return tune_phones(decoder, spoken, probabilities, phone_map=folds, choices=choices, progress=progress)

        bigram, error = tuned(self.decoder, WEIGHT_CHOICES)
        if self.order is not None:
            return bigram, self.order
        trigram, other = tuned(replace(self.trigram_decoder, weights=bigram.weights), TRIGRAM_CHOICES)
        return (trigram, 3) if other < error else (bigram, 2)

    def evaluate(self, part: str, recognised: Mapping[str, Sequence[Token]]) -> Evaluation:
        """Return the alignments of what was recognised with what was spoken; silences do not count."""
        return evaluate_phones(self.spoken[part], recognised, speakers=self.speakers, phone_map=self.phone_map)

    def evaluate_with_silence(self, part: str, recognised: Mapping[str, Sequence[Token]]) -> Evaluation:
        """Return the same where a silence is a phone like any other, as many publications on TIMIT count."""
        answers = {name: self._classes_of(token.name for token in tokens) for name, tokens in recognised.items()}
        spoken = {name: self._classes_of(phones) for name, phones in self.spoken[part].items()}
        return evaluate(spoken, answers, speakers=self.speakers)

    def _classes_of(self, phones: Iterable[str]) -> list[str]:
        return list(phones) if self.phone_map is None else fold(phones, self.phone_map)


def part_probabilities(model: StateClassifier, corpus: Corpus, part: str) -> dict[str, NDArray[np.float32]]:
    """Return the probabilities of a part's utterances, one column per state of the corpus."""
    which = corpus.which(part)
    found = state_probabilities(model, [corpus.features[k] for k in which], corpus.state_names)
    return {corpus.utterances[k]: P for k, P in zip(which, found, strict=True)}


def state_probabilities(model: StateClassifier, X: Sequence[Array], names: Sequence[str]) -> list[NDArray[np.float32]]:
    """Return probabilities (frames, len(names)) of utterances. The classes of a network are sorted by name: columns are
    found by name, and a state that the network does not know, without a training frame, has probability 0."""
    column = {name: k for k, name in enumerate(names)}
    classes = [str(name) for name in model.classes_]
    unknown = [name for name in classes if name not in column]
    if unknown:
        raise ValueError(f"the model's state {unknown[0]} is not one of the corpus; it was fitted to another corpus.")
    where = [column[name] for name in classes]
    found = []
    for answer in model.predict_proba(list(X)):
        P = np.zeros((len(answer), len(names)), dtype=np.float32)
        P[:, where] = answer
        found.append(P)
    return found


def recognise(decoder: Decoder, probabilities: Probabilities) -> dict[str, list[Token]]:
    return {name: decoder.decode(P) for name, P in probabilities.items()}


def frame_errors(
    corpus: Corpus, part: str, probabilities: Probabilities, phone_map: PhoneMap | None
) -> tuple[float, float]:
    """Return the shares of a part's frames with a wrong state, and with a wrong phone. Frames of a phone that the map
    leaves out (TIMIT's glottal stop) do not count for the second."""
    which = corpus.which(part)
    spoken = np.concatenate([corpus.labels[k] for k in which])
    found = np.concatenate([probabilities[corpus.utterances[k]].argmax(axis=1) for k in which])
    phones = phones_of_states(corpus.state_names)
    classes = [phone if phone_map is None else phone_map[phone] for phone in phones]
    number = {name: k for k, name in enumerate(dict.fromkeys(classes))}
    of_phone = {phone: number[name] for phone, name in zip(phones, classes, strict=True)}
    of_state = np.array([of_phone[split_state(name)[0]] for name in corpus.state_names])
    counts = of_state[spoken] != number.get(None, -1)
    wrong = of_state[spoken] != of_state[found]
    return float(np.mean(spoken != found)), float(np.mean(wrong[counts])) if counts.any() else float("nan")


def level_errors(model: ESNClassifier, corpus: Corpus, level: str, task: PhoneScoring) -> tuple[float, float]:
    """Return the errors of a network on valid and test, at a level other than that of states: by frame, of segments
    whose boundaries are known, or of a decoder whose weights are tuned on valid."""
    errors, decoder = [], None
    for part in ("valid", "test"):
        P = part_probabilities(model, corpus, part)
        if level == "recognition":
            decoder = task.tuned(P)[0] if decoder is None else decoder
            errors.append(task.evaluate(part, recognise(decoder, P)).total.error_rate)
        elif level == "segment":
            labels = [corpus.labels[k] for k in corpus.which(part)]
            answers = list(P.values())
            errors.append(segment_error(task.segments, answers, labels, corpus.state_names, phone_map=task.phone_map))
        else:
            classes = level_map(level, phones_of_states(corpus.state_names))
            errors.append(frame_errors(corpus, part, P, classes)[1])
    return errors[0], errors[1]
