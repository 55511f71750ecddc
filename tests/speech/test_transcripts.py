"""Transcripts checked against the audio and the phone list."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from echolearn.exceptions import CorpusError
from echolearn.speech import ENGLISH, Segment, open_corpus
from echolearn.speech._transcripts import (
    check_segments,
    match_transcripts,
    phone_names,
    read_transcripts,
    read_word_file,
    too_few_frames,
    unknown_phones,
    word_file,
)


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


# ---------------- Words of utterances


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    ["a1 GO ON\na2 YES\n\na3\n", "<s> GO ON </s> (a1)\n<s> YES </s> (a2)\n(a3)\n"],
    ids=["the name first", "the name last"],
)
def test_both_forms_of_transcripts(tmp_path: Path, text: str) -> None:
    assert read_transcripts(written(tmp_path / "text", text)) == {"a1": ("GO", "ON"), "a2": ("YES",), "a3": ()}


def test_brackets_in_one_line_do_not_make_the_name_last(tmp_path: Path) -> None:
    found = read_transcripts(written(tmp_path / "text", "a1 GO (laughs)\na2 YES\n"))
    assert found == {"a1": ("GO", "(laughs)"), "a2": ("YES",)}


@pytest.mark.parametrize(
    ("text", "message"), [("", "no transcript"), ("a GO\na YES\n", "line 2: a has a transcript already")]
)
def test_wrong_transcripts_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        read_transcripts(written(tmp_path / "text", text))
    with pytest.raises(CorpusError, match="can be read"):
        read_transcripts(tmp_path / "none")


def test_files_of_words(tmp_path: Path) -> None:
    audio = tmp_path / "SX1.WAV"
    assert word_file(audio) is None
    text = written(tmp_path / "SX1.TXT", "0 46797 She had your dark-blue suit, didn't she?\n")
    assert word_file(audio) == text
    assert read_word_file(text) == ("she", "had", "your", "dark-blue", "suit", "didn't", "she")
    timed = written(tmp_path / "SX1.WRD", "0 100 she\n100 300 had\n")
    assert word_file(audio) == timed == word_file(tmp_path / "SX1.WAV.wav")
    assert read_word_file(timed) == ("she", "had")
    assert read_word_file(written(tmp_path / "plain.txt", "7 lights")) == ("7", "lights")


@pytest.mark.parametrize("line", ["0 she", "0 x she", "5 3 she", "0 5 she had"])
def test_a_wrong_line_of_a_word_file_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(CorpusError, match=r"a.wrd.*line 2: .*expected the first sample"):
        read_word_file(written(tmp_path / "a.wrd", f"0 3 so\n{line}\n"))


def test_names_match_in_any_case_and_with_any_mark_between(tmp_path: Path) -> None:
    transcripts = {"DR1/fcjf0-sx1": ("a",), "other": ()}
    assert match_transcripts(["dr1_fcjf0_sx1"], transcripts, "text") == [("a",)]
    with pytest.raises(CorpusError, match=r"1 of 2 utterances, the first is missing_one"):
        match_transcripts(["other", "missing_one"], transcripts, "text")


def test_a_transcript_belongs_to_the_one_utterance_whose_name_ends_with_its_own() -> None:
    transcripts = {"u1": ("short",), "ann/u1": ("long",), "u2": ("other",)}
    names = ["bob_u1", "dr1_ann_u1", "bob_u2"]
    assert match_transcripts(names, transcripts, "text") == [("short",), ("long",), ("other",)]
    with pytest.raises(CorpusError, match="'u2' fits ann_u2 and bob_u2; write the speaker"):
        match_transcripts(["ann_u2", "bob_u2"], transcripts, "text")
    with pytest.raises(CorpusError, match="no transcript of 1 of 1"):
        match_transcripts(["cu1"], transcripts, "text")  # not a part of its own


def test_a_corpus_of_features_gets_its_words_from_lists(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "mine.npz",
        features=np.zeros((6, 2), np.float32),
        labels=np.array([0, 0, 1, 1, 0, 1]),
        lengths=np.array([2, 2, 2]),
        utterances=np.array(["a", "b", "c"]),
        speakers=np.array(["ann", "bob", "cid"]),
        split=np.array(["train", "valid", "test"]),
        state_names=np.array(["sil", "iy"]),
    )
    word = f"features:{tmp_path / 'mine.npz'}"
    assert open_corpus(word).words == ((), (), ())
    lists = [written(tmp_path / "1", "GO (a)\nYES (b)\n"), written(tmp_path / "2", "c NO\n")]
    assert open_corpus(word, transcripts=lists).words == (("GO",), ("YES",), ("NO",))
    with pytest.raises(CorpusError, match="has no transcript of 1 of 3"):
        _ = open_corpus(word, transcripts=lists[0]).words
