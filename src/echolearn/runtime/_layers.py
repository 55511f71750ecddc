"""A plan at work in NumPy: eq. 1 of every layer, its readout, and whole sequences through all layers.

The rows of the default W_rec have ten entries. A gather of the ten states of every unit at once, a product and a sum
over the ten need a few microseconds at any size; a dense product is faster for small networks (measured in
benchmarks/runtime_start.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from echolearn.runtime._plan import Layer, Plan, Sparse, Summary
from echolearn.validation import Array

MAX_STATES_PER_CHUNK = 2**20  # that exist at once where a sequence may be cut into chunks
Product = Callable[[Array], Array]  # from rows (n,) or (K, n) to rows (m,) or (K, m), which the caller may change


class Arithmetic(Protocol):
    """The numbers in which a layer computes: the dtype of its states, and its products with weights."""

    dtype: np.dtype[np.floating]

    def dense(self, matrix: Array) -> Product:
        """Return the product of rows with a matrix (n, m)."""

    def recurrent(self, matrix: Sparse) -> tuple[Product, Product]:
        """Return the product of W_rec with the states (N,) of one sequence, and that with those (B, N) of many."""


class Floats:
    """Floating-point numbers of one precision: "float32" or "float64"."""

    def __init__(self, precision: str):
        self.dtype: np.dtype[np.floating] = np.dtype(precision)

    def dense(self, matrix: Array) -> Product:
        """Return the product of rows with a matrix (n, m)."""
        weights = np.ascontiguousarray(matrix, self.dtype)
        return lambda x: np.asarray(x @ weights)

    def recurrent(self, matrix: Sparse) -> tuple[Product, Product]:
        """Return the fastest products of W_rec with one row of states, and with many."""
        N, widest = len(matrix.indptr) - 1, max(1, matrix.widest)
        uneven = widest * N > 4 * len(matrix.data) + 4 * N
        one_dense = uneven or 30_000 + 12 * N * widest > N * N
        many_dense = uneven or 30 * widest > N
        dense = self.dense(matrix.dense(self.dtype).T) if one_dense or many_dense else None
        if one_dense and many_dense and dense is not None:
            return dense, dense
        indices, data = matrix.columns(self.dtype)
        one = dense if one_dense and dense is not None else _gather_one(indices, data)
        return one, dense if many_dense and dense is not None else _gather_many(indices, data)


def _gather_one(indices: Array, data: Array) -> Product:
    def product(h: Array) -> Array:
        taken = h.take(indices)  # new arrays in every call: threads may share a model
        taken *= data
        return np.asarray(np.add.reduce(taken, axis=0))

    return product


def _gather_many(indices: Array, data: Array) -> Product:
    def product(h: Array) -> Array:
        columns = np.ascontiguousarray(h.T)  # so that what is gathered is contiguous
        sums = np.zeros_like(columns)
        for places, weights in zip(indices, data, strict=True):
            sums += weights[:, None] * columns[places]
        return sums.T

    return product


class Units:
    """The units of a layer that run in one direction; which (N,) of bool: no other unit is connected with them."""

    def __init__(self, layer: Layer, which: Array, numbers: Arithmetic):
        self.which = which
        self.bias, self.leak, self.initial_state = (
            values[which].astype(numbers.dtype) for values in (layer.bias, layer.leak, layer.initial_state)
        )
        self.fed_back = None if layer.W_fb is None else numbers.dense(layer.W_fb[:, which])
        self._driven = numbers.dense(layer.W[:, which])
        self._one, self._many = numbers.recurrent(layer.W_rec.of_units(which))
        self._leaky = bool((self.leak != 1).any())
        self._activation = layer.activation

    def drive(self, x: Array) -> Array:
        """Return what inputs (..., n_in) add to the arguments of the units."""
        z = self._driven(x)
        z += self.bias
        return z

    def advance(self, z: Array, h: Array) -> None:
        """Turn the drive (N,) or (B, N) of a step into its states, in place; h: the states before it."""
        z += self._one(h) if h.ndim == 1 else self._many(h)
        _activate(self._activation, z)
        if self._leaky:
            z -= h
            z *= self.leak
            z += h

    def run(self, x: Array, h: Array) -> Array:
        """Return the states (steps, N) over inputs (steps, n_in), from the state h (N,) on."""
        H = self.drive(x)
        for z in H:
            self.advance(z, h)
            h = z
        return H


def _activate(name: str, z: Array) -> None:
    """Replace z by f(z)."""
    if name == "tanh":
        np.tanh(z, out=z)
    elif name == "relu":
        np.maximum(z, 0, out=z)
    elif name == "sigmoid":
        z *= 0.5
        np.tanh(z, out=z)
        z *= 0.5
        z += 0.5


def softmax(Y: Array) -> Array:
    """Return the softmax along the last axis."""
    P = np.exp(Y - Y.max(axis=-1, keepdims=True))
    return np.asarray(P / P.sum(axis=-1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Running:
    """The running state of a layer: its states h (..., N), and the outputs y (..., n_out) that are fed back, if any."""

    h: Array
    y: Array


class RunningLayer:
    """A layer with its weights laid out for NumPy."""

    def __init__(self, layer: Layer, numbers: Arithmetic):
        self.layer, self.dtype = layer, numbers.dtype
        backward = layer.backward
        self.forward = Units(layer, ~backward, numbers)
        self.backward = Units(layer, backward, numbers) if backward.any() else None
        self._of_states = numbers.dense(layer.U_states)
        self._of_inputs = numbers.dense(layer.U_inputs) if len(layer.U_inputs) else None
        self._intercept = layer.intercept.astype(self.dtype)
        if layer.passing is not None:
            self._scale = layer.passing.scale.astype(self.dtype)

    def start(self, *many: int) -> Running:
        """Return the start of one sequence, or of so many."""
        h = np.tile(self.forward.initial_state, (*many, 1)) if many else self.forward.initial_state.copy()
        return Running(h, np.zeros((*many, self.layer.n_out), self.dtype))

    def outputs(self, H: Array, x: Array) -> Array:
        """Return the outputs (..., n_out) for states and inputs."""
        Y = self._of_states(H)
        if self._of_inputs is not None:
            Y += self._of_inputs(x)
        Y += self._intercept
        return Y

    def fed_back(self, Y: Array) -> Array:
        """Return what outputs become as inputs of other units."""
        return softmax(Y) if self.layer.softmax else Y

    def run(self, x: Array, begin: Running) -> tuple[Array, Array, Running]:
        """Return the states (steps, N) and outputs (steps, n_out) over inputs (steps, n_in), and where they end.

        The outputs have no columns where the readout is of a summary.
        """
        if self.forward.fed_back is not None:
            return self._run_fed_back(x, begin)
        H = self.forward.run(x, begin.h)
        end = Running(H[-1].copy(), begin.y)
        if self.backward is not None:
            both = np.empty((len(x), self.layer.units), self.dtype)
            both[:, self.forward.which] = H
            both[:, self.backward.which] = self.backward.run(x[::-1], self.backward.initial_state)[::-1]
            H = both
        per_step = len(self.layer.U_states) == self.layer.units
        return H, self.outputs(H, x) if per_step else H[:, :0], end

    def _run_fed_back(self, x: Array, begin: Running) -> tuple[Array, Array, Running]:
        H, Y = self.forward.drive(x), np.empty((len(x), self.layer.n_out), self.dtype)
        now = begin
        for t, z in enumerate(H):
            Y[t], now = self.step(x[t], now, z)
        return H, Y, now

    def step(self, x: Array, now: Running, drive: Array | None = None) -> tuple[Array, Running]:
        """Return the outputs after one more frame (..., n_in), and where the layer stands then.

        drive: that of the frame, if it is known; it becomes the new states.
        """
        z = self.forward.drive(x) if drive is None else drive
        if self.forward.fed_back is not None:
            z += self.forward.fed_back(now.y)
        self.forward.advance(z, now.h)
        Y = self.outputs(z, x)
        return Y, Running(z, now.y if self.forward.fed_back is None else self.fed_back(Y))

    def passed_on(self, H: Array, Y: Array, source: Array) -> Array:
        """Return the inputs of the layer above; source: those of the first layer."""
        passing = self.layer.passing
        assert passing is not None
        beside = {"": [], "input": [source], "hidden": [H]}[passing.beside]
        return np.concatenate([self.fed_back(Y) * self._scale, *beside], axis=-1)


class RunningLayers:
    """All layers of a plan, from the input to the top; numbers: None for floats of the plan's own precision."""

    def __init__(self, plan: Plan, numbers: Arithmetic | None = None):
        self.plan = plan
        numbers = numbers or Floats(plan.precision)
        self.dtype = numbers.dtype
        self.layers = [RunningLayer(layer, numbers) for layer in plan.layers]

    def start(self, *many: int) -> list[Running]:
        """Return the start of one sequence, or of so many."""
        return [layer.start(*many) for layer in self.layers]

    def step(self, x: Array, now: list[Running]) -> tuple[Array, list[Running]]:
        """Return the outputs of the top layer after one more frame (..., n_in), and where all layers stand then."""
        after: list[Running] = []
        source = x
        for layer, running in zip(self.layers, now, strict=True):
            Y, new = layer.step(x, running)
            after.append(new)
            if layer.layer.passing is not None:
                x = layer.passed_on(new.h, Y, source)
        return Y, after

    def outputs(self, x: Array, begin: list[Running] | None = None) -> tuple[Array, list[Running]]:
        """Return the outputs for one sequence of encoded inputs (steps, n_in), and where its layers end.

        There is one row per step, or a single one with a summary.
        """
        now = self.start() if begin is None else begin
        summary, whole = self.plan.summary, any(layer.backward is not None for layer in self.layers)
        if summary is not None:
            return self._summarized(summary, x, now), now
        steps = len(x) if whole else max(1, MAX_STATES_PER_CHUNK // max(layer.layer.units for layer in self.layers))
        chunks = []
        for first in range(0, len(x), max(1, steps)):
            _, _, Y, now = self._run(x[first : first + steps], now)
            chunks.append(Y)
        return np.concatenate(chunks), now

    def _run(self, x: Array, now: list[Running]) -> tuple[Array, Array, Array, list[Running]]:
        """Return inputs, states and outputs of the top layer over all steps, and where the layers end."""
        source, ends = x, []
        for layer, begin in zip(self.layers, now, strict=True):
            H, Y, end = layer.run(x, begin)
            ends.append(end)
            if layer.layer.passing is not None:
                x = layer.passed_on(H, Y, source)
        return x, H, Y, ends

    def _summarized(self, summary: Summary, x: Array, now: list[Running]) -> Array:
        """Return the outputs (1, n_out) for a whole series."""
        past = np.maximum(np.arange(len(x))[:, None] - np.array(summary.delays), 0)
        _, H, _, _ = self._run(x[past].reshape(len(x), -1), now)
        top = self.layers[-1].layer
        return np.asarray(_statistics(summary, H, top.backward) @ top.U_states + top.intercept)


def _statistics(summary: Summary, H: Array, backward: Array) -> Array:
    """Return the statistics (1, M) of states (steps, N) over time, in float64."""
    late = H[summary.washout :]
    S = late.astype(np.float64)
    mean = S.mean(axis=0)
    deviation = np.sqrt(np.maximum((S**2).mean(axis=0) - mean**2, 0))
    above = [(late > threshold).mean(axis=0) for threshold in summary.thresholds.astype(H.dtype)]
    last = np.where(backward, H[0], H[-1])
    return np.hstack([mean, deviation, S.max(axis=0), S.min(axis=0), last, *above])[None]
