"""A decoder of phones and words from state labels: what is learned comes from train, weights are tuned on valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from echolearn.speech._typing import Progress
from echolearn.speech.folding import PhoneMap, fold
from echolearn.speech.phones import SILENCES
from echolearn.speech.recognition._decoder import CHOICES, Decoder, tune
from echolearn.speech.recognition._parts import learn_phone_task
from echolearn.speech.recognition._phone_models import phone_segments
from echolearn.speech.recognition._search import Token
from echolearn.speech.scoring import Evaluation, evaluate
from echolearn.validation import Array


def phone_decoder(labels: Sequence[Array], names: Sequence[str], *, order: int = 2) -> Decoder:
    """Learn a decoder for phones from the state labels of the training part.

    Parameters
    ----------
    labels : sequence of array of shape (n_frames,)
        State labels of the training utterances, indices into `names`.
    names : sequence of str
        Name of each state, such as ``aa_s2``, in the order of the network's classes.
    order : int, default 2
        Order of the phone n-gram.

    Returns
    -------
    Decoder
        The decoder, with the default weights.
    """
    return learn_phone_task(labels, names, order=order).decoder()


def spoken_phones(labels: Array, names: Sequence[str]) -> list[str]:
    """Return the phones of an utterance from its state labels.

    Parameters
    ----------
    labels : array of shape (n_frames,)
        State labels of the utterance.
    names : sequence of str
        Name of each state.

    Returns
    -------
    list of str
        The phones in order, silences included.
    """
    return [phone for phone, _, _ in phone_segments(labels, names)]


def evaluate_phones(
    references: Mapping[str, Sequence[str]],
    recognised: Mapping[str, Sequence[Token]],
    *,
    speakers: Mapping[str, str] | None = None,
    phone_map: PhoneMap | None = None,
) -> Evaluation:
    """Align recognised phones with the spoken ones. Silences do not count.

    Parameters
    ----------
    references : mapping of str to sequence of str
        The spoken phones of each utterance.
    recognised : mapping of str to sequence of Token
        The recognised phones of each utterance.
    speakers : mapping of str to str, optional
        The speaker of each utterance.
    phone_map : mapping of str to str or None, optional
        Folds the phones of both sides into fewer classes before they are compared.

    Returns
    -------
    Evaluation
        The alignments.
    """
    heard = {name: [token.name for token in tokens] for name, tokens in recognised.items()}
    spoken = {name: list(phones) for name, phones in references.items()}
    if phone_map is not None:
        heard = {name: fold(phones, phone_map) for name, phones in heard.items()}
        spoken = {name: fold(phones, phone_map) for name, phones in spoken.items()}
    return evaluate(spoken, heard, speakers=speakers, ignore=SILENCES)


def tune_phones(
    decoder: Decoder,
    references: Mapping[str, Sequence[str]],
    probabilities: Mapping[str, Array],
    *,
    phone_map: PhoneMap | None = None,
    choices: Mapping[str, Sequence[float]] = CHOICES,
    progress: Progress | None = None,
) -> tuple[Decoder, float]:
    """Choose the weights of a phone decoder by the phone error on validation utterances.

    Parameters
    ----------
    decoder : Decoder
        The decoder to start from.
    references : mapping of str to sequence of str
        The spoken phones of each validation utterance.
    probabilities : mapping of str to array of shape (n_frames, n_states)
        The network's probabilities for the same utterances.
    phone_map : mapping of str to str or None, optional
        Folds the phones of both sides into fewer classes before they are compared.
    choices : mapping of str to sequence of float, optional
        What is tried for each weight; a weight that is not named stays what it is.
    progress : callable, optional
        Called as `progress(text, done, total)`.

    Returns
    -------
    decoder : Decoder
        The decoder with the weights of the smallest phone error.
    error : float
        Its phone error, a fraction of the spoken phones.
    """

    def error(recognised: Mapping[str, Sequence[Token]]) -> float:
        return evaluate_phones(references, recognised, phone_map=phone_map).total.error_rate

    return tune(decoder, error, probabilities, choices=choices, progress=progress)


def evaluate_words(
    references: Mapping[str, Sequence[str]],
    recognised: Mapping[str, Sequence[Token]],
    *,
    speakers: Mapping[str, str] | None = None,
) -> Evaluation:
    """Align recognised words with the spoken ones. Upper and lower case are the same.

    Parameters
    ----------
    references : mapping of str to sequence of str
        The spoken words of each utterance.
    recognised : mapping of str to sequence of Token
        The recognised words of each utterance.
    speakers : mapping of str to str, optional
        The speaker of each utterance.

    Returns
    -------
    Evaluation
        The alignments.
    """
    heard = {name: [token.name.upper() for token in recognised[name]] for name in recognised}
    spoken = {name: [word.upper() for word in words] for name, words in references.items()}
    return evaluate(spoken, heard, speakers=speakers)


def tune_words(
    decoder: Decoder,
    references: Mapping[str, Sequence[str]],
    probabilities: Mapping[str, Array],
    *,
    progress: Progress | None = None,
) -> tuple[Decoder, float]:
    """Choose the weights of a word decoder by the word error on validation utterances.

    Parameters
    ----------
    decoder : Decoder
        The decoder to start from.
    references : mapping of str to sequence of str
        The spoken words of each validation utterance.
    probabilities : mapping of str to array of shape (n_frames, n_states)
        The network's probabilities for the same utterances.
    progress : callable, optional
        Called as `progress(text, done, total)`.

    Returns
    -------
    decoder : Decoder
        The decoder with the weights of the smallest word error.
    error : float
        Its word error, a fraction of the spoken words.
    """

    def error(recognised: Mapping[str, Sequence[Token]]) -> float:
        return evaluate_words(references, recognised).total.error_rate

    return tune(decoder, error, probabilities, progress=progress)
