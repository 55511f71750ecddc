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
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from echolearn.display.facts import counted, one_line
from echolearn.exceptions import CorpusError
from echolearn.modelfile.atomic import write_atomically
from echolearn.speech._text import LINE_END, number_of, read_text

START, END = "<s>", "</s>"
WORD_LIST_END_PROBABILITY = 0.2  # about four words; a wrong value matters little beside the network's scores

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
            listed = self.probability.get((*known, token))
            if listed is not None:
                return weight + listed
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

    Examples
    --------
    >>> model = estimate([["the", "cat"], ["the", "dog"]])
    >>> model.score(("the",), "cat") == model.score(("the",), "dog")
    True
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
    model = NGramModel(order, probability, backoff)
    for history in sorted(counts, key=lambda history: (len(history), history)):
        followers = counts[history]
        total, kinds = followers.total(), len(followers)
        for token in followers if history else outcomes:
            shorter = math.exp(model.score(history[1:], token)) if history else 1 / len(outcomes)
            probability[*history, token] = math.log((followers[token] + kinds * shorter) / (total + kinds))
        if history:
            backoff[history] = math.log(kinds / (total + kinds))
    return model


def word_list(words: Iterable[str], *, repeat: bool = True) -> NGramModel:
    """Return a model in which all words of a list are equally probable: any sequence of them, or exactly one."""
    listed = list(dict.fromkeys(words))
    if not listed:
        raise ValueError("the list of words is empty; expected one word or more")
    marks = {START, END} & set(listed)
    if marks:
        raise ValueError(f"the list of words contains {sorted(marks)[0]}, which marks the start or end of an utterance")
    if repeat:
        each = math.log((1 - WORD_LIST_END_PROBABILITY) / len(listed))
        loop: dict[History, float] = {(START,): -math.inf, (END,): math.log(WORD_LIST_END_PROBABILITY)}
        return NGramModel(1, loop | {(word,): each for word in listed}, {})
    once: dict[History, float] = {(word,): -math.inf for word in (START, *listed, END)}
    for word in listed:
        once[START, word], once[word, END] = -math.log(len(listed)), 0.0
    return NGramModel(2, once, {(word,): -math.inf for word in (START, *listed)})


# Files of the ARPA format, which SRILM, KenLM, Kaldi and CMU's tools read and write

_LN_10 = math.log(10)
_LOG10_ZERO = -99.0  # the logarithm that stands for a probability of zero, as SRILM writes it
_MAX_LOG10_BACKOFF = 99.0  # the largest logarithm of a back-off weight: beyond it a number is damaged
_COUNT_LINE = re.compile(r"ngram[ \t]+(\d{1,2})[ \t]*=[ \t]*(\d{1,12})", re.ASCII)


def write_arpa(path: str | Path, model: NGramModel) -> None:
    """Write a language model to an ARPA file.

    Parameters
    ----------
    path : str or Path
        The file; one that exists is replaced, completely or not at all.
    model : NGramModel
        The model. Its tokens must not contain blanks.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_arpa(f"{folder}/phones.arpa", estimate([["n", "ow"]], order=1))
    ...     print(Path(folder, "phones.arpa").read_text().splitlines()[2])
    ngram 1=4
    """
    grams: list[list[History]] = [[] for _ in range(model.order)]
    for gram in sorted(model.probability):
        if any(not token or token.split() != [token] for token in gram):
            raise ValueError(f"an ARPA file cannot hold the n-gram {gram}: a token is empty or contains a blank")
        grams[len(gram) - 1].append(gram)
    lines = ["", "\\data\\", *(f"ngram {k}={len(entries)}" for k, entries in enumerate(grams, 1))]
    for k, entries in enumerate(grams, 1):
        lines += ["", f"\\{k}-grams:"]
        for gram in entries:
            fields = [_decimal(model.probability[gram]), " ".join(gram)]
            if gram in model.backoff:
                fields.append(_decimal(model.backoff[gram]))
            lines.append("\t".join(fields))
    write_atomically(Path(path), "\n".join([*lines, "", "\\end\\", ""]).encode())


def _decimal(value: float) -> str:
    """Return a natural logarithm as a decimal one, with enough digits to give it back to 1e-9."""
    return f"{_LOG10_ZERO:g}" if value == -math.inf else f"{value / _LN_10:.10g}"


def read_arpa(path: str | Path) -> NGramModel:
    """Read a language model from an ARPA file.

    Parameters
    ----------
    path : str or Path
        The file. A CorpusError names the line of what is wrong, such as other numbers of n-grams than the file
        announces, probabilities above 1, or a history that is not listed.

    Returns
    -------
    NGramModel
        The model.

    Examples
    --------
    >>> import tempfile
    >>> from echolearn.speech.recognition import estimate, read_arpa, write_arpa
    >>> model = estimate([["y", "eh", "s"], ["n", "ow"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_arpa(f"{folder}/phones.arpa", model)
    ...     again = read_arpa(f"{folder}/phones.arpa")
    >>> abs(again.score(("n",), "ow") - model.score(("n",), "ow")) < 1e-9
    True
    """
    return _Reader(path, read_text(path, "a language model in the ARPA format")).read()


class _Reader:
    """Reads one file, and names it and the line in every error."""

    def __init__(self, path: str | Path, text: str) -> None:
        self.path = path
        self.number = 0
        self.lines = iter(LINE_END.split(text))

    def read(self) -> NGramModel:
        while self.next() != "\\data\\":
            pass
        announced = self.announced()
        probability: dict[History, float] = {}
        backoff: dict[History, float] = {}
        for order, expected in enumerate(announced, 1):
            count = 0
            for fields in self.section(order, last=order == len(announced)):
                gram, p, b = self.entry(fields, order)
                if gram in probability:
                    raise self.problem(f"the {order}-gram {' '.join(gram)!r} is listed twice")
                if order > 1 and gram[:-1] not in probability:
                    raise self.problem(f"the history {' '.join(gram[:-1])!r} of this n-gram is not listed")
                if gram[-1:] not in probability and order > 1:
                    raise self.problem(f"the token {gram[-1]!r} is not listed among the 1-grams")
                probability[gram] = p
                if b is not None:
                    backoff[gram] = b
                count += 1
            if count != expected:
                raise self.problem(f"the file announces {expected} {order}-grams and holds {count}")
        for rest in self.lines:
            self.number += 1
            if rest.strip(" \t"):
                raise self.problem(f"{rest[:40]!r} follows the end of the model; expected nothing after \\end\\")
        return NGramModel(len(announced), probability, backoff)

    def next(self) -> str:
        """Return the next line without blanks around it; the end of the file is an error."""
        try:
            line = next(self.lines)
        except StopIteration:
            expected = r"\data\, the n-grams and \end\ "
            raise self.problem(f"the file ends here; expected {expected.strip()} of an ARPA file") from None
        self.number += 1
        return line.strip(" \t")

    def announced(self) -> list[int]:
        """Read the numbers of n-grams up to the head of the first section."""
        counts: list[int] = []
        while True:
            line = self.next()
            match = _COUNT_LINE.fullmatch(line)
            if match:
                if int(match[1]) != len(counts) + 1:
                    raise self.problem(f"{line!r}; expected the number of {len(counts) + 1}-grams")
                counts.append(int(match[2]))
            elif line == "\\1-grams:" and counts:
                return counts
            elif line:
                raise self.problem(f"{line!r}; expected 'ngram N=COUNT' or '\\1-grams:'")

    def section(self, order: int, *, last: bool) -> Iterator[list[str]]:
        """Yield the fields of every entry of a section, up to the head of the next one."""
        end = "\\end\\" if last else f"\\{order + 1}-grams:"
        while (line := self.next()) != end:
            if line.startswith("\\"):
                raise self.problem(f"{line!r}; expected an entry or {end!r}")
            if line:
                yield line.split()

    def entry(self, fields: list[str], order: int) -> tuple[History, float, float | None]:
        """Return n-gram, log probability and log back-off weight of an entry."""
        if len(fields) not in (order + 1, order + 2):
            raise self.problem(
                f"{len(fields)} fields; expected a logarithm, {order} tokens and perhaps a back-off weight"
            )
        gram = tuple(fields[1 : order + 1])
        p = self.logarithm(fields[0])
        if p > 1e-6 and gram != (START,):
            raise self.problem(f"the logarithm {fields[0]} stands for a probability above 1")
        return gram, min(p, 0.0), self.logarithm(fields[-1]) if len(fields) == order + 2 else None

    def logarithm(self, text: str) -> float:
        """Return a decimal logarithm as a natural one."""
        value = -math.inf if text.lower() in ("-inf", "-infinity") else number_of(text)
        if value is None or value > _MAX_LOG10_BACKOFF:
            raise self.problem(f"{text[:40]!r} is not a logarithm of a probability or of a back-off weight")
        return -math.inf if value <= _LOG10_ZERO else value * _LN_10

    def problem(self, what: str) -> CorpusError:
        return CorpusError.one(self.path, f"line {self.number}: {what}")
