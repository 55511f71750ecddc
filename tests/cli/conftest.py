"""A small corpus, and the command as a function."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from echolearn.cli.main import main
from smallcorpus import write


@pytest.fixture(scope="session")
def run() -> Callable[..., Result]:
    """Return a function that runs the command with these arguments."""
    return lambda *arguments: CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="session")
def refused(run: Callable[..., Result]) -> Callable[..., str]:
    """Return a function that runs the command, expects a message instead of a traceback, and returns it."""

    def message(*arguments: object) -> str:
        result = run(*arguments)
        assert result.exit_code == 2, result.output
        assert "Traceback" not in result.output
        return result.output

    return message


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"features:{write(tmp_path_factory.mktemp('corpus') / 'small.npz')}"
