"""The training, validation and test part of a corpus, in memory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echolearn.speech import Corpus, mfcc, read_audio, speaker_maps, usual_deviations, vocal_tract_warps
from echolearn.speech._augmentation import Augment
from echolearn.speech._phone_set import phones_of_states

Part = tuple[list[NDArray[np.float32]], list[NDArray[np.str_]]]  # features and state names of each utterance
PART_NAMES = ("train", "valid", "test")
WARP_SPREAD, MAP_SPREAD = 0.15, 0.3  # of the changes by which training utterances seem to have other speakers
MEASURED_UTTERANCES = 100  # from which the deviations of cepstra are taken
_HASHED_FRAMES = 65_536  # at a time


@dataclass(frozen=True)
class CorpusParts:
    """The parts of a corpus. `valid_known` holds the validation utterances whose states all occur in the training part:
    a fit refuses others. `notes` are remarks for the user."""

    train: Part
    valid: Part
    test: Part
    valid_known: Part
    phones: tuple[str, ...]
    fingerprint: str
    notes: tuple[str, ...]

    @classmethod
    def load(cls, corpus: Corpus) -> CorpusParts:
        names = np.array(corpus.state_names)
        train, valid, test = (_labelled_part(corpus, part, names) for part in PART_NAMES)
        trained = set(np.unique(np.concatenate(train[1])).tolist())
        known = [k for k, y in enumerate(valid[1]) if trained.issuperset(y.tolist())]
        unknown = sorted(set(np.unique(np.concatenate(valid[1] + test[1])).tolist()) - trained)
        note = f"states without a training frame, always counted as errors: {', '.join(unknown)}"
        return cls(
            train,
            valid,
            test,
            valid_known=([valid[0][k] for k in known], [valid[1][k] for k in known]),
            phones=phones_of_states(corpus.state_names),
            fingerprint=corpus_fingerprint(corpus),
            notes=(note,) if unknown else (),
        )


def _labelled_part(corpus: Corpus, part: str, names: NDArray[np.str_]) -> Part:
    X, y = corpus.part(part)
    if not y:
        raise ValueError(f"{corpus.name} has no utterances of the {part} part; train, valid and test are needed.")
    return list(X), [names[labels] for labels in y]


def corpus_fingerprint(corpus: Corpus) -> str:
    """Return a hash of every feature and label, and of the division into parts."""
    digest = hashlib.sha256(repr((corpus.state_names, corpus.split, corpus.utterances)).encode())
    features = corpus.features
    digest.update(repr((features.bounds, features.context, features.scale)).encode())
    digest.update(b"running" if features.running else b"")
    for start in range(0, len(features.frames), _HASHED_FRAMES):
        digest.update(np.ascontiguousarray(features.frames[start : start + _HASHED_FRAMES]).data)
    for labels in corpus.labels:
        digest.update(np.ascontiguousarray(labels).data)
    return digest.hexdigest()[:16]


def augmentation(corpus: Corpus) -> Augment | None:
    """Return how training utterances are changed in every epoch of a deep network, as if others had spoken them. None
    where features were not computed here: it is not known of which frequencies their cepstra are."""
    recipe = corpus.recipe
    if not recipe.audio:
        return None
    if recipe.scale is not None:
        return vocal_tract_warps(WARP_SPREAD, recipe.scale[1], context=recipe.context, per_utterance=False)
    some = corpus.which("train")[:MEASURED_UTTERANCES]
    deviations = usual_deviations([mfcc(read_audio(corpus.audio[k])) for k in some])
    warp = vocal_tract_warps(WARP_SPREAD, deviations, context=recipe.context)
    other = speaker_maps(MAP_SPREAD, context=recipe.context)  # of features that are normalised per utterance
    return lambda x, rng: other(warp(x, rng), rng)
