"""Figures by matplotlib without pyplot or a backend: they work in any setting, and show inline in a notebook."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # an optional dependency
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREY, RED = "#2a6fb0", "#d9762b", "#8a8a8a", "#b03030"


def new_figure(size: tuple[float, float]) -> Figure:
    """Return an empty figure of so many inches, which a notebook shows as the output of a cell."""
    try:
        from matplotlib.figure import Figure
    except ImportError as problem:
        raise ImportError("plots need matplotlib: pip install 'echolearn[report]'.") from problem
    return _inline(Figure)(figsize=size, layout="constrained")


def prepared_axes(axes: Axes | None, size: tuple[float, float] = (5.2, 3.4)) -> Axes:
    """Return the given axes, or those of a new figure, in the style of all figures."""
    axes = new_figure(size).add_subplot() if axes is None else axes
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    return axes


@cache
def _inline(plain: type[Figure]) -> type[Figure]:
    """Return matplotlib's figure with a picture of itself for notebooks, which know only the figures of pyplot."""

    class InlineFigure(plain):  # type: ignore[valid-type,misc]
        def _repr_png_(self) -> bytes:
            buffer = BytesIO()
            self.savefig(buffer, format="png", dpi=110)
            return buffer.getvalue()

    return InlineFigure
