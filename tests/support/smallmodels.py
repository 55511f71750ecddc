"""Small fitted models of every kind, and changes of their files."""

import numpy as np
import pytest

import toys
from echolearn import ESNClassifier, ESNRegressor, SeriesClassifier, SeriesRegressor
from echolearn.modelfile.layout import MODEL
from reliability import forging
from toys import grouped

X, LABELS = toys.labels(sequences=6)
VALUES = toys.echoes(sequences=6)[1]
ONE_EACH = ["up", "down"] * 3
SMALL = {**toys.FAST, "hidden_units": 4, "connections": 2, "epochs": 1}

MODELS = {
    "strings": lambda: ESNClassifier(**grouped(SMALL)).fit(X, LABELS),
    "whole numbers": lambda: ESNClassifier(readout="ridge", **grouped(SMALL)).fit(
        X, [(y == "low") * 5 - 2 for y in LABELS]
    ),
    "truth values": lambda: ESNClassifier(**grouped(SMALL)).fit(X, [y == "low" for y in LABELS]),
    "objects": lambda: ESNClassifier(**grouped(SMALL)).fit(X, [y.astype(object) for y in LABELS]),
    "one per series": lambda: SeriesClassifier(4, washout=2, ridge=[0.1, 10.0]).fit(X, ONE_EACH),
    "labels per series": lambda: SeriesClassifier(4).fit(X, np.arange(12).reshape(6, 2) % 3 % 2),
    "one value per series": lambda: SeriesRegressor(4).fit(X, [v[0, 0] for v in VALUES]),
    "values per series": lambda: SeriesRegressor(4, dtype="float64").fit(X, [v[0] for v in VALUES]),
    "both directions": lambda: ESNClassifier(bidirectional=True, **grouped(SMALL)).fit(X, LABELS),
    "feedback": lambda: ESNClassifier(feedback=True, **grouped(SMALL)).fit(X, LABELS),
    "label sets, feedback": lambda: ESNClassifier(20, learn="none", feedback=True).fit(
        X, [np.stack([y == "low", y == "high"], axis=1).astype(int) for y in LABELS]
    ),
    "values": lambda: ESNRegressor(**grouped(SMALL, initial_state=np.full(4, 0.1))).fit(X, VALUES),
    "one value": lambda: ESNRegressor(dtype="float64", leak=1.0, **grouped(SMALL)).fit(X, [v[:, 0] for v in VALUES]),
    "bare": lambda: ESNRegressor(learn="none", **grouped(SMALL, bias_scaling=0.0, direct=False)).fit(X, VALUES),
    "paper": lambda: ESNClassifier.paper(4, epochs=1).fit(X, LABELS),
    "paths": lambda: ESNRegressor(ridge=np.array([0.1, 1.0]), random_state=None, **grouped(SMALL)).fit(X, VALUES),
    "a generator": lambda: ESNRegressor(random_state=np.random.default_rng(3), **grouped(SMALL)).fit(X, VALUES),
    "NumPy settings": lambda: ESNRegressor(ridge=np.float32(0.1), washout=np.int64(1), **grouped(SMALL)).fit(X, VALUES),
}


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


def same(a, b):
    """Return whether two models predict the same bits."""
    return all(np.array_equal(x, y) for x, y in zip(a.predict(X), b.predict(X), strict=True))


def change_facts(file, **changes):
    """Change some facts of a file, under a checksum that is right for them."""
    tensors, facts = forging.taken_apart(file.read_bytes(), MODEL)
    file.write_bytes(forging.written((tensors, {**facts, **changes}), MODEL))


def change_arrays(file, **changes):
    """Change, add or (None) remove arrays of a file, under a checksum that is right for them."""
    tensors, facts = forging.taken_apart(file.read_bytes(), MODEL)
    tensors = {name: value for name, value in {**tensors, **changes}.items() if value is not None}
    file.write_bytes(forging.written((tensors, facts), MODEL))
