"""Data folders of Kaldi."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from echolearn.exceptions import CorpusError
from echolearn.speech.audio import read_audio
from echolearn.speech.formats.datafolder import Stretch, read_data_folder
from echolearn.speech.formats.kaldi import write_ark
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
