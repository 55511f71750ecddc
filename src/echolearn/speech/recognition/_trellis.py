"""Everything that a search kept alive, frame by frame, and the arcs of a lattice in it.

A search keeps one path per node. Its trellis keeps every node that was alive at every frame, with the score of the best
path to it. From there a pass backwards gives the best score of any whole path through a node. Nodes below the best path
by more than a lattice's beam are dropped; between those that remain, the best path of every token from one anchor and
frame to another is an arc of the lattice. So a lattice is exact: every path within its beam that the search's beam has
not lost is in it, with its score.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echolearn.execution.compilation import cached_njit
from echolearn.speech.recognition._graph import Routes
from echolearn.speech.recognition._search import Search

_SCORE_SLACK = 0.01  # for the single precision of the search's scores


class Arcs(NamedTuple):
    """Arcs between points of a trellis: their ends, token, score, and log probability of the language model within."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    token: NDArray[np.int64]
    score: NDArray[np.float64]
    language: NDArray[np.float64]


def lattice_arcs(search: Search, frames: NDArray[np.float32], beam: float) -> tuple[NDArray[np.int64], Arcs]:
    """Return the frame of each anchor within the beam, with one more point for the end, and the arcs between them,
    sorted by `start`; none if no path can end. The search has taken no frame yet."""
    # The trellis: the nodes that are alive after each frame, those before the first one included, ascending within a
    # frame, so that every arc leads to a later entry; and the score of the best path to each.
    nodes = [np.flatnonzero(search.scores > -np.inf)]
    scores = [search.scores[nodes[0]].astype(np.float64)]
    for t in range(len(frames)):
        search.advance(frames[t : t + 1])
        nodes.append(np.flatnonzero(search.scores > -np.inf))
        scores.append(search.scores[nodes[-1]].astype(np.float64) + search.offset)
    bounds, node = np.cumsum([0, *(len(one) for one in nodes)]), np.concatenate(nodes)
    routes, score = search.graph.routes(search.weights), np.concatenate(scores)
    final = search.graph.final.astype(np.float64)
    final[final > -np.inf] *= search.language_weight
    later = _backward(routes, frames, final, bounds, node)
    lowest = score[0] + later[0] - beam - _SCORE_SLACK  # the first point is the start
    kept = (score + later >= lowest) & (later > -np.inf)
    bounds, node = np.r_[0, np.cumsum(kept)][bounds], node[kept]
    which, values = _collapse(routes, frames, bounds, node, np.stack([score, later], axis=1)[kept], lowest)
    return _between_anchors(search, bounds, node, which, values)


def _between_anchors(
    search: Search,
    bounds: NDArray[np.int64],
    node: NDArray[np.int64],
    which: NDArray[np.int64],
    values: NDArray[np.float64],
) -> tuple[NDArray[np.int64], Arcs]:
    """Number the anchors, add the end, and keep the best of the arcs with equal ends and token."""
    graph = search.graph
    anchor = node >= graph.emitting
    frame = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))[anchor]
    number = np.cumsum(anchor) - 1
    last = bounds[-2] + np.flatnonzero(graph.final[node[bounds[-2] :]] > -np.inf)
    ends = np.stack([number[last], np.full(len(last), len(frame)), np.full(len(last), -1)], axis=1)
    final = graph.final[node[last]].astype(np.float64)
    which = np.concatenate([np.c_[number[which[:, 0]], number[which[:, 1]], which[:, 2]], ends])
    values = np.concatenate([values, np.c_[search.language_weight * final, final]])
    order = np.lexsort((-values[:, 0], which[:, 2], which[:, 1], which[:, 0]))
    which, values = which[order], values[order]
    first = np.r_[True, (np.diff(which, axis=0) != 0).any(axis=1)][: len(which)]
    start, end, token = which[first].T
    points = frame if len(frame) else np.zeros(1, dtype=np.int64)
    return np.r_[points, search.frame], Arcs(start, end, token, *values[first].T)


@cached_njit(nogil=True)
def _backward(
    routes: Routes,
    frames: NDArray[np.float32],
    final: NDArray[np.float64],
    bounds: NDArray[np.int64],
    node: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the score of the best way from each point of the trellis to the end."""
    now, later = np.full(len(routes.emission), -np.inf), np.full(len(routes.emission), -np.inf)
    best_later = np.empty(len(node))
    last = len(frames)
    for t in range(last, -1, -1):
        for i in range(bounds[t + 1] - 1, bounds[t] - 1, -1):
            u = node[i]
            best = final[u] if t == last else -np.inf
            for arc in range(routes.first[u], routes.first[u + 1]):
                v = routes.target[arc]
                if v >= routes.emitting:
                    best = max(best, routes.weight[arc] + now[v])
                elif t < last:
                    best = max(best, routes.weight[arc] + frames[t, routes.emission[v]] + later[v])
            now[u] = best_later[i] = best
        if t < last:
            for i in range(bounds[t + 1], bounds[t + 2]):
                later[node[i]] = -np.inf
        now, later = later, now
    return best_later


@cached_njit(nogil=True)
def _find(node: NDArray[np.int64], begin: int, end: int, wanted: int) -> int:
    """Return where a node stands among ascending ones, or -1."""
    stop = end
    while begin < end:
        middle = (begin + end) // 2
        if node[middle] < wanted:
            begin = middle + 1
        else:
            end = middle
    return begin if begin < stop and node[begin] == wanted else -1


@cached_njit(nogil=True)
def _collapse(
    routes: Routes,
    frames: NDArray[np.float32],
    bounds: NDArray[np.int64],
    node: NDArray[np.int64],
    ways: NDArray[np.float64],
    lowest: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the arcs between anchors as columns start, end, token and score, language; ways: score to and from."""
    which, values, count = np.empty((4096, 3), dtype=np.int64), np.empty((4096, 2)), 0
    value, inside = np.full(len(node), -np.inf), np.zeros(len(node))
    points, following = np.empty(len(node), dtype=np.int64), np.empty(len(node), dtype=np.int64)
    for begun in range(len(frames) + 1):
        for i in range(bounds[begun], bounds[begun + 1]):
            if node[i] < routes.emitting:
                continue
            points[0], value[i], inside[i], n, t = i, 0.0, 0.0, 1, begun
            while n > 0:
                reached = 0
                for c in points[:n]:
                    for arc in range(routes.first[node[c]], routes.first[node[c] + 1]):
                        v = routes.target[arc]
                        step = 1 if v < routes.emitting else 0
                        j = _find(node, bounds[t + step], bounds[t + step + 1], v) if t + step <= len(frames) else -1
                        if j < 0:
                            continue
                        s = value[c] + routes.weight[arc] + (frames[t, routes.emission[v]] if step else np.float32(0.0))
                        if ways[i, 0] + s + ways[j, 1] < lowest:
                            continue
                        if step == 0:
                            which, values = _room(which, values, count)
                            which[count, 0], which[count, 1], which[count, 2] = i, j, routes.token[arc]
                            values[count, 0], values[count, 1] = s, inside[c] + routes.language[arc]
                            count += 1
                        elif s > value[j]:
                            if value[j] == -np.inf:
                                following[reached] = j
                                reached += 1
                            value[j], inside[j] = s, inside[c] + routes.language[arc]
                for c in points[:n]:
                    value[c] = -np.inf
                points, following, n, t = following, points, reached, t + 1
    return which[:count], values[:count]


@cached_njit(nogil=True)
def _room(
    which: NDArray[np.int64], values: NDArray[np.float64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the same columns, twice as long if they are full."""
    if count < len(which):
        return which, values
    return np.concatenate((which, np.empty_like(which))), np.concatenate((values, np.empty_like(values)))
