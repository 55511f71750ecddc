"""The meaning of a `Plan` in NumPy: slow and plain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from echolearn.export.c.weights import MAX_WEIGHTS, quantize_entries, quantize_rows, quantize_vectors
from echolearn.runtime._layers import softmax
from echolearn.runtime._opening import decode, encode
from echolearn.runtime._plan import Deep, Layer, Plan, Sparse, Stack, Summary
from echolearn.validation import Array

Product = Callable[[Array], Array]  # from rows (K, n) to rows (K, m)


@dataclass(frozen=True)
class Arithmetic:
    """In which numbers products are computed: "float32", "float64", "int16" or "int8"."""

    numbers: str

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """The numbers of everything but the products."""
        return np.dtype(np.float64 if self.numbers == "float64" else np.float32)

    def dense(self, matrix: Array) -> Product:
        """Return the product of rows with a matrix (n, m)."""
        if self.numbers not in MAX_WEIGHTS:
            M = matrix.astype(self.dtype)
            return lambda x: x @ M
        whole, scales = quantize_rows(matrix.T, self.numbers)
        return _whole_product(lambda q: q @ whole.T, scales)

    def sparse(self, matrix: Sparse) -> Product:
        """Return the product of rows (K, N) with the transpose of a matrix in compressed rows."""
        N = len(matrix.indptr) - 1
        rows, scales, data = np.repeat(np.arange(N), np.diff(matrix.indptr)), None, matrix.data.astype(self.dtype)
        if self.numbers in MAX_WEIGHTS:
            data, scales = quantize_entries(matrix, self.numbers)
        M = np.zeros((N, N), data.dtype)
        np.add.at(M, (rows, matrix.indices), data)
        return (lambda h: h @ M.T) if scales is None else _whole_product(lambda q: q @ M.T, scales)


def _whole_product(product: Product, scales: Array) -> Product:
    def apply(x: Array) -> Array:
        q, scale = quantize_vectors(x)
        return np.asarray(product(q).astype(np.float32) * (scale * scales))

    return apply


def evaluate(plan: Plan, X: Array, numbers: str | None = None) -> Array:
    """Return the answers (steps, outputs), or (1, outputs) with a summary, to one sequence X (steps, features).

    Of a forecaster, the answer of a step is the value that follows it. numbers: None for the plan's own precision.
    """
    how = Arithmetic(numbers or plan.precision)
    source = encode(plan.inputs, X).astype(how.dtype)
    if isinstance(plan.network, Deep):
        return decode(plan.answer, run_deep(plan.network, source, how))
    if plan.summary is None:
        Y = run_layer(plan.layer, source, how)[1]
    else:
        Y = _summary_outputs(plan.layer, plan.summary, source, how)
    return decode(plan.answer, Y)


def forecast(plan: Plan, X: Array, steps: int) -> Array:
    """Return the values (steps, outputs) that follow X (n, features); without exogenous inputs.

    X without rows continues the training series.
    """
    assert plan.series_dims is not None
    layer, how = plan.layer, Arithmetic(plan.precision)
    h, value = layer.initial_state, np.zeros(plan.series_dims)
    given = list(encode(plan.inputs, X))
    if not given:
        assert plan.resumption is not None
        assert plan.resumption.fed_back is not None
        h, value = plan.resumption.state, plan.resumption.fed_back
    out: list[Array] = []
    for t in range(len(given) + steps - (len(given) > 0)):
        H, Y = run_layer(layer, (given[t] if t < len(given) else value)[None].astype(how.dtype), how, start=h)
        h, value = H[0], Y[0]
        out.append(value)
    return decode(plan.answer, np.array(out[-steps:]))


def run_layer(layer: Layer, x: Array, how: Arithmetic, start: Array | None = None) -> tuple[Array, Array]:
    """Return the states (steps, N) and, unless its readout is of a summary, the outputs (steps, n_out) of a layer."""
    H = _states(layer, x, how, start)
    if layer.backward.any():
        H[:, layer.backward] = _states(layer, x[::-1], how, start)[::-1, layer.backward]
    return H, _readout(layer, how)(H, x) if len(layer.U_states) == layer.units else H[:, :0]


def _readout(layer: Layer, how: Arithmetic) -> Callable[[Array, Array], Array]:
    states, inputs = how.dense(layer.U_states), how.dense(layer.U_inputs)
    intercept = layer.intercept.astype(how.dtype)
    return lambda H, x: states(H) + (inputs(x) if len(layer.U_inputs) else 0) + intercept


def _states(layer: Layer, x: Array, how: Arithmetic, start: Array | None) -> Array:
    """Return the states (steps, N) of a layer whose units all run forward."""
    drive, recurrent = how.dense(layer.W)(x) + layer.bias.astype(how.dtype), how.sparse(layer.W_rec)
    fed_back = None if layer.W_fb is None else how.dense(layer.W_fb)
    readout = None if fed_back is None else _readout(layer, how)
    h, a = (layer.initial_state if start is None else start).astype(how.dtype)[None], layer.leak.astype(how.dtype)
    y = np.zeros((1, layer.n_out), how.dtype)
    H = np.empty((len(x), layer.units), how.dtype)
    for t in range(len(x)):
        z = drive[t] + recurrent(h) + (0 if fed_back is None else fed_back(y))
        h = h + a * (activate(layer.activation, z) - h)
        H[t] = h[0]
        if readout is not None:
            y = readout(h, x[t : t + 1])
            y = softmax(y) if layer.softmax else y
    return H


def run_deep(deep: Deep, x: Array, how: Arithmetic, start: Array | None = None) -> Array:
    """Return the outputs (steps, n_out), or (1, n_out), of a deep network; start: the states of all layers before."""
    h = np.zeros(deep.units, how.dtype) if start is None else start.astype(how.dtype)
    states = np.split(h, len(deep.stacks))
    q = np.hstack([_features(stack, x, before, how) for stack, before in zip(deep.stacks, states, strict=True)])
    q = q.mean(axis=0, keepdims=True) if deep.pooled else q
    return how.dense(deep.U)(q) + deep.intercept.astype(how.dtype)


def _features(stack: Stack, inputs: Array, start: Array, how: Arithmetic) -> Array:
    """Return the features (steps, C) of a stack: pairs of states are complex numbers that turn (reservoir/_deep.py)."""
    m = stack.units // 2
    x = how.dense(stack.W_0)(inputs) + stack.b_0.astype(how.dtype)
    for block, before in zip(stack.blocks, np.split(start, len(stack.blocks)), strict=True):
        U = how.dense(block.W_in)(_normalized(x))
        turn, gain = (block.re + 1j * block.im).astype(np.result_type(how.dtype, 1j)), block.gain.astype(how.dtype)
        drive, first = gain * (U[:, :m] + 1j * U[:, m:]), before[:m] + 1j * before[m:]
        forward, last = np.arange(m) < m - stack.backward_pairs, len(x) - 1
        H = np.empty_like(drive)
        for t in range(len(x)):
            H[t] = turn * (H[t - 1] if t else first) + drive[t]
        for t in range(last, -1, -1) if stack.backward_pairs else ():
            new = turn * (H[t + 1] if t < last else first) + drive[t]
            H[t, ~forward] = new[~forward]
        states = np.hstack([H.real, H.imag]).astype(how.dtype)
        x = (
            x
            + how.dense(block.W_out)(np.maximum(states + block.b.astype(how.dtype), 0))
            + block.b_out.astype(how.dtype)
        )
    return np.maximum(_normalized(x) + stack.c.astype(how.dtype), 0)


def _normalized(x: Array) -> Array:
    return np.asarray(x / np.sqrt((x * x).mean(axis=1, keepdims=True) + x.dtype.type(1e-5)))


def activate(name: str, z: Array) -> Array:
    """Return f(z)."""
    if name == "sigmoid":
        return np.asarray(0.5 + 0.5 * np.tanh(0.5 * z))
    return np.asarray(np.tanh(z) if name == "tanh" else np.maximum(z, 0) if name == "relu" else z)


def _summary_outputs(layer: Layer, summary: Summary, x: Array, how: Arithmetic) -> Array:
    """Return the outputs (1, n_out) for a whole series; the statistics and the readout are in float64."""
    both = np.hstack([x, x - x[np.maximum(np.arange(len(x)) - 1, 0)]])
    steps = np.maximum(np.arange(len(x))[:, None] - np.array(summary.delays), 0)
    H = run_layer(layer, both[steps].reshape(len(x), -1), how)[0]
    S = H[summary.washout :].astype(np.float64)
    mean = S.mean(axis=0)
    deviation = np.sqrt(np.maximum((S**2).mean(axis=0) - mean**2, 0))
    last = np.where(layer.backward, H[0], H[-1])
    above = np.clip((S - summary.thresholds[:, None].astype(H.dtype)) / 1e-3 + 0.5, 0, 1).mean(axis=1)
    row = np.hstack([mean, deviation, S.max(axis=0), S.min(axis=0), last, *above])[None]
    return _readout(layer, Arithmetic("float64"))(row, x[:0])
