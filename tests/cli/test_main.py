"""Tests of the commands, from their arguments to what they write."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from echolearn.cli.main import COMMANDS, main

Run = Callable[..., Result]
Refused = Callable[..., str]


def test_help_imports_nothing_slow() -> None:
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from echolearn.cli import main\n"
        "assert 'recognize' in CliRunner().invoke(main, ['--help']).output\n"
        "slow = {'numpy', 'scipy', 'sklearn', 'numba', 'rich', 'matplotlib', 'safetensors'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(slow)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_recognition_loads_neither_the_experiments_nor_the_exports() -> None:
    code = "import sys, echolearn.cli.recognize\nprint(*sorted(m for m in sys.modules if m.startswith('echolearn.')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "echolearn.speech.recognition" in loaded
    assert not [m for m in loaded if m.split(".")[1] in ("paper", "export", "tuning", "interop")]


def test_the_list_of_commands_has_the_first_sentence_of_each() -> None:
    with click.Context(main) as context:
        for name, (_, line) in COMMANDS.items():
            command = main.get_command(context, name)
            assert command.get_short_help_str(300) == line, name
        assert main.get_command(context, "nothing") is None


def test_the_package_runs_as_a_command() -> None:
    done = subprocess.run([sys.executable, "-m", "echolearn", "--version"], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("echolearn, version"), done.stderr


@pytest.mark.parametrize("command", ["table1", "phones", "train", "tune", "evaluate", "predict", "align", "info"])
def test_every_command_has_a_help_text(run: Run, command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "--corpus" in result.output
    assert "--config" in result.output


@pytest.mark.parametrize("width", [80, 100, 200])
def test_the_list_of_commands_cuts_no_sentence(width: int) -> None:
    printed = CliRunner().invoke(main, ["--help"], terminal_width=width).output
    assert max(map(len, printed.splitlines())) <= width
    whole = " ".join(printed.split())
    for name, (_, line) in COMMANDS.items():
        assert f"{name} {line}" in whole
    assert "..." not in printed.partition("Commands:")[2]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_fits_into_eighty_columns(command: str) -> None:
    printed = CliRunner().invoke(main, [command, "--help"], terminal_width=80).output
    assert max(map(len, printed.splitlines())) <= 80
    assert "..." not in printed.replace("[OPTIONS]", "").replace("...]", "").replace("]...", "")


def test_colours_are_for_terminals_only(run: Run, tmp_path: Path) -> None:
    words = ("forecast", tmp_path / "none.csv")
    assert "\x1b" not in run(*words).output
    assert "\x1b[31m" in CliRunner().invoke(main, list(map(str, words)), color=True).output


def test_one_thread_is_called_one(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echolearn.paper.estimate.thread_count", lambda: 1)
    assert "on 1 thread with" in run("phones", "--corpus", "synthetic", "--estimate", "--out", tmp_path / "out").output


def test_estimates_fit_into_eighty_columns(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for words in (("table1", "--full", "--corpus", "synthetic"), ("phones", "--corpus", "synthetic")):
        lines = run(*words, "--estimate", "--out", tmp_path / "out").output.splitlines()
        tables = [line for line in lines if " GB" in line or "units" in line.split()[:1]]
        assert len(tables) > 3
        assert max(map(len, tables)) <= 80
