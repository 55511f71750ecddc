"""A header in C under construction: its constants, the fields of its state, and the statements that use them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from echolearn.export.c.text import Constants, Struct, templates
from echolearn.export.c.weights import MAX_STATE, MAX_WEIGHTS, quantize_rows
from echolearn.runtime._plan import FillGaps, Plan, Project
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


def indented(statements: str) -> str:
    """Return statements one level deeper."""
    return "".join(f"    {line}\n" for line in statements.splitlines())
