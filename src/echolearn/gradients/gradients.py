"""The derivatives of the error by each kind of weight."""

from __future__ import annotations

from dataclasses import dataclass, fields

from echolearn.validation import Array


@dataclass(frozen=True, eq=False)
class Gradients:
    """Derivatives of E in float64; that by W_rec has one value per non-zero entry, in CSR order. They can be added."""

    W: Array
    W_rec: Array
    W_fb: Array | None
    bias: Array | None
    leak: Array | None

    def __iadd__(self, other: Gradients) -> Gradients:
        for field in fields(self):
            mine = getattr(self, field.name)
            if mine is not None:
                mine += getattr(other, field.name)
        return self
