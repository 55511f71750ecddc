"""Classification of whole sequences (Japanese Vowels, BasicMotions, as aeon ships them) with two more libraries.

    .venv-series/bin/python benchmarks/series.py

Every method has 100 units and a small grid. Settings are chosen from the grid by five-fold cross-validation on the
training part with three seeds (folds keep the order of recording, so that a held-out fold is as far away as the test
part is). Then the method is fitted to the whole training part with ten seeds, and only then the test part is read.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from aeon.datasets import load_classification
from reservoir_computing.modules import RC_model
from reservoirpy.nodes import Reservoir, Ridge
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from echolearn import FrameWise, ReservoirFeatures, SeriesClassifier

UNITS, FOLDS = 100, 5
CHOOSING = 3  # seeds by which settings are chosen
LONGEST = 29  # steps of the longest sequence of Japanese Vowels, in both parts
Sequences = list[np.ndarray]


@dataclass
class Fitted:
    """A fitted method; predict(X) returns class numbers."""

    predict: Callable[[Sequences], np.ndarray]


def read(name: str, part: str) -> tuple[Sequences, np.ndarray]:
    """Return the sequences of a part, time first, and their class numbers."""
    X, y = load_classification(name, split=part)
    return [np.ascontiguousarray(np.asarray(x, float).T) for x in X], np.unique(y, return_inverse=True)[1]


def folds(y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the indices to train and to test on: every fold has consecutive fifths of all classes."""
    fold = np.empty(len(y), int)
    for c in np.unique(y):
        rows = np.flatnonzero(y == c)
        fold[rows] = np.arange(len(rows)) * FOLDS // len(rows)
    for k in range(FOLDS):
        yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


def summary(X: Sequences, y: np.ndarray, seed: int, **settings: Any) -> Fitted:
    """Fit our classifier of whole series, which has two sets of `hidden_units`."""
    return Fitted(SeriesClassifier(UNITS // 2, random_state=seed, **settings).fit(X, y).predict)


def states_pooled(X: Sequences, y: np.ndarray, seed: int, *, ridge: float, **settings: Any) -> Fitted:
    """Fit a ridge classifier to the mean or last states of a reservoir, or to the means over parts of time."""
    features = ReservoirFeatures(hidden_units=UNITS, direct=True, random_state=seed, **settings)
    return Fitted(make_pipeline(features, RidgeClassifier(ridge)).fit(X, y).predict)


def frames_averaged(X: Sequences, y: np.ndarray, seed: int, *, ridge: float, **settings: Any) -> Fitted:
    """Fit as reservoirpy's guide does: a ridge readout on every frame, its outputs averaged over the sequence."""
    reservoir, readout = Reservoir(UNITS, seed=seed, **settings), Ridge(ridge=ridge)

    def states(X: Sequences) -> Sequences:
        if reservoir.initialized:
            reservoir.reset()  # it keeps its state from the previous call
        return [np.hstack([h, x]) for h, x in zip(reservoir.run(X), X, strict=True)]

    targets = np.eye(y.max() + 1)[y]
    readout.fit(states(X), [np.repeat(t[None], len(x), axis=0) for t, x in zip(targets, X, strict=True)])
    return Fitted(lambda X: np.array([readout.run(h).mean(axis=0).argmax() for h in states(X)]))


def model_space(X: Sequences, y: np.ndarray, seed: int, **settings: Any) -> Fitted:
    """Fit the reservoir-computing package's classifier; sequences are padded with zeros at the end, as in its data."""
    np.random.seed(seed)  # noqa: NPY002 - it draws from NumPy's global generator
    longest = max(LONGEST, *map(len, X))
    model = RC_model(n_internal_units=UNITS, **settings)

    def padded(X: Sequences) -> np.ndarray:
        return np.stack([np.pad(x, ((0, longest - len(x)), (0, 0))) for x in X])

    model.fit(padded(X), np.eye(y.max() + 1)[y], verbose=False)
    return Fitted(lambda X: np.asarray(model.predict(padded(X))).ravel())


def grid(**choices: list[Any]) -> list[dict[str, Any]]:
    """Return all combinations of the choices."""
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


MODEL_SPACE = {"mts_rep": "reservoir", "dimred_method": "tenpca", "n_dim": 30, "w_ridge_embedding": 10.0}
METHODS: dict[str, tuple[Callable[..., Fitted], list[dict[str, Any]]]] = {
    "echolearn, summary": (summary, grid(ridge=["auto"], washout=[0, 2, 5], readout=["softmax", "ridge"])),
    "echolearn, pooled states": (
        states_pooled,
        grid(pooling=["mean", "last", 3, 5], leak=[(0.1, 1.0), 1.0], input_scaling=[0.1, 1.0], ridge=[0.03, 0.3, 3.0]),
    ),
    "reservoirpy": (
        frames_averaged,
        grid(sr=[0.9], lr=[0.1, 0.3, 1.0], input_scaling=[0.1, 1.0], ridge=[1e-6, 1.0, 100.0]),
    ),
    "reservoir-computing": (
        model_space,
        [
            *grid(mts_rep=["mean", "last"], bidir=[False, True], w_ridge=[0.1, 1.0, 5.0]),
            *(
                {**MODEL_SPACE, **more}
                for more in grid(spectral_radius=[0.6], input_scaling=[0.1], bidir=[False, True], w_ridge=[1.0, 5.0])
            ),
        ],
    ),
}


def wrong_in_folds(method: Callable[..., Fitted], settings: dict[str, Any], X: Sequences, y: np.ndarray) -> float:
    """Return the number of errors in all folds, averaged over seeds."""
    wrong = 0
    for (train, test), seed in itertools.product(folds(y), range(CHOOSING)):
        fitted = method([X[i] for i in train], y[train], seed, **settings)
        wrong += int((fitted.predict([X[i] for i in test]) != y[test]).sum())
    return wrong / CHOOSING


def choose(method: Callable[..., Fitted], settings: list[dict[str, Any]], X: Sequences, y: np.ndarray) -> Any:
    """Return the settings with the fewest errors (among equals the first of the grid), and those errors."""
    errors = [wrong_in_folds(method, s, X, y) for s in settings]
    best = int(np.argmin(errors))
    return settings[best], errors[best]


def run(name: str, seeds: int, methods: list[str]) -> None:
    """Print the table of one corpus."""
    X, y = read(name, "train")
    scale = FrameWise(StandardScaler()).fit(X)
    X = scale.transform(X)
    chosen: dict[str, tuple[Callable[..., Fitted], dict[str, Any], float]] = {}
    for title in methods:
        method, settings = METHODS[title]
        chosen[title] = method, *choose(method, settings, X, y)
        print(f"{name}, {title}: {len(settings)} settings tried", file=sys.stderr, flush=True)
    results = {}
    for title, (method, best, _) in chosen.items():
        results[title] = [method(X, y, seed, **best) for seed in range(seeds)]
    X_test, y_test = read(name, "test")
    X_test = scale.transform(X_test)
    print(f"\n{name}: {len(X)} training, {len(X_test)} test sequences, {seeds} seeds, {UNITS} units")
    print("| method | cross-validation errors | median test errors | fewest to most |")
    print("|---|---:|---:|---:|")
    for title, (_, _, errors) in chosen.items():
        wrong = [int((fitted.predict(X_test) != y_test).sum()) for fitted in results[title]]
        spread = f"{min(wrong)} to {max(wrong)}"
        print(f"| {title} | {errors:.1f} of {len(X)} | {np.median(wrong):g} of {len(X_test)} | {spread} |")
    for title, (_, best, _) in chosen.items():
        print(f"  {title}: {json.dumps(best)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["JapaneseVowels", "BasicMotions"], help="corpora to use")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS), help="methods to compare")
    parser.add_argument("--seeds", type=int, default=10, help="networks of each method on the test part")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.data:
        run(name, given.seeds, given.methods)


if __name__ == "__main__":
    main()
