"""The AN4 file is built from feature files of every format and CNTK's labels, or not at all."""

from __future__ import annotations

import hashlib
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import build_an4
from echolearn.exceptions import CorpusError
from echolearn.speech import open_corpus

# One utterance of each part, as CNTK's file has them: folders before the name, scores and triphones after the state,
# the word at its first state.
MLF = """#!MLF!#
"An4/71/71/cen5-mblw-b.lab"
0 100000 sil[2] -0.785971 sil 454.794006 </s>
100000 300000 sil[4] 465.522034
300000 600000 eh_s2_1 -34.550915 f-eh+b 16.545036 M
.
"An4/36/36/an36-fejs-b.lab"
0 400000 sil[2] 3.981831 sil 162.838974 </s>
.
"An4/2/2/an253-fash-b.lab"
0 200000 eh_s2_1 -15.208101 f-eh+b -83.965988 GO
200000 500000 sil[2] -39.941181 sil 1.5
.
"""
STATES = {
    "an253-fash-b": ["eh_s2_1"] * 2 + ["sil[2]"] * 3,
    "an36-fejs-b": ["sil[2]"] * 4,
    "cen5-mblw-b": ["sil[2]", "sil[4]", "sil[4]", "eh_s2_1", "eh_s2_1", "eh_s2_1"],
}
NAMES = ["eh_s2_1", "sil[2]", "sil[4]"]


def cepstra(name: str, surplus: int = 0) -> np.ndarray:
    """Return the features of an utterance, with so many frames after its last label."""
    return np.random.default_rng(len(name)).normal(9, 3, (len(STATES[name]) + surplus, 13)).astype(np.float32)


def sphinx(frames: np.ndarray, order: str) -> bytes:
    return struct.pack(f"{order}i", frames.size) + frames.astype(f"{order}f4").tobytes()


def htk(frames: np.ndarray, period: int = 100_000, kind: int = 6) -> bytes:
    head = struct.pack(">iihh", len(frames), period, 4 * frames.shape[1], kind)
    return head + frames.astype(">f4").tobytes()


@pytest.fixture
def distribution(tmp_path: Path) -> Path:
    """A small distribution: one file in each format, folders by speaker, and a file that has no labels."""
    for name, content in {
        "an253-fash-b": sphinx(cepstra("an253-fash-b", 1), "<"),
        "an36-fejs-b": sphinx(cepstra("an36-fejs-b"), ">"),
        "cen5-mblw-b": htk(cepstra("cen5-mblw-b", 3)),
        "an406-fcaw-b": b"",  # of AN4's own test set: not read
    }.items():
        path = tmp_path / "feat" / "an4_clstk" / name.split("-")[1] / f"{name}.mfc"
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    (tmp_path / "glob_0000.mlf").write_text(MLF)
    return tmp_path


@pytest.fixture
def expected(monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
    """The arrays of that distribution, written out by hand; their digests stand for those of AN4."""
    arrays = {
        "features": np.concatenate([cepstra(name) for name in STATES]),
        "labels": np.array([NAMES.index(state) for states in STATES.values() for state in states], dtype=np.int16),
        "lengths": np.array([5, 4, 6], dtype=np.int32),
        "utterances": np.array(list(STATES)),
        "speakers": np.array(["fash", "fejs", "mblw"]),
        "split": np.array(["test", "valid", "train"]),
        "state_names": np.array(NAMES),
    }
    digests = {
        name: hashlib.sha256(array.tobytes() if array.dtype.kind != "U" else "\n".join(array).encode()).hexdigest()
        for name, array in arrays.items()
    }
    assert sys.byteorder == "little"
    monkeypatch.setattr(build_an4, "DIGESTS", digests)
    return arrays


def build(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["build_an4.py", *map(str, arguments)])
    build_an4.main()


def message(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> str:
    with pytest.raises(SystemExit) as ended:
        build(monkeypatch, *arguments)
    return str(ended.value.code)


def test_every_array_is_built_from_the_distribution(
    distribution: Path, expected: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = distribution / "an4.npz"
    given = ("--features", distribution / "feat", "--labels", distribution / "glob_0000.mlf", "--out", out)
    build(monkeypatch, *given)
    with np.load(out, allow_pickle=False) as built:
        for name, array in expected.items():
            np.testing.assert_array_equal(built[name], array)
            assert built[name].dtype == array.dtype
    build(monkeypatch, "--check", out)
    assert open_corpus(f"features:{out}").split == ("test", "valid", "train")


@pytest.mark.parametrize("name", ["features", "labels", "split"])
def test_a_file_that_differs_in_any_array_is_refused(
    distribution: Path, expected: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    changed = np.roll(expected[name], 1, axis=0)
    np.savez(distribution / "other.npz", **{**expected, name: changed})
    text = message(monkeypatch, "--check", distribution / "other.npz")
    assert "not the file that the figures" in text
    assert [line.split()[0] for line in text.splitlines() if " differs: " in line] == [name]


def test_a_distribution_that_differs_is_not_written(
    distribution: Path, expected: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = distribution / "feat/an4_clstk/mblw/cen5-mblw-b.mfc"
    path.write_bytes(htk(cepstra("cen5-mblw-b") + np.float32(1e-3)))
    out = distribution / "an4.npz"
    given = ("--features", distribution / "feat", "--labels", distribution / "glob_0000.mlf", "--out", out)
    assert "features differs: the mean of the first column is" in message(monkeypatch, *given)
    assert not out.exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (htk(cepstra("cen5-mblw-b"))[:-3], "neither a Sphinx nor an HTK feature file, or was cut short"),
        (b"", "neither a Sphinx nor an HTK feature file"),
        (sphinx(np.ones((6, 12), np.float32), "<"), "holds 72 values, expected a multiple of 13"),
        (htk(np.ones((6, 33), np.float32)), "has 33 columns every 10 ms, expected 13 every 10 ms"),
        (htk(cepstra("cen5-mblw-b"), period=50_000), "has 13 columns every 5 ms"),
        (htk(cepstra("cen5-mblw-b"), kind=6 | 0o2000), "is a compressed HTK file"),
        (sphinx(np.full((6, 13), np.nan, np.float32), "<"), "not numbers"),
        (sphinx(cepstra("cen5-mblw-b")[:5], "<"), "has 5 frames, its labels 6"),
        (sphinx(cepstra("cen5-mblw-b", 4), "<"), "has 10 frames, its labels 6"),
    ],
)
def test_a_feature_file_that_does_not_fit_is_named(distribution: Path, content: bytes, reason: str) -> None:
    path = distribution / "feat/an4_clstk/mblw/cen5-mblw-b.mfc"
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=reason) as caught:
        build_an4.labelled_frames(distribution / "feat", distribution / "glob_0000.mlf")
    assert [problem.file for problem in caught.value.problems] == [str(path)]


def test_everything_that_is_missing_is_reported_at_once(distribution: Path) -> None:
    (distribution / "feat/an4_clstk/mblw/cen5-mblw-b.mfc").unlink()
    (distribution / "feat/AN253-FASH-B.MFC").write_bytes(b"")
    gap = MLF.replace("200000 500000 sil[2]", "300000 500000 sil[2]").replace("an36-fejs-b", "sx36")
    (distribution / "glob_0000.mlf").write_text(gap)
    with pytest.raises(CorpusError) as caught:
        build_an4.labelled_frames(distribution / "feat", distribution / "glob_0000.mlf")
    found = [problem.what for problem in caught.value.problems]
    assert "holds 0 feature files cen5-mblw-b.mfc" in found[0]
    assert "names 'An4/36/36/sx36'" in found[1]
    assert "holds 2 feature files an253-fash-b.mfc" in found[2]
    with pytest.raises(CorpusError, match="do not follow one another"):
        build_an4.frame_states("x", build_an4.read_mlf(distribution / "glob_0000.mlf")["An4/2/2/an253-fash-b"])
    with pytest.raises(CorpusError, match="holds no feature file"):
        build_an4.labelled_frames(distribution / "nowhere", distribution / "glob_0000.mlf")


def test_without_inputs_it_says_where_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    text = message(monkeypatch)
    assert "http://www.speech.cs.cmu.edu/databases/an4/" in text
    assert "Examples/Speech/AN4/Data/glob_0000.mlf" in text
    assert "Nothing was built" in text


def test_the_held_out_speakers_are_six_and_thirteen() -> None:
    """The split's digest covers the names; a speaker in two parts would go unseen."""
    valid, test = build_an4.SPEAKERS["valid"], build_an4.SPEAKERS["test"]
    assert (len(valid), len(test), len({*valid, *test})) == (6, 13, 19)
    assert hashlib.sha256(" ".join([*valid, *test]).encode()).hexdigest()[:16] == "2aff9309508591fa"
