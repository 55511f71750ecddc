"""A small table of phone errors, as `phones.json` holds it."""

from __future__ import annotations

from typing import Any


def part(error: float, interval: list[float] | None = None) -> dict[str, Any]:
    """Return the errors of a system on one part."""
    return {
        "phone_error": error,
        "substitutions": round(error - 0.1, 6),
        "deletions": 0.06,
        "insertions": 0.04,
        "interval": interval,
        "phone_error_with_silence": error - 0.02,
        "state_error": error + 0.15,
        "frame_phone_error": error + 0.05,
        "reference_phones": 1_200,
    }


def row(system: str, error: float, interval: list[float] | None = None) -> dict[str, Any]:
    """Return the row of a system."""
    return {
        "system": system,
        "units": 100,
        "bidirectional": False,
        "seconds": 12.3,
        "processor_seconds": 11.0,
        "decoding_seconds": 4.5,
        "epochs": 0,
        "valid": part(round(error - 0.01, 6)),
        "test": part(error, interval),
        "order": 2,
        "weights": {"prior_exponent": 0.6, "language_weight": 2.0},
    }


def table(**changes: Any) -> Any:
    """Return a table of two systems."""
    return {
        "schema": 1,
        "corpus": "synthetic",
        "digest": "d",
        "synthetic": True,
        "level": "corpus",
        "phones": 52,
        "states": 156,
        "speakers": 12,
        "frames": {"train": 40_000, "valid": 6_000, "test": 6_100},
        "utterances": {"train": 400, "valid": 60, "test": 61},
        "rows": [row("fixed", 0.3, [0.25, 0.35]), row("learned", 0.24)],
        "comparisons": [{"system": "learned", "against": "fixed", "relative_gain": 0.2, "p_value": 0.012}],
        "settings": {"order": 2},
        "notes": ["a note"],
        "complete": True,
        "echolearn": "0.1.0",
        **changes,
    }
