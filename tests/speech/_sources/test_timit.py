"""TIMIT's tree in its usual forms, its standard parts, and what is wrong with an incomplete copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from echolearn.speech import open_corpus
from echolearn.speech._sources.timit import (
    CORE_TEST,
    PART_FRAMES,
    PART_SPEAKERS,
    PART_UTTERANCES,
    TRAINING_REGIONS,
    VALIDATION,
    find_timit,
    frame_notes,
)
from speechfiles import (
    SAMPLE_SPEAKERS,
    TIMIT_PHONES,
    ProblemsOf,
    open_timit,
    write_sample,
    write_timit,
    write_utterance,
)

# TIMIT's readme.doc (CD1-1.1, 1990), table 3, "The core test set of 24 speakers": two men and one woman of each dialect
# region, by their initials.
README_TABLE_3 = """
    1  DAB0, WBT0  ELC0
    2  TAS1, WEW0  PAS0
    3  JMP0, LNT0  PKT0
    4  LLL0, TLS0  JLM0
    5  BPM0, KLT0  NLP0
    6  CMJ0, JDH0  MGD0
    7  GRT0, NJM0  DHC0
    8  JLN0, PAM0  MLD0
"""
# The 50 speakers of the development set in alphabetical order of their initials, as SpeechBrain's recipe for TIMIT
# (recipes/TIMIT/timit_prepare.py, `dev_spk`) has them; the list in the code is in the order of Kaldi's.
DEVELOPMENT_WOMEN = "adg0 aks0 cal1 cmh0 dac1 dms0 drw0 edw0 gjd0 jem0 jmg0 jsj0 kms0 mah0 mml0 nmr0 rew0 sem0"
DEVELOPMENT_MEN = (
    "ajc0 bdg0 bns0 bwm0 csh0 dlf0 dls0 dvc0 ers0 gjf0 glb0 gwt0 jar0 jfc0 jsw0 mdb1 mdm2 mjr0 mwh0 pdf0 rcs0 reb0 "
    "rjm4 rjr0 roa0 rtk0 rws1 taa0 tdt0 teb0 thc0 wjg0"
)


def test_the_core_test_speakers_are_those_of_the_readme() -> None:
    rows = [row.replace(",", "").lower().split() for row in README_TABLE_3.strip().splitlines()]
    assert [row[0] for row in rows] == list("12345678")
    assert {name for _, a, b, woman in rows for name in (f"m{a}", f"m{b}", f"f{woman}")} == CORE_TEST
    assert len(CORE_TEST) == PART_SPEAKERS["test"] == 24


def test_the_validation_speakers_are_those_of_other_recipes() -> None:
    women, men = DEVELOPMENT_WOMEN.split(), DEVELOPMENT_MEN.split()
    assert women == sorted(women)
    assert men == sorted(men)
    assert {f"f{name}" for name in women} | {f"m{name}" for name in men} == VALIDATION
    assert len(VALIDATION) == PART_SPEAKERS["valid"] == 50
    assert not CORE_TEST & VALIDATION


def test_the_counts_of_the_standard_task_follow_from_the_readme() -> None:
    """Tables 1 and 4: speakers of the corpus and of the complete test set in each region."""
    corpus, complete_test = (49, 102, 102, 100, 98, 46, 100, 33), (11, 26, 26, 32, 28, 11, 23, 11)
    assert (sum(corpus), sum(complete_test)) == (630, 168)
    regions = {str(k): a - b for k, (a, b) in enumerate(zip(corpus, complete_test, strict=True), 1)}
    assert regions == TRAINING_REGIONS
    assert sum(regions.values()) == PART_SPEAKERS["train"]
    assert {part: 8 * speakers for part, speakers in PART_SPEAKERS.items()} == PART_UTTERANCES


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


@pytest.mark.parametrize("upper", [False, True])
def test_a_sample_without_held_out_speakers_is_split_by_speaker(tmp_path: Path, upper: bool) -> None:
    found = find_timit(write_sample(tmp_path, seconds=0.1, upper=upper))
    assert found.problems == []
    assert len(found.utterances) == 16 * 8  # no SA sentences, and no file twice
    assert len({u.key for u in found.utterances}) == 16 * 8
    assert {u.audio.suffix for u in found.utterances} == {".WAV" if upper else ".wav"}
    parts = {u.speaker: u.part for u in found.utterances}
    assert sorted(parts) == sorted(name[4:] for name in SAMPLE_SPEAKERS)
    assert all(u.part == parts[u.speaker] for u in found.utterances)
    assert sorted(parts.values()) == ["test"] * 2 + ["train"] * 12 + ["valid"] * 2
    assert "a part of TIMIT" in found.notes[0]
    assert "16 speakers, 160 utterances" in found.notes[0]
    assert "left out 32 SA sentences" in found.notes[1]
    assert found.notes[2:] == ["split by speakers with seed 0: 12 train, 2 valid, 2 test"]


def test_the_seed_chooses_the_held_out_speakers_of_a_sample(tmp_path: Path) -> None:
    write_sample(tmp_path, sentences=3, seconds=0.1)
    splits = [[u.part for u in find_timit(tmp_path, seed).utterances] for seed in (0, 0, 1)]
    assert splits[0] == splits[1] != splits[2]


def test_a_sample_opens_without_the_counts_of_the_whole_corpus(tmp_path: Path) -> None:
    corpus = open_timit(write_sample(tmp_path / "sample", sentences=3))
    assert {part: len(corpus.which(part)) for part in ("train", "valid", "test")} == {
        "train": 12,
        "valid": 2,
        "test": 2,
    }
    assert len(corpus.state_names) == 183
    assert len(corpus.notes) == 3
    assert not any("usual" in note or "standard split" in note for note in corpus.notes)


def test_flat_folders_with_only_some_of_the_held_out_speakers_are_refused(tmp_path: Path) -> None:
    """They have a standard split, of which a part is missing: a split by speaker would train on core test speakers."""
    write_sample(tmp_path, sentences=3, seconds=0.1)
    write_utterance(tmp_path / "dr1-mdab0" / "sx139", TIMIT_PHONES, 0.1)
    (problem,) = find_timit(tmp_path).problems
    assert "holds no utterance of the valid part (50 speakers), only train and test" in problem.what


def test_train_and_test_folders_without_held_out_speakers_are_refused(tmp_path: Path) -> None:
    write_utterance(tmp_path / "train/dr1/fcjf0/sx1", TIMIT_PHONES, 0.1)
    what = [problem.what for problem in find_timit(tmp_path).problems]
    assert [text.split(";")[0] for text in what] == [
        "holds no utterance of the valid part (50 speakers), only train",
        "holds no utterance of the test part (24 speakers), only train",
    ]


def whole_timit(root: Path) -> Path:
    """Make the tree of the whole corpus out of empty audio files: no labels, no SA sentences, nobody left out."""
    names = [
        f"train/dr{region}/f{_three_letters(k)}{region}" for region, n in TRAINING_REGIONS.items() for k in range(n)
    ]
    names += [f"test/dr1/{speaker}" for speaker in sorted(CORE_TEST | VALIDATION)]
    for name in names:
        (root / name).mkdir(parents=True)
        for sentence in ("si1", "si2", "si3", "sx4", "sx5", "sx6", "sx7", "sx8"):
            (root / name / f"{sentence}.wav").touch()
    return root


def _three_letters(k: int) -> str:
    return f"z{chr(97 + k // 26)}{chr(97 + k % 26)}"


def test_a_whole_corpus_must_be_complete(tmp_path: Path) -> None:
    root = whole_timit(tmp_path)
    complete = find_timit(root, labels_required=False)
    assert complete.problems == []
    assert {part: sum(u.part == part for u in complete.utterances) for part in PART_UTTERANCES} == PART_UTTERANCES
    assert len(complete.notes) == 1  # nothing is unusual
    for removed in ("test/dr1/mdab0", "test/dr1/faks0", "train/dr3/fzaa3", "train/dr3/fzab3"):
        for file in (root / removed).iterdir():
            file.unlink()
    (root / "train/dr8/fzaa8/sx8.wav").unlink()
    found = [problem.what for problem in find_timit(root, labels_required=False).problems]
    assert [what.split(";")[0] for what in found] == [
        "holds 460 of the 462 speakers of the train part (dr3: 74 of 76)",
        "holds 49 of the 50 speakers of the valid part (missing: faks0)",
        "holds 23 of the 24 speakers of the test part (missing: mdab0)",
        "holds 7 of the 8 SX and SI sentences of the speaker fzaa8",
    ]
    assert all(what.endswith("the copy is damaged or incomplete, copy it again") for what in found)


def test_unusual_numbers_of_frames_are_explained() -> None:
    assert all(note.endswith("as usual") for note in frame_notes(PART_FRAMES, PART_UTTERANCES))
    more = frame_notes({**PART_FRAMES, "test": 57_900}, PART_UTTERANCES)
    assert "57,900 frames, -19 against the usual 57,919: every utterance is there" in more[2]
