"""Table 1 as Markdown, CSV, JSON and plain text, made from the content of `table1.json` (docs/evidence/table1.md)."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, NamedTuple, NotRequired, TypedDict, cast

from echolearn.display.progress import clock
from echolearn.display.report import Figure, document, figure_blocks, table_block
from echolearn.modelfile.atomic import write_atomically
from echolearn.speech._sources.timit import PART_SPEAKERS


class Entry(TypedDict):
    """Results of one column at one number of units, averaged over seeds. Errors are fractions of frames."""

    test_error: float
    test_error_deviation: NotRequired[float]
    test_errors: NotRequired[list[float]]
    valid_error: float
    valid_error_deviation: NotRequired[float]
    valid_errors: NotRequired[list[float]]
    seconds: float
    processor_seconds: NotRequired[float | None]
    frames_per_second: float
    peak_memory_mb: float | None
    spectral_radius: float
    epochs: float
    weights: NotRequired[float]
    seeds: list[int]


class Row(TypedDict):
    """All columns at one number of units, and the relative gains between them."""

    units: int
    columns: dict[str, Entry]
    relative_gain: float | None
    relative_gain_ours: float | None
    relative_gain_deep: NotRequired[float | None]
    relative_gain_ours_ensemble: NotRequired[float | None]


class PaperRow(TypedDict):
    units: int
    test_error: dict[str, float]
    relative_gain: float


class CorpusReport(TypedDict):
    """What every table says of its corpus and of how it was computed; digest: of all features and labels."""

    corpus: str
    level: NotRequired[str]
    digest: NotRequired[str]
    synthetic: bool
    frames: dict[str, int]
    states: int
    speakers: int
    settings: Mapping[str, object]
    notes: list[str]
    complete: bool
    echolearn: str


class Table(CorpusReport):
    """The content of `table1.json`."""

    rows: list[Row]
    paper_timit: list[PaperRow]
    made_with: NotRequired[Sequence[Mapping[str, object]]]


class Level(NamedTuple):
    """What the errors of a table count: a name for its head, and a short one for sentences."""

    title: str
    short: str


LEVELS: dict[str, Level] = {
    "state": Level("frame-level state error", "state error"),
    "phone48": Level("frame-level phone error in 48 classes", "phone error by frame"),
    "phone39": Level("frame-level phone error in 39 classes", "phone error by frame"),
    "segment": Level("phone error of segments with known boundaries", "segment error"),
    "recognition": Level("phone error of recognition", "phone error"),
}


@dataclass(frozen=True)
class Column:
    """A column: its name in two lines for the table's head, and one for text. It has the paper's settings, our
    defaults, or those of deep networks ("paper", "ours", "deep"), with `changes`; an ensemble is one of networks that
    answer by their mean."""

    short: str
    long: str
    kind: str
    changes: Mapping[str, Any]
    ensemble: bool = False

    @property
    def head(self) -> str:
        return self.short.replace("\n", " ")


FIXED = {"learn": "none"}


def _learned(learn: str, lookback: int | None) -> Mapping[str, Any]:
    return {"learn": learn, "learning": {"lookback": lookback}}


COLUMNS: dict[str, Column] = {
    "esn": Column("fixed\nESN", "fixed ESN", "paper", FIXED),
    "W_m1": Column("W\nm=1", "W learned, m=1", "paper", _learned("input", 1)),
    "W_Wrec_m1": Column("W+W_rec\nm=1", "W and W_rec learned, m=1", "paper", _learned("both", 1)),
    "W_Wrec_m3": Column("W+W_rec\nm=3", "W and W_rec learned, m=3", "paper", _learned("both", 3)),
    "W_Wrec_full": Column("W+W_rec\nwhole", "W and W_rec learned, whole sequence", "paper", _learned("both", None)),
    "esn_ours": Column("fixed,\nours", "fixed, our defaults", "ours", FIXED),
    "ours": Column("learned,\nours", "learned, our defaults", "ours", {}),
    "esn_deep": Column("fixed,\ndeep", "deep, fixed layers", "deep", {"epochs": 0}),
    "deep": Column("learned,\ndeep", "deep, learned", "deep", {}),
    "esn_ours_ensemble": Column("fixed,\nensemble", "ensemble, fixed, our defaults", "ours", FIXED, ensemble=True),
    "ours_ensemble": Column("learned,\nensemble", "ensemble, learned, our defaults", "ours", {}, ensemble=True),
}


# The gains of a row: a fixed column, a learned one of the same form and readout, and the heading.
GAINS = {
    "relative_gain": ("esn", "W_Wrec_m3", "gain,\nm=3"),
    "relative_gain_ours": ("esn_ours", "ours", "gain,\nours"),
    "relative_gain_deep": ("esn_deep", "deep", "gain,\ndeep"),
    "relative_gain_ours_ensemble": ("esn_ours_ensemble", "ours_ensemble", "gain,\nensemble"),
}
PAPER_COLUMNS = ("esn", "W_m1", "W_Wrec_m1", "W_Wrec_m3")  # of the paper's table
PAPER_HEAD = ["units", *(COLUMNS[name].head for name in PAPER_COLUMNS), "gain"]
DETAIL_HEAD = [
    "units", "column", "test %", "valid %", "seconds", "epochs", "frames/s", "memory MB", "weights", "ρ(W_rec)"
]  # fmt: skip
CSV_HEAD = ["units", "column", "test_error", "test_error_deviation", "valid_error", "valid_error_deviation", "seconds",
            "processor_seconds", "frames_per_second", "peak_memory_mb", "weights", "spectral_radius", "epochs", "seeds",
            "timit_paper_test_error"]  # fmt: skip
# The weights of deep layers for each unit of the row: about the inputs and outputs of a unit of one layer on speech.
DEEP_WEIGHTS_PER_UNIT = 222


def deep_shape(units: int, settings: Mapping[str, int]) -> tuple[int, int]:
    """Return how many layers, of how many units each, have about as many weights as one layer of `units` and its
    readout: 2 C² in every layer of C units. settings: of the deep networks, where they differ from the defaults."""
    layers = settings.get("layers", 6)
    even = 2 * max(1, round((DEEP_WEIGHTS_PER_UNIT * units / (2 * layers)) ** 0.5 / 2))
    return layers, settings.get("units", even)


def percent(value: float | None, deviation: float | None = None) -> str:
    """Return a fraction in per cent, `60.0` or `60.0 ± 1.2`."""
    if value is None:
        return "–"
    return f"{100 * value:.1f}" + ("" if deviation is None else f" ± {100 * deviation:.1f}")


def level_of(table: Table) -> Level:
    """Return what the errors of a table count; tables of earlier versions count states."""
    return LEVELS[table.get("level", "state")]


def paper_note(table: Table) -> str:
    """Return how the paper's results may be compared with those of the table."""
    states = level_of(table) is LEVELS["state"]
    if table["corpus"].startswith("timit:") and table["speakers"] == sum(PART_SPEAKERS.values()):
        return "the same parts" if states else "the same parts, errors of states: compare only the order and the gains"
    other = "" if states else " and another level, errors of states"
    return f"another corpus{other}: compare only the order and the gains"


def error_text(entry: Entry | None) -> str:
    """Return the test error of a column in per cent, with its deviation over seeds where there is one."""
    return "–" if not entry else percent(entry["test_error"], entry.get("test_error_deviation"))


def shown_columns(table: Table) -> list[str]:
    """Return the columns that have at least one finished cell, in the table's order."""
    return [c for c in COLUMNS if any(c in row["columns"] for row in table["rows"])]


def corpus_text(table: CorpusReport) -> str:
    """Return `synthetic speech (espeak-ng), 40,180 / 6,029 / 6,003 frames (train / valid / test)`."""
    frames = " / ".join(f"{table['frames'][part]:,}" for part in ("train", "valid", "test"))
    name = "synthetic speech (espeak-ng)" if table["synthetic"] else table["corpus"]
    return f"{name}, {frames} frames (train / valid / test)"


def corpus_summary(table: Table) -> str:
    """Return the same with the number of states."""
    return f"{corpus_text(table)}, {table['states']} states"


def settings_summary(table: Table) -> str:
    """Return sentences about settings other than the defaults, each after a space; "" where there are none."""
    settings = table["settings"]
    seeds = "" if settings["seeds"] == 1 else f" Mean ± standard deviation over {settings['seeds']} seeds."
    literal = []
    if settings["targets"] != "all":
        literal.append("targets at the last frame of each block only")
    if settings["gradient"] != "exact":
        literal.append("the gradient as printed in the paper")
    return seeds + (f" Columns m=1 and m=3: {' and '.join(literal)}." if literal else "")


def deep_summary(table: Table) -> str:
    """Return a sentence about the sizes of the deep networks, after a space; "" where there are none."""
    sizes = []
    for row in table["rows"]:
        entries = [row["columns"].get(name) for name in ("deep", "esn_deep", "ours", "esn_ours")]
        deep, one_layer = entries[0] or entries[1], entries[2] or entries[3]
        if deep:
            layers, units = deep_shape(row["units"], cast(Mapping[str, int], table["settings"].get("deep", {})))
            counts = [f"{one['weights']:,.0f} weights" for one in (deep, one_layer) if one and "weights" in one]
            sizes.append(f"{row['units']:,} units: {layers} layers of {units}")
            sizes[-1] += f" ({' against '.join(counts)})" if counts else ""
    rule = "Deep networks have about as many weights as one layer of the row's units"
    return f" {rule}; in the row of {'; of '.join(sizes)}." if sizes else ""


def error_head(table: Table) -> list[str]:
    titles = (COLUMNS[c].head for c in shown_columns(table))
    return ["units", *titles, *(title.replace("\n", " ") for title in shown_gains(table).values())]


def shown_gains(table: Table) -> dict[str, str]:
    """Return the headings of gains by their names, where the learned column is shown."""
    columns = shown_columns(table)
    return {name: title for name, (_, learned, title) in GAINS.items() if learned in columns}


def gain_note(table: Table) -> str:
    """Return which columns the gains of a table compare, and what an ensemble is if there is one."""
    shown = [GAINS[name][:2] for name in shown_gains(table)]
    pairs = "; ".join(f"“{COLUMNS[learned].head}” to “{COLUMNS[fixed].head}”" for fixed, learned in shown)
    note = f"Gains, in per cent, are relative to the fixed network of the same form and readout: {pairs}."
    ensembles = any(COLUMNS[learned].ensemble for _, learned in shown)
    mean = " An ensemble answers with the mean of the outputs of one network per about 250 units, of two at least."
    return f"{note}{mean if ensembles else ''}" if shown else ""


def gains(table: Table, row: Row) -> list[float | None]:
    values: Mapping[str, object] = row
    return [cast("float | None", values.get(name)) for name in shown_gains(table)]


def error_rows(table: Table) -> list[list[str]]:
    """Return the test errors, one row per number of units, with the gains within each pair of columns."""
    columns = shown_columns(table)
    rows = []
    for row in table["rows"]:
        cells = [error_text(row["columns"].get(c)) for c in columns]
        rows.append([f"{row['units']:,}", *cells, *map(percent, gains(table, row))])
    return rows


def paper_rows(table: Table) -> list[list[str]]:
    """Return the paper's rows for the numbers of units that the table has; all of them where it has none of these."""
    ours = {row["units"] for row in table["rows"]}
    chosen = [p for p in table["paper_timit"] if p["units"] in ours] or table["paper_timit"]
    return [
        [f"{p['units']:,}", *(percent(p["test_error"][c]) for c in PAPER_COLUMNS), percent(p["relative_gain"])]
        for p in chosen
    ]


def detail_rows(table: Table) -> list[list[str]]:
    return [
        _detail_row(row["units"], column, row["columns"][column])
        for row in table["rows"]
        for column in shown_columns(table)
        if column in row["columns"]
    ]


def _detail_row(units: int, column: str, entry: Entry) -> list[str]:
    memory = entry["peak_memory_mb"]
    return [
        f"{units:,}",
        COLUMNS[column].long,
        error_text(entry),
        percent(entry["valid_error"], entry.get("valid_error_deviation")),
        f"{entry['seconds']:.1f}",
        f"{entry['epochs']:g}",
        f"{entry['frames_per_second']:,.0f}",
        "–" if memory is None else f"{memory:,.0f}",
        f"{entry['weights']:,.0f}" if "weights" in entry else "–",
        f"{entry['spectral_radius']:.2f}",
    ]


def headline(table: Table) -> str:
    """Return the result of the largest complete row in one sentence; "" where no row is complete."""
    for row in reversed(table["rows"]):
        if row["relative_gain"] is not None:
            fixed, learned = (row["columns"][c]["test_error"] for c in ("esn", "W_Wrec_m3"))
            text = (
                f"With {row['units']:,} hidden units, learning W and W_rec takes the {level_of(table).short} from "
                f"{percent(fixed)} % to {percent(learned)} %, {percent(row['relative_gain'])} % relative"
            )
            ours = row["relative_gain_ours"]
            if ours is not None:
                text += (
                    f"; our defaults reach {percent(row['columns']['ours']['test_error'])} %, "
                    f"{percent(abs(ours))} % {'below' if ours >= 0 else 'above'} the same network with fixed weights"
                )
            if "deep" in row["columns"]:
                text += f"; deep networks reach {percent(row['columns']['deep']['test_error'])} %"
            return text + "."
    return ""


def markdown(table: Table) -> str:
    unfinished = "" if table["complete"] else "\nNot all cells are finished yet.\n"
    notes = "".join(f"\n- {note}" for note in table["notes"])
    return f"""# Table 1: {level_of(table).title}, in per cent

Corpus: {corpus_summary(table)}.{settings_summary(table)}{deep_summary(table)}
{unfinished}
{markdown_table(error_head(table), error_rows(table))}

{gain_note(table)}

## The paper's results, on TIMIT ({paper_note(table)})

{markdown_table(PAPER_HEAD, paper_rows(table))}

## Every cell

{markdown_table(DETAIL_HEAD, detail_rows(table))}

Notes on the corpus:{notes or " none"}
"""


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown, all columns but the first aligned to the right."""
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join(["---"] + ["---:"] * (len(head) - 1)) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def comma_separated(table: Table) -> str:
    """Return the content of `table1.csv`: one line per cell, errors as fractions, the paper's error on TIMIT last."""
    paper = {p["units"]: p["test_error"] for p in table["paper_timit"]}
    out = io.StringIO()
    writer = csv.DictWriter(out, CSV_HEAD, lineterminator="\n")
    writer.writeheader()
    for row in table["rows"]:
        for column, entry in row["columns"].items():
            values: Mapping[str, object] = entry
            known = {name: values[name] for name in CSV_HEAD if name in values}
            place = {"units": row["units"], "column": column, "seeds": len(entry["seeds"])}
            writer.writerow({**known, **place, "timit_paper_test_error": paper.get(row["units"], {}).get(column)})
    return out.getvalue()


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table for a terminal, columns aligned to the right. Columns for which the terminal is too
    narrow follow in further tables, each with the first column."""
    first, *others = zip(head, *rows, strict=True)
    tables, room = [[first]], get_terminal_size().columns
    for column in others:
        if sum(2 + max(map(len, one)) for one in (*tables[-1], column)) - 2 > room and len(tables[-1]) > 1:
            tables.append([first])
        tables[-1].append(column)
    padded = [[[c.rjust(max(map(len, column))) for c in column] for column in table] for table in tables]
    return ["  ".join(cells) for table in padded for cells in zip(*table, strict=True)]


def plain_text(table: Table) -> str:
    level = "" if level_of(table) is LEVELS["state"] else f", {level_of(table).title}"
    ours = [f"Test error in per cent{level}: {corpus_summary(table)}", *aligned(error_head(table), error_rows(table))]
    paper = [f"The paper's results, on TIMIT ({paper_note(table)})", *aligned(PAPER_HEAD, paper_rows(table))]
    return "\n".join(["", *ours, "", *paper, "", headline(table) + deep_summary(table)])


def write_tables(out: Path, table: Table) -> None:
    write_atomically(out / "table1.json", (json.dumps(table, indent=1) + "\n").encode())
    write_atomically(out / "table1.md", markdown(table).encode())
    write_atomically(out / "table1.csv", comma_separated(table).encode())


def table_page(table: Table, figures: Sequence[Figure]) -> str:
    total = sum(e["seconds"] * len(e["seeds"]) for row in table["rows"] for e in row["columns"].values())
    corpus, settings = html.escape(corpus_summary(table)), html.escape(settings_summary(table))
    note = f"""{level_of(table).title.capitalize()} on {corpus}.{settings}
All cells took {clock(total)} to fit."""
    head = page_head(table, "Table 1", "Echo state networks whose weights are learned", headline(table), note)
    paper_head = ["units", *(COLUMNS[name].short for name in PAPER_COLUMNS), "gain"]
    body = f"""{head}
<section><h2>Test error, per cent</h2>{_error_table(table)}
<p class=note>{html.escape(gain_note(table) + deep_summary(table))}</p></section>
<section><h2>The paper's results, on TIMIT</h2>
<p class=note>{paper_note(table).capitalize()}.</p>
{table_block(paper_head, paper_rows(table), kind="timit")}</section>
{figure_blocks(figures)}
<section><h2>Every cell</h2>{table_block(DETAIL_HEAD, detail_rows(table), left=2)}
<p class=note>frames/s: training frames times epochs over seconds, the readout's fit included.
Memory: the most the process held while fitting.</p></section>
{page_foot(table)}"""
    return document("Table 1: echo state networks with learned weights", body)


def page_head(table: CorpusReport, name: str, title: str, lead: str, note: str) -> str:
    """Return the head of a page; note: HTML below its first sentence."""
    badge = "<span class=badge>synthetic speech</span>" if table["synthetic"] else ""
    return f"""<header><p class=kicker>echolearn {html.escape(table["echolearn"])} · {name} {badge}</p>
<h1>{title}</h1>
<p class=lead>{html.escape(lead).replace(" %", "&nbsp;%")}</p>
<p class=note>{note}</p></header>"""


def page_foot(table: CorpusReport) -> str:
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table["notes"])
    return f"<footer><h2>Corpus</h2><ul>{notes}</ul></footer>"


def _error_table(table: Table) -> str:
    """Return the table of test errors, every number above a bar of its length. Cells have the names of their columns,
    for narrow pages, where the table is folded."""
    largest = max((e["test_error"] for row in table["rows"] for e in row["columns"].values()), default=1.0) or 1.0
    heads = ["hidden\nunits", *(COLUMNS[c].short for c in shown_columns(table)), *shown_gains(table).values()]
    labels = [head.replace("\n", " ") for head in heads]
    body = ""
    for row in table["rows"]:
        cells = [("class=l", f"{row['units']:,}")]
        for column in shown_columns(table):
            entry, kind = row["columns"].get(column), "paper" if COLUMNS[column].kind == "paper" else "own"
            width = 0.0 if not entry else entry["test_error"] / largest
            cells.append((f"class='bar {kind}' style='--w:{width:.3f}'", error_text(entry)))
        cells += [("class=gain", percent(gain)) for gain in gains(table, row)]
        named = zip(labels, cells, strict=True)
        texts = (f"<td {kind} data-label='{label}'>{text}</td>" for label, (kind, text) in named)
        body += f"<tr>{''.join(texts)}</tr>"
    names = "".join(f"<th>{head}</th>" for head in heads)
    return (
        f"<div class=scroll><table class='main fold'><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>"
    )
