"""A plan at work: whole sequences through all layers, chunk by chunk where they may be cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from echolearn.runtime.coding import softmax
from echolearn.runtime.plan import Layer, Plan, Pooling
from echolearn.runtime.units import Units
from echolearn.validation import Array

NUMBERS = 2**20  # states that exist at once where a sequence may be cut into chunks


@dataclass(frozen=True, eq=False)
class Running:
    """The running state of a layer: its states h (..., N), and the outputs y (..., n_out) that are fed back, if any."""

    h: Array
    y: Array


class RunningLayer:
    """A layer with its weights laid out for NumPy.

    Parameters
    ----------
    layer : Layer
        Its weights.
    dtype : {"float32", "float64"}
        In which it computes.
    """

    def __init__(self, layer: Layer, dtype: DTypeLike):
        self.layer, self.dtype = layer, np.dtype(dtype)
        backward = layer.backward
        self.forward = Units(layer, ~backward, dtype)
        self.backward = Units(layer, backward, dtype) if backward.any() else None
        self.U_states, self.U_inputs, self.intercept = (
            np.ascontiguousarray(part, dtype) for part in (layer.U_states, layer.U_inputs, layer.intercept)
        )
        if layer.passing is not None:
            self.scale = layer.passing.scale.astype(dtype)

    def start(self, *many: int) -> Running:
        """Return the start of one sequence, or of so many."""
        h = np.tile(self.forward.initial_state, (*many, 1)) if many else self.forward.initial_state.copy()
        return Running(h, np.zeros((*many, self.layer.n_out), self.dtype))

    def outputs(self, H: Array, x: Array) -> Array:
        """Return the outputs (..., n_out) for states and inputs."""
        Y = np.asarray(H @ self.U_states)
        if len(self.U_inputs):
            Y += x @ self.U_inputs
        Y += self.intercept
        return Y

    def fed_back(self, Y: Array) -> Array:
        """Return what outputs become as inputs of other units."""
        return softmax(Y) if self.layer.softmax else Y

    def run(self, x: Array, begin: Running) -> tuple[Array, Array, Running]:
        """Return the states (steps, N) and outputs (steps, n_out) over inputs (steps, n_in), and where they end.

        The outputs have no columns where the readout is of pooled states.
        """
        if self.forward.W_fb is not None:
            return self._run_fed_back(x, begin)
        H = self.forward.run(x, begin.h)
        end = Running(H[-1].copy(), begin.y)
        if self.backward is not None:
            both = np.empty((len(x), self.layer.units), self.dtype)
            both[:, self.forward.which] = H
            both[:, self.backward.which] = self.backward.run(x[::-1], self.backward.initial_state)[::-1]
            H = both
        per_step = len(self.U_states) == self.layer.units
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
        if self.forward.W_fb is not None:
            z += now.y @ self.forward.W_fb
        self.forward.advance(z, now.h)
        Y = self.outputs(z, x)
        return Y, Running(z, now.y if self.forward.W_fb is None else self.fed_back(Y))

    def passed_on(self, H: Array, Y: Array, source: Array) -> Array:
        """Return the inputs of the layer above; source: those of the first layer."""
        passing = self.layer.passing
        assert passing is not None
        beside = {"": [], "input": [source], "hidden": [H]}[passing.beside]
        return np.concatenate([self.fed_back(Y) * self.scale, *beside], axis=-1)


class RunningLayers:
    """All layers of a plan, from the input to the top.

    Parameters
    ----------
    plan : Plan
        The plan.
    """

    def __init__(self, plan: Plan):
        self.plan = plan
        self.dtype = np.dtype(plan.precision)
        self.layers = [RunningLayer(layer, plan.precision) for layer in plan.layers]

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

        There is one row per step, or a single one with a pooling.
        """
        now = self.start() if begin is None else begin
        pooling, whole = self.plan.pooling, any(layer.backward is not None for layer in self.layers)
        if pooling is not None:
            return self._pooled(pooling, x, now), now
        chunk = len(x) if whole else max(1, NUMBERS // max(layer.layer.units for layer in self.layers))
        parts = []
        for first in range(0, len(x), max(1, chunk)):
            _, _, Y, now = self._run(x[first : first + chunk], now)
            parts.append(Y)
        return np.concatenate(parts), now

    def _run(self, x: Array, now: list[Running]) -> tuple[Array, Array, Array, list[Running]]:
        """Return inputs, states and outputs of the top layer over all steps, and where the layers end."""
        source, ends = x, []
        for layer, begin in zip(self.layers, now, strict=True):
            H, Y, end = layer.run(x, begin)
            ends.append(end)
            if layer.layer.passing is not None:
                x = layer.passed_on(H, Y, source)
        return x, H, Y, ends

    def _pooled(self, pooling: Pooling, x: Array, now: list[Running]) -> Array:
        """Return the outputs (1, n_out) for a whole sequence."""
        top, washout = self.layers[-1], pooling.washout
        if pooling.kind == "summary":
            past = np.maximum(np.arange(len(x))[:, None] - np.array(pooling.delays), 0)
            x = x[past].reshape(len(x), -1)
        x, H, _, _ = self._run(x, now)
        backward = top.layer.backward
        if pooling.kind == "last":
            return top.outputs(np.where(backward, H[:1], H[-1:]), x[-1:])
        if pooling.kind == "summary":
            row = summary(pooling, H, backward)
            return np.asarray(row @ top.layer.U_states + top.layer.intercept)
        n, parts = len(x) - washout, pooling.parts
        spans = [(washout + i * n // parts, washout - (-(i + 1) * n // parts)) for i in range(parts)]
        states, inputs = (np.hstack([M[a:b].mean(axis=0) for a, b in spans])[None] for M in (H, x))
        return top.outputs(states, inputs)


def summary(pooling: Pooling, H: Array, backward: Array) -> Array:
    """Return the statistics (1, M) of states (steps, N) over time, in float64."""
    assert pooling.thresholds is not None
    late = H[pooling.washout :]
    S = late.astype(np.float64)
    mean = S.mean(axis=0)
    deviation = np.sqrt(np.maximum((S**2).mean(axis=0) - mean**2, 0))
    above = [(late > threshold).mean(axis=0) for threshold in pooling.thresholds.astype(H.dtype)]
    last = np.where(backward, H[0], H[-1])
    return np.hstack([mean, deviation, S.max(axis=0), S.min(axis=0), last, *above])[None]
