"""Tests of the command `recognize`, and of `train --for recognition`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import toyspeech
from echolearn.cli.progress import FitDisplay
from echolearn.speech.formats import read_ctm, read_json, read_textgrid
from echolearn.speech.recognition import load_recognizer, write_arpa
from echolearn.speech.recognition._ngrams import word_list
from smallcorpus import STATES
from speechfiles import write_riff

Run = Callable[..., Result]
Refused = Callable[..., str]


SPOKEN = toyspeech.speech(seed=1, utterances=10)
TEXTS = {
    name: " ".join(words) for name, (words, _, _) in zip(("ann/one", "ann/two_words", "bob/one"), SPOKEN, strict=False)
}


@pytest.fixture(scope="module")
def trained(run: Run, corpus: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A recogniser of ready features, and what was printed when it was made."""
    path = tmp_path_factory.mktemp("trained") / "small.safetensors"
    words = ("train", "--out", path, "--for", "recognition", "--corpus", corpus, "--units", 15, "--epochs", 1)
    result = run(*words)
    assert result.exit_code == 0, result.output
    return path, result.output


def texts(results):
    return {result.utterance: " ".join(token.name for token in result.tokens) for result in results}


def test_training_prints_the_phone_error_on_valid(trained: tuple[Path, str]) -> None:
    path, output = trained
    assert "phone error in 3 phones of the corpus: valid" in output
    assert "(S " in output
    assert f"written: {path}" in output
    assert not list(path.parent.glob("*.checkpoint"))


def test_a_recogniser_is_described_evaluated_and_predicts(run: Run, trained: tuple[Path, str], corpus: str) -> None:
    path, _ = trained
    described = run("info", path).output
    assert "recogniser of 3 phones" in described
    assert "15 hidden units" in described
    assert "ready features" in described
    assert "state error" in run("evaluate", path, "--corpus", corpus).output
    out = path.with_name("states.mlf")
    assert run("predict", path, "--corpus", corpus, "--out", out).exit_code == 0
    assert out.is_file()


def test_a_part_of_a_corpus_is_recognised(run: Run, trained: tuple[Path, str], corpus: str, tmp_path: Path) -> None:
    path, _ = trained
    result = run("recognize", path, "--corpus", corpus, "--part", "valid", "--out", tmp_path / "valid.ctm")
    assert result.exit_code == 0, result.output
    assert {r.utterance for r in read_ctm(tmp_path / "valid.ctm")} == {"u04", "u10", "u16", "u22"}


def test_recordings_are_printed_as_ctm(run: Run, toy: Path, recordings: Path, tmp_path: Path) -> None:
    result = run("recognize", toy, recordings)
    assert result.exit_code == 0, result.output
    (tmp_path / "printed.ctm").write_text(result.stdout)
    assert texts(read_ctm(tmp_path / "printed.ctm")) == TEXTS


def test_every_format_is_written(run: Run, toy: Path, recordings: Path, tmp_path: Path) -> None:
    for name in ("a.json", "a.ctm", "a.stm", "a.mlf"):
        assert run("recognize", toy, recordings, "--out", tmp_path / name).exit_code == 0
    assert texts(read_json(tmp_path / "a.json")) == texts(read_ctm(tmp_path / "a.ctm")) == TEXTS
    assert run("recognize", toy, recordings, "--out", tmp_path / "grids").exit_code == 0
    assert texts([read_textgrid(tmp_path / "grids" / "ann" / "one.TextGrid", utterance="ann/one")]) == {
        "ann/one": TEXTS["ann/one"]
    }
    assert run("recognize", toy, recordings, "--out", tmp_path / "list", "--format", "ctm").exit_code == 0
    assert texts(read_ctm(tmp_path / "list")) == TEXTS
    assert texts(read_json(_saved(tmp_path, run("recognize", toy, recordings, "--out", "json").stdout))) == TEXTS


def _saved(folder: Path, text: str) -> Path:
    (folder / "printed").write_text(text)
    return folder / "printed"


def test_textgrids_beside_recordings_replace_nothing(run: Run, refused: Refused, toy: Path, recordings: Path) -> None:
    for _ in range(2):  # those of the first run may be replaced
        assert "3 TextGrids beside" in run("recognize", toy, recordings, "--out", "textgrid").output
    (recordings / "ann" / "two words.TextGrid").write_text("labels by hand")
    assert "two words.TextGrid exists, and" in refused("recognize", toy, recordings, "--out", "textgrid")
    assert (recordings / "ann" / "two words.TextGrid").read_text() == "labels by hand"
    to_a_folder = refused("recognize", toy, recordings, "--out", recordings, "--format", "ctm")
    assert f"{recordings} is a folder; results as ctm are written to a file" in to_a_folder


def test_damaged_recordings_are_listed_and_others_recognised(run: Run, toy: Path, recordings: Path) -> None:
    (recordings / "bob" / "noise.wav").write_bytes(b"RIFF no sound")
    write_riff(recordings / "bob" / "short.wav", np.arange(50))
    result = run("recognize", toy, recordings)
    assert result.exit_code == 1
    assert result.stdout.count("ann/one 1 ") == len(SPOKEN[0][0])
    assert "noise.wav: is not audio" in result.stderr
    assert "short.wav: the recording holds 50 samples" in result.stderr
    assert "2 of 5 recordings could not be recognised" in result.stderr


def test_channels(run: Run, toy: Path, tmp_path: Path) -> None:
    left, right = (np.round(SPOKEN[k][1][:8000]) for k in (0, 1))
    path = write_riff(tmp_path / "two.wav", np.stack([left, right], axis=1))
    alone = run("recognize", toy, path)
    assert alone.exit_code == 1
    assert "has 2 channels; give --channels mix, --channels split, or the number of one" in alone.stderr
    split = run("recognize", toy, path, "--channels", "split", "--level", "phones")
    assert {line.split()[1] for line in split.stdout.splitlines()} == {"1", "2"}
    assert run("recognize", toy, path, "--channels", "mix").exit_code == 0
    second = run("recognize", toy, path, "--channels", 2, "--level", "phones").stdout.splitlines()
    assert second == [line for line in split.stdout.splitlines() if line.split()[1] == "2"]
    assert "expected mix, split" in run("recognize", toy, path, "--channels", "both").output


def test_other_words(run: Run, toy: Path, recordings: Path, tmp_path: Path) -> None:
    (tmp_path / "few.txt").write_text("# only these\nNO SO\n")
    few = run("recognize", toy, recordings, "--words-list", tmp_path / "few.txt")
    assert few.exit_code == 0, few.output
    assert "YES" not in few.stdout
    (tmp_path / "other.dic").write_text("nope  N OW\nyep  Y EH S\nso  S OW\n")
    write_arpa(tmp_path / "other.arpa", word_list(["nope", "yep", "so"]))
    words = ("--lexicon", tmp_path / "other.dic", "--language-model", tmp_path / "other.arpa")
    assert "NO" not in run("recognize", toy, recordings, *words).stdout
    assert {line.split()[4] for line in run("recognize", toy, recordings, *words).stdout.splitlines()} <= {
        "nope", "yep", "so"
    }  # fmt: skip


def test_confidences_and_hypotheses(run: Run, toy: Path, recordings: Path) -> None:
    one = recordings / "ann" / "one.wav"
    sure = run("recognize", toy, one, "--confidences").stdout.splitlines()
    assert all(0 < float(line.split()[5]) <= 1 for line in sure)
    found = json.loads(run("recognize", toy, one, "--nbest", 3).stdout)
    assert found["one"][0]["text"] == TEXTS["ann/one"]
    assert found["one"][0]["score"] >= found["one"][-1]["score"]


def test_mistakes_are_explained(
    run: Run, refused: Refused, toy: Path, trained: tuple[Path, str], recordings: Path, tmp_path: Path
) -> None:
    toyspeech.network().save(tmp_path / "net.safetensors")
    assert "echolearn train" in refused("recognize", tmp_path / "net.safetensors", recordings)
    assert "--for recognition" in refused("recognize", tmp_path / "net.safetensors", recordings)
    assert "nothing to recognise" in refused("recognize", toy)
    assert "--corpus features:FILE.npz" in refused("recognize", trained[0], recordings)
    assert "there is no model file" in refused("recognize", tmp_path / "none.safetensors", recordings)
    (tmp_path / "empty").mkdir()
    assert "holds no recordings" in refused("recognize", toy, tmp_path / "empty")
    assert "expected a format" in refused("recognize", toy, recordings, "--out", tmp_path / "a.doc")
    assert "does not exist" in refused("recognize", toy, recordings, "--out", tmp_path / "no" / "a.ctm")
    assert "--nbest gives JSON" in refused("recognize", toy, recordings, "--nbest", 2, "--out", tmp_path / "a.ctm")
    (tmp_path / "words.txt").write_text("PERHAPS")
    assert "lacks 1 of 1 words" in refused("recognize", toy, recordings, "--words-list", tmp_path / "words.txt")
    (tmp_path / "words.txt").write_text("\n")
    assert "holds no word" in refused("recognize", toy, recordings, "--words-list", tmp_path / "words.txt")
    one = recordings / "ann" / "one.wav"
    assert "given twice" in refused("recognize", toy, one, one)
    missing = run("recognize", toy, tmp_path / "nothing.wav")
    assert missing.exit_code == 1
    assert "no such audio file" in missing.stderr


def test_words_without_a_lexicon_are_explained(refused: Refused, recordings: Path, tmp_path: Path) -> None:
    toyspeech.recognizer(words=False).save(tmp_path / "phones.safetensors")
    words = ("recognize", tmp_path / "phones.safetensors", recordings)
    assert "train it with a lexicon" in refused(*words, "--level", "words")
    (tmp_path / "few.txt").write_text("NO")
    assert "give a lexicon" in refused(*words, "--words-list", tmp_path / "few.txt")


def test_a_lexicon_needs_recognition(refused: Refused, corpus: str, tmp_path: Path) -> None:
    (tmp_path / "a.dic").write_text("A  AA\n")
    words = ("train", "--out", tmp_path / "m.safetensors", "--corpus", corpus)
    assert "add --for recognition" in refused(*words, "--lexicon", tmp_path / "a.dic")
    (tmp_path / "bad.dic").write_text("A\n")
    assert "bad.dic: line 1" in refused(*words, "--for", "recognition", "--lexicon", tmp_path / "bad.dic")


def test_phones_without_training_data_are_refused_before_the_fit(refused: Refused, corpus: str, tmp_path: Path) -> None:
    (tmp_path / "far.dic").write_text("A  QQ\n")
    words = ("train", "--out", tmp_path / "m.safetensors", "--corpus", corpus, "--for", "recognition", "--units", 15)
    answer = refused(*words, "--lexicon", tmp_path / "far.dic")
    assert "far.dic: the lexicon has phones that the model does not know: QQ" in answer
    assert "only if it occurs in the training part" in answer
    assert "epoch" not in answer


def test_transcripts_that_lack_an_utterance_are_refused_before_the_fit(
    refused: Refused, corpus: str, tmp_path: Path
) -> None:
    (tmp_path / "near.dic").write_text(f"A  {STATES[0].split('_')[0]}\n")
    (tmp_path / "said.txt").write_text("u00 A\n")
    words = ("train", "--out", tmp_path / "m.safetensors", "--corpus", corpus, "--for", "recognition", "--units", 15)
    answer = refused(*words, "--lexicon", tmp_path / "near.dic", "--transcripts", tmp_path / "said.txt")
    assert "said.txt: has no transcript of 23 of 24 utterances" in answer
    assert "epoch" not in answer


@pytest.mark.parametrize("network", ["esn", "deep"])
def test_training_resumes_after_a_kill_in_the_search_of_the_decoder(
    run: Run, corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, network: str
) -> None:
    def train(name: str) -> Result:
        words = ("--for", "recognition", "--corpus", corpus, "--network", network, "--units", 8, "--epochs", 2)
        return run("train", "--out", tmp_path / name, *words)

    assert train("whole").exit_code == 0
    stage = FitDisplay.stage

    def stopped(self: FitDisplay, what: str, done: int, total: int) -> None:
        stage(self, what, done, total)
        if done == 30:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FitDisplay, "stage", stopped)
        answer = train("model")
    assert answer.exit_code != 0
    assert "run the same command again to continue" in answer.output
    assert not (tmp_path / "model").exists()
    (kept,) = tmp_path.glob("model-*.checkpoint/decoder-phones.json")
    assert len(json.loads(kept.read_text())["errors"]) >= 20
    again = train("model")
    assert again.exit_code == 0, again.output
    found, expected = (load_recognizer(tmp_path / name) for name in ("model", "whole"))
    assert found.phones.weights == expected.phones.weights
    X = np.random.default_rng(0).normal(size=(50, 5)).astype(np.float32)
    np.testing.assert_array_equal(found.probabilities([X]), expected.probabilities([X]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "whole"]


def test_both_networks_are_tried_for_recognition(trained: tuple[Path, str]) -> None:
    _, output = trained
    (line,) = [line for line in output.splitlines() if line.startswith("state error on valid: ")]
    errors = [float(share) for share in re.findall(r"([0-9.]+) %", line)]
    kept = ("network of one layer", "deep network")[int(np.argmin(errors))]
    assert line.endswith(f"the {kept} is kept")
    assert f"valid {min(errors)} %" in output


def test_a_deep_recogniser_recognises_files_as_python_does(run: Run, recordings: Path, tmp_path: Path) -> None:
    own, path = toyspeech.recognizer(deep=True), tmp_path / "deep.safetensors"
    own.save(path)
    assert "can stream: yes" in run("info", path).output
    for level in ("words", "phones"):
        result = run("recognize", path, recordings, "--level", level, "--out", tmp_path / "found.json")
        assert result.exit_code == 0, result.output
        found = {one.utterance: one for one in read_json(tmp_path / "found.json")}
        assert sorted(found) == sorted(TEXTS)
        for name, (_, samples, _) in zip(("ann/one", "ann/two_words", "bob/one"), SPOKEN, strict=False):
            expected = getattr(own.recognize(np.round(samples), rate=toyspeech.RATE), level)
            assert [t.name for t in found[name].tokens] == [t.name for t in expected]
            assert [round(100 * t.start) for t in found[name].tokens] == [t.start for t in expected]
