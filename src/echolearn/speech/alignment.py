"""Forced alignment: training of a monophone model (GMM-HMM), and alignment of utterances with it.

The model has three states per phone, from left to right. It is trained by Viterbi re-estimation: align with the model,
re-estimate the model from the alignment, and repeat, with single Gaussians first, then with mixtures that are doubled
step by step. The first alignment divides each given segment in three or, when only the order of the phones is known,
the whole utterance evenly (a flat start).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray

from echolearn.speech._typing import Frames, Progress
from echolearn.speech.aligner import Aligner, Alignment, state_chain
from echolearn.speech.errors import raise_any
from echolearn.speech.features import boundary_time, first_frame
from echolearn.speech.labels import Segment
from echolearn.speech.mixtures import Mixtures
from echolearn.speech.phones import STATES_PER_PHONE
from echolearn.speech.transcripts import Transcript, phone_names, too_few_frames, unknown_phones

_MIN_LEAVING, _MAX_LEAVING = 0.02, 0.95
# Rounds of Viterbi re-estimation: from a flat start to segments, from segments, after each doubling.
_FLAT_ROUNDS, _SEGMENT_ROUNDS, _MIXTURE_ROUNDS = 8, 3, 3


def align(
    features: Sequence[Frames],
    transcripts: Sequence[Transcript],
    phones: Sequence[str],
    *,
    mixtures: int = 4,
    flat: bool = False,
    train: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> list[Alignment]:
    """Train a model on some utterances and align every utterance with it.

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

    Raises
    ------
    CorpusError
        If an utterance has fewer frames than phones, or a phone is not in the list. The error names all of them.

    See Also
    --------
    train_aligner : Return the model itself.
    boundary_errors : Compare the boundaries with known ones.

    Examples
    --------
    The example has two phones that differ in a single feature:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> lengths = rng.integers(4, 9, size=(20, 2))
    >>> features = [np.repeat([0, 9], n)[:, None] + rng.normal(0, 0.1, (n.sum(), 1)) for n in lengths]
    >>> features = [X.astype(np.float32) for X in features]
    >>> found = align(features, [["a", "b"]] * 20, ["a", "b"], mixtures=1)
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
    progress: Progress | None = None,
) -> Aligner:
    """Return a model trained on utterances and their phones; the parameters are those of `align`."""
    names = [phone_names(t) for t in transcripts]
    _check(features, names, phones)
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


def boundary_errors(found: Sequence[Alignment], truth: Sequence[Sequence[Segment]]) -> NDArray[np.float64]:
    """Return the differences between the boundaries of alignments and the true ones.

    Parameters
    ----------
    found : sequence of Alignment
        One alignment per utterance.
    truth : sequence of sequence of Segment
        The phones of each utterance with their true times.

    Returns
    -------
    array of shape (n_boundaries,)
        Seconds by which each boundary between two phones is later than the true one.

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
            for one, segments in zip(found, truth, strict=True)
            for frame, segment in zip(one.starts[1:], segments[1:], strict=True)
        ]
    )


def _check(features: Sequence[Frames], names: Sequence[Sequence[str]], phones: Sequence[str]) -> None:
    """Raise one error with every utterance that is too short and every unknown phone."""
    lengths = [len(X) for X in features]
    short = [
        problem
        for k, (length, own) in enumerate(zip(lengths, names, strict=True))
        for problem in too_few_frames(length, own, f"utterance {k}")
    ]
    raise_any(short + [p for k, own in enumerate(names) for p in unknown_phones(own, phones, f"utterance {k}")])


def _timed(transcript: Transcript) -> bool:
    return all(isinstance(item, Segment) for item in transcript)


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
    """Return the components of each round; 0 divides the phones found so far evenly and starts again from there.

    A flat start gives neighbouring phones' states each other's frames, and hard decisions cannot undo that; new, even
    states inside the phones found can.
    """
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
