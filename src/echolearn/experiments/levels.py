"""The levels at which the networks of Table 1 are scored: states, folded phones, segments, recognised phones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

from echolearn.estimators.classifier import ESNClassifier
from echolearn.experiments.fitted_cells import CellStore, fingerprint_of
from echolearn.experiments.measured_fit import FitResult
from echolearn.experiments.phone_scoring import (
    TUNING,
    PhoneScoring,
    Probabilities,
    frame_errors,
    part_probabilities,
    recognise,
)
from echolearn.speech.corpus import Corpus
from echolearn.speech.folding import level_map
from echolearn.speech.phones import phones_of_states
from echolearn.speech.recognition._segments import segment_error

LEVELS = ("state", "phone48", "phone39", "segment", "recognition")
VERSION = 1  # raised when a level counts otherwise, so that kept scores are computed again


@dataclass
class LevelScorer:
    """Scores fitted networks at a level; each is scored once, and its score kept beside it."""

    corpus: Corpus
    level: str
    store: CellStore[FitResult]
    known: dict[str, FitResult] = field(default_factory=dict)

    def at_level(self, name: str, result: FitResult) -> FitResult:
        """Return the result of a kept cell with its errors on valid and test at the level."""
        if self.level == "state":  # what a fit ends with
            return result
        if name not in self.known:
            valid, test = self._errors(name, result)
            self.known[name] = cast(FitResult, {**result, "valid_error": valid, "test_error": test})
        return self.known[name]

    def _errors(self, name: str, result: FitResult) -> tuple[float, float]:
        fingerprint = fingerprint_of([result["fingerprint"], self.level, VERSION, TUNING])
        found = self.store.find_score(name, self.level, fingerprint)
        if found is None:
            valid, test = level_errors(self.store.load_model(name), self.corpus, self.level, lambda: self.task)
            found = {"valid_error": valid, "test_error": test}
            self.store.save_score(name, self.level, fingerprint, found)
        return cast(float, found["valid_error"]), cast(float, found["test_error"])

    @cached_property
    def task(self) -> PhoneScoring:
        """Return references and decoders of the corpus, which all networks share."""
        return PhoneScoring.of(self.corpus, order=2)  # one order for all columns


def level_errors(
    model: ESNClassifier, corpus: Corpus, level: str, task: Callable[[], PhoneScoring]
) -> tuple[float, float]:
    """Return the errors of a network on valid and test at a level other than that of states.

    Phones are scored by frame, in 48 or 39 classes; segments as shares of segments whose boundaries are known, by what
    the training labels say of a phone's states and durations; recognition as the phone error of a decoder whose
    weights are tuned on valid.
    """
    valid = part_probabilities(model, corpus, "valid")
    if level == "recognition":
        decoder = task().tuned(valid).decoder
        found = [task().evaluate("valid", recognise(decoder, valid)).total.error_rate]
        test = part_probabilities(model, corpus, "test")
        found.append(task().evaluate("test", recognise(decoder, test)).total.error_rate)
        return found[0], found[1]
    test = part_probabilities(model, corpus, "test")
    if level == "segment":
        return _segment_error(corpus, "valid", valid, task()), _segment_error(corpus, "test", test, task())
    classes = level_map(level, phones_of_states(corpus.state_names))
    return frame_errors(corpus, "valid", valid, classes)[1], frame_errors(corpus, "test", test, classes)[1]


def _segment_error(corpus: Corpus, part: str, probabilities: Probabilities, task: PhoneScoring) -> float:
    which = corpus.which(part)
    given, labels = [probabilities[corpus.utterances[k]] for k in which], [corpus.labels[k] for k in which]
    return segment_error(task.segments, given, labels, corpus.state_names, phone_map=task.phone_map)
