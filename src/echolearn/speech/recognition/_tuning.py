"""The weights of decoders, chosen on validation utterances: by phone or word error, and then the scale of confidences.

Never give the test part to a function of this module.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from echolearn.display.progress import StageProgress
from echolearn.modelfile.atomic import write_atomically
from echolearn.modelfile.snapshot import fingerprint
from echolearn.modelfile.values import as_finite
from echolearn.speech._phone_set import SILENCES, PhoneMap, fold
from echolearn.speech._scoring import Evaluation, align_tokens, evaluate
from echolearn.speech.recognition._decoder import Decoder, DecodingWeights
from echolearn.speech.recognition._search import Token
from echolearn.validation import Array

# what `tune` tries for each weight, one after another
WEIGHT_CHOICES: dict[str, tuple[float, ...]] = {
    "language_weight": (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0),
    "penalty": (-8.0, -4.0, -2.0, 0.0, 2.0, 4.0, 8.0, 12.0, 16.0),
    "prior_exponent": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    "duration_weight": (0.25, 0.5, 0.75, 1.0, 1.5, 2.0),
}
TUNING_ROUNDS = 2
MIN_STANDARD_ERRORS = 2.0  # by which the errors of utterances have to fall before a weight is changed
BEAM_CHOICES = (20.0, 30.0, 40.0, 60.0, 80.0, 120.0, 160.0)  # tried from the widest down, after the weights
CONFIDENCE_SCALES = (0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8, 1.0)
_MIN_DOUBT = 1e-3  # confidences count as at least this far from 0 and 1

References = Mapping[str, Sequence[str]]  # what was spoken: phones or words of utterances by name
Hypotheses = Mapping[str, Sequence[Token]]  # what was recognised in them


def evaluate_phones(
    references: References,
    recognised: Hypotheses,
    *,
    speakers: Mapping[str, str] | None = None,
    phone_map: PhoneMap | None = None,
) -> Evaluation:
    """Align recognised phones with the spoken ones; silences do not count, and phone_map folds both sides."""
    hypotheses = {name: [token.name for token in tokens] for name, tokens in recognised.items()}
    spoken = {name: list(phones) for name, phones in references.items()}
    if phone_map is not None:
        hypotheses = {name: fold(phones, phone_map) for name, phones in hypotheses.items()}
        spoken = {name: fold(phones, phone_map) for name, phones in spoken.items()}
    return evaluate(spoken, hypotheses, speakers=speakers, ignore=SILENCES)


def evaluate_words(
    references: References, recognised: Hypotheses, *, speakers: Mapping[str, str] | None = None
) -> Evaluation:
    """Align recognised words with the spoken ones. Upper and lower case are the same."""
    hypotheses = {name: [token.name.upper() for token in tokens] for name, tokens in recognised.items()}
    spoken = {name: [word.upper() for word in words] for name, words in references.items()}
    return evaluate(spoken, hypotheses, speakers=speakers)


def tune_phones(
    decoder: Decoder,
    references: References,
    probabilities: Mapping[str, Array],
    *,
    phone_map: PhoneMap | None = None,
    choices: Mapping[str, Sequence[float]] = WEIGHT_CHOICES,
    progress: StageProgress | None = None,
    record: Path | None = None,
) -> tuple[Decoder, float]:
    """Return the decoder with weights for few wrong phones, and its phone error; record: the file of `Trials`."""
    evaluated = partial(evaluate_phones, references, phone_map=phone_map)
    trials = Trials.of(record, decoder, references, probabilities, phone_map)
    return tune(decoder, evaluated, probabilities, choices=choices, progress=progress, trials=trials)


def tune_words(
    decoder: Decoder,
    references: References,
    probabilities: Mapping[str, Array],
    *,
    progress: StageProgress | None = None,
    record: Path | None = None,
) -> tuple[Decoder, float]:
    """Return the decoder with weights for few wrong words, and its word error; record: the file of `Trials`."""
    evaluated = partial(evaluate_words, references)
    trials = Trials.of(record, decoder, references, probabilities)
    return tune(decoder, evaluated, probabilities, progress=progress, trials=trials)


@dataclass
class Trials:
    """The errors of each utterance with all weights that a search has tried, by their text: none is decoded twice.

    They are kept in a file, if there is one, so that a search that was stopped resumes. A file about other data, or a
    damaged one, is replaced.
    """

    path: Path | None = None
    about: str = ""
    errors: dict[str, list[float]] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path | None, decoder: Decoder, *data: object) -> Trials:
        """Return the trials of a file, or none, if they are of this decoder and these data."""
        if path is None:
            return cls()
        about = fingerprint(decoder.graph, decoder.priors, *data)
        try:
            found = json.loads(path.read_bytes())
            errors = {str(weights): [as_finite(one) for one in own] for weights, own in found["errors"].items()}
            return cls(path, about, errors if found["about"] == about else {})
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return cls(path, about)

    def errors_with(self, weights: DecodingWeights, evaluated: Callable[[], Evaluation]) -> Array:
        """Return the number of errors of each utterance with these weights; they are counted if they are not known."""
        key = repr(weights)
        if key not in self.errors:
            self.errors[key] = [counts.errors for counts in evaluated().by_utterance().values()]
            if self.path is not None:
                content = {"about": self.about, "errors": self.errors}
                write_atomically(self.path, json.dumps(content).encode())
        return np.array(self.errors[key])


def tune(
    decoder: Decoder,
    evaluated: Callable[[Hypotheses], Evaluation],
    probabilities: Mapping[str, Array],
    *,
    choices: Mapping[str, Sequence[float]] = WEIGHT_CHOICES,
    progress: StageProgress | None = None,
    trials: Trials | None = None,
) -> tuple[Decoder, float]:
    """Choose the weights of a decoder one after another in two rounds, then the beam; return it and its error.

    A weight changes to the value with the fewest errors if the utterances gain more than they would by chance; the
    smallest of many counts on few utterances would often be luck. The beam is the narrowest whose error is not above
    the widest's. trials: those of a search that was stopped.
    """
    known = Trials() if trials is None else trials

    def errors_with(weights: DecodingWeights) -> Array:
        trial = replace(decoder, weights=weights)
        return known.errors_with(weights, lambda: evaluated({n: trial.decode(P) for n, P in probabilities.items()}))

    best, done = decoder.weights, 0
    total = TUNING_ROUNDS * sum(map(len, choices.values())) + len(BEAM_CHOICES)
    for name, values in TUNING_ROUNDS * list(choices.items()):
        gains = []
        for value in values:
            if progress is not None:
                progress("weights of the decoder", done, total)
            gains.append(errors_with(best) - errors_with(replace(best, **{name: value})))
            done += 1
        value, gain = max(zip(values, gains, strict=True), key=lambda one: one[1].sum())
        # by chance, gains would be as often below 0 as above, so that this norm is the deviation of their sum
        if gain.sum() > MIN_STANDARD_ERRORS * np.linalg.norm(gain):
            best = replace(best, **{name: value})
    fewest = np.inf
    for step, beam in enumerate(reversed(BEAM_CHOICES), done):
        if progress is not None:
            progress("beam of the decoder", step, total)
        weights = replace(best, beam=beam)
        tried = errors_with(weights).sum()
        if tried > fewest:
            break
        best, fewest = weights, tried
    spoken = evaluated({name: [] for name in probabilities}).total.reference
    return replace(decoder, weights=best), float(fewest / max(spoken, 1))


class ConfidenceQuality(NamedTuple):
    """How well confidences tell right tokens from wrong ones; area and entropy are NaN where all are the same."""

    right: int
    wrong: int
    roc_area: float
    cross_entropy: float


def calibrate(
    decoder: Decoder, references: References, probabilities: Mapping[str, Array]
) -> tuple[Decoder, ConfidenceQuality]:
    """Choose the scale of the confidences by their cross entropy; it stays if all tokens are right, or all wrong."""
    if not probabilities:
        raise ValueError("there is no utterance to choose the scale of confidences on")
    missing = [name for name in probabilities if name not in references]
    if missing:
        raise ValueError(f"{len(missing)} utterances have no reference: {', '.join(missing[:5])}")
    lattices = {name: decoder.lattice(P) for name, P in probabilities.items()}
    tried: list[tuple[ConfidenceQuality, float]] = []
    for scale in (decoder.weights.confidence_scale, *CONFIDENCE_SCALES):
        recognised = {name: lattice.confidences(lattice.best, scale) for name, lattice in lattices.items()}
        tried.append((confidence_quality(references, recognised), scale))
    quality, scale = max(tried, key=lambda one: np.nan_to_num(one[0].cross_entropy))
    return replace(decoder, weights=replace(decoder.weights, confidence_scale=scale)), quality


def confidence_quality(references: References, recognised: Hypotheses) -> ConfidenceQuality:
    """Measure confidences against what was spoken; silences do not count."""
    values: list[float] = []
    spoken_so: list[bool] = []
    for name, tokens in recognised.items():
        counted = [token for token in tokens if token.name not in SILENCES]
        pairs = align_tokens(
            [word for word in references[name] if word not in SILENCES], [token.name for token in counted]
        )
        for token in counted:
            if token.confidence is None:
                raise ValueError(f"the token {token.name!r} of {name!r} has none; decode with confidences=True")
            values.append(token.confidence)
        spoken_so.extend(spoken == hypothesis for spoken, hypothesis in pairs if hypothesis is not None)
    is_right = np.array(spoken_so, dtype=np.bool_)
    right, wrong = int(is_right.sum()), int((~is_right).sum())
    if not right or not wrong:
        return ConfidenceQuality(right, wrong, float("nan"), float("nan"))
    area = (rankdata(values)[is_right].sum() - right * (right + 1) / 2) / (right * wrong)
    p = np.clip(values, _MIN_DOUBT, 1 - _MIN_DOUBT)
    entropy = -right * np.log(right / (right + wrong)) - wrong * np.log(wrong / (right + wrong))
    remaining = -np.log(p[is_right]).sum() - np.log1p(-p[~is_right]).sum()
    return ConfidenceQuality(right, wrong, float(area), float(1 - remaining / entropy))
