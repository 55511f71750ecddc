"""The layers of a plan as ONNX nodes: inputs, eq. 1, readouts, and what layers pass on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from echolearn.export.onnx.nodes import FLOAT64, Nodes, StepTime, Time
from echolearn.runtime._plan import Clip, FillGaps, Layer, Plan, Project, Sparse, Standardize
from echolearn.validation import Array


@dataclass(frozen=True)
class Builder:
    """The nodes of a plan. dtype: of the network."""

    g: Nodes
    plan: Plan
    dtype: np.dtype[np.generic]

    def weights(self, value: Array, word: str) -> str:
        return self.g.constant(value.astype(self.dtype), word)

    def encode(self, x: str, time: Time) -> str:
        """Return the inputs of the first layer; they are scaled in float64, as in a prediction."""
        g = self.g
        x = g.cast(x, FLOAT64)
        for operation in self.plan.inputs:
            if isinstance(operation, Standardize):
                x = g("Div", g("Sub", x, g.constant(operation.mean, "mean")), g.constant(operation.scale, "scale"))
            elif isinstance(operation, Clip):
                x = g("Min", g("Max", x, g.constant(operation.low)), g.constant(operation.high))
            elif isinstance(operation, Project):
                x = g("MatMul", x, g.constant(operation.matrix, "projection"))
            else:
                x = self._fill(operation, x, time)
        return g.cast(x, self.dtype)

    def _fill(self, gaps: FillGaps, x: str, time: Time) -> str:
        g = self.g
        missing = g("IsNaN", x)
        if gaps.carry:

            def carry(inner: Nodes, states: list[str], frames: list[str]) -> tuple[list[str], str]:
                frame, known = frames[0], inner.cast(states[0], FLOAT64)
                filled = inner("Where", inner("IsNaN", frame), known, frame)
                return [inner.cast(filled, self._state_dtype(time))], filled

            start = gaps.values.astype(self._state_dtype(time))
            filled = time.recur(g, [start], [x], carry, reverse=False)
        else:
            filled = g("Where", missing, g.constant(gaps.values, "fill"), x)
        if not gaps.flagged.any():
            return filled
        flags = g("Gather", g.cast(missing, FLOAT64), g.whole(*np.flatnonzero(gaps.flagged).tolist()), axis=-1)
        return g("Concat", filled, flags, axis=-1)

    def _state_dtype(self, time: Time) -> np.dtype[np.generic]:
        """Return the type of known values: that of the one vector of states of a step graph, or float64."""
        return self.dtype if isinstance(time, StepTime) else FLOAT64

    def top_inputs(self, x: str, time: Time) -> str:
        """Return the inputs of the top layer, for the inputs of the first one."""
        g, source = self.g, x
        for layer in self.plan.layers[:-1]:
            assert layer.passing is not None
            H, Y = self.layer(layer, x, time)
            Y = g("Softmax", Y, axis=-1) if layer.softmax else Y
            passed = g("Mul", Y, self.weights(layer.passing.scale, "passing"))
            beside = {"": [], "input": [source], "hidden": [H]}[layer.passing.beside]
            x = g("Concat", passed, *beside, axis=-1) if beside else passed
        return x

    def layer(self, layer: Layer, x: str, time: Time) -> tuple[str, str]:
        """Return states and outputs of a layer."""
        if layer.W_fb is None:
            H = self.states(layer, x, time)
            return H, self.readout(self.g, layer, H, x)
        N, both = layer.units, self._fed_back(layer, x, time)
        H, Y = (
            self.g("Slice", both, self.g.whole(first), self.g.whole(end), self.g.whole(-1))
            for first, end in ((0, N), (N, N + layer.n_out))
        )
        return H, Y

    def states(self, layer: Layer, x: str, time: Time) -> str:
        """Return the states of a layer without feedback."""
        g, parts, order = self.g, [], []
        for units, reverse in ((~layer.backward, False), (layer.backward, True)):
            if not units.any():
                continue
            drive = g(
                "Add", g("MatMul", x, self.weights(layer.W[:, units], "W")), self.weights(layer.bias[units], "bias")
            )
            step = self.update(layer, units)

            def body(inner: Nodes, states: list[str], frames: list[str], step: Update = step) -> tuple[list[str], str]:
                h = step(inner, states[0], frames[0])
                return [h], h

            start = layer.initial_state[units].astype(self.dtype)
            parts.append(time.recur(g, [start], [drive], body, reverse=reverse))
            order.append(np.flatnonzero(units))
        if len(parts) == 1:
            return parts[0]
        both, back = g("Concat", *parts, axis=-1), np.argsort(np.concatenate(order))
        return both if (np.diff(back) == 1).all() else g("Gather", both, g.constant(back, "order"), axis=-1)

    def _fed_back(self, layer: Layer, x: str, time: Time) -> str:
        """Return states and outputs side by side, of a layer whose outputs are fed back."""
        assert layer.W_fb is not None
        g, step, W_fb = self.g, self.update(layer, ~layer.backward), self.weights(layer.W_fb, "W_fb")
        drive = g("Add", g("MatMul", x, self.weights(layer.W, "W")), self.weights(layer.bias, "bias"))

        def body(inner: Nodes, states: list[str], frames: list[str]) -> tuple[list[str], str]:
            h, y = states
            h = step(inner, h, inner("Add", frames[0], inner("MatMul", y, W_fb)))
            Y = self.readout(inner, layer, h, frames[1])
            return [h, inner("Softmax", Y, axis=-1) if layer.softmax else Y], inner("Concat", h, Y, axis=-1)

        starts = [layer.initial_state.astype(self.dtype), np.zeros(layer.n_out, self.dtype)]
        return time.recur(g, starts, [drive, x], body, reverse=False)

    def update(self, layer: Layer, units: Array) -> Update:
        return Update(self, layer.W_rec.of_units(units), layer.leak[units], layer.activation)

    def readout(self, g: Nodes, layer: Layer, H: str, x: str) -> str:
        """Return the outputs for rows of states, or of statistics of states, and of inputs."""
        Y = g("MatMul", H, self.weights(layer.U_states, "U_states"))
        if len(layer.U_inputs):
            Y = g("Add", Y, g("MatMul", x, self.weights(layer.U_inputs, "U_inputs")))
        return g("Add", Y, self.weights(layer.intercept, "intercept"))


@dataclass(frozen=True)
class Update:
    """Eq. 1 for one step: from the state before and the drive W'x + W_fb y + bias to the state after."""

    builder: Builder
    W_rec: Sparse
    leak: Array
    activation: str

    def __call__(self, g: Nodes, h: str, drive: str) -> str:
        z = g("Add", drive, self._recurrent(g, h)) if len(self.W_rec.data) else drive
        if self.activation != "identity":
            z = g({"tanh": "Tanh", "sigmoid": "Sigmoid", "relu": "Relu"}[self.activation], z)
        if (self.leak == 1).all():
            return z
        return g("Add", h, g("Mul", self.builder.weights(self.leak, "leak"), g("Sub", z, h)))

    def _recurrent(self, g: Nodes, h: str) -> str:
        """Return W_rec h: by gathering k states per unit where that takes less room than a dense matrix."""
        if 2 * self.W_rec.widest >= len(self.leak):
            return g("MatMul", h, self.builder.weights(self.W_rec.dense().T, "W_rec"))
        place, weight = self.W_rec.columns()
        taken = g("Gather", h, g.constant(place.astype(np.int32), "from"), axis=-1)
        return g("ReduceSum", g("Mul", taken, self.builder.weights(weight, "W_rec")), g.whole(-2), keepdims=0)
