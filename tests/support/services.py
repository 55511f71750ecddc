"""Small models behind the service, for tests."""

import warnings

import numpy as np
from starlette.testclient import TestClient

import toys
from echolearn import (
    DeepESNClassifier,
    DeepESNRegressor,
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    SeriesClassifier,
    SeriesRegressor,
)
from echolearn.exceptions import PoorFitWarning
from echolearn.export.service.access import Access
from echolearn.export.service.application import Service
from echolearn.export.service.library import served
from echolearn.export.service.limits import Limits
from echolearn.export.service.models import open_light_model
from toys import grouped

TOKEN = "0123456789abcdef-test"
X, LABELS = toys.labels(sequences=6)
VALUES = toys.echoes(sequences=6)[1]
WAVE = np.sin(np.arange(120) / 4)
QUESTION = {"X": X[0].tolist()}
SMALL = {"hidden_units": 12, "connections": 3, "learn": "none", "random_state": 0}


def deep(kind, targets, **settings):
    """Return a deep network after one epoch, from which nobody expects good answers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PoorFitWarning)
        return kind(8, 2, epochs=1, **settings).fit(X, targets)


MODELS = {
    "classifier": lambda: ESNClassifier(**grouped(SMALL)).fit(X, LABELS),
    "one per series": lambda: SeriesClassifier(12).fit(X, ["up", "down"] * 3),
    "values per series": lambda: SeriesRegressor(12).fit(X, [v.mean(axis=0) for v in VALUES]),
    "label sets": lambda: ESNClassifier(readout="ridge", **grouped(SMALL)).fit(
        X, [(v > 0).astype(int) for v in VALUES]
    ),
    "both directions": lambda: ESNClassifier(bidirectional=True, **grouped(SMALL)).fit(X, LABELS),
    "values": lambda: ESNRegressor(**grouped(SMALL)).fit(X, VALUES),
    "one value": lambda: ESNRegressor(**grouped(SMALL)).fit(X, [v[:, 0] for v in VALUES]),
    "gaps": lambda: ESNRegressor(missing="carry", **grouped(SMALL)).fit(X, VALUES),
    "deep": lambda: deep(DeepESNClassifier, LABELS),
    "deep, values": lambda: deep(DeepESNRegressor, VALUES, ensemble=2, missing="carry"),
    "deep, both directions": lambda: deep(DeepESNClassifier, LABELS, bidirectional=True),
    "deep, one per series": lambda: deep(DeepESNClassifier, ["up", "down"] * 3),
    "forecaster": lambda: ESNForecaster(washout=5, method="closed_loop", **grouped(SMALL)).fit(WAVE),
}


def both(esn, folder):
    """Return an estimator as the runtime runs it, and as the library does."""
    path = folder / "model.safetensors"
    esn.save(path)
    return {"light": open_light_model(path), "library": served(esn)}


def client(model, *, token=None, origins=(), **limits):
    """Return a service and a client of it, as the browser of this machine sees it."""
    service = Service(model, Limits(**limits), Access.of("127.0.0.1", token, origins))
    how = {"base_url": "http://localhost", "headers": {"Host": "localhost"}, "raise_server_exceptions": False}
    return service, TestClient(service.application(), **how)


def metric(client, line, **headers):
    """Return the value of a metric."""
    found = [row for row in client.get("/metrics", headers=headers).text.splitlines() if row.startswith(line + " ")]
    return float(found[0].split()[-1])
