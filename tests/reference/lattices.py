"""Slow and obvious lattices: every path through a decoding graph, one by one."""

import math
from collections import defaultdict


def all_paths(graph, weights, language_weight, frames):
    """Return every whole path: its steps (token, start anchor and frame, end anchor and frame) and its score."""
    emitting = graph.emission >= 0
    found = []

    def go(node, frame, score, begun, steps):
        if not emitting[node] and frame == len(frames) and graph.final[node] > -math.inf:
            found.append((steps, score + language_weight * float(graph.final[node])))
        for arc in range(graph.first[node], graph.first[node + 1]):
            target, token = int(graph.target[arc]), int(graph.token[arc])
            total = score + float(weights[arc])
            if not emitting[target]:
                here = (target, frame)
                go(target, frame, total, here, (*steps, (token, begun, here)))
            elif frame < len(frames):
                go(target, frame + 1, total + float(frames[frame][graph.emission[target]]), begun, steps)

    go(graph.start, 0, 0.0, (graph.start, 0), ())
    return found


def best_by_tokens(graph, paths):
    """Return the best score of every sequence of tokens, best first."""
    best = defaultdict(lambda: -math.inf)
    for steps, score in paths:
        names = tuple(graph.tokens[token] for token, _, _ in steps if token >= 0)
        best[names] = max(best[names], score)
    return sorted(best.items(), key=lambda item: -item[1])


def arc_posteriors(graph, paths, scale):
    """Return the probability of every (token, first frame, end frame), summed over paths that differ in their steps."""
    best = defaultdict(lambda: -math.inf)
    for steps, score in paths:
        best[steps] = max(best[steps], score)
    highest = max(best.values())
    total = sum(math.exp(scale * (score - highest)) for score in best.values())
    found = defaultdict(float)
    for steps, score in best.items():
        for token, (_, start), (_, end) in steps:
            if token >= 0:
                found[graph.tokens[token], start, end] += math.exp(scale * (score - highest)) / total
    return found
