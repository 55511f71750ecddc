"""Tests of settings from files and from `--set`."""

from __future__ import annotations

from pathlib import Path

import pytest

from echolearn.cli import configuration


def test_values_of_set_are_toml_or_words() -> None:
    found = configuration.assignments(["a=1", "b=[0.1, 0.9]", "c=tanh", "d=true", 'e="x"'])
    assert found == {"a": 1, "b": [0.1, 0.9], "c": "tanh", "d": True, "e": "x"}


def test_a_set_without_a_value_is_refused() -> None:
    with pytest.raises(ValueError, match="--set leak: expected name=value"):
        configuration.assignments(["leak"])


@pytest.mark.parametrize("text", ["direct=False", "direct=True", "leak=(0.1, 0.9)", "leak=[0.1", "learning={a: 1}"])
def test_values_that_are_python_and_not_toml_are_refused(text):
    with pytest.raises(ValueError, match=r"the value is not TOML; expected false, 0.5, a word, \[0.1, 0.9\]"):
        configuration.assignments([text])


def test_none_and_pairs_get_their_python_values() -> None:
    given = {"lookback": "none", "learn": "none", "leak": [0.1, 1.0]}
    settings = configuration.estimator_settings(given, ["lookback", "learn", "leak"], "x")
    assert settings == {"lookback": None, "learn": "none", "leak": (0.1, 1.0)}


def test_parameters_that_a_command_sets_itself_are_refused() -> None:
    with pytest.raises(ValueError, match="there is no setting 'hidden_units'"):
        configuration.estimator_settings({"hidden_units": 5}, ["hidden_units", "leak"], "--set")


def test_options_and_tables_are_divided() -> None:
    content = {"corpus-seed": 3, "units": [5, 6], "paper": {"ridge": 1.0}}
    plain, tables = configuration.options_and_tables(content, ["corpus_seed", "units"], ["paper"], "run.toml")
    assert plain == {"corpus_seed": 3, "units": "5,6"}
    assert tables == {"paper": {"ridge": 1.0}}


def test_a_file_that_is_not_toml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    for content in (b"units = ", b"\xff", b"a = " + b"[" * 5000, b"a = " + b"9" * 5000):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is not a TOML file"):
            configuration.read(path)
