"""Numbers -> tables and one HTML page. Everything here is made from the table that table1.json holds."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from echolearn.modelfile.atomic import write_atomically
from echolearn.training.progress import clock

Table = Mapping[str, Any]


class Title(NamedTuple):
    short: str
    long: str


TITLES: dict[str, Title] = {
    "esn": Title("fixed\nESN", "fixed ESN"),
    "W_m1": Title("W\nm=1", "W learned, m=1"),
    "W_Wrec_m1": Title("W+W_rec\nm=1", "W and W_rec learned, m=1"),
    "W_Wrec_m3": Title("W+W_rec\nm=3", "W and W_rec learned, m=3"),
    "W_Wrec_full": Title("W+W_rec\nwhole", "W and W_rec learned, whole sequence"),
    "esn_ours": Title("fixed,\nours", "fixed, our defaults"),
    "ours": Title("learned,\nours", "learned, our defaults"),
}


class Figure(NamedTuple):
    title: str
    caption: str
    svg: str
    wide: bool = False


def percent(value: float | None, deviation: float | None = None) -> str:
    if value is None:
        return "–"
    return f"{100 * value:.1f}" + ("" if deviation is None else f" ± {100 * deviation:.1f}")


def shown_columns(table: Table) -> list[str]:
    return [c for c in TITLES if any(c in row["columns"] for row in table["rows"])]


def corpus_words(table: Table) -> str:
    """`synthetic speech (espeak-ng), 40,180 / 6,029 / 6,003 frames, 156 states`."""
    frames = " / ".join(f"{table['frames'][part]:,}" for part in ("train", "valid", "test"))
    name = "synthetic speech (espeak-ng)" if table["synthetic"] else table["corpus"]
    return f"{name}, {frames} frames (train / valid / test), {table['states']} states"


def error_rows(table: Table) -> list[list[str]]:
    """Our errors, one row a size, with the paper's columns' gain and our own."""
    columns = shown_columns(table)
    rows = []
    for row in table["rows"]:
        cells = [_error(row["columns"].get(c)) for c in columns]
        rows.append([f"{row['units']:,}", *cells, percent(row["relative_gain"]), percent(row["relative_gain_ours"])])
    return rows


def _error(entry: Mapping[str, Any] | None) -> str:
    return "–" if not entry else percent(entry["test_error"], entry.get("test_error_deviation"))


def error_head(table: Table) -> list[str]:
    titles = [TITLES[c].short.replace("\n", " ") for c in shown_columns(table)]
    return ["units", *titles, "gain, m=3", "gain, ours"]


def paper_rows(table: Table) -> list[list[str]]:
    """The paper's, for the sizes it has; all of them where none of ours is among them."""
    ours = {row["units"] for row in table["rows"]}
    chosen = [p for p in table["paper_timit"] if p["units"] in ours] or table["paper_timit"]
    columns = ("esn", "W_m1", "W_Wrec_m1", "W_Wrec_m3")
    return [
        [f"{p['units']:,}", *(percent(p["test_error"][c]) for c in columns), percent(p["relative_gain"])]
        for p in chosen
    ]


PAPER_HEAD = ["units", "fixed ESN", "W m=1", "W+W_rec m=1", "W+W_rec m=3", "gain"]
DETAIL_HEAD = ["units", "column", "test %", "valid %", "seconds", "epochs", "frames/s", "memory MB", "ρ(W_rec)"]


def detail_rows(table: Table) -> list[list[str]]:
    rows = []
    for row in table["rows"]:
        for column in shown_columns(table):
            entry = row["columns"].get(column)
            if entry:
                memory = entry["peak_memory_mb"]
                rows.append(
                    [
                        f"{row['units']:,}",
                        TITLES[column].long,
                        _error(entry),
                        percent(entry["valid_error"], entry.get("valid_error_deviation")),
                        f"{entry['seconds']:.1f}",
                        f"{entry['epochs']:g}",
                        f"{entry['frames_per_second']:,.0f}",
                        "–" if memory is None else f"{memory:,.0f}",
                        f"{entry['spectral_radius']:.2f}",
                    ]
                )
    return rows


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join(["---"] + ["---:"] * (len(head) - 1)) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def markdown(table: Table) -> str:
    unfinished = "" if table["complete"] else "\nNot all cells are finished yet.\n"
    notes = "".join(f"\n- {note}" for note in table["notes"])
    return f"""# Table 1: frame-level state error, in per cent

Corpus: {corpus_words(table)}.{_settings_words(table)}
{unfinished}
{_grid(error_head(table), error_rows(table))}

{_GAINS}

## The paper's, on TIMIT (another corpus: only order and gains compare)

{_grid(PAPER_HEAD, paper_rows(table))}

## Every cell

{_grid(DETAIL_HEAD, detail_rows(table))}

Notes on the corpus:{notes or " none"}
"""


_GAINS = (
    "Gains are relative to the fixed network with the same readout: `m=3` to the fixed ESN, `ours` to `fixed, ours`."
)


def _settings_words(table: Table) -> str:
    s = table["settings"]
    seeds = "" if s["seeds"] == 1 else f" Mean ± standard deviation over {s['seeds']} seeds."
    literal = []
    if s["targets"] != "all":
        literal.append("targets at the last frame of each block only")
    if s["gradient"] != "exact":
        literal.append("the gradient as printed in the paper")
    return seeds + (f" Columns m=1 and m=3: {' and '.join(literal)}." if literal else "")


CSV_HEAD = [
    "units",
    "column",
    "test_error",
    "test_error_deviation",
    "valid_error",
    "valid_error_deviation",
    "seconds",
    "frames_per_second",
    "peak_memory_mb",
    "spectral_radius",
    "epochs",
    "seeds",
    "timit_paper_test_error",
]


def comma_separated(table: Table) -> str:
    """One line a cell; errors as fractions, the paper's TIMIT number in the last column."""
    paper = {p["units"]: p["test_error"] for p in table["paper_timit"]}
    out = io.StringIO()
    writer = csv.DictWriter(out, CSV_HEAD, lineterminator="\n")
    writer.writeheader()
    for row in table["rows"]:
        for column, entry in row["columns"].items():
            known = {name: entry.get(name) for name in CSV_HEAD if name in entry}
            own = {"units": row["units"], "column": column, "seeds": len(entry["seeds"])}
            writer.writerow({**known, **own, "timit_paper_test_error": paper.get(row["units"], {}).get(column)})
    return out.getvalue()


def write_tables(out: Path, table: Table) -> None:
    write_atomically(out / "table1.json", (json.dumps(table, indent=1) + "\n").encode())
    write_atomically(out / "table1.md", markdown(table).encode())
    write_atomically(out / "table1.csv", comma_separated(table).encode())


def plain(table: Table) -> str:
    """The table for a terminal, with the paper's below it."""

    def lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        return ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in (head, *rows)]

    ours = [f"Test error in per cent: {corpus_words(table)}", *lines(error_head(table), error_rows(table))]
    paper = [
        "The paper's, on TIMIT (another corpus: only order and gains compare)",
        *lines(PAPER_HEAD, paper_rows(table)),
    ]
    return "\n".join(["", *ours, "", *paper, "", headline(table)])


def headline(table: Table) -> str:
    """What the table says, in a sentence, from its largest complete row."""
    for row in reversed(table["rows"]):
        if row["relative_gain"] is not None:
            fixed, learned = (row["columns"][c]["test_error"] for c in ("esn", "W_Wrec_m3"))
            text = (
                f"With {row['units']:,} hidden units, learning W and W_rec takes the state error from "
                f"{percent(fixed)} % to {percent(learned)} %, {percent(row['relative_gain'])} % relative"
            )
            if row["relative_gain_ours"] is not None:
                text += (
                    f"; our defaults reach {percent(row['columns']['ours']['test_error'])} %, "
                    f"{percent(row['relative_gain_ours'])} % below the same network unlearned"
                )
            return text + "."
    return ""


def page(table: Table, figures: Sequence[Figure]) -> str:
    """The table, what the cells took, and pictures."""
    total = sum(e["seconds"] * len(e["seeds"]) for row in table["rows"] for e in row["columns"].values())
    badge = "<span class=badge>synthetic speech</span>" if table["synthetic"] else ""
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table["notes"])
    detail = html_grid(DETAIL_HEAD, detail_rows(table), left=2)
    body = f"""<header><p class=kicker>echolearn {html.escape(table["echolearn"])} · Table 1 {badge}</p>
<h1>Echo state networks whose weights are learned</h1>
<p class=lead>{html.escape(headline(table))}</p>
<p class=note>Frame-level phone-state error on {html.escape(corpus_words(table))}.{html.escape(_settings_words(table))}
All cells took {clock(total)} to fit.</p></header>
<section><h2>Test error, per cent</h2>{_error_grid(table)}
<p class=note>{html.escape(_GAINS.replace("`", ""))}</p></section>
<section><h2>The paper's, on TIMIT</h2><p class=note>Another corpus: only order and gains compare.</p>
{html_grid(PAPER_HEAD, paper_rows(table), kind="timit")}</section>
{pictures(figures)}
<section><h2>Every cell</h2>{detail}
<p class=note>frames/s: training frames times epochs over seconds, the readout's fit included.
Memory: the most the process held while fitting.</p></section>
<footer><h2>Corpus</h2><ul>{notes}</ul></footer>"""
    return document("Table 1: echo state networks with learned weights", body)


def document(title: str, body: str) -> str:
    """One self-contained page: no script, no link to anything outside."""
    style = resources.files("echolearn.reporting").joinpath("page.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang=en><head><meta charset=utf-8>
<meta name=viewport content="width=device-width, initial-scale=1">
<meta name=color-scheme content="light dark">
<title>{html.escape(title)}</title>
<style>{style}</style></head><body><main>
{body}
</main></body></html>
"""


def pictures(figures: Sequence[Figure]) -> str:
    drawn = "".join(_figure(f) for f in figures) or (
        "<p class=note>No pictures: matplotlib is not installed (<code>pip install 'echolearn[report]'</code>).</p>"
    )
    return f"<div class=figures>{drawn}</div>"


def _figure(figure: Figure) -> str:
    kind = "wide" if figure.wide else "plain"
    return (
        f"<figure class={kind}><h2>{html.escape(figure.title)}</h2><div class=drawing>{figure.svg}</div>"
        f"<figcaption>{html.escape(figure.caption)}</figcaption></figure>"
    )


def html_grid(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, kind: str = "") -> str:
    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(f"<{tag}{' class=l' if k < left else ''}>{html.escape(c)}</{tag}>" for k, c in enumerate(row))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f"<div class=scroll><table class='{kind}'><thead><tr>{cells('th', head)}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _error_grid(table: Table) -> str:
    """The table itself: every number over a bar of its length."""
    columns = shown_columns(table)
    most = max((e["test_error"] for row in table["rows"] for e in row["columns"].values()), default=1.0) or 1.0
    head = "".join(
        f"<th class='{_side(c)}'>{html.escape(TITLES[c].short).replace(chr(10), '<br>')}</th>" for c in columns
    )
    body = ""
    for row in table["rows"]:
        body += f"<tr><td class=l>{row['units']:,}</td>"
        for c in columns:
            entry = row["columns"].get(c)
            width = 0.0 if not entry else entry["test_error"] / most
            body += f"<td class='bar {_side(c)}' style='--w:{width:.3f}'>{html.escape(_error(entry))}</td>"
        for name in ("relative_gain", "relative_gain_ours"):
            body += f"<td class=gain>{_gain(row[name])}</td>"
        body += "</tr>"
    return (
        f"<div class=scroll><table class=main><thead><tr><th class=l>hidden<br>units</th>{head}"
        f"<th>gain<br>m=3</th><th>gain<br>ours</th></tr></thead><tbody>{body}</tbody></table></div>"
    )


def _gain(gain: float | None) -> str:
    return "–" if gain is None else f"{'−' if gain >= 0 else '+'}{abs(100 * gain):.1f} %"


def _side(column: str) -> str:
    return "own" if column.endswith("ours") else "paper"
