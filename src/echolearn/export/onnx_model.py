"""ONNX: a plan as a graph of standard operators (docs/export.md). The package onnx is needed to write it, not to run it.

Outside the `Scan` whole matrices are multiplied; inside it there is only what one step needs of the one before.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from echolearn import __version__
from echolearn._typing import Array
from echolearn.export.onnx_nodes import Nodes, ScanTime, StepTime, Time
from echolearn.export.plan import (
    Clip,
    ExportError,
    FillGaps,
    Layer,
    Plan,
    Pooling,
    Project,
    Sparse,
    Standardize,
    check_runs_forward,
)

OPSET, IR = 17, 8  # fixed: what runtimes since 2022 read
DOUBLE = np.dtype(np.float64)
SINGLE = np.dtype(np.float32)
NUMBERS = ("float32", "float64")


def onnx_model(plan: Plan, *, step: bool = False, numbers: str | None = None, name: str = "esn") -> bytes:
    """Return the ONNX file of a plan; step: a graph of one step; numbers: of the network, None for the plan's own."""
    try:
        import onnx
        from onnx import helper, numpy_helper
    except ImportError as problem:
        raise ImportError("the package onnx is missing: pip install 'echolearn[onnx]'") from problem
    if numbers not in (None, *NUMBERS):
        raise ExportError(f"numbers={numbers!r:.40} cannot be exported to ONNX; expected one of {NUMBERS}, or None.")
    if step:
        check_runs_forward(plan, "a step graph of ONNX", ("mean", "last"))
    g = Nodes()
    builder = _Builder(g, plan, np.dtype(numbers or plan.precision))
    facts = _facts(plan)
    single, of_state = onnx.TensorProto.FLOAT, helper.np_dtype_to_tensor_dtype(builder.dtype)
    answer, columns = plan.answer.output, plan.answer.n_out
    if step:
        time = StepTime("state")
        Y = builder.step_outputs("x", time)
        builder.answer(Y, answer)
        g.nodes.append(helper.make_node("Concat", time.after, ["next_state"], "next_state", axis=0))
        size = sum(map(len, time.starts))
        facts["initial_state"] = json.dumps(np.concatenate(time.starts).tolist())
        facts |= _resumption_facts(plan, size)
        inputs = [("x", single, [plan.n_features]), ("state", of_state, [size])]
        outputs = [(answer, single, [columns]), ("next_state", of_state, [size])]
    else:
        inputs = [("X", single, ["steps", plan.n_features if plan.horizon is None else plan.horizon])]
        outputs = [(answer, single, [1 if plan.pooling else "steps", columns])]
        if plan.horizon is not None:
            inputs = [("X", single, ["known", plan.horizon]), ("steps", onnx.TensorProto.INT64, [])]
            if plan.n_features > plan.horizon:
                inputs.append(("exogenous", single, ["rows", plan.n_features - plan.horizon]))
            outputs = [(answer, single, ["forecast", columns])]
            builder.answer(builder.closed_loop(), answer)
        else:
            builder.answer(builder.sequence_outputs("X"), answer)
    graph = helper.make_graph(
        g.nodes,
        name,
        [helper.make_tensor_value_info(*one) for one in inputs],
        [helper.make_tensor_value_info(*one) for one in outputs],
        [numpy_helper.from_array(value, constant) for constant, value in g.constants.items()],
        doc_string=f"{plan.estimator} of echolearn: {plan.units} units, {'one step' if step else 'whole sequences'}",
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="echolearn", producer_version=__version__
    )
    model.ir_version = IR
    helper.set_model_props(model, facts)
    return bytes(model.SerializeToString(deterministic=True))


def _facts(plan: Plan) -> dict[str, str]:
    """Return the metadata of the file."""
    facts = {
        "echolearn": __version__,
        "estimator": plan.estimator,
        "columns": json.dumps(list(plan.answer.names) or [f"value {i}" for i in range(plan.answer.n_out)]),
        "per_step": json.dumps(plan.pooling is None),
    }
    if plan.answer.names:
        facts["classes"] = json.dumps(list(plan.answer.names))
    if plan.feature_names:
        facts["features"] = json.dumps(list(plan.feature_names))
    return facts


def _resumption_facts(plan: Plan, size: int) -> dict[str, str]:
    """Return the state in which the training series ended, where a step graph of this size can continue from it."""
    end = plan.resumption
    if end is None or plan.carried is not None:
        return {}
    fed_back = [] if end.fed_back is None or plan.horizon is not None else end.fed_back.tolist()
    state = [*end.state.tolist(), *fed_back]
    return {"resumed_state": json.dumps(state)} if len(state) == size else {}


@dataclass(frozen=True)
class _Builder:
    """The nodes of a plan. dtype: of the network."""

    g: Nodes
    plan: Plan
    dtype: np.dtype[np.generic]

    def weights(self, value: Array, word: str) -> str:
        return self.g.constant(value.astype(self.dtype), word)

    def encode(self, x: str, time: Time) -> str:
        """Return the inputs of the first layer; they are scaled in float64, as in a prediction."""
        g = self.g
        x = g.cast(x, DOUBLE)
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
                frame, known = frames[0], inner.cast(states[0], DOUBLE)
                filled = inner("Where", inner("IsNaN", frame), known, frame)
                return [inner.cast(filled, self._state_dtype(time))], filled

            start = gaps.values.astype(self._state_dtype(time))
            filled = time.recur(g, [start], [x], carry, reverse=False)
        else:
            filled = g("Where", missing, g.constant(gaps.values, "fill"), x)
        if not gaps.flagged.any():
            return filled
        flags = g("Gather", g.cast(missing, DOUBLE), g.whole(*np.flatnonzero(gaps.flagged).tolist()), axis=-1)
        return g("Concat", filled, flags, axis=-1)

    def _state_dtype(self, time: Time) -> np.dtype[np.generic]:
        """Return the type of known values: that of the one vector of states of a step graph, or float64."""
        return self.dtype if isinstance(time, StepTime) else DOUBLE

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
        """Return states and outputs of a layer that is not pooled."""
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
            drive = g("Add", g("MatMul", x, self.weights(layer.W[:, units], "W")), self.weights(layer.bias[units], "bias"))
            step = self._update(layer, units)

            def body(
                inner: Nodes, states: list[str], frames: list[str], step: _Update = step
            ) -> tuple[list[str], str]:
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
        g, step, W_fb = self.g, self._update(layer, ~layer.backward), self.weights(layer.W_fb, "W_fb")
        drive = g("Add", g("MatMul", x, self.weights(layer.W, "W")), self.weights(layer.bias, "bias"))

        def body(inner: Nodes, states: list[str], frames: list[str]) -> tuple[list[str], str]:
            h, y = states
            h = step(inner, h, inner("Add", frames[0], inner("MatMul", y, W_fb)))
            Y = self.readout(inner, layer, h, frames[1])
            return [h, inner("Softmax", Y, axis=-1) if layer.softmax else Y], inner("Concat", h, Y, axis=-1)

        starts = [layer.initial_state.astype(self.dtype), np.zeros(layer.n_out, self.dtype)]
        return time.recur(g, starts, [drive, x], body, reverse=False)

    def _update(self, layer: Layer, units: Array) -> _Update:
        W_rec = layer.W_rec if units.all() else _of_units(layer.W_rec, units)
        return _Update(self, W_rec, layer.leak[units], layer.activation)

    def readout(self, g: Nodes, layer: Layer, H: str, x: str) -> str:
        """Return the outputs for rows of states, or of statistics of states, and of inputs."""
        Y = g("MatMul", H, self.weights(layer.U_states, "U_states"))
        if len(layer.U_inputs):
            Y = g("Add", Y, g("MatMul", x, self.weights(layer.U_inputs, "U_inputs")))
        return g("Add", Y, self.weights(layer.intercept, "intercept"))

    def sequence_outputs(self, x: str) -> str:
        """Return the outputs of the top layer for a whole sequence."""
        time = ScanTime()
        x = self.top_inputs(self.encode(x, time), time)
        pooling = self.plan.pooling
        if pooling is None:
            return self.layer(self.plan.top, x, time)[1]
        return _Pooler(self, pooling).outputs(x, time)

    def step_outputs(self, x: str, time: StepTime) -> str:
        """Return the outputs of the top layer for one frame; with a pooling, for the sequence so far."""
        g, pooling = self.g, self.plan.pooling
        x = self.top_inputs(self.encode(x, time), time)
        Y = self.layer(self.plan.top, x, time)[1]
        if pooling is None or pooling.kind == "last":
            return Y

        def mean(inner: Nodes, states: list[str], frames: list[str]) -> tuple[list[str], str]:
            before, count = states
            count = inner("Add", count, self.weights(np.ones(1), "one"))
            k = inner("Sub", count, self.weights(np.full(1, float(pooling.washout)), "washout"))
            settled = inner("Greater", k, self.weights(np.zeros(1), "zero"))
            share = inner("Div", inner("Sub", frames[0], before), inner("Max", k, self.weights(np.ones(1), "one")))
            after = inner("Add", before, inner("Where", settled, share, inner("Sub", share, share)))
            return [after, count], inner("Where", settled, after, frames[0])

        starts = [np.zeros(self.plan.answer.n_out, self.dtype), np.zeros(1, self.dtype)]
        return time.recur(g, starts, [Y], mean, reverse=False)

    def closed_loop(self) -> str:
        """Return the outputs for the steps that follow X, each of which is the input of the one after it.

        The rows are those of X, then empty ones whose values the network fills in itself. Without X it continues the
        training series: its last state and value are the start.
        """
        g, plan, layer = self.g, self.plan, self.plan.top
        dims, end = plan.horizon, plan.resumption
        assert dims is not None
        n = g("Shape", "X", start=0, end=1)
        steps = g("Reshape", "steps", g.whole(1))
        some = g("Min", n, g.whole(1))  # 0 without X, otherwise 1
        more = g("Sub", steps, some)
        hole = g("Expand", g.constant(np.zeros((1, dims), SINGLE)), g("Concat", more, g.whole(1), axis=0))
        x = g("Concat", "X", hole, axis=0)
        given = g("Expand", g.constant(np.ones((1, 1), self.dtype)), g("Concat", n, g.whole(1), axis=0))
        empty = g("Expand", g.constant(np.zeros((1, 1), self.dtype)), g("Concat", more, g.whole(1), axis=0))
        if plan.n_features > dims:
            x = g("Concat", x, g.rows("exogenous", some, g.whole(2**62)), axis=-1)
        z, known = self.encode(x, ScanTime()), g("Concat", given, empty, axis=0)
        starts = [layer.initial_state.astype(self.dtype), np.zeros(dims, self.dtype)]
        first = [g.constant(start, "start") for start in starts]
        if end is not None and end.fed_back is not None:
            fresh = g("Greater", some, g.whole(0))
            first = [
                g("Where", fresh, name, self.weights(value, "resumed"))
                for name, value in zip(first, (end.state, end.fed_back), strict=True)
            ]
        step = self._update(layer, ~layer.backward)
        W, bias = self.weights(layer.W, "W"), self.weights(layer.bias, "bias")

        def body(inner: Nodes, states: list[str], frames: list[str]) -> tuple[list[str], str]:
            h, value = states
            frame, flag = frames
            now = inner("Slice", frame, inner.whole(0), inner.whole(dims), inner.whole(0))
            own = inner("Where", inner("Greater", flag, self.weights(np.full(1, 0.5), "half")), now, value)
            e = inner("Slice", frame, inner.whole(dims), inner.whole(plan.n_features), inner.whole(0))
            x = inner("Concat", own, e, axis=-1) if plan.n_features > dims else own
            h = step(inner, h, inner("Add", inner("MatMul", x, W), bias))
            Y = self.readout(inner, layer, h, x)
            return [h, Y], Y

        Y = ScanTime(first).recur(g, starts, [z, known], body, reverse=False)
        return g.rows(Y, g("Neg", steps), g.whole(2**62))

    def answer(self, Y: str, name: str) -> None:
        """Add the nodes from outputs to the answer, which gets this name; in float64, as in a prediction."""
        g, answer = self.g, self.plan.answer
        Y = g.cast(Y, DOUBLE)
        if answer.kind == "softmax":
            found = g("Softmax", Y, axis=-1)
        elif answer.kind == "values":
            found = g("Add", g("Mul", Y, g.constant(answer.scale, "scale")), g.constant(answer.mean, "mean"))
        elif answer.kind == "independent":
            distance = g("Sub", Y, g.constant(np.full(1, 0.5)))
            found = g("Sigmoid", g("Mul", distance, g.constant(answer.scale, "slope")))
        else:
            found = self._nearest_distribution(Y)
        from onnx import TensorProto, helper

        g.nodes.append(helper.make_node("Cast", [found], [name], name, to=TensorProto.FLOAT))

    def _nearest_distribution(self, Y: str) -> str:
        """Return the nearest points of the simplex: all classes are lowered by one amount and cut off at 0."""
        g, n = self.g, self.plan.answer.n_out
        ordered = g("TopK", Y, g.whole(n), outputs=2, axis=-1)
        total = g("Sub", g("CumSum", ordered, g.constant(np.array(-1), "axis")), g.constant(np.ones(1)))
        amounts = g("Div", total, g.constant(np.arange(1.0, n + 1), "counts"))
        stays = g.cast(g("Greater", ordered, amounts), np.dtype(np.int64))
        kept = g("Max", g("ReduceSum", stays, g.whole(-1), keepdims=1), g.whole(1))
        amount = g("GatherElements", amounts, g("Sub", kept, g.whole(1)), axis=-1)
        P = g("Max", g("Sub", Y, amount), g.constant(np.zeros(1)))
        return g("Div", P, g("ReduceSum", P, g.whole(-1), keepdims=1))


@dataclass(frozen=True)
class _Update:
    """Eq. 1 for one step: from the state before and the drive W'x + W_fb y + bias to the state after."""

    builder: _Builder
    W_rec: Sparse
    leak: Array
    activation: str

    def __call__(self, g: Nodes, h: str, drive: str) -> str:
        z = g("Add", drive, self._recurrent(g, h))
        if self.activation != "identity":
            z = g({"tanh": "Tanh", "sigmoid": "Sigmoid", "relu": "Relu"}[self.activation], z)
        if (self.leak == 1).all():
            return z
        return g("Add", h, g("Mul", self.builder.weights(self.leak, "leak"), g("Sub", z, h)))

    def _recurrent(self, g: Nodes, h: str) -> str:
        """Return W_rec h: by gathering k states per unit where that takes less room than a dense matrix."""
        N, k = len(self.leak), self.W_rec.widest
        rows = np.repeat(np.arange(N), np.diff(self.W_rec.indptr))
        if 2 * k >= N:
            dense = np.zeros((N, N))
            np.add.at(dense, (self.W_rec.indices, rows), self.W_rec.data)
            return g("MatMul", h, self.builder.weights(dense, "W_rec"))
        place, weight = np.zeros((k, N), np.int32), np.zeros((k, N))
        position = np.arange(len(rows)) - self.W_rec.indptr[rows]
        place[position, rows], weight[position, rows] = self.W_rec.indices, self.W_rec.data
        taken = g("Gather", h, g.constant(place, "from"), axis=-1)
        return g("ReduceSum", g("Mul", taken, self.builder.weights(weight, "W_rec")), g.whole(-2), keepdims=0)


@dataclass(frozen=True)
class _Pooler:
    """The outputs of the top layer for the states of a whole sequence."""

    builder: _Builder
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
        steps = g("Range", g.constant(np.array(0)), g("Squeeze", g("Shape", x, start=0, end=1)), g.constant(np.array(1)))
        for delay in self.pooling.delays:
            row = g("Max", g("Sub", steps, g.whole(delay)), g.whole(0))
            parts.append(g("Gather", x, row, axis=0) if delay else x)
        return g("Concat", *parts, axis=-1) if len(parts) > 1 else parts[0]

    def _summary(self, layer: Layer, H: str) -> str:
        """Return the outputs for the statistics of states; these and the readout are in float64."""
        builder, g = self.builder, self.builder.g
        assert self.pooling.thresholds is not None
        after = g.rows(H, g.whole(self.pooling.washout), g.whole(2**62))
        S = g.cast(after, DOUBLE)
        mean = g("ReduceMean", S, axes=[0], keepdims=1)
        square = g("ReduceMean", g("Mul", S, S), axes=[0], keepdims=1)
        variance = g("Max", g("Sub", square, g("Mul", mean, mean)), g.constant(np.zeros(1)))
        columns = [mean, g("Sqrt", variance)]
        columns += [g(f"Reduce{word}", S, axes=[0], keepdims=1) for word in ("Max", "Min")]
        columns.append(g.cast(self._last(layer, H), DOUBLE))
        for limits in self.pooling.thresholds:
            above = g.cast(g("Greater", after, builder.weights(limits, "threshold")), DOUBLE)
            columns.append(g("ReduceMean", above, axes=[0], keepdims=1))
        row = g("Concat", *columns, axis=-1)
        Y = g("MatMul", row, g.constant(layer.U_states, "U_states"))
        return g("Add", Y, g.constant(layer.intercept, "intercept"))


def _of_units(matrix: Sparse, units: Array) -> Sparse:
    """Return the matrix of some units, which have no connections with the others."""
    number, counts = np.cumsum(units) - 1, np.diff(matrix.indptr)
    kept = np.repeat(units, counts)
    indptr = np.concatenate([[0], np.cumsum(counts[units])])
    return Sparse(indptr, number[matrix.indices[kept]], matrix.data[kept])


