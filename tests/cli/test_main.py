"""Tests of the commands, from their arguments to what they write."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import click
import pytest
from click.testing import Result

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
