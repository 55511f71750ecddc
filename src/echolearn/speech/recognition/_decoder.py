"""From probabilities of states to phones or words: what a decoder is learned from, and its search.

The search needs p(x | state), a network gives p(state | x) = p(x | state) p(state) / p(x). Dividing by the state's
share of the training frames would undo the network's prior wholly; an exponent between 0 and 1 undoes it in part, which
is better when the language model knows part of it, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from echolearn.display.facts import counted, one_line
from echolearn.speech._phone_set import SILENCES, silence_of, split_state
from echolearn.speech.recognition._graph import Graph, phone_graph, word_graph
from echolearn.speech.recognition._lattices import Lattice, build_lattice
from echolearn.speech.recognition._lexicon import Lexicon, spelled_in
from echolearn.speech.recognition._ngrams import NGramModel, estimate, word_list
from echolearn.speech.recognition._phone_models import PhoneModel, learn_phone_models, spoken_phones
from echolearn.speech.recognition._search import Search, Token
from echolearn.validation import Array

MIN_PROBABILITY = 1e-10  # probabilities below count as this
LATTICE_BEAM = 20.0  # in log scores


@dataclass(frozen=True)
class DecodingWeights:
    """How much each part of a score counts.

    `prior_exponent`: how far the share of a state among the training frames is divided out, 0 not at all, 1 wholly.
    `language_weight`: above 1, because neighbouring frames are not independent and the network would weigh too much.
    `penalty`: subtracted for every token. `beam`: how far below the best score a path is given up.
    `confidence_scale`: factor of all scores when confidences are computed.
    """

    prior_exponent: float = 0.6
    language_weight: float = 2.0
    duration_weight: float = 1.0
    penalty: float = 0.0
    beam: float = 40.0
    confidence_scale: float = 0.3


# Where the search for good weights begins. With a penalty of 0, speakers whom no network has learned from lose many
# phones, and get many words that they did not say.
PHONE_WEIGHTS = DecodingWeights(prior_exponent=0.4, penalty=-4.0)
WORD_WEIGHTS = DecodingWeights(prior_exponent=0.4, language_weight=3.0, penalty=8.0, beam=60.0)


@dataclass(frozen=True)
class Decoder:
    """Finds the most probable tokens of utterances whose states have probabilities, of shape (n_frames, n_states)."""

    graph: Graph
    priors: NDArray[np.float64]  # share of each state among the training frames
    weights: DecodingWeights = field(default_factory=DecodingWeights)

    def emissions(self, probabilities: Array) -> NDArray[np.float32]:
        """Return scaled log probabilities (n_frames, n_states) for the search."""
        return scaled_logarithms(probabilities, self.priors, self.weights.prior_exponent).astype(np.float32)

    def search(self, beam: float | None = None) -> Search:
        """Return a search that has taken no frame yet; it takes what `emissions` returns."""
        w = self.weights
        arcs = self.graph.weights(
            duration_weight=w.duration_weight, language_weight=w.language_weight, penalty=w.penalty
        )
        return Search(self.graph, arcs, w.language_weight, w.beam if beam is None else beam)

    def decode(self, probabilities: Array, *, confidences: bool = False) -> list[Token]:
        """Return the tokens of one utterance; where the beam has lost every path that can end, it is left out."""
        if confidences:
            lattice = self.lattice(probabilities)
            return lattice.confidences(lattice.best, self.weights.confidence_scale)
        emissions = self.emissions(probabilities)
        for beam in (self.weights.beam, np.inf):
            search = self.search(beam)
            search.advance(emissions)
            tokens, score = search.best()
            if score > -np.inf:
                break
        return tokens

    def lattice(self, probabilities: Array, *, beam: float = LATTICE_BEAM) -> Lattice:
        """Return all paths that the search has kept whose scores are at most `beam` below that of the best one."""
        emissions = self.emissions(probabilities)
        for search_beam in (self.weights.beam, np.inf):
            lattice = build_lattice(self.search(search_beam), emissions, penalty=self.weights.penalty, beam=beam)
            if len(lattice.start):
                break
        return lattice


def scaled_logarithms(probabilities: Array, priors: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """Return log probabilities (n_frames, n_states) with the priors of the states divided out."""
    scaled = np.log(np.maximum(probabilities, MIN_PROBABILITY)) - exponent * np.log(np.maximum(priors, MIN_PROBABILITY))
    return np.asarray(scaled, np.float64)


def state_shares(labels: Iterable[Array], n_states: int) -> NDArray[np.float64]:
    """Return the share of each state among frames, with one frame added to each."""
    counts = np.ones(n_states)
    for one in labels:
        counts += np.bincount(one, minlength=n_states)
    return np.asarray(counts / counts.sum())


@dataclass(frozen=True, eq=False)
class PhoneTask:
    """How to recognise phones from the states of a network, in the order of its outputs."""

    states: tuple[str, ...]  # such as aa_s2
    phones: tuple[PhoneModel, ...]  # their labels are indices into `states`
    language_model: NGramModel
    priors: NDArray[np.float64]  # share of each state among the training frames
    weights: DecodingWeights = field(default_factory=DecodingWeights)

    def __repr__(self) -> str:
        return one_line(self, [counted(len(self.phones), "phone"), counted(len(self.states), "state")])

    @property
    def phone_names(self) -> tuple[str, ...]:
        return tuple(phone.name for phone in self.phones)

    @property
    def silent_states(self) -> list[int]:
        """The states of all silences."""
        return [k for k, name in enumerate(self.states) if split_state(name)[0] in SILENCES]

    def decoder(self) -> Decoder:
        """Return the decoder of phones."""
        return Decoder(phone_graph(self.phones, self.language_model), self.priors, self.weights)


@dataclass(frozen=True, eq=False)
class WordTask:
    """How to recognise words that are spelled in the phones of a `PhoneTask`."""

    lexicon: Lexicon
    language_model: NGramModel
    weights: DecodingWeights = field(default_factory=DecodingWeights)

    def __repr__(self) -> str:
        return one_line(self, [counted(len(self.lexicon.pronunciations), "word")])

    def decoder(self, phones: PhoneTask) -> Decoder:
        """Return the decoder of words; silence may stand between them."""
        graph = word_graph(phones.phones, self.lexicon, self.language_model, silence=silence_of(phones.phone_names))
        return Decoder(graph, phones.priors, self.weights)


def learn_phone_task(labels: Sequence[Array], states: Sequence[str], *, order: int = 2) -> PhoneTask:
    """Learn durations, a phone n-gram and priors from the state labels of the training part, indices into `states`."""
    return PhoneTask(
        tuple(states),
        learn_phone_models(labels, states),
        estimate([spoken_phones(one, states) for one in labels], order=order),
        state_shares(labels, len(states)),
        PHONE_WEIGHTS,
    )


def word_task(phones: PhoneTask, lexicon: Lexicon, language_model: NGramModel | None = None) -> WordTask:
    """Return a task of words in the phones of another; without a language model any word may follow any other."""
    spelled = spelled_in(lexicon, phones.phone_names)
    model = word_list(spelled.words) if language_model is None else language_model
    if not any((word,) in model.probability for word in spelled.words):
        raise ValueError("no word of the language model is in the lexicon; are both in the same case and spelling?")
    return WordTask(spelled, model, WORD_WEIGHTS)
