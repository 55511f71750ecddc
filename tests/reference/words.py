"""Slow and obvious scores of words: every way of backing off, and for the sound a search in dictionaries."""

import math
from itertools import product


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
            sound = _best_sound(emissions, models, variants, weights.duration_weight)
            if sound > -math.inf:
                language = weights.language_weight * language_score(model, words, "</s>")
                found[words] = sound + language - weights.penalty * n
    return found


def _best_sound(emissions, models, variants, weight):
    """Return the best score of words over all their pronunciations, without silences."""
    by_name = {model.name: model for model in models}
    chains = ([by_name[phone] for phones in chosen for phone in phones] for chosen in product(*variants))
    return max(_best_chain(emissions, chain, weight) for chain in chains)


def _log(value):
    return math.log(value) if value > 0 else -math.inf


def _best_chain(emissions, chain, weight):
    """Return the best score of phones that are all spoken, one after another."""
    alive = {(0, k, 0): weight * _log(p) for k, p in enumerate(chain[0].entry)}
    for t, frame in enumerate(emissions):
        emitted = {key: score + float(frame[chain[key[0]].labels[key[1]]]) for key, score in alive.items()}
        if t == len(emissions) - 1:
            break
        alive = {}
        for key, score in emitted.items():
            for target, move in _moves(chain, *key):
                alive[target] = max(alive.get(target, -math.inf), score + weight * move)
    ends = [-math.inf]
    for (place, k, position), score in emitted.items():
        if place == len(chain) - 1:
            model = chain[place]
            ends.append(score + weight * (_log(model.leaving[k, position]) + _log(model.next[k, -1])))
    return max(ends)


def _moves(chain, place, k, position):
    """Yield where a state may go with the next frame, and the log probability."""
    model = chain[place]
    n, positions = model.leaving.shape
    leave = model.leaving[k, position]
    yield (place, k, min(position + 1, positions - 1)), _log(1 - leave)
    for other in range(k + 1, n):
        yield (place, other, 0), _log(leave) + _log(model.next[k, other])
    if place + 1 < len(chain):
        for other, entry in enumerate(chain[place + 1].entry):
            yield (place + 1, other, 0), _log(leave) + _log(model.next[k, n]) + _log(entry)
