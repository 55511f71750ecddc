"""The stream of a classifier of whole series that answers early, and says when to decide."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from echolearn.fitting.summaries import Prefixes
from echolearn.modelfile.snapshot import fingerprint
from echolearn.runtime._layers import RunningSummary, running_network
from echolearn.runtime._opening import decode
from echolearn.runtime._plan import Plan
from echolearn.runtime._streams import Stream
from echolearn.validation import Array, is_number

COST = "cost_per_step"
PROBABILITIES = np.linspace(0, 1, 201)  # from which a cost chooses


class EarlyStream(Stream):
    """The stream of a `SeriesClassifier` that answers for whole series from their first steps.

    After every frame it answers by the readout of the nearest of `lengths`, the numbers of steps that there are
    readouts for. `stop_when` is the probability that decides, chosen by the share of right decisions or by the cost of
    waiting (infinite: the end decides); None: nothing decides. `decided` is whether the newest frame was at one of the
    lengths with an answer as sure as that, or at the last length.
    """

    decided: bool

    def __init__(self, plan: Plan, prefixes: Prefixes, stop_when: float | Mapping[str, float] | None):
        network = running_network(plan)
        assert isinstance(network, RunningSummary)
        self.lengths = prefixes.lengths
        self._networks = [_with_readout(network, U) for U in prefixes.readouts]
        self.stop_when: float | None = None
        if stop_when is not None:
            P = decode(plan.answer, prefixes.outputs)
            self.stop_when = (
                cheapest(P, prefixes, stop_when[COST])
                if isinstance(stop_when, Mapping)
                else safest(P, prefixes, stop_when)
            )
        super().__init__(plan, network)

    def reset(self, which: ArrayLike | None = None) -> Self:
        self.decided = False
        return super().reset(which)

    def _advance(self, frame: ArrayLike) -> Array:
        self._network = self._networks[int(np.abs(self.lengths - self.steps - 1).argmin())]
        Y = super()._advance(frame)
        if self.stop_when is not None:
            sure = self.steps in self.lengths and decode(self._plan.answer, Y).max() >= self.stop_when
            self.decided = bool(sure or self.steps >= self.lengths[-1])
        return Y

    def _identity(self) -> str:
        return fingerprint(super()._identity(), self.lengths, [one.layer for one in self._networks], self.stop_when)


def check_stop_when(value: object) -> None:
    """Raise ValueError unless it is a probability, or a cost of waiting."""
    cost = value[COST] if isinstance(value, Mapping) and set(value) == {COST} else None
    if not (is_number(value) and 0 < value <= 1) and not (is_number(cost) and cost >= 0):
        raise ValueError(
            f'stop_when={value!r:.80}; expected a probability in (0, 1], or {{"{COST}": c}} with the cost c >= 0 of a '
            "step, where that of an error is 1."
        )


def _with_readout(network: RunningSummary, U: Array) -> RunningSummary:
    """Return a network with another readout U (M + 1, n_out)."""
    other = copy(network)
    other.layer = replace(network.layer, U_states=U[:-1], intercept=U[-1])
    return other


def safest(P: Array, prefixes: Prefixes, right: float) -> float:
    """Return the smallest probability, `right` or more, at which decisions are as often right as that; else infinity.

    Of the decisions before the end of series left out, a share of at most 1 - `right` may be wrong, one more wrong one
    included: few series prove little, since each is looked at at many lengths, and one answer may be too sure.
    """
    for probability in (right, *PROBABILITIES[right < PROBABILITIES]):
        wrong, steps = decisions(P, prefixes, probability)
        early = steps < np.minimum(prefixes.steps, prefixes.lengths[-1])
        if 1 + (wrong & early).sum() <= (1 - right) * (1 + early.sum()):
            return float(probability)
    return np.inf


def cheapest(P: Array, prefixes: Prefixes, cost: float) -> float:
    """Return the probability to decide at for which errors and steps cost least on series left out."""
    means = []
    for probability in PROBABILITIES:
        wrong, steps = decisions(P, prefixes, probability)
        means.append(prefixes.w @ (wrong + cost * steps))
    return float(PROBABILITIES[int(np.argmin(means))])


def decisions(P: Array, prefixes: Prefixes, probability: float) -> tuple[Array, Array]:
    """Return which series left out are decided wrongly (n,), and after how many steps (n,).

    P (K, n, n_classes): their probabilities for each length. A series is decided at the first length at which its most
    likely class is as probable, or at its end.
    """
    ended = prefixes.lengths[:, None] >= prefixes.steps
    first, each = ((P.max(axis=2) >= probability) | ended).argmax(axis=0), np.arange(P.shape[1])
    return P[first, each].argmax(axis=1) != prefixes.labels, np.minimum(prefixes.lengths[first], prefixes.steps)
