"""Estimates of a table before it is computed: seconds and memory of every cell (`training.cost_model`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from echolearn.display.facts import counted
from echolearn.estimators import DeepESNClassifier
from echolearn.execution.memory import available_memory
from echolearn.execution.threads import thread_count
from echolearn.fitting.parameters import flat_settings
from echolearn.fitting.settings import DataSize, NetworkSettings
from echolearn.paper.fits import planned_epochs
from echolearn.speech import Corpus
from echolearn.speech._synthetic.tree import part_frames
from echolearn.speech.recognition._recognizer import StateClassifier
from echolearn.training import cost_model
from echolearn.training.cost_model import Rates

# Synthetic speech before it is made: frames of an utterance on average and at most, features of a frame, states.
SYNTHETIC_FRAMES, SYNTHETIC_LONGEST, SYNTHETIC_INPUTS, SYNTHETIC_STATES = 315, 600, 117, 160
# Of a deep network: work of a step in units of its matrix products, and of a unit in units of one layer's; seconds of
# an update besides; passes over the features in which the softmax readout of fixed layers is found.
DEEP_PRODUCTS, DEEP_UNITS, UPDATE_SECONDS, READOUT_PASSES = 1.5, 2, 3e-3, 1_000
INTERPRETER_BYTES = 250e6  # of Python with the libraries and compiled loops


@dataclass(frozen=True, eq=False)
class CorpusSize:
    """The size of a corpus: of the data of a fit, and the frames of all parts."""

    data: DataSize
    frames: Mapping[str, int]

    @classmethod
    def of(cls, corpus: Corpus) -> CorpusSize:
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
    """The estimated seconds of a fit on this machine alone, the bytes that it needs, and those that it takes where they
    are free."""

    seconds: float
    nbytes: float
    kept_bytes: float = 0.0


def cost_of_cell(estimator: StateClassifier, size: CorpusSize, rates: Rates) -> Cost:
    """Return the cost of a fit that takes all its epochs; one that stops early takes less time."""
    if isinstance(estimator, DeepESNClassifier):
        return _cost_of_deep(estimator, size, rates)
    settings = NetworkSettings.of(flat_settings(estimator))
    networks, data = settings.networks(), size.data
    one = replace(settings, hidden_units=settings.hidden_units // networks, ensemble=1)
    job = one.job_of_size(data, networks, threads=1 if networks > 1 else thread_count())
    copies = 2 if settings.standardize else 1  # of the inputs: as read, and as the network sees them
    features = 4 * data.n_in * (sum(size.frames.values()) + (copies - 1) * int(data.lengths.sum()))
    nbytes = INTERPRETER_BYTES + features + cost_model.nbytes(job)
    return Cost(cost_model.seconds(job, rates), nbytes, cost_model.kept_bytes(job))


def _cost_of_deep(estimator: DeepESNClassifier, size: CorpusSize, rates: Rates) -> Cost:
    """Return the cost of a deep network: six products of each layer in every frame, and what is between them; of fixed
    layers, that of its readout, whose features and probabilities are kept."""
    units, layers, data = estimator.units, estimator.layers, size.data
    products = 6 * layers * units**2 + 2 * units * data.n_in + 3 * units * data.n_out
    epochs, frames = planned_epochs(estimator, len(data.lengths)), int(data.lengths.sum())
    step = DEEP_PRODUCTS * 2 * products * rates.flop + DEEP_UNITS * layers * units * rates.unit
    seconds = epochs * (frames * step + UPDATE_SECONDS * len(data.lengths) / flat_settings(estimator)["batch_size"])
    nbytes = INTERPRETER_BYTES + 8 * data.n_in * sum(size.frames.values()) + 40 * layers * units**2 * estimator.ensemble
    if not epochs:
        seconds = READOUT_PASSES * 4 * units * data.n_out * rates.flop * frames
        nbytes += 4 * frames * (units + data.n_out)
    return Cost(seconds * estimator.ensemble / thread_count(), nbytes)


def memory_text(cost: Cost) -> str:
    """Return the memory of a fit, with a mark where it needs more than is free."""
    free = available_memory()
    return f"{(cost.nbytes + cost.kept_bytes) / 1e9:.1f} GB" + ("!" if free is not None and cost.nbytes > free else "")


def estimate_lines(every: str, table: Sequence[str], summary: str, refused: str) -> str:
    """Return the lines of an estimate; the last one explains the marks of `memory_text`, where there are any."""
    title = (
        f"estimated time and memory of every {every}, on {counted(thread_count(), 'thread')} with nothing else running:"
    )
    lines = [title, *table, summary]
    if any("GB!" in line for line in table):
        free = (available_memory() or 0.0) / 1e9
        lines.append(f"!: more than the {free:.1f} GB that are free; such a {refused} is refused when its turn comes")
    return "\n".join(lines)
