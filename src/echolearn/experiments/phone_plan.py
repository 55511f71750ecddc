"""The plan of `echolearn phones`: which systems, and how their phones are decoded and scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from echolearn.estimators._stack import draw_layers
from echolearn.estimators.classifier import ESNClassifier
from echolearn.estimators.stacked import StackedClassifier
from echolearn.execution.memory import available_memory
from echolearn.execution.threads import thread_count
from echolearn.experiments.estimate import CorpusSize, Cost, cost_of_cell, gigabytes
from echolearn.experiments.measured_fit import StateClassifier, planned_epochs
from echolearn.experiments.phone_scoring import TRIALS, TRIGRAM_TRIALS
from echolearn.fitting import settings
from echolearn.fitting.settings import NetworkSettings
from echolearn.reporting.phone_table import LEVELS
from echolearn.reporting.table import aligned
from echolearn.training import cost_model
from echolearn.training.cost_model import Rates
from echolearn.training.progress import clock

SYSTEMS = ("fixed", "learned", "bidirectional", "stacked")
ORDERS = range(1, 6)
DECODED_FRAMES = 25_000  # that a core decodes in a second with a bigram of some 40 phones
TRIGRAM_WORK = 3  # of decoding with a trigram, in units of that with a bigram


@dataclass(frozen=True)
class PhonePlan:
    """The settings of `echolearn phones`.

    Attributes
    ----------
    systems : tuple of str
        Which systems, of `SYSTEMS`.
    units : int
        Hidden units of each system; a stack has half of them in each of its two layers.
    order : int or None
        Order of the phone n-gram; None: 2 or 3, whichever has the smaller phone error on the validation part.
    level : str
        The classes that are scored: "corpus", "phone48" or "phone39".
    seed : int
        The seed of the networks.
    changes : mapping
        Parameters of `ESNClassifier` other than the defaults, for every system, except those that systems differ by.
    """

    systems: tuple[str, ...] = SYSTEMS
    units: int = 300
    order: int | None = None
    level: str = "corpus"
    seed: int = 0
    changes: Mapping[str, Any] = field(default_factory=dict)

    def estimator(self, system: str) -> StateClassifier:
        """Return the network of a system, not fitted."""
        if system == "stacked":
            layers = [ESNClassifier(n, **self._settings()) for n in (self.units - self.units // 2, self.units // 2)]
            return StackedClassifier(layers, random_state=self.seed)
        differs: dict[str, dict[str, Any]] = {"fixed": {"learn": "none"}, "bidirectional": {"bidirectional": True}}
        return ESNClassifier(self.units, **{**self._settings(), **differs.get(system, {})})

    def _settings(self) -> dict[str, Any]:
        return {**self.changes, "random_state": self.seed}

    def name(self, system: str) -> str:
        """Return the name under which the network of a system is kept."""
        return f"{system}-{self.units}-{self.seed}"

    def layer_epochs(self, system: str, sequences: int) -> list[int]:
        """Return how many epochs each layer of a stack takes by itself at most; nothing for a single network."""
        estimator = self.estimator(system)
        if isinstance(estimator, ESNClassifier):
            return []
        return [planned_epochs(layer, sequences) for layer in _layers(estimator)]

    def epochs(self, system: str, sequences: int) -> int:
        """Return how many epochs a fit on this many sequences takes at most, those of all layers together."""
        estimator = self.estimator(system)
        if isinstance(estimator, ESNClassifier):
            return planned_epochs(estimator, sequences)
        return sum(self.layer_epochs(system, sequences)) + int(estimator.joint_epochs)

    def check(self) -> None:
        """Check every setting of every system, before the first is fitted."""
        unknown = [system for system in self.systems if system not in SYSTEMS]
        if unknown or not self.systems or len(set(self.systems)) < len(self.systems):
            found = ", ".join(unknown or self.systems) or "none"
            raise ValueError(f"systems: {found}; expected some of {', '.join(SYSTEMS)}, each once.")
        if self.level not in LEVELS:
            raise ValueError(f"level is {self.level!r}; expected one of {', '.join(LEVELS)}.")
        if self.order is not None and self.order not in ORDERS:
            raise ValueError(f"order is {self.order}; expected {ORDERS[0]} to {ORDERS[-1]}.")
        least = 2 if {"stacked", "bidirectional"} & set(self.systems) else 1
        if self.units < least:
            raise ValueError(f"units is {self.units}; expected at least {least} for these systems.")
        if "stacked" in self.systems and self.changes.get("ensemble", 1) != 1:
            raise ValueError("ensemble: a layer of a stack has one readout; leave stacked out of the systems.")
        if "bidirectional" in self.changes or self.changes.get("learn") == "none":
            raise ValueError("learn='none' and bidirectional are what the systems differ by: choose fixed, learned or "
                             "bidirectional among the systems instead.")  # fmt: skip
        for estimator in map(self.estimator, self.systems):
            if isinstance(estimator, ESNClassifier):
                settings.check(estimator.get_params(deep=False))
            else:
                draw_layers(estimator.get_params(deep=False), ESNClassifier)


def _layers(stack: StackedClassifier) -> list[ESNClassifier]:
    return [layer for layer in stack.layers if isinstance(layer, ESNClassifier)]


def cost_of_system(plan: PhonePlan, system: str, size: CorpusSize, rates: Rates) -> Cost:
    """Return the cost of the fit of a system; of a stack those of its layers, and of their joint epochs."""
    estimator = plan.estimator(system)
    if isinstance(estimator, ESNClassifier):
        return cost_of_cell(estimator, size, rates)
    lower, upper = _layers(estimator)
    above = replace(size, data=replace(size.data, n_in=size.data.n_out))  # the upper layer sees outputs
    costs = [cost_of_cell(lower, size, rates), cost_of_cell(upper, above, rates)]
    joint = 0.0
    for layer, data in ((lower, size.data), (upper, above.data)):
        settings = NetworkSettings.of(layer.get_params(deep=False))
        job = settings.job_of_size(data, 1, threads=thread_count())
        joint += cost_model.refining(replace(job, refine_epochs=int(estimator.joint_epochs)), rates)
    return Cost(sum(cost.seconds for cost in costs) + joint, max(cost.nbytes for cost in costs))


def decoding_seconds(size: CorpusSize, order: int | None) -> float:
    """Return about how long it takes to tune the decoder on valid and to decode test."""
    work = 1 if order is not None and order < 3 else TRIGRAM_WORK
    trials = TRIALS + TRIGRAM_WORK * TRIGRAM_TRIALS if order is None else TRIALS * work
    return (trials * size.frames["valid"] + work * size.frames["test"]) / DECODED_FRAMES


def estimate_text(plan: PhonePlan, size: CorpusSize, rates: Rates | None = None) -> str:
    """Return a table of the estimated time and memory of every system, and the time of all of them."""
    rates, free = rates or cost_model.measured(), available_memory()
    costs = {system: cost_of_system(plan, system, size, rates) for system in plan.systems}
    decoding = decoding_seconds(size, plan.order)
    rows = [[system, clock(cost.seconds), clock(decoding), gigabytes(cost, free)] for system, cost in costs.items()]
    total = sum(cost.seconds for cost in costs.values()) + decoding * len(costs)
    lines = [
        f"estimated time and memory of every system, on {thread_count()} threads with nothing else running:",
        *aligned(["system", "fit", "decoding", "memory"], rows),
        f"all {len(costs)} systems: about {clock(total)}; fits that stop early take less, finished ones none",
    ]
    if free is not None and any(cost.nbytes > free for cost in costs.values()):
        lines.append(f"!: more than the {free / 1e9:.1f} GB that are free; such a fit is refused when its turn comes")
    return "\n".join(lines)
