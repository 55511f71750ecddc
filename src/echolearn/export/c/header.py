"""C: a plan as one header of C99 without allocation, whose only include is math.h (docs/howto/export.md)."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

import numpy as np

from echolearn import __version__
from echolearn.exceptions import ExportError
from echolearn.export.c.networks import (
    INTEGER_TYPES,
    NETWORK_TEMPLATES,
    Draft,
    NetworkCode,
    function,
    loop,
    network_code,
)
from echolearn.export.c.text import LINE_CHARACTERS, c_number, c_string, check_name, fill_in
from echolearn.export.c.weights import answers_in
from echolearn.export.plan import check_runs_forward
from echolearn.runtime._plan import Clip, Deep, FillGaps, Layer, Plan, Project, Resumption, Standardize
from echolearn.validation import Array

C_NUMBERS = ("float32", "float64", "int16", "int8")
NUMBER_WORDS = {
    "float32": "weights, states and sums are float",
    "float64": "weights, states and sums are double; frames and answers are float",
    "int16": "weights are short with one scale per row, states and inputs are rounded to 16 bits at every step, and "
    "their\n *     products are summed in long long; scaling, bias, activation, leak and answers are float",
    "int8": "weights are signed char with one scale per row, states and inputs are rounded to 16 bits at every step, "
    "and\n *     their products are summed in $A; scaling, bias, activation, leak and answers are float",
}
DEEP_NUMBER_WORDS = {
    numbers: f"weights are {kind} with one scale per row, the vectors that they multiply are rounded to 16 bits at "
    "every\n *     step, and their products are summed in $A; everything else is float"
    for numbers, kind in INTEGER_TYPES.items()
}


def c_header(plan: Plan, *, name: str = "esn", numbers: str | None = None, X: Array | None = None) -> str:
    """Return the header; numbers: of weights and states, None for the plan's own; X: what losses are measured on."""
    check_name(name)
    numbers = plan.precision if numbers is None else numbers
    if numbers not in C_NUMBERS:
        raise ExportError(f"numbers={numbers!r:.40} cannot be exported to C; expected one of {C_NUMBERS}, or None.")
    check_runs_forward(plan, "C")
    if plan.summary is not None and numbers in INTEGER_TYPES:
        raise ExportError(f"{plan.estimator} needs floating-point numbers in C; given numbers={numbers!r}.")
    draft = Draft(plan, name, numbers)
    writer = _Writer(draft, network_code(draft))
    functions = writer.functions()
    names = writer.class_names()
    words = NUMBER_WORDS | (DEEP_NUMBER_WORDS if isinstance(plan.network, Deep) else {})
    tokens = draft.tokens | {
        "TITLE": f"{plan.estimator} of echolearn {__version__}: {plan.units} units",
        "CONSTANTS": str(draft.constants.size),
        "STATE": str(draft.state.size()),
        "NUMBERS": words[numbers],
        "LOSS": "" if X is None else _loss(plan, X, numbers),
        "FEATURES": str(plan.n_features),
        "OUTPUTS": str(plan.answer.n_out),
        "FRAME": _count(plan.n_features, "numbers"),
        "ANSWER": _count(plan.answer.n_out, plan.answer.output),
        "MORE": _more(plan),
        "MEANING": _meaning(plan),
        "NAMES": _names_of_features(plan),
        "UNITS": str(plan.units),
        "CONSTANT_TEXT": "\n\n".join([*draft.constants.text, *names]),
        "FIELDS": draft.state.lines(),
        "FUNCTIONS": functions,
    }
    return fill_in(fill_in(NETWORK_TEMPLATES["header"], tokens), draft.tokens)


def _count(n: int, words: str) -> str:
    """Return `1 value` or `3 values`."""
    return f"{n} {words.removesuffix('s') if n == 1 else words}"


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
    if plan.summary is not None:
        return "out is the answer for the series up to this frame."
    return "out is the answer for this frame."


def _names_of_features(plan: Plan) -> str:
    """Return the names of the numbers in x, as lines of a comment that nothing in a name can end."""
    if not plan.feature_names:
        return ""
    names = ", ".join(name.encode("unicode_escape").decode("ascii") for name in plan.feature_names)
    safe = re.sub(r"[^A-Za-z0-9 _.,:;+/=()\[\]{}<>|~^!#%&@'\\-]", lambda match: f"\\x{ord(match[0]):02x}", names)
    lines = textwrap.wrap(f"x in this order: {safe}", LINE_CHARACTERS - 3, break_on_hyphens=False)
    return "".join(f" * {line}\n" for line in lines)


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
    """The functions around a network: inputs, answers, the beginning of a sequence."""

    draft: Draft
    network: NetworkCode

    def class_names(self) -> list[str]:
        """Return the names of classes and features, as arrays of strings."""
        plan, name = self.draft.plan, self.draft.name
        lists = (("classes", plan.answer.names), ("features", plan.feature_names))
        return [
            f"static const char *const {name}_{word}[{len(names)}] = {{\n"
            + ",\n".join(f"    {c_string(name)}" for name in names)
            + "\n};"
            for word, names in lists
            if names
        ]

    def functions(self) -> str:
        """Return all functions; the constants and fields that they use are collected on the way."""
        plan = self.draft.plan
        step, encode, answer = self.network.step(), self._encode(), self._answer()
        self.network.add_work_space()
        more = [f"exp {self.draft.real}", "softmax"] if plan.network.softmax else []
        more += ["nearest"] if plan.answer.kind == "nearest" else []
        texts = [
            *self.network.functions(),
            *(NETWORK_TEMPLATES[name] for name in more),
            self._start("reset", None),
            *([self._start("resume", plan.resumption)] if plan.resumption is not None else []),
            function("void $N_run($N_state *s)", step),
            function("void $N_answer($N_state *s, float *out)", answer),
            function("void $N_step($N_state *s, const float *x, float *out)", encode),
            *([self._next()] if plan.series_dims is not None else []),
        ]
        return "\n".join(texts)

    def _encode(self) -> str:
        """Return the body of the function that takes a frame."""
        plan = self.draft.plan
        text, width = loop(plan.n_features, "s->x1[i] = ($R)x[i];"), plan.n_features
        for number, operation in enumerate(plan.inputs, 1):
            if isinstance(operation, Standardize):
                text += self._standardize(operation, number)
            elif isinstance(operation, Clip):
                low = self.draft.add_real(f"low{number}", operation.low)
                high = self.draft.add_real(f"high{number}", operation.high)
                text += loop(width, f"s->x1[i] = s->x1[i] < {low}[i] ? {low}[i] : s->x1[i];")
                text += loop(width, f"s->x1[i] = s->x1[i] > {high}[i] ? {high}[i] : s->x1[i];")
            elif isinstance(operation, Project):
                text += self._project(operation, number)
                width = operation.matrix.shape[1]
            else:
                text += self._fill(operation, number, width)
                width += int(operation.flagged.sum())
        return text + "    $N_run(s);\n    $N_answer(s, out);\n"

    def _standardize(self, operation: Standardize, number: int) -> str:
        """Return (x - mean) / scale; in float the mean is the sum of two numbers, so that no digits are lost."""
        high = operation.mean.astype(np.float32 if self.draft.real == "float" else np.float64)
        rest = operation.mean - high
        mean, scale = self.draft.add_real(f"mean{number}", high), self.draft.add_real(f"scale{number}", operation.scale)
        difference = f"(s->x1[i] - {mean}[i])"
        if rest.any():
            difference = f"({difference} - {self.draft.add_real(f'mean_rest{number}', rest)}[i])"
        return loop(len(high), f"s->x1[i] = {difference} / {scale}[i];")

    def _project(self, operation: Project, number: int) -> str:
        rows, columns = operation.matrix.shape
        field_name = f"projected{number}"
        self.draft.state.add(self.draft.real, field_name, columns, "work space")
        matrix = self.draft.add_real(f"projection{number}", operation.matrix)
        return (
            loop(columns, f"s->{field_name}[i] = 0;")
            + f"    {{\n        int i, j;\n        for (i = 0; i < {rows}; i++)\n"
            + f"            for (j = 0; j < {columns}; j++)\n"
            + f"                s->{field_name}[j] += s->x1[i] * {matrix}[i * {columns} + j];\n    }}\n"
            + f"    $N_copy(s->{field_name}, s->x1, {columns});\n"
        )

    def _fill(self, operation: FillGaps, number: int, width: int) -> str:
        """Return what takes the place of NaN, which is not equal to itself."""
        values, text = self.draft.add_real(f"fill{number}", operation.values), ""
        for place, feature in enumerate(np.flatnonzero(operation.flagged).tolist(), width):
            text += f"    s->x1[{place}] = s->x1[{feature}] != s->x1[{feature}] ? 1 : 0;\n"
        if not operation.carry:
            return text + loop(width, f"s->x1[i] = s->x1[i] != s->x1[i] ? {values}[i] : s->x1[i];")
        self.draft.state.add(self.draft.real, "known", width, "the last known features")
        text += loop(width, "s->known[i] = s->x1[i] != s->x1[i] ? s->known[i] : s->x1[i];")
        return text + f"    $N_copy(s->known, s->x1, {width});\n"

    def _answer(self) -> str:
        """Return the body of the function from s->y to the answer."""
        answer, n = self.draft.plan.answer, self.draft.plan.answer.n_out
        source = "s->y"
        if answer.kind == "values":
            scale, mean = (
                self.draft.add_real("target_scale", answer.scale),
                self.draft.add_real("target_mean", answer.mean),
            )
            return loop(n, f"out[i] = (float)({source}[i] * {scale}[i] + {mean}[i]);")
        if answer.kind == "independent":
            slope = self.draft.add_real("slope", answer.scale)
            return loop(n, f"out[i] = (float)(1 / (1 + $X({slope}[i] * (($R)0.5 - {source}[i]))));")
        function = "softmax" if answer.kind == "softmax" else "nearest"
        return f"    $N_{function}({source}, {n});\n" + loop(n, f"out[i] = (float){source}[i];")

    def _start(self, word: str, end: Resumption | None) -> str:
        """Return the function that begins a sequence; end: where the training series ended, which it continues."""
        draft, plan = self.draft, self.draft.plan
        text = self.network.begin(word, end)
        zeros = np.zeros(plan.answer.n_out)
        fed_back = zeros if end is None or end.fed_back is None else end.fed_back
        text += draft.set_field("y", fed_back if plan.series_dims is not None else zeros, f"{word}_y")
        if isinstance(plan.network, Layer) and plan.network.W_fb is not None:
            text += draft.set_field("fed", fed_back, f"{word}_fed")
        gaps = plan.carried
        if gaps is not None:
            known = gaps.values if end is None or end.known is None else end.known
            text += draft.set_field("known", np.where(np.isnan(known), gaps.values, known), f"{word}_known")
        return function(f"void $N_{word}($N_state *s)", text)

    def _next(self) -> str:
        """Return the function that takes the last answer for the newest value of the series."""
        plan = self.draft.plan
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
        return function(f"void $N_next($N_state *s, {exogenous}float *out)", text)
