"""A trained monophone model (GMM-HMM) that assigns one of the three states of a phone to every frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from echolearn.speech._typing import Frames, Labels, Progress
from echolearn.speech.features import boundary_time
from echolearn.speech.labels import Segment
from echolearn.speech.mixtures import Mixtures
from echolearn.speech.phones import STATES_PER_PHONE
from echolearn.speech.viterbi import best_path

SKIP = float(np.log(1e-10))  # penalty of leaving out a state, so high that only phones too short for three states do it


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
        self,
        features: Iterable[Frames],
        names: Sequence[Sequence[str]],
        progress: Progress | None = None,
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


def state_chain(names: Sequence[str], phones: Sequence[str]) -> NDArray[np.int64]:
    """Return the states 3 * phone + 0, 1, 2 of each phone of an utterance, in order: (3 * len(names),)."""
    index = {phone: k for k, phone in enumerate(phones)}
    first = np.array([index[name] for name in names], dtype=np.int64) * STATES_PER_PHONE
    return (first[:, None] + np.arange(STATES_PER_PHONE)).reshape(-1)
