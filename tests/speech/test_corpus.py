"""Corpora opened by name, whole, with features and labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from echolearn.exceptions import CorpusError
from echolearn.speech import ENGLISH, TIMIT_61, open_corpus
from echolearn.speech.recognition._learner import valid_part
from speechfiles import TIMIT_PHONES, open_timit, write_timit


@pytest.mark.parametrize("word", ["speech", "synthetic:x", "timit", "wav:", "features"])
def test_unknown_words_are_refused(word: str) -> None:
    with pytest.raises(ValueError, match="expected synthetic, timit:PATH"):
        open_corpus(word)


def test_options_that_do_not_apply_are_refused(tmp_path: Path) -> None:
    for word, options, message in (
        ("wav:x", {"frames": 10}, "size of the synthetic corpus"),
        ("features:x", {"labels": "a.mlf"}, "needs audio"),
        ("synthetic", {"labels": "a.mlf"}, "audio of your own"),
        ("synthetic", {"normalise": "never"}, "'utterance', 'corpus' or 'running'"),
    ):
        with pytest.raises(ValueError, match=message):
            open_corpus(word, **options)  # type: ignore[arg-type]


def test_synthetic_corpus_has_all_parts_and_opens_again_from_the_cache(small_tree: Path, small_cache: Path) -> None:
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


def test_words_that_were_removed_are_an_error_that_names_the_files(small_tree: Path, small_cache: Path) -> None:
    corpus = open_corpus("synthetic", frames=12_000, seed=1, cache=small_cache)
    assert all(corpus.words)
    gone = replace(corpus, audio=tuple(audio.replace(str(small_cache), "/removed") for audio in corpus.audio))
    with pytest.raises(CorpusError, match=r"\.WRD: was removed after .* cache folder; open the corpus again") as caught:
        _ = gone.words
    assert len(caught.value.problems) == len(corpus.utterances)
    with pytest.raises(CorpusError, match="was removed"):  # instead of a recogniser without a language model
        valid_part(gone)


def test_audio_without_words_has_none_but_audio_that_was_removed_is_an_error(folder: Path, tmp_path: Path) -> None:
    corpus = open_corpus(f"wav:{folder}", cache=tmp_path / "cache")
    assert corpus.words == ((),) * 8
    Path(corpus.audio[3]).unlink()
    with pytest.raises(CorpusError) as caught:
        _ = replace(corpus).words
    assert [problem.file for problem in caught.value.problems] == [corpus.audio[3]]


def test_written_state_labels_give_the_same_corpus_when_read(tmp_path: Path) -> None:
    root = write_timit(tmp_path / "timit", upper=True)
    corpus = open_timit(root)
    assert corpus.frames == {"train": 6 * 68, "valid": 4 * 68, "test": 2 * 68}
    assert (corpus.columns, len(corpus.state_names), corpus.synthetic) == (117, 183, False)
    assert any("6 of the usual 3,696 utterances" in note for note in corpus.notes)
    order = [TIMIT_61.index(name) for name in TIMIT_PHONES.split()]
    for y in corpus.labels:
        phones = y // 3
        assert phones[np.r_[True, np.diff(phones) != 0]].tolist() == order

    corpus.write_mlf(tmp_path / "all.mlf")
    for phn in root.rglob("*.PHN"):
        phn.unlink()
    again = open_timit(root, labels=tmp_path / "all.mlf")
    assert all(np.array_equal(a, b) for a, b in zip(corpus.labels, again.labels, strict=True))


def test_a_master_label_file_of_phones_is_aligned(tmp_path: Path) -> None:
    root = write_timit(tmp_path / "timit", upper=False)
    rows = ["#!MLF!#"]
    for wav in sorted(root.rglob("*.wav")):
        rows.append(f'"*/{wav.parent.name}_{wav.stem}.lab"')
        lines = [line.split() for line in wav.with_suffix(".phn").read_text().splitlines()]
        rows += [f"{int(a) * 625} {int(b) * 625} {n}" for a, b, n in lines] + ["."]
    (tmp_path / "all.mlf").write_text("\n".join(rows))
    own, other = open_timit(root), open_timit(root, labels=tmp_path / "all.mlf")
    assert all(np.array_equal(a, b) for a, b in zip(own.labels, other.labels, strict=True))
