"""The network of a plan as ONNX nodes: inputs, eq. 1 with its readout, and the layers of deep networks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from echolearn.export.onnx.nodes import FLOAT64, Body, Nodes, Time
from echolearn.modelfile.schema import RMS_EPSILON
from echolearn.runtime._plan import Block, Clip, Deep, FillGaps, Layer, Plan, Project, Sparse, Stack, Standardize
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
        """Return the inputs of the network; they are scaled in float64, as in a prediction."""
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
                filled = inner("Where", inner("IsNaN", frames[0]), states[0], frames[0])
                return [filled], filled

            filled = time.recur(g, [gaps.values], [x], carry, reverse=False)
        else:
            filled = g("Where", missing, g.constant(gaps.values, "fill"), x)
        if not gaps.flagged.any():
            return filled
        flags = g("Gather", g.cast(missing, FLOAT64), g.whole(*np.flatnonzero(gaps.flagged).tolist()), axis=-1)
        return g("Concat", filled, flags, axis=-1)

    def outputs(self, x: str, time: Time) -> str:
        """Return the outputs of the network for its inputs."""
        network = self.plan.network
        return self.deep(network, x, time) if isinstance(network, Deep) else self.layer(network, x, time)[1]

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
        return self._side_by_side(parts, order)

    def _side_by_side(self, parts: list[str], units: list[Array]) -> str:
        """Return the states of all units, in their order; units: which of them are in each part."""
        g = self.g
        if len(parts) == 1:
            return parts[0]
        both, back = g("Concat", *parts, axis=-1), np.argsort(np.concatenate(units))
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

    def deep(self, deep: Deep, x: str, time: Time) -> str:
        """Return the outputs of a deep network; reservoir/_deep_reservoir.py has the equations."""
        parts = [self._features(stack, x, time) for stack in deep.stacks]
        q = self.g("Concat", *parts, axis=-1) if len(parts) > 1 else parts[0]
        if deep.pooled:
            q = self.g("ReduceMean", q, axes=[0], keepdims=1)
        return self._affine(q, deep.U, deep.intercept)

    def _features(self, stack: Stack, x: str, time: Time) -> str:
        """Return what the readout sees of a stack of layers."""
        g, x = self.g, self._affine(x, stack.W_0, stack.b_0)
        for block in stack.blocks:
            H = self._turning_states(block, stack.backward_pairs, self._normalized(x), time)
            p = g("Relu", g("Add", H, self.weights(block.b, "b")))
            x = g("Add", x, self._affine(p, block.W_out, block.b_out))
        return g("Relu", g("Add", self._normalized(x), self.weights(stack.c, "c")))

    def _affine(self, x: str, matrix: Array, bias: Array) -> str:
        return self.g("Add", self.g("MatMul", x, self.weights(matrix, "W")), self.weights(bias, "bias"))

    def _normalized(self, x: str) -> str:
        """Return x / rms(x)."""
        g = self.g
        square = g("ReduceMean", g("Mul", x, x), axes=[-1], keepdims=1)
        return g("Div", x, g("Sqrt", g("Add", square, self.weights(np.full(1, RMS_EPSILON), "epsilon"))))

    def _turning_states(self, block: Block, backward_pairs: int, z: str, time: Time) -> str:
        """Return the states of a layer of pairs of units. The products with 1 - a are part of W_in."""
        m, parts, order = len(block.re), [], []
        for pairs, reverse in ((np.arange(m - backward_pairs), False), (np.arange(m - backward_pairs, m), True)):
            if not len(pairs):
                continue
            units = np.concatenate([pairs, m + pairs])
            drive = self.g("MatMul", z, self.weights((block.W_in * np.tile(block.gain, 2))[:, units], "W_in"))
            start = np.zeros(len(units), self.dtype)
            parts.append(time.recur(self.g, [start], [drive], self._turn(block, pairs), reverse=reverse))
            order.append(units)
        return self._side_by_side(parts, order)

    def _turn(self, block: Block, pairs: Array) -> Body:
        """Return the step of some pairs: (re x - im y + u, im x + re y + v)."""
        re, im, n = block.re[pairs], block.im[pairs], len(pairs)
        own, other = self.weights(np.tile(re, 2), "re"), self.weights(np.concatenate([-im, im]), "im")
        partner = self.g.constant(np.roll(np.arange(2 * n, dtype=np.int32), n), "partner")

        def body(inner: Nodes, states: list[str], frames: list[str]) -> tuple[list[str], str]:
            turned = inner("Mul", other, inner("Gather", states[0], partner, axis=-1))
            h = inner("Add", inner("Add", inner("Mul", own, states[0]), turned), frames[0])
            return [h], h

        return body


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
