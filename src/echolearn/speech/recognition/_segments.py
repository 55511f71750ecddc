"""The phone of segments whose boundaries are known, for the segment level of Table 1.

The paper names as a next step to go "from frame level to segment level (which requires dynamic programming over three
states of each phone)". A segment is scored by the best way through the phone's states, from left to right, one frame
after another: the sum of the scaled log probabilities on the way, the log probability of the order of the states, and
that of the phone's duration as a whole, which is learned from counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echolearn.execution.compilation import cached_njit
from echolearn.speech._phone_set import SILENCES, PhoneMap
from echolearn.speech.recognition._decoder import MIN_PROBABILITY, DecodingWeights, scaled_logarithms, state_shares
from echolearn.speech.recognition._phone_models import PhoneModel, learn_phone_models, phone_segments
from echolearn.validation import Array

CURVE_OBSERVATIONS = 20.0  # how many observations the smooth curve counts for beside the counted durations of a phone
LONGEST_RATIO = 1.5  # of the longest duration that is possible to the longest that was observed
_MIN_SPREAD = 0.2  # of the curve, as a standard deviation of the logarithm


class _States(NamedTuple):
    """The states of all phones, padded: labels (-1 for none), log probabilities; the last of `next` ends a phone."""

    labels: NDArray[np.int64]
    entry: NDArray[np.float64]
    next: NDArray[np.float64]


@dataclass(frozen=True)
class SegmentClassifier:
    """The phones, the log probability that each lasts 1, 2, ... frames, and the share of each state in training."""

    models: tuple[PhoneModel, ...]
    durations: tuple[NDArray[np.float64], ...]
    priors: NDArray[np.float64]
    prior_exponent: float = DecodingWeights.prior_exponent

    def classify(self, probabilities: Array, bounds: Iterable[tuple[int, int]]) -> list[str]:
        """Return the most probable phone of each segment (first frame, frame after its last) of an utterance."""
        states = _states(self.models)
        frames = scaled_logarithms(probabilities, self.priors, self.prior_exponent)
        durations = np.full((len(self.durations), max(map(len, self.durations))), math.log(MIN_PROBABILITY))
        for row, one in zip(durations, self.durations, strict=True):
            row[: len(one)] = np.maximum(one, math.log(MIN_PROBABILITY))
        phones = []
        for start, end in bounds:
            lasting = durations[:, min(end - start, durations.shape[1]) - 1]
            scores = _segment_scores(frames[start:end], *states) + lasting
            phones.append(self.models[int(np.argmax(scores))].name)
        return phones


def learn_segments(labels: Sequence[Array], names: Sequence[str]) -> SegmentClassifier:
    """Return a classifier learned from the state labels of the training part, indices into names."""
    models = learn_phone_models(labels, names)
    lasted: dict[str, Counter[int]] = {model.name: Counter() for model in models}
    for one in labels:
        for phone, start, end in phone_segments(one, names):
            lasted[phone][end - start] += 1
    together = sum(lasted.values(), Counter())
    durations = tuple(duration_probabilities(lasted[model.name] or together) for model in models)
    return SegmentClassifier(models, durations, state_shares(labels, len(names)))


def duration_probabilities(counts: Counter[int]) -> NDArray[np.float64]:
    """Return log probabilities of 1, 2, ... frames: counts smoothed by a log-normal curve of their mean and spread."""
    observed = np.repeat(list(counts), list(counts.values()))
    frames = np.arange(1, math.ceil(LONGEST_RATIO * observed.max()) + 1)
    spread = max(float(np.log(observed).std()), _MIN_SPREAD)
    curve = np.exp(-0.5 * ((np.log(frames) - np.log(observed).mean()) / spread) ** 2) / frames
    smooth = CURVE_OBSERVATIONS * curve / curve.sum() + np.array([counts[d] for d in frames.tolist()])
    return np.asarray(np.log(np.maximum(smooth / smooth.sum(), MIN_PROBABILITY)))


def segment_error(
    classifier: SegmentClassifier,
    probabilities: Sequence[Array],
    labels: Sequence[Array],
    names: Sequence[str],
    *,
    phone_map: PhoneMap | None = None,
) -> float:
    """Return the share of phones that are not recognised where their boundaries are known; NaN if none counts."""
    phone_map = phone_map or {}
    wrong = total = 0
    for P, y in zip(probabilities, labels, strict=True):
        counted = [
            (phone, start, end)
            for phone, start, end in phone_segments(y, names)
            if phone not in SILENCES and phone_map.get(phone, phone) not in (None, *SILENCES)
        ]
        phones = classifier.classify(P, [(start, end) for _, start, end in counted])
        total += len(counted)
        for (spoken, _, _), recognised in zip(counted, phones, strict=True):
            wrong += phone_map.get(spoken, spoken) != phone_map.get(recognised, recognised)
    return wrong / total if total else float("nan")


def _states(models: Sequence[PhoneModel]) -> _States:
    """Return the states of phones as arrays."""
    n, most = len(models), max(len(model.labels) for model in models)
    states = _States(np.full((n, most), -1), np.full((n, most), -np.inf), np.full((n, most, most + 1), -np.inf))
    for k, model in enumerate(models):
        size = len(model.labels)
        states.labels[k, :size] = model.labels
        with np.errstate(divide="ignore"):
            states.entry[k, :size] = np.log(model.entry)
            states.next[k, :size, [*range(size), most]] = np.log(model.next).T
    return states


@cached_njit(nogil=True)
def _segment_scores(
    frames: NDArray[np.float64], labels: NDArray[np.int64], entry: NDArray[np.float64], onward: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the score of each phone for a whole segment: the best way through its states."""
    scores, at = np.empty(len(labels)), np.empty(labels.shape[1])
    for p in range(len(labels)):
        for k in range(labels.shape[1]):
            at[k] = entry[p, k] + frames[0, labels[p, k]] if labels[p, k] >= 0 else -np.inf
        for t in range(1, len(frames)):
            for k in range(labels.shape[1] - 1, -1, -1):
                if labels[p, k] >= 0:
                    best = at[k]
                    for before in range(k):
                        best = max(best, at[before] + onward[p, before, k])
                    at[k] = best + frames[t, labels[p, k]]
        scores[p] = -np.inf
        for k in range(labels.shape[1]):
            scores[p] = max(scores[p], at[k] + onward[p, k, -1])
    return scores
