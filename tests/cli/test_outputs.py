"""No command replaces its input, or a file that no command wrote, unless --force."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import Result

from echolearn import ESNClassifier
from echolearn.cli.main import COMMANDS, main

Run = Callable[..., Result]
Refused = Callable[..., str]
FOLDERS = ("table1", "phones", "tune")  # commands that write to a folder
OWN_ENTRIES = {"table1": "cells", "phones": "systems", "tune": "trials.sqlite"}
# The words of each command before the name of a file to write, and the ending of that file.
FILES = {
    "align --out": (lambda f: ("align", "--corpus", f.corpus, "--out"), ".mlf"),
    "export --out": (lambda f: ("export", f.model, "--out"), ".h"),
    "forecast --out": (lambda f: ("forecast", f.table, "--column", "a", "--out"), ".csv"),
    "forecast --plot": (lambda f: ("forecast", f.table, "--column", "a", "--out", f.new, "--plot"), ".png"),
    "page --out": (lambda f: ("page", f.model, "--out"), ".html"),
    "predict --out": (lambda f: ("predict", f.model, f.table, "--out"), ".csv"),
    "recognize --out": (lambda f: ("recognize", f.toy, f.recordings, "--out"), ".ctm"),
    "train --out": (lambda f: ("train", f.table, "--target", "label", "--out"), ".csv"),
}


class Files:
    """The files that the commands read."""

    def __init__(self, folder: Path, corpus: str, toy: Path, recordings: Path) -> None:
        self.corpus, self.toy, self.recordings = corpus, toy, recordings
        self.table, self.model, self.new = folder / "data.csv", folder / "model.safetensors", folder / "new.csv"
        a = np.random.default_rng(0).normal(size=(40, 2)).round(3)
        rows = "".join(f"{x},{y},{'up' if x > 0 else 'down'}\n" for x, y in a)
        self.table.write_text("a,b,label\n" + rows)
        network = ESNClassifier(5, learn="none", readout="ridge")
        network.fit(a, np.where(a[:, 0] > 0, "up", "down")).save(self.model)


@pytest.fixture
def files(tmp_path: Path, corpus: str, toy: Path, recordings: Path) -> Files:
    return Files(tmp_path, corpus, toy, recordings)


def test_every_option_that_names_an_output_is_tested_here() -> None:
    found = set()
    with click.Context(main) as context:
        for name in COMMANDS:
            options = {option for p in main.get_command(context, name).params for option in p.opts}
            found |= {f"{name} {option}" for option in options & {"--out", "--plot"}}
            assert "--force" in options or not options & {"--out", "--plot"}, name
    assert found == {*FILES, *(f"{name} --out" for name in FOLDERS)}


@pytest.mark.parametrize("case", FILES)
def test_a_file_of_somebody_else_stays(refused: Refused, files: Files, tmp_path: Path, case: str) -> None:
    words, ending = FILES[case]
    mine = tmp_path / f"mine{ending}"
    mine.write_text("weeks of work")
    assert f"{mine} exists, and its content was not written by a command" in refused(*words(files), mine)
    assert mine.read_text() == "weeks of work"


@pytest.mark.parametrize("case", [case for case in FILES if not case.startswith(("recognize", "align"))])
def test_an_input_is_not_replaced_even_with_force(refused: Refused, files: Files, case: str) -> None:
    words, _ = FILES[case]
    given = next(one for one in words(files) if isinstance(one, Path) and one != files.new)
    if case in ("export --out", "page --out", "forecast --plot"):
        given = given.rename(given.with_suffix(FILES[case][1]))
        files.model = files.table = given
    before = given.read_bytes()
    answer = refused(*words(files), given, "--force")
    assert "is an input of this command" in answer or "expected a name" in answer
    assert given.read_bytes() == before


def test_links_to_an_input_are_the_input(refused: Refused, files: Files, tmp_path: Path) -> None:
    for name, link in (("soft.csv", Path.symlink_to), ("hard.csv", Path.hardlink_to)):
        link(tmp_path / name, files.table)
        words = ("predict", files.model, files.table, "--out", tmp_path / name, "--force")
        assert "is an input of this command" in refused(*words)


@pytest.mark.parametrize("case", ["predict --out", "export --out", "align --out"])
def test_what_a_command_wrote_it_may_replace(
    run: Run, refused: Refused, files: Files, tmp_path: Path, case: str
) -> None:
    words, ending = FILES[case]
    out = tmp_path / f"out{ending}"
    for force in ((), (), ("--force",)):
        result = run(*words(files), out, *force)
        assert result.exit_code == 0, result.output
    content = out.read_bytes()
    out.write_bytes(content + b"\n")  # edited by hand
    assert "add --force to replace it" in refused(*words(files), out)
    assert run(*words(files), out, "--force").exit_code == 0
    assert out.read_bytes() == content


def test_a_damaged_record_of_files_asks_for_force(
    run: Run, refused: Refused, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECHOLEARN_CACHE", str(tmp_path / "cache"))
    words = ("predict", files.model, files.table, "--out", files.new)
    for content in ("[1, 2]", "{", ""):
        assert run(*words, "--force").exit_code == 0
        (tmp_path / "cache" / "written.json").write_text(content)
        assert "add --force" in refused(*words)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ECHOLEARN_CACHE", str(tmp_path / "file" / "no folder"))
    assert run(*words, "--force").exit_code == 0


@pytest.mark.parametrize("command", FOLDERS)
def test_a_folder_of_somebody_else_stays(refused: Refused, corpus: str, tmp_path: Path, command: str) -> None:
    (tmp_path / "report.html").write_text("weeks of work")
    words = (command, "--corpus", corpus, "--out", tmp_path)
    assert "holds files, and none of an earlier run of this command" in refused(*words)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    (tmp_path / OWN_ENTRIES[command]).mkdir()  # as an earlier run leaves it
    assert "holds files, and none" not in refused(*words, "--units", "0")


def test_folders_and_devices_are_no_outputs(refused: Refused, files: Files, tmp_path: Path) -> None:
    for place in (tmp_path, Path("/dev/tty"), tmp_path / "none" / "a.csv"):
        words = ("align", "--corpus", files.corpus, "--out", place, "--force")
        assert "cannot be written" in refused(*words) or "is a directory" in refused(*words)


def test_the_second_header_of_a_recogniser_is_not_replaced(refused: Refused, toy: Path, tmp_path: Path) -> None:
    (tmp_path / "net_features.h").write_text("weeks of work")
    assert "net_features.h exists" in refused("export", toy, "--out", tmp_path / "net.h")
    assert not (tmp_path / "net.h").exists()
