"""Checks of transcripts (phones with or without times) against the audio and the phone list."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from pathlib import Path

from echolearn.exceptions import Problem
from echolearn.speech.labels import Segment
from echolearn.speech.phones import SILENCES

Transcript = Sequence[Segment] | Sequence[str]

_TOLERANCE_SECONDS = 0.01  # one frame: hand labels and rounded times disagree by less


def phone_names(transcript: Transcript) -> list[str]:
    """Return the names of the phones of a transcript, without their times."""
    return [item.name if isinstance(item, Segment) else item for item in transcript]


def check_segments(
    segments: Sequence[Segment], seconds: float, phones: Collection[str], file: str | Path
) -> tuple[list[Segment], list[Problem]]:
    """Return segments that follow one another from 0 to `seconds`, and the reasons why they do not cover the audio.

    Boundaries that differ by up to a frame (10 ms) meet in the middle, and a silence extends to an unlabelled end.
    """
    known = set(phones)
    problems = [
        Problem(str(file), f"unknown phone {name!r} at {start:.3f} s; expected one of {len(known)} phones")
        for start, _, name in segments
        if name not in known
    ]
    edges = [segments[0].start]
    for before, after in itertools.pairwise(segments):
        apart = after.start - before.end
        if abs(apart) > _TOLERANCE_SECONDS:
            what = "a gap" if apart > 0 else "an overlap"
            problems.append(
                Problem(
                    str(file),
                    f"{what} of {abs(apart) * 1000:.0f} ms between {before.name!r} (ends {before.end:.3f} s) "
                    f"and {after.name!r} (starts {after.start:.3f} s); segments must follow one another",
                )
            )
        edges.append((before.end + after.start) / 2)
    edges.append(segments[-1].end)
    problems += _check_ends(segments, seconds, file)
    edges[0], edges[-1] = 0.0, seconds
    for k, (start, end) in enumerate(itertools.pairwise(edges)):
        if end < start and not problems:
            problems.append(Problem(str(file), f"{segments[k].name!r} ends at {end:.3f} s before it starts"))
    whole = [Segment(start, end, segment.name) for segment, start, end in zip(segments, edges, edges[1:], strict=False)]
    return whole, problems


def unknown_phones(names: Sequence[str], phones: Collection[str], file: str) -> list[Problem]:
    """Return one problem for each phone of a transcript that is not in the phone list."""
    return [
        Problem(file, f"unknown phone {name!r}; expected one of {len(phones)} phones")
        for name in sorted(set(names) - set(phones))
    ]


def too_few_frames(frames: int, names: Sequence[str], file: str) -> list[Problem]:
    """Return a problem if an utterance has fewer frames than phones, so that it cannot be aligned."""
    if names and frames >= len(names):
        return []
    what = f"{frames} frames cannot hold {len(names)} phones; labels and audio do not belong together"
    return [Problem(file, what)]


def _check_ends(segments: Sequence[Segment], seconds: float, file: str | Path) -> list[Problem]:
    problems = []
    first, last = segments[0], segments[-1]
    if last.end > seconds + _TOLERANCE_SECONDS:
        what = f"runs past the audio: {last.name!r} ends at {last.end:.3f} s, the audio at {seconds:.3f} s"
        problems.append(Problem(str(file), f"{what}; labels and audio do not belong together"))
    if seconds - last.end > _TOLERANCE_SECONDS and last.name not in SILENCES:
        what = f"leaves a gap of {(seconds - last.end) * 1000:.0f} ms after {last.name!r} at the end"
        problems.append(Problem(str(file), f"{what}; label the silence there"))
    if first.start > _TOLERANCE_SECONDS and first.name not in SILENCES:
        what = f"leaves a gap of {first.start * 1000:.0f} ms before {first.name!r} at the start"
        problems.append(Problem(str(file), f"{what}; label the silence there"))
    return problems
