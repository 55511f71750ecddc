"""Slow and obvious scores of words: the language model by every way of backing off, the sound by forced alignment."""

import math
from itertools import product

from reference.alignment import aligned


def language_score(model, words, end):
    """Return the best log probability of an utterance over all ways of backing off."""
    alive = {model.state(("<s>",)): 0.0}
    for word in words:
        fresh = {}
        for history, score in _backed_off(model, alive).items():
            listed = model.probability.get((*history, word))
            if listed is not None:
                after = model.state((*history, word))
                fresh[after] = max(fresh.get(after, -math.inf), score + listed)
        alive = fresh
    return max(
        (score + model.score(history, end) for history, score in _backed_off(model, alive).items()), default=-math.inf
    )


def _backed_off(model, alive):
    """Add the shorter histories that can be reached by back-off."""
    found = dict(alive)
    for history, score in alive.items():
        while history:
            score += model.backoff.get(history, 0.0)
            history = history[1:]
            found[history] = max(found.get(history, -math.inf), score)
    return found


def scores_of_all(emissions, models, lexicon, model, weights):
    """Return the score of every sequence of words that fits into the frames."""
    found = {}
    shortest = min(len(one) for variants in lexicon.pronunciations.values() for one in variants)
    for n in range(1, len(emissions) // shortest + 1):
        for words in product(lexicon.words, repeat=n):
            variants = [lexicon.pronunciations[word] for word in words]
            sound = aligned(emissions, models, variants, None, weights.duration_weight)
            if sound is not None and sound[0] > -math.inf:
                language = weights.language_weight * language_score(model, words, "</s>")
                found[words] = sound[0] + language - weights.penalty * n
    return found
