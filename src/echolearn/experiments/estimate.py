"""Estimates of a table before it is computed: seconds and memory of every cell (`training.cost_model`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from echolearn.estimators.classifier import ESNClassifier
from echolearn.execution.memory import available_memory
from echolearn.execution.threads import thread_count
from echolearn.experiments.plan import Cell, Plan
from echolearn.fitting.settings import DataSize, NetworkSettings
from echolearn.reporting.table import TITLES, aligned
from echolearn.speech.corpus import Corpus
from echolearn.speech.synthetic import part_frames
from echolearn.training import cost_model
from echolearn.training.cost_model import Rates
from echolearn.training.progress import clock

# Synthetic speech before it is made: frames of an utterance on average and at most, features of a frame, states.
SYNTHETIC_FRAMES, SYNTHETIC_LONGEST, SYNTHETIC_INPUTS, SYNTHETIC_STATES = 315, 600, 117, 160
INTERPRETER = 250e6  # bytes of Python with the libraries and compiled loops


@dataclass(frozen=True, eq=False)
class CorpusSize:
    """The size of a corpus: of the data of a fit, and the frames of all parts."""

    data: DataSize
    frames: Mapping[str, int]

    @classmethod
    def of(cls, corpus: Corpus) -> CorpusSize:
        """Return the size of a corpus."""
        frames, inputs = corpus.frames, corpus.features[0].shape[1]
        lengths = np.array([len(corpus.labels[k]) for k in corpus.which("train")])
        states = len(corpus.state_names)
        return cls(DataSize(lengths=lengths, n_in=inputs, n_out=states, held_out=frames["valid"]), frames)

    @classmethod
    def of_synthetic(cls, frames: int) -> CorpusSize:
        """Return about the size of a synthetic corpus that is not made yet."""
        parts = part_frames(frames)
        lengths = np.full(max(1, frames // SYNTHETIC_FRAMES), SYNTHETIC_FRAMES)
        lengths[0] = SYNTHETIC_LONGEST
        data = DataSize(lengths=lengths, n_in=SYNTHETIC_INPUTS, n_out=SYNTHETIC_STATES, held_out=parts["valid"])
        return cls(data, parts)


@dataclass(frozen=True)
class Cost:
    """The estimated seconds of a fit on this machine alone, and the most bytes that its process holds."""

    seconds: float
    nbytes: float


def cost_of_cell(estimator: ESNClassifier, size: CorpusSize, rates: Rates) -> Cost:
    """Return the cost of a fit that takes all its epochs; one that stops early takes less time."""
    settings = NetworkSettings.of(estimator.get_params(deep=False))
    networks, data = settings.networks(), size.data
    one = replace(settings, hidden_units=settings.hidden_units // networks, ensemble=1)
    job = one.job_of_size(data, networks, threads=1 if networks > 1 else thread_count())
    copies = 2 if settings.standardize else 1  # of the inputs: as read, and as the network sees them
    features = 4 * data.n_in * (sum(size.frames.values()) + (copies - 1) * int(data.lengths.sum()))
    return Cost(cost_model.seconds(job, rates), INTERPRETER + features + cost_model.nbytes(job))


def costs_of_table(plan: Plan, size: CorpusSize, rates: Rates) -> dict[Cell, Cost]:
    """Return the cost of every cell."""
    return {cell: cost_of_cell(plan.estimator(cell), size, rates) for cell in plan.cells()}


def estimate_text(plan: Plan, size: CorpusSize, rates: Rates | None = None) -> str:
    """Return a table of the estimated time and memory of every column, and the time of all cells.

    rates: those of this machine, unless they are given.
    """
    costs, free = costs_of_table(plan, size, rates or cost_model.measured()), available_memory()
    head = ["units", *(TITLES[column].short.replace("\n", " ") for column in plan.columns)]
    rows = []
    for units in plan.units:
        row = [costs[Cell(units, column, 0)] for column in plan.columns]
        rows.append([f"{units:,}", *(f"{clock(cost.seconds)} {gigabytes(cost, free)}" for cost in row)])
    seconds = sum(cost.seconds for cost in costs.values())
    seeds = "one seed" if plan.seeds == 1 else f"{plan.seeds} seeds"
    lines = [
        f"estimated time and memory of every cell, on {thread_count()} threads with nothing else running:",
        *aligned(head, rows),
        f"all {len(costs)} cells ({seeds}): about {clock(seconds)} or {seconds / 3600:,.1f} hours; "
        "fits that stop early take less, finished cells none",
    ]
    if free is not None and any(cost.nbytes > free for cost in costs.values()):
        lines.append(f"!: more than the {free / 1e9:.1f} GB that are free; such a cell is refused when its turn comes")
    return "\n".join(lines)


def gigabytes(cost: Cost, free: float | None) -> str:
    """Return the memory of a fit, with a mark where it is more than is free."""
    return f"{cost.nbytes / 1e9:.1f} GB" + ("!" if free is not None and cost.nbytes > free else "")
