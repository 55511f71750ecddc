"""Our side of the contest on AN4: `DeepESNClassifier` as users have it, with warps and masks for `augment=`.

Its seconds follow from its settings, which are chosen to fit the budget; the contest charges what they are. The weights
after the last epoch are the result; the validation part is only scored.
"""

import time

import numpy as np

from echolearn import DeepESNClassifier
from echolearn.speech import (
    normalised,
    speaker_maps,
    time_masks,
    usual_deviations,
    vocal_tract_warps,
    with_context,
    with_differences,
)

BAND = {"low": 133.33, "high": 6855.5, "lifter": 0.0}  # of the filter bank by which AN4's cepstra were computed


def train(data, settings, core_seconds, seed):
    """Train one network; return its answers and facts.

    data: {"train": (cepstra, labels), "valid": (cepstra, labels)}, lists of (frames, 13) and of (frames,). settings:
    parameters of `DeepESNClassifier`, `spread` of the warps, `maps`, the spread of speakers' maps, and `masked` steps.
    core_seconds is not used. Returns a dict of facts, and before it probabilities(cepstra), from a list of (frames, 13)
    to a list of (frames, classes).
    """
    own = dict(settings)
    changes = [own.pop(name, 0.0) for name in ("spread", "maps", "masked")]
    began = time.process_time()
    X, y = data["train"]
    model = DeepESNClassifier(**own, augment=augmentation(X, *changes), random_state=seed)
    model.fit(prepared(X), y)
    seconds = time.process_time() - began
    n_out = 1 + max(int(labels.max()) for labels in y)

    def answers(cepstra):
        found = []
        for P in model.predict_proba(prepared(cepstra)):
            every = np.zeros((len(P), n_out), np.float32)
            every[:, model.classes_] = P
            found.append(every)
        return found

    stacks = model.network_.stacks
    weights = sum(value.size for stack in stacks for value in stack.weights.values()) + model.network_.readout.U.size
    return answers, {"process_seconds": seconds, "epochs": len(model.history_), "weights": int(weights)}


def augmentation(cepstra, spread, maps, masked):
    """Return the function that changes an utterance anew in every epoch, or None."""
    steps = [vocal_tract_warps(spread, usual_deviations(cepstra), **BAND)] if spread else []
    steps += [speaker_maps(maps)] if maps else []
    steps += [time_masks(2, masked)] if masked else []

    def changed(x, rng):
        for step in steps:
            x = step(x, rng)
        return x

    return changed if steps else None


def prepared(cepstra):
    """Return the inputs of the network: with differences, normalised per utterance, with their context."""
    return [with_context(normalised(with_differences(np.asarray(c, np.float32)))) for c in cepstra]
