"""A monophone GMM-HMM that says which state of which phone every frame belongs to.

Three states a phone, left to right. Viterbi re-estimation: align with the model, re-estimate the
model from the alignment, again; single Gaussians first, then mixtures doubled step by step. The
first alignment divides each given segment in three, or, when only the phones' order is known,
the whole utterance evenly (a flat start).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from echolearn.speech.errors import Problem, raise_any
from echolearn.speech.features import SHIFT, WINDOW
from echolearn.speech.labels import Segment
from echolearn.speech.mixtures import Mixtures
from echolearn.speech.phones import STATES_PER_PHONE
from echolearn.speech.viterbi import best_path

Progress = Callable[[str, int, int], None]
Transcript = Sequence[Segment] | Sequence[str]

# A state left out: dear, so that only phones too short for three states do it.
SKIP = float(np.log(1e-10))
_SECOND = 16_000
_LEAST_LEAVING, _MOST_LEAVING = 0.02, 0.95
# Rounds of Viterbi re-estimation: from a flat start to segments, from segments, after each doubling.
_FLAT_ROUNDS, _SEGMENT_ROUNDS, _MIXTURE_ROUNDS = 8, 3, 3


def first_frame(seconds: float) -> int:
    """The first frame whose middle is not before this time."""
    return max(0, int(np.ceil((seconds * _SECOND - WINDOW / 2) / SHIFT - 1e-6)))


def boundary_time(frame: int) -> float:
    """The time halfway between the middles of a frame and the one before it."""
    return (frame * SHIFT + WINDOW / 2 - SHIFT / 2) / _SECOND


@dataclass(frozen=True)
class Alignment:
    """One utterance: labels (T,), 3 * phone + state; starts (P,), the first frame of each phone."""

    labels: NDArray[np.int16]
    starts: NDArray[np.int64]
    score: float

    def segments(self, names: Sequence[str], states: bool = False, suffix: str = "_s{}") -> list[Segment]:
        """Phones, or their states, with times; the first begins at 0."""
        T = len(self.labels)
        if states:
            ids = np.searchsorted(self.starts, np.arange(T), side="right") - 1
            state = self.labels % STATES_PER_PHONE
            edges = np.flatnonzero(np.r_[True, (np.diff(ids) != 0) | (np.diff(state) != 0)])
            named = [names[ids[e]] + suffix.format(state[e] + 2) for e in edges]
        else:
            edges, named = self.starts, list(names)
        times = [0.0] + [boundary_time(int(e)) for e in edges[1:]] + [boundary_time(T)]
        return [Segment(a, b, n) for a, b, n in zip(times, times[1:], named, strict=False)]


@dataclass(frozen=True)
class Aligner:
    """A trained model: phones in the order of their labels, densities, leaving probabilities (S,)."""

    phones: tuple[str, ...]
    mixtures: Mixtures
    leaving: NDArray[np.float64]

    def align(self, X: NDArray[np.float32], names: Sequence[str]) -> Alignment:
        """The best state sequence of this phone sequence; needs at least a frame a phone."""
        chain = _chain(names, self.phones)
        states, local = np.unique(chain, return_inverse=True)
        emission = self.mixtures.densities(X, states)
        leave = self.leaving[chain]
        path, score = best_path(emission, local.astype(np.int64), np.log1p(-leave), np.log(leave), SKIP)
        return Alignment(chain[path].astype(np.int16), _starts(path), score / len(X))

    def align_all(
        self,
        features: Iterable[NDArray[np.float32]],
        names: Sequence[Sequence[str]],
        progress: Progress | None = None,
    ) -> list[Alignment]:
        """One utterance after another, so that a lazy list of features stays lazy."""
        aligned = []
        # The products are small: a second BLAS thread waits longer than it works.
        with threadpool_limits(1):
            for done, (X, n) in enumerate(zip(features, names, strict=True), 1):
                aligned.append(self.align(X, n))
                if progress and (done % 100 == 0 or done == len(names)):
                    progress("labelling frames", done, len(names))
        return aligned


def train_aligner(
    features: Sequence[NDArray[np.float32]],
    transcripts: Sequence[Transcript],
    phones: Sequence[str],
    *,
    mixtures: int = 4,
    flat: bool = False,
    progress: Progress | None = None,
) -> Aligner:
    """Learn from utterances (T, D) and their phones, with segments or (also by flat=True) without."""
    names = [phone_names(t) for t in transcripts]
    raise_any(too_short([len(X) for X in features], names) + _unknown(names, phones))
    flat = flat or any(not _timed(t) for t in transcripts)
    frames = np.concatenate(list(features))
    labels = np.concatenate(
        [_first_labels(len(X), t, phones, flat) for X, t in zip(features, transcripts, strict=True)]
    )
    states = STATES_PER_PHONE * len(phones)
    mean, variance = frames.mean(axis=0, dtype=np.float64), frames.var(axis=0, dtype=np.float64)
    blank = Mixtures.flat(states, mean, variance)
    aligner = Aligner(tuple(phones), blank.reestimated(frames, labels), np.full(states, 0.3))
    steps = _schedule(mixtures, flat)
    for done, components in enumerate(steps):
        if components > aligner.mixtures.components:
            grown = aligner.mixtures.grown(components, np.bincount(labels, minlength=states))
            aligner = replace(aligner, mixtures=grown)
        aligned = aligner.align_all(features, names)
        model = aligner.mixtures
        if components == 0:
            labels = np.concatenate([_evenly(a, n, phones) for a, n in zip(aligned, names, strict=True)])
            model = blank
        else:
            labels = np.concatenate([a.labels for a in aligned]).astype(np.int64)
        aligner = Aligner(aligner.phones, model.reestimated(frames, labels), _leaving(aligned, states))
        if progress:
            progress("aligning states", done + 1, len(steps))
    return aligner


def align(
    features: Sequence[NDArray[np.float32]],
    transcripts: Sequence[Transcript],
    phones: Sequence[str],
    *,
    mixtures: int = 4,
    flat: bool = False,
    train: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> list[Alignment]:
    """Train on the utterances `train` (default: all) and align every utterance with the result."""
    names = [phone_names(t) for t in transcripts]
    raise_any(too_short([len(X) for X in features], names) + _unknown(names, phones))
    chosen = range(len(features)) if train is None else train
    aligner = train_aligner(
        [features[k] for k in chosen],
        [transcripts[k] for k in chosen],
        phones,
        mixtures=mixtures,
        flat=flat,
        progress=progress,
    )
    return aligner.align_all(features, names)


def boundary_errors(found: Sequence[Alignment], truth: Sequence[Sequence[Segment]]) -> NDArray[np.float64]:
    """Seconds by which each inner phone boundary is later than the true one."""
    return np.array(
        [
            boundary_time(int(frame)) - segment.start
            for one, segments in zip(found, truth, strict=True)
            for frame, segment in zip(one.starts[1:], segments[1:], strict=True)
        ]
    )


def phone_names(transcript: Transcript) -> list[str]:
    return [item.name if isinstance(item, Segment) else item for item in transcript]


def too_short(
    lengths: Sequence[int], names: Sequence[Sequence[str]], files: Sequence[str] | None = None
) -> list[Problem]:
    """Utterances with fewer frames than phones, which no path can explain."""
    return [
        Problem(
            files[k] if files else f"utterance {k}",
            f"{length} frames cannot hold {len(phones)} phones; labels and audio do not belong together",
        )
        for k, (length, phones) in enumerate(zip(lengths, names, strict=True))
        if length < max(1, len(phones)) or not phones
    ]


def _unknown(names: Sequence[Sequence[str]], phones: Sequence[str]) -> list[Problem]:
    return [
        Problem(f"utterance {k}", f"unknown phone {name!r}; expected one of {len(phones)} phones")
        for k, own in enumerate(names)
        for name in sorted(set(own) - set(phones))
    ]


def _timed(transcript: Transcript) -> bool:
    return all(isinstance(item, Segment) for item in transcript)


def _chain(names: Sequence[str], phones: Sequence[str]) -> NDArray[np.int64]:
    """The states an utterance passes, in order: (3P,)."""
    index = {phone: k for k, phone in enumerate(phones)}
    first = np.array([index[name] for name in names], dtype=np.int64) * STATES_PER_PHONE
    return (first[:, None] + np.arange(STATES_PER_PHONE)).reshape(-1)


def _first_labels(T: int, transcript: Transcript, phones: Sequence[str], flat: bool) -> NDArray[np.int64]:
    """Each phone's frames, or with a flat start the whole utterance, divided evenly among states."""
    chain = _chain(phone_names(transcript), phones)
    if flat:
        return chain[(np.arange(T) * len(chain)) // T]
    segments = cast(Sequence[Segment], transcript)
    starts = np.array([0, *(min(T, first_frame(segment.start)) for segment in segments[1:])])
    edges = [*np.maximum.accumulate(starts).tolist(), T]
    labels = np.empty(T, dtype=np.int64)
    for p, (a, b) in enumerate(pairwise(edges)):
        inside = (2 * np.arange(b - a) + 1) * STATES_PER_PHONE // (2 * max(1, b - a))
        labels[a:b] = chain[STATES_PER_PHONE * p + inside]
    return labels


def _evenly(aligned: Alignment, names: Sequence[str], phones: Sequence[str]) -> NDArray[np.int64]:
    segments = [
        Segment(boundary_time(int(a)), boundary_time(int(b)), name)
        for a, b, name in zip(aligned.starts, [*aligned.starts[1:], len(aligned.labels)], names, strict=True)
    ]
    return _first_labels(len(aligned.labels), segments, phones, flat=False)


def _schedule(mixtures: int, flat: bool) -> list[int]:
    """Components at each round; 0 divides the phones found so far evenly and begins again from there.

    A flat start gives neighbouring phones' states each other's frames, and hard decisions cannot
    undo that; new, even states inside the phones found can.
    """
    rounds = [1] * _FLAT_ROUNDS + [0] if flat else []
    rounds += [1] * _SEGMENT_ROUNDS
    components = 1
    while components < mixtures:
        components = min(2 * components, mixtures)
        rounds += [components] * _MIXTURE_ROUNDS
    return rounds


def _starts(path: NDArray[np.int64]) -> NDArray[np.int64]:
    phone = path // STATES_PER_PHONE
    return np.flatnonzero(np.r_[True, np.diff(phone) != 0])


def _leaving(aligned: Sequence[Alignment], states: int) -> NDArray[np.float64]:
    """How often a state was left per frame spent in it, one imagined visit of three frames added."""
    frames, visits = np.full(states, 3.0), np.ones(states)
    for one in aligned:
        entered = np.r_[True, np.diff(one.labels) != 0]
        entered[one.starts] = True
        frames += np.bincount(one.labels, minlength=states)
        visits += np.bincount(one.labels[entered], minlength=states)
    return np.asarray(np.clip(visits / frames, _LEAST_LEAVING, _MOST_LEAVING))
