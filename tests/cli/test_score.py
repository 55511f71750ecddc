"""Tests of the command `score`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import toyspeech

Run = Callable[..., Result]
Refused = Callable[..., str]


@pytest.fixture
def transcripts(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "reference.txt").write_text("u1 GO ON NOW\nu2 STOP SIL\nu3 YES\n")
    (tmp_path / "found.ctm").write_text(
        "u1 1 0.00 0.10 go\nu1 1 0.10 0.10 in\nu2 1 0.00 0.20 stop\nu2 1 0.20 0.20 it\n"
    )
    return tmp_path / "reference.txt", tmp_path / "found.ctm"


def test_scores(run: Run, transcripts: tuple[Path, Path], tmp_path: Path) -> None:
    printed = run("score", *transcripts).output
    assert "error 80.00 % (S 1, D 2, I 1 of 5 tokens in 3 utterances)" in printed
    assert " as in (1)" in printed
    assert "without hypothesis: 1 utterance;" in printed
    assert "of 6 tokens" in run("score", *transcripts, "--ignore", "nothing").output
    (tmp_path / "utt2spk").write_text("u1 ann\nu2 ann\nu3 bob\n")
    tables = run("score", *transcripts, "--speakers", tmp_path / "utt2spk", "--by", "speaker", "--by", "token").output
    assert "interval over 2 speakers: cannot be given, at least 4 are required" in tables
    assert ["ann", "75.00", "1", "1", "1", "4"] in [line.split() for line in tables.splitlines()]
    numbers = json.loads(run("score", *transcripts, "--json", "--against", transcripts[0]).output)
    assert (numbers["substitutions"], numbers["deletions"], numbers["insertions"]) == (1, 2, 1)
    assert numbers["against"]["error"] == 0.0
    assert "more errors than" in run("score", *transcripts, "--against", transcripts[0]).output
    assert "error 100.00 %" in run("score", *transcripts, "--case", "--ignore", "SIL,stop,it,go,in").output


def test_phones_are_folded(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.mlf").write_text(
        '#!MLF!#\n"*/u.lab"\n0 100000 ix_s2\n100000 200000 ix_s3\n200000 300000 ix_s2\n300000 400000 zh_s2\n.\n'
    )
    (tmp_path / "b").write_text("u ih ih sh\n")
    assert "error 100.00 %" in run("score", tmp_path / "a.mlf", tmp_path / "b").output
    folded = run("score", tmp_path / "a.mlf", tmp_path / "b", "--map", "39").output
    assert "error 0.00 % in the 39 classes of Lee and Hon (S 0" in folded
    (tmp_path / "map").write_text("IX ih\nzh sh\nih ih\nsh sh\n")
    assert "error 0.00 %" in run("score", tmp_path / "a.mlf", tmp_path / "b", "--map", tmp_path / "map").output


def test_references_of_every_format(run: Run, toy: Path, recordings: Path, tmp_path: Path) -> None:
    names = ("ann/one", "ann/two_words", "bob/one")
    spoken = zip(names, toyspeech.speech(seed=1, utterances=10), strict=False)
    (tmp_path / "text").write_text("".join(f"{' '.join(words)} ({name})\n" for name, (words, _, _) in spoken))
    for name in ("a.json", "a.ctm", "a.stm", "a.mlf", "grids"):
        run("recognize", toy, recordings, "--out", tmp_path / name)
        assert "error 0.00 %" in run("score", tmp_path / "text", tmp_path / name).output
        assert "error 0.00 %" in run("score", tmp_path / name, tmp_path / "text").output
    phones = ("--level", "phones")
    assert "error 0.00 %" in run("score", tmp_path / "grids", tmp_path / "a.json", *phones).output


def test_transcripts_that_do_not_fit_are_refused(
    refused: Refused, transcripts: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "other").write_text("x1 GO\n")
    assert "no utterance is in both" in refused("score", transcripts[0], tmp_path / "other")
    assert "no such file" in refused("score", transcripts[0], tmp_path / "nothing.ctm")
    (tmp_path / "utt2spk").write_text("u1 ann\n")
    assert "2 utterances have no speaker" in refused("score", *transcripts, "--speakers", tmp_path / "utt2spk")
    (tmp_path / "utt2spk").write_text("u1\n")
    assert "utt2spk: line 1" in refused("score", *transcripts, "--speakers", tmp_path / "utt2spk")
    (tmp_path / "empty").mkdir()
    assert "holds no TextGrids" in refused("score", transcripts[0], tmp_path / "empty")
