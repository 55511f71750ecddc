"""Whole sequences to classes, for benchmarks/defaults.py: the data sets in aeon's wheel, a sine task, three methods."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import aeon.datasets
import numpy as np
from aeon.classification.convolution_based import MiniRocketClassifier
from aeon.datasets import load_classification
from reservoir_computing.modules import RC_model

from echolearn import SeriesClassifier

Sequences = list[np.ndarray]
Data = tuple[Sequences, np.ndarray, Sequences, np.ndarray]  # to train on and to test on; classes as numbers
SINES = "sines"
FOR_SEVERAL = "reservoir-computing"  # the method that is tried on data sets with several features only
# The reservoir model space, with the settings that its authors give for classification
MODEL_SPACE = {
    "n_internal_units": 450,
    "spectral_radius": 0.59,
    "leak": 0.6,
    "connectivity": 0.25,
    "input_scaling": 0.1,
    "noise_level": 0.01,
    "n_drop": 5,
    "bidir": True,
    "dimred_method": "tenpca",
    "n_dim": 75,
    "mts_rep": "reservoir",
    "w_ridge_embedding": 10.0,
    "readout_type": "lin",
    "w_ridge": 5.0,
}


def names() -> list[str]:
    """Return the labelled data sets that are inside aeon's wheel, and the sine task."""
    folder = Path(aeon.datasets.__file__).parent / "data"
    found = []
    for path in sorted(folder.glob("*/*_TRAIN.ts")):
        header = path.read_text(errors="replace").split("@data")[0].lower()
        if path.parent.name == path.stem.removesuffix("_TRAIN") and "@classlabel true" in header:
            found.append(path.parent.name)
    return [*found, SINES]


def read(name: str) -> Data:
    """Return the training and the test part of a data set, time first."""
    if name == SINES:
        return (*sines(90, seed=0), *sines(300, seed=1))
    train, y = load_classification(name, split="train")
    test, y_test = load_classification(name, split="test")
    classes = np.unique(y)
    return *_part(train, y, classes), *_part(test, y_test, classes)


def _part(X: np.ndarray | list, y: np.ndarray, classes: np.ndarray) -> tuple[Sequences, np.ndarray]:
    return [np.ascontiguousarray(np.asarray(x, float).T) for x in X], np.searchsorted(classes, y)


def sines(count: int, seed: int) -> tuple[Sequences, np.ndarray]:
    """Return noisy sines of three frequencies, of any phase and of 60 to 100 steps; the class is the frequency."""
    rng = np.random.default_rng([14, seed])
    y = np.arange(count) % 3
    X = []
    for c in y:
        t = np.arange(rng.integers(60, 101))
        wave = np.sin((0.2, 0.3, 0.4)[c] * t + rng.uniform(0, 2 * np.pi))
        X.append((wave + 0.3 * rng.normal(size=len(t)))[:, None])
    return X, y


def padded(X: Sequences, longest: int) -> np.ndarray:
    """Return sequences with zeros at their ends, as one array (cases, steps, features)."""
    return np.stack([np.pad(x, ((0, longest - len(x)), (0, 0))) for x in X])


def ours(data: Data, seed: int) -> int:
    """Return the errors of our classifier with its defaults."""
    X, y, X_test, y_test = data
    return int((SeriesClassifier(random_state=seed).fit(X, y).predict(X_test) != y_test).sum())


def minirocket(data: Data, seed: int) -> int:
    """Return the errors of aeon's MiniRocket; it takes sequences of one length only."""
    X, y, X_test, y_test = data
    longest = max(map(len, [*X, *X_test]))
    model = MiniRocketClassifier(random_state=seed).fit(padded(X, longest).transpose(0, 2, 1), y)
    return int((model.predict(padded(X_test, longest).transpose(0, 2, 1)) != y_test).sum())


def model_space(data: Data, seed: int) -> int:
    """Return the errors of the reservoir-computing package on features standardised over the training part."""
    X, y, X_test, y_test = data
    np.random.seed(seed)  # noqa: NPY002 - it draws from NumPy's global generator
    longest = max(map(len, [*X, *X_test]))
    frames = np.concatenate(X)
    mean, scale = frames.mean(axis=0), frames.std(axis=0) + 1e-12
    model = RC_model(**{**MODEL_SPACE, "n_dim": min(75, len(X) - 1)})
    model.fit(padded([(x - mean) / scale for x in X], longest), np.eye(y.max() + 1)[y], verbose=False)
    found = np.asarray(model.predict(padded([(x - mean) / scale for x in X_test], longest))).ravel()
    return int((found != y_test).sum())


def compile_first() -> None:
    """Fit MiniRocket, with one feature and with two, so that no clock sees its compilation."""
    rng = np.random.default_rng(0)
    for features in (1, 2):
        X = [rng.normal(size=(20, features)) for _ in range(8)]
        minirocket((X, np.arange(8) % 2, X, np.arange(8) % 2), 0)


METHODS: dict[str, Callable[[Data, int], int]] = {
    "SeriesClassifier()": ours,
    "MiniRocket": minirocket,
    FOR_SEVERAL: model_space,
}
