"""The table of the README: one line per kind of work, where echolearn is ahead and where it is behind."""

import statistics

from contest_tables import contest_rows
from sequences import METHODS, OURS, table_of
from table_text import load, markdown, table

FORECASTS = "[{}](docs/howto/forecasting.md)"
COMPETITIONS = {"m3_yearly": "M3, yearly", "m4_weekly": "M4, weekly", "m4_hourly": "M4, hourly"}


@table
def headlines():
    """Return one line per kind of work; the better side is in bold."""
    speech, competitions = (_learning(), _contest(), _phones()), map(_competition, COMPETITIONS)
    lines = [_bold(*line) for line in (*speech, _sequences(), _forecasts(), *competitions, _states())]
    return markdown(["work", "measure", ">echolearn", ">other", "what the other is"], lines)


def _bold(work, measure, errors, digits, which):
    """Return the cells of a line, with the smaller of its two numbers in bold."""
    texts = [f"{value:.{digits}f}" for value in errors]
    texts[errors.index(min(errors))] = f"**{min(errors):.{digits}f}**"
    return [work, measure, *texts, which]


def _learning(units=500):
    columns = next(row for row in load("table1_an4")["rows"] if row["units"] == units)["columns"]
    errors = [100 * columns[name]["test_error"] for name in ("ours", "esn_ours")]
    which = f"the same {units} units with fixed weights"
    return "[phone states of AN4 speech](docs/evidence/table1.md)", "wrong frames, %", errors, 1, which


def _contest(seconds=60):
    row = next(row for row in contest_rows("muon") if row["budget"] == seconds)
    errors = [row[side]["test"]["mean"] for side in ("ours", "torch")]
    which = f"the best tuned network of PyTorch, a TCN with Muon; {seconds} s of training on each side"
    return "[the same, deep](docs/evidence/benchmarks.md)", "wrong frames, %", errors, 1, which


def _phones(seconds=60):
    row = next(row for row in load("recognition")["rows"].values() if row["seconds"] == seconds)
    errors = [statistics.mean(found["error"] for found in row[side]["test"]) for side in ("ours", "torch")]
    return "[phones of AN4](docs/howto/recognition.md)", "wrong phones, %", errors, 1, "that TCN, same decoder"


def _sequences():
    sides = {name: table_of("error", [OURS, name]) for name in list(METHODS)[1:]}
    count = max(map(len, sides.values()))
    best = min((name for name in sides if len(sides[name]) == count), key=lambda name: sides[name][:, 1].mean())
    which = f"{best}, the best of {', '.join(name for name in sides if len(sides[name]) == count)}"
    work = f"[one label per series, {count} data sets](docs/evidence/sequences.md)"
    return work, "mean error, %", sides[best].mean(axis=0).tolist(), 2, which


def _forecasts():
    rows = {row["method"]: row for row in load("series_forecasts")["rows"]}
    best = min(("AutoETS", "AutoARIMA", "AutoTheta", "reservoirpy"), key=lambda name: rows[name]["MASE"])
    errors = [rows[name]["MASE"] for name in ("echolearn", best)]
    which = f"{best}, the best of AutoETS, AutoARIMA, AutoTheta and reservoirpy"
    work = FORECASTS.format(f"forecasts of {rows['echolearn']['series']} public series")
    return work, "mean MASE", errors, 2, which


def _competition(name):
    rows = {row["method"]: row for row in load("competition_forecasts")["rows"] if row["set"] == name}
    best = min((method for method in rows if method != "echolearn"), key=lambda method: rows[method]["MASE"])
    work = FORECASTS.format(f"{COMPETITIONS[name]}, {rows['echolearn']['series']} series")
    errors = [rows[method]["MASE"] for method in ("echolearn", best)]
    which = best.replace(", season found", " with the seasons that echolearn found")
    return work, "mean MASE", errors, 2, f"{which}, the best of {len(rows) - 1}"


def _states():
    row = next(row for row in load("peers_1")["rows"] if row["work"] == "one sequence, N=1000, density 0.1, float64")
    work, which = "[states of 1,000 units](docs/evidence/performance.md)", f"{row['peer_name']}, both in float64"
    return work, "seconds", [row["ours"], row["peer"]], 2, which
