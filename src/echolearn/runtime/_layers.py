"""A plan at work in NumPy: eq. 1 with its readout, or the layers of a deep network, over frames and sequences.

The rows of the default W_rec have ten entries. A gather of the ten states of every unit at once, a product and a sum
over the ten need a few microseconds at any size; a dense product is faster for small networks (measured in
benchmarks/runtime_start.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from echolearn.modelfile.schema import RMS_EPSILON, THRESHOLD_WIDTH
from echolearn.runtime._plan import Block, Deep, Layer, Plan, Sparse, Stack, Summary
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
    """The running state of a layer: states h (..., N), and outputs y (..., n_out) that are fed back, if any. Of a layer
    that answers for whole series, y has the frames and statistics that it has kept."""

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
        """Return states (steps, N), outputs (steps, n_out), and where the layer then stands."""
        if self.forward.fed_back is not None:
            return self._run_fed_back(x, begin)
        H = self.forward.run(x, begin.h)
        end = Running(H[-1].copy(), begin.y)
        if self.backward is not None:
            both = np.empty((len(x), self.layer.units), self.dtype)
            both[:, self.forward.which] = H
            both[:, self.backward.which] = self.backward.run(x[::-1], self.backward.initial_state)[::-1]
            H = both
        return H, self.outputs(H, x), end

    def _run_fed_back(self, x: Array, begin: Running) -> tuple[Array, Array, Running]:
        H, Y = self.forward.drive(x), np.empty((len(x), self.layer.n_out), self.dtype)
        now = begin
        for t, z in enumerate(H):
            Y[t], now = self.step(x[t], now, z)
        return H, Y, now

    def step(self, x: Array, now: Running, drive: Array | None = None) -> tuple[Array, Running]:
        """Return the outputs after one more frame, and where the layer stands; drive: of the frame, if known."""
        z = self.forward.drive(x) if drive is None else drive
        if self.forward.fed_back is not None:
            z += self.forward.fed_back(now.y)
        self.forward.advance(z, now.h)
        Y = self.outputs(z, x)
        return Y, Running(z, now.y if self.forward.fed_back is None else self.fed_back(Y))

    def outputs_of(self, x: Array, begin: Running) -> tuple[Array, Running]:
        """Return the outputs (steps, n_out) for one sequence of inputs (steps, n_in), and where it ends."""
        steps = len(x) if self.backward is not None else max(1, MAX_STATES_PER_CHUNK // self.layer.units)
        chunks, now = [], begin
        for first in range(0, len(x), steps):
            _, Y, now = self.run(x[first : first + steps], now)
            chunks.append(Y)
        return np.concatenate(chunks), now


class RunningSummary(RunningLayer):
    """A layer that answers for whole series: after every frame, for all frames so far.

    It keeps, beside the states, the latest frames that the units still see, and the statistics of states as sums,
    extremes and sums of shares. Steps of the washout are answered from the present state alone.
    """

    def __init__(self, layer: Layer, summary: Summary, numbers: Arithmetic):
        super().__init__(layer, numbers)
        self.summary, self._delays = summary, np.array(summary.delays)
        self._frames, self._n = 2 + int(self._delays[-1]), layer.n_in // len(summary.delays) // 2
        self._limits = summary.thresholds.astype(self.dtype)

    def start(self, *many: int) -> Running:
        numbers = 1 + self._frames * self._n + (4 + len(self._limits)) * self.layer.units  # as `step` keeps them
        return Running(super().start(*many).h, np.zeros((*many, numbers)))

    def step(self, x: Array, now: Running, drive: Array | None = None) -> tuple[Array, Running]:
        many, units = x.shape[:-1], self.layer.units
        steps, past, kept = np.split(now.y, [1, 1 + self._frames * self._n], axis=-1)
        earlier = np.where(steps == 0, np.tile(x, self._frames - 1), past[..., : -self._n])
        past = np.concatenate([x, earlier], axis=-1)
        frames = past.reshape(*many, self._frames, self._n).astype(self.dtype)
        seen = frames[..., self._delays, :]
        seen = np.concatenate([seen, seen - frames[..., self._delays + 1, :]], axis=-1)
        z = self.forward.drive(seen.reshape(*many, -1))
        self.forward.advance(z, now.h)
        extremes, sums = np.split(kept.reshape(*many, -1, units), [2], axis=-2)
        fresh = (steps <= self.summary.washout)[..., None]
        sums = self._terms(z) + np.where(fresh, 0, sums)
        extremes = np.where(fresh, z[..., None, :], extremes)
        extremes = np.stack([np.maximum(extremes[..., 0, :], z), np.minimum(extremes[..., 1, :], z)], axis=-2)
        count = np.maximum(steps + 1 - self.summary.washout, 1)[..., None]
        kept = np.concatenate([extremes, sums], axis=-2).reshape(*many, -1)
        y = np.concatenate([steps + 1, past, kept], axis=-1)
        return self._answer(z, extremes, sums / count), Running(z, y)

    def _terms(self, H: Array) -> Array:
        """Return states (..., N), their squares, and how far they are above each threshold: (..., 2 + Q, N)."""
        slope, half, H = self.dtype.type(1 / THRESHOLD_WIDTH), self.dtype.type(0.5), H[..., None, :]
        above = np.clip((H - self._limits) * slope + half, 0, 1)
        S = H.astype(np.float64)
        return np.concatenate([S, S**2, above], axis=-2)

    def _answer(self, last: Array, extremes: Array, means: Array) -> Array:
        """Return the outputs for last states (..., N), extremes (..., 2, N), and the means of `_terms`."""
        mean, square, above = means[..., :1, :], means[..., 1:2, :], means[..., 2:, :]
        deviation = np.sqrt(np.maximum(square - mean**2, 0))
        row = np.concatenate([mean, deviation, extremes, last[..., None, :], above], axis=-2)
        return np.asarray(row.reshape(*last.shape[:-1], -1) @ self.layer.U_states + self.layer.intercept)

    def outputs_of(self, x: Array, begin: Running) -> tuple[Array, Running]:
        """Return the outputs (1, n_out) for one series of inputs (steps, n_in), and its last states."""
        both = np.hstack([x, np.diff(x, axis=0, prepend=x[:1])])
        past = np.maximum(np.arange(len(x))[:, None] - self._delays, 0)
        H = self.forward.run(both[past].reshape(len(x), -1), begin.h)
        late = H[self.summary.washout :]
        sums = np.zeros((2 + len(self._limits), self.layer.units))
        for state in late:
            sums += self._terms(state)
        extremes = np.stack([late.max(axis=0), late.min(axis=0)])
        return self._answer(H[-1], extremes, sums / len(late))[None], Running(H[-1], begin.y)


# ---------------- Deep networks


class RunningBlock:
    """One layer of a deep network, with its weights laid out for NumPy."""

    def __init__(self, block: Block, forward_pairs: int, numbers: Arithmetic):
        self._in, self._out = numbers.dense(block.W_in), numbers.dense(block.W_out)
        self.re, self.im, self.gain, self.b, self.b_out = (
            values.astype(numbers.dtype) for values in (block.re, block.im, block.gain, block.b, block.b_out)
        )
        self.forward = forward_pairs

    def step(self, x: Array, h: Array) -> tuple[Array, Array]:
        """Return what passes on to the next layer after one more frame x (..., C), and the new states; h: the last."""
        h = self._turned(h) + np.concatenate([self.gain, self.gain]) * self._in(normalized(x))
        return x + self._out(np.maximum(h + self.b, 0)) + self.b_out, h

    def run(self, x: Array, h: Array) -> tuple[Array, Array]:
        """Return what passes on for all frames x (steps, C), and the states after the last one."""
        H = np.concatenate([self.gain, self.gain]) * self._in(normalized(x))
        before, forward = h, np.tile(np.arange(len(self.re)) < self.forward, 2)
        for t in range(len(H)):
            H[t, forward] += self._turned(before)[forward]
            before = H[t]
        before = h
        for t in range(len(H) - 1, -1, -1) if self.forward < len(self.re) else ():
            H[t, ~forward] += self._turned(before)[~forward]
            before = H[t]
        return x + self._out(np.maximum(H + self.b, 0)) + self.b_out, H[-1]

    def _turned(self, h: Array) -> Array:
        """Return a R(theta) h."""
        x, y = np.split(h, 2, axis=-1)
        return np.concatenate([self.re * x - self.im * y, self.im * x + self.re * y], axis=-1)


def normalized(x: Array) -> Array:
    """Return x / rms(x) along the last axis."""
    return np.asarray(x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + x.dtype.type(RMS_EPSILON)))


class RunningStack:
    """The layers of a deep network at work."""

    def __init__(self, stack: Stack, numbers: Arithmetic):
        self._in, self.stack = numbers.dense(stack.W_0), stack
        self.b_0, self.c = stack.b_0.astype(numbers.dtype), stack.c.astype(numbers.dtype)
        pairs = stack.units // 2 - stack.backward_pairs
        self.blocks = [RunningBlock(block, pairs, numbers) for block in stack.blocks]

    def features(self, x: Array, h: Array, *, step: bool) -> tuple[Array, Array]:
        """Return the features of a frame x (..., n_in), or of frames (steps, n_in), and the states of all layers."""
        x, after = self._in(x) + self.b_0, []
        for block, before in zip(self.blocks, np.split(h, len(self.blocks), axis=-1), strict=True):
            x, last = block.step(x, before) if step else block.run(x, before)
            after.append(last)
        return np.maximum(normalized(x) + self.c, 0), np.concatenate(after, axis=-1)


class RunningDeep:
    """A deep network at work, with the methods of `RunningLayer` that streams and predictions use."""

    def __init__(self, deep: Deep, numbers: Arithmetic):
        self.deep, self.dtype = deep, numbers.dtype
        self.stacks = [RunningStack(stack, numbers) for stack in deep.stacks]
        self._readout, self._intercept = numbers.dense(deep.U), deep.intercept.astype(numbers.dtype)

    def start(self, *many: int) -> Running:
        """Return the start of one sequence, or of so many."""
        return Running(np.zeros((*many, self.deep.units), self.dtype), np.zeros((*many, 0), self.dtype))

    def step(self, x: Array, now: Running) -> tuple[Array, Running]:
        """Return the outputs after one more frame (..., n_in), and where the network stands then."""
        q, h = self._features(x, now.h, step=True)
        return self._readout(q) + self._intercept, Running(h, now.y)

    def outputs_of(self, x: Array, begin: Running) -> tuple[Array, Running]:
        """Return the outputs for one sequence of inputs (steps, n_in), and where it ends."""
        q, h = self._features(x, begin.h, step=False)
        q = q.mean(axis=0, keepdims=True) if self.deep.pooled else q
        return self._readout(q) + self._intercept, Running(h, begin.y)

    def _features(self, x: Array, h: Array, *, step: bool) -> tuple[Array, Array]:
        ends = np.cumsum([stack.stack.units * len(stack.blocks) for stack in self.stacks])[:-1]
        pairs = zip(self.stacks, np.split(h, ends, axis=-1), strict=True)
        found = [stack.features(x, part, step=step) for stack, part in pairs]
        return np.concatenate([q for q, _ in found], axis=-1), np.concatenate([h for _, h in found], axis=-1)


def running_network(plan: Plan, numbers: Arithmetic | None = None) -> RunningLayer | RunningDeep:
    """Return the network of a plan at work; numbers: None for floats of the plan's own precision."""
    numbers = numbers or Floats(plan.precision)
    if isinstance(plan.network, Deep):
        return RunningDeep(plan.network, numbers)
    if plan.summary is not None:
        return RunningSummary(plan.network, plan.summary, numbers)
    return RunningLayer(plan.network, numbers)
