"""The parameters of an estimator as one typed value, and what follows from them."""

import numpy as np
import pytest

from echolearn import ESNClassifier, ESNForecaster, ESNRegressor
from echolearn.estimators import settings as module
from echolearn.estimators.settings import NetworkSettings
from echolearn.sequences.dataset import Dataset
from echolearn.training.cost_model import Job


def settings_of(kind=ESNClassifier, /, **params):
    return NetworkSettings.of(kind(**params).get_params(deep=False))


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({"hidden_units": 300}, 1),
        ({"hidden_units": 1000}, 1),
        ({"hidden_units": 1000, "ensemble": 4, "learn": "none"}, 4),
        ({"hidden_units": 1000, "ensemble": 4, "epochs": 0}, 4),
        ({"hidden_units": 1000, "ensemble": 4, "pooling": "summary"}, 1),
        ({"hidden_units": 2, "ensemble": 5}, 2),
        ({"hidden_units": 1000, "ensemble": 4}, 4),
        ({"hidden_units": 1000, "topology": "ring"}, 1),
        ({"hidden_units": 1000, "topology": "ring", "ensemble": 2}, 2),
        ({"hidden_units": 5, "ensemble": 5, "bidirectional": True}, 2),
    ],
)
def test_how_many_networks_share_the_units(settings, count):
    assert settings_of(**settings).networks() == count


def test_only_a_classifier_is_split():
    for kind in (ESNRegressor, ESNForecaster):
        assert settings_of(kind, hidden_units=1000).networks() == 1


@pytest.mark.parametrize(
    ("settings", "sequences", "epochs"),
    [
        ({"epochs": 3}, 100, 3),
        ({"epochs": 0}, 100, 0),
        ({}, 8, 400),
        ({}, 9, 200),
        ({}, 1000, 8),
        ({"batch_size": None}, 1000, 400),
    ],
)
def test_epochs_are_given_or_enough_for_four_hundred_updates(settings, sequences, epochs):
    assert settings_of(**settings).epochs_for(sequences) == epochs


def test_patience_is_given_or_a_quarter_of_the_epochs():
    assert settings_of(patience=3).patience_for(100) == 3
    assert settings_of(patience=None).patience_for(100) is None
    assert settings_of(patience="auto").patience_for(100) == 25
    assert settings_of(patience="auto").patience_for(8) == 5


@pytest.mark.parametrize(
    ("settings", "per_step", "refines"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"readout": "ridge"}, True, False),
        ({"refine_epochs": 0}, True, False),
        ({"learn": "none"}, True, False),
        ({"epochs": 0}, True, False),
        ({"gradient": "printed", "leak": 1.0, "learn_leak": False}, True, False),
    ],
)
def test_when_the_last_epochs_are_on_the_cross_entropy(settings, per_step, refines):
    assert settings_of(**settings).refines(per_step) is refines


def test_a_ridge_is_a_number_or_a_choice():
    assert settings_of(ridge=np.float32(0.5)).ridge_choice() == 0.5
    given = settings_of(ridge=[0.1, 1.0]).ridge_choice()
    np.testing.assert_array_equal(given(7.0), [0.1, 1.0])
    path = settings_of().ridge_choice()
    np.testing.assert_allclose(path(10.0), 10 * path(1.0))
    own = NetworkSettings.of(ESNForecaster().get_params(deep=False), ridge_path=(0.5, 2.0))
    np.testing.assert_array_equal(own.ridge_choice()(3.0), [1.5, 6.0])


def test_one_target_per_sequence_excludes_some_settings():
    settings_of(feedback=True).check_targets(per_step=True)
    with pytest.raises(ValueError, match="feedback=True needs one target per step"):
        settings_of(feedback=True).check_targets(per_step=False)
    with pytest.raises(ValueError, match="targets='last' needs one target per step"):
        settings_of(targets="last", lookback=3).check_targets(per_step=False)


def test_pooling_is_for_one_target_per_sequence():
    settings = settings_of(pooling=3, washout=2, direct=False, lookback=4)
    assert settings.task(per_step=True).pooling is None
    task = settings.task(per_step=False)
    assert (task.pooling, task.washout, task.direct, task.lookback) == (3, 2, False, 4)


def test_parameters_that_an_estimator_lacks_are_at_their_defaults():
    settings = settings_of(ESNForecaster)
    assert (settings.readout, settings.feedback, settings.topology, settings.ensemble) == ("ridge", False, "random", 1)
    assert settings.hidden_units == 100


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="leak=3; expected"):
        settings_of(leak=3)


def test_the_job_of_a_fit_by_hand(monkeypatch):
    """What the estimate of the cost is given: sequences of 4, 6 and 8 steps, 2 of them in a mini-batch."""
    monkeypatch.setattr(module, "thread_count", lambda: 3)
    X = [np.zeros((n, 2)) for n in (4, 6, 8)]
    train = Dataset(X, [np.zeros(len(x), int) for x in X], 5, True, np.dtype("float32"))
    held_out = Dataset(X[:1], [np.zeros(4, int)], 5, True, np.dtype("float32"))
    usual = {"hidden_units": 20, "connections": 7, "epochs": 9, "batch_size": 2, "readout": "ridge", "ridge": 0.1}
    job = settings_of(**usual).job(train, held_out, 4)
    assert job == Job(
        N=20,
        n_in=2,
        n_out=5,
        connections=7,
        frames=18,
        held_out=4,
        longest=8,
        epochs=9,
        batch=12,
        softmax=False,
        choose=False,
        direct=True,
        parts=1,
        itemsize=4,
        threads=3,
        networks=4,
        bidirectional=False,
    )

    def changed(sequences=train, **changes):
        return settings_of(**{**usual, **changes}).job(sequences, None, 1)

    assert changed().held_out == 0
    assert changed(hidden_units=5).connections == 5
    assert changed(learn="none").epochs == 0
    assert changed(batch_size=None).batch is None
    assert changed(batch_size=9).batch == 18
    assert changed(readout="softmax").softmax
    assert changed(ridge=[0.1, 1.0]).choose
    assert not changed(direct=False).direct
    assert changed(dtype="float64").itemsize == 8
    assert changed(bidirectional=True).bidirectional
    one_each = Dataset(X, np.zeros(3, int), 5, False, np.dtype("float32"))
    assert changed(one_each, pooling=3).parts == 3
