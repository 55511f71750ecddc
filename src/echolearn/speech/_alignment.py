"""Forced alignment: training of a monophone model (GMM-HMM), and alignment of utterances with it.

The model has three states per phone, from left to right. It is trained by Viterbi re-estimation: align with the model,
re-estimate the model from the alignment, and repeat, with single Gaussians first, then with mixtures that are doubled
step by step. The first alignment divides each given segment in three or, when only the order of the phones is known,
the whole utterance evenly (a flat start).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from echolearn.display.progress import StageProgress
from echolearn.execution.compilation import cached_njit
from echolearn.speech._features import Frames, Labels, boundary_time, first_frame
from echolearn.speech._labels import Segment
from echolearn.speech._phone_set import STATES_PER_PHONE
from echolearn.speech._text import raise_any
from echolearn.speech._transcripts import Transcript, phone_names, too_few_frames, unknown_phones

_MIN_LEAVING, _MAX_LEAVING = 0.02, 0.95
# Rounds of Viterbi re-estimation: from a flat start to segments, from segments, after each doubling.
_FLAT_ROUNDS, _SEGMENT_ROUNDS, _MIXTURE_ROUNDS = 8, 3, 3
SKIP = float(np.log(1e-10))  # penalty of leaving out a state, so high that only phones too short for three states do it
VARIANCE_FLOOR = 0.01  # of the variance of all frames
FRAMES_PER_COMPONENT = 20
_SPLIT = 0.2  # deviations by which each half of a split component moves
Floats = NDArray[np.float64]
_MAX_STEP_POSITIONS = 3


@dataclass(frozen=True)
class Alignment:
    """The alignment of one utterance: the state of every frame."""

    labels: Labels  # 3 * phone + state of each frame, state 0, 1 or 2
    starts: NDArray[np.int64]  # first frame of each phone of the transcript
    score: float  # log probability per frame

    def segments(self, names: Sequence[str], states: bool = False) -> list[Segment]:
        """Return the phones, or their states as HTK counts them (2, 3, 4), with times from 0 on."""
        T = len(self.labels)
        if states:
            ids = np.searchsorted(self.starts, np.arange(T), side="right") - 1
            state = self.labels % STATES_PER_PHONE
            edges = np.flatnonzero(np.r_[True, (np.diff(ids) != 0) | (np.diff(state) != 0)])
            named = [f"{names[ids[e]]}_s{state[e] + 2}" for e in edges]
        else:
            edges, named = self.starts, list(names)
        times = [0.0] + [boundary_time(int(e)) for e in edges[1:]] + [boundary_time(T)]
        return [Segment(a, b, n) for a, b, n in zip(times, times[1:], named, strict=False)]


def align(
    features: Sequence[Frames],
    transcripts: Sequence[Transcript],
    phones: Sequence[str],
    *,
    mixtures: int = 4,
    flat: bool = False,
    train: Sequence[int] | None = None,
    progress: StageProgress | None = None,
) -> list[Alignment]:
    """Train a model on some utterances and align every utterance with it.

    A CorpusError names every utterance that has fewer frames than phones, and every phone that is not in the list.

    Parameters
    ----------
    features : sequence of array of shape (n_frames, n_columns), float32
        Features of each utterance, usually 39 columns without context.
    transcripts : sequence of sequence of Segment or of str
        Phones of each utterance, with their times or without.
    phones : sequence of str
        The phone list; a label is 3 * (index into this list) + state.
    mixtures : int, default 4
        Gaussians per state at the end of training. Use more for a large corpus; they need more frames per state.
    flat : bool, default False
        Whether to ignore the times of the transcripts and start from an even division of each utterance. This is
        also done if any transcript has no times.
    train : sequence of int, optional
        Indices of the utterances to train on, by default all. Pass the training part, so that the
        model does not depend on the test part.
    progress : callable, optional
        Called as `progress(text, done, total)` after every round.

    Returns
    -------
    list of Alignment
        One alignment per utterance.

    Examples
    --------
    The example has two phones that differ in a single feature:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> lengths = rng.integers(4, 9, size=(20, 2))
    >>> features = [np.repeat([0, 9], n)[:, None] + rng.normal(0, 0.1, (n.sum(), 1)) for n in lengths]
    >>> found = align([X.astype(np.float32) for X in features], [["a", "b"]] * 20, ["a", "b"], mixtures=1)
    >>> all(one.starts[1] == n[0] for one, n in zip(found, lengths))
    True
    """
    names = [phone_names(t) for t in transcripts]
    _check(features, names, phones)
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


def train_aligner(
    features: Sequence[Frames],
    transcripts: Sequence[Transcript],
    phones: Sequence[str],
    *,
    mixtures: int = 4,
    flat: bool = False,
    progress: StageProgress | None = None,
) -> Aligner:
    """Return a model trained on utterances and their phones; the parameters are those of `align`."""
    names = [phone_names(t) for t in transcripts]
    _check(features, names, phones)
    flat = flat or not all(isinstance(item, Segment) for t in transcripts for item in t)
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


def boundary_errors(alignments: Sequence[Alignment], truth: Sequence[Sequence[Segment]]) -> NDArray[np.float64]:
    """Return the seconds by which each boundary between two phones is later than the true one.

    Parameters
    ----------
    alignments : sequence of Alignment
        One alignment per utterance.
    truth : sequence of sequence of Segment
        The phones of each utterance with their true times.

    Returns
    -------
    array of shape (n_boundaries,)
        The differences of all utterances, one after another.

    Examples
    --------
    >>> import numpy as np
    >>> found = Alignment(labels=np.array([0, 1, 5], dtype=np.int16), starts=np.array([0, 2]), score=-1.0)
    >>> boundary_errors([found], [[Segment(0.0, 0.02, "a"), Segment(0.02, 0.05, "b")]])
    array([0.0075])
    """
    return np.array(
        [
            boundary_time(int(frame)) - segment.start
            for one, segments in zip(alignments, truth, strict=True)
            for frame, segment in zip(one.starts[1:], segments[1:], strict=True)
        ]
    )


@dataclass(frozen=True)
class Aligner:
    """A trained model that aligns phones with the frames of utterances."""

    phones: tuple[str, ...]
    mixtures: Mixtures
    leaving: NDArray[np.float64]  # probability of leaving each state at any frame

    def align(self, X: Frames, names: Sequence[str]) -> Alignment:
        """Return the most probable states of an utterance."""
        chain = state_chain(names, self.phones)
        states, local = np.unique(chain, return_inverse=True)
        emission = self.mixtures.log_densities(X, states)
        leave = self.leaving[chain]
        path, score = best_path(emission, local.astype(np.int64), np.log1p(-leave), np.log(leave), SKIP)
        starts = np.flatnonzero(np.r_[True, np.diff(path // STATES_PER_PHONE) != 0])
        return Alignment(chain[path].astype(np.int16), starts, score / len(X))

    def align_all(
        self, features: Iterable[Frames], names: Sequence[Sequence[str]], progress: StageProgress | None = None
    ) -> list[Alignment]:
        """Align many utterances, one after another; only the features of one are in memory at a time."""
        aligned = []
        # The products are small: a second BLAS thread waits longer than it works.
        with threadpool_limits(1):
            for done, (X, n) in enumerate(zip(features, names, strict=True), 1):
                aligned.append(self.align(X, n))
                if progress and (done % 100 == 0 or done == len(names)):
                    progress("labelling frames", done, len(names))
        return aligned


def _check(features: Sequence[Frames], names: Sequence[Sequence[str]], phones: Sequence[str]) -> None:
    """Raise one error with every utterance that is too short and every unknown phone."""
    given = enumerate(zip(features, names, strict=True))
    short = [problem for k, (X, spoken) in given for problem in too_few_frames(len(X), spoken, f"utterance {k}")]
    raise_any(short + [p for k, spoken in enumerate(names) for p in unknown_phones(spoken, phones, f"utterance {k}")])


def _first_labels(T: int, transcript: Transcript, phones: Sequence[str], flat: bool) -> NDArray[np.int64]:
    """Divide the frames of each phone, or with a flat start those of the whole utterance, evenly among states: (T,)."""
    chain = state_chain(phone_names(transcript), phones)
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
    """Divide the frames of each phone that was found evenly among its states: (T,)."""
    segments = [
        Segment(boundary_time(int(a)), boundary_time(int(b)), name)
        for a, b, name in zip(aligned.starts, [*aligned.starts[1:], len(aligned.labels)], names, strict=True)
    ]
    return _first_labels(len(aligned.labels), segments, phones, flat=False)


def _schedule(mixtures: int, flat: bool) -> list[int]:
    """Return the components of each round; 0 divides the phones found so far evenly and starts again: a flat start
    gives neighbouring phones' states each other's frames, and hard decisions cannot undo that."""
    rounds = [1] * _FLAT_ROUNDS + [0] if flat else []
    rounds += [1] * _SEGMENT_ROUNDS
    components = 1
    while components < mixtures:
        components = min(2 * components, mixtures)
        rounds += [components] * _MIXTURE_ROUNDS
    return rounds


def _leaving(aligned: Sequence[Alignment], states: int) -> NDArray[np.float64]:
    """Return how often each state was left per frame spent in it, after adding one imagined visit of three frames."""
    frames, visits = np.full(states, 3.0), np.ones(states)
    for one in aligned:
        entered = np.r_[True, np.diff(one.labels) != 0]
        entered[one.starts] = True
        frames += np.bincount(one.labels, minlength=states)
        visits += np.bincount(one.labels[entered], minlength=states)
    return np.asarray(np.clip(visits / frames, _MIN_LEAVING, _MAX_LEAVING))


def state_chain(names: Sequence[str], phones: Sequence[str]) -> NDArray[np.int64]:
    """Return the states 3 * phone + 0, 1, 2 of each phone of an utterance, in order: (3 * len(names),)."""
    index = {phone: k for k, phone in enumerate(phones)}
    first = np.array([index[name] for name in names], dtype=np.int64) * STATES_PER_PHONE
    return (first[:, None] + np.arange(STATES_PER_PHONE)).reshape(-1)


@dataclass(frozen=True)
class Mixtures:
    """One mixture of Gaussians per state."""

    log_weights: Floats  # (S, M); -inf where a state has fewer components
    means: Floats  # (S, M, D)
    variances: Floats  # (S, M, D)
    floor: Floats  # (D,), of all variances

    @property
    def components(self) -> int:
        """The number of components per state, M."""
        return int(self.log_weights.shape[1])

    @classmethod
    def flat(cls, states: int, mean: Floats, variance: Floats) -> Mixtures:
        """Return the same single Gaussian for every state; 1 % of its variance is the floor of all variances."""
        floor = np.maximum(VARIANCE_FLOOR * variance, 1e-8)
        means, variances = (np.tile(one, (states, 1, 1)) for one in (mean, np.maximum(variance, floor)))
        return cls(np.zeros((states, 1)), means, variances, floor)

    def component_log_densities(self, X: Frames, states: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return log w + log N(x; m, v) of every component: (T, M, len(states)); the square is multiplied out."""
        means, variances = (a[states].swapaxes(0, 1) for a in (self.means, self.variances))
        precision = 1.0 / variances
        constant = self.log_weights[states].T - 0.5 * (
            (means**2 * precision).sum(axis=2) + np.log(2 * np.pi * variances).sum(axis=2)
        )
        size = (-1, X.shape[1])
        linear = (means * precision).reshape(size).astype(np.float32)
        square = (-0.5 * precision).reshape(size).astype(np.float32)
        out = X @ linear.T + (X * X) @ square.T + constant.reshape(-1).astype(np.float32)
        return np.asarray(out.reshape(len(X), self.components, len(states)), dtype=np.float32)

    def log_densities(self, X: Frames, states: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return log p(x | state): (T, len(states)), float32."""
        each = self.component_log_densities(X, states)
        if self.components == 1:
            return each[:, 0]
        top = each.max(axis=1)
        return np.asarray(top + np.log(np.exp(each - top[:, None]).sum(axis=1)), dtype=np.float32)

    def reestimated(self, X: Frames, labels: NDArray[np.int64]) -> Mixtures:
        """Return mixtures after one step of expectation-maximisation; a state without frames keeps its density."""
        log_weights, means, variances = self.log_weights.copy(), self.means.copy(), self.variances.copy()
        order = np.argsort(labels, kind="stable")
        edges = np.searchsorted(labels[order], np.arange(len(means) + 1))
        for s in range(len(means)):
            rows = X[order[edges[s] : edges[s + 1]]]
            if len(rows) == 0:
                continue
            each = self.component_log_densities(rows, np.array([s]))[:, :, 0].astype(np.float64)
            share = np.exp(each - each.max(axis=1, keepdims=True))
            share /= share.sum(axis=1, keepdims=True)
            count = share.sum(axis=0)
            alive = count > 1e-3
            with np.errstate(divide="ignore"):
                log_weights[s] = np.where(alive, np.log(count / len(rows)), -np.inf)
            per = np.where(alive, count, 1.0)[:, None]
            wide = rows.astype(np.float64)
            fresh = share.T @ wide / per
            spread = np.maximum(share.T @ wide**2 / per - fresh**2, self.floor)
            means[s] = np.where(alive[:, None], fresh, means[s])
            variances[s] = np.where(alive[:, None], spread, variances[s])
        return replace(self, log_weights=log_weights, means=means, variances=variances)

    def grown(self, components: int, counts: NDArray[np.int64]) -> Mixtures:
        """Return mixtures in which the largest component of each state was split, up to one per 20 of its `counts`."""
        extra = components - self.components
        log_weights = np.pad(self.log_weights, ((0, 0), (0, extra)), constant_values=-np.inf)
        means = np.pad(self.means, ((0, 0), (0, extra), (0, 0)))
        variances = np.pad(self.variances, ((0, 0), (0, extra), (0, 0)), constant_values=1.0)
        for s in range(len(means)):
            for new in range(self.components, components):
                if (new + 1) * FRAMES_PER_COMPONENT > counts[s]:
                    break
                old = int(np.argmax(log_weights[s]))
                shift = _SPLIT * np.sqrt(variances[s, old])
                means[s, new], variances[s, new] = means[s, old] + shift, variances[s, old]
                means[s, old] = means[s, old] - shift
                log_weights[s, old] -= np.log(2)
                log_weights[s, new] = log_weights[s, old]
        return replace(self, log_weights=log_weights, means=means, variances=variances)


@cached_njit()
def best_path(
    emission: NDArray[np.float32],
    chain: NDArray[np.int64],
    stay: NDArray[np.float64],
    go: NDArray[np.float64],
    skip: float,
) -> tuple[NDArray[np.int64], float]:
    """Return the position at each frame of the most probable path, and its log probability.

    `chain` has the state at each position, three positions per phone; `stay` and `go` are log probabilities, `skip` the
    log penalty of a position that is left out. From one frame to the next a path moves by 0 to 3 positions. So a phone
    may have a single frame, in one of its three states. No phone can be left out, because a move by three positions
    leads to the same state of the next phone.
    """
    T, C = emission.shape[0], chain.shape[0]
    score = np.full(C, -np.inf)
    fresh = np.empty(C)
    step = np.zeros((T, C), dtype=np.uint8)
    for c in range(min(3, C)):
        score[c] = c * skip + emission[0, chain[c]]
    for t in range(1, T):
        for c in range(C):
            best, taken = score[c] + stay[c], 0
            for k in range(1, min(_MAX_STEP_POSITIONS, c) + 1):
                other = score[c - k] + go[c - k] + (k - 1) * skip
                if other > best:
                    best, taken = other, k
            fresh[c] = best + emission[t, chain[c]]
            step[t, c] = taken
        score, fresh = fresh, score
    last, total = C - 1, -np.inf
    for c in range(max(0, C - 3), C):
        ended = score[c] + (C - 1 - c) * skip
        if ended > total:
            last, total = c, ended
    path = np.empty(T, dtype=np.int64)
    for t in range(T - 1, -1, -1):
        path[t] = last
        last -= step[t, last]
    return path, total
