"""Decisions about whole phones: of segments whose boundaries are known, and of the boundaries themselves.

The paper names as a next step to go "from frame level to segment level (which requires dynamic programming over three
states of each phone)". A segment is scored by the best way through the phone's states, from left to right, one frame
after another: the sum of the scaled log probabilities on the way, and the log probability of the order of the states.

`SegmentDecoder.decode` finds the best sequence of segments by dynamic programming over their boundaries (a segmental or
explicit-duration Viterbi search):

    V(e, p) = max over d and q of   V(e - d, q) + language(q, p) + duration(p, d) + inside(p, e - d, e) - penalty

It differs from the frame-level search (`Decoder`) in three ways. A phone's duration as a whole has a distribution of
its own, learned from counts and bounded, where the search has one per state, which makes long durations geometric.
Nothing is pruned. And the language model is a bigram, since a decision remembers one phone only; there are no words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from echolearn.speech.folding import PhoneMap
from echolearn.speech.phones import SILENCES, phones_of_states, split_state
from echolearn.speech.recognition.decoder import SMALLEST, DecodingWeights, scaled_logarithms, state_shares
from echolearn.speech.recognition.ngrams import END, START, estimate
from echolearn.speech.recognition.phonemodels import PhoneModel, learn_phone_models, phone_segments
from echolearn.speech.recognition.search import Token
from echolearn.validation.array_types import Array

PRIOR = 20.0  # how many observations the smooth curve counts for beside the counted durations of a phone
BEYOND = 1.5  # the longest duration that is possible, in those of the longest that was observed
_NARROWEST = 0.2  # of the curve, as a standard deviation of the logarithm


class _States(NamedTuple):
    """The states of all phones as arrays, padded: labels (-1 for none), log probability of beginning with each state,
    and of the next state after each; the last column is the end of the phone.
    """

    labels: NDArray[np.int64]
    entry: NDArray[np.float64]
    next: NDArray[np.float64]


@dataclass(frozen=True)
class SegmentDecoder:
    """Finds the most probable segments of utterances by dynamic programming over their boundaries.

    Parameters
    ----------
    models : tuple of PhoneModel
        The phones. Of their states, the order counts and not the durations.
    durations : tuple of array of shape (longest,)
        Log probability that each phone lasts 1, 2, ... frames; longer ones are impossible.
    language : array of shape (n_phones + 1, n_phones + 1)
        Log probability of a phone (column) after another (row). The last row is the start of the utterance, the last
        column its end.
    priors : array of shape (n_states,)
        Share of each state among the training frames.
    weights : DecodingWeights, optional
        How much each part of a score counts; there is no beam.

    See Also
    --------
    learn_segments : Learns all of this from state labels.
    """

    models: tuple[PhoneModel, ...]
    durations: tuple[NDArray[np.float64], ...]
    language: NDArray[np.float64]
    priors: NDArray[np.float64]
    weights: DecodingWeights = field(default_factory=DecodingWeights)

    def decode(self, probabilities: Array) -> list[Token]:
        """Return the segments of one utterance.

        Parameters
        ----------
        probabilities : array of shape (n_frames, n_states)
            Probability of each state at each frame.

        Returns
        -------
        list of Token
            The phones with their frames; none for an utterance without frames.
        """
        if not len(probabilities):
            return []
        w = self.weights
        states = _states(self.models, w.duration_weight)
        phone, length = _decide(
            scaled_logarithms(probabilities, self.priors, w.prior_exponent),
            states.labels,
            states.entry,
            states.next,
            np.array([len(one) for one in self.durations]),
            w.duration_weight * self._padded_durations(),
            _times(w.language_weight, self.language),
            w.penalty,
        )
        ends = np.cumsum(length)
        return [
            Token(self.models[p].name, int(end - d), int(end)) for p, d, end in zip(phone, length, ends, strict=True)
        ]

    def classify(self, probabilities: Array, bounds: Iterable[tuple[int, int]]) -> list[str]:
        """Return the phone of each segment of an utterance, where the boundaries are known.

        Parameters
        ----------
        probabilities : array of shape (n_frames, n_states)
            Probability of each state at each frame.
        bounds : iterable of (int, int)
            First frame of each segment and the frame after its last.

        Returns
        -------
        list of str
            The phone of the best score by its states and its duration. The language model does not count.
        """
        w = self.weights
        states = _states(self.models, w.duration_weight)
        frames = scaled_logarithms(probabilities, self.priors, w.prior_exponent)
        durations = w.duration_weight * np.maximum(self._padded_durations(), math.log(SMALLEST))
        found = []
        for start, end in bounds:
            scores = (
                _segment_scores(frames[start:end], *states) + durations[:, min(end - start, durations.shape[1]) - 1]
            )
            found.append(self.models[int(np.argmax(scores))].name)
        return found

    def _padded_durations(self) -> NDArray[np.float64]:
        """Return the durations of all phones as one array, with -inf where there is none."""
        padded = np.full((len(self.durations), max(len(one) for one in self.durations)), -np.inf)
        for row, one in zip(padded, self.durations, strict=True):
            row[: len(one)] = one
        return padded


def learn_segments(labels: Sequence[Array], names: Sequence[str]) -> SegmentDecoder:
    """Learn a segment decoder from the state labels of the training part.

    Parameters
    ----------
    labels : sequence of array of shape (n_frames,)
        State labels of the training utterances, indices into `names`.
    names : sequence of str
        Name of each state, such as ``aa_s2``, in the order of the network's classes.

    Returns
    -------
    SegmentDecoder
        The decoder, with the default weights.
    """
    models = learn_phone_models(labels, names)
    segments = [phone_segments(one, names) for one in labels]
    phones = [model.name for model in models]
    bigram = estimate([[phone for phone, _, _ in one] for one in segments], vocabulary=phones)
    language = np.array([[bigram.score((a,), b) for b in (*phones, END)] for a in (*phones, START)])
    lasted: dict[str, Counter[int]] = {phone: Counter() for phone in phones}
    for one in segments:
        for phone, start, end in one:
            lasted[phone][end - start] += 1
    together = sum(lasted.values(), Counter())
    durations = tuple(duration_probabilities(lasted[phone] or together) for phone in phones)
    return SegmentDecoder(models, durations, language, state_shares(labels, len(names)))


def duration_probabilities(counts: Counter[int]) -> NDArray[np.float64]:
    """Return the log probability of each duration from counts of observed ones.

    Parameters
    ----------
    counts : Counter of int
        How often each duration in frames occurs.

    Returns
    -------
    array of shape (longest,)
        Log probabilities of 1, 2, ... frames, up to 1.5 times the longest duration observed: the counts, smoothed by a
        log-normal curve of their mean and spread that counts as 20 observations.

    Examples
    --------
    >>> p = np.exp(duration_probabilities(Counter({2: 5, 4: 5})))
    >>> len(p), float(p.sum().round(6)), int(p.argmax()) + 1
    (6, 1.0, 2)
    """
    observed = np.repeat(list(counts), list(counts.values()))
    frames = np.arange(1, math.ceil(BEYOND * observed.max()) + 1)
    spread = max(float(np.log(observed).std()), _NARROWEST)
    curve = np.exp(-0.5 * ((np.log(frames) - np.log(observed).mean()) / spread) ** 2) / frames
    smooth = PRIOR * curve / curve.sum() + np.array([counts[d] for d in frames.tolist()])
    logarithms: NDArray[np.float64] = np.log(np.maximum(smooth / smooth.sum(), SMALLEST))
    return logarithms


def segment_error(
    probabilities: Sequence[Array],
    labels: Sequence[Array],
    names: Sequence[str],
    *,
    decoder: SegmentDecoder | None = None,
    phone_map: PhoneMap | None = None,
    ignore: Collection[str] = SILENCES,
) -> float:
    """Return the share of phones that are not recognised where their boundaries are known.

    Parameters
    ----------
    probabilities : sequence of array of shape (n_frames, n_states)
        Probability of each state at each frame, per utterance.
    labels : sequence of array of shape (n_frames,)
        The true states of the same utterances, indices into `names`.
    names : sequence of str
        Name of each state.
    decoder : SegmentDecoder, optional
        What was learned on the training part: priors, durations, and in which order a phone's states follow. Without
        it a phone's score is the largest sum of log probabilities of its states in order, each of which may be left
        out.
    phone_map : mapping of str to str or None, optional
        Folds the phones of both sides into fewer classes before they are compared.
    ignore : collection of str, optional
        True phones that do not count; by default silences.

    Returns
    -------
    float
        Wrong segments per segment; NaN if there are none that count.
    """
    phone_map = phone_map or {}
    wrong = total = 0
    for P, y in zip(probabilities, labels, strict=True):
        counted = [
            (phone, start, end)
            for phone, start, end in phone_segments(y, names)
            if phone not in ignore and phone_map.get(phone, phone) not in (None, *ignore)
        ]
        bounds = [(start, end) for _, start, end in counted]
        found = _plain_classes(P, bounds, names) if decoder is None else decoder.classify(P, bounds)
        total += len(counted)
        for (phone, _, _), heard in zip(counted, found, strict=True):
            wrong += phone_map.get(phone, phone) != phone_map.get(heard, heard)
    return wrong / total if total else float("nan")


def _plain_classes(probabilities: Array, bounds: Iterable[tuple[int, int]], names: Sequence[str]) -> list[str]:
    """Return the phone of each segment by the probabilities of its states alone."""
    phones = phones_of_states(names)
    own = [
        sorted((split_state(name)[1] or 0, k) for k, name in enumerate(names) if split_state(name)[0] == phone)
        for phone in phones
    ]
    models = [
        PhoneModel(phone, tuple(k for _, k in one), np.ones(len(one)), np.ones((len(one), 1)), _onward(len(one)))
        for phone, one in zip(phones, own, strict=True)
    ]
    states = _states(models, 1.0)
    frames = scaled_logarithms(probabilities, np.ones(len(names)), 0.0)
    return [phones[int(np.argmax(_segment_scores(frames[start:end], *states)))] for start, end in bounds]


def _onward(n: int) -> NDArray[np.float64]:
    """Return which of n states may follow each; the last column is the end."""
    onward: NDArray[np.float64] = (np.arange(n + 1) > np.arange(n)[:, None]).astype(np.float64)
    return onward


def _times(factor: float, logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return logarithms times a factor; those of impossible moves stay."""
    return np.where(logarithms > -np.inf, factor * np.maximum(logarithms, -1e300), -np.inf)


def _states(models: Sequence[PhoneModel], weight: float) -> _States:
    """Return the states of phones as arrays; weight: the factor of the order of the states."""
    n, most = len(models), max(len(model.labels) for model in models)
    states = _States(np.full((n, most), -1), np.full((n, most), -np.inf), np.full((n, most, most + 1), -np.inf))
    for k, model in enumerate(models):
        own = len(model.labels)
        columns = [*range(own), most]
        states.labels[k, :own] = model.labels
        with np.errstate(divide="ignore"):
            states.entry[k, :own] = _times(weight, np.log(model.entry))
            states.next[k, :own, columns] = _times(weight, np.log(model.next)).T
    return states


@njit(cache=True, nogil=True)
def _enter(
    frame: NDArray[np.float64], labels: NDArray[np.int64], entry: NDArray[np.float64], at: NDArray[np.float64]
) -> None:
    """Score the states of one phone at the first frame of a segment."""
    for k in range(len(labels)):
        at[k] = entry[k] + frame[labels[k]] if labels[k] >= 0 else -np.inf


@njit(cache=True, nogil=True)
def _move(
    frame: NDArray[np.float64], labels: NDArray[np.int64], onward: NDArray[np.float64], at: NDArray[np.float64]
) -> None:
    """Take the scores of the states of one phone to the next frame."""
    for k in range(len(labels) - 1, -1, -1):
        if labels[k] >= 0:
            best = at[k]
            for before in range(k):
                best = max(best, at[before] + onward[before, k])
            at[k] = best + frame[labels[k]]


@njit(cache=True, nogil=True)
def _leave(onward: NDArray[np.float64], at: NDArray[np.float64]) -> float:
    """Return the best score of a segment that ends with the present frame."""
    best = -np.inf
    for k in range(len(at)):
        best = max(best, at[k] + onward[k, -1])
    return best


@njit(cache=True, nogil=True)
def _segment_scores(
    frames: NDArray[np.float64], labels: NDArray[np.int64], entry: NDArray[np.float64], onward: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the score of each phone for a whole segment."""
    scores, at = np.empty(len(labels)), np.empty(labels.shape[1])
    for p in range(len(labels)):
        _enter(frames[0], labels[p], entry[p], at)
        for t in range(1, len(frames)):
            _move(frames[t], labels[p], onward[p], at)
        scores[p] = _leave(onward[p], at)
    return scores


@njit(cache=True, nogil=True)
def _decide(
    frames: NDArray[np.float64],
    labels: NDArray[np.int64],
    entry: NDArray[np.float64],
    onward: NDArray[np.float64],
    longest: NDArray[np.int64],
    durations: NDArray[np.float64],
    language: NDArray[np.float64],
    penalty: float,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return phone and length of each segment of the best sequence."""
    n_frames, n = len(frames), len(labels)
    score = np.full((n_frames + 1, n), -np.inf)
    length, before = np.zeros((n_frames + 1, n), dtype=np.int64), np.full((n_frames + 1, n + 1), -1)
    at = np.empty(labels.shape[1])
    for start in range(n_frames + 1):
        for p in range(n + 1 if start == n_frames else n):
            entered = language[n, p] if start == 0 else -np.inf
            for q in range(n):
                if score[start, q] + language[q, p] > entered:
                    entered = score[start, q] + language[q, p]
                    before[start, p] = q
            if entered == -np.inf or p == n:
                continue
            for d in range(1, min(longest[p], n_frames - start) + 1):
                if d == 1:
                    _enter(frames[start], labels[p], entry[p], at)
                else:
                    _move(frames[start + d - 1], labels[p], onward[p], at)
                total = entered - penalty + durations[p, d - 1] + _leave(onward[p], at)
                if total > score[start + d, p]:
                    score[start + d, p] = total
                    length[start + d, p] = d
    phones, lengths, t, p = [0][:0], [0][:0], n_frames, before[n_frames, n]
    while t > 0 and p >= 0:
        phones.append(p)
        lengths.append(length[t, p])
        t -= lengths[-1]
        p = before[t, p]
    return np.array(phones[::-1]), np.array(lengths[::-1])
