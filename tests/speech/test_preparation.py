"""Features and labels of a corpus of audio, and the cache that keeps them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from echolearn.exceptions import CorpusError
from echolearn.speech import Segment, open_corpus, read_mlf, read_phn
from echolearn.speech._preparation import atomic_folder, default_cache, has_states, mlf_labels
from speechfiles import (
    ProblemsOf,
    open_timit,
    open_wav,
    tones,
    write_lab,
    write_riff,
    write_textgrid,
    write_timit,
    write_utterance,
)


def test_normalised_by_the_training_part(folder: Path) -> None:
    corpus = open_wav(folder, normalise="corpus")
    X = np.concatenate(corpus.part("train")[0])[:, 39:78]
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(X.std(axis=0), 1, atol=1e-3)
    own = np.concatenate(list(open_wav(folder).features.without_context()))
    assert not np.allclose(own, np.concatenate(list(corpus.features.without_context())))


def test_lab_and_textgrid_give_the_same_labels_as_phn(folder: Path) -> None:
    first = open_wav(folder)
    for k, phn in enumerate(sorted(folder.rglob("*.phn"))):
        segments = read_phn(phn)
        phn.unlink()
        (write_lab if k % 2 else write_textgrid)(phn.with_suffix(".lab" if k % 2 else ".TextGrid"), segments)
    second = open_wav(folder)
    assert all(np.array_equal(a, b) for a, b in zip(first.labels, second.labels, strict=True))


def test_phones_without_times_are_aligned(folder: Path) -> None:
    for phn in sorted(folder.rglob("*.phn")):
        names = [s.name for s in read_phn(phn)]
        phn.unlink()
        phn.with_suffix(".lab").write_text("\n".join(names))
    corpus = open_wav(folder)
    assert all(len(set((y // 3).tolist())) >= 4 for y in corpus.labels)


def test_the_aligner_learns_from_the_training_part_alone(tmp_path: Path) -> None:
    """Other speech in the validation and the test part leaves every label of the training part as it was."""
    labels = []
    for other in (False, True):
        root = tmp_path / f"c{other}"
        for part, count in (("train", 4), ("valid", 6), ("test", 6)):
            for k in range(count):
                audio = write_utterance(root / part / f"s{k}" / "u", seed=k)
                if other and part != "train":
                    write_riff(audio, np.random.default_rng(k).normal(0, 3_000, 16_000).astype(np.int16))
        corpus = open_wav(root)
        labels.append([corpus.labels[k].tolist() for k in corpus.which("train")])
        held_out = [corpus.labels[k].tolist() for k in corpus.which("test")]
    assert labels[0] == labels[1]
    assert held_out != labels[1]


def test_phn_counts_samples_of_the_file_before_resampling(tmp_path: Path) -> None:
    root = tmp_path / "c"
    for k in range(3):
        write_riff(root / f"u{k}.wav", tones(1.0, k, 8_000), 8_000)
        (root / f"u{k}.phn").write_text("0 4000 h#\n4000 8000 s\n")
    assert {len(y) for y in open_wav(root).labels} == {98}


def test_more_phones_than_frames_are_refused(folder: Path, problems_of: ProblemsOf) -> None:
    write_utterance(folder / "ann" / "u0", names="s ih " * 30, seconds=0.4)
    assert "38 frames cannot hold 60 phones" in problems_of(lambda: open_wav(folder))[0]


def test_a_cache_that_cannot_be_written_or_was_damaged_is_named(folder: Path, problems_of: ProblemsOf) -> None:
    (folder.parent / "file").write_text("")
    found = problems_of(lambda: open_corpus(f"wav:{folder}", cache=folder.parent / "file"))
    assert "cannot be written" in found[0]
    open_wav(folder)
    (made,) = (folder.parent / "cache").glob("prepared-*")
    content = {file.name: file.read_bytes() for file in made.iterdir()}
    known = json.loads(content["corpus.json"])
    first, *others = known["lengths"]
    wrong_descriptions = [
        {**known, "lengths": [float(first), *others]},
        {**known, "lengths": [first + others[0], 0, *others[1:]]},
        {**known, "lengths": [*known["lengths"], 0]},
        {**known, "phones": []},
        {**known, "phones": [*known["phones"][:-1], 3]},
    ]
    for name, damaged in (
        ("features.f32", b""),
        ("features.f32", content["features.f32"] + b"1234"),
        ("labels.npy", content["labels.npy"][:-2]),
        ("labels.npy", content["labels.npy"][:-2] + b"\xff\x7f"),
        ("labels.npy", content["labels.npy"][:-2] + b"\xff\xff"),  # -1
        ("corpus.json", b"[" * 100_000),
        ("corpus.json", b"3"),
        ("corpus.json", b'{"lengths": [1e300], "phones": []}'),
        *(("corpus.json", json.dumps(wrong).encode()) for wrong in wrong_descriptions),
    ):
        (made / name).write_bytes(damaged)
        assert "is damaged" in problems_of(lambda: open_wav(folder))[0]
        (made / name).write_bytes(content[name])
    open_wav(folder)


def test_a_full_disk_is_named_and_leaves_nothing_behind(folder: Path) -> None:
    code = (
        "import resource, sys\nfrom echolearn.speech._corpus import open_corpus\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "try: open_corpus('wav:' + sys.argv[1], cache=sys.argv[2])\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    cache = folder.parent / "cache"
    args = [sys.executable, "-c", code, str(folder), str(cache)]
    out = subprocess.run(args, capture_output=True, text=True, check=True).stdout
    assert out.startswith("CorpusError")
    assert "disk is full" in out
    assert os.listdir(cache) == []


# ---------------- State labels that a master label file gives, and the faults they may have


def test_states_become_one_label_per_frame() -> None:
    states = [Segment(0.0, 0.02, "a_s2"), Segment(0.02, 0.05, "b[4]")]
    labels, problems = mlf_labels(states, 5, ["a", "b"], "x.mlf")
    assert (labels.tolist(), problems) == ([0, 0, 5, 5, 5], [])


@pytest.mark.parametrize("length", [6, 7])
def test_the_last_state_fills_up_to_two_missing_frames(length: int) -> None:
    labels, problems = mlf_labels([Segment(0.0, 0.05, "a_s2")], length, ["a"], "x.mlf")
    assert (labels.tolist(), problems) == ([0] * length, [])
    assert mlf_labels([Segment(0.0, 0.05, "a_s2")], 8, ["a"], "x.mlf")[1] != []


def test_states_without_times_are_refused() -> None:
    _, problems = mlf_labels(["a_s2", "a_s3"], 0, ["a"], "x.mlf")
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


# ---------------- Folders of the cache appear complete or not at all


def test_of_two_processes_that_write_the_same_folder_the_first_to_finish_stays(tmp_path: Path) -> None:
    for content in ("first", "second"):
        with atomic_folder(tmp_path / "tree") as building:
            (building / "file").write_text(content)
            (tmp_path / "tree").mkdir(exist_ok=True)
            (tmp_path / "tree" / "file").write_text("theirs")
    assert os.listdir(tmp_path) == ["tree"]
    assert (tmp_path / "tree" / "file").read_text() == "theirs"


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    with suppress(KeyError), atomic_folder(tmp_path / "tree") as building:
        (building / "file").write_text("half")
        raise KeyError
    assert os.listdir(tmp_path) == []


def test_a_parent_that_is_no_folder_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(CorpusError, match=r"cannot be written .*cache=\.\.\. or the variable ECHOLEARN_CACHE"),
        atomic_folder(tmp_path / "file" / "tree"),
    ):
        pass


def test_default_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHOLEARN_CACHE", "/own")
    assert default_cache() == Path("/own")
    monkeypatch.delenv("ECHOLEARN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert default_cache() == Path("/xdg/echolearn")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path.home() / ".cache" / "echolearn"
