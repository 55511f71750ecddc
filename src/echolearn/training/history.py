"""The history of a training run, one row of numbers per epoch."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from echolearn.display.figures import BLUE, GREY, ORANGE, prepared_axes

if TYPE_CHECKING:  # an optional dependency
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

MAX_ROWS_SHOWN = 60  # of the table in a notebook; the middle of a longer history is left out


class History(list[dict[str, float]]):
    """A list with one row (a dict of numbers by name) per epoch, which prints as a table.

    In a notebook it shows as a table too; `plot` draws the errors.
    """

    def __str__(self) -> str:
        if not self:
            return "no epochs"
        lines = self._cells()
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        return "\n".join("  ".join(c.rjust(w) for c, w in zip(line, widths, strict=True)) for line in lines)

    def __repr__(self) -> str:
        return f"<History: {self.summary()}>"

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        if not self:
            return escape(repr(self))
        head, *rows = self._cells()
        if len(rows) > MAX_ROWS_SHOWN:
            rows = [*rows[: MAX_ROWS_SHOWN // 2], ["…"] * len(head), *rows[-MAX_ROWS_SHOWN // 2 :]]
        cells = ["".join(f"<th>{escape(name)}</th>" for name in head)]
        cells += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        return f"<table><caption>{escape(self.summary())}</caption>{body}</table>"

    def summary(self) -> str:
        """Return the history in a few words."""
        if not self:
            return "no epochs"
        first, last = self[0], self[-1]
        parts = [f"{len(self)} epoch{'s' if len(self) > 1 else ''}"]
        if "error" in first and "error" in last:
            parts.append(f"error {first['error']:.4g} to {last['error']:.4g}")
        best = self.best
        if best is not None:
            parts.append(f"best valid error {best['valid_error']:.4g} in epoch {best['epoch']:.0f}")
        if "seconds" in last:
            parts.append(f"{last['seconds']:.3g} s")
        return ", ".join(parts)

    @property
    def best(self) -> dict[str, float] | None:
        """The row with the smallest validation error, or None without validation."""
        validated = [row for row in self if np.isfinite(row.get("valid_error", np.nan))]
        return min(validated, key=lambda row: row["valid_error"]) if validated else None

    def plot(self, axes: Axes | None = None) -> Figure | SubFigure:
        """Plot the errors of every epoch on training and on validation data; the best epoch is marked."""
        axes = prepared_axes(axes)
        from matplotlib.ticker import MaxNLocator

        networks = sorted({row.get("network", 1) for row in self})
        for network in networks:
            rows = [row for row in self if row.get("network", 1) == network]
            for key, colour, name in (("error", GREY, "training"), ("valid_error", BLUE, "validation")):
                points = [(row["epoch"], row[key]) for row in rows if key in row]
                label = name if network == networks[0] else None
                if points:
                    axes.plot(*zip(*points, strict=True), color=colour, linewidth=1.8, marker=".", label=label)
        best = self.best
        if best is not None:
            axes.plot(best["epoch"], best["valid_error"], "o", color=ORANGE, label=f"best: epoch {best['epoch']:.0f}")
        axes.set(xlabel="epoch", ylabel="error")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_title("nothing was learned: no epochs" if not self else "error per epoch", fontsize=10)
        if self:
            axes.legend(frameon=False, fontsize=9)
        return axes.figure

    def _cells(self) -> list[list[str]]:
        """Return names and numbers as text, one list per line."""
        names = list(self[0])
        return [names, *([f"{row.get(n, np.nan):.5g}" for n in names] for row in self)]
