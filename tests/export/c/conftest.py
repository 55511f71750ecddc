"""Models for tests of headers."""

import pytest

import exported


@pytest.fixture(scope="package")
def some():
    """Return some models with frames and their own answers."""
    return [
        exported.drawn(exported.classifier()),
        exported.drawn(exported.classifier(readout="ridge", activation="sigmoid", leak=0.5)),
        exported.drawn(exported.regressor(feedback=True, dtype="float64")),
        exported.drawn(exported.regressor(activation="relu", missing="carry", standardize=False)),
    ]
