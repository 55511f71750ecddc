"""A fitted model as plain operations and arrays: what every export is written from, and what `runtime.Model` runs.

A `Plan` knows no estimator and no library but NumPy's arrays. Its meaning, for one sequence X (steps, features):

1. the operations of `inputs` turn every frame into the inputs of the network;
2. a `Layer` runs eq. 1 over its inputs and has the outputs Y = [H X] U + intercept; with a `summary`, its readout sees
   one row of statistics per series instead of H and X. A `Deep` network computes features q_t (the equations are in
   reservoir/_deep_reservoir.py) and has the outputs Y = q U + intercept, with `pooled` of the mean of q over time;
3. `answer` turns outputs into probabilities or values.

All numbers are float64; `precision` is that in which the network itself computes. What cannot be written like this is
refused by `plan_from_contents` with a sentence that names the option.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from echolearn.display.facts import counted, one_line
from echolearn.validation import Array


@dataclass(frozen=True, eq=False)
class FillGaps:
    """NaN becomes a number: `values` (n,), or with `carry` the last known one, if there is any. flagged (n,): the
    features for which a further input is 1 where the value is missing, and 0 elsewhere."""

    values: Array
    carry: bool
    flagged: Array


@dataclass(frozen=True, eq=False)
class Standardize:
    """(x - mean) / scale, feature by feature; mean and scale (n,)."""

    mean: Array
    scale: Array


@dataclass(frozen=True, eq=False)
class Clip:
    """Numbers below `low` become `low`, numbers above `high` become `high`; both (n,)."""

    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class Project:
    """The product x @ matrix; matrix (n, m)."""

    matrix: Array


InputOperation = FillGaps | Standardize | Clip | Project


@dataclass(frozen=True, eq=False)
class Sparse:
    """A square matrix of N rows in compressed rows: row i has `data[p]` in column `indices[p]`, p from indptr[i] on."""

    indptr: Array
    indices: Array
    data: Array

    @property
    def widest(self) -> int:
        """The largest number of entries in a row."""
        return int(np.diff(self.indptr).max(initial=0))

    @property
    def rows(self) -> Array:
        """The row of every entry."""
        counts = np.diff(self.indptr)
        return np.repeat(np.arange(len(counts)), counts)

    def dense(self, dtype: DTypeLike = np.float64) -> Array:
        """Return the matrix (N, N) itself."""
        N = len(self.indptr) - 1
        full = np.zeros((N, N), dtype)
        np.add.at(full, (self.rows, self.indices), self.data.astype(dtype))
        return full

    def columns(self, dtype: DTypeLike = np.float64) -> tuple[Array, Array]:
        """Return columns and values (widest, N): of the first entries of all rows, the second ones, ...; 0 at ends."""
        shape, rows = (max(1, self.widest), len(self.indptr) - 1), self.rows
        indices, data = np.zeros(shape, np.intp), np.zeros(shape, dtype)
        places = np.arange(len(rows)) - self.indptr[rows]
        indices[places, rows], data[places, rows] = self.indices, self.data
        return indices, data

    def of_units(self, which: Array) -> Sparse:
        """Return the rows and columns of some units (N,) of bool, which are connected with one another only."""
        if which.all():
            return self
        counts = np.diff(self.indptr)
        kept = np.repeat(which, counts)
        numbers = np.cumsum(which) - 1
        if not which[self.indices[kept]].all():
            raise ValueError("units that run forward are connected with units that run backward")
        indptr = np.concatenate([[0], np.cumsum(counts[which])])
        return Sparse(indptr, numbers[self.indices[kept]], self.data[kept])


@dataclass(frozen=True, eq=False)
class Layer:
    """One reservoir with its readout."""

    W: Array  # (n_in, N), input weights
    W_rec: Sparse
    W_fb: Array | None  # (n_out, N): the outputs of the previous step (their softmax, if `softmax`) are further inputs
    bias: Array  # (N,), as are leak, initial_state and backward
    leak: Array
    initial_state: Array
    backward: Array  # of bool: units from the last step to the first, without connections with the others
    activation: str  # "tanh", "sigmoid", "relu" or "identity"
    U_states: Array  # (S, n_out): S = N, or of a summary several times N
    U_inputs: Array  # (I, n_out), without rows if the readout does not see the inputs
    intercept: Array  # (n_out,)
    softmax: bool  # whether outputs are logits

    def __repr__(self) -> str:
        return one_line(self, [counted(self.units, "unit"), counted(self.n_in, "input"), counted(self.n_out, "output")])

    @property
    def units(self) -> int:
        """The number of hidden units N."""
        return len(self.leak)

    @property
    def n_in(self) -> int:
        """The number of inputs."""
        return len(self.W)

    @property
    def n_out(self) -> int:
        """The number of outputs."""
        return len(self.intercept)


@dataclass(frozen=True, eq=False)
class Block:
    """One layer of a deep network: pairs of units (c, m + c) with the eigenvalues re ± i im; gain: 1 - a."""

    W_in: Array  # (C, C), as W_out
    re: Array  # (m,), as im and gain
    im: Array
    gain: Array
    b: Array  # (C,), as b_out
    W_out: Array
    b_out: Array


@dataclass(frozen=True, eq=False)
class Stack:
    """The layers of a deep network. backward_pairs: the last pairs of each layer, which run from the last step on."""

    W_0: Array  # (n_in, C)
    b_0: Array  # (C,)
    blocks: tuple[Block, ...]
    c: Array  # (C,)
    backward_pairs: int

    @property
    def units(self) -> int:
        """The number of units of each layer."""
        return len(self.b_0)


@dataclass(frozen=True, eq=False)
class Deep:
    """A deep network: stacks whose features stand side by side, and one readout of them all."""

    stacks: tuple[Stack, ...]
    U: Array  # (features, n_out)
    intercept: Array  # (n_out,)
    softmax: bool  # whether outputs are logits
    pooled: bool  # whether there is one answer per sequence, for the mean of the features over time

    def __repr__(self) -> str:
        return one_line(self, [counted(len(self.stacks), "stack"), counted(self.units, "unit")])

    @property
    def units(self) -> int:
        """The number of units of all layers."""
        return sum(stack.units * len(stack.blocks) for stack in self.stacks)

    @property
    def n_in(self) -> int:
        """The number of inputs."""
        return len(self.stacks[0].W_0)

    @property
    def n_out(self) -> int:
        """The number of outputs."""
        return len(self.intercept)


@dataclass(frozen=True, eq=False)
class Summary:
    """How the steps of a series after the washout become one row of statistics.

    Of all units the means, deviations, largest, smallest and last states, then the
    shares of steps above each row of `thresholds` (Q, N). The units see x_{t-d} and x_{t-d} - x_{t-d-1} for each d of
    `delays`, and before the first step the first frame.
    """

    washout: int
    delays: tuple[int, ...]
    thresholds: Array


@dataclass(frozen=True, eq=False)
class Answer:
    """What outputs Y stand for.

    kind: "softmax", probabilities exp(Y) / sum; "nearest", the distribution that is nearest to Y; "independent",
    probabilities 1 / (1 + exp(-scale (Y - 1/2))) of labels that may hold together; "values", Y scale + mean.
    names: of the classes or labels; empty for values. labels: the same as they were given, for example numbers.
    one_value: whether answers are plain numbers instead of rows of values.
    """

    kind: str
    n_out: int
    mean: Array
    scale: Array
    names: tuple[str, ...]
    labels: Array | None = None
    one_value: bool = False

    @property
    def output(self) -> str:
        """What the answers are called: "probabilities" or "values"."""
        return "values" if self.kind == "values" else "probabilities"


@dataclass(frozen=True, eq=False)
class Resumption:
    """Where the training series ended: state (N,), what is fed back (n_out,), and the last known features (n,).

    Of a forecaster, `fed_back` is the last value of the series, standardised: the input of the first step to come.
    opening: the first frames of the series, by which it is recognised when it is given again.
    """

    state: Array
    fed_back: Array | None
    known: Array | None
    opening: Array | None = None


@dataclass(frozen=True, eq=False)
class Plan:
    """A fitted model as plain operations and arrays, from which every export is written."""

    estimator: str  # the name of its class
    precision: str  # "float32" or "float64", in which the network computes
    n_features: int  # per frame of the user's data
    feature_names: tuple[str, ...]  # empty if they have none
    inputs: tuple[InputOperation, ...]  # what turns frames into the inputs of the network
    network: Layer | Deep
    summary: Summary | None  # of a layer that answers for whole series
    answer: Answer
    series_dims: int | None = None  # features of a forecaster that are the series, before the exogenous ones
    resumption: Resumption | None = None  # at the end of the training series, if there was a single one
    ends: tuple[Resumption, ...] = ()  # at the end of each training series of a forecaster
    many: bool = False  # whether the training series of a forecaster were given as a list
    residuals: Array | None = None  # (n_residuals, n_out), standardised errors one step ahead, for intervals
    steps: int = 0  # operations in `inputs` that are steps of a pipeline before the network
    layout: str = "time_first"  # "time_first", "channels_first" or "rows": which axis of the user's arrays is time

    def __repr__(self) -> str:
        outputs, units = counted(self.answer.n_out, "output"), counted(self.units, "unit")
        return one_line(self, [self.estimator, units, counted(self.n_features, "feature"), outputs])

    @property
    def layer(self) -> Layer:
        """The network of one layer."""
        assert isinstance(self.network, Layer)
        return self.network

    @property
    def units(self) -> int:
        """The number of hidden units of all layers."""
        return self.network.units

    @property
    def per_step(self) -> bool:
        """Whether there is one answer per step; otherwise there is one per sequence."""
        return self.summary is None and not (isinstance(self.network, Deep) and self.network.pooled)

    @property
    def runs_backward(self) -> bool:
        """Whether some units begin at the end of a sequence."""
        if isinstance(self.network, Layer):
            return bool(self.network.backward.any())
        return any(stack.backward_pairs > 0 for stack in self.network.stacks)

    @property
    def carried(self) -> FillGaps | None:
        """The operation that carries known values forward, if there is one."""
        carrying = [o for o in self.inputs if isinstance(o, FillGaps) and o.carry]
        return carrying[0] if carrying else None
