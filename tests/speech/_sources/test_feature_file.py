"""Feature files: how columns are prepared, and files that are damaged or do not fit together."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from echolearn.speech import Corpus, normalised, open_corpus, with_context, with_differences
from echolearn.speech._sources import feature_file
from speechfiles import ProblemsOf


def feature_arrays(columns: int = 13) -> dict[str, np.ndarray]:
    """Return the arrays of a good file: one utterance of each part."""
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


def open_features(tmp_path: Path, **changes: np.ndarray) -> Corpus:
    """Write a feature file with some arrays replaced, or left out where they are None, and open it."""
    arrays = {**feature_arrays(), **changes}
    np.savez(tmp_path / "f.npz", **{k: v for k, v in arrays.items() if v is not None})
    return open_corpus(f"features:{tmp_path / 'f.npz'}")


def test_thirteen_columns_are_prepared_as_mfcc(tmp_path: Path) -> None:
    corpus = open_features(tmp_path)
    raw = feature_arrays()["features"][20:30]
    np.testing.assert_array_equal(corpus.part("valid")[0][0], with_context(normalised(with_differences(raw))))
    assert corpus.frames == {"train": 20, "valid": 10, "test": 30}
    assert corpus.columns == 117


@pytest.mark.parametrize(("columns", "out"), [(39, 117), (117, 117), (5, 5)])
def test_other_numbers_of_columns(tmp_path: Path, columns: int, out: int) -> None:
    arrays = feature_arrays(columns)
    corpus = open_features(tmp_path, features=arrays["features"])
    assert corpus.columns == out
    if columns != 39:
        np.testing.assert_array_equal(corpus.features[0], arrays["features"][:20])


def changed(**arrays: object) -> dict[str, object]:
    return arrays


@pytest.mark.parametrize(
    ("wrong", "messages"),
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
        (changed(state_names=np.array([f"s{k}" for k in range(2**15)])), ["at most 32767"]),
        (changed(utterances=np.array(["a", "a", "c"])), ["twice"]),
        (changed(utterances=np.array(["a", None, "c"], dtype=object)), ["without Python objects"]),
    ],
)
def test_every_fault_of_a_file_is_named(
    tmp_path: Path, wrong: dict[str, np.ndarray], messages: list[str], problems_of: ProblemsOf
) -> None:
    found = problems_of(lambda: open_features(tmp_path, **wrong))
    assert len(found) == len(messages)
    assert all(text in line for text, line in zip(messages, found, strict=True))
    assert str(tmp_path / "f.npz") in found[0]


def test_frames_that_are_not_finite_are_located(tmp_path: Path, problems_of: ProblemsOf) -> None:
    bad = feature_arrays()["features"]
    bad[25, 3], bad[40, 0] = np.nan, np.inf
    (found,) = problems_of(lambda: open_features(tmp_path, features=bad))
    assert "2 frames hold NaN or infinity, the first is row 25 (utterance b)" in found


def test_files_of_another_format_are_refused(tmp_path: Path, problems_of: ProblemsOf) -> None:
    (tmp_path / "a.npz").write_bytes(b"PK nothing")
    np.save(tmp_path / "b.npy", np.zeros(3))
    for name, message in (
        ("a.npz", "not a feature file"),
        ("b.npy", "not a feature file"),
        ("c.npz", "no such"),
    ):
        assert message in problems_of(lambda name=name: open_corpus(f"features:{tmp_path / name}"))[0]


def test_headers_that_promise_more_than_the_file_holds_are_refused(tmp_path: Path, problems_of: ProblemsOf) -> None:
    """Forged headers, and an archive that would unpack to more than memory holds."""
    open_features(tmp_path)
    whole = (tmp_path / "f.npz").read_bytes()
    (tmp_path / "f.npz").write_bytes(whole.replace(b"'shape': (60, ", b"'shape': (90, "))
    assert "not a feature file" in problems_of(lambda: open_corpus(f"features:{tmp_path / 'f.npz'}"))[0]
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as archive:
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": (10**12, 13)})
        archive.writestr("features.npy", head.getvalue())
    assert "promises float32" in problems_of(lambda: open_corpus(f"features:{tmp_path / 'bomb.npz'}"))[0]


def test_numbers_that_overflow_are_refused(tmp_path: Path, problems_of: ProblemsOf) -> None:
    huge = feature_arrays()["features"].astype(np.float64)
    huge[3, 1] = 1e300
    assert "hold NaN or infinity" in problems_of(lambda: open_features(tmp_path, features=huge))[0]
    wrapped = np.array([2**63 - 1, 2**63 - 1, 62])
    assert "lengths sum to" in problems_of(lambda: open_features(tmp_path, lengths=wrapped))[0]


def test_an_array_larger_than_the_free_memory_is_refused(
    tmp_path: Path, problems_of: ProblemsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feature_file, "available_memory", lambda: 1000.0)
    assert "GB of memory are free" in problems_of(lambda: open_features(tmp_path))[0]
