"""How many files of echolearn a call runs through, and how many modules an import loads.

`python tools/files_of_a_fit.py` prints them by name. Where they lie: docs/explanation/architecture.md.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from sourcetree import ROOT

FILES = {"fit": 55, "predict": 18, "recognize": 55}
MODULES = {"modules of the import": 120, "further modules of export": 12}
NOT_LOADED = ("echolearn.paper", "echolearn.export.page", "echolearn.export.service")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The names of the files that are entered, and of the modules that are loaded, by call."""
    folder = tmp_path_factory.mktemp("budgets")
    words = [sys.executable, "-W", "ignore", ROOT / "tools" / "files_of_a_fit.py", "--json", folder / "files.json"]
    subprocess.run(words, check=True, capture_output=True)
    return dict(json.loads((folder / "files.json").read_text()))


@pytest.mark.parametrize(("call", "most"), [*FILES.items(), *MODULES.items()])
def test_calls_stay_within_their_budgets(measured: dict[str, list[str]], call: str, most: int) -> None:
    found = measured[call]
    assert len(found) <= most, f"{call}: {len(found)}, expected at most {most}\n" + "\n".join(found)


@pytest.mark.parametrize("call", ["further modules of export", "modules of recognize"])
def test_tables_pages_and_services_are_not_loaded(measured: dict[str, list[str]], call: str) -> None:
    found = [name for name in measured[call] if name.startswith(NOT_LOADED)]
    assert not found, f"{call}:\n" + "\n".join(found)


@pytest.mark.parametrize("call", ["fit", "predict"])
def test_a_local_fit_does_not_enter_the_cluster(measured: dict[str, list[str]], call: str) -> None:
    found = [file for file in measured[call] if file.startswith("cluster/")]
    assert not found, f"{call}:\n" + "\n".join(found)
