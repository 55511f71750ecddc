"""Render the tables of README.md and docs/*.md from benchmarks/results/.

    python benchmarks/tables.py            (make tables)
    python benchmarks/tables.py --check    only say which files would change

A table stands between `<!-- table: NAME -->` and `<!-- end -->`. NAME is a function of this module, with - for _; what
stands between the two lines is replaced by what it returns. tests/benchmarks/test_tables.py runs the check.
"""

import json
import re
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
MARK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
SIDES = {"ours": "echolearn", "torch": "PyTorch"}
ROWS = {
    "single": "single networks",
    "ensembles": "ensembles",
    "bidirectional": "both directions of time",
    "little-8": "every 8th utterance",
    "little-30": "every 30th utterance",
}
NOT_RUN = "*Not run yet: the settings of both sides are not frozen (docs/protocol.md).*"
TABLES = {}


def table(function):
    """Register a table under the name of its function."""
    TABLES[function.__name__.replace("_", "-")] = function
    return function


def load(name):
    """Return a result file, {} if there is none."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def markdown(heads, rows):
    """Return a table. A head that begins with > stands above a column of numbers."""
    line = "|".join("---:" if head.startswith(">") else "---" for head in heads)
    texts = [[head.lstrip(">") for head in heads], *rows]
    body = ["| " + " | ".join(map(str, cells)) + " |" for cells in texts]
    return "\n".join([body[0], f"|{line}|", *body[1:]])


def spread(summary, digits=1):
    """Return a mean with the least and the most, of what `contest_plan.summarise` returns."""
    return f"{summary['mean']:.{digits}f} ({summary['least']:.{digits}f} to {summary['most']:.{digits}f})"


def reached(value):
    """Return yes, or NO in bold; nothing where nothing was asked."""
    return "" if value is None else "yes" if value else "**NO**"


def relative(value):
    """Return a relative difference in percent; a minus sign says that our error is the lower one."""
    return f"{-100 * value:+.1f} %".replace("-", "−")


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
    rows = contest_rows("single", "ensembles", "bidirectional", "little-8", "little-30")
    if not rows:
        return NOT_RUN
    heads = ["", ">seconds", ">echolearn", ">PyTorch", ">relative", "asked", "reached"]
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
    return markdown(heads, [[str(e[key])[:10] if key in keys[:3] else e[key] for key in keys] for e in entries])


@table
def error_over_time():
    """Return the earlier comparison with LSTMs by the clock."""
    cells = []
    for row in load("error_over_time")["rows"]:
        if "tried" not in row:
            continue
        tried = {f"{r['model'].upper()}-{r['units']}": r["test_error"] for r in row["tried"]}
        others = ", ".join(f"{name}: {error:.1f}" for name, error in tried.items() if name != row["peer_name"])
        own, gain = row["record"], 1 - row["ours"] / row["peer"]
        seconds = re.search(r"within (\d+) s", row["work"])[1]
        mine = f"{own['model']} units, {own['weights']:,} weights"
        peer = f"{row['peer_name']} ({others})"
        cells.append(
            [
                seconds,
                mine,
                f"{row['ours']:.1f}",
                f"{own['train_seconds']:.1f}",
                peer,
                f"{row['peer']:.1f}",
                relative(gain),
            ]
        )
    heads = [">seconds", "echolearn", ">test %", ">seconds used", "PyTorch, best on valid", ">test %", ">relative"]
    return markdown(heads, cells)


@table
def directions():
    """Return one direction of time beside both."""
    groups = {}
    for row in load("an4_errors_directions")["rows"]:
        units, which = re.match(r"defaults, (\d+) units, (\w+ \w+), seed", row["label"]).groups()
        groups.setdefault((units, which), []).append(row)
    cells = []
    for (units, which), rows in groups.items():
        errors = [_mean_and_spread([row[key] for row in rows]) for key in ("valid_error", "test_error")]
        seconds = statistics.mean(row["cpu_seconds"] for row in rows)
        cells.append([units, which, f"{rows[0]['weights']:,}", *errors, f"{seconds:.0f}"])
    return markdown([">units", "", ">weights", ">valid %", ">test %", ">cpu seconds"], cells)


def _mean_and_spread(values, digits=1):
    return f"{statistics.mean(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


@table
def paper_columns():
    """Return the columns of the paper's table at 100 units, by `ESNClassifier.paper`."""
    rows = load("an4_errors_paper")["rows"]
    cells = [[r["label"], f"{r['valid_error']:.1f}", f"{r['test_error']:.1f}", f"{r['seconds']:.0f}"] for r in rows]
    return markdown(["", ">valid %", ">test %", ">seconds"], cells)


def _peers(number):
    """Return one figure of peers.py: times by the clock and by processor time; memory above the start and in all."""
    rows, cells = load(f"peers_{number}")["rows"], []
    for row in rows:
        if row.get("peer") is None:
            name = row.get("peer_name") or ""
            cells.append([row["work"], name, "", "", _times(row.get("ratio")), "", _asked(row), _met(row)])
            continue
        memory = row["unit"] == "MB"
        numbers = [_number(row["ours"]), _number(row["peer"])]
        if memory:
            second = row["peak_mb_peer"] / row["peak_mb_ours"]
        else:
            has = row.get("cpu_seconds_peer") and "workers" not in row["peer_name"]
            second = row["cpu_seconds_peer"] / row["cpu_seconds_ours"] if has else None
        numbers = [f"{number} {row['unit']}" for number in numbers]
        cells.append(
            [row["work"], row["peer_name"], *numbers, _times(row["ratio"]), _times(second), _asked(row), _met(row)]
        )
    second = f">times, processor{' (memory: whole process)' if number in (3, 4) else ''}"
    first = f">times, clock{' (memory: above the start)' if number in (3, 4) else ''}"
    return markdown(["work", "beside", ">ours", ">theirs", first, second, "asked", "reached"], cells)


def _asked(row):
    return "" if row.get("asked") in (None, "-") else str(row["asked"]).replace(">=", "≥")


def _met(row):
    return reached(row.get("reached"))


def _times(value):
    return "" if value is None else f"{value:.1f}"


def _number(value):
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


@table
def peers_1():
    """Return states of one sequence."""
    return _peers(1)


@table
def peers_2():
    """Return states of a corpus."""
    return _peers(2)


@table
def peers_3():
    """Return fit and prediction."""
    return _peers(3)


@table
def peers_4():
    """Return one epoch of gradients."""
    return _peers(4)


@table
def forecasting():
    """Return the errors of forecasts, median and range of ten seeds."""
    found = load("forecasting")
    works = {
        "mg1": "Mackey-Glass, 1 step, NRMSE",
        "mg84": "Mackey-Glass, 84 steps, NRMSE",
        "lorenz": "Lorenz, valid time in Lyapunov times",
        "narma": "NARMA-10, NRMSE",
    }
    methods = ("reservoirpy", "echolearn fixed", "echolearn learned")
    cells = []
    for key, work in works.items():
        best = (max if key == "lorenz" else min)(methods, key=lambda m, k=key: statistics.median(found[k][m]))
        texts = [_median_and_range(found[key][method], method == best) for method in methods]
        cells.append([work, *texts])
    return markdown(["", ">reservoirpy, tuned", ">echolearn fixed, tuned", ">echolearn learned"], cells)


def _median_and_range(values, best):
    middle = f"{statistics.median(values):.3g}"
    return f"{f'**{middle}**' if best else middle} ({min(values):.2g} … {max(values):.2g})"


@table
def stacks():
    """Return one layer beside two of as many weights."""
    cells = []
    for row in load("stacks")["rows"]:
        records = row["records"]
        first, test = records[0], [r["test_error"] for r in records]
        units = " + ".join(map(str, first["units"]))
        valid = statistics.mean(r["valid_error"] for r in records)
        error = _mean_and_spread(test) if len(test) > 1 else f"{test[0]:.1f}"
        cells.append([first["model"], units, f"{first['weights']:,}", len(records), f"{valid:.1f}", error])
    return markdown(["", "units", ">weights", ">seeds", ">valid %", ">test %"], cells)


@table
def large_accuracy():
    """Return the exact readout of 5,000 units beside the iterative one."""
    cells = [
        [
            r["work"],
            f"{r['ridge']:.0e}",
            f"{r['error_per_frame']:.5f}",
            f"{r['valid']:.2f}",
            f"{r['test']:.2f}",
            f"{r['ours']:.0f}",
        ]
        for r in load("large")["rows"]
        if "error_per_frame" in r
    ]
    heads = ["", ">ridge, of the mean diagonal", ">E per frame", ">valid wrong %", ">test wrong %", ">seconds"]
    return markdown(heads, cells)


def _near_one(value, digits):
    """Return a number with so many digits, or with seven if it is an R² close to 1."""
    return f"{value:.{7 if 0.9985 < value < 1.5 and digits == 4 else digits}f}".replace("-", "−")


def _defaults(part, digits, unit=None):
    """Return a part of defaults.json: the median of each method, with the least and the greatest over the seeds."""
    cells, last = [], None
    for row in load("defaults")["parts"][part]["rows"]:
        if unit is not None and row["unit"] != unit:
            continue
        middle, low, high = (_near_one(row[key], digits) for key in ("median", "least", "greatest"))
        values = middle + ("" if low == high else f" ({low} to {high})")
        seconds = f"{statistics.median(row['seconds']):.1f}" if row.get("seconds") else ""
        cells.append(["" if row["work"] == last else row["work"], row["method"], row["unit"], values, seconds])
        last = row["work"]
    return markdown(["", "method", "measure", ">median (least to greatest)", ">seconds, median"], cells)


@table
def defaults_series():
    """Return the defaults on one series."""
    return _defaults("series", 4)


@table
def defaults_sequences():
    """Return the defaults with one label per sequence."""
    return _defaults("sequences", 1)


@table
def defaults_an4():
    """Return the defaults on AN4."""
    return _defaults("an4", 2)


@table
def defaults_awkward():
    """Return the defaults on awkward data."""
    return _defaults("awkward", 4)


@table
def defaults_goals():
    """Return what was asked of the defaults and what was seen."""
    goals = [goal for part in load("defaults")["parts"].values() for goal in part["goals"]]
    cells = [
        [g["work"], g["asked"], g["seen"], reached(None if g["reached"] is None else bool(g["reached"]))] for g in goals
    ]
    return markdown(["", "asked", "seen", "reached"], cells)


def rendered(text):
    """Return a document with all its tables as the result files have them."""

    def fill(mark):
        if mark[2] not in TABLES:
            raise KeyError(f"there is no table {mark[2]!r} in benchmarks/tables.py")
        return f"{mark[1]}{TABLES[mark[2]]()}\n{mark[3]}"

    return MARK.sub(fill, text)


def documents():
    """Return the files that may have tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def main():
    changed = []
    for path in documents():
        before = path.read_text(encoding="utf-8")
        if (after := rendered(before)) != before:
            changed.append(path)
            if "--check" not in sys.argv:
                path.write_text(after, encoding="utf-8")
    print("\n".join(str(path.relative_to(ROOT)) for path in changed) or "all tables are as their files have them")
    sys.exit(bool(changed) and "--check" in sys.argv)


if __name__ == "__main__":
    main()
