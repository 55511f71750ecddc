"""Tests of how a command ends when something goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from echolearn.paper import table1

Run = Callable[..., Result]


@pytest.fixture
def failing(
    monkeypatch: pytest.MonkeyPatch, run: Run, corpus: str, tmp_path: Path
) -> Callable[[BaseException], Result]:
    """Return a function that runs `table1` where the experiment raises this error."""

    def result(error: BaseException) -> Result:
        def raising(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(table1, "run", raising)
        return run("table1", "--corpus", corpus, "--out", tmp_path)

    return result


def test_ctrl_c_ends_with_a_line_on_how_to_continue(failing: Callable[[BaseException], Result]) -> None:
    result = failing(KeyboardInterrupt())
    assert result.exit_code == 130
    assert result.output.strip().splitlines()[-1].startswith("stopped; run the same command again to continue")


def test_an_unexpected_error_keeps_its_traceback(failing: Callable[[BaseException], Result]) -> None:
    assert isinstance(failing(ZeroDivisionError()).exception, ZeroDivisionError)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("ridge=-1"), "error: ridge=-1"),
        (OSError(28, "cannot write x: No space left on device"), "error: cannot write x: No space left on device"),
        (FileNotFoundError(2, "No such file", "a.wav"), "a.wav"),
        (MemoryError("8 GB"), "not enough memory (8 GB); use fewer hidden units or frames."),
    ],
)
def test_an_expected_error_is_one_message(
    failing: Callable[[BaseException], Result], error: Exception, message: str
) -> None:
    result = failing(error)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output
