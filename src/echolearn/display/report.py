"""The frame of an HTML report and the blocks that it is made of."""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib import resources
from typing import NamedTuple


class Figure(NamedTuple):
    """A drawing with its title and caption; `wide` lets it take the page's whole width. pixels: the least width of a
    wide drawing, which scrolls on a narrower page; below: HTML between it and its caption."""

    title: str
    caption: str
    svg: str
    wide: bool = False
    pixels: int = 760
    below: str = ""


def document(title: str, body: str) -> str:
    """Return one self-contained page: no script, and no link to anything outside."""
    style = resources.files("echolearn.display").joinpath("report.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang=en><head><meta charset=utf-8>
<meta name=viewport content="width=device-width, initial-scale=1">
<meta name=color-scheme content="light dark">
<title>{html.escape(title)}</title>
<style>{style}</style></head><body><main>
{body}
</main></body></html>
"""


def figure_blocks(figures: Sequence[Figure]) -> str:
    """Return the figures as HTML; without any, a note that says how to install matplotlib."""
    blocks = "".join(_figure_block(figure) for figure in figures) or (
        "<p class=note>No pictures: matplotlib is not installed (<code>pip install 'echolearn[report]'</code>).</p>"
    )
    return f"<div class=figures>{blocks}</div>"


def _figure_block(figure: Figure) -> str:
    kind = "wide" if figure.wide else "plain"
    width = f" style='--least:{figure.pixels}px'" if figure.pixels != Figure._field_defaults["pixels"] else ""
    return (
        f"<figure class={kind}><h2>{html.escape(figure.title)}</h2><div class=drawing{width}>{figure.svg}</div>"
        f"{figure.below}<figcaption>{html.escape(figure.caption)}</figcaption></figure>"
    )


def table_block(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, kind: str = "") -> str:
    """Return a table as HTML, its first `left` columns aligned to the left; `kind` is its CSS class."""

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(f"<{tag}{' class=l' if k < left else ''}>{html.escape(c)}</{tag}>" for k, c in enumerate(row))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f"<div class=scroll><table class='{kind}'><thead><tr>{cells('th', head)}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )
