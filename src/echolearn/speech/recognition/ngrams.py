"""Language models of phones or words: n-grams with back-off, estimated from transcripts.

    P(w | h) = p(h w)                      if the n-gram h w is listed
               b(h) P(w | h without its first token)   otherwise

Probabilities are estimated by Witten and Bell's interpolation: with c(h) occurrences of the history h, followed by
t(h) different tokens,

    p(h w) = (c(h w) + t(h) P(w | h')) / (c(h) + t(h)),        b(h) = t(h) / (c(h) + t(h)),

where h' is h without its first token. The unigrams are interpolated in the same way with equal probabilities, so that
no token of the vocabulary is impossible. (I. H. Witten and T. C. Bell, "The zero-frequency problem", IEEE Transactions
on Information Theory 37(4), 1991.)
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from echolearn.display.facts import counted, one_line

START, END = "<s>", "</s>"

History = tuple[str, ...]


@dataclass(frozen=True)
class NGramModel:
    """A language model of n-grams with back-off.

    Parameters
    ----------
    order : int
        Length of the longest n-grams: 2 for a bigram.
    probability : dict of tuple of str to float
        Natural logarithm of the probability of the last token of each n-gram after the others.
    backoff : dict of tuple of str to float
        Natural logarithm of the back-off weight of each history; 0 for those that are missing.

    Examples
    --------
    >>> model = estimate([["y", "eh", "s"], ["n", "ow"]], order=2)
    >>> sum(math.exp(model.score(("n",), token)) for token in (*model.vocabulary, END))
    1.0
    >>> model.score(("n",), "ow") > model.score(("n",), "eh")
    True
    """

    order: int
    probability: Mapping[History, float]
    backoff: Mapping[History, float]

    def __repr__(self) -> str:
        return one_line(self, [f"order {self.order}", counted(len(self.probability), "n-gram")])

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """All tokens, without the marks of start and end, in alphabetical order."""
        return tuple(sorted(gram[0] for gram in self.probability if len(gram) == 1 and gram[0] not in (START, END)))

    def score(self, history: Sequence[str], token: str) -> float:
        """Return the log probability of a token.

        Parameters
        ----------
        history : sequence of str
            The tokens before it; only the last `order` - 1 count.
        token : str
            The token, or ``</s>`` for the end.

        Returns
        -------
        float
            Natural logarithm of its probability; -inf for a token that is not in the vocabulary.
        """
        known = self.state(history)
        weight = 0.0
        while True:
            found = self.probability.get((*known, token))
            if found is not None:
                return weight + found
            if not known:
                return -math.inf
            weight += self.backoff.get(known, 0.0)
            known = known[1:]

    def state(self, history: Sequence[str]) -> History:
        """Return the part of a history on which the next token depends: its longest end that the model contains.

        Parameters
        ----------
        history : sequence of str
            The tokens so far.

        Returns
        -------
        tuple of str
            The last tokens, at most `order` - 1.
        """
        known = tuple(history)[len(history) - min(len(history), self.order - 1) :]
        while known and known not in self.backoff and known not in self.probability:
            known = known[1:]
        return known

    def log_probability(self, tokens: Sequence[str]) -> float:
        """Return the log probability of a whole utterance, with its end.

        Parameters
        ----------
        tokens : sequence of str
            The utterance.

        Returns
        -------
        float
            Natural logarithm of its probability.
        """
        whole = [START, *tokens, END]
        return sum(self.score(whole[:k], whole[k]) for k in range(1, len(whole)))

    def perplexity(self, utterances: Iterable[Sequence[str]]) -> float:
        """Return the perplexity per token, ends of utterances included.

        Parameters
        ----------
        utterances : iterable of sequence of str
            Utterances that the model has not been estimated from.

        Returns
        -------
        float
            The perplexity: the number of equally probable tokens with the same uncertainty.
        """
        found = [(self.log_probability(tokens), len(tokens) + 1) for tokens in utterances]
        return math.exp(-sum(score for score, _ in found) / sum(length for _, length in found))


def estimate(utterances: Iterable[Sequence[str]], *, order: int = 2, vocabulary: Iterable[str] = ()) -> NGramModel:
    """Return a language model that is estimated from transcripts.

    Parameters
    ----------
    utterances : iterable of sequence of str
        Phones or words of each utterance, without marks of start and end.
    order : int, default 2
        Length of the longest n-grams. 2 is enough for phones of small corpora; try 3 if there are 100,000 phones.
    vocabulary : iterable of str, optional
        Tokens that must be possible even if they do not occur in the transcripts.

    Returns
    -------
    NGramModel
        The model.

    Raises
    ------
    ValueError
        If `order` is below 1, there is no utterance, or a transcript contains a mark of start or end.
    """
    if order < 1:
        raise ValueError(f"order is {order}, expected 1 or more")
    counts: dict[History, Counter[str]] = defaultdict(Counter)
    tokens = set(vocabulary)
    any_utterance = False
    for utterance in utterances:
        any_utterance = True
        tokens.update(utterance)
        if {START, END} & tokens:
            raise ValueError(f"a transcript contains {START} or {END}; these marks are added by the model")
        whole = [START, *utterance, END]
        for k in range(1, len(whole)):
            for length in range(min(order - 1, k) + 1):
                counts[tuple(whole[k - length : k])][whole[k]] += 1
    if not any_utterance:
        raise ValueError("there is no utterance to estimate a language model from")
    return _interpolated(counts, sorted(tokens), order)


def _interpolated(counts: Mapping[History, Counter[str]], tokens: Sequence[str], order: int) -> NGramModel:
    """Turn counts of tokens by history into probabilities, from short histories to long ones."""
    outcomes = [*tokens, END]
    probability: dict[History, float] = {(START,): -math.inf}
    backoff: dict[History, float] = {}
    for history in sorted(counts, key=lambda history: (len(history), history)):
        followers = counts[history]
        total, kinds = followers.total(), len(followers)
        for token in followers if history else outcomes:
            shorter = math.exp(_score(probability, backoff, history[1:], token)) if history else 1 / len(outcomes)
            probability[*history, token] = math.log((followers[token] + kinds * shorter) / (total + kinds))
        if history:
            backoff[history] = math.log(kinds / (total + kinds))
    return NGramModel(order, probability, backoff)


def _score(
    probability: Mapping[History, float], backoff: Mapping[History, float], history: History, token: str
) -> float:
    """Return the log probability of a token from the shorter histories that are finished."""
    weight = 0.0
    while (*history, token) not in probability:
        weight += backoff.get(history, 0.0)
        history = history[1:]
    return weight + probability[*history, token]
