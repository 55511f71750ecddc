"""Commands on machines that are set up in other ways: no folder for a cache, names with spaces, Windows line ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from echolearn import load


def write_table(path: Path, ends: str) -> Path:
    """Write a table with these line ends."""
    a = np.random.default_rng(0).normal(size=(60, 2)).round(3)
    rows = [f"{x},{y},{'up' if x > 0 else 'down'}" for x, y in a]
    path.write_bytes(ends.join(["a,b,label", *rows, ""]).encode())
    return path


def without_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a user without a home folder, as in a container that runs under a number alone."""

    def unknown(user: int) -> None:
        raise KeyError(user)

    for name in ("HOME", "ECHOLEARN_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)


@pytest.mark.parametrize("home", [True, False])
def test_without_a_folder_for_a_cache_files_are_replaced_by_force_alone(
    run: Callable[..., Result],
    refused: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    home: bool,
) -> None:
    if home:
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("ECHOLEARN_CACHE", str(tmp_path / "file" / "cache"))  # which nobody can make, root neither
    else:
        without_home(monkeypatch)
    fit = ("train", write_table(tmp_path / "t.csv", "\n"), "--target", "label", "--units", 5, "--set", "learn=none")
    fit += ("--out", tmp_path / "model.safetensors")
    assert run(*fit).exit_code == 0
    assert "add --force" in refused(*fit)
    assert run(*fit, "--force").exit_code == 0


def test_a_user_without_a_home_folder_is_told_what_to_set(
    run: Callable[..., Result], refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_home(monkeypatch)
    assert "no home folder for a cache" in refused("train", "--corpus", "synthetic", "--out", tmp_path / "m")
    about = run("info")
    assert about.exit_code == 0, about.output
    assert "ECHOLEARN_CACHE" in about.output


def test_names_with_spaces_and_windows_line_ends_change_nothing(run: Callable[..., Result], tmp_path: Path) -> None:
    folder = tmp_path / "Eigene Übungen (2)"
    folder.mkdir()
    found = []
    for name, ends in (("plain", "\n"), ("of Windows", "\r\n")):
        table, model, config = (folder / f"{name}{ending}" for ending in (".csv", ".safetensors", ".toml"))
        write_table(table, ends)
        config.write_bytes(ends.join(["units = 5", "[estimator]", 'learn = "none"', ""]).encode())
        fitted = run("train", table, "--target", "label", "--config", config, "--out", model)
        assert fitted.exit_code == 0, fitted.output
        answered = run("predict", model, table, "--out", folder / f"{name} answers.csv")
        assert answered.exit_code == 0, answered.output
        found.append((load(model).recurrent_weights_.toarray(), (folder / f"{name} answers.csv").read_bytes()))
    (weights, answers), (weights_of_windows, answers_of_windows) = found
    assert weights.shape == (5, 5)
    np.testing.assert_array_equal(weights, weights_of_windows)
    assert answers == answers_of_windows
    assert answers.count(b"\n") == 61
