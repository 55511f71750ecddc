"""Phones as chains of states from left to right, with durations learned from state labels.

A phone has up to three states, each of which emits one frame or more. How long a state lasts is learned as a hazard:
the probability of leaving it after its 1st, 2nd, ... frame, counted on the labels of the training part. The first
`HAZARD_FRAMES` frames have probabilities of their own; from then on it is constant, so long durations are geometric.
Where a state has few observations, its hazards lean towards its mean rate of leaving, which counts as
`PRIOR_OBSERVATIONS`.

In the decoding graph each frame of a duration is a node of its own, so that the search is an ordinary Viterbi search.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echolearn.speech._phone_set import phones_of_states, split_state
from echolearn.validation import Array

HAZARD_FRAMES = 8
PRIOR_OBSERVATIONS = 5.0
MIN_MOVE_PROBABILITY = 1e-4  # no move that the topology allows is impossible


class StateRun(NamedTuple):
    """A stretch of frames of one state: its label, first frame and length."""

    label: int
    start: int
    length: int


@dataclass(frozen=True)
class PhoneModel:
    """One phone: its states, how it is entered, how long they last and how one follows another."""

    name: str
    labels: tuple[int, ...]  # of each state, from left to right
    entry: NDArray[np.float64]  # (n_states,): probability that the phone begins with each state
    leaving: NDArray[np.float64]  # (n_states, n_frames): of leaving it after its 1st, 2nd, ... frame
    next: NDArray[np.float64]  # (n_states, n_states + 1): of the next state; the last column is the end of the phone


def state_runs(labels: Array) -> list[StateRun]:
    """Return the stretches of equal labels of an utterance."""
    edges = np.flatnonzero(np.r_[True, np.diff(labels) != 0, True]).tolist()
    return [StateRun(int(labels[a]), a, b - a) for a, b in pairwise(edges)]


def phone_segments(labels: Array, names: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return (phone, first frame, frame after its last) from state labels, indices into `names`. A phone ends where the
    phone changes or where its states begin again from the left."""
    segments: list[tuple[str, int, int]] = []
    last = -1
    for run in state_runs(labels):
        phone, state = split_state(names[run.label])
        number = 0 if state is None else state
        end = run.start + run.length
        if segments and segments[-1][0] == phone and number > last:
            segments[-1] = (phone, segments[-1][1], end)
        else:
            segments.append((phone, run.start, end))
        last = number
    return segments


def spoken_phones(labels: Array, names: Sequence[str]) -> list[str]:
    """Return the phones of an utterance, silences included, from its state labels."""
    return [phone for phone, _, _ in phone_segments(labels, names)]


def learn_phone_models(labels: Iterable[Array], names: Sequence[str]) -> tuple[PhoneModel, ...]:
    """Learn the durations of all phones from state labels; names without a state are phones of one state."""
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
    states = [(split_state(name), label) for label, name in enumerate(names) if split_state(name)[0] == phone]
    labels = tuple(label for _, label in sorted(states, key=lambda item: item[0][1] or 0))
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
    """Return counts as probabilities of at least MIN_MOVE_PROBABILITY where they are allowed."""
    shares = counts / counts.sum()
    shares = np.maximum(shares, MIN_MOVE_PROBABILITY)
    if allowed is not None:
        shares = np.where(allowed, shares, 0.0)
    return np.asarray(shares / shares.sum())


def hazards(durations: Counter[int], positions: int = HAZARD_FRAMES) -> NDArray[np.float64]:
    """Return the probability of ending after each of some frames, the last for all on, for counts of durations."""
    total, frames = durations.total(), sum(length * n for length, n in durations.items())
    rate = (total + 1) / (frames + 2)  # of leaving per frame, all durations together
    ended = np.zeros(positions)
    present = np.zeros(positions)
    for length, n in durations.items():
        last = min(length, positions)
        present[:last] += n
        ended[last - 1] += n
        present[positions - 1] += n * max(0, length - positions)
    leaving = (ended + PRIOR_OBSERVATIONS * rate) / (present + PRIOR_OBSERVATIONS)
    return np.clip(leaving, MIN_MOVE_PROBABILITY, 1 - MIN_MOVE_PROBABILITY)
