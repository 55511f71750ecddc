"""A small corpus, and the command as a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import toyspeech
from echolearn import ESNClassifier
from echolearn.cli.main import main
from echolearn.speech import Corpus, open_corpus
from smallcorpus import write
from speechfiles import write_riff

SPOKEN = toyspeech.speech(seed=1, utterances=10)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what the commands remember of their files out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ECHOLEARN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


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


@pytest.fixture(scope="session")
def opened(corpus: str) -> Corpus:
    return open_corpus(corpus)


@pytest.fixture(scope="session")
def network(opened: Corpus) -> ESNClassifier:
    """A network for the states of the small corpus."""
    names = np.array(opened.state_names)
    X, y = opened.part("train")
    network = ESNClassifier(10, learn="none", readout="ridge", random_state=0)
    return network.fit(list(X), [names[labels] for labels in y])


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recogniser of toy speech."""
    path = tmp_path_factory.mktemp("toy") / "toy.safetensors"
    toyspeech.recognizer().save(path)
    return path


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    """A folder with three recordings, one of which has a blank in its name."""
    for name, (_, samples, _) in zip(("ann/one", "ann/two words", "bob/one"), SPOKEN, strict=False):
        write_riff(tmp_path / "sound" / f"{name}.wav", np.round(samples))
    return tmp_path / "sound"
