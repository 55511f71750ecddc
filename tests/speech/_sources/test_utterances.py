"""Files of a corpus paired by name, and entries of a master label file matched to them."""

from __future__ import annotations

from pathlib import Path

from echolearn.speech._sources.timit import find_timit
from speechfiles import TIMIT_PHONES, ProblemsOf, open_timit, tones, write_riff, write_timit, write_utterance


def test_a_converted_copy_beside_the_original_is_no_second_utterance(tmp_path: Path) -> None:
    root = write_timit(tmp_path, upper=True)
    one = next(root.rglob("SX0.WAV"))
    write_riff(one.with_name("SX0.WAV.wav"), tones(0.7))
    assert len(find_timit(root).utterances) == 12


def test_entries_that_fit_two_utterances_and_utterances_with_two_entries_are_named(
    tmp_path: Path, problems_of: ProblemsOf
) -> None:
    root = write_timit(tmp_path / "timit", upper=False)
    write_utterance(root / "train/dr2/faem0/sx0", TIMIT_PHONES, 0.7)
    (tmp_path / "a.mlf").write_text('#!MLF!#\n"*/sx0.lab"\n0 6800000 h#_s2\n.\n')
    found = problems_of(lambda: open_timit(root, labels=tmp_path / "a.mlf"))
    assert "fits 2 utterances" in found[0]
    assert len(found) == 1 + 13
    entry = "0 6800000 h#_s2\n.\n"
    (tmp_path / "a.mlf").write_text(f'#!MLF!#\n"*/mdpk0_sx1.lab"\n{entry}"*/dr1/mdpk0/sx1.lab"\n{entry}')
    assert "two entries fit train/dr1/mdpk0/sx1" in problems_of(lambda: open_timit(root, labels=tmp_path / "a.mlf"))[0]
