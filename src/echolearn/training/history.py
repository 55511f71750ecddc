"""The history of a training run, one row of numbers per epoch."""

from __future__ import annotations

import numpy as np


class History(list[dict[str, float]]):
    """A list with one row (a dict of numbers by name) per epoch, which prints as a table."""

    def __str__(self) -> str:
        if not self:
            return "no epochs"
        names = list(self[0])
        cells = [[f"{row.get(n, np.nan):.5g}" for n in names] for row in self]
        widths = [max(len(n), *(len(c[i]) for c in cells)) for i, n in enumerate(names)]
        lines = [names, *cells]
        return "\n".join("  ".join(c.rjust(w) for c, w in zip(line, widths, strict=True)) for line in lines)
