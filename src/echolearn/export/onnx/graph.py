"""ONNX: a plan as a graph of standard operators (docs/howto/export.md). Only writing needs the package onnx.

Outside the `Scan` whole matrices are multiplied; inside it there is only what one step needs of the one before.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

from echolearn import __version__
from echolearn.exceptions import ExportError
from echolearn.export.onnx.layers import Builder
from echolearn.export.onnx.nodes import FLOAT32, FLOAT64, Nodes, ScanTime, StepTime, Time
from echolearn.export.plan import check_runs_forward
from echolearn.modelfile.schema import THRESHOLD_WIDTH
from echolearn.runtime._plan import Plan, Summary
from echolearn.validation import Array

OPSET_VERSION, IR_VERSION = 17, 8  # fixed: what runtimes since 2022 read
Shape = list[int | str]
PRECISIONS = ("float32", "float64")


def onnx_model(plan: Plan, *, step: bool = False, numbers: str | None = None, name: str = "esn") -> bytes:
    """Return the ONNX file of a plan; step: a graph of one step; numbers: of the network, None for the plan's own."""
    try:
        import onnx
        from onnx import helper, numpy_helper
    except ImportError as problem:
        raise ImportError("the package onnx is missing: pip install 'echolearn[onnx]'") from problem
    if numbers not in (None, *PRECISIONS):
        raise ExportError(f"numbers={numbers!r:.40} cannot be exported to ONNX; expected one of {PRECISIONS}, or None.")
    if step:
        check_runs_forward(plan, "a step graph of ONNX")
    g = Nodes()
    builder = Builder(g, plan, np.dtype(numbers or plan.precision))
    facts, shapes = _facts(plan), _shapes(plan, step=step)
    state_dtype = builder.dtype if plan.summary is None else FLOAT64  # which has sums over many steps
    if step:
        time = StepTime("state", state_dtype)
        _add_answer(builder, _outputs(builder, "x", time), plan.answer.output)
        g.nodes.append(helper.make_node("Concat", time.after, ["next_state"], "next_state", axis=0))
        size = sum(map(len, time.starts))
        facts["initial_state"] = json.dumps(np.concatenate(time.starts).tolist())
        facts |= _resumption_facts(plan, size)
        shapes |= {"state": [size], "next_state": [size]}
    else:
        Y = _outputs(builder, "X", ScanTime()) if plan.series_dims is None else _closed_loop(builder)
        _add_answer(builder, Y, plan.answer.output)
    kinds = {"steps": onnx.TensorProto.INT64}
    kinds |= dict.fromkeys(("state", "next_state"), helper.np_dtype_to_tensor_dtype(state_dtype))
    values = {
        word: helper.make_tensor_value_info(word, kinds.get(word, onnx.TensorProto.FLOAT), shape)
        for word, shape in shapes.items()
    }
    outputs = [values.pop(word) for word in (plan.answer.output, "next_state") if word in values]
    graph = helper.make_graph(
        g.nodes,
        name,
        list(values.values()),
        outputs,
        [numpy_helper.from_array(value, constant) for constant, value in g.constants.items()],
        doc_string=f"{plan.estimator} of echolearn: {plan.units} units, {'one step' if step else 'whole sequences'}",
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET_VERSION)],
        producer_name="echolearn",
        producer_version=__version__,
    )
    model.ir_version = IR_VERSION
    helper.set_model_props(model, facts)
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _shapes(plan: Plan, *, step: bool) -> dict[str, Shape]:
    """Return the shapes of inputs and answers by name, without the state of a step graph."""
    columns = plan.answer.n_out
    if step:
        return {"x": [plan.n_features], plan.answer.output: [columns]}
    if plan.series_dims is None:
        return {"X": ["steps", plan.n_features], plan.answer.output: ["steps" if plan.per_step else 1, columns]}
    shapes: dict[str, Shape] = {"X": ["known", plan.series_dims], "steps": []}
    if plan.n_features > plan.series_dims:
        shapes["exogenous"] = ["rows", plan.n_features - plan.series_dims]
    return {**shapes, plan.answer.output: ["forecast", columns]}


def _facts(plan: Plan) -> dict[str, str]:
    """Return the metadata of the file."""
    facts = {
        "echolearn": __version__,
        "estimator": plan.estimator,
        "columns": json.dumps(list(plan.answer.names) or [f"value {i}" for i in range(plan.answer.n_out)]),
        "per_step": json.dumps(plan.per_step),
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
    fed_back = [] if end.fed_back is None or plan.series_dims is not None else end.fed_back.tolist()
    state = [*end.state.tolist(), *fed_back]
    return {"resumed_state": json.dumps(state)} if len(state) == size else {}


def _outputs(builder: Builder, x: str, time: Time) -> str:
    """Return the outputs of the network for a whole sequence, or for one frame."""
    x, summary = builder.encode(x, time), builder.plan.summary
    return builder.outputs(x, time) if summary is None else _summary_outputs(builder, summary, x, time)


def _closed_loop(builder: Builder) -> str:
    """Return the outputs for the steps that follow X, each of which is the input of the one after it.

    The rows are those of X, then empty ones whose values the network fills in itself. Without X it continues the
    training series: its last state and value are the start.
    """
    g, plan, layer = builder.g, builder.plan, builder.plan.layer
    dims, end = plan.series_dims, plan.resumption
    assert dims is not None
    n = g("Shape", "X", start=0, end=1)
    steps = g("Reshape", "steps", g.whole(1))
    has_X = g("Min", n, g.whole(1))  # 0 without X, otherwise 1
    more = g("Sub", steps, has_X)
    hole = g("Expand", g.constant(np.zeros((1, dims), FLOAT32)), g("Concat", more, g.whole(1), axis=0))
    x = g("Concat", "X", hole, axis=0)
    ones = g("Expand", g.constant(np.ones((1, 1), builder.dtype)), g("Concat", n, g.whole(1), axis=0))
    zeros = g("Expand", g.constant(np.zeros((1, 1), builder.dtype)), g("Concat", more, g.whole(1), axis=0))
    if plan.n_features > dims:
        x = g("Concat", x, g.rows("exogenous", has_X, g.whole(2**62)), axis=-1)
    z, known = builder.encode(x, ScanTime()), g("Concat", ones, zeros, axis=0)
    starts = [layer.initial_state.astype(builder.dtype), np.zeros(dims, builder.dtype)]
    first = [g.constant(start, "start") for start in starts]
    if end is not None and end.fed_back is not None:
        fresh = g("Greater", has_X, g.whole(0))
        first = [
            g("Where", fresh, name, builder.weights(value, "resumed"))
            for name, value in zip(first, (end.state, end.fed_back), strict=True)
        ]
    step = builder.update(layer, ~layer.backward)
    W, bias = builder.weights(layer.W, "W"), builder.weights(layer.bias, "bias")

    def body(inner: Nodes, states: list[str], frames: list[str]) -> tuple[list[str], str]:
        h, value = states
        frame, flag = frames
        now = inner("Slice", frame, inner.whole(0), inner.whole(dims), inner.whole(0))
        series = inner("Where", inner("Greater", flag, builder.weights(np.full(1, 0.5), "half")), now, value)
        e = inner("Slice", frame, inner.whole(dims), inner.whole(plan.n_features), inner.whole(0))
        x = inner("Concat", series, e, axis=-1) if plan.n_features > dims else series
        h = step(inner, h, inner("Add", inner("MatMul", x, W), bias))
        Y = builder.readout(inner, layer, h, x)
        return [h, Y], Y

    Y = ScanTime(first).recur(g, starts, [z, known], body, reverse=False)
    return g.rows(Y, g("Neg", steps), g.whole(2**62))


def _add_answer(builder: Builder, Y: str, name: str) -> None:
    """Add the nodes from outputs to the answer, which gets this name; in float64, as in a prediction."""
    g, answer = builder.g, builder.plan.answer
    Y = g.cast(Y, FLOAT64)
    if answer.kind == "softmax":
        result = g("Softmax", Y, axis=-1)
    elif answer.kind == "values":
        result = g("Add", g("Mul", Y, g.constant(answer.scale, "scale")), g.constant(answer.mean, "mean"))
    elif answer.kind == "independent":
        distance = g("Sub", Y, g.constant(np.full(1, 0.5)))
        result = g("Sigmoid", g("Mul", distance, g.constant(answer.scale, "slope")))
    else:
        result = _nearest_distribution(builder, Y)
    from onnx import TensorProto, helper

    g.nodes.append(helper.make_node("Cast", [result], [name], name, to=TensorProto.FLOAT))


def _nearest_distribution(builder: Builder, Y: str) -> str:
    """Return the nearest points of the simplex: all classes are lowered by one amount and cut off at 0."""
    g, n = builder.g, builder.plan.answer.n_out
    ordered = g("TopK", Y, g.whole(n), outputs=2, axis=-1)
    total = g("Sub", g("CumSum", ordered, g.constant(np.array(-1), "axis")), g.constant(np.ones(1)))
    amounts = g("Div", total, g.constant(np.arange(1.0, n + 1), "counts"))
    stays = g.cast(g("Greater", ordered, amounts), np.dtype(np.int64))
    kept = g("Max", g("ReduceSum", stays, g.whole(-1), keepdims=1), g.whole(1))
    amount = g("GatherElements", amounts, g("Sub", kept, g.whole(1)), axis=-1)
    P = g("Max", g("Sub", Y, amount), g.constant(np.zeros(1)))
    return g("Div", P, g("ReduceSum", P, g.whole(-1), keepdims=1))


# ---------------- The outputs for whole series


def _summary_outputs(builder: Builder, summary: Summary, x: str, time: Time) -> str:
    """Return one row of outputs for inputs x (steps, n_in), or the outputs (n_out,) after one more frame x (n_in,)."""
    g = builder.g
    means, extremes, last = (_statistics if isinstance(time, ScanTime) else _kept_statistics)(builder, summary, x, time)
    mean, square, *above = means
    variance = g("Max", g("Sub", square, g("Mul", mean, mean)), g.constant(np.zeros(1)))
    row = g("Concat", mean, g("Sqrt", variance), *extremes, g.cast(last, FLOAT64), *above, axis=-1)
    Y = g("MatMul", row, g.constant(builder.plan.layer.U_states, "U_states"))
    return g("Add", Y, g.constant(builder.plan.layer.intercept, "intercept"))


def _statistics(builder: Builder, summary: Summary, x: str, time: Time) -> tuple[list[str], list[str], str]:
    """Return the means of terms, the extremes and the last states of a sequence."""
    g = builder.g
    H = builder.states(builder.plan.layer, _delayed(g, x, summary.delays), time)
    terms = _terms(builder, summary, g.rows(H, g.whole(summary.washout), g.whole(2**62)))
    means = [g("ReduceMean", term, axes=[0], keepdims=1) for term in terms]
    extremes = [g(f"Reduce{word}", terms[0], axes=[0], keepdims=1) for word in ("Max", "Min")]
    return means, extremes, g("Gather", H, g.whole(-1), axis=0)


def _kept_statistics(builder: Builder, summary: Summary, x: str, time: Time) -> tuple[list[str], list[str], str]:
    """Return the same of all frames so far; steps of the washout are answered from the present state alone."""
    g, layer, one = builder.g, builder.plan.layer, builder.g.constant(np.ones(1))

    def kept(start: Array, now: Callable[[str], str]) -> str:
        """Return what follows from what the step before kept."""

        def body(inner: Nodes, states: list[str], frames: list[str]) -> tuple[list[str], str]:
            after = now(states[0])
            return [after], after

        return time.recur(g, [start], [], body, reverse=False)

    steps = kept(np.zeros(1), lambda before: g("Add", before, one))
    count, n = 2 + summary.delays[-1], layer.n_in // len(summary.delays) // 2  # of frames, and their numbers
    begins, copies = g("Equal", steps, one), g("Tile", x, g.whole(count))

    def moved(past: str) -> str:
        return g("Concat", x, g("Slice", g("Where", begins, copies, past), g.whole(0), g.whole(-n), g.whole(0)), axis=0)

    frames = g("Reshape", kept(np.zeros(count * n, builder.dtype), moved), g.whole(count, n))
    seen, before = (g("Gather", frames, g.whole(*(d + k for d in summary.delays)), axis=0) for k in (0, 1))
    both = g("Concat", seen, g("Sub", seen, before), axis=-1)
    H = builder.states(layer, g("Reshape", both, g.whole(-1)), time)
    fresh = g("LessOrEqual", steps, g.constant(np.full(1, summary.washout + 1.0)))

    def gathered(operator: str, value: str) -> str:
        return kept(np.zeros(layer.units), lambda before: g("Where", fresh, value, g(operator, value, before)))

    terms = _terms(builder, summary, H)
    total = g("Max", g("Sub", steps, g.constant(np.full(1, float(summary.washout)))), one)
    means = [g("Div", gathered("Add", term), total) for term in terms]
    return means, [gathered(word, terms[0]) for word in ("Max", "Min")], H


def _terms(builder: Builder, summary: Summary, H: str) -> list[str]:
    """Return states, their squares, and how far they are above each threshold, in float64."""
    g = builder.g
    S = g.cast(H, FLOAT64)
    slope, half, none, one = (builder.weights(np.array(v), "step") for v in (1 / THRESHOLD_WIDTH, 0.5, 0.0, 1.0))
    above = []
    for limits in summary.thresholds:
        steps = g("Add", g("Mul", g("Sub", H, builder.weights(limits, "threshold")), slope), half)
        above.append(g.cast(g("Clip", steps, none, one), FLOAT64))
    return [S, g("Mul", S, S), *above]


def _delayed(g: Nodes, x: str, delays: tuple[int, ...]) -> str:
    """Return x_{t-d} and x_{t-d} - x_{t-d-1} for every delay d; before the first step there is the first frame."""
    steps = g("Range", g.constant(np.array(0)), g("Squeeze", g("Shape", x, start=0, end=1)), g.constant(np.array(1)))

    def before(x: str, delay: int) -> str:
        return g("Gather", x, g("Max", g("Sub", steps, g.whole(delay)), g.whole(0)), axis=0) if delay else x

    both = g("Concat", x, g("Sub", x, before(x, 1)), axis=-1)
    return g("Concat", *(before(both, delay) for delay in delays), axis=-1) if len(delays) > 1 else both
