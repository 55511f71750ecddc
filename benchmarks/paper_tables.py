"""The tables of docs/evidence/table1.md, from the result files of paper_table.py."""

from echolearn.paper.table1 import PAPER_TIMIT, relative_gain
from echolearn.paper.table1_report import COLUMNS, LEVELS, error_head, error_rows, error_text, percent
from paper_table import defaults, read_plan
from results import FORMER
from table_text import load, markdown, table

LEARNED = ("W_m1", "W_Wrec_m1", "W_Wrec_m3")
PAPER_GAINS = {row["units"]: row["relative_gain"] for row in PAPER_TIMIT}
SAME_NORM = 100  # units of the row in which 0.8 times the root of the units is no more than 8


def seeds_text(row):
    """Return how many seeds the columns of a row have, `3` or `1 to 3`."""
    counts = sorted({len(entry["seeds"]) for entry in row["columns"].values()})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def errors_table(content):
    """Return the test errors with their standard deviations, the gains, and the number of seeds of each row."""
    rows = [[*cells, seeds_text(row)] for cells, row in zip(error_rows(content), content["rows"], strict=True)]
    return markdown(["units", *(f">{head}" for head in [*error_head(content)[1:], "seeds"])], rows)


def cells_table(content):
    """Return one line per column and number of units: errors, processor seconds of one fit, epochs and memory."""
    numbers = [">test %", ">valid %", ">processor s", ">epochs", ">memory MB", ">ρ(W_rec)", ">seeds"]
    rows = [
        _cell_line(row["units"], column, row["columns"][column])
        for row in content["rows"]
        for column in COLUMNS
        if column in row["columns"]
    ]
    return markdown(["units", "column", *numbers], rows)


def _cell_line(units, column, entry):
    processor, memory = entry.get("processor_seconds"), entry["peak_memory_mb"]
    return [
        f"{units:,}",
        COLUMNS[column].long,
        error_text(entry),
        percent(entry["valid_error"], entry.get("valid_error_deviation")),
        "–" if processor is None else f"{processor:.0f}",
        f"{entry['epochs']:.0f}",
        "–" if memory is None else f"{memory:,.0f}",
        f"{entry['spectral_radius']:.2f}",
        str(len(entry["seeds"])),
    ]


def caption(content):
    """Return the sentences above a table: corpus, parts, digest, commits and commands."""
    frames = " / ".join(f"{content['frames'][part]:,}" for part in ("train", "valid", "test"))
    corpus = "synthetic speech (espeak-ng)" if content["synthetic"] else content["corpus"]
    commits = sorted({str(made["commit"])[:10] for row in content["rows"] for made in row["made_with"]})
    lines = "".join(f"$ {row['command']}\n" for row in content["rows"])
    commands = f"<!-- not executed: it takes hours -->\n```console\n{lines}```\n"
    level = LEVELS[content.get("level", "state")]
    counted = "of test frames" if level is LEVELS["state"] else f"of the test part, {level.title}"
    return (
        f"{corpus}: {frames} frames (train / valid / test), {content['states']} states, {content['speakers']} "
        f"speakers, digest {content['digest']}. Per cent {counted}; mean ± standard deviation "
        f"over seeds where there are several. Commits: {', '.join(commits)}.\n\n{commands}"
    )


def stale_note(content):
    """Return a sentence on rows that were measured with other defaults than today's; "" where there are none."""
    notes = []
    for row in content["rows"]:
        now, then = defaults(row["units"]), row.get("defaults", {})
        changed = [
            f"{setting}={value} (now {now[kind].get(setting)})"
            for kind in then
            for setting, value in then[kind].items()
            if now[kind].get(setting, FORMER.get(setting)) != value
        ]
        notes += [f"{row['units']:,} units: {', '.join(changed)}."] if changed else []
    return f"**Measured with other defaults than today's.** {' '.join(notes)}\n\n" if notes else ""


def missing_note(name, content):
    """Return a sentence on planned rows that are not finished or not begun; "" where all are complete."""
    planned = [row["units"] for row in read_plan(name.removeprefix("table1_"))["rows"]]
    found = {row["units"]: row["complete"] for row in content["rows"]}
    begun = [f"{units:,}" for units in planned if found.get(units) is False or _lacks_cells(name, content, units)]
    absent = [f"{units:,}" for units in planned if units not in found]
    notes = [f"Not finished: {', '.join(begun)} units."] if begun else []
    notes += [f"Planned and not run: {', '.join(absent)} units."] if absent else []
    return f"**{' '.join(notes)}**\n\n" if notes else ""


def _lacks_cells(name, content, units):
    """Return whether a row lacks a column, or a column has fewer seeds than are planned."""
    plan = read_plan(name.removeprefix("table1_"))
    seeds = {row["units"]: row["seeds"] for row in plan["rows"]}
    columns = COLUMNS if plan["columns"] == "all" else plan["columns"].split(",")
    rows = [row["columns"] for row in content["rows"] if row["units"] == units]
    return any(len(row.get(column, {"seeds": []})["seeds"]) < seeds[units] for row in rows for column in columns)


def rendered(name):
    """Return the tables of a result file, under its sentences."""
    content = load(name)
    if not content:
        return "*Not run yet.*"
    notes = stale_note(content) + missing_note(name, content)
    return f"{notes}{caption(content)}\n{errors_table(content)}\n\n{cells_table(content)}"


@table
def table1_an4():
    """Return Table 1 on AN4."""
    return rendered("table1_an4")


@table
def table1_synthetic():
    """Return Table 1 on synthetic speech."""
    return rendered("table1_synthetic")


@table
def table1_synthetic_phones():
    """Return what learning and depth give in phones, on synthetic speech."""
    return rendered("table1_synthetic_phones")


@table
def table1_paper():
    """Return the test errors of the paper's columns at its five sizes, clipped at the norm 8."""
    content = load("table1_paper")
    return f"{missing_note('table1_paper', content)}{errors_table(content)}" if content else "*Not run yet.*"


def scaled_content():
    """Return the rows of the norm that grows with the root of the units.

    What does not depend on the norm is that of the norm 8: the fixed networks, and all of the row of 100 units.
    """
    content, before = load("table1_scaled"), load("table1_paper")
    if not content or not before:
        return {}
    measured = {row["units"]: row for row in content["rows"]}
    rows = []
    for old in before["rows"]:
        new = measured.get(old["units"])
        if new is None and old["units"] == SAME_NORM:
            rows.append(old)
        elif new is not None:
            columns = {"esn": old["columns"]["esn"], **new["columns"]}
            gain = relative_gain(columns, "esn", "W_Wrec_m3")
            rows.append({**new, "columns": columns, "relative_gain": gain})
    return {**content, "rows": rows}


@table
def table1_scaled():
    """Return the paper's columns at its five sizes, clipped at a norm that grows, beside the gains of the paper."""
    content = scaled_content()
    if not content:
        return "*Not run yet.*"
    rows = []
    for row in content["rows"]:
        errors = [error_text(row["columns"].get(name)) for name in ("esn", *LEARNED)]
        gains = [percent(row["relative_gain"]), percent(PAPER_GAINS[row["units"]])]
        rows.append([f"{row['units']:,}", *errors, *gains, str(row["settings"]["epochs"]), seeds_text(row)])
    heads = [COLUMNS[name].head for name in ("esn", *LEARNED)]
    numbers = [*heads, "gain, m=3", "the paper's gain", "epochs", "seeds"]
    errors = markdown(["units", *(f">{head}" for head in numbers)], rows)
    notes = stale_note(content) + missing_note("table1_scaled", content)
    return f"{notes}{caption(content)}\n{errors}\n\n{cells_table(content)}"


@table
def table1_printed():
    """Return a row of the same with the formulas as printed."""
    return rendered("table1_printed")


@table
def learning_gains():
    """Return what learning changes on AN4, at the same readout, and the asked gains."""
    content = load("table1_an4")
    pairs = (
        ("ridge, the paper's settings", "esn", "W_Wrec_full", 30),
        ("softmax, our defaults", "esn_ours", "ours", 25),
        ("softmax, ensembles", "esn_ours_ensemble", "ours_ensemble", 25),
    )
    rows = []
    for row in content["rows"]:
        for readout, fixed, learned, asked in (pair for pair in pairs if set(pair[1:3]) <= set(row["columns"])):
            before, after = row["columns"][fixed]["test_error"], row["columns"][learned]["test_error"]
            gain = 100 * (1 - after / before)
            reached = "yes" if gain >= asked else "**no**"
            numbers = [f"{100 * before:.1f}", f"{100 * after:.1f}", f"{gain:.1f} %", f"≥ {asked} %", reached]
            rows.append([f"{row['units']:,}", readout, *numbers])
    return markdown(["units", "readout", ">fixed", ">learned", ">gain", ">goal", "met"], rows)
