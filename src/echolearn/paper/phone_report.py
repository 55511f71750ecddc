"""The phone errors of several systems as JSON, Markdown and plain text, from the content of `phones.json`."""

from __future__ import annotations

import base64
import html
import io
import json
import wave
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

import numpy as np

from echolearn.display.progress import clock
from echolearn.display.report import Figure, document, figure_blocks, table_block
from echolearn.modelfile.atomic import write_atomically
from echolearn.paper.table1_report import (
    CorpusReport,
    aligned,
    corpus_text,
    markdown_table,
    page_foot,
    page_head,
    percent,
)
from echolearn.speech._audio import RATE_HZ
from echolearn.validation import Array

SCHEMA = 1  # raised when a key of phones.json changes its meaning

SYSTEM_NAMES = {
    "fixed": "fixed weights, only the readout is fitted",
    "learned": "all weights learned",
    "bidirectional": "all weights learned, half of the units run backward",
    "deep": "a deep network of several layers, all weights learned",
}
LEVELS = ("corpus", "phone48", "phone39")  # the phones of the corpus, or the classes of Lee and Hon


class PartScore(TypedDict):
    """The errors of a system on one part, as fractions of reference phones; state and frame errors: of frames."""

    phone_error: float
    substitutions: float
    deletions: float
    insertions: float
    interval: list[float] | None  # of the phone error: 95 %, by a bootstrap over speakers; None for fewer than four
    phone_error_with_silence: float  # silences counted like other phones
    state_error: float
    frame_phone_error: float
    reference_phones: int


class DecodedParts(TypedDict):
    """The errors of a decoder that is tuned on valid."""

    valid: PartScore
    test: PartScore
    order: int  # of the phone n-gram
    weights: dict[str, float]
    decoding_seconds: float  # of tuning on valid and decoding test


class PhoneRow(DecodedParts):
    system: str
    units: int
    bidirectional: bool
    seconds: float  # of the fit
    processor_seconds: float | None
    epochs: int
    made_with: NotRequired[Mapping[str, object]]


class PhoneComparison(TypedDict):
    """One system against another on the test part; p_value: matched pairs of utterances, None with one utterance."""

    system: str
    against: str
    relative_gain: float | None
    p_value: float | None


class PhoneTable(CorpusReport):
    """The content of `phones.json`."""

    schema: int
    phones: int
    utterances: dict[str, int]
    rows: list[PhoneRow]
    comparisons: list[PhoneComparison]


SYSTEM_HEAD = ["system", "units", "test %", "95 % interval", "sub.", "del.", "ins.", "valid %", "state error %", "fit"]


def system_rows(table: PhoneTable) -> list[list[str]]:
    """Return one row of text per system, under `SYSTEM_HEAD`."""
    rows = []
    for row in table["rows"]:
        test = row["test"]
        kinds = (test["substitutions"], test["deletions"], test["insertions"])
        interval = "–" if test["interval"] is None else " to ".join(map(percent, test["interval"]))
        errors = [percent(test["phone_error"]), interval, *map(percent, kinds)]
        others = [percent(row["valid"]["phone_error"]), percent(test["state_error"]), clock(row["seconds"])]
        rows.append([row["system"], f"{row['units']:,}", *errors, *others])
    return rows


def classes_text(table: PhoneTable) -> str:
    """Return which phones are distinguished: `39 classes of Lee and Hon`."""
    return f"{table['phones']} {'phones of the corpus' if table['level'] == 'corpus' else 'classes of Lee and Hon'}"


def corpus_summary(table: PhoneTable) -> str:
    return f"{corpus_text(table)}, {table['speakers']} speakers"


def scoring_text(table: PhoneTable) -> str:
    test = table["rows"][0]["test"]["reference_phones"] if table["rows"] else 0
    return (
        f"Scored in {classes_text(table)}, silence included, which does not count as a phone"
        f"{f'; {test:,} phones on test' if test else ''}. {_ngram(table)}, durations and "
        "priors from the training labels; weights of the decoder tuned on valid; test decoded once."
    )


def _ngram(table: PhoneTable) -> str:
    orders = sorted({row["order"] for row in table["rows"]})
    if table["settings"]["order"] is not None or len(orders) == 1:
        return f"Phone {orders[0] if orders else table['settings']['order']}-gram"
    return "Phone bigram or trigram, chosen on valid"


def headline(table: PhoneTable) -> str:
    """Return the result in one sentence; "" where there is none to compare."""
    errors = {row["system"]: row["test"]["phone_error"] for row in table["rows"]}
    if "fixed" in errors and "learned" in errors and errors["fixed"]:
        gain = 1 - errors["learned"] / errors["fixed"]
        return (
            f"Learning all weights takes the phone error from {percent(errors['fixed'])} % to "
            f"{percent(errors['learned'])} %, {percent(abs(gain))} % relative {'below' if gain >= 0 else 'above'} "
            "the same network with fixed weights."
        )
    if errors:
        best = min(errors, key=lambda name: errors[name])
        return f"The smallest phone error is that of the system {best}: {percent(errors[best])} %."
    return ""


def comparison_lines(table: PhoneTable) -> list[str]:
    """Return one sentence per comparison, with its significance."""
    lines = []
    for one in table["comparisons"]:
        gain, p = one["relative_gain"], one["p_value"]
        if gain is not None:
            chance = "" if p is None else f" (matched pairs: p {'< 0.001' if p < 0.001 else f'= {p:.3f}'})"
            direction = "below" if gain >= 0 else "above"
            lines.append(f"{one['system']}: {percent(abs(gain))} % {direction} {one['against']}{chance}")
    return lines


def markdown(table: PhoneTable) -> str:
    unfinished = "" if table["complete"] else "\nNot all systems are finished yet.\n"
    compared = "".join(f"\n- {line}" for line in comparison_lines(table))
    weights = [
        [row["system"], str(row["order"]), *(f"{value:g}" for value in row["weights"].values())]
        for row in table["rows"]
    ]
    names = ["order of the n-gram", *table["rows"][0]["weights"]] if table["rows"] else []
    notes = "".join(f"\n- {note}" for note in table["notes"])
    return f"""# Phone error

Corpus: {corpus_summary(table)}. {scoring_text(table)}
{unfinished}
{headline(table)}

{markdown_table(SYSTEM_HEAD, system_rows(table))}

Errors are per cent of the reference phones, state errors per cent of frames. The interval is a bootstrap over the
speakers of the test part.{_interval_note(table)}
{compared}

## Weights of the decoder

{markdown_table(["system", *(name.replace("_", " ") for name in names)], weights)}

Notes on the corpus:{notes or " none"}
"""


def _interval_note(table: PhoneTable) -> str:
    """Return why intervals are missing; "" where they are not."""
    missing = any(row["test"]["interval"] is None for row in table["rows"])
    return " An interval cannot be given for fewer than four speakers." if missing else ""


def plain_text(table: PhoneTable) -> str:
    rows = aligned(SYSTEM_HEAD, system_rows(table))
    title = f"Phone error in {classes_text(table)}: {corpus_summary(table)}"
    notes = filter(None, [_interval_note(table).strip(), *comparison_lines(table)])
    lines = ["", title, *rows, *notes, "", headline(table)]
    return "\n".join(lines).rstrip()


def write_phone_table(out: Path, table: PhoneTable) -> None:
    write_atomically(out / "phones.json", (json.dumps(table, indent=1, allow_nan=False) + "\n").encode())
    write_atomically(out / "phones.md", markdown(table).encode())


def phone_page(table: PhoneTable, figures: Sequence[Figure]) -> str:
    compared = "".join(f"<li>{html.escape(line)}</li>" for line in comparison_lines(table))
    total = sum(row["seconds"] + row["decoding_seconds"] for row in table["rows"])
    names = "".join(f"<li>{r['system']}: {html.escape(SYSTEM_NAMES[r['system']])}</li>" for r in table["rows"])
    note = f"""{html.escape(corpus_summary(table))}. {html.escape(scoring_text(table))}
All systems took {clock(total)}."""
    body = f"""{page_head(table, "phones", "From speech to phones", headline(table), note)}
<section><h2>Phone error on test, per cent</h2>{_system_table(table)}
<ul class=note>{names}</ul>
<p class=note>Substitutions, deletions and insertions add up to the phone error. Interval: 95 %, by a bootstrap over the
speakers of the test part.{_interval_note(table)} State error: frames with a wrong state.</p>
<ul class=note>{compared}</ul></section>
{figure_blocks(figures)}
<section><h2>Weights of the decoder, tuned on valid</h2>{_weight_table(table)}</section>
{page_foot(table)}"""
    return document("Phone error of echo state networks", body)


def _system_table(table: PhoneTable) -> str:
    """Return the table of systems, every phone error above a bar of its length."""
    largest = max((row["test"]["phone_error"] for row in table["rows"]), default=1.0) or 1.0
    head = "".join(f"<th{' class=l' if k == 0 else ''}>{html.escape(name)}</th>" for k, name in enumerate(SYSTEM_HEAD))
    body = ""
    for row, cells in zip(table["rows"], system_rows(table), strict=True):
        width = row["test"]["phone_error"] / largest
        body += f"<tr><td class=l>{html.escape(cells[0])}</td><td>{cells[1]}</td>"
        body += f"<td class='bar own' style='--w:{width:.3f}'><b>{html.escape(cells[2])}</b></td>"
        body += "".join(f"<td>{html.escape(cell)}</td>" for cell in cells[3:]) + "</tr>"
    return f"<div class=scroll><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _weight_table(table: PhoneTable) -> str:
    names = list(table["rows"][0]["weights"]) if table["rows"] else []
    head = ["error with silence %", "phone error by frame %", "epochs", "decoding"]
    rows = []
    for row in table["rows"]:
        errors = [percent(row["test"]["phone_error_with_silence"]), percent(row["test"]["frame_phone_error"])]
        weights = [f"{row['weights'][name]:g}" for name in names]
        rows.append([row["system"], *weights, *errors, f"{row['epochs']}", clock(row["decoding_seconds"])])
    return table_block(["system", *(name.replace("_", " ") for name in names), *head], rows)


def audio_block(samples: Array) -> str:
    """Return a player with the sound inside; samples at 16 kHz on the 16-bit scale."""
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setparams((1, 2, RATE_HZ, 0, "NONE", ""))
        file.writeframes(np.clip(np.round(samples), -(2**15), 2**15 - 1).astype("<i2").tobytes())
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
