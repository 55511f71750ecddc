"""Awkward data, for benchmarks/defaults.py: gaps in the inputs, rare positives, labels that are missing.

Beside our keywords stand scikit-learn's usual cures: an imputer before the same network, gradient boosting that takes
gaps, and logistic regression on windows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from default_series import TASKS
from echolearn import ESNClassifier, ESNRegressor

WINDOW = 10  # steps that the methods without a memory see
IGNORED = -1
Sequences = list[np.ndarray]
Parts = tuple[Sequences, Sequences, Sequences, Sequences]  # X and y to train on, X and y to test on
Score = Callable[[int], float]  # from a seed


def windows(x: np.ndarray, fill: float = 0.0) -> np.ndarray:
    """Return each step beside those before it, newest last; `fill` stands before the first."""
    before = np.full((WINDOW - 1, x.shape[1]), fill)
    together = np.concatenate([before, x])
    return np.hstack([together[i : i + len(x)] for i in range(WINDOW)])


def gapped() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return Lorenz, 1 ahead, with 30 % of the inputs missing at random: X and y to train on, X and y to test on."""
    X, y, X_test, y_test = TASKS["Lorenz, 1 ahead"]().parts
    rng = np.random.default_rng(0)
    X, X_test = (np.where(rng.random(part.shape) < 0.3, np.nan, part) for part in (X, X_test))
    return X, y, X_test, y_test


def gaps() -> tuple[str, dict[str, Score]]:
    """Lorenz, 1 ahead, 30 % of the inputs missing at random; R² of the test part."""
    X, y, X_test, y_test = gapped()

    def network(seed: int, **settings: str) -> float:
        return ESNRegressor(random_state=seed, **settings).fit(X, y).score(X_test, y_test)

    def imputed(seed: int) -> float:
        fill = SimpleImputer().fit(X)
        return ESNRegressor(random_state=seed).fit(fill.transform(X), y).score(fill.transform(X_test), y_test)

    def boosted(seed: int) -> float:
        both = windows(np.concatenate([X, X_test]), np.nan)
        columns = [
            HistGradientBoostingRegressor(random_state=seed).fit(both[: len(X)], y[:, k]).predict(both[len(X) :])
            for k in range(y.shape[1])
        ]
        return float(r2_score(y_test, np.stack(columns, axis=1)))

    return "30 % of inputs missing, Lorenz 1 ahead, R²", {
        'ESNRegressor(missing="carry")': lambda seed: network(seed, missing="carry"),
        'ESNRegressor(missing="mean")': lambda seed: network(seed, missing="mean"),
        "SimpleImputer, ESNRegressor()": imputed,
        f"HistGradientBoosting, {WINDOW} steps": boosted,
    }


def echoes(sequences: int, seed: int) -> Sequences:
    """Return noise of three features, 60 to 120 steps each."""
    rng = np.random.default_rng([15, seed])
    return [rng.normal(size=(rng.integers(60, 121), 3)) for _ in range(sequences)]


def labelled(X: Sequences, share: float) -> Sequences:
    """Return labels per step: 1 where what the last steps add up to, and multiply to, is largest; in this share."""
    strength = [x[:, 2] + np.roll(x[:, 0], 2) + 0.5 * np.roll(x[:, 0], 3) * np.roll(x[:, 1], 1) for x in X]
    threshold = np.quantile(np.concatenate(strength), 1 - share)
    return [(s > threshold).astype(int) for s in strength]


def on_windows(X: Sequences, y: Sequences, X_test: Sequences, **settings: str) -> np.ndarray:
    """Return the labels that logistic regression on windows gives to all test steps."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, **settings))
    model.fit(np.concatenate([windows(x) for x in X]), np.concatenate(y))
    return model.predict(np.concatenate([windows(x) for x in X_test]))


def with_rare_labels() -> Parts:
    """Return sequences of which 2 % of the steps are positive."""
    X, X_test = echoes(80, 0), echoes(80, 1)
    return X, labelled(X, 0.02), X_test, labelled(X_test, 0.02)


def rare() -> tuple[str, dict[str, Score]]:
    """2 % positive labels per step; balanced accuracy of the test sequences."""
    X, y, X_test, y_test = with_rare_labels()
    true = np.concatenate(y_test)

    def network(seed: int, **settings: str) -> float:
        answers = ESNClassifier(random_state=seed, **settings).fit(X, y).predict(X_test)
        return float(balanced_accuracy_score(true, np.concatenate(answers)))

    def logistic(seed: int) -> float:
        return float(balanced_accuracy_score(true, on_windows(X, y, X_test, class_weight="balanced")))

    return "2 % positives, balanced accuracy", {
        'ESNClassifier(class_weight="balanced")': lambda seed: network(seed, class_weight="balanced"),
        "ESNClassifier()": network,
        f'LogisticRegression(class_weight="balanced"), {WINDOW} steps': logistic,
    }


def with_all_labels() -> Parts:
    """Return sequences of which half of the steps are positive."""
    X, X_test = echoes(80, 2), echoes(80, 3)
    return X, labelled(X, 0.5), X_test, labelled(X_test, 0.5)


def half_ignored(y: Sequences) -> Sequences:
    """Return labels of which half are ignored, at random."""
    rng = np.random.default_rng(0)
    return [np.where(rng.random(len(labels)) < 0.5, labels, IGNORED) for labels in y]


def half_labelled() -> tuple[str, dict[str, Score]]:
    """Half of the labels per step ignored; accuracy of the test sequences."""
    X, y, X_test, y_test = with_all_labels()
    true, half = np.concatenate(y_test), half_ignored(y)

    def network(seed: int, labels: Sequences, **settings: int) -> float:
        answers = ESNClassifier(random_state=seed, **settings).fit(X, labels).predict(X_test)
        return float(accuracy_score(true, np.concatenate(answers)))

    def logistic(seed: int) -> float:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        frames, there = np.concatenate([windows(x) for x in X]), np.concatenate(half) != IGNORED
        model.fit(frames[there], np.concatenate(y)[there])
        return float(model.score(np.concatenate([windows(x) for x in X_test]), true))

    return "half of the labels ignored, accuracy", {
        f"ESNClassifier(ignore_label={IGNORED})": lambda seed: network(seed, half, ignore_label=IGNORED),
        "ESNClassifier(), all labels": lambda seed: network(seed, y),
        f"LogisticRegression on labelled steps, {WINDOW} steps": logistic,
    }


TASKS_HERE = (gaps, rare, half_labelled)
