"""Slow and obvious state probabilities: every path through the graph is followed to its end."""

import math
from collections import defaultdict


def all_paths(graph, weights, final_weight, frames):
    """Yield (states, log score) of every path that takes all frames and ends; states has one entry per frame."""
    arcs = defaultdict(list)
    for source in range(len(graph.emission)):
        for arc in range(graph.first[source], graph.first[source + 1]):
            arcs[source].append((int(graph.target[arc]), float(weights[arc])))
    unfinished = [(graph.start, (), 0.0)]
    while unfinished:
        node, states, score = unfinished.pop()
        if len(states) == len(frames) and graph.final[node] > -math.inf:
            yield states, score + final_weight * float(graph.final[node])
        for target, weight in arcs[node]:
            state = int(graph.emission[target])
            if state < 0:
                unfinished.append((target, states, score + weight))
            elif len(states) < len(frames):
                emission = float(frames[len(states)][state])
                unfinished.append((target, (*states, state), score + weight + emission))


def occupancies(graph, weights, final_weight, frames):
    """Return {(frame, state): probability} over all paths, and the logarithm of the sum of all scores."""
    found = list(all_paths(graph, weights, final_weight, frames))
    total = math.log(math.fsum(math.exp(score) for _, score in found))
    shares = defaultdict(float)
    for states, score in found:
        for frame, state in enumerate(states):
            shares[frame, state] += math.exp(score - total)
    return shares, total
