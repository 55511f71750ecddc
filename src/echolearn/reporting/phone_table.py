"""The phone errors of several systems as JSON, Markdown and plain text, from the content of `phones.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

from echolearn.modelfile.atomic import write_atomically
from echolearn.reporting.table import aligned, markdown_table, percent
from echolearn.training.progress import clock

SCHEMA = 1  # raised when a key of phones.json changes its meaning

LONG_NAMES = {
    "fixed": "fixed weights, only the readout is fitted",
    "learned": "all weights learned",
    "bidirectional": "all weights learned, half of the units run backward",
    "stacked": "two layers of half the units, all weights learned",
}
LEVELS = {
    "corpus": "the phones of the corpus",
    "phone48": "the 48 classes of Lee and Hon",
    "phone39": "the 39 classes of Lee and Hon",
}


class PartScore(TypedDict):
    """The errors of a system on one part, as fractions of reference phones; state and frame errors: of frames."""

    phone_error: float
    substitutions: float
    deletions: float
    insertions: float
    interval: list[float] | None  # of the phone error: 95 %, by a bootstrap over speakers; None with one speaker
    phone_error_with_silence: float  # silences counted like other phones
    state_error: float
    frame_phone_error: float
    reference_phones: int


class PhoneRow(TypedDict):
    """One system."""

    system: str
    units: int
    bidirectional: bool
    seconds: float  # of the fit
    processor_seconds: float | None
    decoding_seconds: float  # of tuning on valid and decoding test
    epochs: int
    valid: PartScore
    test: PartScore
    order: int  # of the phone n-gram
    weights: dict[str, float]  # of the decoder, tuned on valid
    made_with: NotRequired[Mapping[str, object]]


class PhoneComparison(TypedDict):
    """One system against another on the test part; p_value: matched pairs of utterances, None with one utterance."""

    system: str
    against: str
    relative_gain: float | None
    p_value: float | None


class PhoneTable(TypedDict):
    """The content of `phones.json`."""

    schema: int
    corpus: str
    digest: str
    synthetic: bool
    level: str
    phones: int
    states: int
    speakers: int
    frames: dict[str, int]
    utterances: dict[str, int]
    rows: list[PhoneRow]
    comparisons: list[PhoneComparison]
    settings: Mapping[str, object]
    notes: list[str]
    complete: bool
    echolearn: str


HEAD = ["system", "units", "test %", "95 % interval", "sub.", "del.", "ins.", "valid %", "state error %", "fit"]


def interval_text(interval: Sequence[float] | None) -> str:
    """Return `10.1 to 12.3`, in per cent; a dash where there is none."""
    return "–" if interval is None else f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f}"


def system_rows(table: PhoneTable) -> list[list[str]]:
    """Return one row of text per system, under `HEAD`."""
    return [
        [
            row["system"],
            f"{row['units']:,}",
            percent(row["test"]["phone_error"]),
            interval_text(row["test"]["interval"]),
            percent(row["test"]["substitutions"]),
            percent(row["test"]["deletions"]),
            percent(row["test"]["insertions"]),
            percent(row["valid"]["phone_error"]),
            percent(row["test"]["state_error"]),
            clock(row["seconds"]),
        ]
        for row in table["rows"]
    ]


def corpus_text(table: PhoneTable) -> str:
    """Return the corpus with its size in one line."""
    name = "synthetic speech (espeak-ng)" if table["synthetic"] else table["corpus"]
    frames = " / ".join(f"{table['frames'][part]:,}" for part in ("train", "valid", "test"))
    return f"{name}, {frames} frames (train / valid / test), {table['speakers']} speakers"


def scoring_text(table: PhoneTable) -> str:
    """Return how errors were counted."""
    test = table["rows"][0]["test"]["reference_phones"] if table["rows"] else 0
    return (
        f"Scored in {LEVELS[table['level']]}: {table['phones']}, silence included, which does not count as a phone"
        f"{f'; {test:,} phones on test' if test else ''}. {_ngram(table)}, durations and "
        "priors from the training labels; weights of the decoder tuned on valid; test decoded once."
    )


def _ngram(table: PhoneTable) -> str:
    """Return which phone n-gram the decoders have."""
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
    """Return the content of `phones.md`."""
    unfinished = "" if table["complete"] else "\nNot all systems are finished yet.\n"
    compared = "".join(f"\n- {line}" for line in comparison_lines(table))
    weights = [
        [row["system"], str(row["order"]), *(f"{value:g}" for value in row["weights"].values())]
        for row in table["rows"]
    ]
    names = ["order of the n-gram", *table["rows"][0]["weights"]] if table["rows"] else []
    notes = "".join(f"\n- {note}" for note in table["notes"])
    return f"""# Phone error

Corpus: {corpus_text(table)}. {scoring_text(table)}
{unfinished}
{headline(table)}

{markdown_table(HEAD, system_rows(table))}

Errors are per cent of the reference phones, state errors per cent of frames. The interval is a bootstrap over the
speakers of the test part.
{compared}

## Weights of the decoder

{markdown_table(["system", *(name.replace("_", " ") for name in names)], weights)}

Notes on the corpus:{notes or " none"}
"""


def plain_text(table: PhoneTable) -> str:
    """Return the table for a terminal."""
    lines = [f"Phone error: {corpus_text(table)}", *aligned(HEAD, system_rows(table)), *comparison_lines(table)]
    return "\n".join(["", *lines, "", headline(table)]).rstrip()


def write_phone_table(out: Path, table: PhoneTable) -> None:
    """Write `phones.json` and `phones.md` to the folder `out`, each of them atomically."""
    write_atomically(out / "phones.json", (json.dumps(table, indent=1, allow_nan=False) + "\n").encode())
    write_atomically(out / "phones.md", markdown(table).encode())
