"""C: a plan as one header of C99 without allocation, whose only include is math.h (docs/howto/export.md)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from echolearn import __version__
from echolearn.exceptions import ExportError
from echolearn.export.c.text import (
    Constants,
    Struct,
    c_number,
    c_string,
    check_name,
    fill_in,
    smallest_unsigned,
    templates,
)
from echolearn.export.c.weights import (
    MAX_STATE,
    MAX_WEIGHTS,
    UNITS_PER_GROUP,
    answers_in,
    in_groups,
    is_rather_dense,
    padded,
    quantize_entries,
    quantize_rows,
)
from echolearn.export.plan import check_runs_forward
from echolearn.runtime._plan import Clip, FillGaps, Layer, Plan, Project, Standardize
from echolearn.validation import Array

C_NUMBERS = ("float32", "float64", "int16", "int8")
NETWORK_TEMPLATES = templates("network.h")
EXPRESSIONS = {
    "tanh": "$N_tanh(z[i])",
    "sigmoid": "($R)0.5 + ($R)0.5 * $N_tanh(z[i])",
    "relu": "z[i] < 0 ? 0 : z[i]",
    "identity": "z[i]",
}
INTEGER_TYPES = {"int16": "short", "int8": "signed char"}
NUMBER_WORDS = {
    "float32": "weights, states and sums are float",
    "float64": "weights, states and sums are double; frames and answers are float",
    "int16": "weights are short with one scale per row, states and inputs are rounded to 16 bits at every step, and "
    "their\n *     products are summed in long long; scaling, bias, activation, leak and answers are float",
    "int8": "weights are signed char with one scale per row, states and inputs are rounded to 16 bits at every step, "
    "and\n *     their products are summed in $A; scaling, bias, activation, leak and answers are float",
}


def c_header(plan: Plan, *, name: str = "esn", numbers: str | None = None, X: Array | None = None) -> str:
    """Return the header; numbers: of weights and states, None for the plan's own; X: what losses are measured on."""
    check_name(name)
    numbers = plan.precision if numbers is None else numbers
    if numbers not in C_NUMBERS:
        raise ExportError(f"numbers={numbers!r:.40} cannot be exported to C; expected one of {C_NUMBERS}, or None.")
    check_runs_forward(plan, "C")
    writer = _Writer(plan, name, numbers)
    functions = writer.functions()
    names = writer.class_names()
    tokens = writer.tokens | {
        "TITLE": f"{plan.estimator} of echolearn {__version__}: {plan.units} units",
        "CONSTANTS": str(writer.constants.size),
        "STATE": str(writer.state.size()),
        "NUMBERS": NUMBER_WORDS[numbers],
        "LOSS": "" if X is None else _loss(plan, X, numbers),
        "FEATURES": str(plan.n_features),
        "OUTPUTS": str(plan.answer.n_out),
        "OUTPUT": plan.answer.output,
        "MORE": _more(plan),
        "MEANING": _meaning(plan),
        "UNITS": str(plan.units),
        "CONSTANT_TEXT": "\n\n".join([*writer.constants.text, *names]),
        "FIELDS": writer.state.lines(),
        "FUNCTIONS": functions,
    }
    return fill_in(fill_in(NETWORK_TEMPLATES["header"], tokens), writer.tokens)


def _more(plan: Plan) -> str:
    """Return what else can be called."""
    lines = []
    if plan.resumption is not None:
        lines.append("$N_resume(&state);              instead of reset: continue where the training series ended")
    if plan.series_dims is not None:
        arguments = "&state, e, out" if plan.n_features > plan.series_dims else "&state, out"
        lines.append(f"$N_next({arguments});{' ' * (23 - len(arguments))}its own last answer takes the place of x")
    return "".join(f" *     {line}\n" for line in lines)


def _meaning(plan: Plan) -> str:
    """Return what x and out are, in words."""
    if plan.series_dims is not None:
        more = plan.n_features - plan.series_dims
        known = f", then the {more} exogenous inputs of the next step (e)" if more else ""
        return f"x is the newest value of the series{known}; out is the value that follows."
    return "out is the answer for this frame."


def _loss(plan: Plan, X: Array, numbers: str) -> str:
    """Return a line that says how far answers in these numbers are from those of the model."""
    begin = f" * measured on {len(X)} frames, beside the model itself:"
    exact, rounded = answers_in(plan, X, plan.precision), answers_in(plan, X, numbers)
    if plan.answer.kind == "values":
        spread = np.maximum(exact.std(axis=0), 1e-300)
        error = float((np.sqrt(((rounded - exact) ** 2).mean(axis=0)) / spread).max())
        return f"{begin} the values differ by {error:.2g} of their standard deviation\n"
    changed = float((rounded.argmax(axis=1) != exact.argmax(axis=1)).mean())
    if plan.answer.kind == "independent":
        changed = float(((rounded > 0.5) != (exact > 0.5)).mean())
    worst = float(np.abs(rounded - exact).max())
    return f"{begin} {changed:.2%} of the labels change, probabilities by at most {worst:.2g}\n"


@dataclass
class _Writer:
    """The parts of a header under construction."""

    plan: Plan
    name: str
    numbers: str
    state: Struct = field(default_factory=Struct)

    def __post_init__(self) -> None:
        self.real = "double" if self.numbers == "float64" else "float"
        self.constants = Constants(self.name)
        longest = max(max(layer.units, layer.n_in, layer.n_out) for layer in self.plan.layers)
        exact = self.numbers == "int8" and longest * MAX_WEIGHTS["int8"] * MAX_STATE < 2**31
        entries = [layer.W_rec.indptr for layer in self.plan.layers]
        units = np.array([layer.units for layer in self.plan.layers])
        self.tokens = {
            "N": self.name,
            "R": self.real,
            "X": "expf" if self.real == "float" else "exp",
            "A": "int" if exact else "long long",
            "Q": INTEGER_TYPES.get(self.numbers, ""),
            "S": smallest_unsigned(np.concatenate(entries)),
            "I": smallest_unsigned(units),
        }

    @property
    def whole(self) -> bool:
        """Whether weights are whole numbers."""
        return self.numbers in INTEGER_TYPES

    def class_names(self) -> list[str]:
        """Return the names of classes and features, as arrays of strings."""
        lists = (("classes", self.plan.answer.names), ("features", self.plan.feature_names))
        return [
            f"static const char *const {self.name}_{word}[{len(names)}] = {{\n"
            + ",\n".join(f"    {c_string(name)}" for name in names)
            + "\n};"
            for word, names in lists
            if names
        ]

    def functions(self) -> str:
        """Return all functions; the constants and fields that they use are collected on the way."""
        plan = self.plan
        run = [self._layer(layer, number) for number, layer in enumerate(plan.layers, 1)]
        encode, answer = self._encode(), self._answer()
        self.state.add(self.real, "z", padded(max(layer.units for layer in plan.layers)), "work space")
        if self.whole:
            self.state.add("float", "p_scale", 0, "and its scale")
            for number, layer in enumerate(plan.layers, 1):
                self.state.add("float", f"q{number}_scale", 0, f"and the scale of q{number}")
                self.state.add("short", f"q{number}", layer.units, f"h{number} in 16 bits")
            widest = max(max(layer.n_in, 0 if layer.W_fb is None else layer.n_out) for layer in plan.layers)
            self.state.add("short", "p", widest, "inputs in 16 bits")
        activations = {layer.activation for layer in plan.layers}
        names = [f"tanh {self.real}"] if activations & {"tanh", "sigmoid"} else []
        names += ["copy", "whole products" if self.whole else "products"]
        more = [f"exp {self.real}", "softmax"] if any(layer.softmax for layer in plan.layers) else []
        more += ["nearest"] if plan.answer.kind == "nearest" else []
        texts = [
            *(NETWORK_TEMPLATES[name] for name in names),
            *(self._update(f) for f in sorted(activations)),
            *(NETWORK_TEMPLATES[name] for name in more),
            self._start("reset", None),
            *([self._start("resume", plan)] if plan.resumption is not None else []),
            _function("void $N_run($N_state *s)", "".join(run)),
            _function("void $N_answer($N_state *s, float *out)", answer),
            _function("void $N_step($N_state *s, const float *x, float *out)", encode),
            *([self._next()] if plan.series_dims is not None else []),
        ]
        return "\n".join(texts)

    def _update(self, f: str) -> str:
        """Return the function that updates states by the activation f."""
        limits = NETWORK_TEMPLATES["limits"] if self.real == "float" and f in ("tanh", "sigmoid") else ""
        # what brings z between -8 and 8, in loops of their own: compilers then use vectors for these and for the rest
        preparation = (NETWORK_TEMPLATES["half"] if f == "sigmoid" else "") + limits
        return fill_in(NETWORK_TEMPLATES["update"], {"F": f, "E": EXPRESSIONS[f], "PREPARATION": preparation})

    def _real(self, name: str, values: Array) -> str:
        return self.constants.add(name, values, self.real)

    def _product(self, name: str, matrix: Array, x: str, out: str, *, rounded: tuple[str, str]) -> str:
        """Return the call that adds x @ matrix to out; rounded: where x in 16 bits is, and its scale."""
        rows, columns = matrix.shape
        if not self.whole:
            return f"    $N_add_product({self._real(name, matrix)}, {x}, {out}, {rows}, {columns});\n"
        weights, scales = quantize_rows(matrix.T, self.numbers)
        stored = self.constants.add(name, weights, INTEGER_TYPES[self.numbers]), self._real(f"{name}_scales", scales)
        call = ", ".join([*stored, *rounded, out, str(columns), str(rows)])
        return f"    $N_add_product({call});\n"

    def _recurrent(self, layer: Layer, k: int) -> str:
        """Return the call that adds W_rec h to z."""
        W_rec, states = layer.W_rec, (f"s->q{k}", f"s->q{k}_scale")
        if len(W_rec.data) == 0:
            return ""
        if is_rather_dense(W_rec):
            return self._product(f"W_rec{k}", W_rec.dense().T, f"s->h{k}", "s->z", rounded=states)
        groups = in_groups(W_rec)
        count = len(groups.start) - 1
        start = self.constants.add(f"start{k}", groups.start, self.tokens["S"])
        places = self.constants.add(f"from{k}", groups.arrange(W_rec.indices), self.tokens["I"])
        if not self.whole:
            w = self._real(f"W_rec{k}", groups.arrange(W_rec.data))
            return f"    $N_add_recurrent({start}, {places}, {w}, s->h{k}, s->z, {count});\n"
        weights, scales = quantize_entries(W_rec, self.numbers)
        w = self.constants.add(f"W_rec{k}", groups.arrange(weights), INTEGER_TYPES[self.numbers])
        scale = self._real(f"W_rec{k}_scales", np.append(scales, np.zeros(count * UNITS_PER_GROUP - layer.units)))
        call = ", ".join([start, places, w, scale, *states])
        return f"    $N_add_recurrent({call}, s->z, {count});\n"

    def _layer(self, layer: Layer, k: int) -> str:
        """Return one step of a layer: from s->x{k} to its outputs, s->y or the first entries of s->x{k+1}."""
        N, n_out, y = layer.units, layer.n_out, "s->y" if layer.passing is None else f"s->x{k + 1}"
        inputs, states = ("s->p", "s->p_scale"), (f"s->q{k}", f"s->q{k}_scale")
        self.state.add(self.real, f"h{k}", N, f"states of layer {k}")
        self.state.add(self.real, f"x{k}", self._input_width() if k == 1 else layer.n_in, f"inputs of layer {k}")
        bias = self._real(f"bias{k}", np.append(layer.bias, np.zeros(padded(N) - N)))
        text = f"    /* layer {k} */\n    $N_copy({bias}, s->z, {padded(N)});\n"
        rounding = f"    s->p_scale = $N_round(s->x{k}, s->p, {layer.n_in});\n" if self.whole else ""
        text += rounding + self._product(f"W{k}", layer.W, f"s->x{k}", "s->z", rounded=inputs)
        text += self._recurrent(layer, k)
        if layer.W_fb is not None:
            self.state.add(self.real, "fed", n_out, "the last outputs, fed back")
            if self.whole:
                text += f"    s->p_scale = $N_round(s->fed, s->p, {n_out});\n"
            text += self._product(f"W_fb{k}", layer.W_fb, "s->fed", "s->z", rounded=inputs)
            text += rounding if len(layer.U_inputs) else ""
        text += f"    $N_update_{layer.activation}({self._real(f'leak{k}', layer.leak)}, s->z, s->h{k}, {N});\n"
        if self.whole:
            text += f"    s->q{k}_scale = $N_round(s->h{k}, s->q{k}, {N});\n"
        text += f"    $N_copy({self._real(f'intercept{k}', layer.intercept)}, {y}, {n_out});\n"
        text += self._product(f"U{k}", layer.U_states, f"s->h{k}", y, rounded=states)
        if len(layer.U_inputs):
            text += self._product(f"U_inputs{k}", layer.U_inputs, f"s->x{k}", y, rounded=inputs)
        if layer.passing is None:
            self.state.add(self.real, "y", n_out, "outputs")
            return text + self._feed_back(layer)
        return text + self._pass_on(layer, k)

    def _feed_back(self, layer: Layer) -> str:
        if layer.W_fb is None:
            return ""
        softmax = f"    $N_softmax(s->fed, {layer.n_out});\n" if layer.softmax else ""
        return f"    $N_copy(s->y, s->fed, {layer.n_out});\n{softmax}"

    def _pass_on(self, layer: Layer, k: int) -> str:
        """Return what completes the inputs of the layer above, whose first entries are the outputs of this one."""
        assert layer.passing is not None
        above, n = f"s->x{k + 1}", layer.n_out
        text = f"    $N_softmax({above}, {n});\n" if layer.softmax else ""
        scale = self._real(f"passing{k}", layer.passing.scale)
        text += _loop(n, f"{above}[i] *= {scale}[i];")
        if layer.passing.beside == "input":
            text += f"    $N_copy(s->x1, {above} + {n}, {self.plan.layers[0].n_in});\n"
        elif layer.passing.beside == "hidden":
            text += f"    $N_copy(s->h{k}, {above} + {n}, {layer.units});\n"
        return text

    def _input_width(self) -> int:
        """Return the largest number of inputs on the way from a frame to the first layer."""
        width = widest = self.plan.n_features
        for operation in self.plan.inputs:
            if isinstance(operation, FillGaps):
                width += int(operation.flagged.sum())
            elif isinstance(operation, Project):
                width = operation.matrix.shape[1]
            widest = max(widest, width)
        return widest

    def _encode(self) -> str:
        """Return the body of the function that takes a frame."""
        plan = self.plan
        text, width = _loop(plan.n_features, "s->x1[i] = ($R)x[i];"), plan.n_features
        for number, operation in enumerate(plan.inputs, 1):
            if isinstance(operation, Standardize):
                text += self._standardize(operation, number)
            elif isinstance(operation, Clip):
                low, high = (
                    self._real(f"{w}{number}", v) for w, v in (("low", operation.low), ("high", operation.high))
                )
                text += _loop(width, f"s->x1[i] = s->x1[i] < {low}[i] ? {low}[i] : s->x1[i];")
                text += _loop(width, f"s->x1[i] = s->x1[i] > {high}[i] ? {high}[i] : s->x1[i];")
            elif isinstance(operation, Project):
                text += self._project(operation, number)
                width = operation.matrix.shape[1]
            else:
                text += self._fill(operation, number, width)
                width += int(operation.flagged.sum())
        return text + "    $N_run(s);\n    $N_answer(s, out);\n"

    def _standardize(self, operation: Standardize, number: int) -> str:
        """Return (x - mean) / scale; in float the mean is the sum of two numbers, so that no digits are lost."""
        high = operation.mean.astype(np.float32 if self.real == "float" else np.float64)
        rest = operation.mean - high
        mean, scale = self._real(f"mean{number}", high), self._real(f"scale{number}", operation.scale)
        difference = f"(s->x1[i] - {mean}[i])"
        if rest.any():
            difference = f"({difference} - {self._real(f'mean_rest{number}', rest)}[i])"
        return _loop(len(high), f"s->x1[i] = {difference} / {scale}[i];")

    def _project(self, operation: Project, number: int) -> str:
        rows, columns = operation.matrix.shape
        field_name = f"projected{number}"
        self.state.add(self.real, field_name, columns, "work space")
        matrix = self._real(f"projection{number}", operation.matrix)
        return (
            _loop(columns, f"s->{field_name}[i] = 0;")
            + f"    {{\n        int i, j;\n        for (i = 0; i < {rows}; i++)\n"
            + f"            for (j = 0; j < {columns}; j++)\n"
            + f"                s->{field_name}[j] += s->x1[i] * {matrix}[i * {columns} + j];\n    }}\n"
            + f"    $N_copy(s->{field_name}, s->x1, {columns});\n"
        )

    def _fill(self, operation: FillGaps, number: int, width: int) -> str:
        """Return what takes the place of NaN, which is not equal to itself."""
        values, text = self._real(f"fill{number}", operation.values), ""
        for place, feature in enumerate(np.flatnonzero(operation.flagged).tolist(), width):
            text += f"    s->x1[{place}] = s->x1[{feature}] != s->x1[{feature}] ? 1 : 0;\n"
        if not operation.carry:
            return text + _loop(width, f"s->x1[i] = s->x1[i] != s->x1[i] ? {values}[i] : s->x1[i];")
        self.state.add(self.real, "known", width, "the last known features")
        text += _loop(width, "s->known[i] = s->x1[i] != s->x1[i] ? s->known[i] : s->x1[i];")
        return text + f"    $N_copy(s->known, s->x1, {width});\n"

    def _answer(self) -> str:
        """Return the body of the function from s->y to the answer."""
        answer, n = self.plan.answer, self.plan.answer.n_out
        source = "s->y"
        if answer.kind == "values":
            scale, mean = self._real("target_scale", answer.scale), self._real("target_mean", answer.mean)
            return _loop(n, f"out[i] = (float)({source}[i] * {scale}[i] + {mean}[i]);")
        if answer.kind == "independent":
            slope = self._real("slope", answer.scale)
            return _loop(n, f"out[i] = (float)(1 / (1 + $X({slope}[i] * (($R)0.5 - {source}[i]))));")
        function = "softmax" if answer.kind == "softmax" else "nearest"
        return f"    $N_{function}({source}, {n});\n" + _loop(n, f"out[i] = (float){source}[i];")

    def _start(self, function: str, plan: Plan | None) -> str:
        """Return the function that begins a sequence; plan: continue where its training series ended."""
        end = None if plan is None else plan.resumption
        text = ""
        for k, layer in enumerate(self.plan.layers, 1):
            text += self._set(f"h{k}", layer.initial_state if end is None else end.state, f"{function}_h{k}")
            if self.whole:
                text += f"    s->q{k}_scale = $N_round(s->h{k}, s->q{k}, {layer.units});\n"
        fields = {name for _, name, _, _ in self.state.fields}
        fed_back = np.zeros(self.plan.answer.n_out) if end is None or end.fed_back is None else end.fed_back
        zeros = np.zeros(self.plan.answer.n_out)
        text += self._set("y", fed_back if self.plan.series_dims is not None else zeros, f"{function}_y")
        if "fed" in fields:
            text += self._set("fed", fed_back, f"{function}_fed")
        gaps = self.plan.carried
        if gaps is not None:
            known = gaps.values if end is None or end.known is None else end.known
            text += self._set("known", np.where(np.isnan(known), gaps.values, known), f"{function}_known")
        return _function(f"void $N_{function}($N_state *s)", text)

    def _set(self, place: str, values: Array, name: str) -> str:
        """Return what sets an array of the state."""
        if not values.any():
            return _loop(len(values), f"s->{place}[i] = 0;")
        return f"    $N_copy({self._real(name, values)}, s->{place}, {len(values)});\n"

    def _next(self) -> str:
        """Return the function that takes the last answer for the newest value of the series."""
        plan = self.plan
        assert plan.series_dims is not None
        dims, more = plan.series_dims, plan.n_features - plan.series_dims
        text = f"    $N_copy(s->y, s->x1, {dims});\n"
        if more:
            (operation,) = plan.inputs
            assert isinstance(operation, Standardize)
            for j in range(more):
                mean, scale = (c_number(v, "double") for v in (operation.mean[dims + j], operation.scale[dims + j]))
                text += f"    s->x1[{dims + j}] = ($R)(((double)e[{j}] - {mean}) / {scale});\n"
        text += "    $N_run(s);\n    $N_answer(s, out);\n"
        exogenous = "const float *e, " if more else ""
        return _function(f"void $N_next($N_state *s, {exogenous}float *out)", text)


def _loop(n: int, statement: str) -> str:
    """Return a loop over i in a block of its own."""
    return f"    {{\n        int i;\n        for (i = 0; i < {n}; i++)\n            {statement}\n    }}\n"


def _function(signature: str, body: str) -> str:
    return f"static inline {signature}\n{{\n{body}}}\n"
