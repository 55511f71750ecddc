"""A slow and obvious score of a segment: every order of its phone's states."""

import math
from itertools import pairwise, product


def _log(value):
    return math.log(value) if value > 0 else -math.inf


def inside(frames, model):
    """Return the best score of a phone's states over the frames of a segment."""
    n = len(model.labels)
    best = -math.inf
    for path in product(range(n), repeat=len(frames)):
        score = _log(model.entry[path[0]]) + _log(model.next[path[-1], n])
        for before, after in pairwise(path):
            if after != before:
                score += _log(model.next[before, after])
        best = max(best, score + sum(float(frame[model.labels[k]]) for frame, k in zip(frames, path, strict=True)))
    return best
