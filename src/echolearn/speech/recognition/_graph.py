"""The decoding graph: what may follow what, as arrays for the compiled search.

Nodes either emit a frame (a state of a phone, at some frame of its duration) or are *anchors*: points between two
tokens, one per history that the language model distinguishes. A path through the graph alternates between them:

    anchor --(language model)--> states of a phone or word --(token)--> anchor --(back-off)--> shorter anchor

Arcs have three parts, so that their weights can be tuned without building the graph again: the log probability of the
states' durations, that of the language model, and the token that they complete.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echolearn.speech.recognition._lexicon import Lexicon
from echolearn.speech.recognition._ngrams import END, START, History, NGramModel
from echolearn.speech.recognition._phone_models import PhoneModel

NONE = -1  # in place of a token or of the state that a node emits
_ARC_FIELDS = np.dtype([("source", "i4"), ("target", "i4"), ("duration", "f4"), ("language", "f4"), ("token", "i4")])


@dataclass(frozen=True)
class Graph:
    """A decoding graph; arcs are sorted by the node that they leave. Anchors are numbered after all nodes that emit,
    and an arc between two anchors leads to one of a higher number."""

    emission: NDArray[np.int32]  # (n_nodes,): the state that each node emits; -1 for anchors
    first: NDArray[np.int64]  # (n_nodes + 1,): the first arc of each node
    target: NDArray[np.int32]  # (n_arcs,): the node that each arc leads to
    duration: NDArray[np.float32]  # (n_arcs,): log probability by the durations of states
    language: NDArray[np.float32]  # (n_arcs,): log probability by the language model
    token: NDArray[np.int32]  # (n_arcs,): what each arc completes, an index into `tokens`; -1 for nothing
    final: NDArray[np.float32]  # (n_nodes,): log probability that an utterance ends here; -inf except at anchors
    start: int  # the anchor at which utterances begin
    tokens: tuple[str, ...]

    @cached_property
    def emitting(self) -> int:
        """Number of nodes that emit; anchors follow them."""
        return int((self.emission >= 0).sum())

    def routes(self, weight: NDArray[np.float32]) -> Routes:
        """Return what the compiled search needs, with a total weight of every arc."""
        return Routes(self.emission, self.emitting, self.first, self.target, weight, self.language, self.token)

    def weights(self, *, duration_weight: float, language_weight: float, penalty: float) -> NDArray[np.float32]:
        """Return the total weight of every arc; the penalty is subtracted for every token."""
        total = duration_weight * self.duration + language_weight * self.language
        return np.asarray(total - penalty * (self.token >= 0), np.float32)


class Routes(NamedTuple):
    """The arrays of a graph that compiled functions take: the fields of the same names, and the weights of arcs."""

    emission: NDArray[np.int32]
    emitting: int
    first: NDArray[np.int64]
    target: NDArray[np.int32]
    weight: NDArray[np.float32]
    language: NDArray[np.float32]
    token: NDArray[np.int32]


class Ways(NamedTuple):
    """Ways into or out of something: nodes, and the log probability of the durations on each way."""

    nodes: NDArray[np.int32]
    weights: NDArray[np.float64]


@dataclass
class GraphBuilder:
    """Collects nodes and arcs as bytes, and numbers them in the end: first those that emit, then anchors in order."""

    anchors: list[int] = field(default_factory=list)
    final: dict[int, float] = field(default_factory=dict)
    _emission: bytearray = field(default_factory=bytearray)
    _arcs: bytearray = field(default_factory=bytearray)
    _templates: dict[int, _Template] = field(default_factory=dict)

    def add_node(self, label: int) -> int:
        """Add a node that emits a state and return it."""
        self._emission += np.int32(label).tobytes()
        return len(self._emission) // 4 - 1

    def add_anchor(self) -> int:
        """Add an anchor and return it; anchors with arcs to other anchors come before those."""
        self.anchors.append(self.add_node(NONE))
        return self.anchors[-1]

    def add_arcs(self, ways: Ways, into: Ways, *, language: float = 0.0, token: int = NONE) -> None:
        """Add an arc from each of some ways out to each of some ways in; those of probability zero are left out."""
        source, target = np.repeat(ways.nodes, len(into.nodes)), np.tile(into.nodes, len(ways.nodes))
        self.add_pairs(source, target, np.add.outer(ways.weights, into.weights).ravel(), language, token)

    def add_pairs(
        self,
        source: NDArray[np.int32],
        target: NDArray[np.int32],
        duration: NDArray[np.float64],
        language: float = 0.0,
        token: int = NONE,
    ) -> None:
        """Add arcs of the same language score and token, unless their probability is zero."""
        if language > -math.inf:
            arcs = np.empty(len(source), dtype=_ARC_FIELDS)
            arcs["source"], arcs["target"], arcs["duration"] = source, target, duration
            arcs["language"], arcs["token"] = language, token
            self._arcs += arcs.tobytes()

    def add_phone(self, model: PhoneModel) -> tuple[Ways, Ways]:
        """Add the states of a phone; return its ways in and out."""
        if id(model) not in self._templates:
            self._templates[id(model)] = _template(model)
        _, labels, (source, target, duration), ways_in, ways_out = self._templates[id(model)]
        base = np.int32(len(self._emission) // 4)
        self._emission += labels
        self.add_pairs(source + base, target + base, duration)
        return Ways(ways_in.nodes + base, ways_in.weights), Ways(ways_out.nodes + base, ways_out.weights)

    def build(self, start: int, tokens: Sequence[str]) -> Graph:
        """Return the graph as arrays."""
        emission = np.frombuffer(self._emission, dtype=np.int32)
        order = np.concatenate([np.flatnonzero(emission >= 0), np.array(self.anchors, dtype=np.int64)])
        number = np.empty(len(order), dtype=np.int32)
        number[order] = np.arange(len(order), dtype=np.int32)
        arcs = np.frombuffer(self._arcs, dtype=_ARC_FIELDS)
        source = number[arcs["source"]]
        by_source = np.argsort(source, kind="stable")
        final = np.full(len(order), -np.inf, dtype=np.float32)
        for node, value in self.final.items():
            final[number[node]] = value
        return Graph(
            emission=emission[order],
            first=np.r_[0, np.cumsum(np.bincount(source, minlength=len(order)))].astype(np.int64),
            target=number[arcs["target"]][by_source],
            duration=arcs["duration"][by_source],
            language=arcs["language"][by_source],
            token=arcs["token"][by_source],
            final=final,
            start=int(number[start]),
            tokens=tuple(tokens),
        )


class _Template(NamedTuple):
    """A phone as it is added: its model, the labels of its nodes as bytes, the arcs between them, ways in and out."""

    model: PhoneModel
    labels: bytes
    arcs: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]
    ways_in: Ways
    ways_out: Ways


def _template(model: PhoneModel) -> _Template:
    """Return a phone's nodes, one per state and frame of its duration, numbered from 0, and their arcs."""
    n, positions = model.leaving.shape
    arcs: list[tuple[int, int, float]] = []
    ways_out: list[tuple[int, float]] = []
    for k in range(n):
        for position in range(positions):
            node, leave = k * positions + position, float(model.leaving[k, position])
            arcs.append((node, k * positions + min(position + 1, positions - 1), math.log1p(-leave)))
            arcs += [
                (node, other * positions, math.log(leave) + _log(model.next[k, other])) for other in range(k + 1, n)
            ]
            ways_out.append((node, math.log(leave) + _log(model.next[k, n])))
    source, target, duration = zip(*(arc for arc in arcs if arc[2] > -math.inf), strict=True)
    labels = np.repeat(np.array(model.labels, dtype=np.int32), positions)
    return _Template(
        model,
        labels.tobytes(),
        (np.array(source, dtype=np.int32), np.array(target, dtype=np.int32), np.array(duration)),
        _ways((k * positions, _log(model.entry[k])) for k in range(n)),
        _ways(ways_out),
    )


def _ways(pairs: Iterable[tuple[int, float]]) -> Ways:
    """Return ways from pairs of a node and a log probability, without the impossible ones."""
    possible = [pair for pair in pairs if pair[1] > -math.inf]
    return Ways(np.array([node for node, _ in possible], dtype=np.int32), np.array([weight for _, weight in possible]))


def _at(anchor: int) -> Ways:
    """Return the way that begins or ends at an anchor."""
    return _ways([(anchor, 0.0)])


def _histories(model: NGramModel) -> list[History]:
    """Return the histories that a language model distinguishes, longer ones first, so that back-off leads onward."""
    histories = {model.state(gram) for gram in model.probability if gram[-1] != END}
    histories |= {history[k:] for history in histories for k in range(1, len(history) + 1)}
    return sorted(histories | {()}, key=lambda history: (-len(history), history))


def _followers(model: NGramModel) -> dict[History, list[str]]:
    """Return the tokens that are listed after each history."""
    followers: dict[History, list[str]] = {}
    for gram in sorted(model.probability):
        if gram[-1] not in (START, END):
            followers.setdefault(gram[:-1], []).append(gram[-1])
    return followers


def _add_histories(builder: GraphBuilder, model: NGramModel) -> dict[History, int]:
    """Add an anchor per history with its back-off arc and its probability of ending; return the anchors."""
    anchors = {history: builder.add_anchor() for history in _histories(model)}
    for history, anchor in anchors.items():
        builder.final[anchor] = model.score(history, END)
        if history:
            builder.add_arcs(_at(anchor), _at(anchors[history[1:]]), language=model.backoff.get(history, 0.0))
    return anchors


def phone_graph(phones: Sequence[PhoneModel], model: NGramModel) -> Graph:
    """Return the graph of any sequence of phones that an n-gram lists, weighted by it."""
    builder = GraphBuilder()
    anchors = _add_histories(builder, model)
    index = {phone.name: k for k, phone in enumerate(phones)}
    copies: dict[tuple[str, History], Ways] = {}
    for history, followers in _followers(model).items():
        if history not in anchors:
            continue
        for name in followers:
            if name not in index:
                continue
            after = model.state((*history, name))
            if (name, after) not in copies:
                copies[name, after], ways_out = builder.add_phone(phones[index[name]])
                builder.add_arcs(ways_out, _at(anchors[after]), token=index[name])
            builder.add_arcs(_at(anchors[history]), copies[name, after], language=model.probability[*history, name])
    return builder.build(anchors[model.state((START,))], [phone.name for phone in phones])


def word_graph(
    phones: Sequence[PhoneModel], lexicon: Lexicon, model: NGramModel, *, silence: str | None = None
) -> Graph:
    """Return the graph of the words that lexicon and n-gram share, silence around them; ValueError without any."""
    # Every word may be spoken after the empty history, where words share the beginnings of their pronunciations (a
    # prefix tree). The probability of the likeliest word below a node of the tree is taken into account as soon as the
    # node is reached, so that a narrow beam does not lose words before they are complete. The words that are listed
    # after longer histories are few. Each of them has one copy of its states per history that it leads to, whatever the
    # history before it: with a bigram one copy per word, however many bigrams there are.
    builder = GraphBuilder()
    anchors = _add_histories(builder, model)
    by_name = {phone.name: phone for phone in phones}
    words = [word for word in lexicon.words if (word,) in model.probability]
    if not words:
        raise ValueError("no word of the language model is in the lexicon; are both in the same case and spelling?")
    index = {word: k for k, word in enumerate(words)}
    copies: dict[tuple[str, int], list[Ways]] = {}
    for history, followers in _followers(model).items():
        if history not in anchors:
            continue
        known = {word: model.probability[*history, word] for word in followers if word in index}
        scores = {word: score for word, score in known.items() if score > -math.inf}
        ends = {word: (anchors[model.state((*history, word))], index[word]) for word in scores}
        if not history:
            _add_tree(builder, _prefix_tree(scores, lexicon), _at(anchors[history]), ends, by_name, reached=0.0)
            continue
        for word, score in scores.items():
            end, token = ends[word]
            if (word, end) not in copies:
                spoken = [[by_name[phone] for phone in one] for one in lexicon.pronunciations[word]]
                copies[word, end] = [_add_chain(builder, one, end, token) for one in spoken]
            for ways_in in copies[word, end]:
                builder.add_arcs(_at(anchors[history]), ways_in, language=score)
    if silence is not None:
        for anchor in anchors.values():
            ways_in, ways_out = builder.add_phone(by_name[silence])
            builder.add_arcs(_at(anchor), ways_in)
            builder.add_arcs(ways_out, _at(anchor))
    return builder.build(anchors[model.state((START,))], words)


def _add_chain(builder: GraphBuilder, phones: Sequence[PhoneModel], end: int, token: int) -> Ways:
    """Add phones one after another that complete a token at an anchor; return the ways in."""
    first, ways = builder.add_phone(phones[0])
    for phone in phones[1:]:
        ways_in, ways_out = builder.add_phone(phone)
        builder.add_arcs(ways, ways_in)
        ways = ways_out
    builder.add_arcs(ways, _at(end), token=token)
    return first


@dataclass
class _Prefix:
    """A node of a prefix tree: the words that end here and the phones that may follow, with the best score below."""

    best: float = -math.inf
    words: dict[str, float] = field(default_factory=dict)
    next: dict[str, _Prefix] = field(default_factory=dict)


def _prefix_tree(scores: Mapping[str, float], lexicon: Lexicon) -> _Prefix:
    root = _Prefix()
    for word, score in scores.items():
        for pronunciation in lexicon.pronunciations[word]:
            node = root
            node.best = max(node.best, score)
            for phone in pronunciation:
                node = node.next.setdefault(phone, _Prefix())
                node.best = max(node.best, score)
            node.words[word] = score
    return root


def _add_tree(
    builder: GraphBuilder,
    tree: _Prefix,
    ways: Ways,
    ends: Mapping[str, tuple[int, int]],
    phones: Mapping[str, PhoneModel],
    *,
    reached: float,
) -> None:
    """Add the states of a tree below some ways into it; ends: anchor and token of each word; reached: score so far."""
    for word, score in tree.words.items():
        anchor, token = ends[word]
        builder.add_arcs(ways, _at(anchor), language=score - reached, token=token)
    for phone, below in tree.next.items():
        ways_in, ways_out = builder.add_phone(phones[phone])
        builder.add_arcs(ways, ways_in, language=below.best - reached)
        _add_tree(builder, below, ways_out, ends, phones, reached=below.best)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
