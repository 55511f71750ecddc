"""Transcripts checked against the audio and the phone list."""

from __future__ import annotations

import pytest

from echolearn.speech.labels import Segment
from echolearn.speech.phones import ENGLISH
from echolearn.speech.transcripts import check_segments, phone_names, too_few_frames, unknown_phones


def problems_with(rows: list[tuple[float, float, str]]) -> list[str]:
    """Return what is wrong with these segments of one second of audio."""
    return [p.what for p in check_segments([Segment(*row) for row in rows], 1.0, ENGLISH, "a.phn")[1]]


def test_segments_that_fit_stay_as_they_are() -> None:
    rows = [Segment(0.0, 0.4, "sil"), Segment(0.4, 1.0, "iy")]
    assert check_segments(rows, 1.0, ENGLISH, "a.phn") == (rows, [])


def test_a_disagreement_of_one_frame_is_closed_halfway() -> None:
    rows = [Segment(0.0, 0.4, "sil"), Segment(0.408, 0.995, "iy")]
    closed, problems = check_segments(rows, 1.0, ENGLISH, "a.phn")
    assert problems == []
    assert [(s.start, s.end) for s in closed] == [(0.0, pytest.approx(0.404)), (pytest.approx(0.404), 1.0)]


def test_silence_is_extended_to_the_ends_of_the_audio() -> None:
    rows = [Segment(0.1, 0.2, "sil"), Segment(0.2, 0.6, "iy"), Segment(0.6, 0.7, "sil")]
    closed, problems = check_segments(rows, 1.0, ENGLISH, "a.phn")
    assert problems == []
    assert (closed[0].start, closed[-1].end) == (0.0, 1.0)


def test_every_problem_of_a_file_is_found() -> None:
    found = problems_with([(0.1, 0.3, "iy"), (0.2, 0.4, "xx"), (0.6, 1.2, "ah")])
    for message in (
        "unknown phone 'xx'",
        "an overlap of 100 ms",
        "a gap of 200 ms",
        "runs past the audio",
        "at the start",
    ):
        assert any(message in line for line in found), message
    assert len(found) == 5


def test_a_phone_that_ends_before_it_starts_is_refused() -> None:
    assert problems_with([(0.0, 0.5, "iy"), (0.5, 0.495, "ah"), (0.48, 1.0, "iy")]) != []
    within_tolerance = [(0.0, 0.5, "iy"), (0.5, 0.49, "ah"), (0.482, 1.0, "iy")]
    assert problems_with(within_tolerance) == ["'ah' ends at 0.486 s before it starts"]


def test_an_end_without_labels_is_refused() -> None:
    assert "gap of 500 ms after 'iy'" in problems_with([(0.0, 0.5, "iy")])[0]


def test_names_of_phones_with_and_without_times() -> None:
    assert phone_names([Segment(0.0, 0.4, "sil"), Segment(0.4, 1.0, "iy")]) == phone_names(["sil", "iy"])


def test_unknown_phones_are_named_once_in_alphabetical_order() -> None:
    found = unknown_phones(["zz", "iy", "aaa", "zz"], ENGLISH, "a.lab")
    assert [str(p).split(";")[0] for p in found] == ["a.lab: unknown phone 'aaa'", "a.lab: unknown phone 'zz'"]


def test_an_utterance_needs_one_frame_per_phone_and_at_least_one_phone() -> None:
    assert too_few_frames(2, ["sil", "iy"], "a.lab") == []
    assert too_few_frames(1, ["sil", "iy"], "a.lab") != []
    assert too_few_frames(5, [], "a.lab") != []
