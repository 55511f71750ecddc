"""Grammars without statistics: any sequence of some words, one of them, or one of some sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from echolearn.speech.recognition.graph import Graph, GraphBuilder, add_pauses, add_words
from echolearn.speech.recognition.lexicon import Lexicon
from echolearn.speech.recognition.ngrams import END, START, History, NGramModel
from echolearn.speech.recognition.phonemodels import PhoneModel


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


def sentence_graph(
    phones: Sequence[PhoneModel],
    lexicon: Lexicon,
    sentences: Iterable[Sequence[str]],
    *,
    silence: str | None = None,
) -> Graph:
    """Build the graph of some sentences: an utterance is one of them, and nothing else.

    Parameters
    ----------
    phones : sequence of PhoneModel
        The phones.
    lexicon : Lexicon
        Pronunciations in these phones.
    sentences : iterable of sequence of str
        The words of each sentence. A sentence that is listed twice is twice as probable.
    silence : str, optional
        The phone that may stand between words, and before and after them.

    Returns
    -------
    Graph
        The graph; its tokens are the words.

    Raises
    ------
    ValueError
        If there is no sentence, or words have no pronunciation; the message names them.
    """
    counts = Counter(tuple(sentence) for sentence in sentences)
    if not counts:
        raise ValueError("there is no sentence to recognise; expected one or more")
    words = sorted({word for sentence in counts for word in sentence})
    lexicon.restricted(words)
    spoken: Counter[History] = Counter()  # how many sentences begin with each sequence of words
    followers: dict[History, set[str]] = {}
    for sentence, n in counts.items():
        for k in range(len(sentence) + 1):
            spoken[sentence[:k]] += n
            followers.setdefault(sentence[:k], set()).update(sentence[k : k + 1])
    builder = GraphBuilder()
    anchors = {prefix: builder.add_anchor() for prefix in sorted(spoken)}
    index = {word: k for k, word in enumerate(words)}
    by_name = {phone.name: phone for phone in phones}
    for prefix, anchor in anchors.items():
        if prefix in counts:
            builder.final[anchor] = math.log(counts[prefix] / spoken[prefix])
        scores = {word: math.log(spoken[*prefix, word] / spoken[prefix]) for word in sorted(followers[prefix])}
        ends = {word: (anchors[*prefix, word], index[word]) for word in scores}
        add_words(builder, anchor, scores, ends=ends, lexicon=lexicon, phones=by_name)
    if silence is not None:
        add_pauses(builder, anchors.values(), by_name[silence])
    return builder.build(anchors[()], words)
