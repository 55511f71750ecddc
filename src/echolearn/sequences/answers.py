"""Answers to a list of sequences: a list, which says what to do where an array is expected."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from echolearn.validation.array_types import Array


class AnswerList(list[Array]):
    """The answers to a list of sequences, one array each.

    It is a list like any other. Where sequences of different lengths are taken for one array, as scikit-learn's metrics
    do, it raises TypeError with the line that helps: a ValueError is what scikit-learn would hide.
    """

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        try:
            return np.array(list(self), dtype)
        except ValueError as problem:
            raise TypeError(
                "answers to sequences of different lengths are a list of arrays, not one array. In scikit-learn's "
                "functions, use scoring=echolearn.metrics.scorer('f1_macro') in place of scoring='f1_macro'; use the "
                "metrics and cross_val_predict of echolearn.metrics in place of scikit-learn's; elsewhere join them: "
                "numpy.concatenate(answers)."
            ) from problem
