"""Tests of the shared options, and of configuration files that set them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from echolearn.cli.options import whole_numbers, words

CONTEXT, PARAMETER = click.Context(click.Command("x")), click.Option(["--x"])


def test_lists_are_separated_by_commas() -> None:
    assert whole_numbers(CONTEXT, PARAMETER, "100,10_000") == (100, 10_000)
    assert words(CONTEXT, PARAMETER, "esn, ours,") == ("esn", "ours")
    assert whole_numbers(CONTEXT, PARAMETER, None) is None
    assert words(CONTEXT, PARAMETER, None) is None


@pytest.mark.parametrize("text", ["ten", "", "0", "5,-1", "1.5"])
def test_anything_but_positive_whole_numbers_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="expected whole numbers"):
        whole_numbers(CONTEXT, PARAMETER, text)


def test_a_configuration_file_sets_every_option(run: Callable[..., Result], corpus: str, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text(
        f'corpus = "{corpus}"\nunits = [5, 6]\nepochs = 1\ncolumns = ["esn", "W_m1"]\nout = "{tmp_path / "out"}"\n'
        "[paper]\nlearning.step_size = 0.01\n"
    )
    result = run("table1", "--config", config, "--units", "7")
    assert result.exit_code == 0, result.output
    table = json.loads((tmp_path / "out" / "table1.json").read_text())
    assert [row["units"] for row in table["rows"]] == [7]  # the command line wins
    cell = json.loads((tmp_path / "out" / "cells" / "W_m1-7-0.json").read_text())["cell"]
    assert cell["settings"]["step_size"] == 0.01
    assert cell["settings"]["epochs"] == 1


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("unit = 5", "did you mean units?"),
        ("[paper]\nstepsize = 1", "did you mean step_size?"),
        ("[paper]\nstep_size = 1", "step_size is part of learning: write learning.step_size = ..."),
        ("[paper]\nlearning.stepsize = 1", "[paper] learning: there is no setting 'stepsize'; did you mean step_size?"),
        ("[papers]\nridge = 1", "did you mean paper?"),
        ("paper = 3", "[paper]"),
        ("[units]\nx = 3", "one value"),
        ("units = ", "not a TOML file"),
        ("epochs = 'many'", "many"),
        ("[paper]\nridge = -1", "ridge=-1"),
    ],
)
def test_mistakes_in_a_configuration_file_are_reported(
    content: str, word: str, refused: Callable[..., str], corpus: str, tmp_path: Path
) -> None:
    config = tmp_path / "run.toml"
    config.write_text(content)
    assert word in refused("table1", "--config", config, "--corpus", corpus, "--out", tmp_path / "out")
