"""Data folders of Kaldi."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from echolearn.exceptions import CorpusError
from echolearn.speech import Corpus, Segment, open_corpus, read_audio, write_mlf
from echolearn.speech._features import FRAME_SECONDS
from echolearn.speech._sources.kaldi_folder import Stretch
from echolearn.speech.formats import read_ark, read_data_folder, write_ark
from speechfiles import tones, write_riff


def written(folder: Path, **tables: str) -> Path:
    """Write a data folder with two recordings, and tables whose names have _ for a dot."""
    for name in ("r1", "r2"):
        write_riff(folder / f"{name}.wav", tones(0.5))
    for name, text in ({"wav_scp": "r1 r1.wav\nr2 r2.wav\n"} | tables).items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def test_tables_are_read(tmp_path: Path) -> None:
    folder = written(
        tmp_path / "data",
        segments="u1 r1 0.1 0.3\nu2 r1 0.3 -1\nu3 r2 0 0.5\n",
        text="u1 yes sir\nu2\nu3 no\n",
        utt2spk="u1 ann\nu2 ann\nu3 bob\n",
    )
    write_ark(folder / "f.ark", {u: np.zeros((3, 2), np.float32) for u in ("u1", "u2", "u3")}, scp=folder / "feats.scp")
    found = read_data_folder(folder)
    assert found.utterances == ("u1", "u2", "u3")
    assert found.recordings["r1"] == folder / "r1.wav"
    assert found.segments["u2"] == Stretch("r1", 0.3, None)
    assert found.text == {"u1": ("yes", "sir"), "u2": (), "u3": ("no",)}
    assert found.speakers["u3"] == "bob"
    assert found.features["u1"].shape == (3, 2)
    whole = read_audio(folder / "r1.wav")
    np.testing.assert_array_equal(found.samples("u1"), whole[1600:4800])
    np.testing.assert_array_equal(found.samples("u2"), whole[4800:])


def test_recordings_are_utterances_without_segments(tmp_path: Path) -> None:
    found = read_data_folder(written(tmp_path / "data"))
    assert found.utterances == ("r1", "r2")
    assert found.speakers == {"r1": "r1", "r2": "r2"}
    assert (found.features, found.text) == (None, {})
    assert len(found.samples("r1")) == 8000


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"wav_scp": "r1 sph2pipe -f wav r1.sph |\n"}, r"wav.scp: line 1: names a command"),
        ({"wav_scp": "r1 r1.wav\nr3 r3.wav\n"}, r"wav.scp: line 2: no such audio file"),
        ({"segments": "u1 r1 0.1\n"}, r"segments: line 1: 'r1 0.1'; expected"),
        ({"segments": "u1 r1 0.1 x\n"}, r"segments: line 1"),
        ({"segments": "u1 r1 0.3 0.1\n"}, r"segments: line 1: ends at 0.1 s and starts at 0.3 s"),
        ({"segments": "u1 r1 -2 0.1\n"}, r"is no time"),
        ({"segments": "u1 r7 0 0.1\n"}, r"the recording of 'u1' is not in wav.scp"),
        ({"utt2spk": "r1 ann\n"}, r"utt2spk: lacks 1 of 2 utterances: r2"),
        ({"utt2spk": "r1 ann\nr2 ann bob\n"}, r"utt2spk: line 2: 'ann bob' is no name of a speaker"),
        ({"text": "r1 yes\nr2 no\nr3 no\n"}, r"text: has the unknown 1 of 2 utterances: r3"),
        ({"text": "r1 yes\nr1 no\n"}, r"text: line 2: 'r1' occurs twice"),
        ({"feats_scp": "r1 a.ark:3[\n"}, None),
        ({"feats_scp": "r1 a.ark:3]\n"}, r"feats.scp: line 1"),
    ],
)
def test_tables_that_do_not_fit_are_refused(tmp_path: Path, tables: dict[str, str], message: str | None) -> None:
    folder = written(tmp_path / "data", **tables)
    with pytest.raises(CorpusError, match=message):
        read_data_folder(folder)


def test_folders_that_are_none_and_audio_that_is_too_short_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no such folder"):
        read_data_folder(tmp_path / "nowhere")
    with pytest.raises(CorpusError, match=r"neither wav.scp nor feats.scp"):
        read_data_folder(tmp_path)
    folder = written(tmp_path / "data", segments="u1 r1 0.1 0.9\n")
    with pytest.raises(CorpusError, match=r"'u1' is 0.100 to 0.900 s of 0.500 s of audio"):
        read_data_folder(folder).samples("u1")
    with pytest.raises(CorpusError, match="no audio of 'u9'"):
        read_data_folder(folder).samples("u9")


# ---------------- Corpora in data folders of Kaldi


RNG = np.random.default_rng(0)
STATES = ["sil_s2", "iy_s2", "iy_s3"]


def written_kaldicorpus(root: Path, columns: int = 4, *, parts: tuple[str, ...] = ("train", "dev", "test")) -> Path:
    """Write data folders with two utterances each, with features and alignments."""
    for part in parts:
        folder = root / part
        folder.mkdir(parents=True)
        names = [f"{part}-{k}" for k in (1, 2)]
        features = {u: RNG.standard_normal((5 + k, columns)).astype(np.float32) for k, u in enumerate(names)}
        write_ark(folder / "feats.ark", features, scp=folder / "feats.scp")
        write_ark(folder / "ali.ark", {u: RNG.integers(0, 3, len(x)) for u, x in features.items()}, text=True)
        (folder / "utt2spk").write_text("".join(f"{u} {part}-ann\n" for u in names))
        (folder / "text").write_text("".join(f"{u} YES SIR\n" for u in names))
    (root / "states.txt").write_text("".join(f"{name} {k}\n" for k, name in enumerate(STATES)))
    return root


def opened(root: Path, **options: object) -> Corpus:
    """Open a corpus, with a cache beside it."""
    return open_corpus(f"kaldi:{root}", cache=root.parent / "cache", **options)


def test_features_and_alignments_are_those_of_the_archives(tmp_path: Path) -> None:
    root = written_kaldicorpus(tmp_path / "data")
    corpus = opened(root)
    assert corpus.frames == {"train": 11, "valid": 11, "test": 11}
    assert corpus.state_names == tuple(STATES)
    assert corpus.utterances[:3] == ("train-1", "train-2", "dev-1")
    assert set(corpus.speakers) == {"train-ann", "dev-ann", "test-ann"}
    X, y = corpus.part("valid")
    np.testing.assert_array_equal(X[1], read_ark(root / "dev" / "feats.ark")["dev-2"])
    np.testing.assert_array_equal(y[1], read_ark(root / "dev" / "ali.ark")["dev-2"])
    assert corpus.words[0] == ("YES", "SIR")
    assert "4 features, used as they are" in corpus.notes[0]


def test_cepstra_get_differences_and_context_as_those_of_a_feature_file(tmp_path: Path) -> None:
    corpus = opened(written_kaldicorpus(tmp_path / "data", columns=13))
    assert corpus.columns == 117
    assert "13 MFCC with differences" in corpus.notes[0]


def test_numbers_are_the_names_without_a_table_of_states(tmp_path: Path) -> None:
    root = written_kaldicorpus(tmp_path / "data")
    (root / "states.txt").unlink()
    assert opened(root).state_names == ("0", "1", "2")


def problem(root: Path, **options: object) -> str:
    """Return what is wrong with a corpus."""
    with pytest.raises(CorpusError) as caught:
        opened(root, **options)
    return str(caught.value)


def test_folders_that_are_missing_or_double_are_refused(tmp_path: Path) -> None:
    expected = "expected the data folders train, valid (or dev) and test"
    assert f"has none of them; {expected}" in problem(tmp_path / "nowhere")
    assert f"has test, train; {expected}" in problem(written_kaldicorpus(tmp_path / "a", parts=("train", "test")))
    assert "has dev, test, train, valid" in problem(
        written_kaldicorpus(tmp_path / "b", parts=("train", "dev", "valid", "test"))
    )


def test_everything_that_does_not_fit_is_reported(tmp_path: Path) -> None:
    root = written_kaldicorpus(tmp_path / "data")
    write_ark(root / "train" / "ali.ark", {"train-1": np.zeros(4, int)})
    (root / "dev" / "feats.scp").unlink()
    (root / "dev" / "wav.scp").write_text(
        "".join(f"dev-{k} {write_riff(tmp_path / 'a.wav', tones(0.2))}\n" for k in (1, 2))
    )
    text = problem(root)
    assert "'train-1' has labels int32 (4,) for 5 frames" in text
    assert "'train-2' has no alignment" in text
    assert "has no feats.scp" in text


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("states.txt", "a 0\nb 1\n", "labels run from 0 to 2, state_names has 2 names"),
        ("states.txt", "a 0\nb 2\nc 3\n", "states.txt: line 3: the number of 'c' is '3'"),
        ("states.txt", "a 0\nb 0\nc 1\n", "states.txt: line 2: the number of 'b' is '0'"),
        ("states.txt", "a x\n", "states.txt: line 1: the number of 'a' is 'x'"),
        ("dev/utt2spk", "dev-1 x\n", "utt2spk: lacks 1 of 2 utterances"),
        ("dev/feats.scp", "dev-1 copy-feats a |\ndev-2 b.ark:1\n", "feats.scp: line 1: names a command"),
    ],
)
def test_damaged_tables_are_refused(tmp_path: Path, file: str, content: str, message: str) -> None:
    root = written_kaldicorpus(tmp_path / "data")
    (root / file).write_text(content)
    assert message in problem(root)


def test_alignments_and_columns_must_be_there_and_fit(tmp_path: Path) -> None:
    root = written_kaldicorpus(tmp_path / "data")
    (root / "test" / "ali.ark").rename(root / "test" / "alignments")
    assert "has neither ali.scp nor ali.ark" in problem(root)
    (root / "test" / "alignments").rename(root / "test" / "ali.ark")
    arrays = {"test-1": np.ones((5, 3)), "test-2": np.ones(6)}
    write_ark(root / "test" / "feats.ark", arrays, scp=root / "test" / "feats.scp")
    text = problem(root)
    assert "has features float64 (6,); expected a matrix" in text
    assert "has features of [3, 4] columns" in text


def test_audio_is_opened_with_a_master_label_file(tmp_path: Path) -> None:
    root, labels = tmp_path / "data", {}
    for part in ("train", "dev", "test"):
        (root / part).mkdir(parents=True)
        audio = write_riff(root / part / "u.wav", tones(0.5))
        (root / part / "wav.scp").write_text(f"{part}-u {audio}\n")
        frames = 48
        labels[f"{part}-u"] = [
            Segment(0.0, 20 * FRAME_SECONDS, "sil_s2"),
            Segment(20 * FRAME_SECONDS, frames * FRAME_SECONDS, "iy_s2"),
        ]
    write_mlf(tmp_path / "all.mlf", labels)
    corpus = opened(root, labels=tmp_path / "all.mlf")
    assert corpus.utterances == ("train-u", "dev-u", "test-u")
    assert corpus.columns == 117
    assert corpus.audio[0] == str(root / "train" / "u.wav")
    (root / "dev" / "segments").write_text("dev-u dev-u 0 0.4\n")
    assert "has segments; write each utterance to a file of its own" in problem(root, labels=tmp_path / "all.mlf")
    assert "has no feats.scp" in problem(root)


def test_an_utterance_may_be_in_one_part_only(tmp_path: Path) -> None:
    root = written_kaldicorpus(tmp_path / "data")
    for name in ("feats.scp", "utt2spk", "text"):
        table = (root / "dev" / name).read_text()
        (root / "dev" / name).write_text(table.replace("dev-1 ", "train-1 ").replace("dev-2 ", "train-2 "))
    assert "'train-1' is in train, too" in problem(root)
