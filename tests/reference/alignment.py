"""A slow and obvious forced alignment: every pronunciation and every silence, each by a search in dictionaries."""

import math
from itertools import product


def aligned(emissions, models, variants, silence, duration_weight):
    """Return (score, words, phones, labels) of the best alignment, or None.

    variants: the pronunciations of each word; words and phones are [(position or name, start, end)].
    """
    by_name = {model.name: model for model in models}
    best = None
    for chosen in product(*variants):
        for pauses in product([False, True] if silence else [False], repeat=len(chosen) + 1):
            chain = [(None, silence)] if pauses[0] else []
            for k, phones in enumerate(chosen):
                chain += [(k, phone) for phone in phones]
                if pauses[k + 1]:
                    chain.append((None, silence))
            found = _best_chain(emissions, [by_name[phone] for _, phone in chain], duration_weight)
            if found is not None and (best is None or found[0] > best[0]):
                score, path = found
                best = score, _words(chain, path), _phones(chain, path), [label for _, label in path]
    return best


def _log(value):
    return math.log(value) if value > 0 else -math.inf


def _best_chain(emissions, chain, weight):
    """Return the score and the (place in the chain, label) of each frame for phones that are all spoken."""
    if not chain:
        return None
    alive = {(0, k, 0): (weight * _log(p), ()) for k, p in enumerate(chain[0].entry)}
    for t, frame in enumerate(emissions):
        emitted = {}
        for (place, k, position), (score, path) in alive.items():
            label = chain[place].labels[k]
            emitted[place, k, position] = score + float(frame[label]), (*path, (place, label))
        if t == len(emissions) - 1:
            break
        alive = {}
        for key, (score, path) in emitted.items():
            for target, move in _moves(chain, *key):
                total = score + weight * move
                if total > alive.get(target, (-math.inf,))[0]:
                    alive[target] = total, path
    ends = []
    for (place, k, position), (score, path) in emitted.items():
        if place == len(chain) - 1:
            model = chain[place]
            ends.append((score + weight * (_log(model.leaving[k, position]) + _log(model.next[k, -1])), path))
    return max(ends, key=lambda end: end[0], default=None)


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


def _phones(chain, path):
    places = [place for place, _ in path]
    return [(chain[p][1], places.index(p), places.index(p) + places.count(p)) for p in dict.fromkeys(places)]


def _words(chain, path):
    words = [chain[place][0] for place, _ in path]
    found = [word for word in dict.fromkeys(words) if word is not None]
    return [(word, words.index(word), words.index(word) + words.count(word)) for word in found]
