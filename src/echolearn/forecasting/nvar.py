"""Next-generation reservoir computing: products of delayed inputs in place of a reservoir's states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from echolearn.validation import Array


@dataclass(frozen=True)
class PolynomialFeatures:
    """All monomials of some degrees of the last `delays` inputs, `stride` steps apart.

    inputs: the number of inputs d; degrees: of the monomials, for example (1, 2). There is no constant among them.
    """

    inputs: int
    delays: int
    stride: int
    degrees: tuple[int, ...]

    @property
    def memory(self) -> int:
        """The number of steps before a step that its features need."""
        return (self.delays - 1) * self.stride

    @property
    def count(self) -> int:
        """The number of features."""
        n = self.inputs * self.delays
        return sum(comb(n + degree - 1, degree) for degree in self.degrees)

    def of_series(self, X: Array) -> Array:
        """Return the features (steps - memory, count) of a series (steps, d), from the first step that has them."""
        rows = len(X) - self.memory
        return self.of_windows([X[self.memory - j * self.stride :][:rows] for j in range(self.delays)])

    def of_windows(self, delayed: Sequence[Array]) -> Array:
        """Return the features (B, count) of B windows: delayed[j] (B, d) are the inputs j strides ago."""
        L = np.hstack(list(delayed))
        products = []
        for degree in self.degrees:
            factors = np.array(list(combinations_with_replacement(range(L.shape[1]), degree))).T
            product = L[:, factors[0]]
            for columns in factors[1:]:
                product = product * L[:, columns]
            products.append(product)
        return np.hstack(products)
