"""Odd arguments that reliability/inputs.py found: each is refused with a message that explains it."""

import warnings
from fractions import Fraction

import numpy as np
import pytest

import toys
from echolearn import ESNClassifier, ESNForecaster, ESNRegressor, Reservoir, datasets, diagnostics, load
from echolearn.cli.configuration import assignments, read
from echolearn.gradients import loss_and_gradients
from echolearn.metrics import scorer
from echolearn.readout import LMS, RLS
from echolearn.states import harvest
from echolearn.streams import Stream
from echolearn.tuning import tune
from toys import grouped

X, LABELS = toys.labels(sequences=6)
VALUES = toys.echoes(sequences=6)[1]
SMALL = {**toys.FAST, "hidden_units": 4, "connections": 2, "epochs": 1}
RESERVOIR = Reservoir.random(2, 4, connections=2, random_state=0)
U = np.zeros((7, 1))
MASKED = np.ma.masked_array(X[0], X[0] > 1)
RAGGED = [[1, 2], [3]]


def classifier(**settings):
    return ESNClassifier(**grouped({**SMALL, **settings}))


def regressor(**settings):
    return ESNRegressor(**grouped({**SMALL, **settings}))


ODD = {
    "masked frames": (lambda: classifier().fit([MASKED], LABELS[:1]), "has masked entries"),
    "masked targets": (lambda: regressor().fit(X[:1], [np.ma.masked_array(VALUES[0], VALUES[0] > 1)]), "masked"),
    "ragged lengths": (lambda: classifier().fit(X[0], LABELS[0], lengths=RAGGED), "lengths must be positive whole"),
    "lengths that wrap": (
        lambda: classifier().fit(X[0], LABELS[0], lengths=[2**63 - 1, 2**63 - 1, 2 + len(X[0])]),
        "lengths must be positive whole",
    ),
    "a number as y": (lambda: classifier().fit(X[0], 3), "y is 3; expected one label or value per step"),
    "a word as y": (lambda: classifier().fit(X, "abcdef"), "expected one entry per sequence"),
    "ragged y": (lambda: classifier().fit(X[:2], [RAGGED, RAGGED]), "entries of different shapes"),
    "rows of other widths": (lambda: regressor().fit(X, [*VALUES[:5], VALUES[5][:, :1]]), "entries of shapes"),
    "validation": (lambda: classifier().fit(X, LABELS, validation=3), r"validation=3; expected a pair \(X, y\)"),
    "other labels to score": (lambda: classifier().fit(X, LABELS, validation=(X, VALUES)), "not there when fitting"),
    "checkpoint": (lambda: classifier().fit(X, LABELS, checkpoint=3), "checkpoint=3; expected the path"),
    "words to score": (lambda: regressor().fit(X, VALUES).score(X, LABELS), "expected numbers"),
    "huge targets": (lambda: regressor().fit(X, [v * 1e300 for v in VALUES]), "no room for sums"),
    "a huge series": (lambda: ESNForecaster(**grouped(SMALL_F)).fit(np.sin(np.arange(60)) * 1e300), "no room for sums"),
    "a ragged series": (lambda: ESNForecaster(**grouped(SMALL_F)).fit([RAGGED]), "series: "),
    "huge frames": (lambda: regressor().fit(X, VALUES).predict([x * 1e300 for x in X]), "outputs are not finite"),
    "huge states": (lambda: harvest(RESERVOIR, X[0] * 1e300, dtype="float32"), "states are not finite"),
    "a fraction": (lambda: regressor(step_size=Fraction(1, 2)).fit(X, VALUES), "step_size=.*expected a number > 0"),
    "a count too large": (lambda: regressor(lookback=2**63).fit(X, VALUES), "lookback=.*expected a whole number"),
    "a large number": (lambda: regressor(ridge=10**400).fit(X, VALUES), "ridge=.*expected a number >= 0"),
    "ridges in rows": (lambda: regressor(ridge=np.eye(2)).fit(X, VALUES), "ridge=an array"),
    "scales of other features": (
        lambda: regressor(input_scaling=[1.0] * 3).fit(X, VALUES),
        "input_scaling has 3 numbers",
    ),
    "a ragged state": (lambda: regressor(initial_state=RAGGED).fit(X, VALUES), "initial_state=.*one per unit"),
    "a short state": (
        lambda: classifier(initial_state=[0.1]).fit(X, LABELS),
        r"initial_state has shape \(1,\); expected 4",
    ),
    "values far from those fitted": (
        lambda: regressor().fit(X, VALUES).partial_fit(X, [v * 1e300 for v in VALUES]),
        "y holds values .* standard deviations from those fitted",
    ),
    "a series of a huge whole number": (lambda: ESNForecaster(5).fit(10**400), "is not an array of shape"),
    "a seed": (lambda: Reservoir.random(2, 4, random_state="a"), "random_state='a'; expected a whole number"),
    "inputs": (lambda: Reservoir.random(2.5, 4), "n_in=2.5; expected a whole number"),
    "words as W": (lambda: Reservoir(W=[["a"]], W_rec=[[1.0]]), "W is .*; expected finite numbers"),
    "complex W": (lambda: Reservoir(W=np.ones((1, 1), complex), W_rec=[[1.0]]), "W is .*; expected finite numbers"),
    "complex W_rec": (lambda: Reservoir(W=[[1.0]], W_rec=[[1j]]), "W_rec is .*; expected finite numbers"),
    "a list as activation": (lambda: Reservoir(W=[[1.0]], W_rec=[[1.0]], activation=[]), r"activation=\[\] is unknown"),
    "words as T": (lambda: loss_and_gradients(RESERVOIR, X, LABELS, ridge=1.0), "T is .*; expected finite numbers"),
    "a number as T": (lambda: loss_and_gradients(RESERVOIR, X, 3, ridge=1.0), "T is 3; expected targets"),
    "words as ridge": (lambda: loss_and_gradients(RESERVOIR, X, VALUES, ridge="a"), "ridge='a'; expected a number"),
    "dtype": (lambda: harvest(RESERVOIR, X, dtype="int64"), "dtype='int64'; expected 'float32' or 'float64'"),
    "a stream's U": (lambda: Stream(RESERVOIR, "a"), "U is 'a'; expected finite numbers"),
    "a stream's dtype": (lambda: Stream(RESERVOIR, U, dtype="a"), "dtype='a'; expected 'float32'"),
    "a stream's washout": (lambda: Stream(RESERVOIR, U, washout=-1), "washout=-1; expected a whole number >= 0"),
    "a stream's state": (lambda: Stream(RESERVOIR, U).reset("a"), "state is 'a'; expected finite numbers"),
    "a ragged frame": (lambda: Stream(RESERVOIR, U).predict(RAGGED), "a frame holds 2 numbers here"),
    "labels to learn": (lambda: classifier().fit(X, LABELS).stream(online=LMS()).learn(X[0][0], {}), "not there when"),
    "rate": (lambda: LMS("a"), "rate='a'; expected a number"),
    "forgetting": (lambda: RLS(forgetting=1j), "forgetting=1j; expected a number"),
    "sigma": (lambda: datasets.lorenz(3, sigma="a"), "sigma='a'; expected a finite number"),
    "tau": (lambda: datasets.mackey_glass(3, 1e300), "steps of the solver"),
    "beta": (lambda: datasets.mackey_glass(3, beta=1e308, power=0.0), "diverged after"),
    "a dataset's seed": (lambda: datasets.narma(3, random_state=-1), "random_state=-1; expected a whole number"),
    "order": (lambda: datasets.narma(3, order=[]), r"order=\[\]; expected one of"),
    "amplitude": (lambda: diagnostics.ranks(RESERVOIR, amplitude="a"), "amplitude='a'; expected a number > 0"),
    "delays": (lambda: diagnostics.memory_capacity(RESERVOIR, delays=2.5), "delays=2.5; expected a whole number"),
    "scorer": (lambda: scorer(None), "there is no setting None"),
    "tuning nothing": (lambda: tune(3, X, LABELS), "estimator=3; expected a network"),
    "trials": (lambda: tune(classifier(), X, LABELS, trials="a"), "trials='a'; expected a whole number"),
    "space": (lambda: tune(classifier(), X, LABELS, space=3), "space=3; expected ranges"),
    "scoring": (lambda: tune(classifier(), X, LABELS, scoring=3), "scoring=3; expected a function"),
    "storage": (lambda: tune(classifier(), X, LABELS, storage=3), "storage=3; expected the path"),
    "a path to load": (lambda: load(3), "path=3; expected the path"),
    "classes of no order": (
        lambda: classifier(readout="ridge").partial_fit(X, LABELS, [None, None]),
        r"classes=\[None, None\]; expected labels of one type",
    ),
    "a path of no letters": (lambda: load("a\ud800"), r"path='a\\ud800'; expected the path"),
    "a ridge of nothing": (lambda: RLS(ridge=5e-324), "ridge=5e-324; expected a number > 1e-300"),
    "a path to save": (lambda: regressor().fit(X, VALUES).save(None), "path=None; expected the path"),
    "sums": (lambda: regressor().fit(X, VALUES).save("x", sums="a"), "sums='a'; expected True or False"),
}
SMALL_F = {"hidden_units": 4, "connections": 2, "epochs": 1, "washout": 2}


@pytest.mark.parametrize("name", ODD)
def test_odd_arguments_are_refused_in_words(name):
    call, words = ODD[name]
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_numpy_truth_values_are_truth_values():
    plain, odd = (classifier(direct=d).fit(X, LABELS) for d in (True, np.True_))
    np.testing.assert_array_equal(plain.network_.readout.U, odd.network_.readout.U)


def test_small_whole_numbers_do_not_wrap():
    """hidden_units * connections is more than a byte holds."""
    plain, odd = (Reservoir.random(2, n(40), connections=n(10), random_state=0) for n in (int, np.uint8))
    np.testing.assert_array_equal(plain.W_rec.data, odd.W_rec.data)
    scales = ({"bias_scaling": n(2), "feedback_scaling": n(2), "n_feedback": 1} for n in (int, np.uint8))
    plain, odd = (Reservoir.random(2, 4, random_state=0, **scale) for scale in scales)
    np.testing.assert_array_equal(plain.bias, odd.bias)
    np.testing.assert_array_equal(plain.W_fb, odd.W_fb)
    plain, odd = (diagnostics.memory_capacity(RESERVOIR, delays=2, amplitude=n(2)) for n in (int, np.uint8))
    np.testing.assert_array_equal(plain.by_delay, odd.by_delay)


def test_a_matrix_is_an_array():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        matrices = [np.asmatrix(x) for x in X]
    esn = regressor().fit(X, VALUES)
    for a, b in zip(esn.predict(X), esn.predict(matrices), strict=True):
        np.testing.assert_array_equal(a, b)


def test_streams_tell_of_outputs_that_are_not_finite():
    stream = Stream(RESERVOIR, np.full((7, 1), 1e10))
    with pytest.raises(FloatingPointError, match=r"outputs are not finite.*reset\(\) the stream"):
        stream.predict(X[0] * 1e300)
    assert np.isfinite(stream.reset().predict(X[0])).all()


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "9" * 5000, "\xff\xfe"])
def test_settings_files_that_no_parser_takes(text, tmp_path):
    (tmp_path / "s.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"s.toml is not a TOML file"):
        read(tmp_path / "s.toml")
    with pytest.raises(ValueError, match=r"^--set ridge=\[{60}: the value is not TOML"):
        assignments([f"ridge={'[' * 5000}"])
