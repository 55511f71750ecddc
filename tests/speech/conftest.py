"""A good folder of speech, and one small synthetic corpus."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from echolearn.speech.errors import CorpusError
from echolearn.speech.synthetic import synthetic_tree
from speechfiles import spoken


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A good `wav:` folder of four speakers."""
    root = tmp_path / "folder"
    for k, speaker in enumerate(("ann", "bob", "cid", "dee")):
        for number in range(2):
            spoken(root / speaker / f"u{number}", seed=10 * k + number)
    return root


@pytest.fixture(scope="session")
def small_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def small_tree(small_cache: Path) -> Path:
    """A synthetic corpus of 12,000 training frames, made once."""
    return synthetic_tree(12_000, seed=1, cache=small_cache)


@pytest.fixture
def problems_of() -> Callable[[Callable[[], object]], list[str]]:
    def collect(call: Callable[[], object]) -> list[str]:
        with pytest.raises(CorpusError) as caught:
            call()
        return [str(problem) for problem in caught.value.problems]

    return collect
