"""Every installed package is named and pinned; nothing is fetched at run time."""

from __future__ import annotations

import ast
import re
import socket
import sys
import tomllib
import urllib.request
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import smallcorpus
import toys
from echolearn import ESNClassifier, ESNForecaster, ESNRegressor, datasets, load
from echolearn.cli.main import main
from toys import grouped

ROOT = Path(__file__).parents[1]
NAMES = {"sklearn": "scikit-learn"}  # names of distributions that differ from their module's name
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = re.search(r"^EXTRAS := (.*)$", (ROOT / "Makefile").read_text(), re.M)


def required() -> list[Requirement]:
    """Return the project's dependencies and those of the extras that `make test` installs."""
    assert EXTRAS is not None
    more = [line for extra in EXTRAS[1].split(",") for line in PROJECT["optional-dependencies"][extra]]
    return [Requirement(line) for line in [*PROJECT["dependencies"], *more]]


def locked() -> list[tuple[Requirement, int]]:
    """Return each pin of the lock file with the number of its hashes."""
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text().strip())
    return [(Requirement(e.split("\\")[0]), e.count("--hash=sha256:")) for e in entries]


def test_every_pin_has_hashes_and_no_host():
    assert all(hashes > 0 and re.fullmatch(r"==[^*]+", str(pin.specifier)) for pin, hashes in locked())
    text = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"://|--index|--find-links|--trusted", text)


def test_the_lock_file_has_what_pyproject_requires():
    """If this fails after a change of pyproject.toml, run make lock."""
    pins: dict[str, list[Requirement]] = {}
    for pin, _ in locked():
        pins.setdefault(canonicalize_name(pin.name), []).append(pin)
    for need in required():
        found = pins.get(canonicalize_name(need.name), [])
        assert found, f"{need} is not in requirements.lock: make lock"
        for pin in found:
            (version,) = pin.specifier
            assert need.specifier.contains(version.version), f"{pin} is not {need}: make lock"
    for python in ("3.11", "3.12", "3.13"):
        for name, found in pins.items():
            here = [p for p in found if p.marker is None or p.marker.evaluate({"python_full_version": f"{python}.0"})]
            assert len(here) <= 1, f"{name} is pinned twice for Python {python}"


def test_the_packages_that_src_imports_are_those_that_are_required():
    """No package is used that is only a dependency of another one, and none is required that is not used."""
    imported = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                imported.add(str(node.module).split(".")[0])
    used = {canonicalize_name(NAMES.get(module, module)) for module in imported - sys.stdlib_module_names}
    extras = PROJECT["optional-dependencies"]
    lines = [PROJECT["dependencies"], *(extras[name] for name in extras if name not in ("docs", "test"))]
    needed = {canonicalize_name(Requirement(line).name) for line in chain(*lines)}
    optional = {"ipython", "pandas"}  # used where they are there
    assert used - {"echolearn"} - optional == needed - {"websockets"} - optional  # uvicorn loads websockets by its name


def test_packages_whose_internals_are_used_are_bounded_by_the_version_that_was_tested():
    """The service extends the protocols of uvicorn, which no version promises. Raise the bound when the tests pass."""
    (need,) = (need for need in required() if need.name == "uvicorn")
    (pin,) = (pin for pin, _ in locked() if pin.name == "uvicorn")
    major, minor, *_ = str(pin.specifier).removeprefix("==").split(".")
    assert need.specifier.contains(f"{major}.{minor}.99")
    assert not need.specifier.contains(f"{major}.{int(minor) + 1}.0")


def test_the_licences_are_those_of_the_locked_packages():
    """If this fails after make lock: python -m reliability.licences > docs/reference/licences.md."""
    table = (ROOT / "docs" / "reference" / "licences.md").read_text()
    listed = {
        (canonicalize_name(name), version) for name, version in re.findall(r"^\| ([\w.-]+) \| (\d\S*) \|", table, re.M)
    }
    pins = {(canonicalize_name(pin.name), str(pin.specifier).removeprefix("==")) for pin, _ in locked()}
    assert listed <= pins
    assert {name for name, _ in pins} == {name for name, _ in listed}


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("something uses the network")

    monkeypatch.setattr(socket.socket, "__init__", refuse)  # code that already holds the class is refused too
    for name in ("socketpair", "create_connection", "create_server", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)


@pytest.mark.usefixtures("no_network")
def test_the_fixture_forbids_the_network():
    with pytest.raises(AssertionError, match="uses the network"):
        urllib.request.urlopen("http://127.0.0.1:9/")
    with pytest.raises(AssertionError, match="uses the network"):
        socket.socket()


@pytest.mark.usefixtures("no_network")
def test_the_library_needs_no_network(tmp_path: Path):
    X, y = toys.labels()
    esn = ESNClassifier(**grouped(toys.FAST)).fit(X, y, checkpoint=tmp_path / "kept")
    esn.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "model.safetensors").predict(X[0]), esn.predict(X[0]))
    ESNRegressor(15, learn="none").fit(*toys.echoes()).predict(X)
    ESNForecaster(15, learn="none").fit(datasets.lorenz(200)).predict(5)
    for name in ("mackey_glass", "henon", "rossler"):
        assert len(getattr(datasets, name)(50)) == 50


@pytest.mark.usefixtures("no_network")
def test_the_commands_need_no_network(tmp_path: Path):
    corpus = f"features:{smallcorpus.write(tmp_path / 'small.npz')}"
    model = tmp_path / "net.safetensors"
    for words in (
        ("train", "--out", model, "--corpus", corpus, "--units", 10, "--epochs", 1),
        ("evaluate", model, "--corpus", corpus),
        ("info", model),
        ("table1", "--corpus", corpus, "--units", 5, "--epochs", 1, "--columns", "esn,W_m1", "--out", tmp_path / "out"),
    ):
        done = CliRunner().invoke(main, [str(word) for word in words])
        assert done.exit_code == 0, (words, done.output, done.exception)
    page = (tmp_path / "out" / "report.html").read_text()
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page), "the report loads something from a host"
