"""The parameters of an estimator as one typed value, and what follows from them for a given amount of data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from echolearn.estimators.own_reservoir import with_reservoir
from echolearn.estimators.parameters import Parameters, check
from echolearn.execution.threads import on_worker_thread, thread_count
from echolearn.readout.observation import Task
from echolearn.readout.ridge import RIDGES
from echolearn.readout.solver import Ridge
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.selection import Pooling, pooled_parts
from echolearn.sequences.split import SEQUENCES
from echolearn.training.cost_model import Job
from echolearn.training.objectives.ridge import LearningPlan
from echolearn.training.optimizers import default_step_size
from echolearn.validation import Array

UPDATES = 400  # where `epochs` is None there are so many epochs that the weights are updated this often,
LEAST_EPOCHS = 8  # and never fewer than these
MINIBATCH = 8  # sequences per mini-batch, where batch_size is "auto" and there is much data
LONG = 100  # steps from which on a sequence is a long series;
LONGEST_WASHOUT, WASHOUT_SHARE = 100, 10  # washout="auto" of few such series: a tenth of the steps, at most so many


@dataclass(frozen=True, kw_only=True, eq=False)
class DataSize:
    """What the cost of a fit depends on in its data: lengths of the sequences, inputs, outputs, held-out frames."""

    lengths: Array
    n_in: int
    n_out: int
    held_out: int = 0
    per_step: bool = True


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """The parameters of an estimator; those that it does not have are at their defaults.

    ridge_path: the ridges that "auto" chooses from, in units of the mean diagonal of the Gram matrix. time_folds:
    whether a ridge for a few long series is chosen by folds of time, and their learned weights must pay.
    """

    hidden_units: int
    spectral_radius: float | None
    connections: int
    input_scaling: float | Sequence[float]
    bias_scaling: float
    activation: str
    leak: float | tuple[float, float] | Array
    learn_leak: bool
    initial_state: ArrayLike | None
    washout: int | str
    direct: bool
    fit_intercept: bool = True
    ridge: str | float | Sequence[float]
    learn: str
    lookback: int | None
    optimizer: str
    step_size: float | None
    epochs: int | None
    batch_size: int | str | None
    clip: float | None
    renormalize: bool
    validation_fraction: float
    patience: int | str | None
    dtype: str
    random_state: int | np.random.Generator | None
    verbose: int
    standardize: bool = False
    state_noise: float = 0.0
    missing: str = "error"
    ensemble: int = 1
    reservoir: Reservoir | None = None
    topology: str | Array | sparse.csr_array = "random"
    bidirectional: bool = False
    feedback: bool = False
    feedback_scaling: float = 1.0
    plasticity: float | None = None
    pooling: Pooling = "mean"
    readout: str = "ridge"
    targets: str = "all"
    gradient: str = "exact"
    case: int = 2
    momentum: str = "fista"
    refine_epochs: int = 0
    layout: str = "auto"
    ridge_path: Sequence[float]
    time_folds: bool

    @classmethod
    def of(
        cls, params: Parameters, *, ridge_path: Sequence[float] = tuple(RIDGES), time_folds: bool = True
    ) -> NetworkSettings:
        """Return the settings of an estimator with these parameters, checked; a given reservoir decides on some."""
        params = with_reservoir(params)
        check(params)
        names = {field.name for field in fields(cls)}
        return cls(
            **{name: value for name, value in params.items() if name in names},
            ridge_path=ridge_path,
            time_folds=time_folds,
        )

    @property
    def softmax(self) -> bool:
        return self.readout == "softmax"

    @property
    def learns(self) -> bool:
        """Whether anything but the readout is learned."""
        return self.learn != "none" and self.epochs != 0

    def resolved(self, lengths: Array, per_step: bool) -> NetworkSettings:
        """Return the settings for data of these lengths: a washout that is "auto" becomes a number.

        The transient at the start of a few long series spoils the fit of all the rest, while many sequences are all
        starts: what the network answers there is part of the task.
        """
        if self.washout != "auto":
            return self
        few = per_step and len(lengths) < SEQUENCES and min(lengths) >= LONG
        return replace(self, washout=min(LONGEST_WASHOUT, int(min(lengths)) // WASHOUT_SHARE) if few else 0)

    def for_inputs(self, n_features: int, n_in: int) -> NetworkSettings:
        """Return the settings for inputs that also have flags of gaps, scaled like an average feature."""
        if n_in == n_features or np.shape(self.input_scaling) != (n_features,):
            return self
        given = np.asarray(self.input_scaling, dtype=np.float64)
        return replace(self, input_scaling=np.append(given, np.full(n_in - n_features, given.mean())).tolist())

    @property
    def washout_steps(self) -> int:
        """The washout as a number; "auto" has become one in `resolved`."""
        return 0 if isinstance(self.washout, str) else int(self.washout)

    def task(self, per_step: bool) -> Task:
        """Return what the weights learn from, for one target per step or one per sequence."""
        pooling = "mean" if self.pooling == "auto" else self.pooling
        seen = (self.washout_steps, self.direct, None if per_step else pooling)
        return Task(*seen, self.lookback, self.targets, intercept=self.fit_intercept)

    def check_targets(self, per_step: bool) -> None:
        """Refuse settings that only make sense for one target per step."""
        if not per_step and self.feedback:
            raise ValueError("feedback=True needs one target per step; y has one per sequence. Set feedback=False.")
        if not per_step and self.targets == "last":
            raise ValueError("targets='last' needs one target per step; y has one per sequence. Use targets='all'.")

    @property
    def minibatch(self) -> int | None:
        """The sequences per mini-batch, or None for all at once; "auto" is MINIBATCH where there is much data."""
        return MINIBATCH if isinstance(self.batch_size, str) else self.batch_size

    def epochs_for(self, sequences: int) -> int:
        """Return the epochs given, or enough for `UPDATES` updates."""
        if self.epochs is not None:
            return int(self.epochs)
        batches = np.ceil(sequences / (self.minibatch or sequences))
        return max(LEAST_EPOCHS, int(np.ceil(UPDATES / batches)))

    def patience_for(self, epochs: int) -> int | None:
        """Return the patience given, or a quarter of the epochs."""
        return max(5, epochs // 4) if self.patience == "auto" else cast("int | None", self.patience)

    def refines(self, per_step: bool) -> bool:
        """Return whether the last epochs are on the cross entropy.

        With one label per sequence there are too few targets for all weights to follow: it made toy tasks worse.
        """
        exact = self.learns and self.gradient == "exact" and per_step
        return bool(exact and self.softmax and self.refine_epochs > 0)

    def networks(self) -> int:
        """Return how many networks the hidden units are split into, each with a readout of its own."""
        if self.pooling == "summary":
            return 1  # one readout of all units
        most = self.hidden_units // 2 if self.bidirectional else self.hidden_units
        return int(min(most, self.ensemble))

    def ridge_choice(self) -> Ridge:
        """Return the ridge given, or the function from the mean diagonal of G to those to choose from."""
        if isinstance(self.ridge, Real):
            return float(self.ridge)
        if isinstance(self.ridge, str):
            path = np.asarray(self.ridge_path)
            return lambda diagonal: path * diagonal
        given = self.ridge
        return lambda diagonal: cast("Sequence[float]", given)

    def plan(self, ridge: float, epochs: int) -> LearningPlan:
        """Return how the weights are learned."""
        return LearningPlan(
            learn=self.learn,
            learn_leak=self.learn_leak,
            gradient=self.gradient,
            case=self.case,
            optimizer=self.optimizer,
            momentum=self.momentum,
            step_size=self.step_size or default_step_size(self.optimizer, self.hidden_units),
            epochs=epochs,
            batch_size=self.minibatch,
            clip=self.clip,
            renormalize=self.renormalize,
            spectral_radius=cast(float, self.spectral_radius),
            ridge=ridge,
            threads=1 if on_worker_thread() else 2,
        )

    def job(self, train: Dataset, held_out: Dataset | None, networks: int) -> Job:
        """Return the fit as the estimate of its cost sees it; networks: how many of its kind are fitted."""
        size = DataSize(
            lengths=train.lengths,
            n_in=train.X[0].shape[1],
            n_out=train.n_out,
            held_out=0 if held_out is None else held_out.frames,
            per_step=train.per_step,
        )
        return self.job_of_size(size, networks, threads=1 if on_worker_thread() else thread_count())

    def job_of_size(self, size: DataSize, networks: int, threads: int) -> Job:
        """Return the fit of data of this size as the estimate of its cost sees it."""
        sequences = len(size.lengths)
        batch = None if self.minibatch is None else int(min(self.minibatch, sequences) * size.lengths.mean())
        return Job(
            N=int(self.hidden_units),
            n_in=size.n_in,
            n_out=size.n_out,
            connections=min(self.connections, self.hidden_units),
            frames=int(size.lengths.sum()),
            held_out=size.held_out,
            longest=int(size.lengths.max()),
            epochs=0 if self.learn == "none" else self.epochs_for(sequences),
            refine_epochs=self.refine_epochs if self.refines(size.per_step) else 0,
            batch=batch,
            softmax=self.softmax,
            choose=not isinstance(self.ridge, Real),
            direct=self.direct,
            parts=pooled_parts(None if size.per_step else self.pooling),
            itemsize=np.dtype(self.dtype).itemsize,
            threads=threads,
            networks=networks,
            bidirectional=self.bidirectional,
        )
