"""The tables of docs/howto/monitoring.md."""

import statistics

from table_text import load, markdown, mean_and_spread, table

FAULTS = ("spike", "stuck", "noise", "shift", "creep")


def _rows(kind):
    return [row for row in load("monitoring").get("rows", []) if row["kind"] == kind]


@table
def monitoring_false_alarms():
    """Return alarms per 10,000 frames in which nothing is wrong."""
    cells = [
        [
            row["stream"],
            mean_and_spread(row["per_10000_at_0.0001"]),
            mean_and_spread(row["per_10000_at_0.001"]),
            mean_and_spread(row["drifts_per_10000"]),
            f"{row['microseconds']:.0f}",
        ]
        for row in _rows("false alarms")
    ]
    heads = [">level 0.0001 (1 expected)", ">level 0.001 (10 expected)", ">drifts (0.1 expected)", ">µs per frame"]
    return markdown(["stream", *heads], cells)


def _delay(row):
    """Return the median delay of the faults that were seen, and how many were not."""
    seen = [delay for delay in row["either"] if delay is not None]
    missed = len(row["either"]) - len(seen)
    text = f"{statistics.median(seen):.0f}" if seen else "–"
    return f"{text} ({missed} of {len(row['either'])} not seen)" if missed else text


@table
def monitoring_delays():
    """Return the frames until each fault is seen."""
    found = {(row["stream"], row["fault"]): _delay(row) for row in _rows("delay")}
    streams = dict.fromkeys(stream for stream, _ in found)
    cells = [[stream, *(found[stream, fault] for fault in FAULTS)] for stream in streams]
    return markdown(["stream", *(f">{fault}" for fault in FAULTS)], cells)


@table
def monitoring_guard():
    """Return the error after bad targets, relative to a readout that does not learn."""
    (row,) = _rows("guard")
    cells = [["RLS alone", mean_and_spread(row["without"])], ["RLS under guard", mean_and_spread(row["with"], 2)]]
    return markdown(["", ">error after bad targets, over that of the fitted readout"], cells)
