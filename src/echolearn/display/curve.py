"""A small curve of numbers per step as SVG, for the output of a notebook's cell: it follows light and dark themes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

COLOURS = ("#8a8a8a", "#2a6fb0")  # as in the figures: training is grey, validation is blue
SIZE = (420.0, 130.0)
LEFT, BOTTOM, TOP = 52.0, 20.0, 8.0
FEWEST = 2  # points that make a curve


def curve(values: Mapping[str, Sequence[float]], steps: int) -> str:
    """Return the curves of one or two kinds of numbers over so many steps, or "" if none has two finite points."""
    finite = {name: [(k, v) for k, v in enumerate(found, 1) if math.isfinite(v)] for name, found in values.items()}
    drawn = {name: points for name, points in list(finite.items())[: len(COLOURS)] if len(points) >= FEWEST}
    if not drawn:
        return ""
    every = [v for points in drawn.values() for _, v in points]
    low, high = min(every), max(every)
    spread = (high - low) or abs(high) or 1.0
    last = max(steps, max(points[-1][0] for points in drawn.values()))
    width, height = SIZE

    def place(step: int, value: float) -> tuple[float, float]:
        x = LEFT + (width - LEFT - 90.0) * (step - 1) / max(last - 1, 1)
        return x, TOP + (height - TOP - BOTTOM) * (1 - (value - low) / spread)

    parts = []
    for (name, points), colour in zip(drawn.items(), COLOURS[-len(drawn) :], strict=True):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in points))
        x, y = place(*points[-1])
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(name, x + 5, y + 4, fill=colour))
    parts += [_text(f"{v:.3g}", LEFT - 6, place(1, v)[1] + 4, anchor="end") for v in dict.fromkeys((low, high))]
    parts += [_text("1", LEFT, height - 4), _text(str(last), place(last, low)[0], height - 4, anchor="end")]
    named = escape(", ".join(f"{name} {points[-1][1]:.4g}" for name, points in drawn.items()))
    return (
        f'<svg role="img" aria-label="{named}" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'style="max-width: 100%; font: 11px sans-serif" fill="currentColor">{"".join(parts)}</svg>'
    )


def _text(text: str, x: float, y: float, *, anchor: str = "start", fill: str = "currentColor") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'
