"""Folders of audio with labels beside them: parts, phone lists, and everything that is wrong with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from echolearn.exceptions import CorpusError
from echolearn.speech import ENGLISH
from echolearn.speech._sources.folder import phone_list
from speechfiles import ProblemsOf, open_wav, tones, write_riff, write_sphere, write_utterance


def test_a_folder_without_parts_is_split_by_speaker(folder: Path) -> None:
    corpus = open_wav(folder)
    assert sorted(set(corpus.split)) == ["test", "train", "valid"]
    for speaker in set(corpus.speakers):
        assert len({p for p, s in zip(corpus.split, corpus.speakers, strict=True) if s == speaker}) == 1
    assert "split by speakers" in corpus.notes[0]
    assert len(corpus.state_names) == 183
    assert all(Path(path).is_file() for path in corpus.audio)


def test_folders_called_train_dev_and_test_are_the_parts(tmp_path: Path, problems_of: ProblemsOf) -> None:
    root = tmp_path / "c"
    for part in ("train", "dev", "test"):
        write_utterance(root / part / "a" / "u", seed=len(part))
    assert open_wav(root).split == ("valid", "test", "train")
    write_utterance(root / "stray", seed=9)
    assert "lies outside" in problems_of(lambda: open_wav(root))[0]


def test_with_train_and_test_alone_training_speakers_are_held_out(tmp_path: Path) -> None:
    root = tmp_path / "c"
    for k in range(3):
        write_utterance(root / "train" / f"s{k}" / "u", seed=k)
    write_utterance(root / "test" / "t" / "u", seed=5)
    assert sorted(open_wav(root).split) == ["test", "train", "train", "valid"]


def test_one_speaker_is_split_by_utterance_and_two_files_are_too_few(tmp_path: Path, problems_of: ProblemsOf) -> None:
    root = tmp_path / "c"
    for k in range(2):
        write_utterance(root / f"u{k}", seed=k)
    assert "holds 2 utterances to split" in problems_of(lambda: open_wav(root))[0]
    write_utterance(root / "u2", seed=2)
    assert "share voices" in open_wav(root).notes[0]


def test_phones_come_from_the_folders_own_list(folder: Path, problems_of: ProblemsOf) -> None:
    for phn in folder.rglob("*.phn"):
        phn.write_text(phn.read_text().replace("ih", "ɪ"), encoding="utf-8")
    assert "unknown phone 'ɪ'" in problems_of(lambda: open_wav(folder))[0]
    (folder / "phones.txt").write_text("h#\ns\nɪ\nt\n", encoding="utf-8")
    assert open_wav(folder).state_names[6] == "ɪ_s2"
    (folder / "phones.txt").write_text("h#\nh#\n")
    assert "names a phone twice" in problems_of(lambda: open_wav(folder))[0]
    assert phone_list(folder.parent, ["sil", "air"]) == ENGLISH
    with pytest.raises(CorpusError, match=r"phones.txt: does not exist.*: AA, T\. Write the phones"):
        phone_list(folder.parent, ["sil", "AA", "T"])


def test_every_bad_file_is_named_in_one_error(folder: Path, problems_of: ProblemsOf) -> None:
    files = sorted(folder.rglob("*.wav"))
    write_riff(files[0], np.stack([tones(1), tones(1)], axis=1))
    write_riff(files[1], np.zeros(16_000, dtype=np.int16))
    write_sphere(files[2], tones(0.5), promised=16_000)
    files[3].write_bytes(b"RIFF")
    files[4].with_suffix(".phn").write_text("0 9000 h#\n5000 16000 s\n")
    files[5].with_suffix(".phn").write_text("0 9000 h#\n9000 50000 s\n")
    files[6].with_suffix(".phn").unlink()
    write_riff(files[7], tones(0.02))
    (folder / "lonely.phn").write_text("0 100 s\n")
    write_utterance(folder / "eva" / "u0").with_suffix(".phn").write_text("from 0 to 1 s\n")
    write_utterance(folder / "eva" / "u1").with_suffix(".phn").unlink()
    (folder / "eva" / "u1.lab").write_text("h#\nwhat\n")
    found = problems_of(lambda: open_wav(folder))
    expected = ["2 channels", "silent", "truncated", "not audio", "an overlap of 250 ms", "no labels beside"]
    expected += [
        "runs past the audio",
        "a frame needs 400",
        "no audio beside",
        "line 1 is",
        "unknown phone 'what'",
    ]
    for message in expected:
        assert sum(message in line for line in found) == 1, message
    assert len(found) == len(expected)
    assert not any((folder.parent / "cache").glob("*")), "nothing half-made stays"


def test_an_empty_folder_is_refused(tmp_path: Path, problems_of: ProblemsOf) -> None:
    (tmp_path / "c").mkdir()
    assert "holds no audio" in problems_of(lambda: open_wav(tmp_path / "c"))[0]
