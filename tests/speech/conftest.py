"""A folder of speech, and one small synthetic corpus."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from echolearn.exceptions import CorpusError
from echolearn.speech._synthetic.tree import synthetic_tree
from speechfiles import ProblemsOf, write_utterance


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A `wav:` folder of four speakers without a fault."""
    root = tmp_path / "folder"
    for k, speaker in enumerate(("ann", "bob", "cid", "dee")):
        for number in range(2):
            write_utterance(root / speaker / f"u{number}", seed=10 * k + number)
    return root


@pytest.fixture(scope="session")
def small_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def small_tree(small_cache: Path) -> Path:
    """A synthetic corpus of 12,000 training frames, written once."""
    return synthetic_tree(12_000, seed=1, cache=small_cache)


@pytest.fixture
def problems_of() -> ProblemsOf:
    """Call a function that must raise a CorpusError, and return its problems as text."""

    def collect(call: Callable[[], object]) -> list[str]:
        with pytest.raises(CorpusError) as caught:
            call()
        return [str(problem) for problem in caught.value.problems]

    return collect
