"""One step of a network in C: eq. 1 with its readout (`LayerCode`), or the layers of a deep network (`DeepCode`).

A step leads from the inputs in s->x1 to the outputs in s->y.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from echolearn.export.c.text import Constants, Struct, fill_in, smallest_unsigned, templates
from echolearn.export.c.weights import (
    MAX_STATE,
    MAX_WEIGHTS,
    UNITS_PER_GROUP,
    in_groups,
    padded,
    quantize_entries,
    quantize_rows,
)
from echolearn.modelfile.schema import RMS_EPSILON, THRESHOLD_WIDTH
from echolearn.runtime._plan import Deep, FillGaps, Layer, Plan, Project, Resumption, Sparse, Summary
from echolearn.validation import Array

NETWORK_TEMPLATES = templates("network.h")
INTEGER_TYPES = {"int16": "short", "int8": "signed char"}


@dataclass
class Draft:
    """The parts of a header that the writers of inputs, network and answers share."""

    plan: Plan
    name: str
    numbers: str
    state: Struct = field(default_factory=Struct)

    def __post_init__(self) -> None:
        self.real = "double" if self.numbers == "float64" else "float"
        self.constants = Constants(self.name)
        self.tokens = {
            "N": self.name,
            "R": self.real,
            "X": "expf" if self.real == "float" else "exp",
            "Q": INTEGER_TYPES.get(self.numbers, ""),
        }

    @property
    def whole(self) -> bool:
        """Whether weights are whole numbers."""
        return self.numbers in INTEGER_TYPES

    @property
    def input_width(self) -> int:
        """The largest number of inputs on the way from a frame to the network."""
        width = widest = self.plan.n_features
        for operation in self.plan.inputs:
            if isinstance(operation, FillGaps):
                width += int(operation.flagged.sum())
            elif isinstance(operation, Project):
                width = operation.matrix.shape[1]
            widest = max(widest, width)
        return widest

    def sum_type(self, longest: int) -> str:
        """Return the type of sums of up to so many products of whole numbers."""
        exact = self.numbers == "int8" and longest * MAX_WEIGHTS["int8"] * MAX_STATE < 2**31
        return "int" if exact else "long long"

    def add_real(self, name: str, values: Array) -> str:
        """Add an array of floating-point numbers and return its name in C."""
        return self.constants.add(name, values, self.real)

    def add_matrices(self, name: str, matrices: Array) -> list[str]:
        """Add matrices (..., rows, columns) of weights; return their name in C, and that of the scales if any."""
        if not self.whole:
            return [self.add_real(name, matrices)]
        columns = np.swapaxes(matrices, -1, -2).reshape(-1, matrices.shape[-2])
        weights, scales = quantize_rows(columns, self.numbers)
        stored = self.constants.add(name, weights, INTEGER_TYPES[self.numbers])
        return [stored, self.add_real(f"{name}_scales", scales)]

    def product(self, name: str, matrix: Array, x: str, out: str, *, rounded: tuple[str, str]) -> str:
        """Return the call that adds x @ matrix to out; rounded: where x in 16 bits is, and its scale."""
        rows, columns = matrix.shape
        sizes = [str(columns), str(rows)] if self.whole else [str(rows), str(columns)]
        given = rounded if self.whole else (x,)
        return f"    $N_add_product({', '.join([*self.add_matrices(name, matrix), *given, out, *sizes])});\n"

    def set_field(self, place: str, values: Array, name: str) -> str:
        """Return what sets an array of the state."""
        if not values.any():
            return loop(len(values), f"s->{place}[i] = 0;")
        return f"    $N_copy({self.add_real(name, values)}, s->{place}, {len(values)});\n"


def loop(n: int, statement: str) -> str:
    """Return a loop over i in a block of its own."""
    return f"    {{\n        int i;\n        for (i = 0; i < {n}; i++)\n            {statement}\n    }}\n"


def function(signature: str, body: str) -> str:
    """Return a function of this body."""
    return f"static inline {signature}\n{{\n{body}}}\n"


EXPRESSIONS = {
    "tanh": "$N_tanh(z[i])",
    "sigmoid": "($R)0.5 + ($R)0.5 * $N_tanh(z[i])",
    "relu": "z[i] < 0 ? 0 : z[i]",
    "identity": "z[i]",
}


@dataclass
class LayerCode:
    """A reservoir with its readout."""

    draft: Draft
    layer: Layer

    def __post_init__(self) -> None:
        layer = self.layer
        self.draft.tokens |= {
            "A": self.draft.sum_type(max(layer.units, layer.n_in, layer.n_out)),
            "S": smallest_unsigned(np.array(max(len(layer.W_rec.data), np.count_nonzero(layer.W)))),
            "I": smallest_unsigned(np.array(max(layer.units, layer.n_in))),
        }

    def step(self) -> str:
        """Return the statements of one step."""
        draft, layer, N, n_out = self.draft, self.layer, self.layer.units, self.layer.n_out
        inputs, states = ("s->p", "s->p_scale"), ("s->q1", "s->q1_scale")
        draft.state.add(draft.real, "h1", N, "states of layer 1")
        draft.state.add(draft.real, "x1", draft.input_width, "inputs of layer 1")
        bias = draft.add_real("bias1", np.append(layer.bias, np.zeros(padded(N) - N)))
        text = f"    /* layer 1 */\n    $N_copy({bias}, s->z, {padded(N)});\n"
        rounding = f"    s->p_scale = $N_round(s->x1, s->p, {layer.n_in});\n" if draft.whole else ""
        text += rounding + draft.product("W1", layer.W, "s->x1", "s->z", rounded=inputs)
        text += self._recurrent(states)
        if layer.W_fb is not None:
            draft.state.add(draft.real, "fed", n_out, "the last outputs, fed back")
            if draft.whole:
                text += f"    s->p_scale = $N_round(s->fed, s->p, {n_out});\n"
            text += draft.product("W_fb1", layer.W_fb, "s->fed", "s->z", rounded=inputs)
            text += rounding if len(layer.U_inputs) else ""
        text += f"    $N_update_{layer.activation}({draft.add_real('leak1', layer.leak)}, s->z, s->h1, {N});\n"
        text += self._rounded_states()
        text += f"    $N_copy({draft.add_real('intercept1', layer.intercept)}, s->y, {n_out});\n"
        text += draft.product("U1", layer.U_states, "s->h1", "s->y", rounded=states)
        if len(layer.U_inputs):
            text += draft.product("U_inputs1", layer.U_inputs, "s->x1", "s->y", rounded=inputs)
        draft.state.add(draft.real, "y", n_out, "outputs")
        if layer.W_fb is not None:
            softmax = f"    $N_softmax(s->fed, {n_out});\n" if layer.softmax else ""
            text += f"    $N_copy(s->y, s->fed, {n_out});\n{softmax}"
        return text

    def _recurrent(self, states: tuple[str, str]) -> str:
        """Return the call that adds W_rec h to z."""
        draft, W_rec = self.draft, self.layer.W_rec
        if len(W_rec.data) == 0:
            return ""
        if 2 * len(W_rec.data) > self.layer.units**2:  # places would take more than the zeros do
            return draft.product("W_rec1", W_rec.dense().T, "s->h1", "s->z", rounded=states)
        if not draft.whole:
            return self._sparse_product("W_rec1", W_rec, "s->h1")
        groups = in_groups(W_rec)
        count = len(groups.start) - 1
        start = draft.constants.add("start1", groups.start, draft.tokens["S"])
        places = draft.constants.add("from1", groups.arrange(W_rec.indices), draft.tokens["I"])
        weights, scales = quantize_entries(W_rec, draft.numbers)
        w = draft.constants.add("W_rec1", groups.arrange(weights), INTEGER_TYPES[draft.numbers])
        filled = np.append(scales, np.zeros(count * UNITS_PER_GROUP - self.layer.units))
        call = ", ".join([start, places, w, draft.add_real("W_rec1_scales", filled), *states])
        return f"    $N_add_recurrent({call}, s->z, {count});\n"

    def _sparse_product(self, name: str, matrix: Sparse, x: str) -> str:
        """Return the call that adds the product of a matrix (N rows) and x to z, in floating-point numbers."""
        draft, groups = self.draft, in_groups(matrix)
        start = draft.constants.add(f"{name}_start", groups.start, draft.tokens["S"])
        places = draft.constants.add(f"{name}_from", groups.arrange(matrix.indices), draft.tokens["I"])
        w = draft.add_real(name, groups.arrange(matrix.data))
        return f"    $N_add_recurrent({start}, {places}, {w}, {x}, s->z, {len(groups.start) - 1});\n"

    def _rounded_states(self) -> str:
        return f"    s->q1_scale = $N_round(s->h1, s->q1, {self.layer.units});\n" if self.draft.whole else ""

    def add_work_space(self) -> None:
        """Add z, and the numbers that are rounded to 16 bits."""
        state, layer = self.draft.state, self.layer
        state.add(self.draft.real, "z", padded(layer.units), "work space")
        if self.draft.whole:
            state.add("float", "p_scale", 0, "and its scale")
            state.add("float", "q1_scale", 0, "and the scale of q1")
            state.add("short", "q1", layer.units, "h1 in 16 bits")
            widest = max(layer.n_in, 0 if layer.W_fb is None else layer.n_out)
            state.add("short", "p", widest, "inputs in 16 bits")

    def functions(self) -> list[str]:
        """Return the functions of products, and that which updates states by the activation."""
        f, real = self.layer.activation, self.draft.real
        curved = f in ("tanh", "sigmoid")
        kind = "whole " if self.draft.whole else ""
        names = [*([f"tanh {real}"] if curved else []), "copy", f"{kind}products", f"{kind}recurrent products"]
        limits = NETWORK_TEMPLATES["limits"] if real == "float" and curved else ""
        # what brings z between -8 and 8, in loops of their own: compilers then use vectors for these and for the rest
        preparation = (NETWORK_TEMPLATES["half"] if f == "sigmoid" else "") + limits
        update = fill_in(NETWORK_TEMPLATES["update"], {"F": f, "E": EXPRESSIONS[f], "PREPARATION": preparation})
        return [*(NETWORK_TEMPLATES[name] for name in names), update]

    def begin(self, word: str, end: Resumption | None) -> str:
        """Return what sets the states."""
        h = self.layer.initial_state if end is None else end.state
        return self.draft.set_field("h1", h, f"{word}_h1") + self._rounded_states()


@dataclass
class SummaryCode(LayerCode):
    """A reservoir that answers for whole series, from the statistics of its states so far."""

    summary: Summary

    def step(self) -> str:
        draft, layer, summary, N = self.draft, self.layer, self.summary, self.layer.units
        n, kept = layer.n_in // len(summary.delays) // 2, 2 + summary.delays[-1]
        for name, count, meaning in (
            ("h1", N, "states"),
            ("x1", draft.input_width, "inputs"),
            ("past", kept * n, "the latest inputs, newest first"),
            ("seen", layer.n_in, "what the units see of them"),
            ("high", N, "the largest states so far"),
            ("low", N, "the smallest"),
            ("above", N * len(summary.thresholds), "sums of shares above thresholds"),
            ("y", layer.n_out, "outputs"),
        ):
            draft.state.add(draft.real, name, count, meaning)
        draft.state.add("double", "total", N, "sums of states")
        draft.state.add("double", "squares", N, "and of their squares")
        draft.state.add("int", "steps", 0, "frames so far")
        places, units = np.nonzero(layer.W)
        order = np.argsort(units, kind="stable")
        indptr = np.append(0, np.cumsum(np.bincount(units, minlength=N)))
        W = Sparse(indptr, places[order], layer.W[places, units][order])
        delays = draft.constants.add("delays", np.array(summary.delays), "int")
        tokens = {"WIDTH": str(n), "KEPT": str(kept * n), "COUNT": str(len(summary.delays)), "DELAYS": delays}
        bias = draft.add_real("bias1", np.append(layer.bias, np.zeros(padded(N) - N)))
        text = fill_in(NETWORK_TEMPLATES["past"], tokens) + f"    $N_copy({bias}, s->z, {padded(N)});\n"
        text += self._sparse_product("W1", W, "s->seen") + self._recurrent(("", ""))
        text += f"    $N_update_tanh({draft.add_real('leak1', layer.leak)}, s->z, s->h1, {N});\n"
        return text + "    $N_summarize(s);\n"

    def functions(self) -> list[str]:
        draft, layer, summary = self.draft, self.layer, self.summary
        tokens = {
            "UNITS": str(layer.units),
            "LIMITS": str(len(summary.thresholds)),
            "OUTPUTS": str(layer.n_out),
            "WASHOUT": str(summary.washout),
            "SLOPE": str(round(1 / THRESHOLD_WIDTH)),
            "THRESHOLDS": draft.add_real("thresholds", summary.thresholds),
            "INTERCEPT": draft.constants.add("intercept1", layer.intercept, "double"),
            "WEIGHTS": draft.add_real("U1", layer.U_states),
            "ROOT": "sqrt",
        }
        tanh = f"static inline $R $N_tanh($R x)\n{{\n    return tanh{'f' * (draft.real == 'float')}(x);\n}}\n"
        update = {"F": "tanh", "E": EXPRESSIONS["tanh"], "PREPARATION": ""}
        names = ("copy", "products", "recurrent products")
        return [
            tanh,
            *(NETWORK_TEMPLATES[name] for name in names),
            fill_in(NETWORK_TEMPLATES["update"], update),
            fill_in(NETWORK_TEMPLATES["summary"], tokens),
        ]

    def begin(self, word: str, end: Resumption | None) -> str:
        return super().begin(word, end) + "    s->steps = 0;\n"


@dataclass
class DeepCode:
    """A deep network.

    All layers of all stacks have the same shapes (modelfile/schema.py), so that their weights are one array after
    another and one function serves them all: a compiler knows the sizes of its loops and uses vectors.
    """

    draft: Draft
    deep: Deep

    def __post_init__(self) -> None:
        self.C = self.deep.stacks[0].units
        self.layers = len(self.deep.stacks[0].blocks)
        self._layer = ""  # the function of a layer, from `step` on
        self.draft.tokens |= {
            "A": self.draft.sum_type(max(self.deep.n_in, len(self.deep.U))),
            "ROOT": "sqrtf" if self.draft.real == "float" else "sqrt",
        }

    def step(self) -> str:
        """Return the statements of one step."""
        draft, deep, C, state = self.draft, self.deep, self.C, self.draft.state
        state.add(draft.real, "h", deep.units, "states of all layers")
        state.add(draft.real, "x1", draft.input_width, "inputs")
        b_0 = draft.add_real("b_0", np.stack([stack.b_0 for stack in deep.stacks]))
        c = draft.add_real("c", np.stack([stack.c for stack in deep.stacks]))
        first = self._product("W_0", [stack.W_0 for stack in deep.stacks], "s->x1", "s->x", number="k")
        self._layer = self._layer_function()
        intercept = draft.add_real("intercept", deep.intercept)
        readout = self._product("U", [deep.U], "s->f", "s->y", number="")
        state.add(draft.real, "y", deep.n_out, "outputs")
        tokens = {
            "STACKS": str(len(deep.stacks)),
            "LAYERS": str(self.layers),
            "UNITS": str(C),
            "OUTPUTS": str(deep.n_out),
            "FIRST": "".join(f"    {line}\n" for line in first.splitlines()),
            "READOUT": readout.rstrip("\n"),
            "INTERCEPT": intercept,
            "b_0": b_0,
            "c": c,
        }
        return fill_in(NETWORK_TEMPLATES["deep step"], tokens)

    def _layer_function(self) -> str:
        """Return the function of a layer."""
        draft, C = self.draft, self.C
        blocks = [block for stack in self.deep.stacks for block in stack.blocks]
        names = {
            name: draft.add_real(name, np.stack([getattr(block, name) for block in blocks]))
            for name in ("re", "im", "gain", "b", "b_out")
        }
        drive = self._product("W_in", [block.W_in for block in blocks], "s->z", "s->u", number="k")
        add = self._product("W_out", [block.W_out for block in blocks], "s->z", "s->x", number="k")
        tokens = {"UNITS": str(C), "PAIRS": str(C // 2), "DRIVE": drive, "ADD": add, **names}
        return fill_in(NETWORK_TEMPLATES["deep layer"], tokens)

    def _product(self, name: str, matrices: list[Array], x: str, out: str, *, number: str) -> str:
        """Return what adds x @ matrices[number] to out; number: the name of an int, "" for the first."""
        stored = np.stack(matrices)
        rows, columns = stored.shape[1:]
        weights, *scales = self.draft.add_matrices(name, stored)
        if number:
            weights = f"{weights} + (long){number} * {rows * columns}"
            scales = [f"{scale} + {number} * {columns}" for scale in scales]
        if not scales:
            return f"    $N_add_product({weights}, {x}, {out}, {rows}, {columns});\n"
        call = ", ".join([weights, *scales, "s->p", "s->p_scale", out])
        return f"    s->p_scale = $N_round({x}, s->p, {rows});\n    $N_add_product({call}, {columns}, {rows});\n"

    def add_work_space(self) -> None:
        """Add what passes through the layers, their features, and the numbers that are rounded to 16 bits."""
        state, real, C = self.draft.state, self.draft.real, self.C
        state.add(real, "f", len(self.deep.U), "features for the readout")
        state.add(real, "x", C, "what passes through all layers")
        state.add(real, "z", C, "work space")
        state.add(real, "u", C, "work space")
        if self.draft.whole:
            state.add("float", "p_scale", 0, "the scale of p")
            state.add("short", "p", max(self.deep.n_in, len(self.deep.U)), "inputs of a product in 16 bits")

    def functions(self) -> list[str]:
        """Return the functions of products, normalisation, rectification, and that of a layer."""
        names = ["copy", "whole products" if self.draft.whole else "products", "deep parts"]
        parts = [NETWORK_TEMPLATES[name] for name in names]
        return [fill_in(part, {"EPSILON": str(RMS_EPSILON)}) for part in parts] + [self._layer]

    def begin(self, word: str, end: Resumption | None) -> str:
        """Return what sets the states."""
        return self.draft.set_field("h", np.zeros(self.deep.units) if end is None else end.state, f"{word}_h")


NetworkCode = LayerCode | DeepCode


def network_code(draft: Draft) -> NetworkCode:
    """Return what writes the network of a plan."""
    network = draft.plan.network
    if isinstance(network, Deep):
        return DeepCode(draft, network)
    summary = draft.plan.summary
    return LayerCode(draft, network) if summary is None else SummaryCode(draft, network, summary)
