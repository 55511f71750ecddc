"""A model behind the service."""

import pytest

import services
from services import MODELS


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return a classifier as the runtime runs it."""
    return services.both(MODELS["classifier"](), tmp_path_factory.mktemp("model"))["light"]
