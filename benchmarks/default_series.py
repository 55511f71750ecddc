"""One long series each, for benchmarks/defaults.py: tasks, our regressor with its defaults, and its rivals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from reservoirpy.nodes import Reservoir, Ridge
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from echolearn import ESNRegressor
from echolearn.datasets import lorenz, mackey_glass, narma, sunspots

# reservoirpy's tutorials: "Getting started", and "General introduction to reservoir computing" (Mackey-Glass 10 ahead)
TUTORIALS = {
    "reservoirpy, Getting started": {"reservoir": {"lr": 0.5, "sr": 0.9}, "ridge": 1e-7, "warmup": 10},
    "reservoirpy, General introduction": {
        "reservoir": {"lr": 0.3, "sr": 1.25, "input_scaling": 1.0, "rc_connectivity": 0.1, "input_connectivity": 0.2},
        "ridge": 1e-8,
        "warmup": 0,
    },
}


@dataclass(frozen=True)
class Task:
    """Inputs and targets, one row per step; the first `train` steps are learned from, the rest follows directly."""

    X: np.ndarray
    y: np.ndarray
    train: int

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """X and y to train on, X and y to test on."""
        n = self.train
        return self.X[:n], self.y[:n], self.X[n:], self.y[n:]


def ahead(series: np.ndarray, steps: int, train: int) -> Task:
    """Return the task to say a series some steps ahead."""
    rows = series.reshape(len(series), -1)
    return Task(rows[:-steps], series[steps:], train)


def narma_task() -> Task:
    u, y = narma(2990, random_state=0)
    return Task(u.reshape(len(u), -1), y.ravel(), 2490)


def sunspots_task() -> Task:
    return ahead(sunspots().ravel(), 1, 250)  # its data file is part of statsmodels


TASKS: dict[str, Callable[[], Task]] = {
    "Mackey-Glass, 10 ahead": lambda: ahead(mackey_glass(3000).ravel(), 10, 2490),
    "NARMA-10": narma_task,
    "Lorenz, 1 ahead": lambda: ahead(lorenz(2991), 1, 2490),
    "sunspots (yearly), 1 ahead": sunspots_task,
}


def ours(task: Task, seed: int, **settings: object) -> float:
    """Return R² of our regressor; the test part follows the training part."""
    X, y, X_test, y_test = task.parts
    return ESNRegressor(random_state=seed, **settings).fit(X, y).score(X_test, y_test)


def ours_warmed_up(task: Task, seed: int) -> float:
    """Return R² where the frames before the test part are given by hand."""
    X, y, X_test, y_test = task.parts
    return ESNRegressor(random_state=seed).fit(X, y).score(X_test, y_test, warm_up=X)


def tutorial(task: Task, seed: int, *, reservoir: dict[str, float], ridge: float, warmup: int) -> float:
    """Return R² of reservoirpy on data scaled to [-1, 1], as its tutorials do; its state is carried on by itself."""
    X, y, X_test, y_test = task.parts
    low, high = X.min(axis=0), X.max(axis=0)
    esn = Reservoir(100, seed=seed, **reservoir) >> Ridge(ridge=ridge)
    esn.fit(2 * (X - low) / (high - low) - 1, y.reshape(len(y), -1), warmup=warmup)
    found = esn.run(2 * (X_test - low) / (high - low) - 1)
    return float(r2_score(y_test.reshape(len(y_test), -1), found))


def linear(task: Task, seed: int) -> float:
    """Return R² of scikit-learn's ridge regression on the last ten steps."""
    window = 10
    lagged = np.hstack([task.X[window - 1 - k : len(task.X) - k] for k in range(window)])
    cut = task.train - window + 1
    model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-6, 3, 10)))
    return float(model.fit(lagged[:cut], task.y[window - 1 : task.train]).score(lagged[cut:], task.y[task.train :]))


def methods() -> dict[str, Callable[[Task, int], float]]:
    """Return every method by its name."""
    found: dict[str, Callable[[Task, int], float]] = {
        "ESNRegressor()": ours,
        'ESNRegressor(learn="none")': lambda task, seed: ours(task, seed, learn="none"),
        "ESNRegressor(), warm_up=X_train": ours_warmed_up,
    }
    for name, settings in TUTORIALS.items():
        found[name] = lambda task, seed, settings=settings: tutorial(task, seed, **settings)
    found["RidgeCV, 10 steps"] = linear
    return found
