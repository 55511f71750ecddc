"""Where in X something stands, in the words of whoever gave it: names of sequences, labels of rows, columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from echolearn.sequences.forms import Form, TableForm, TablesForm


@dataclass(frozen=True, eq=False)
class Places:
    """The names of sequences, rows and columns, where they have any. columns: of a data frame; form: of X."""

    columns: Sequence[Hashable] | None = None
    form: Form | None = None

    def of_gap(self, x: object, number: int) -> str:
        """Return where the first NaN or infinity of sequence `number` stands, as a sentence; "" where there is none."""
        try:
            gaps = ~np.isfinite(np.asarray(x, np.float64))
        except (TypeError, ValueError):
            return ""
        if gaps.ndim != 2 or not gaps.any():
            return ""
        step, j = (int(place) for place in np.argwhere(gaps)[0])
        named = self.columns is not None and len(self.columns) == gaps.shape[1]
        column = repr(self.columns[j]) if named and self.columns is not None else str(j)
        return f" The first is in row {step}{self._label(number, step)}{self._sequence(number)}, column {column}."

    def _sequence(self, number: int) -> str:
        names = None if self.form is None else self.form.names
        return "" if names is None or number >= len(names) else f" of the sequence {names[number]!r:.60}"

    def _label(self, number: int, step: int) -> str:
        """Return the label that the index has for a row of one table; steps are counted in the order of time."""
        form = self.form
        if isinstance(form, TablesForm) and number < len(form.forms):
            form, number = form.forms[number], 0
        if not isinstance(form, TableForm) or form.index is None or number >= len(form.rows):
            return ""
        if type(form.index).__name__ == "RangeIndex" or step >= len(form.rows[number]):
            return ""
        label = form.index[form.rows[number][step]]
        shown = label[-1] if isinstance(label, tuple) else label
        return f" ({form.index.names[-1] or 'index'} {shown!s:.40})"
