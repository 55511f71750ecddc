"""A small Table 1, as `table1.json` holds it."""

from __future__ import annotations

from typing import Any

from echolearn.paper.table1 import PAPER_TIMIT, relative_gain


def entry(error: float, **more: Any) -> dict[str, Any]:
    """Return the results of one column."""
    return {
        "test_error": error,
        "valid_error": error - 0.01,
        "seconds": 12.5,
        "frames_per_second": 1e5,
        "peak_memory_mb": 321.0,
        "spectral_radius": 3.9,
        "epochs": 20,
        "seeds": [0],
        **more,
    }


def table(**changes: Any) -> dict[str, Any]:
    """Return a table of one row and four columns."""
    columns: Any = {"esn": entry(0.6), "W_Wrec_m3": entry(0.45), "esn_ours": entry(0.4), "ours": entry(0.3)}
    row = {
        "units": 100,
        "columns": columns,
        "relative_gain": relative_gain(columns, "esn", "W_Wrec_m3"),
        "relative_gain_ours": relative_gain(columns, "esn_ours", "ours"),
    }
    return {
        "corpus": "synthetic",
        "level": "state",
        "synthetic": True,
        "frames": {"train": 40_000, "valid": 6_000, "test": 6_100},
        "states": 156,
        "speakers": 30,
        "rows": [row],
        "paper_timit": PAPER_TIMIT,
        "settings": {"seeds": 1, "targets": "all", "gradient": "exact"},
        "notes": ["a note"],
        "complete": True,
        "echolearn": "0.1.0",
        **changes,
    }
