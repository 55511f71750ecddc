"""TIMIT's tree in its usual forms, its standard parts, and what is wrong with an incomplete copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from echolearn.speech.corpus import open_corpus
from echolearn.speech.timit import CORE_TEST, FRAMES, UTTERANCES, VALIDATION, find_timit, frame_notes
from speechfiles import TIMIT_PHONES, ProblemsOf, open_timit, write_timit, write_utterance


def test_speaker_lists_have_the_standard_sizes() -> None:
    assert (len(CORE_TEST), len(VALIDATION), len(CORE_TEST & VALIDATION)) == (24, 50, 0)
    assert sum(name[0] == "f" for name in CORE_TEST) == 8  # one woman and two men per region


@pytest.mark.parametrize(("upper", "sphere"), [(True, True), (False, False)])
def test_the_tree_of_the_cd_is_found_in_upper_and_lower_case(tmp_path: Path, upper: bool, sphere: bool) -> None:
    found = find_timit(write_timit(tmp_path, upper, sphere))
    assert found.problems == []
    assert [(u.speaker, u.part) for u in found.utterances if "sx" in u.key] == [
        ("faks0", "valid"),
        ("mdab0", "test"),
        ("mreb0", "valid"),
        ("fcjf0", "train"),
        ("mdpk0", "train"),
        ("faem0", "train"),
    ]
    assert len(found.utterances) == 12
    assert "7 SA sentences and 2 sentences of test speakers outside" in found.notes[0]
    assert any("train: 3 speakers, the standard split has 462" in note for note in found.notes)
    assert any("missing: fadg0" in note for note in found.notes)


def test_in_flat_folders_test_speakers_are_known_by_what_they_read(tmp_path: Path) -> None:
    for speaker, sentences in (
        ("fvmh0", "sa1 sx1"),
        ("mdab0", "sa1 sx9"),
        ("fzzz0", "si7 sx9"),
        ("faks0", "sx9"),
    ):
        for sentence in sentences.split():
            write_utterance(tmp_path / f"dr1-{speaker}" / sentence, TIMIT_PHONES, 0.7)
    found = find_timit(tmp_path)
    assert found.problems == []
    assert [(u.speaker, u.part) for u in found.utterances] == [
        ("faks0", "valid"),
        ("fvmh0", "train"),
        ("mdab0", "test"),
    ]


def test_every_bad_file_is_named_in_one_error(tmp_path: Path, problems_of: ProblemsOf) -> None:
    root = write_timit(tmp_path / "timit", upper=False, sphere=True)
    files = sorted(p for p in root.rglob("*.wav") if p.stem[:2] != "sa" and "fcke9" not in str(p))
    files[0].unlink()
    files[1].with_suffix(".phn").unlink()
    files[2].write_bytes(files[2].read_bytes()[:-500])
    files[3].with_suffix(".phn").write_text("0 11200 zz\n")
    files[4].with_suffix(".phn").write_text("0 5000 h#\n9000 11200 h#\n")
    found = problems_of(lambda: open_timit(root))
    for file, message in zip(
        files,
        ("no audio beside", "no .PHN labels", "truncated", "unknown phone 'zz'", "a gap of 250 ms"),
        strict=False,
    ):
        assert any(message in line and str(file.with_suffix("")) in line for line in found), message
    assert len(found) == 5


def test_folders_without_timit_or_without_its_parts_are_refused(tmp_path: Path, problems_of: ProblemsOf) -> None:
    assert "no such folder" in problems_of(lambda: open_corpus(f"timit:{tmp_path / 'x'}"))[0]
    assert "no TIMIT speech" in problems_of(lambda: open_timit(tmp_path))[0]
    write_utterance(tmp_path / "train/dr1/fcjf0/sx1", TIMIT_PHONES, 0.7)
    assert len(problems_of(lambda: open_timit(tmp_path))) == 2  # no validation, no test


def test_unusual_numbers_of_frames_are_explained() -> None:
    assert all(note.endswith("as usual") for note in frame_notes(FRAMES, UTTERANCES))
    more = frame_notes({**FRAMES, "test": 57_900}, UTTERANCES)
    assert "57,900 frames, -19 against the usual 57,919: every utterance is there" in more[2]
