"""ONNX nodes under construction, and the two ways in which a network runs through time: a `Scan`, or one step.

Every node acts on the last axis, so that the same functions build both: in a sequence graph the values are rows
(steps, n), inside a `Scan` and in a step graph they are vectors (n,).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from echolearn.validation import Array

FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)
# Names of values of a graph. A body takes states and one vector of each input; it returns new states and an output.
Body = Callable[["Nodes", list[str], list[str]], tuple[list[str], str]]


class Nodes:
    """The nodes of one graph, and the constants and names that it shares with the graphs inside it."""

    def __init__(self, within: Nodes | None = None):
        from onnx import helper

        self._make_node = helper.make_node
        self.nodes: list[object] = []
        self.constants: dict[str, Array] = {} if within is None else within.constants
        self.count: list[int] = [0] if within is None else within.count

    def name(self, word: str) -> str:
        """Return a new name."""
        self.count[0] += 1
        return f"{word.lower()}_{self.count[0]}"

    def __call__(self, operator: str, *inputs: str, outputs: int = 1, **attributes: object) -> str:
        """Add a node and return the name of its (first) output."""
        return self.several(operator, *inputs, outputs=outputs, **attributes)[0]

    def several(self, operator: str, *inputs: str, outputs: int, **attributes: object) -> list[str]:
        """Add a node and return the names of its outputs."""
        names = [self.name(operator) for _ in range(outputs)]
        self.nodes.append(self._make_node(operator, list(inputs), names, names[0], **attributes))
        return names

    def constant(self, value: Array, word: str = "constant") -> str:
        """Return the name of an array; equal small ones share it."""
        value = np.ascontiguousarray(value)
        if value.size <= 16:
            for name, known in self.constants.items():
                if known.dtype == value.dtype and known.shape == value.shape and known.tobytes() == value.tobytes():
                    return name
        name = self.name(word)
        self.constants[name] = value
        return name

    def whole(self, *numbers: int) -> str:
        """Return the name of a vector of whole numbers."""
        return self.constant(np.array(numbers, np.int64), "whole")

    def cast(self, value: str, dtype: np.dtype[np.generic]) -> str:
        """Return a value in another type."""
        from onnx import helper

        return self("Cast", value, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def rows(self, value: str, first: str, end: str) -> str:
        """Return the rows from `first` on, before `end`."""
        return self("Slice", value, first, end, self.whole(0))


class ScanTime:
    """All steps of a sequence, by `Scan`. starts_at: names that take the place of the first states, if given."""

    def __init__(self, starts_at: Sequence[str] | None = None):
        self._starts_at = starts_at

    def recur(self, g: Nodes, starts: Sequence[Array], inputs: Sequence[str], body: Body, *, reverse: bool) -> str:
        """Return the outputs (steps, n); starts: the states before the first step; reverse: from the last step on."""
        from onnx import helper

        inner = Nodes(g)
        states = [inner.name("state") for _ in starts]
        vectors = [inner.name("frame") for _ in inputs]
        after, output = body(inner, states, vectors)
        # a value must not be both an input and an output of a graph, nor twice an output
        ends = [inner("Identity", name) for name in (*after, output)]
        kinds = [helper.np_dtype_to_tensor_dtype(start.dtype) for start in starts]
        lengths = [len(start) for start in starts]
        carried = [helper.make_tensor_value_info(n, k, [m]) for n, k, m in zip(states, kinds, lengths, strict=True)]
        frames = [helper.make_tensor_value_info(n, kinds[0], None) for n in vectors]
        out = [helper.make_tensor_value_info(n, k, [m]) for n, k, m in zip(ends, kinds, lengths, strict=False)]
        out.append(helper.make_tensor_value_info(ends[-1], kinds[0], None))
        first = self._starts_at or [g.constant(start, "start") for start in starts]
        outputs = g.several(
            "Scan",
            *first,
            *inputs,
            outputs=len(starts) + 1,
            body=helper.make_graph(inner.nodes, g.name("step"), [*carried, *frames], out),
            num_scan_inputs=len(inputs),
            scan_input_directions=[int(reverse)] * len(inputs),
            scan_output_directions=[int(reverse)],
        )
        return outputs[-1]


class StepTime:
    """One step: states are taken from the input `state`, of this dtype, and put together for `next_state`."""

    def __init__(self, state: str, dtype: np.dtype[np.generic]):
        self._state, self._dtype = state, dtype
        self.starts: list[Array] = []
        self.after: list[str] = []

    def recur(self, g: Nodes, starts: Sequence[Array], inputs: Sequence[str], body: Body, *, reverse: bool) -> str:
        """Return the output (n,) of the step."""
        states = []
        for start in starts:
            begin = sum(map(len, self.starts))
            own = g("Slice", self._state, g.whole(begin), g.whole(begin + len(start)), g.whole(0))
            states.append(own if start.dtype == self._dtype else g.cast(own, start.dtype))
            self.starts.append(start)
        after, output = body(g, states, list(inputs))
        for name, start in zip(after, starts, strict=True):
            self.after.append(name if start.dtype == self._dtype else g.cast(name, self._dtype))
        return output


Time = ScanTime | StepTime  # how states pass from one step to the next
