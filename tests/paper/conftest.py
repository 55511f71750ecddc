"""A small corpus."""

from __future__ import annotations

import pytest

from echolearn.speech import Corpus, open_corpus
from smallcorpus import write


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return open_corpus(f"features:{write(tmp_path_factory.mktemp('corpus') / 'small.npz')}")
