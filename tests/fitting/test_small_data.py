"""One long series: windows, folds of time, and learning that must pay."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from echolearn import ESNClassifier, ESNRegressor
from echolearn.datasets import mackey_glass, narma
from echolearn.exceptions import PoorFitWarning, TrainingWarning
from echolearn.fitting.codecs import squared_error
from echolearn.fitting.parameters import flat_settings
from echolearn.fitting.settings import NetworkSettings
from echolearn.fitting.small_data import (
    MAX_FULL_BATCH_STEPS,
    SERIES_EPOCHS,
    WINDOW_STEPS,
    learning_of,
    learning_paid,
    ridge_by_folds,
    time_folds,
)
from echolearn.readout.network import Network, Readout
from echolearn.readout.ridge import solve
from echolearn.readout.statistics import collect
from echolearn.readout.view import ReadoutView, Task
from echolearn.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from echolearn.states import harvest


def one_series(n, seed=0, noise=0.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    y = np.roll(x, 1, axis=0) * x + noise * rng.normal(size=(n, 1))
    return Dataset([x], [y], None, True, np.dtype("float64"))


def settings(**changes):
    return NetworkSettings.of({**flat_settings(ESNRegressor()), **changes})


def test_a_series_is_learned_in_windows_with_every_target_once():
    data = one_series(1000)
    learning = learning_of(settings(), data, Task(washout=50))
    assert learning.task.washout == 0
    assert sum(w.sum() for w in learning.data.weights) == 950
    assert len(learning.data.X) == round(950 / WINDOW_STEPS)
    assert learning.settings.batch_size is None
    assert learning.settings.epochs_for(len(learning.data.X)) == SERIES_EPOCHS


def test_a_very_long_series_is_learned_in_mini_batches_of_windows():
    learning = learning_of(settings(), one_series(MAX_FULL_BATCH_STEPS + 1), Task())
    assert learning.settings.minibatch == 8
    assert len(learning.data.X) > 100


@pytest.mark.parametrize(
    "changes", [{"batch_size": None}, {"batch_size": 8}, {"lookback": 3}, {"targets": "last", "lookback": 3}]
)
def test_what_the_user_asks_for_is_not_cut(changes):
    data, chosen = one_series(1000), settings(**changes)
    learning = learning_of(chosen, data, chosen.task())
    assert learning.data is data
    assert learning.settings is chosen


def test_folds_of_time_cover_every_step_after_the_washout():
    data = one_series(503)
    folds = time_folds(data, 20)
    counted = [fold.y[0][np.asarray(fold.weights[0]) > 0 if fold.weights else slice(None), 0] for fold in folds]
    np.testing.assert_array_equal(np.concatenate(counted), data.y[0][20:, 0])


def test_the_ridge_of_folds_is_that_of_explicit_refits():
    data, view = one_series(300, noise=0.3), ReadoutView(30)
    reservoir = Reservoir.random(1, 40, random_state=0, leak=0.9, input_scaling=1.0, bias_scaling=1.0)
    path = 10.0 ** np.arange(-6, 3)
    chosen = ridge_by_folds(reservoir, data, view, lambda diagonal: path)
    H_c = np.hstack([harvest(reservoir, data.X[0]), data.X[0], np.ones((300, 1))])[30:]
    T, errors = data.y[0][30:], np.zeros(len(path))
    edges = [270 * k // 5 for k in range(6)]
    for first, stop in pairwise(edges):
        rest = np.r_[0:first, stop:270]
        for k, mu in enumerate(path):
            penalty = mu * np.eye(42)
            penalty[-1, -1] = 0
            U = np.linalg.solve(H_c[rest].T @ H_c[rest] + penalty, H_c[rest].T @ T[rest])
            errors[k] += ((H_c[first:stop] @ U - T[first:stop]) ** 2).sum()
    assert chosen == path[errors.argmin()]
    assert errors.argmin() not in (0, len(path) - 1)  # a choice, not an edge


def test_given_ridges_and_many_sequences_are_left_alone():
    data, reservoir = one_series(300), Reservoir.random(1, 10, random_state=0)
    assert ridge_by_folds(reservoir, data, ReadoutView(), 0.5) == 0.5
    many = replace(data, X=data.X * 5, y=data.y * 5)

    def choice(diagonal):
        return [1.0]

    assert ridge_by_folds(reservoir, many, ReadoutView(), choice) is choice


def test_learning_pays_only_if_the_gain_is_larger_than_chance():
    data, view = one_series(600, noise=0.3), ReadoutView()

    def network(units, seed):
        reservoir = Reservoir.random(1, units, random_state=seed, input_scaling=1.0, bias_scaling=1.0)
        s = collect(reservoir, one_series(3000, seed=1, noise=0.3), view)
        return Network(reservoir, Readout(solve(s, 1e-3, intercept=True), False, 1e-3), view)

    good, as_good, poor = network(40, 0), network(40, 1), network(1, 0)
    assert learning_paid(poor, good, data, squared_error)
    assert not learning_paid(good, poor, data, squared_error)
    assert not learning_paid(good, as_good, data, squared_error) or not learning_paid(
        as_good, good, data, squared_error
    )
    assert not learning_paid(good, good, data, squared_error)


def test_learned_weights_that_do_not_pay_are_discarded_with_a_word():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 1)), rng.normal(size=400)  # nothing to learn
    with pytest.warns(TrainingWarning, match="are discarded: only the readout is fitted"):
        esn = ESNRegressor(20).fit(X, y)
    drawn = ESNRegressor(20, learn="none").fit(X, y)
    np.testing.assert_array_equal(esn.input_weights_, drawn.input_weights_)
    assert len(esn.history_) >= 8


def test_learned_weights_that_pay_are_kept():
    u, y = narma(900, random_state=0)
    X, y = np.reshape(u, (-1, 1)), np.ravel(y)
    drawn = ESNRegressor(40, learn="none").fit(X[:700], y[:700])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learned = ESNRegressor(40).fit(X[:700], y[:700])
    assert 1 - learned.score(X[700:], y[700:]) < 0.7 * (1 - drawn.score(X[700:], y[700:]))


def test_one_series_as_it_comes_is_predicted_nearly_without_error():
    x = mackey_glass(1510)
    X, y = x[:1500], x[10:1510, 0]
    esn = ESNRegressor(100, learn="none").fit(X[:1000], y[:1000])
    assert esn.score(X[1000:], y[1000:]) > 0.999


@pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorScoreWarning")
def test_one_long_labelled_series_is_learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 1))
    y = (X[:, 0] * np.roll(X[:, 0], 1) > 0).astype(int)
    with pytest.warns(PoorFitWarning, match="(no|hardly) better than always answering"):
        drawn = ESNClassifier(30, learn="none").fit(X[:700], y[:700])
    learned = ESNClassifier(30).fit(X[:700], y[:700])
    assert learned.score(X[700:], y[700:]) > drawn.score(X[700:], y[700:]) + 0.1
