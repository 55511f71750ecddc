from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from echolearn.speech.corpus import Corpus, open_corpus
from echolearn.speech.errors import CorpusError, Problem
from echolearn.speech.features import normalised, with_context, with_differences
from echolearn.speech.folder import phone_list
from echolearn.speech.labels import read_phn, write_lab, write_textgrid
from echolearn.speech.phones import ENGLISH
from speechfiles import spoken, tones, write_riff, write_sphere

Problems = Callable[[Callable[[], object]], list[str]]


def wav(root: Path, **how: object) -> Corpus:
    return open_corpus(f"wav:{root}", cache=root.parent / "cache", **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("word", ["speech", "synthetic:x", "timit", "wav:", "features"])
def test_words_nobody_knows(word: str) -> None:
    with pytest.raises(ValueError, match="expected synthetic, timit:PATH"):
        open_corpus(word)


def test_options_that_do_not_belong(tmp_path: Path) -> None:
    for word, how, says in (
        ("wav:x", {"frames": 10}, "sizes the synthetic corpus"),
        ("features:x", {"labels": "a.mlf"}, "needs audio"),
        ("synthetic", {"labels": "a.mlf"}, "needs audio"),
        ("synthetic", {"normalise": "never"}, "'utterance' or 'corpus'"),
    ):
        with pytest.raises(ValueError, match=says):
            open_corpus(word, **how)  # type: ignore[arg-type]


def test_synthetic(small_tree: Path, small_cache: Path) -> None:
    seen: set[str] = set()
    corpus = open_corpus("synthetic", frames=12_000, seed=1, cache=small_cache, progress=lambda t, d, n: seen.add(t))
    assert seen == {"computing features", "aligning states", "labelling frames"}
    assert corpus.synthetic
    assert "synthetic" in corpus.notes[0]
    assert len(corpus.state_names) == 3 * len(ENGLISH)
    assert corpus.frames["train"] == pytest.approx(12_000, rel=0.05)
    speakers = {part: {corpus.speakers[k] for k in corpus.which(part)} for part in ("train", "valid", "test")}
    assert not speakers["train"] & (speakers["valid"] | speakers["test"])
    X, y = corpus.part("train")
    lazy, same = corpus.part("train", lazy=True)
    assert isinstance(X, list)
    assert all(np.array_equal(a, b) for a, b in zip(X[:3], lazy[:3], strict=True))
    assert y[0] is same[0]
    assert X[0].shape == (len(y[0]), 117)
    assert X[0].dtype == np.float32
    with pytest.raises(ValueError, match="train, valid, test"):
        corpus.part("dev")
    again = open_corpus("synthetic", frames=12_000, seed=1, cache=small_cache, progress=lambda t, d, n: seen.add("!"))
    assert "!" not in seen, "the second time nothing is computed"
    assert np.array_equal(np.concatenate(again.labels), np.concatenate(corpus.labels))


def test_normalised_per_corpus(folder: Path) -> None:
    corpus = wav(folder, normalise="corpus")
    X = np.concatenate(corpus.part("train")[0])[:, 39:78]
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(X.std(axis=0), 1, atol=1e-3)
    own = np.concatenate(list(wav(folder).features.without_context()))
    assert not np.allclose(own, np.concatenate(list(corpus.features.without_context())))


def test_a_folder_is_dealt_by_speaker(folder: Path) -> None:
    corpus = wav(folder)
    assert sorted(set(corpus.split)) == ["test", "train", "valid"]
    for speaker in set(corpus.speakers):
        assert len({p for p, s in zip(corpus.split, corpus.speakers, strict=True) if s == speaker}) == 1
    assert "dealt by speakers" in corpus.notes[0]
    assert len(corpus.state_names) == 183
    assert all(Path(path).is_file() for path in corpus.audio)


def test_folders_called_train_valid_test(tmp_path: Path, problems_of: Problems) -> None:
    root = tmp_path / "c"
    for part in ("train", "dev", "test"):
        spoken(root / part / "a" / "u", seed=len(part))
    assert wav(root).split == ("valid", "test", "train")
    spoken(root / "stray", seed=9)
    assert "lies outside" in problems_of(lambda: wav(root))[0]


def test_train_and_test_alone_give_validation_from_train(tmp_path: Path) -> None:
    root = tmp_path / "c"
    for k in range(3):
        spoken(root / "train" / f"s{k}" / "u", seed=k)
    spoken(root / "test" / "t" / "u", seed=5)
    assert sorted(wav(root).split) == ["test", "train", "train", "valid"]


def test_one_speaker_is_dealt_by_utterance_and_two_files_are_too_few(tmp_path: Path, problems_of: Problems) -> None:
    root = tmp_path / "c"
    for k in range(2):
        spoken(root / f"u{k}", seed=k)
    assert "holds 2 utterances to deal" in problems_of(lambda: wav(root))[0]
    spoken(root / "u2", seed=2)
    assert "share voices" in wav(root).notes[0]


def test_lab_and_textgrid_label_like_phn(folder: Path) -> None:
    first = wav(folder)
    for k, phn in enumerate(sorted(folder.rglob("*.phn"))):
        segments = read_phn(phn)
        phn.unlink()
        (write_lab if k % 2 else write_textgrid)(phn.with_suffix(".lab" if k % 2 else ".TextGrid"), segments)
    second = wav(folder)
    assert all(np.array_equal(a, b) for a, b in zip(first.labels, second.labels, strict=True))


def test_names_without_times_are_enough(folder: Path) -> None:
    for phn in sorted(folder.rglob("*.phn")):
        names = [s.name for s in read_phn(phn)]
        phn.unlink()
        phn.with_suffix(".lab").write_text("\n".join(names))
    corpus = wav(folder)
    assert all(len(set((y // 3).tolist())) >= 4 for y in corpus.labels)


def test_phn_counts_samples_of_the_file_as_it_lies(tmp_path: Path) -> None:
    root = tmp_path / "c"
    for k in range(3):
        write_riff(root / f"u{k}.wav", tones(1.0, k, 8_000), 8_000)
        (root / f"u{k}.phn").write_text("0 4000 h#\n4000 8000 s\n")
    assert {len(y) for y in wav(root).labels} == {98}


def test_phones_of_ones_own(folder: Path, problems_of: Problems) -> None:
    for phn in folder.rglob("*.phn"):
        phn.write_text(phn.read_text().replace("ih", "ɪ"), encoding="utf-8")
    assert "unknown phone 'ɪ'" in problems_of(lambda: wav(folder))[0]
    (folder / "phones.txt").write_text("h#\ns\nɪ\nt\n", encoding="utf-8")
    assert wav(folder).state_names[6] == "ɪ_s2"
    (folder / "phones.txt").write_text("h#\nh#\n")
    assert "names a phone twice" in problems_of(lambda: wav(folder))[0]
    assert phone_list(folder.parent, ["sil", "air"]) == ENGLISH


def test_every_bad_file_of_a_folder_in_one_list(folder: Path, problems_of: Problems) -> None:
    spots = sorted(folder.rglob("*.wav"))
    write_riff(spots[0], np.stack([tones(1), tones(1)], axis=1))
    write_riff(spots[1], np.zeros(16_000, dtype=np.int16))
    write_sphere(spots[2], tones(0.5), promised=16_000)
    spots[3].write_bytes(b"RIFF")
    spots[4].with_suffix(".phn").write_text("0 9000 h#\n5000 16000 s\n")
    spots[5].with_suffix(".phn").write_text("0 9000 h#\n9000 50000 s\n")
    spots[6].with_suffix(".phn").unlink()
    write_riff(spots[7], tones(0.02))
    (folder / "lonely.phn").write_text("0 100 s\n")
    spoken(folder / "eva" / "u0").with_suffix(".phn").write_text("from 0 to 1 s\n")
    spoken(folder / "eva" / "u1").with_suffix(".phn").unlink()
    (folder / "eva" / "u1.lab").write_text("h#\nwhat\n")
    found = problems_of(lambda: wav(folder))
    expected = ["2 channels", "silent", "truncated", "not audio", "an overlap of 250 ms", "no labels beside"]
    expected += [
        "runs past the audio",
        "a frame needs 400",
        "no audio beside",
        "line 1 is",
        "unknown phone 'what'",
    ]
    for says in expected:
        assert sum(says in line for line in found) == 1, says
    assert len(found) == len(expected)
    assert not any((folder.parent / "cache").glob("*")), "nothing half-made stays"


def test_more_phones_than_frames(folder: Path, problems_of: Problems) -> None:
    spoken(folder / "ann" / "u0", names="s ih " * 30, seconds=0.4)
    assert "38 frames cannot hold 60 phones" in problems_of(lambda: wav(folder))[0]


def test_an_empty_folder(tmp_path: Path, problems_of: Problems) -> None:
    (tmp_path / "c").mkdir()
    assert "holds no audio" in problems_of(lambda: wav(tmp_path / "c"))[0]


def test_a_cache_that_cannot_be_written_and_one_that_was_damaged(folder: Path, problems_of: Problems) -> None:
    (folder.parent / "file").write_text("")
    found = problems_of(lambda: open_corpus(f"wav:{folder}", cache=folder.parent / "file"))
    assert "cannot be written" in found[0]
    wav(folder)
    (made,) = (folder.parent / "cache").glob("prepared-*")
    content = {file.name: file.read_bytes() for file in made.iterdir()}
    for name, damaged in (
        ("features.f32", b""),
        ("features.f32", content["features.f32"] + b"1234"),
        ("labels.npy", content["labels.npy"][:-2]),
        ("labels.npy", content["labels.npy"][:-2] + b"\xff\x7f"),
        ("corpus.json", b"[" * 100_000),
        ("corpus.json", b"3"),
        ("corpus.json", b'{"lengths": [1e300], "phones": []}'),
    ):
        (made / name).write_bytes(damaged)
        assert "is damaged" in problems_of(lambda: wav(folder))[0]
        (made / name).write_bytes(content[name])
    wav(folder)


def test_a_full_disk_while_features_are_written(folder: Path) -> None:
    code = (
        "import resource, sys\nfrom echolearn.speech.corpus import open_corpus\n"
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


def test_the_error_shows_thirty_and_holds_all() -> None:
    error = CorpusError(Problem(f"{k}.wav", "bad") for k in range(50))
    assert len(error.problems) == 50
    assert "29.wav" in str(error)
    assert "30.wav" not in str(error)
    assert "20 more" in str(error)


def feature_arrays(columns: int = 13) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "features": rng.normal(2, 3, size=(60, columns)).astype(np.float32),
        "labels": rng.integers(0, 3, 60).astype(np.int16),
        "lengths": np.array([20, 10, 30], dtype=np.int32),
        "utterances": np.array(["a", "b", "c"]),
        "speakers": np.array(["x", "y", "z"]),
        "split": np.array(["train", "valid", "test"]),
        "state_names": np.array(["s0", "s1", "s2"]),
    }


def features(tmp_path: Path, **changed: np.ndarray) -> Corpus:
    arrays = {**feature_arrays(), **changed}
    np.savez(tmp_path / "f.npz", **{k: v for k, v in arrays.items() if v is not None})
    return open_corpus(f"features:{tmp_path / 'f.npz'}")


def test_thirteen_columns_get_the_usual_preparation(tmp_path: Path) -> None:
    corpus = features(tmp_path)
    raw = feature_arrays()["features"][20:30]
    np.testing.assert_array_equal(corpus.part("valid")[0][0], with_context(normalised(with_differences(raw))))
    assert corpus.frames == {"train": 20, "valid": 10, "test": 30}
    assert corpus.columns == 117


@pytest.mark.parametrize(("columns", "out"), [(39, 117), (117, 117), (5, 5)])
def test_other_widths(tmp_path: Path, columns: int, out: int) -> None:
    arrays = feature_arrays(columns)
    corpus = features(tmp_path, features=arrays["features"])
    assert corpus.columns == out
    if columns != 39:
        np.testing.assert_array_equal(corpus.features[0], arrays["features"][:20])


def changed(**arrays: object) -> dict[str, object]:
    return arrays


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (changed(labels=None, split=None), ["lacks the arrays labels, split"]),
        (changed(features=np.zeros(60, np.float32)), ["features is float32"]),
        (changed(labels=np.zeros(60), split=np.arange(3)), ["labels is float64", "split is int64"]),
        (
            changed(labels=np.zeros(59, np.int16), speakers=np.array(["x"])),
            ["labels has 59", "speakers has 1"],
        ),
        (changed(lengths=np.array([20, 10, 20])), ["lengths sum to 50"]),
        (changed(labels=np.full(60, 3)), ["labels run from 3 to 3"]),
        (changed(split=np.array(["train", "dev", "test"])), [r"split holds ['dev']"]),
        (changed(split=np.array(["train", "train", "test"])), ["split names only"]),
        (changed(utterances=np.array(["a", "a", "c"])), ["twice"]),
        (changed(utterances=np.array(["a", None, "c"], dtype=object)), ["without Python objects"]),
    ],
)
def test_bad_feature_files(
    tmp_path: Path, wrong: dict[str, np.ndarray], says: list[str], problems_of: Problems
) -> None:
    found = problems_of(lambda: features(tmp_path, **wrong))
    assert len(found) == len(says)
    assert all(text in line for text, line in zip(says, found, strict=True))
    assert str(tmp_path / "f.npz") in found[0]


def test_features_that_are_not_numbers(tmp_path: Path, problems_of: Problems) -> None:
    bad = feature_arrays()["features"]
    bad[25, 3], bad[40, 0] = np.nan, np.inf
    (found,) = problems_of(lambda: features(tmp_path, features=bad))
    assert "2 frames hold NaN or infinity, the first is row 25 (utterance b)" in found


def test_feature_files_that_are_none(tmp_path: Path, problems_of: Problems) -> None:
    (tmp_path / "a.npz").write_bytes(b"PK nothing")
    np.save(tmp_path / "b.npy", np.zeros(3))
    for name, says in (
        ("a.npz", "not a feature file"),
        ("b.npy", "not a feature file"),
        ("c.npz", "no such"),
    ):
        assert says in problems_of(lambda name=name: open_corpus(f"features:{tmp_path / name}"))[0]


def test_feature_files_that_promise_more_than_there_is(tmp_path: Path, problems_of: Problems) -> None:
    """Forged headers, and an archive that would unpack to more than memory holds."""
    features(tmp_path)
    whole = (tmp_path / "f.npz").read_bytes()
    (tmp_path / "f.npz").write_bytes(whole.replace(b"'shape': (60, ", b"'shape': (90, "))
    assert "not a feature file" in problems_of(lambda: open_corpus(f"features:{tmp_path / 'f.npz'}"))[0]
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as archive:
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": (10**12, 13)})
        archive.writestr("features.npy", head.getvalue())
    assert "promises float32" in problems_of(lambda: open_corpus(f"features:{tmp_path / 'bomb.npz'}"))[0]


def test_numbers_that_wrap_or_overflow_in_a_feature_file(tmp_path: Path, problems_of: Problems) -> None:
    huge = feature_arrays()["features"].astype(np.float64)
    huge[3, 1] = 1e300
    assert "hold NaN or infinity" in problems_of(lambda: features(tmp_path, features=huge))[0]
    wrapped = np.array([2**63 - 1, 2**63 - 1, 62])
    assert "lengths sum to" in problems_of(lambda: features(tmp_path, lengths=wrapped))[0]
