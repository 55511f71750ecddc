"""State labels that a master label file gives, and the faults they may have."""

from __future__ import annotations

from pathlib import Path

import pytest

from echolearn.speech.labels import Segment, read_mlf
from echolearn.speech.statelabels import given_labels, has_states
from speechfiles import ProblemsOf, open_timit, write_timit


def test_states_become_one_label_per_frame() -> None:
    states = [Segment(0.0, 0.02, "a_s2"), Segment(0.02, 0.05, "b[4]")]
    labels, problems = given_labels(states, 5, ["a", "b"], "x.mlf")
    assert (labels.tolist(), problems) == ([0, 0, 5, 5, 5], [])


@pytest.mark.parametrize("length", [6, 7])
def test_the_last_state_fills_up_to_two_missing_frames(length: int) -> None:
    labels, problems = given_labels([Segment(0.0, 0.05, "a_s2")], length, ["a"], "x.mlf")
    assert (labels.tolist(), problems) == ([0] * length, [])
    assert given_labels([Segment(0.0, 0.05, "a_s2")], 8, ["a"], "x.mlf")[1] != []


def test_states_without_times_are_refused() -> None:
    _, problems = given_labels(["a_s2", "a_s3"], 0, ["a"], "x.mlf")
    assert [p.what for p in problems] == [f"state 'a_s{k}' has no times; expected start and end" for k in (2, 3)]


def test_the_first_utterance_with_labels_decides_whether_they_are_states() -> None:
    assert has_states([[], ["a_s2", "b[3]"], ["a"]])
    assert not has_states([["a_s2", "b"]])
    assert not has_states([[], []])


def test_a_master_label_file_that_is_incomplete_or_does_not_fit_is_refused(
    tmp_path: Path, problems_of: ProblemsOf
) -> None:
    root = write_timit(tmp_path / "timit", upper=False)
    open_timit(root).write_mlf(tmp_path / "all.mlf")
    text = (tmp_path / "all.mlf").read_text()
    entries = text.split(".\n")
    names = list(read_mlf(tmp_path / "all.mlf"))

    part = "#!MLF!#\n" + ".\n".join(entries[1:]).replace("h#_s2", "h#[2]")
    (tmp_path / "part.mlf").write_text(part)
    found = problems_of(lambda: open_timit(root, labels=tmp_path / "part.mlf"))
    assert len(found) == 1
    assert "covers 11 of 12 utterances" in found[0]
    assert names[0].split("_")[-2] in found[0]

    bad = text.replace("sh_s2", "shush_s2", 1).replace('"*/test_dr1_faks0_sx3.lab"', '"*/sx3.lab"')
    bad = bad.replace("0 ", "200000 ", 1)
    (tmp_path / "bad.mlf").write_text(bad)
    found = problems_of(lambda: open_timit(root, labels=tmp_path / "bad.mlf"))
    assert any("unknown state 'shush_s2'" in line for line in found)
    assert any("a gap before" in line for line in found)

    (tmp_path / "long.mlf").write_text(text.replace("6800000", "9900000"))
    assert "run past the audio: 99 frames of labels, 68 of audio" in problems_of(
        lambda: open_timit(root, labels=tmp_path / "long.mlf")
    )[0]  # fmt: skip
