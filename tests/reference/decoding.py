"""A slow and obvious best path: every path through the graph, frame by frame, in dictionaries."""

import math


def best_path(graph, weights, language_weight, frames):
    """Return the tokens (name, end) of the best path that ends after all frames, and its score."""
    arcs = {}
    for source in range(len(graph.emission)):
        for arc in range(graph.first[source], graph.first[source + 1]):
            arcs.setdefault(source, []).append((int(graph.target[arc]), float(weights[arc]), int(graph.token[arc])))
    alive = _closed(graph, arcs, {graph.start: (0.0, ())}, 0)
    for t, emission in enumerate(frames):
        fresh = {}
        for node, (score, tokens) in alive.items():
            for target, weight, _ in arcs.get(node, ()):
                if graph.emission[target] >= 0:
                    total = score + weight + float(emission[graph.emission[target]])
                    if total > fresh.get(target, (-math.inf,))[0]:
                        fresh[target] = total, tokens
        alive = _closed(graph, arcs, fresh, t + 1)
    ended = [(s + language_weight * float(graph.final[n]), tokens) for n, (s, tokens) in alive.items()]
    score, tokens = max(ended, key=lambda pair: pair[0], default=(-math.inf, ()))
    return [(graph.tokens[token], end) for token, end in tokens], score


def _closed(graph, arcs, alive, frame):
    """Add the anchors that are reached without taking a frame, until nothing changes."""
    alive = dict(alive)
    changed = True
    while changed:
        changed = False
        for node, (score, tokens) in list(alive.items()):
            for target, weight, token in arcs.get(node, ()):
                if graph.emission[target] < 0 and score + weight > alive.get(target, (-math.inf,))[0]:
                    alive[target] = score + weight, tokens + (((token, frame),) if token >= 0 else ())
                    changed = True
    return alive
