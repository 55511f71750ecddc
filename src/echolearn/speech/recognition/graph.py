"""The decoding graph: what may follow what, as arrays for the compiled search.

Nodes either emit a frame (a state of a phone, at some frame of its duration) or are *anchors*: points between two
tokens, one per history that the language model tells apart. A path through the graph alternates between them:

    anchor --(language model)--> states of a phone or word --(token)--> anchor --(back-off)--> shorter anchor

Arcs have three parts, so that their weights can be tuned without building the graph again: the log probability of the
states' durations, that of the language model, and the token that they complete.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from echolearn.speech.recognition.lexicon import Lexicon
from echolearn.speech.recognition.ngrams import END, START, History, NGramModel
from echolearn.speech.recognition.phonemodels import PhoneModel

NONE = -1  # no token; no emission


@dataclass(frozen=True)
class Graph:
    """A decoding graph.

    Arcs are sorted by the node that they leave. Anchors are numbered after all nodes that emit, and an arc between two
    anchors leads to one of a higher number.

    Parameters
    ----------
    emission : array of shape (n_nodes,), int32
        The state that each node emits; -1 for anchors.
    first : array of shape (n_nodes + 1,), int64
        The first arc of each node.
    target : array of shape (n_arcs,), int32
        The node that each arc leads to.
    duration : array of shape (n_arcs,), float32
        Log probability of each arc by the durations of states.
    language : array of shape (n_arcs,), float32
        Log probability of each arc by the language model.
    token : array of shape (n_arcs,), int32
        The token that each arc completes, an index into `tokens`; -1 for none.
    final : array of shape (n_nodes,), float32
        Log probability by the language model that an utterance ends at each node; -inf except at anchors.
    start : int
        The anchor at which utterances begin.
    tokens : tuple of str
        The tokens.
    """

    emission: NDArray[np.int32]
    first: NDArray[np.int64]
    target: NDArray[np.int32]
    duration: NDArray[np.float32]
    language: NDArray[np.float32]
    token: NDArray[np.int32]
    final: NDArray[np.float32]
    start: int
    tokens: tuple[str, ...]

    @cached_property
    def emitting(self) -> int:
        """Number of nodes that emit; anchors follow them."""
        return int((self.emission >= 0).sum())

    def weights(self, *, duration_weight: float, language_weight: float, penalty: float) -> NDArray[np.float32]:
        """Return the total weight of every arc.

        Parameters
        ----------
        duration_weight : float
            Factor of the durations.
        language_weight : float
            Factor of the language model.
        penalty : float
            Subtracted for every token; a larger one gives fewer tokens.

        Returns
        -------
        array of shape (n_arcs,), float32
            The weights.
        """
        total = duration_weight * self.duration + language_weight * self.language
        weights: NDArray[np.float32] = (total - penalty * (self.token >= 0)).astype(np.float32)
        return weights


@dataclass
class GraphBuilder:
    """Collects nodes and arcs, and numbers them in the end: first the nodes that emit, then anchors in their order."""

    emission: list[int] = field(default_factory=list)
    anchors: list[int] = field(default_factory=list)
    arcs: list[tuple[int, int, float, float, int]] = field(default_factory=list)
    final: dict[int, float] = field(default_factory=dict)

    def add_node(self, label: int) -> int:
        """Add a node that emits a state and return it."""
        self.emission.append(label)
        return len(self.emission) - 1

    def add_anchor(self) -> int:
        """Add an anchor and return it; anchors with arcs to other anchors come before those."""
        self.anchors.append(self.add_node(NONE))
        return self.anchors[-1]

    def add_arc(
        self, source: int, target: int, *, duration: float = 0.0, language: float = 0.0, token: int = NONE
    ) -> None:
        """Add an arc; one of probability zero is left out."""
        if duration + language > -math.inf:
            self.arcs.append((source, target, duration, language, token))

    def add_phone(self, model: PhoneModel) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
        """Add the states of a phone; return its ways in and out: nodes with log probabilities."""
        n, positions = model.leaving.shape
        nodes = [[self.add_node(label) for _ in range(positions)] for label in model.labels]
        ways_out = []
        for k in range(n):
            for position in range(positions):
                node, leave = nodes[k][position], float(model.leaving[k, position])
                self.add_arc(node, nodes[k][min(position + 1, positions - 1)], duration=math.log1p(-leave))
                for other in range(k + 1, n):
                    self.add_arc(node, nodes[other][0], duration=math.log(leave) + _log(model.next[k, other]))
                ways_out.append((node, math.log(leave) + _log(model.next[k, n])))
        ways_in = [(nodes[k][0], _log(model.entry[k])) for k in range(n)]
        return ways_in, ways_out

    def build(self, start: int, tokens: Sequence[str]) -> Graph:
        """Return the graph as arrays."""
        anchors = set(self.anchors)
        order = [node for node in range(len(self.emission)) if node not in anchors] + self.anchors
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.arange(len(order))
        source = number[np.array([arc[0] for arc in self.arcs], dtype=np.int64)]
        by_source = np.argsort(source, kind="stable")
        final = np.full(len(order), -np.inf, dtype=np.float32)
        for node, value in self.final.items():
            final[number[node]] = value
        columns = [np.array([arc[k] for arc in self.arcs])[by_source] for k in range(1, 5)]
        return Graph(
            emission=np.array(self.emission, dtype=np.int32)[order],
            first=np.searchsorted(source[by_source], np.arange(len(order) + 1)).astype(np.int64),
            target=number[columns[0]].astype(np.int32),
            duration=columns[1].astype(np.float32),
            language=columns[2].astype(np.float32),
            token=columns[3].astype(np.int32),
            final=final,
            start=int(number[start]),
            tokens=tuple(tokens),
        )


def histories(model: NGramModel) -> list[History]:
    """Return the histories that a language model tells apart, longer ones first, so that back-off leads onward."""
    found = {model.state(gram) for gram in model.probability if gram[-1] != END}
    found |= {history[k:] for history in found for k in range(1, len(history) + 1)}
    return sorted(found | {()}, key=lambda history: (-len(history), history))


def listed(model: NGramModel) -> dict[History, list[str]]:
    """Return the tokens that are listed after each history."""
    found: dict[History, list[str]] = {}
    for gram in sorted(model.probability):
        if gram[-1] not in (START, END):
            found.setdefault(gram[:-1], []).append(gram[-1])
    return found


def add_histories(builder: GraphBuilder, model: NGramModel) -> dict[History, int]:
    """Add an anchor per history with its back-off arc and its probability of ending; return the anchors."""
    anchors = {history: builder.add_anchor() for history in histories(model)}
    for history, anchor in anchors.items():
        builder.final[anchor] = model.score(history, END)
        if history:
            builder.add_arc(anchor, anchors[history[1:]], language=model.backoff.get(history, 0.0))
    return anchors


def phone_graph(phones: Sequence[PhoneModel], model: NGramModel) -> Graph:
    """Build the graph of any sequence of phones, weighted by an n-gram of phones.

    Parameters
    ----------
    phones : sequence of PhoneModel
        The phones.
    model : NGramModel
        Language model of the phones. Phones that it does not list cannot be recognised.

    Returns
    -------
    Graph
        The graph; its tokens are the phones.
    """
    builder = GraphBuilder()
    anchors = add_histories(builder, model)
    index = {phone.name: k for k, phone in enumerate(phones)}
    copies: dict[tuple[str, History], list[tuple[int, float]]] = {}
    for history, followers in listed(model).items():
        if history not in anchors:
            continue
        for name in followers:
            if name not in index:
                continue
            after = model.state((*history, name))
            if (name, after) not in copies:
                copies[name, after], ways_out = builder.add_phone(phones[index[name]])
                for node, weight in ways_out:
                    builder.add_arc(node, anchors[after], duration=weight, token=index[name])
            score = model.probability[*history, name]
            for node, weight in copies[name, after]:
                builder.add_arc(anchors[history], node, duration=weight, language=score)
    return builder.build(anchors[model.state((START,))], [phone.name for phone in phones])


def word_graph(
    phones: Sequence[PhoneModel], lexicon: Lexicon, model: NGramModel, *, silence: str | None = None
) -> Graph:
    """Build the graph of any sequence of words, weighted by an n-gram of words.

    The words that may follow a history share the beginnings of their pronunciations (a prefix tree). The probability
    of the likeliest word below a node of the tree is taken into account as soon as the node is reached, so that a
    narrow beam does not lose words before they are complete.

    Parameters
    ----------
    phones : sequence of PhoneModel
        The phones.
    lexicon : Lexicon
        Pronunciations in these phones. Words without one cannot be recognised.
    model : NGramModel
        Language model of the words. Words that it does not list cannot be recognised.
    silence : str, optional
        The phone that may stand between words, and before and after them.

    Returns
    -------
    Graph
        The graph; its tokens are the words.

    Raises
    ------
    ValueError
        If no word has both a pronunciation and a probability.
    """
    builder = GraphBuilder()
    anchors = add_histories(builder, model)
    by_name = {phone.name: phone for phone in phones}
    words = [word for word in lexicon.words if (word,) in model.probability]
    if not words:
        raise ValueError("no word of the language model is in the lexicon; are both in the same case and spelling?")
    index = {word: k for k, word in enumerate(words)}
    for history, followers in listed(model).items():
        if history in anchors:
            known = {word: model.probability[*history, word] for word in followers if word in index}
            scores = {word: score for word, score in known.items() if score > -math.inf}
            ends = {word: (anchors[model.state((*history, word))], index[word]) for word in scores}
            add_words(builder, anchors[history], scores, ends=ends, lexicon=lexicon, phones=by_name)
    if silence is not None:
        add_pauses(builder, anchors.values(), by_name[silence])
    return builder.build(anchors[model.state((START,))], words)


def add_words(
    builder: GraphBuilder,
    anchor: int,
    scores: Mapping[str, float],
    *,
    ends: Mapping[str, tuple[int, int]],
    lexicon: Lexicon,
    phones: Mapping[str, PhoneModel],
) -> None:
    """Add the prefix tree of the words that may follow an anchor; ends: the anchor and the token of each."""
    _add_tree(builder, _prefix_tree(scores, lexicon), [(anchor, 0.0)], ends, phones, reached=0.0)


def add_pauses(builder: GraphBuilder, anchors: Iterable[int], model: PhoneModel) -> None:
    """Add a silence that may be spoken at each anchor."""
    for anchor in anchors:
        ways_in, ways_out = builder.add_phone(model)
        for node, weight in ways_in:
            builder.add_arc(anchor, node, duration=weight)
        for node, weight in ways_out:
            builder.add_arc(node, anchor, duration=weight)


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
    ways: list[tuple[int, float]],
    ends: Mapping[str, tuple[int, int]],
    phones: Mapping[str, PhoneModel],
    *,
    reached: float,
) -> None:
    """Add the states of a tree below some ways into it; reached: the language score on the way so far."""
    for word, score in tree.words.items():
        anchor, token = ends[word]
        for node, weight in ways:
            builder.add_arc(node, anchor, duration=weight, language=score - reached, token=token)
    for phone, below in tree.next.items():
        ways_in, ways_out = builder.add_phone(phones[phone])
        for node, weight in ways:
            for entry, entry_weight in ways_in:
                builder.add_arc(node, entry, duration=weight + entry_weight, language=below.best - reached)
        _add_tree(builder, below, ways_out, ends, phones, reached=below.best)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
