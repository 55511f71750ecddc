"""The parts of a recogniser beside its network: the phones and what follows what; words, spelled in these phones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from echolearn.display.facts import counted, one_line
from echolearn.speech.phones import SILENCES, silence_of, split_state
from echolearn.speech.recognition._decoder import Decoder, DecodingWeights, state_shares
from echolearn.speech.recognition._graph import phone_graph, word_graph
from echolearn.speech.recognition._lexicon import Lexicon
from echolearn.speech.recognition._ngrams import NGramModel, estimate, word_list
from echolearn.speech.recognition._phone_models import PhoneModel, learn_phone_models, phone_segments
from echolearn.validation import Array


@dataclass(frozen=True, eq=False)
class PhoneTask:
    """How to recognise phones from the states of a network.

    Parameters
    ----------
    states : tuple of str
        Name of each state, such as ``aa_s2``, in the order of the network's outputs.
    phones : tuple of PhoneModel
        The phones, whose labels are indices into `states`.
    language_model : NGramModel
        Which phones follow which.
    priors : array of shape (n_states,)
        Share of each state among the training frames.
    weights : DecodingWeights, optional
        How much each part of a score counts.
    """

    states: tuple[str, ...]
    phones: tuple[PhoneModel, ...]
    language_model: NGramModel
    priors: NDArray[np.float64]
    weights: DecodingWeights = field(default_factory=DecodingWeights)

    def __repr__(self) -> str:
        return one_line(self, [counted(len(self.phones), "phone"), counted(len(self.states), "state")])

    @property
    def phone_names(self) -> tuple[str, ...]:
        """The phones."""
        return tuple(phone.name for phone in self.phones)

    @property
    def silence(self) -> str | None:
        """The phone that stands for silence, if there is one."""
        return silence_of(self.phone_names)

    @property
    def silent_states(self) -> list[int]:
        """The states of all silences."""
        return [k for k, name in enumerate(self.states) if split_state(name)[0] in SILENCES]

    def decoder(self) -> Decoder:
        """Return the decoder of phones.

        Returns
        -------
        Decoder
            The decoder.
        """
        return Decoder(phone_graph(self.phones, self.language_model), self.priors, self.weights)


@dataclass(frozen=True, eq=False)
class WordTask:
    """How to recognise words from the states of a network.

    Parameters
    ----------
    lexicon : Lexicon
        Pronunciations of words in the phones of a `PhoneTask`.
    language_model : NGramModel
        Which words follow which.
    weights : DecodingWeights, optional
        How much each part of a score counts.
    """

    lexicon: Lexicon
    language_model: NGramModel
    weights: DecodingWeights = field(default_factory=DecodingWeights)

    def __repr__(self) -> str:
        return one_line(self, [counted(len(self.lexicon.pronunciations), "word")])

    def decoder(self, phones: PhoneTask) -> Decoder:
        """Return the decoder of words.

        Parameters
        ----------
        phones : PhoneTask
            The phones that the words are spelled in.

        Returns
        -------
        Decoder
            The decoder. Silence may stand between words.
        """
        graph = word_graph(phones.phones, self.lexicon, self.language_model, silence=phones.silence)
        return Decoder(graph, phones.priors, self.weights)


def learn_phone_task(labels: Sequence[Array], states: Sequence[str], *, order: int = 2) -> PhoneTask:
    """Learn durations, a phone n-gram and priors from the state labels of the training part.

    Parameters
    ----------
    labels : sequence of array of shape (n_frames,)
        State labels of the training utterances, indices into `states`.
    states : sequence of str
        Name of each state, in the order of the network's outputs.
    order : int, default 2
        Order of the phone n-gram.

    Returns
    -------
    PhoneTask
        What was learned, with the default weights.
    """
    spoken = [[phone for phone, _, _ in phone_segments(one, states)] for one in labels]
    return PhoneTask(
        tuple(states),
        learn_phone_models(labels, states),
        estimate(spoken, order=order),
        state_shares(labels, len(states)),
    )


def word_task(phones: PhoneTask, lexicon: Lexicon, language_model: NGramModel | None = None) -> WordTask:
    """Return a task of words, spelled in the phones of another.

    Parameters
    ----------
    phones : PhoneTask
        The phones.
    lexicon : Lexicon
        Pronunciations; marks of stress and case may differ from the phones'.
    language_model : NGramModel, optional
        Which words follow which. By default any word of the lexicon may follow any other.

    Returns
    -------
    WordTask
        The task, with the default weights.

    Raises
    ------
    ValueError
        If the lexicon has phones that the network does not know, or none of its words is in the language model.
    """
    spelled = lexicon.with_phones_of(phones.phone_names)
    model = word_list(spelled.words) if language_model is None else language_model
    if not any((word,) in model.probability for word in spelled.words):
        raise ValueError("no word of the language model is in the lexicon; are both in the same case and spelling?")
    return WordTask(spelled, model)
