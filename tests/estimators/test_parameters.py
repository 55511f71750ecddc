"""Every word an estimator understands, and a clear no to every other."""

import inspect

import numpy as np
import pytest

import toys
from echolearn import ESNClassifier, ESNForecaster, ESNRegressor
from echolearn.estimators.parameters import RULES, check

X, VALUES = toys.echoes(sequences=6)
BAD = {
    "hidden_units": [0, -3, 2.5, "many", None, True],
    "reservoir": [3, "random", np.eye(3)],
    "ensemble": [0, -1, 2.5, "some", None],
    "spectral_radius": [0, -0.9, np.nan, np.inf, "0.9", None],
    "connections": [0, 1.5],
    "topology": ["star", None, 3, np.ones((2, 3)), [[1.0]], np.array([["a"]])],
    "bidirectional": [1, "both", None],
    "standardize": [1, "yes", None],
    "state_noise": [-1e-3, "some", np.nan],
    "missing": ["fill", None, 0],
    "input_scaling": [0, -1, 1.7e308, [1e200], [], [0.0, 0.0], [1.0, -1.0], [[1.0, 1.0]], None],
    "bias_scaling": [-0.1],
    "feedback_scaling": [0],
    "activation": ["softplus", None, 3],
    "leak": [
        0,
        -0.1,
        1.5,
        (0.5, 0.1),
        (0, 1),
        (0.1, 0.2, 0.3),
        [0.1, 0.9],
        np.nan,
        np.zeros(2),
        np.full(2, 1.5),
        np.array([]),
    ],
    "learn_leak": ["yes", 1],
    "plasticity": [0, -0.2, 1e-300, 1e300, np.nan, True],
    "feedback": [None, "no"],
    "washout": [-1, 0.5, None],
    "direct": [2],
    "fit_intercept": [0, None, "yes"],
    "pooling": ["max", None],
    "loop_steps": [0, 1.5, "many"],
    "method": ["loop", 1, None],
    "horizon": [0, 2.5, "far"],
    "season": [0, 1.5, "yes"],
    "trend": ["yes", 1.5, None],
    "log": ["yes", 1.5, None],
    "noise": [-0.1, np.nan, "some"],
    "solver": ["svd", None, 1],
    "ridge": [-1e-3, "gcv", [], [0.1, -1], [0.0, 1.0], np.nan, np.inf, None, ["a"]],
    "readout": ["lda", None],
    "learn": ["all", True],
    "lookback": [0, -1, 1.5, "m"],
    "targets": ["first"],
    "gradient": ["exat", None],
    "case": [0, 3, "2"],
    "optimizer": ["sgd"],
    "momentum": [0.9, "nesterov"],
    "step_size": [0, -0.1, np.nan],
    "epochs": [-1, 2.5],
    "refine_epochs": [-1, 0.5, None],
    "batch_size": [0, 1.5],
    "clip": [0, -1],
    "renormalize": [None],
    "validation_fraction": [1, -0.1, 1.5, None],
    "patience": [0, 2.5, "some"],
    "class_weight": [np.empty((0, 3)), "even", 2.0, {"a": -1.0}, {"a": "b"}, {}, {"a": 0.0}],
    "ignore_label": [[0], ("a",), {"a": 1}],
    "layout": ["channels", None, 1],
    "dtype": ["float16", np.float32, None],
    "random_state": ["seed", -1, 1.5],
    "verbose": ["loud", -1, None],
}

OF_REGRESSORS = {"state_noise"}
OF_CLASSIFIERS = {"readout", "ensemble", "refine_epochs", "class_weight", "ignore_label"}
OF_FORECASTERS = {"loop_steps", "noise", "solver", "method", "horizon", "season", "trend", "log"}
OF_STACKS = {"sees", "joint_epochs"}  # see test_stacked


def settings_of(kind):
    return set(inspect.signature(kind.__init__).parameters) - {"self"}


def test_every_setting_is_tried():
    known = settings_of(ESNClassifier) | OF_FORECASTERS | OF_REGRESSORS
    assert set(BAD) == known - {"initial_state"}
    assert set(RULES) <= known | OF_STACKS
    assert settings_of(ESNRegressor) == settings_of(ESNClassifier) - OF_CLASSIFIERS | OF_REGRESSORS
    assert settings_of(ESNForecaster) <= settings_of(ESNRegressor) | OF_FORECASTERS


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_bad_settings_are_named_with_what_was_expected(name, value):
    kind = ESNClassifier if name in OF_CLASSIFIERS else ESNForecaster if name in OF_FORECASTERS else ESNRegressor
    y = [v[:, 0] > 0 for v in VALUES] if name in OF_CLASSIFIERS else VALUES
    with pytest.raises(ValueError, match=rf"{name}=.*; expected "):
        kind(**{**toys.FAST, name: value}).fit(X, y)


GOOD = {
    "ridge": [0, 1, 0.5, [1.0], (1.0, 2.0), np.array([1.0]), np.float32(1), "auto"],
    "leak": [1, 1.0, (0.1, 0.9), (1, 1), np.float64(0.5)],
    "hidden_units": [1, np.int32(5)],
    "case": [1, 2],
    "epochs": [0, None, 3],
    "batch_size": [None, 1],
    "validation_fraction": [0, 0.5],
    "direct": [True, np.bool_(False)],
    "lookback": [None, 1, 1000],
    "patience": [None, 1, "auto"],
    "random_state": [None, 0, np.int64(3), np.random.default_rng(0)],
    "verbose": [0, 1, 2, True, False],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in GOOD.items() for value in values])
def test_good_settings_pass(name, value):
    check({name: value})


def test_the_paper_formulas_know_no_leak_and_no_feedback():
    good = {"gradient": "printed", "learn": "both", "leak": 1.0, "learn_leak": False, "feedback": False}
    check(good)
    check({**good, "leak": 0.5, "learn": "none"})
    for change in ({"leak": 0.5}, {"leak": (0.1, 0.9)}, {"learn_leak": True}, {"feedback": True}):
        with pytest.raises(ValueError, match=r"gradient='printed'.*Set leak=1.*or gradient='exact'"):
            check({**good, **change})


def test_unknown_words_are_refused_by_python():
    with pytest.raises(TypeError, match="hiden_units"):
        ESNClassifier(hiden_units=3)


def test_initial_state_of_the_wrong_length():
    with pytest.raises(ValueError, match=r"initial_state has shape \(3,\); expected 15 finite numbers"):
        ESNRegressor(**toys.FAST, initial_state=np.zeros(3)).fit(X, VALUES)


@pytest.mark.parametrize("value", [np.random.default_rng(3), None, np.int64(3)])
def test_kinds_of_random_state(value):
    assert ESNRegressor(**toys.FAST, random_state=value).fit(X, VALUES).score(X, VALUES) <= 1
