"""Language models as files of the ARPA format, which SRILM, KenLM, Kaldi and CMU's tools read and write."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from echolearn.exceptions import CorpusError
from echolearn.modelfile.atomic import write_atomically
from echolearn.speech.recognition.ngrams import START, History, NGramModel
from echolearn.speech.textfile import LINE_END, number_of, read_text

_TEN = math.log(10)
_IMPOSSIBLE = -99.0  # the logarithm that stands for a probability of zero, as SRILM writes it
_LARGEST = 99.0  # the largest logarithm of a back-off weight: beyond it a number is damaged
_COUNT = re.compile(r"ngram[ \t]+(\d{1,2})[ \t]*=[ \t]*(\d{1,12})", re.ASCII)


def write_arpa(path: str | Path, model: NGramModel) -> None:
    """Write a language model to an ARPA file.

    Parameters
    ----------
    path : str or Path
        The file; one that exists is replaced, completely or not at all.
    model : NGramModel
        The model.

    Raises
    ------
    ValueError
        If a token is empty or contains a blank.

    See Also
    --------
    read_arpa : Read such a file; it has an example.
    """
    grams: list[list[History]] = [[] for _ in range(model.order)]
    for gram in sorted(model.probability):
        if any(not token or token.split() != [token] for token in gram):
            raise ValueError(f"an ARPA file cannot hold the n-gram {gram}: a token is empty or contains a blank")
        grams[len(gram) - 1].append(gram)
    lines = ["", "\\data\\", *(f"ngram {k}={len(found)}" for k, found in enumerate(grams, 1))]
    for k, found in enumerate(grams, 1):
        lines += ["", f"\\{k}-grams:"]
        for gram in found:
            fields = [_decimal(model.probability[gram]), " ".join(gram)]
            if gram in model.backoff:
                fields.append(_decimal(model.backoff[gram]))
            lines.append("\t".join(fields))
    write_atomically(Path(path), "\n".join([*lines, "", "\\end\\", ""]).encode())


def _decimal(value: float) -> str:
    """Return a natural logarithm as a decimal one, with enough digits to give it back to 1e-9."""
    return f"{_IMPOSSIBLE:g}" if value == -math.inf else f"{value / _TEN:.10g}"


def read_arpa(path: str | Path) -> NGramModel:
    """Read a language model from an ARPA file.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    NGramModel
        The model.

    Raises
    ------
    CorpusError
        With the file and the line, if the file cannot be read, is cut off, holds other numbers of n-grams than it
        announces, n-grams of the wrong length or twice, probabilities above 1, or a history that is not listed.

    Examples
    --------
    >>> import tempfile
    >>> from echolearn.speech.recognition.ngrams import estimate
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
        found: list[int] = []
        while True:
            line = self.next()
            match = _COUNT.fullmatch(line)
            if match:
                if int(match[1]) != len(found) + 1:
                    raise self.problem(f"{line!r}; expected the number of {len(found) + 1}-grams")
                found.append(int(match[2]))
            elif line == "\\1-grams:" and found:
                return found
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
        if value is None or value > _LARGEST:
            raise self.problem(f"{text[:40]!r} is not a logarithm of a probability or of a back-off weight")
        return -math.inf if value <= _IMPOSSIBLE else value * _TEN

    def problem(self, what: str) -> CorpusError:
        return CorpusError.one(self.path, f"line {self.number}: {what}")
