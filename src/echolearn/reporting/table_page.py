"""The HTML report of Table 1."""

from __future__ import annotations

import html
from collections.abc import Sequence

from echolearn.reporting import table as text
from echolearn.reporting.page import Figure, document, figure_blocks, table_block
from echolearn.reporting.table import TITLES, Row, Table
from echolearn.training.progress import clock


def table_page(table: Table, figures: Sequence[Figure]) -> str:
    """Return the page: the table, the paper's, the figures, and what every cell took."""
    total = sum(e["seconds"] * len(e["seeds"]) for row in table["rows"] for e in row["columns"].values())
    badge = "<span class=badge>synthetic speech</span>" if table["synthetic"] else ""
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table["notes"])
    detail = table_block(text.DETAIL_HEAD, text.detail_rows(table), left=2)
    corpus, settings = html.escape(text.corpus_summary(table)), html.escape(text.settings_summary(table))
    body = f"""<header><p class=kicker>echolearn {html.escape(table["echolearn"])} · Table 1 {badge}</p>
<h1>Echo state networks whose weights are learned</h1>
<p class=lead>{html.escape(text.headline(table))}</p>
<p class=note>{text.level_of(table).title.capitalize()} on {corpus}.{settings}
All cells took {clock(total)} to fit.</p></header>
<section><h2>Test error, per cent</h2>{_error_table(table)}
<p class=note>{html.escape(text.GAINS.replace("`", ""))}</p></section>
<section><h2>The paper's results, on TIMIT</h2>
<p class=note>{text.paper_note(table).capitalize()}.</p>
{table_block(text.PAPER_HEAD, text.paper_rows(table), kind="timit")}</section>
{figure_blocks(figures)}
<section><h2>Every cell</h2>{detail}
<p class=note>frames/s: training frames times epochs over seconds, the readout's fit included.
Memory: the most the process held while fitting.</p></section>
<footer><h2>Corpus</h2><ul>{notes}</ul></footer>"""
    return document("Table 1: echo state networks with learned weights", body)


def _error_table(table: Table) -> str:
    """Return the table of test errors, every number above a bar of its length."""
    columns = text.shown_columns(table)
    largest = max((e["test_error"] for row in table["rows"] for e in row["columns"].values()), default=1.0) or 1.0
    head = "".join(
        f"<th class='{_readout(c)}'>{html.escape(TITLES[c].short).replace(chr(10), '<br>')}</th>" for c in columns
    )
    gains = "".join(f"<th>{title.replace(chr(10), '<br>')}</th>" for _, title in text.shown_gains(table).values())
    body = "".join(_error_row(table, row, columns, largest) for row in table["rows"])
    return (
        f"<div class=scroll><table class=main><thead><tr><th class=l>hidden<br>units</th>{head}"
        f"{gains}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _error_row(table: Table, row: Row, columns: Sequence[str], largest: float) -> str:
    cells = f"<td class=l>{row['units']:,}</td>"
    for column in columns:
        entry = row["columns"].get(column)
        width = 0.0 if not entry else entry["test_error"] / largest
        error = html.escape(text.error_text(entry))
        cells += f"<td class='bar {_readout(column)}' style='--w:{width:.3f}'>{error}</td>"
    for gain in text.gains(table, row):
        cells += f"<td class=gain>{_gain(gain)}</td>"
    return f"<tr>{cells}</tr>"


def _gain(gain: float | None) -> str:
    """Return a relative gain as the change of the error that it is: `−25.0 %`."""
    return "–" if gain is None else f"{'−' if gain >= 0 else '+'}{abs(100 * gain):.1f} %"


def _readout(column: str) -> str:
    """Return the CSS class of a column: the paper's readout, or our own."""
    return "own" if "ours" in column else "paper"
