"""Tests of what a result says about its making."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from echolearn import __version__
from echolearn.experiments import provenance


def test_versions_commit_and_threads() -> None:
    found = provenance.made_with()
    assert found["echolearn"] == __version__
    assert found["threads"] >= 1
    assert found["commit"] is None or len(found["commit"].rstrip("+")) == 40


def commit_where(monkeypatch: pytest.MonkeyPatch, answer: Any) -> str | None:
    monkeypatch.setattr(subprocess, "run", answer)
    return provenance.source_commit.__wrapped__()


def test_changes_are_marked_and_other_repositories_are_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"ls-files": "__init__.py", "rev-parse": "abc", "status": ""}

    def git(command: list[str], **_: Any) -> Any:
        assert Path(command[2]).name == "echolearn"
        return subprocess.CompletedProcess(command, 0, stdout=answers[command[3]] + "\n")

    assert commit_where(monkeypatch, git) == "abc"
    answers["status"] = " M src/echolearn/x.py"
    assert commit_where(monkeypatch, git) == "abc+"
    answers["ls-files"] = ""
    assert commit_where(monkeypatch, git) is None


def test_without_git_there_is_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError("git")

    assert commit_where(monkeypatch, missing) is None
