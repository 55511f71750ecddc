"""The table of the README: one line per kind of work, where echolearn is ahead and where it is behind."""

from contest_tables import contest_rows
from sequences import METHODS, OURS, table_of
from table_text import load, markdown, table


@table
def headlines():
    """Return one line per kind of work; the better side is in bold."""
    lines = (_learning(), _contest(), _sequences(), _forecasts(), _states())
    heads = ["work", "measure", ">echolearn", ">other", "what the other is", "evidence"]
    return markdown(heads, [_bold(line) for line in lines])


def _bold(line):
    """Return the cells of a line, with the better of its two numbers in bold."""
    work, measure, (ours, theirs), digits, which, evidence = line
    lower_is_better = "times" not in measure
    texts = [f"{value:.{digits}f}" for value in (ours, theirs)]
    best = 0 if (ours < theirs) == lower_is_better else 1
    texts[best] = f"**{texts[best]}**"
    return [work, measure, *texts, which, evidence]


def _learning(units=500):
    columns = next(row for row in load("table1_an4")["rows"] if row["units"] == units)["columns"]
    errors = [100 * columns[name]["test_error"] for name in ("ours", "esn_ours")]
    seeds = len(columns["ours"]["seeds"])
    which = f"the same {units} units with fixed weights ({seeds} seeds)"
    return "phone states of AN4 speech", "wrong frames, %", errors, 1, which, "[Table 1](docs/evidence/table1.md)"


def _contest(seconds=60):
    row = next(row for row in contest_rows("single") if row["budget"] == seconds)
    errors = [row[side]["test"]["mean"] for side in ("ours", "torch")]
    kinds = " and ".join(sorted({candidate["name"].split("-")[0] for candidate in row["torch"]["considered"]}))
    which = f"PyTorch, the best of tuned {kinds} ({row['torch']['name']}); {seconds} s of training on each side"
    return "the same", "wrong frames, %", errors, 1, which, "[contest](docs/evidence/benchmarks.md)"


def _sequences():
    sides = {name: table_of("error", [OURS, name]) for name in list(METHODS)[1:]}
    count = max(map(len, sides.values()))
    best = min((name for name in sides if len(sides[name]) == count), key=lambda name: sides[name][:, 1].mean())
    which = f"{best}, the best of {', '.join(name for name in sides if len(sides[name]) == count)}"
    work, evidence = f"one label per series, {count} data sets", "[whole series](docs/evidence/sequences.md)"
    return work, "mean error, %", sides[best].mean(axis=0).tolist(), 2, which, evidence


def _forecasts():
    rows = {row["method"]: row for row in load("series_forecasts")["rows"]}
    best = min(("AutoETS", "AutoARIMA", "AutoTheta", "reservoirpy"), key=lambda name: rows[name]["MASE"])
    errors = [rows[name]["MASE"] for name in ("echolearn", best)]
    which = f"{best}, the best of AutoETS, AutoARIMA, AutoTheta and reservoirpy"
    work = f"forecasts of {rows['echolearn']['series']} public series"
    return work, "mean MASE", errors, 2, which, "[forecasts](docs/howto/forecasting.md)"


def _states():
    rows = {row["work"]: row for row in load("peers_1")["rows"]}
    row = rows["one sequence, N=1000, density 0.1, float64"]
    which = f"{row['peer_name']}, both in float64"
    return (
        "states of 1,000 units",
        "seconds",
        [row["ours"], row["peer"]],
        2,
        which,
        "[speed](docs/evidence/performance.md)",
    )
