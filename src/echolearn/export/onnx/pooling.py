"""The outputs of the top layer for whole sequences, as ONNX nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from echolearn.export.onnx.layers import Builder
from echolearn.export.onnx.nodes import FLOAT64, ScanTime
from echolearn.runtime._plan import Layer, Pooling


@dataclass(frozen=True)
class Pooler:
    """The outputs of the top layer for the states of a whole sequence."""

    builder: Builder
    pooling: Pooling

    def outputs(self, x: str, time: ScanTime) -> str:
        """Return one row of outputs for inputs x (steps, n_in)."""
        builder, g, layer, w = self.builder, self.builder.g, self.builder.plan.top, self.pooling.washout
        if self.pooling.kind == "summary":
            x = self._delayed(x)
        H = builder.states(layer, x, time)
        if self.pooling.kind == "summary":
            return self._summary(layer, H)
        if self.pooling.kind == "last":
            return builder.readout(g, layer, self._last(layer, H), self._row(x, -1))
        n = g("Sub", g("Shape", x, start=0, end=1), g.whole(w))
        spans = [self._span(n, part) for part in range(self.pooling.parts)]
        pooled = [
            g("Concat", *(g("ReduceMean", g.rows(M, *span), axes=[0], keepdims=1) for span in spans), axis=-1)
            for M in ((H, x) if len(layer.U_inputs) else (H,))
        ]
        return builder.readout(g, layer, pooled[0], pooled[-1])

    def _span(self, n: str, part: int) -> tuple[str, str]:
        """Return the first row of a part of time and the one after its last; parts share a row where n is small."""
        g, parts, w = self.builder.g, self.pooling.parts, self.pooling.washout
        first = g("Div", g("Mul", n, g.whole(part)), g.whole(parts))
        end = g("Div", g("Add", g("Mul", n, g.whole(part + 1)), g.whole(parts - 1)), g.whole(parts))
        return g("Add", first, g.whole(w)), g("Add", end, g.whole(w))

    def _row(self, M: str, number: int) -> str:
        return self.builder.g("Gather", M, self.builder.g.whole(number), axis=0)

    def _last(self, layer: Layer, H: str) -> str:
        """Return the state (1, N) in which the units end: those that run backward at the first step."""
        g, last = self.builder.g, self._row(H, -1)
        if not layer.backward.any():
            return last
        return g("Where", g.constant(layer.backward, "backward"), self._row(H, 0), last)

    def _delayed(self, x: str) -> str:
        """Return [x_{t-d} for every delay d] (steps, D n_in); before the first step there is the first frame."""
        g, parts = self.builder.g, []
        steps = g(
            "Range", g.constant(np.array(0)), g("Squeeze", g("Shape", x, start=0, end=1)), g.constant(np.array(1))
        )
        for delay in self.pooling.delays:
            row = g("Max", g("Sub", steps, g.whole(delay)), g.whole(0))
            parts.append(g("Gather", x, row, axis=0) if delay else x)
        return g("Concat", *parts, axis=-1) if len(parts) > 1 else parts[0]

    def _summary(self, layer: Layer, H: str) -> str:
        """Return the outputs for the statistics of states; these and the readout are in float64."""
        builder, g = self.builder, self.builder.g
        assert self.pooling.thresholds is not None
        after = g.rows(H, g.whole(self.pooling.washout), g.whole(2**62))
        S = g.cast(after, FLOAT64)
        mean = g("ReduceMean", S, axes=[0], keepdims=1)
        square = g("ReduceMean", g("Mul", S, S), axes=[0], keepdims=1)
        variance = g("Max", g("Sub", square, g("Mul", mean, mean)), g.constant(np.zeros(1)))
        columns = [mean, g("Sqrt", variance)]
        columns += [g(f"Reduce{word}", S, axes=[0], keepdims=1) for word in ("Max", "Min")]
        columns.append(g.cast(self._last(layer, H), FLOAT64))
        for limits in self.pooling.thresholds:
            above = g.cast(g("Greater", after, builder.weights(limits, "threshold")), FLOAT64)
            columns.append(g("ReduceMean", above, axes=[0], keepdims=1))
        row = g("Concat", *columns, axis=-1)
        Y = g("MatMul", row, g.constant(layer.U_states, "U_states"))
        return g("Add", Y, g.constant(layer.intercept, "intercept"))
