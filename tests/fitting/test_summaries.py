"""One target per sequence, as the estimators come: which units are chosen, files, threads, many sequences, refusals."""

import logging

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import reference as ref
import toys
from echolearn import ESNClassifier, ESNRegressor, load
from echolearn.fitting import summaries
from echolearn.fitting.parameters import flat_settings
from echolearn.readout import network as networks
from echolearn.readout.ridge import Columns
from threadpools import thread_pool
from toys import grouped


def sines(count, seed):
    """Return noisy sines of three frequencies, with random phases, and their classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(count) % 3
    t = np.arange(60)
    phases = rng.uniform(0, 2 * np.pi, count)
    noise = 0.3 * rng.standard_normal((count, 60))
    X = np.sin(2 * np.pi * np.array([0.05, 0.06, 0.07])[y][:, None] * t + phases[:, None]) + noise
    return [x[:, None] for x in X], np.array(["slow", "middle", "fast"])[y]


def levels(count, seed):
    """Return noise about a level that is the class, of any length."""
    rng = np.random.default_rng(seed)
    y = np.arange(count) % 2
    return [rng.standard_normal((rng.integers(20, 40), 2)) + np.array([0.8 * k, 0]) for k in y], y


SINES, RHYTHMS = sines(60, 0)
NOISE, LEVELS = levels(40, 0)
SMALL = {"hidden_units": 40}


def chosen(esn, capsys):
    """Return the kind of units that a fit names as chosen."""
    return capsys.readouterr().err.rsplit("chosen: ", 1)[1].split()[0]


def test_sines_of_random_phase_are_told_apart():
    X, y = sines(90, 1)
    assert ESNClassifier().fit(SINES, RHYTHMS).score(X, y) >= 0.95


def test_units_are_chosen_by_the_errors_of_sequences_left_out(capsys):
    """Rhythms need detectors of changes, levels need those of levels; the other choice is much worse."""
    ESNClassifier(verbose=1, **grouped(SMALL)).fit(SINES, RHYTHMS)
    assert chosen(None, capsys) == "changes"
    esn = ESNClassifier(verbose=1, **grouped(SMALL)).fit(NOISE, LEVELS)
    assert chosen(esn, capsys) == "levels"
    assert esn.score(*levels(200, 1)) > 0.9


@pytest.mark.parametrize("kind", ["levels", "changes"])
def test_the_other_choice_is_worse(kind, monkeypatch):
    X, y, train = (*sines(90, 1), (SINES, RHYTHMS)) if kind == "levels" else (*levels(200, 1), (NOISE, LEVELS))
    own = ESNClassifier(**grouped(SMALL)).fit(*train).score(X, y)
    draw = summaries.draw_units
    monkeypatch.setattr(summaries, "draw_units", lambda *a: {kind: draw(*a)[kind]})
    assert ESNClassifier(**grouped(SMALL)).fit(*train).score(X, y) < own - 0.1


def test_probabilities_are_calibrated_and_agree_with_answers():
    X, y = levels(400, 2)
    esn = ESNClassifier(**grouped(SMALL)).fit(NOISE, LEVELS)
    P = esn.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(esn.classes_[P.argmax(axis=1)], esn.predict(X))
    assert abs(P.max(axis=1).mean() - esn.score(X, y)) < 0.1
    assert esn.decision_function(X).shape == (400,)
    values = ESNClassifier(readout="ridge", **grouped(SMALL)).fit(NOISE, LEVELS)
    np.testing.assert_array_equal(values.predict(X), esn.predict(X))
    assert np.abs(values.predict_proba(X).sum(axis=1) - 1).max() < 1e-12


def test_values_of_sequences():
    rng = np.random.default_rng(0)
    spread = rng.uniform(0.5, 2.0, 120)
    X = [s * rng.standard_normal((60, 1)) for s in spread]
    esn = ESNRegressor().fit(X[:80], spread[:80])
    assert esn.score(X[80:], spread[80:]) > 0.8
    pair = ESNRegressor(**grouped(SMALL)).fit(X, np.column_stack([spread, -spread])).predict(X)
    np.testing.assert_allclose(pair[:, 0], -pair[:, 1], atol=1e-4)


@pytest.mark.parametrize(("X", "y"), [(SINES, RHYTHMS), (NOISE, LEVELS)], ids=["changes", "levels"])
def test_a_file_gives_the_same_bits(X, y, tmp_path):
    esn = ESNClassifier(washout=2, **grouped(SMALL)).fit(X, y)
    esn.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X), esn.predict_proba(X))
    assert again.get_params() == esn.get_params()


def test_values_from_a_file(tmp_path):
    esn = ESNRegressor(**grouped(SMALL)).fit(NOISE, LEVELS.astype(float))
    esn.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "model.safetensors").predict(NOISE), esn.predict(NOISE))


def test_threads_and_repetition_change_no_bit():
    with thread_pool(1):
        one = ESNClassifier(**grouped(SMALL)).fit(SINES, RHYTHMS).decision_function(SINES)
    with thread_pool(3):
        three = ESNClassifier(**grouped(SMALL)).fit(SINES, RHYTHMS).decision_function(SINES)
    np.testing.assert_array_equal(one, three)


def test_groups_of_a_prediction_do_not_matter(monkeypatch):
    esn = ESNClassifier(dtype="float64", **grouped(SMALL)).fit(NOISE, LEVELS)
    together = esn.decision_function(NOISE)
    monkeypatch.setattr(networks, "frames_at_once", lambda N: 50)
    np.testing.assert_allclose(esn.decision_function(NOISE), together, atol=1e-6)


def test_many_sequences_are_solved_from_sums(monkeypatch):
    """The solution from sums over groups is the one that the dual form has, whichever sequences chose."""
    settings = {"hidden_units": 20, "readout": "ridge", "dtype": "float64", "standardize": False}
    esn = ESNClassifier(ridge=1000.0, **grouped(settings)).fit(NOISE, LEVELS)
    rows = esn.network_.view.summary.rows(esn.reservoir_, NOISE, 0, np.float64)
    w = np.ones(len(rows))
    columns = Columns.of(rows, w)
    Z = columns.standardize(rows)
    V, b = ref.ridge_fit(Z, np.eye(2)[LEVELS], w, 1000.0)
    np.testing.assert_allclose(rows @ esn.readout_weights_ + esn.intercept_, Z @ V + b, atol=1e-6)
    monkeypatch.setattr(summaries, "MAX_CHOOSING_SEQUENCES", 39)
    many = ESNClassifier(ridge=1000.0, **grouped(settings)).fit(NOISE, LEVELS)
    rows = many.network_.view.summary.rows(many.reservoir_, NOISE, 0, np.float64)
    Z = Columns.of(rows, w).standardize(rows)
    V, b = ref.ridge_fit(Z, np.eye(2)[LEVELS], w, 1000.0 * 40 / 39)
    np.testing.assert_allclose(rows @ many.readout_weights_ + many.intercept_, Z @ V + b, atol=1e-6)


def test_scikit_learn_takes_it():
    assert cross_val_score(clone(ESNClassifier(**grouped(SMALL))), NOISE, LEVELS, cv=3).mean() > 0.8


@pytest.mark.parametrize("units", [1, 2, 3, 7])
def test_few_units(units):
    esn = ESNClassifier(units).fit(NOISE, LEVELS)
    assert esn.network_.reservoir.W.shape[1] == 2 * units
    assert esn.score(NOISE, LEVELS) > 0.5


def test_short_sequences():
    X = [np.full((1 + i % 2, 1), float(i % 2)) for i in range(12)]
    assert ESNClassifier(**grouped(SMALL)).fit(X, np.arange(12) % 2).score(X, np.arange(12) % 2) == 1


@pytest.mark.parametrize("given", [{"epochs": 2}, {"leak": 0.5}, {"bidirectional": True}, {"topology": "ring"}])
def test_other_parameters_make_auto_the_mean(given):
    esn = ESNClassifier(20, **grouped({"learn": "none", **given})).fit(NOISE, LEVELS)
    assert esn.network_.view.pooling == "mean"
    with pytest.raises(ValueError, match=f"learns only the readout: {next(iter(given))}="):
        ESNClassifier(20, pooling="summary", **grouped(given)).fit(NOISE, LEVELS)


def test_arguments_of_a_fit_make_auto_the_mean(tmp_path):
    short = {"hidden_units": 10, "epochs": 1}
    for given in ({"validation": (NOISE, LEVELS)}, {"callback": logging.debug}, {"checkpoint": tmp_path / "kept"}):
        assert ESNClassifier(**grouped(short)).fit(NOISE, LEVELS, **given).network_.view.pooling == "mean"
        with pytest.raises(ValueError, match="fitted in one go"):
            ESNClassifier(10, pooling="summary").fit(NOISE, LEVELS, **given)


def test_agreeing_parameters_leave_the_summary():
    esn = ESNClassifier(20, learn="none", validation_fraction=0.0).fit(NOISE, LEVELS)
    assert esn.network_.view.pooling == "summary"
    np.testing.assert_array_equal(
        esn.predict_proba(NOISE), ESNClassifier(20, pooling="summary").fit(NOISE, LEVELS).predict_proba(NOISE)
    )


def test_sequences_that_will_be_added_to_are_averaged():
    esn = ESNRegressor(10, learn="none").partial_fit(NOISE[:20], LEVELS[:20]).partial_fit(NOISE[20:], LEVELS[20:])
    assert esn.network_.view.pooling == "mean"
    with pytest.raises(ValueError, match="pooling='mean'"):
        ESNRegressor(10).fit(NOISE, LEVELS).partial_fit(NOISE, LEVELS)


def test_streams_refuse_summaries():
    with pytest.raises(ValueError, match="'summary' needs the end of a sequence"):
        ESNClassifier(**grouped(SMALL)).fit(NOISE, LEVELS).stream()


def test_labels_of_steps_are_as_before():
    X, y = toys.labels(sequences=6)
    a, b = (ESNClassifier(pooling=pooling, **grouped(toys.FAST)).fit(X, y) for pooling in ("auto", "mean"))
    np.testing.assert_array_equal(a.readout_weights_, b.readout_weights_)


def test_a_cluster_averages():
    """The rule alone; tests/cluster has fits on clusters."""
    settings = summaries.NetworkSettings.of(flat_settings(ESNClassifier()))
    known = ESNClassifier().get_params()
    settle = summaries.settle_pooling
    assert settle(settings, known, known, asks_for_more=True).pooling == "mean"
    assert settle(settings, known, known, asks_for_more=False).pooling == "summary"


def test_states_are_those_that_are_summarized():
    esn = ESNClassifier(dtype="float64", **grouped(SMALL)).fit(SINES, RHYTHMS)
    summary, states = esn.network_.view.summary, esn.states(SINES)
    assert len(summary.delays) > 1
    assert states[0].shape == (60, 80)
    row = ref.summarize(states[0], summary.thresholds)  # of detectors of changes, which all run forward
    outputs = row @ esn.readout_weights_ + esn.intercept_
    np.testing.assert_allclose(outputs, esn.decision_function(SINES[:1])[0], atol=1e-6)


def test_weights_of_sequences_count():
    """Labels that are wrong in half of the sequences do no harm where these weigh nothing."""
    wrong = np.r_[LEVELS[:20], 1 - LEVELS[20:]]
    esn = ESNClassifier(**grouped(SMALL)).fit(NOISE, wrong, sample_weight=np.r_[np.ones(20), np.zeros(20)])
    assert esn.score(*levels(200, 1)) > 0.85
    light = ESNClassifier(**grouped(SMALL)).fit(NOISE, wrong, sample_weight=np.r_[np.ones(20), np.full(20, 1e-3)])
    assert light.score(*levels(200, 1)) > 0.85
