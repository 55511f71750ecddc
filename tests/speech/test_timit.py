from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from echolearn.speech.corpus import Corpus, open_corpus
from echolearn.speech.labels import read_mlf
from echolearn.speech.phones import TIMIT_61
from echolearn.speech.timit import CORE_TEST, FRAMES, UTTERANCES, VALIDATION, find_timit, frame_notes
from speechfiles import spoken, tones, write_riff

Problems = Callable[[Callable[[], object]], list[str]]
SENTENCE = "h# sh iy hv ae dcl y er h#"


def tree(root: Path, upper: bool, sphere: bool = False) -> Path:
    """Three training speakers, one of validation, one of the core test, one of neither."""
    rows = [
        "train/dr1/fcjf0",
        "train/dr1/mdpk0",
        "train/dr2/faem0",
        "test/dr1/faks0",
        "test/dr1/mdab0",
        "test/dr1/mreb0",
    ]
    rows.append("test/dr3/fcke9")
    for k, folder in enumerate(rows):
        for sentence in ("sa1", f"si{600 + k}", f"sx{k}"):
            stem = root / (f"{folder}/{sentence}".upper() if upper else f"{folder}/{sentence}")
            spoken(stem, SENTENCE, 0.7, seed=k, sphere=sphere)
            if upper:
                for ending in (".wav", ".phn"):
                    stem.with_suffix(ending).rename(stem.with_suffix(ending.upper()))
    return root


def test_the_lists_are_the_standard_ones() -> None:
    assert (len(CORE_TEST), len(VALIDATION), len(CORE_TEST & VALIDATION)) == (24, 50, 0)
    assert sum(name[0] == "f" for name in CORE_TEST) == 8  # one woman and two men a region


@pytest.mark.parametrize(("upper", "sphere"), [(True, True), (False, False)])
def test_the_cds_tree_in_either_case(tmp_path: Path, upper: bool, sphere: bool) -> None:
    utterances, notes, problems = find_timit(tree(tmp_path, upper, sphere))
    assert problems == []
    assert [(u.speaker, u.part) for u in utterances if "sx" in u.key] == [
        ("faks0", "valid"),
        ("mdab0", "test"),
        ("mreb0", "valid"),
        ("fcjf0", "train"),
        ("mdpk0", "train"),
        ("faem0", "train"),
    ]
    assert len(utterances) == 12
    assert "7 SA sentences and 2 sentences of test speakers outside" in notes[0]
    assert any("train: 3 speakers, the standard split has 462" in note for note in notes)
    assert any("missing: fadg0" in note for note in notes)


def test_flat_folders_know_the_test_speakers_by_what_they_read(tmp_path: Path) -> None:
    for speaker, sentences in (
        ("fvmh0", "sa1 sx1"),
        ("mdab0", "sa1 sx9"),
        ("fzzz0", "si7 sx9"),
        ("faks0", "sx9"),
    ):
        for sentence in sentences.split():
            spoken(tmp_path / f"dr1-{speaker}" / sentence, SENTENCE, 0.7)
    utterances, _, problems = find_timit(tmp_path)
    assert problems == []
    assert [(u.speaker, u.part) for u in utterances] == [
        ("faks0", "valid"),
        ("fvmh0", "train"),
        ("mdab0", "test"),
    ]


def test_a_converted_copy_beside_the_original_is_not_a_second_utterance(tmp_path: Path) -> None:
    root = tree(tmp_path, upper=True)
    one = next(root.rglob("SX0.WAV"))
    write_riff(one.with_name("SX0.WAV.wav"), tones(0.7))
    assert len(find_timit(root)[0]) == 12


def corpus_of(root: Path, **how: object) -> Corpus:
    return open_corpus(f"timit:{root}", cache=root.parent / "cache", **how)  # type: ignore[arg-type]


def test_a_corpus_and_its_labels_out_and_in_again(tmp_path: Path) -> None:
    root = tree(tmp_path / "timit", upper=True)
    corpus = corpus_of(root)
    assert corpus.frames == {"train": 6 * 68, "valid": 4 * 68, "test": 2 * 68}
    assert (corpus.columns, len(corpus.state_names), corpus.synthetic) == (117, 183, False)
    assert any("6 of the usual 3,696 utterances" in note for note in corpus.notes)
    order = [TIMIT_61.index(name) for name in SENTENCE.split()]
    for y in corpus.labels:
        phones = y // 3
        assert phones[np.r_[True, np.diff(phones) != 0]].tolist() == order

    corpus.write_mlf(tmp_path / "all.mlf")
    for phn in root.rglob("*.PHN"):
        phn.unlink()
    again = corpus_of(root, labels=tmp_path / "all.mlf")
    assert all(np.array_equal(a, b) for a, b in zip(corpus.labels, again.labels, strict=True))


def test_phone_level_mlf_is_aligned(tmp_path: Path) -> None:
    root = tree(tmp_path / "timit", upper=False)
    rows = ["#!MLF!#"]
    for wav in sorted(root.rglob("*.wav")):
        rows.append(f'"*/{wav.parent.name}_{wav.stem}.lab"')
        lines = [line.split() for line in wav.with_suffix(".phn").read_text().splitlines()]
        rows += [f"{int(a) * 625} {int(b) * 625} {n}" for a, b, n in lines] + ["."]
    (tmp_path / "all.mlf").write_text("\n".join(rows))
    own, other = corpus_of(root), corpus_of(root, labels=tmp_path / "all.mlf")
    assert all(np.array_equal(a, b) for a, b in zip(own.labels, other.labels, strict=True))


def test_an_mlf_that_covers_only_part_or_fits_badly(tmp_path: Path, problems_of: Problems) -> None:
    root = tree(tmp_path / "timit", upper=False)
    corpus_of(root).write_mlf(tmp_path / "all.mlf")
    text = (tmp_path / "all.mlf").read_text()
    entries = text.split(".\n")
    names = list(read_mlf(tmp_path / "all.mlf"))

    (tmp_path / "part.mlf").write_text(".\n".join(entries[1:]).replace("h#_s2", "h#[2]"))
    found = problems_of(lambda: corpus_of(root, labels=tmp_path / "part.mlf"))
    assert len(found) == 1
    assert "covers 11 of 12 utterances" in found[0]
    assert names[0].split("_")[-2] in found[0]

    bad = text.replace("sh_s2", "shush_s2", 1).replace('"*/test_dr1_faks0_sx3.lab"', '"*/sx3.lab"')
    bad = bad.replace("0 ", "200000 ", 1)
    (tmp_path / "bad.mlf").write_text(bad)
    found = problems_of(lambda: corpus_of(root, labels=tmp_path / "bad.mlf"))
    assert any("unknown state 'shush_s2'" in line for line in found)
    assert any("a gap before" in line for line in found)

    (tmp_path / "long.mlf").write_text(text.replace("6800000", "9900000"))
    assert "run past the audio: 99 frames of labels, 68 of audio" in problems_of(
        lambda: corpus_of(root, labels=tmp_path / "long.mlf")
    )[0]  # fmt: skip


def test_an_mlf_entry_that_fits_two(tmp_path: Path, problems_of: Problems) -> None:
    root = tree(tmp_path / "timit", upper=False)
    spoken(root / "train/dr2/faem0/sx0", SENTENCE, 0.7)
    (tmp_path / "a.mlf").write_text('#!MLF!#\n"*/sx0.lab"\n0 6800000 h#_s2\n.\n')
    found = problems_of(lambda: corpus_of(root, labels=tmp_path / "a.mlf"))
    assert "fits 2 utterances" in found[0]
    assert len(found) == 1 + 13
    entry = "0 6800000 h#_s2\n.\n"
    (tmp_path / "a.mlf").write_text(f'#!MLF!#\n"*/mdpk0_sx1.lab"\n{entry}"*/dr1/mdpk0/sx1.lab"\n{entry}')
    assert "two entries fit train/dr1/mdpk0/sx1" in problems_of(lambda: corpus_of(root, labels=tmp_path / "a.mlf"))[0]


def test_every_problem_of_a_tree_is_named_at_once(tmp_path: Path, problems_of: Problems) -> None:
    root = tree(tmp_path / "timit", upper=False, sphere=True)
    spots = sorted(p for p in root.rglob("*.wav") if p.stem[:2] != "sa" and "fcke9" not in str(p))
    spots[0].unlink()
    spots[1].with_suffix(".phn").unlink()
    spots[2].write_bytes(spots[2].read_bytes()[:-500])
    spots[3].with_suffix(".phn").write_text("0 11200 zz\n")
    spots[4].with_suffix(".phn").write_text("0 5000 h#\n9000 11200 h#\n")
    found = problems_of(lambda: corpus_of(root))
    for spot, says in zip(
        spots,
        ("no audio beside", "no .PHN labels", "truncated", "unknown phone 'zz'", "a gap of 250 ms"),
        strict=False,
    ):
        assert any(says in line and str(spot.with_suffix("")) in line for line in found), says
    assert len(found) == 5


def test_no_timit_at_all(tmp_path: Path, problems_of: Problems) -> None:
    assert "no such folder" in problems_of(lambda: open_corpus(f"timit:{tmp_path / 'x'}"))[0]
    assert "no TIMIT speech" in problems_of(lambda: corpus_of(tmp_path))[0]
    spoken(tmp_path / "train/dr1/fcjf0/sx1", SENTENCE, 0.7)
    assert len(problems_of(lambda: corpus_of(tmp_path))) == 2  # no validation, no test


def test_frame_counts_are_explained() -> None:
    assert all(note.endswith("as usual") for note in frame_notes(FRAMES, UTTERANCES))
    more = frame_notes({**FRAMES, "test": 57_900}, UTTERANCES)
    assert "57,900 frames, -19 against the usual 57,919: every utterance is there" in more[2]
