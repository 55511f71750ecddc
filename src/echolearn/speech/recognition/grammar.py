"""Grammars without statistics: any sequence of some words, or one of them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from echolearn.speech.recognition.lexicon import Lexicon
from echolearn.speech.recognition.ngrams import END, START, History, NGramModel


def word_list(
    words: Iterable[str], *, repeat: bool = True, end_probability: float = 0.2, lexicon: Lexicon | None = None
) -> NGramModel:
    """Return a language model in which all words of a list are equally probable, for spelling, digits or commands.

    Parameters
    ----------
    words : iterable of str
        The words; one that is listed twice counts once.
    repeat : bool, default True
        Whether an utterance is any sequence of the words, an empty one included. Otherwise it is exactly one of them.
    end_probability : float, default 0.2
        Probability that the utterance ends instead of another word, with `repeat`: 0.2 for about four words. A wrong
        value matters little beside the network's scores.
    lexicon : Lexicon, optional
        The lexicon with which the model will be used, to find words that it lacks now.

    Returns
    -------
    NGramModel
        The model, for `word_graph`.

    Raises
    ------
    ValueError
        If there is no word, a word is a mark of start or end, `end_probability` is not between 0 and 1, or the lexicon
        lacks words, whose names are in the message.

    Examples
    --------
    >>> digits = word_list(["ONE", "TWO", "THREE"])
    >>> round(math.exp(digits.log_probability(["TWO", "TWO"])), 4)  # 0.8 / 3 for each word and 0.2 for the end
    0.0142
    >>> word_list(["YES", "NO"], repeat=False).log_probability(["YES", "NO"])
    -inf
    """
    listed = list(dict.fromkeys(words))
    if not listed:
        raise ValueError("the list of words is empty; expected one word or more")
    marks = {START, END} & set(listed)
    if marks:
        raise ValueError(f"the list of words contains {sorted(marks)[0]}, which marks the start or end of an utterance")
    if not 0 < end_probability < 1:
        raise ValueError(f"end_probability is {end_probability}, expected a number between 0 and 1")
    if lexicon is not None:
        lexicon.restricted(listed)
    if repeat:
        each = math.log((1 - end_probability) / len(listed))
        loop: dict[History, float] = {(START,): -math.inf, (END,): math.log(end_probability)}
        return NGramModel(1, loop | {(word,): each for word in listed}, {})
    once: dict[History, float] = {(word,): -math.inf for word in (START, *listed, END)}
    for word in listed:
        once[START, word], once[word, END] = -math.log(len(listed)), 0.0
    return NGramModel(2, once, {(word,): -math.inf for word in (START, *listed)})
