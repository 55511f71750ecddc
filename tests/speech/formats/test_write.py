"""Results in every format: names that leave the folder, and nothing half written."""

from __future__ import annotations

from pathlib import Path

import pytest

from echolearn.speech import Segment, read_mlf
from echolearn.speech.formats import (
    Recognised,
    TimedToken,
    read_ctm,
    read_json,
    read_stm,
    read_textgrid,
    write_results,
)
from speechresults import yes


def test_results_are_written_in_every_format(tmp_path: Path) -> None:
    results = [
        Recognised("ann/u1", (TimedToken("yes", 0.1, 0.5, 0.9),), seconds=1.0),
        Recognised("ann/u2", (TimedToken("<no>", 0.0, 0.25),), seconds=0.5),
    ]
    write_results(tmp_path / "a.ctm", results, "ctm")
    assert [r.tokens for r in read_ctm(tmp_path / "a.ctm")] == [r.tokens for r in results]
    write_results(tmp_path / "a.json", results, "json")
    assert read_json(tmp_path / "a.json") == results
    write_results(tmp_path / "a.mlf", results, "mlf")
    assert read_mlf(tmp_path / "a.mlf")["ann/u2"] == [Segment(0.0, 0.25, "<no>")]
    write_results(tmp_path / "a.stm", results, "stm")
    assert [(s.file, s.words, s.end) for s in read_stm(tmp_path / "a.stm")] == [
        ("ann/u1", ("yes",), 1.0),
        ("ann/u2", ("<no>",), 0.5),
    ]
    files = write_results(tmp_path / "grids", results, "textgrid", level="phones")
    assert [f.relative_to(tmp_path).as_posix() for f in files] == ["grids/ann/u1.TextGrid", "grids/ann/u2.TextGrid"]
    assert read_textgrid(files[1], level="phones").tokens == results[1].tokens
    assert read_textgrid(files[1]).phones == results[1].tokens


@pytest.mark.parametrize("name", ["../u", "/u", "a//b", "a/../../u", ".", "a\\..\\b", "c:u", "a/"])
def test_names_that_leave_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "grids"
    fine = Recognised("fine", (TimedToken("yes", 0.1, 0.5),))
    with pytest.raises(ValueError, match="cannot name a file below"):
        write_results(folder, [fine, Recognised(name, (TimedToken("yes", 0.1, 0.5),))], "textgrid")
    assert not folder.exists()


def test_nothing_is_written_if_one_result_cannot_be(tmp_path: Path) -> None:
    fine, empty = Recognised("fine", (yes(),)), Recognised("empty", ())
    for results, kind, message in (
        ([fine, empty], "textgrid", "it ends at 0 seconds"),
        ([fine, fine], "ctm", "occurs 2 times"),
        ([fine, Recognised("Fine", (yes(),))], "textgrid", "differ in case only"),
        ([fine, Recognised("b", (yes(),), channel=2)], "mlf", "no channels"),
        ([Recognised(";;b", (yes(),))], "ctm", "begins like a comment"),
        ([fine], "text", "expected one of ctm"),
    ):
        with pytest.raises(ValueError, match=message):
            write_results(tmp_path / "out", results, kind)
        assert not list(tmp_path.iterdir())
    files = write_results(tmp_path / "out", [fine, Recognised("fine", (yes(),), channel=2)], "textgrid")
    assert [file.name for file in files] == ["fine.TextGrid", "fine.2.TextGrid"]
