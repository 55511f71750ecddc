"""Forced alignment: when each word, phone and state of a known utterance was spoken, by a network's probabilities.

The utterance is a small decoding graph of its own: its words in order, each with all its pronunciations side by side,
and between them, before and after, a silence that may be left out. The best path through it gives the pronunciations,
the silences and the state of every frame. These states can be the labels of the next training (align, learn, align).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echolearn.speech.recognition.decoder import Decoder, DecodingWeights
from echolearn.speech.recognition.graph import Graph, GraphBuilder, at
from echolearn.speech.recognition.lexicon import Lexicon
from echolearn.speech.recognition.phonemodels import PhoneModel
from echolearn.speech.recognition.search import Token
from echolearn.speech.recognition.trellis import search_trellis
from echolearn.validation.array_types import Array

_SILENT = -1  # no word


class WordAlignment(NamedTuple):
    """When the words, phones and states of an utterance were spoken.

    Parameters
    ----------
    words : list of Token
        The words with their frames; between them there may be silence.
    phones : list of Token
        The phones with their frames, silences included; they cover all frames.
    labels : array of shape (n_frames,), int64
        Label of the state of each frame.
    score : float
        Log score of the alignment.
    """

    words: list[Token]
    phones: list[Token]
    labels: NDArray[np.int64]
    score: float


class _Spoken(NamedTuple):
    """What a node of an alignment's graph belongs to: the word's position, the phone, its place among all phones."""

    word: int
    phone: str
    place: int


@dataclass
class _AlignmentGraph:
    """Collects the graph of a known utterance and what each of its nodes belongs to."""

    models: dict[str, PhoneModel]
    builder: GraphBuilder = field(default_factory=GraphBuilder)
    owners: list[_Spoken] = field(default_factory=list)
    places: int = 0

    def add_phones(self, start: int, end: int, phones: Sequence[str], word: int) -> None:
        """Add phones one after another between two anchors; word: its position, or -1 for a silence."""
        ways = at(start)
        for phone in phones:
            model = self.models[phone]
            ways_in, ways_out = self.builder.add_phone(model)
            self.owners += [_Spoken(word, phone, self.places)] * model.leaving.size
            self.places += 1
            self.builder.add_arcs(ways, ways_in)
            ways = ways_out
        self.builder.add_arcs(ways, at(end))

    def add_optional(self, start: int, phone: str | None) -> int:
        """Add a phone that may be left out, and return the anchor behind it."""
        if phone is None:
            return start
        end = self.builder.add_anchor()
        self.builder.add_arc(start, end)
        self.add_phones(start, end, [phone], _SILENT)
        return end

    def finish(self, start: int, end: int) -> Graph:
        """Return the graph of what was added between two anchors."""
        self.builder.final[end] = 0.0
        return self.builder.build(start, [])


def align_words(
    probabilities: Array,
    models: Sequence[PhoneModel],
    lexicon: Lexicon,
    words: Sequence[str],
    *,
    priors: NDArray[np.float64],
    weights: DecodingWeights | None = None,
    silence: str | None = None,
) -> WordAlignment:
    """Find when each word of a known utterance was spoken, and in which of its pronunciations.

    Parameters
    ----------
    probabilities : array of shape (n_frames, n_states)
        Probability of each state at each frame.
    models : sequence of PhoneModel
        The phones.
    lexicon : Lexicon
        Pronunciations in these phones. The best one of every word is chosen.
    words : sequence of str
        The words of the utterance in order.
    priors : array of shape (n_states,)
        Share of each state among the training frames.
    weights : DecodingWeights, optional
        How much durations count and how far priors are divided out; the language model and the penalty do not matter.
    silence : str, optional
        The phone that may stand before, between and after the words. Without it the words cover all frames.

    Returns
    -------
    WordAlignment
        Words, phones and states.

    Raises
    ------
    ValueError
        If a word has no pronunciation, a phone has no model, there is nothing to align, or the utterance is too short.

    See Also
    --------
    align_phones : The same for a known sequence of phones.
    """
    variants = lexicon.restricted(words).pronunciations
    graph = _AlignmentGraph(_checked(models, {p for v in variants.values() for one in v for p in one}, silence))
    start = graph.builder.add_anchor()
    anchor = graph.add_optional(start, silence)
    for position, word in enumerate(words):
        end = graph.builder.add_anchor()
        for pronunciation in variants[word]:
            graph.add_phones(anchor, end, pronunciation, position)
        anchor = graph.add_optional(end, silence)
    shortest = sum(min(len(one) for one in variants[word]) for word in words)
    shown = f"{len(words)} words ({_shown(words)}) of at least {shortest} phones"
    return _aligned(graph, graph.finish(start, anchor), _Utterance(probabilities, priors, weights), words, shown)


def align_phones(
    probabilities: Array,
    models: Sequence[PhoneModel],
    phones: Sequence[str],
    *,
    priors: NDArray[np.float64],
    weights: DecodingWeights | None = None,
) -> list[Token]:
    """Find when each phone of a known sequence was spoken.

    Parameters
    ----------
    probabilities : array of shape (n_frames, n_states)
        Probability of each state at each frame.
    models : sequence of PhoneModel
        The phones.
    phones : sequence of str
        The phones of the utterance in order, silences included.
    priors : array of shape (n_states,)
        Share of each state among the training frames.
    weights : DecodingWeights, optional
        How much durations count and how far priors are divided out.

    Returns
    -------
    list of Token
        The phones with their frames.

    Raises
    ------
    ValueError
        If a phone has no model, there is nothing to align, or the utterance is too short.
    """
    return _phones_aligned(models, phones, _Utterance(probabilities, priors, weights)).phones


def realigned_labels(
    probabilities: Array,
    models: Sequence[PhoneModel],
    phones: Sequence[str],
    *,
    priors: NDArray[np.float64],
    weights: DecodingWeights | None = None,
) -> NDArray[np.int64]:
    """Return the state of each frame for a known sequence of phones, as labels for the next training.

    Parameters
    ----------
    probabilities : array of shape (n_frames, n_states)
        As in `align_phones`.
    models : sequence of PhoneModel
        As in `align_phones`.
    phones : sequence of str
        As in `align_phones`.
    priors : array of shape (n_states,)
        As in `align_phones`.
    weights : DecodingWeights, optional
        As in `align_phones`.

    Returns
    -------
    array of shape (n_frames,), int64
        Label of the state of each frame. Labels alone do not show the boundary between two equal phones where the
        second begins with a later state than the first ended with; `align_phones` does.

    Raises
    ------
    ValueError
        If a phone has no model, there is nothing to align, or the utterance is too short.
    """
    return _phones_aligned(models, phones, _Utterance(probabilities, priors, weights)).labels


class _Utterance(NamedTuple):
    """Probabilities of an utterance and how they are weighted."""

    probabilities: Array
    priors: NDArray[np.float64]
    weights: DecodingWeights | None


def _phones_aligned(models: Sequence[PhoneModel], phones: Sequence[str], utterance: _Utterance) -> WordAlignment:
    """Align a known sequence of phones, each of which counts as a word."""
    graph = _AlignmentGraph(_checked(models, set(phones), None))
    start = anchor = graph.builder.add_anchor()
    for position, phone in enumerate(phones):
        end = graph.builder.add_anchor()
        graph.add_phones(anchor, end, [phone], position)
        anchor = end
    shown = f"{len(phones)} phones ({_shown(phones)})"
    return _aligned(graph, graph.finish(start, anchor), utterance, phones, shown)


def _checked(models: Sequence[PhoneModel], phones: set[str], silence: str | None) -> dict[str, PhoneModel]:
    """Return the models by name, or report the phones that have none."""
    by_name = {model.name: model for model in models}
    wanted = phones | ({silence} if silence is not None else set())
    unknown = sorted(wanted - by_name.keys())
    if unknown:
        raise ValueError(f"there is no model of the phones {', '.join(unknown)}; expected {', '.join(by_name)}")
    if not wanted:
        raise ValueError("there is nothing to align: no word or phone, and no silence")
    return by_name


def _aligned(
    spoken: _AlignmentGraph, graph: Graph, utterance: _Utterance, words: Sequence[str], shown: str
) -> WordAlignment:
    """Search the graph, without a beam if that of the weights loses every path, and read off the best path."""
    probabilities, priors, weights = utterance
    decoder = Decoder(graph, priors, weights or DecodingWeights())
    frames = decoder.emissions(np.asarray(probabilities))
    for beam in dict.fromkeys((decoder.weights.beam, np.inf)):
        search = replace(decoder, weights=replace(decoder.weights, beam=beam)).search()
        nodes = search_trellis(search, frames).best_nodes()
        if nodes is not None:
            break
    else:
        raise ValueError(f"{len(frames)} frames are too few for {shown}: every phone takes a frame or more")
    owners = [spoken.owners[node] for node in nodes]
    return WordAlignment(
        words=[_token(words[word], run) for word, run in _runs([owner.word for owner in owners]) if word != _SILENT],
        phones=[_token(owners[run[0]].phone, run) for _, run in _runs([owner.place for owner in owners])],
        labels=graph.emission[nodes].astype(np.int64),
        score=search.best()[1],
    )


def _runs(values: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Return the stretches of equal values with their frames."""
    return [(value, [k for k, _ in group]) for value, group in groupby(enumerate(values), key=lambda pair: pair[1])]


def _token(name: str, frames: Sequence[int]) -> Token:
    return Token(name, frames[0], frames[-1] + 1)


def _shown(names: Sequence[str]) -> str:
    return " ".join(names[:8]) + (" ..." if len(names) > 8 else "")
