"""Folders of the cache appear complete or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from echolearn.exceptions import CorpusError
from echolearn.speech.cache import atomic_folder, default_cache


def test_of_two_processes_that_write_the_same_folder_the_first_to_finish_stays(tmp_path: Path) -> None:
    for content in ("first", "second"):
        with atomic_folder(tmp_path / "tree") as building:
            (building / "file").write_text(content)
            (tmp_path / "tree").mkdir(exist_ok=True)
            (tmp_path / "tree" / "file").write_text("theirs")
    assert os.listdir(tmp_path) == ["tree"]
    assert (tmp_path / "tree" / "file").read_text() == "theirs"


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    with suppress(KeyError), atomic_folder(tmp_path / "tree") as building:
        (building / "file").write_text("half")
        raise KeyError
    assert os.listdir(tmp_path) == []


def test_a_parent_that_is_no_folder_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(CorpusError, match=r"cannot be written .*cache=\.\.\. or the variable ECHOLEARN_CACHE"),
        atomic_folder(tmp_path / "file" / "tree"),
    ):
        pass


def test_default_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHOLEARN_CACHE", "/own")
    assert default_cache() == Path("/own")
    monkeypatch.delenv("ECHOLEARN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert default_cache() == Path("/xdg/echolearn")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path.home() / ".cache" / "echolearn"
