"""A saved model, loaded by the runtime."""

import pytest

import echolearn
from echolearn.runtime import load


@pytest.fixture
def through_file(tmp_path):
    """Return a function from a fitted model to the runtime's model of its file."""

    def load_saved(model):
        echolearn.save(model, tmp_path / "model.safetensors")
        return load(tmp_path / "model.safetensors")

    return load_saved
