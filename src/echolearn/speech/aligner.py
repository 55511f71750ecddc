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
    """The alignment of one utterance: the state of every frame.

    Parameters
    ----------
    labels : array of shape (n_frames,), int16
        The state of each frame: 3 * phone + state, where phone is an index into the phone list and state is 0, 1 or 2.
    starts : array of shape (n_phones,), int64
        The first frame of each phone of the transcript.
    score : float
        Log probability of the alignment, divided by the number of frames.
    """

    labels: Labels
    starts: NDArray[np.int64]
    score: float

    def segments(self, names: Sequence[str], states: bool = False, suffix: str = "_s{}") -> list[Segment]:
        """Return the phones, or their states, with their times.

        Parameters
        ----------
        names : sequence of str
            The phones of the transcript.
        states : bool, default False
            Whether to return the states instead of the phones.
        suffix : str, default "_s{}"
            The ending of the name of a state after the phone; {} stands for 2, 3 or 4, as HTK counts.

        Returns
        -------
        list of Segment
            The segments, one after another from time 0.
        """
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
    """A trained model that aligns phones with the frames of utterances.

    Parameters
    ----------
    phones : tuple of str
        The phone list, in the order of the labels.
    mixtures : Mixtures
        The density of each state.
    leaving : array of shape (n_states,)
        Probability of leaving each state at any frame.

    See Also
    --------
    echolearn.speech.alignment.train_aligner : Train such a model.
    echolearn.speech.alignment.align : Train a model and align in one call.
    """

    phones: tuple[str, ...]
    mixtures: Mixtures
    leaving: NDArray[np.float64]

    def align(self, X: Frames, names: Sequence[str]) -> Alignment:
        """Return the most probable states of an utterance.

        Parameters
        ----------
        X : array of shape (n_frames, n_columns), float32
            Features of the utterance, at least one frame per phone.
        names : sequence of str
            The phones of the utterance, in order. All must be in the phone list.

        Returns
        -------
        Alignment
            The state of every frame.
        """
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
        """Align many utterances, one after another; only the features of one are in memory at a time.

        Parameters
        ----------
        features : iterable of array of shape (n_frames, n_columns), float32
            Features of each utterance.
        names : sequence of sequence of str
            Phones of each utterance.
        progress : callable, optional
            Called as `progress(text, done, total)` every 100 utterances.

        Returns
        -------
        list of Alignment
            One alignment per utterance.
        """
        aligned = []
        # The products are small: a second BLAS thread waits longer than it works.
        with threadpool_limits(1):
            for done, (X, n) in enumerate(zip(features, names, strict=True), 1):
                aligned.append(self.align(X, n))
                if progress and (done % 100 == 0 or done == len(names)):
                    progress("labelling frames", done, len(names))
        return aligned


def state_chain(names: Sequence[str], phones: Sequence[str]) -> NDArray[np.int64]:
    """Return the states of the phones of an utterance, in order.

    Parameters
    ----------
    names : sequence of str
        Phones of the utterance.
    phones : sequence of str
        The phone list.

    Returns
    -------
    array of shape (3 * len(names),), int64
        3 * phone + state, for the states 0, 1 and 2 of each phone.

    Examples
    --------
    >>> state_chain(["b", "a"], ["a", "b"])
    array([3, 4, 5, 0, 1, 2])
    """
    index = {phone: k for k, phone in enumerate(phones)}
    first = np.array([index[name] for name in names], dtype=np.int64) * STATES_PER_PHONE
    return (first[:, None] + np.arange(STATES_PER_PHONE)).reshape(-1)
