"""Phones of segments whose boundaries are known: the phone with the largest sum of log probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from echolearn._typing import Array
from echolearn.speech.phones import SILENCES, phones_of_states, split_state
from echolearn.speech.recognition.decoder import SMALLEST
from echolearn.speech.recognition.phonemodels import phone_segments


def segment_error(probabilities: Sequence[Array], labels: Sequence[Array], names: Sequence[str]) -> float:
    """Return the share of phones that are not recognised where their boundaries are known.

    Parameters
    ----------
    probabilities : sequence of array of shape (n_frames, n_states)
        Probability of each state at each frame, per utterance.
    labels : sequence of array of shape (n_frames,)
        The true states of the same utterances, indices into `names`.
    names : sequence of str
        Name of each state.

    Returns
    -------
    float
        Wrong segments per segment; silences do not count. NaN if there are no others.
    """
    phones = phones_of_states(names)
    belongs = np.array([[split_state(name)[0] == phone for phone in phones] for name in names], dtype=float)
    wrong = total = 0
    for P, y in zip(probabilities, labels, strict=True):
        scores = np.log(np.maximum(np.asarray(P, dtype=float) @ belongs, SMALLEST))
        for phone, start, end in phone_segments(y, names):
            if phone not in SILENCES:
                total += 1
                wrong += phones[int(scores[start:end].sum(axis=0).argmax())] != phone
    return wrong / total if total else float("nan")
