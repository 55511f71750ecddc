"""The HTML report of `echolearn phones`, and the blocks that only it has: sound, and aligned phones."""

from __future__ import annotations

import base64
import html
import io
import wave
from collections.abc import Sequence

import numpy as np

from echolearn.reporting import phone_table as text
from echolearn.reporting.page import Figure, document, figure_blocks, table_block
from echolearn.reporting.phone_table import LONG_NAMES, PhoneTable
from echolearn.reporting.table import percent
from echolearn.training.progress import clock
from echolearn.validation import Array

LARGEST = np.iinfo(np.int16).max


def phone_page(table: PhoneTable, figures: Sequence[Figure]) -> str:
    """Return the page: the systems, what learning gains, utterances with their sound, and where the errors are."""
    badge = "<span class=badge>synthetic speech</span>" if table["synthetic"] else ""
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table["notes"])
    compared = "".join(f"<li>{html.escape(line)}</li>" for line in text.comparison_lines(table))
    total = sum(row["seconds"] + row["decoding_seconds"] for row in table["rows"])
    names = "".join(f"<li>{r['system']}: {html.escape(LONG_NAMES[r['system']])}</li>" for r in table["rows"])
    body = f"""<header><p class=kicker>echolearn {html.escape(table["echolearn"])} · phones {badge}</p>
<h1>From speech to phones</h1>
<p class=lead>{html.escape(text.headline(table))}</p>
<p class=note>{html.escape(text.corpus_text(table))}. {html.escape(text.scoring_text(table))}
All systems took {clock(total)}.</p></header>
<section><h2>Phone error on test, per cent</h2>{_system_table(table)}
<ul class=note>{names}</ul>
<p class=note>Substitutions, deletions and insertions add up to the phone error. Interval: 95 %, by a bootstrap over the
speakers of the test part. State error: frames with a wrong state.</p>
<ul class=note>{compared}</ul></section>
{figure_blocks(figures)}
<section><h2>Weights of the decoder, tuned on valid</h2>{_weight_table(table)}</section>
<footer><h2>Corpus</h2><ul>{notes}</ul></footer>"""
    return document("Phone error of echo state networks", body)


def _system_table(table: PhoneTable) -> str:
    """Return the table of systems, every phone error above a bar of its length."""
    largest = max((row["test"]["phone_error"] for row in table["rows"]), default=1.0) or 1.0
    head = "".join(f"<th{' class=l' if k == 0 else ''}>{html.escape(name)}</th>" for k, name in enumerate(text.HEAD))
    body = ""
    for row, cells in zip(table["rows"], text.system_rows(table), strict=True):
        width = row["test"]["phone_error"] / largest
        body += f"<tr><td class=l>{html.escape(cells[0])}</td><td>{cells[1]}</td>"
        body += f"<td class='bar own' style='--w:{width:.3f}'><b>{html.escape(cells[2])}</b></td>"
        body += "".join(f"<td>{html.escape(cell)}</td>" for cell in cells[3:]) + "</tr>"
    return f"<div class=scroll><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _weight_table(table: PhoneTable) -> str:
    names = list(table["rows"][0]["weights"]) if table["rows"] else []
    rows = [
        [
            row["system"],
            *(f"{row['weights'][name]:g}" for name in names),
            percent(row["test"]["phone_error_with_silence"]),
            percent(row["test"]["frame_phone_error"]),
            f"{row['epochs']}",
            clock(row["decoding_seconds"]),
        ]
        for row in table["rows"]
    ]
    own = ["error with silence %", "phone error by frame %", "epochs", "decoding"]
    return table_block(["system", *(name.replace("_", " ") for name in names), *own], rows)


def audio_block(samples: Array, rate: int) -> str:
    """Return a player with the sound inside; samples on the 16-bit scale."""
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(np.clip(np.round(samples), -LARGEST - 1, LARGEST).astype("<i2").tobytes())
    encoded = base64.b64encode(content.getvalue()).decode("ascii")
    return f'<audio controls preload="none" src="data:audio/wav;base64,{encoded}"></audio>'


def alignment_block(pairs: Sequence[tuple[str | None, str | None]]) -> str:
    """Return true and recognised phones below each other, with a letter under every error."""
    marks = ["" if a == b else "D" if b is None else "I" if a is None else "S" for a, b in pairs]

    def row(title: str, cells: Sequence[str]) -> str:
        body = "".join(
            f"<td{' class=e' if mark else ''}>{html.escape(cell)}</td>" for cell, mark in zip(cells, marks, strict=True)
        )
        return f"<tr><th>{title}</th>{body}</tr>"

    rows = [
        row("spoken", ["·" if a is None else a for a, _ in pairs]),
        row("recognised", ["·" if b is None else b for _, b in pairs]),
        row("error", marks),
    ]
    return f"<div class=scroll><table class=aligned><tbody>{''.join(rows)}</tbody></table></div>"
