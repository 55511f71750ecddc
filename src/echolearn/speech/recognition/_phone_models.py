"""Phones as chains of states from left to right, with durations learned from state labels.

A phone has up to three states, each of which emits one frame or more. How long a state lasts is learned as a hazard:
the probability of leaving it after its 1st, 2nd, ... frame, counted on the labels of the training part. The first
`POSITIONS` frames have probabilities of their own; from then on it is constant, so long durations are geometric. Where
a state has few observations, its hazards lean towards its mean rate of leaving, which counts as `PRIOR` observations.

In the decoding graph each frame of a duration is a node of its own, so that the search is an ordinary Viterbi search.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from echolearn.speech.phones import phones_of_states, split_state
from echolearn.validation import Array

POSITIONS = 8
PRIOR = 5.0
SMALLEST = 1e-4  # no move that the topology allows is impossible


@dataclass(frozen=True)
class StateRun:
    """A stretch of frames of one state: its label, first frame and length."""

    label: int
    start: int
    length: int


@dataclass(frozen=True)
class PhoneModel:
    """One phone: its states, how it is entered, how long they last and how one follows another.

    Parameters
    ----------
    name : str
        The phone.
    labels : tuple of int
        The label of each state, from left to right.
    entry : array of shape (n_states,)
        Probability that the phone begins with each state.
    leaving : array of shape (n_states, n_positions)
        Probability of leaving each state after its 1st, 2nd, ... frame; the last holds for all further frames.
    next : array of shape (n_states, n_states + 1)
        Probability of the next state when one is left; the last column is the end of the phone.
    """

    name: str
    labels: tuple[int, ...]
    entry: NDArray[np.float64]
    leaving: NDArray[np.float64]
    next: NDArray[np.float64]


def state_runs(labels: Array) -> list[StateRun]:
    """Return the stretches of equal labels of an utterance.

    Parameters
    ----------
    labels : array of shape (n_frames,)
        Label of each frame.

    Returns
    -------
    list of StateRun
        The stretches in order.
    """
    edges = np.flatnonzero(np.r_[True, np.diff(labels) != 0, True]).tolist()
    return [StateRun(int(labels[a]), a, b - a) for a, b in pairwise(edges)]


def phone_segments(labels: Array, names: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return the phones of an utterance from its state labels.

    Parameters
    ----------
    labels : array of shape (n_frames,)
        Label of each frame.
    names : sequence of str
        Name of each state, such as ``aa_s2``.

    Returns
    -------
    list of (str, int, int)
        Phone, first frame and the frame after its last. A phone ends where the phone changes or where its states
        begin again from the left.

    Examples
    --------
    >>> phone_segments(np.array([0, 0, 1, 2, 0, 1]), ["aa_s2", "aa_s3", "aa_s4"])
    [('aa', 0, 4), ('aa', 4, 6)]
    """
    found: list[tuple[str, int, int]] = []
    last = -1
    for run in state_runs(labels):
        phone, state = split_state(names[run.label])
        number = 0 if state is None else state
        end = run.start + run.length
        if found and found[-1][0] == phone and number > last:
            found[-1] = (phone, found[-1][1], end)
        else:
            found.append((phone, run.start, end))
        last = number
    return found


def learn_phone_models(labels: Iterable[Array], names: Sequence[str]) -> tuple[PhoneModel, ...]:
    """Learn the durations of all phones from state labels.

    Parameters
    ----------
    labels : iterable of array of shape (n_frames,)
        State labels of the training utterances.
    names : sequence of str
        Name of each state. Names without a state are phones of one state.

    Returns
    -------
    tuple of PhoneModel
        One model per phone, in the order in which the phones first occur in `names`.
    """
    durations: dict[int, Counter[int]] = defaultdict(Counter)
    entries: Counter[int] = Counter()
    moves: Counter[tuple[int, int | None]] = Counter()
    for sequence in labels:
        runs = {run.start: run for run in state_runs(sequence)}
        for _, start, end in phone_segments(sequence, names):
            inside = [runs[frame] for frame in range(start, end) if frame in runs]
            entries[inside[0].label] += 1
            for run in inside:
                durations[run.label][run.length] += 1
            following = [run.label for run in inside[1:]]
            moves.update(zip([run.label for run in inside], [*following, None], strict=True))
    leaving = {label: hazards(durations[label]) for label in range(len(names))}
    return tuple(_model(phone, names, leaving, entries, moves) for phone in phones_of_states(names))


def _model(
    phone: str,
    names: Sequence[str],
    leaving: dict[int, NDArray[np.float64]],
    entries: Counter[int],
    moves: Counter[tuple[int, int | None]],
) -> PhoneModel:
    """Turn the counts of one phone into probabilities."""
    own = [(split_state(name), label) for label, name in enumerate(names) if split_state(name)[0] == phone]
    labels = tuple(label for _, label in sorted(own, key=lambda item: item[0][1] or 0))
    n = len(labels)
    entry = np.array([entries[label] for label in labels], dtype=float)
    entry[0] += 1.0
    next_state = np.array([[moves[a, b] for b in (*labels, None)] for a in labels], dtype=float)
    for k in range(n):
        next_state[k, k + 1] += 1.0
        next_state[k, : k + 1] = 0.0
    return PhoneModel(
        name=phone,
        labels=labels,
        entry=_shares(entry),
        leaving=np.array([leaving[label] for label in labels]),
        next=np.array([_shares(row, allowed=np.arange(n + 1) > k) for k, row in enumerate(next_state)]),
    )


def _shares(counts: NDArray[np.float64], allowed: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Return counts as probabilities of at least SMALLEST where they are allowed."""
    shares = counts / counts.sum()
    shares = np.maximum(shares, SMALLEST)
    if allowed is not None:
        shares = np.where(allowed, shares, 0.0)
    normalised: NDArray[np.float64] = shares / shares.sum()
    return normalised


def hazards(durations: Counter[int], positions: int = POSITIONS) -> NDArray[np.float64]:
    """Return the probability of ending after each frame, for counts of durations.

    Parameters
    ----------
    durations : Counter of int
        How often each duration in frames occurs; may be empty.
    positions : int, default 8
        How many frames have a probability of their own; the last holds for all further frames.

    Returns
    -------
    array of shape (positions,)
        The probabilities, all between 0 and 1.

    Examples
    --------
    >>> hazards(Counter({2: 1_000_000}), positions=3).round(3)
    array([0. , 1. , 0.5])
    """
    total, frames = durations.total(), sum(length * n for length, n in durations.items())
    rate = (total + 1) / (frames + 2)  # of leaving per frame, all durations together
    ended = np.zeros(positions)
    present = np.zeros(positions)
    for length, n in durations.items():
        last = min(length, positions)
        present[:last] += n
        ended[last - 1] += n
        present[positions - 1] += n * max(0, length - positions)
    found = (ended + PRIOR * rate) / (present + PRIOR)
    return np.clip(found, SMALLEST, 1 - SMALLEST)
