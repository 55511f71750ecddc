import pytest

from smallmodels import MODELS


@pytest.fixture(scope="module")
def model():
    """A small fitted classifier."""
    return MODELS["strings"]()


@pytest.fixture
def file(model, tmp_path):
    """The file of that classifier."""
    path = tmp_path / "model.safetensors"
    model.save(path)
    return path
