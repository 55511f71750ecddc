"""Drawings by matplotlib, as SVG to stand inside a page and take their colours from its light or dark style.

matplotlib is optional and slow to import; it is imported when something is drawn. Nothing here uses pyplot, so the
backend of a user's own figures is left alone.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # optional, see above
    from matplotlib.figure import Figure

# Placeholders: no drawing would choose these colours, and each is replaced by a variable of the page's style sheet.
INK, MUTED, GRID = "#010203", "#010204", "#010205"
SERIES = ("#010211", "#010212", "#010213", "#010214", "#010215", "#010216")
VARIABLES = {INK: "--ink", MUTED: "--muted", GRID: "--line"} | {c: f"--c{k}" for k, c in enumerate(SERIES, 1)}
_STYLE = {
    "svg.fonttype": "none",
    "font.size": 10,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "lines.linewidth": 2,
}


def can_draw() -> bool:
    return find_spec("matplotlib") is not None


@contextmanager
def styled_figure(
    name: str, size: tuple[float, float], layout: Literal["constrained"] | None = None
) -> Iterator[Figure]:
    """Yield an empty figure of `size` inches, drawn in our style as long as the context lasts."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE | {"svg.hashsalt": name}):  # the same content gives the same bytes
        yield Figure(figsize=size, layout=layout)


def to_svg(figure: Figure, name: str) -> str:
    """Return a figure as an SVG element. `name` must differ between the figures of one page."""
    with io.StringIO() as out:
        figure.savefig(
            out, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight", pad_inches=0.04
        )
        text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r'\1 role="img"', text, count=1)
    # Several drawings share a page: whatever they refer to inside themselves carries their name.
    text = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{name}-", text)
    text = re.sub(r"(font|font-family):([^;\"]*?)'?DejaVu Sans'?[^;\"]*", _page_font, text)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    return text


def _page_font(match: re.Match[str]) -> str:
    return f"font:{match[2]}system-ui, sans-serif" if match[1] == "font" else "font-family: system-ui, sans-serif"
