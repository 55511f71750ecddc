"""Slow and obvious decisions about segments: every way to cut an utterance, every phone, every order of its states."""

import math
from itertools import combinations, pairwise, product


def _log(value):
    return math.log(value) if value > 0 else -math.inf


def inside(frames, model, weight):
    """Return the best score of a phone's states over the frames of a segment."""
    n = len(model.labels)
    best = -math.inf
    for path in product(range(n), repeat=len(frames)):
        score = weight * _log(model.entry[path[0]]) + weight * _log(model.next[path[-1], n])
        for before, after in pairwise(path):
            if after != before:
                score += weight * _log(model.next[before, after])
        best = max(best, score + sum(float(frame[model.labels[k]]) for frame, k in zip(frames, path, strict=True)))
    return best


def best_segments(decoder, frames):
    """Return the score and the (phone, start, end) of the best sequence of segments."""
    w, n = decoder.weights, len(decoder.models)
    best = -math.inf, []
    for cuts in range(len(frames)):
        for inner in combinations(range(1, len(frames)), cuts):
            bounds = list(zip((0, *inner), (*inner, len(frames)), strict=True))
            for phones in product(range(n), repeat=len(bounds)):
                score = 0.0
                for before, after in zip((n, *phones), (*phones, n), strict=True):
                    score += w.language_weight * decoder.language[before, after]
                for p, (start, end) in zip(phones, bounds, strict=True):
                    if end - start > len(decoder.durations[p]):
                        score = -math.inf
                        break
                    score += inside(frames[start:end], decoder.models[p], w.duration_weight)
                    score += w.duration_weight * decoder.durations[p][end - start - 1] - w.penalty
                if score > best[0]:
                    names = [decoder.models[p].name for p in phones]
                    best = score, [(name, start, end) for name, (start, end) in zip(names, bounds, strict=True)]
    return best
