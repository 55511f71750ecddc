"""Error rates of recognition with their confidence intervals, and the comparison of two systems.

A hypothesis is aligned with its reference as NIST's sclite does: the cheapest way to turn one into the other, where a
substitution costs 4, a deletion or an insertion 3, and a correct token nothing. So a substitution is preferred to a
deletion beside an insertion (4 against 6), and two wrong neighbours are aligned with each other.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from echolearn.execution.compilation import cached_njit

SUBSTITUTION_COST, DELETION_COST, INSERTION_COST = 4, 3, 3
BOOTSTRAP_DRAWS = 10_000
# With three speakers, one draw in 27 takes one speaker alone: more than the 2.5 % beyond each end of an interval.
MIN_SPEAKERS = 4

Pair = tuple[str | None, str | None]


class Counts(NamedTuple):
    """The numbers of correct tokens and of errors of each kind."""

    correct: int = 0
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0

    @property
    def reference(self) -> int:
        """The number of tokens of the reference."""
        return self.correct + self.substitutions + self.deletions

    @property
    def errors(self) -> int:
        """The number of all errors."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def error_rate(self) -> float:
        """Errors per token of the reference; above 1 if there are many insertions, NaN if the reference is empty."""
        return self.errors / self.reference if self.reference else float("nan")

    def plus(self, other: Counts) -> Counts:
        """Return the sum of these counts and others."""
        return Counts(*(a + b for a, b in zip(self, other, strict=True)))


@cached_njit()
def _moves(reference: NDArray[np.int64], hypothesis: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the last move of the cheapest alignment of every pair of prefixes: 0 both, 1 reference, 2 hypothesis."""
    n, m = len(reference), len(hypothesis)
    moves = np.zeros((n + 1, m + 1), dtype=np.uint8)
    cost = np.arange(m + 1) * INSERTION_COST
    moves[0, 1:] = 2
    for i in range(1, n + 1):
        diagonal, cost[0] = cost[0], i * DELETION_COST
        moves[i, 0] = 1
        for j in range(1, m + 1):
            best = diagonal + (0 if reference[i - 1] == hypothesis[j - 1] else SUBSTITUTION_COST)
            diagonal, move = cost[j], 0
            if cost[j] + DELETION_COST < best:
                best, move = cost[j] + DELETION_COST, 1
            if cost[j - 1] + INSERTION_COST < best:
                best, move = cost[j - 1] + INSERTION_COST, 2
            cost[j], moves[i, j] = best, move
    return moves


def align_tokens(reference: Sequence[str], hypothesis: Sequence[str]) -> list[Pair]:
    """Return pairs of a true and a recognised token in order; None where one side has no token."""
    index = {token: k for k, token in enumerate(dict.fromkeys([*reference, *hypothesis]))}
    moves = _moves(
        np.array([index[token] for token in reference], dtype=np.int64),
        np.array([index[token] for token in hypothesis], dtype=np.int64),
    )
    i, j = len(reference), len(hypothesis)
    pairs: list[Pair] = []
    while i or j:
        move = moves[i, j]
        i, j = i - (move != 2), j - (move != 1)
        pairs.append((None if move == 2 else reference[i], None if move == 1 else hypothesis[j]))
    return pairs[::-1]


def count(pairs: Iterable[Pair]) -> Counts:
    """Return the numbers of correct tokens and of errors of an alignment."""
    correct = substitutions = deletions = insertions = 0
    for true, recognised in pairs:
        correct += true == recognised
        deletions += recognised is None
        insertions += true is None
        substitutions += true is not None and recognised is not None and true != recognised
    return Counts(correct, substitutions, deletions, insertions)


class Interval(NamedTuple):
    """An error rate with its 95 % confidence interval."""

    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class Evaluation:
    """The alignments of a set of utterances, with counts and error rates of all kinds.

    Parameters
    ----------
    alignments : dict of str to list of pairs
        The pairs of a true and a recognised token of each utterance; None where one side has no token.
    speakers : dict of str to str
        The speaker of each utterance.

    Examples
    --------
    >>> spoken = {"u1": ["k", "ae", "t"], "u2": ["d", "ao", "g"]}
    >>> evaluation = evaluate(spoken, spoken | {"u2": ["d", "aa", "g"]}, speakers={"u1": "ann", "u2": "bob"})
    >>> evaluation.total.error_rate
    0.16666666666666666
    >>> evaluation.by_speaker()["bob"].substitutions, evaluation.confusions()
    (1, Counter({('ao', 'aa'): 1}))
    """

    alignments: Mapping[str, list[Pair]]
    speakers: Mapping[str, str]

    @property
    def total(self) -> Counts:
        """Counts of all utterances together."""
        return functools.reduce(Counts.plus, self.by_utterance().values(), Counts())

    def by_utterance(self) -> dict[str, Counts]:
        """Return the counts of each utterance, in their order."""
        return {name: count(pairs) for name, pairs in self.alignments.items()}

    def by_speaker(self) -> dict[str, Counts]:
        """Return the counts of each speaker, in the order of the names."""
        sums: dict[str, Counts] = {}
        for name, counts in self.by_utterance().items():
            speaker = str(self.speakers[name])
            sums[speaker] = sums.get(speaker, Counts()).plus(counts)
        return dict(sorted(sums.items()))

    def by_token(self) -> dict[str, Counts]:
        """Return the counts of each phone or word in the order of the names; an insertion counts for its own token."""
        pairs_of: dict[str, list[Pair]] = {}
        for pairs in self.alignments.values():
            for true, recognised in pairs:
                pairs_of.setdefault(str(recognised if true is None else true), []).append((true, recognised))
        return {token: count(pairs_of[token]) for token in sorted(pairs_of)}

    def confusions(self) -> Counter[Pair]:
        """Return the number of errors of each pair (true token, recognised token), where None is no token."""
        return Counter(pair for pairs in self.alignments.values() for pair in pairs if pair[0] != pair[1])

    def interval(self) -> Interval:
        """Return the error rate with its 95 % interval by a bootstrap over speakers; 0 to infinity for fewer than four.

        Speakers are drawn, not utterances, because errors of one speaker resemble each other; with utterances the
        interval would be too narrow.
        """
        rate = self.total.error_rate
        groups = list(self.by_speaker().values())
        if len(groups) < MIN_SPEAKERS:
            return Interval(rate, 0.0, float("inf"))
        rng = np.random.default_rng(0)
        drawn = rng.integers(len(groups), size=(BOOTSTRAP_DRAWS, len(groups)))
        errors = np.array([counts.errors for counts in groups])[drawn].sum(axis=1)
        reference = np.array([counts.reference for counts in groups])[drawn].sum(axis=1)
        rates = errors[reference > 0] / reference[reference > 0]
        low, high = np.quantile(rates, [0.025, 0.975])
        return Interval(rate, float(low), float(high))


def evaluate(
    reference: Mapping[str, Sequence[str]],
    hypothesis: Mapping[str, Sequence[str]],
    *,
    speakers: Mapping[str, str] | None = None,
    ignore: Iterable[str] = (),
) -> Evaluation:
    """Return the alignments of hypotheses with their references, for counts and error rates.

    Parameters
    ----------
    reference, hypothesis : mapping of str to sequence of str
        The true and the recognised tokens of each utterance. Both have the same utterances.
    speakers : mapping of str to str, optional
        The speaker of each utterance; by default every utterance has a speaker of its own.
    ignore : iterable of str, optional
        Tokens that are left out on both sides, such as silences.

    Returns
    -------
    Evaluation
        The alignments.

    Examples
    --------
    >>> evaluation = evaluate({"u1": ["sil", "k", "ae", "t"]}, {"u1": ["k", "ah", "t"]}, ignore=["sil"])
    >>> evaluation.total.errors, evaluation.total.reference
    (1, 3)
    """
    for ours, theirs, what in ((reference, hypothesis, "hypothesis"), (hypothesis, reference, "reference")):
        missing = [name for name in ours if name not in theirs]
        if missing:
            raise ValueError(f"{len(missing)} utterances have no {what}, the first is {missing[0]!r}")
    people = {name: name for name in reference} if speakers is None else dict(speakers)
    without = [name for name in reference if name not in people]
    if without:
        raise ValueError(f"{len(without)} utterances have no speaker, the first is {without[0]!r}")
    left_out = frozenset(ignore)

    def kept(tokens: Sequence[str]) -> list[str]:
        return [token for token in tokens if token not in left_out]

    return Evaluation({name: align_tokens(kept(reference[name]), kept(hypothesis[name])) for name in reference}, people)


class Comparison(NamedTuple):
    """The result of `matched_pairs`: whether one of two systems makes fewer errors than the other."""

    difference: float  # error rate of the second system minus that of the first
    statistic: float  # mean difference per utterance in standard errors; above 0 if the first is better
    p_value: float  # of a difference at least as large, in either direction, if both were equally good


def matched_pairs(first: Evaluation, second: Evaluation) -> Comparison:
    """Compare two systems by the matched-pairs test of Gillick and Cox on their errors per utterance.

    L. Gillick and S. J. Cox, "Some statistical issues in the comparison of speech recognition algorithms", ICASSP 1989.
    The test assumes that the errors of different utterances are independent.

    Parameters
    ----------
    first, second : Evaluation
        The results of the two systems on the same utterances, two at least.

    Returns
    -------
    Comparison
        The difference and its significance.

    Examples
    --------
    >>> truth = {f"u{k}": ["a", "b", "c"] for k in range(20)}
    >>> poor = evaluate(truth, {name: tokens[: 2 + (name < "u15")] for name, tokens in truth.items()})
    >>> matched_pairs(evaluate(truth, truth), poor).p_value < 0.05
    True
    """
    ours, theirs = first.by_utterance(), second.by_utterance()
    if ours.keys() != theirs.keys() or len(ours) < 2:
        raise ValueError("both systems must have answered the same utterances, two at least")
    differences = np.array([theirs[name].errors - ours[name].errors for name in ours], dtype=float)
    spread = differences.std(ddof=1)
    difference = second.total.error_rate - first.total.error_rate
    if spread == 0:
        same = differences[0] == 0
        return Comparison(difference, 0.0 if same else float(np.sign(differences[0]) * np.inf), 1.0 if same else 0.0)
    statistic = float(differences.mean() / (spread / np.sqrt(len(differences))))
    return Comparison(difference, statistic, float(2 * norm.sf(abs(statistic))))
