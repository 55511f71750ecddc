"""The tables of the contest on AN4, and how often the test part was read."""

from table_text import load, markdown, reached, relative, spread, table

SIDES = {"ours": "echolearn", "torch": "PyTorch"}
ROWS = {
    "single": "single networks",
    "muon": "single networks, a TCN with Muon",
    "ensembles": "ensembles",
    "bidirectional": "both directions of time",
    "muon-bidirectional": "both directions, a TCN with Muon",
    "little-8": "every 8th utterance",
    "little-30": "every 30th utterance",
}
NOT_RUN = "*Not run yet: the settings of both sides are not frozen (docs/evidence/protocol.md).*"


def contest_rows(*names):
    """Return the decided rows of the contest, in the order of the table."""
    rows = [row for row in load("contest").get("rows", []) if row["row"] in names and "relative" in row]
    return sorted(rows, key=lambda row: (list(ROWS).index(row["row"]), row["budget"]))


def asked(row):
    """Return what a row of the contest requires."""
    return f"≥ {100 * row['asked']:.0f} % below" if row["asked"] else "below"


@table
def contest_summary():
    """Return the table of the README: errors of both sides at each budget."""
    rows = contest_rows(*ROWS)
    if not rows:
        return NOT_RUN
    heads = ["", ">seconds", ">echolearn", ">PyTorch", ">relative", "goal", "met"]
    cells = [
        [
            ROWS[row["row"]],
            row["budget"],
            spread(row["ours"]["test"]),
            spread(row["torch"]["test"]),
            relative(row["relative"]),
            asked(row),
            reached(row["reached"]),
        ]
        for row in rows
    ]
    return markdown(heads, cells)


@table
def contest():
    """Return everything about the chosen candidates of the contest."""
    rows = contest_rows(*ROWS)
    if not rows:
        return NOT_RUN
    heads = [
        "",
        ">seconds",
        "side",
        "chosen on valid",
        ">valid %",
        ">test %",
        ">core s",
        ">wall s",
        ">weights",
        ">memory MB",
    ]
    cells = []
    for row in rows:
        for side, name in SIDES.items():
            own = row[side]
            chosen = f"{own['name']} ({own['budget']} s; of {len(own['considered'])})"
            errors = spread(own["valid"], 2), spread(own["test"], 2)
            costs = f"{own['core_seconds']:.0f}", f"{own['wall_seconds']:.0f}", f"{own['weights'] or 0:,}"
            memory = f"{own['peak_mb']:.0f} ({own['extra_mb']:.0f})"
            cells.append([ROWS[row["row"]], row["budget"], name, chosen, *errors, *costs, memory])
    return markdown(heads, cells)


@table
def contest_superseded():
    """Return earlier rows of the contest, which later settings have replaced."""
    rows = [row for row in load("contest").get("superseded", []) if "relative" in row]
    if not rows:
        return "*None.*"
    heads = ["", ">seconds", ">echolearn", ">PyTorch", ">relative", "commit"]
    cells = [
        [
            ROWS[r["row"]],
            r["budget"],
            *(spread(r[s]["test"], 2) for s in SIDES),
            relative(r["relative"]),
            r["commit"][:10],
        ]
        for r in rows
    ]
    return markdown(heads, cells)


@table
def test_readings():
    """Return how often each experiment has read the test part."""
    entries = load("test_readings").get("readings", [])
    if not entries:
        return "*No reading has been recorded yet.*"
    heads = ["experiment", "commit", "settings (blob)", "first", "last", ">times"]
    keys = ("experiment", "commit", "blob", "first", "last", "times")
    return markdown(heads, [[str(e[key])[:10] if key in keys[1:3] else e[key] for key in keys] for e in entries])
