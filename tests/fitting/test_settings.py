"""Every word an estimator understands, and a clear no to every other."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone

import toys
from echolearn import (
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    Reservoir,
    SeriesClassifier,
    SeriesRegressor,
    load,
)
from echolearn.exceptions import ModelFileError
from echolearn.fitting import settings as module
from echolearn.fitting.parameters import flat_settings
from echolearn.fitting.settings import RULES, NetworkSettings, check
from echolearn.reservoir._reservoir import bidirectional_reservoir
from echolearn.reservoir._spectrum import spectral_radius_of
from echolearn.sequences.dataset import Dataset
from echolearn.states import harvest
from echolearn.training.cost_model import Job
from toys import grouped

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
    "feedback": [None, "no"],
    "washout": [-1, 0.5, None],
    "direct": [2],
    "fit_intercept": [0, None, "yes"],
    "loop_steps": [0, 1.5, "many"],
    "method": ["loop", 1, None],
    "horizon": [0, 2.5, "far"],
    "season": [0, 1.5, "yes"],
    "trend": ["yes", 1.5, None],
    "log": ["yes", 1.5, None],
    "input_noise": [-0.1, np.nan, "some"],
    "neighbourhood": [-1, 2.5, (0, 1), (1, 2, 3), "near"],
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
OF_FORECASTERS = {"loop_steps", "input_noise", "neighbourhood", "solver", "method", "horizon", "season", "trend", "log"}


def settings_of(kind):
    return set(inspect.signature(kind.__init__).parameters) - {"self"}


def test_every_setting_is_tried():
    inside = {name for kind in (ESNClassifier, ESNForecaster) for group in kind.groups.values() for name in group}
    known = settings_of(ESNClassifier) - {"learning"} | inside | OF_FORECASTERS | OF_REGRESSORS
    assert set(BAD) == known - {"initial_state"}
    assert set(RULES) <= known
    assert settings_of(ESNRegressor) == settings_of(ESNClassifier) - OF_CLASSIFIERS | OF_REGRESSORS
    assert settings_of(ESNForecaster) <= settings_of(ESNRegressor) | OF_FORECASTERS


def test_constructors_are_short():
    """The limits of the house: what serves few users is inside of `learning` and `reservoir`."""
    assert len(settings_of(ESNClassifier)) <= 25
    assert len(settings_of(ESNRegressor)) <= 25
    assert len(settings_of(ESNForecaster)) <= 21
    assert len(settings_of(SeriesClassifier)) <= 12
    assert len(settings_of(SeriesRegressor)) <= 9


OF_SERIES = sorted(inspect.signature(SeriesClassifier).parameters)


def test_settings_of_series_are_those_of_steps():
    """One word has one meaning: an estimator of whole series has some of the settings of one of steps, and no other."""
    assert settings_of(SeriesClassifier) < settings_of(ESNClassifier)
    assert settings_of(SeriesRegressor) == settings_of(SeriesClassifier) - OF_CLASSIFIERS


@pytest.mark.parametrize(
    ("name", "value"), [*((name, value) for name in OF_SERIES for value in BAD[name]), ("washout", "auto")]
)
def test_bad_settings_of_series_are_named_with_what_was_expected(name, value):
    kinds = [SeriesClassifier] if name in OF_CLASSIFIERS else [SeriesClassifier, SeriesRegressor]
    for kind in kinds:
        with pytest.raises(ValueError, match=rf"{name}=.*; expected "):
            kind(**{"hidden_units": 3, name: value}).fit(X, [0, 1] * 3)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_bad_settings_are_named_with_what_was_expected(name, value):
    kind = ESNClassifier if name in OF_CLASSIFIERS else ESNForecaster if name in OF_FORECASTERS else ESNRegressor
    y = [v[:, 0] > 0 for v in VALUES] if name in OF_CLASSIFIERS else VALUES
    with pytest.raises(ValueError, match=rf"{name}=.*; expected "):
        kind(**grouped(toys.FAST, {name: value})).fit(X, y)


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
        ESNRegressor(**grouped(toys.FAST, initial_state=np.zeros(3))).fit(X, VALUES)


@pytest.mark.parametrize("value", [np.random.default_rng(3), None, np.int64(3)])
def test_kinds_of_random_state(value):
    assert ESNRegressor(random_state=value, **grouped(toys.FAST)).fit(X, VALUES).score(X, VALUES) <= 1


# Estimators that begin with a reservoir of the user's own.


SEQUENCES, LABELS = toys.labels(sequences=10)
TARGETS = toys.echoes(sequences=10)[1]
RNG = np.random.default_rng(3)
OWN = Reservoir(
    W=RNG.normal(size=(2, 12)),
    W_rec=0.2 * RNG.normal(size=(12, 12)) * (RNG.random((12, 12)) < 0.3),
    activation="sigmoid",
    leak=RNG.uniform(0.2, 1.0, 12),
    bias=RNG.normal(size=12),
    initial_state=RNG.normal(size=12),
)
HOW = {name: value for name, value in toys.FAST.items() if name not in ("hidden_units", "connections")}
KINDS = [ESNClassifier, ESNRegressor]


def data_of(kind):
    return (SEQUENCES, LABELS) if kind is ESNClassifier else (SEQUENCES, TARGETS)


def same_reservoir(a, b):
    assert a.activation == b.activation
    np.testing.assert_array_equal(a.W_rec.toarray(), b.W_rec.toarray())
    for name in ("W", "leak", "bias", "W_fb", "initial_state", "backward"):
        if getattr(a, name) is None:
            assert getattr(b, name) is None
        else:
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("kind", KINDS)
def test_without_learning_its_states_are_exactly_those_of_the_reservoir(kind):
    esn = kind(reservoir=OWN, learn="none", dtype="float64", standardize=False).fit(*data_of(kind))
    same_reservoir(esn.reservoir_, OWN)
    for H, x in zip(esn.states(SEQUENCES), SEQUENCES, strict=True):
        np.testing.assert_allclose(H, harvest(OWN, x), atol=1e-14)


def test_it_sees_standardised_inputs_unless_they_are_left_as_they_are():
    esn = ESNRegressor(reservoir=OWN, learn="none", dtype="float64").fit(SEQUENCES, TARGETS)
    for H, x in zip(esn.states(SEQUENCES), SEQUENCES, strict=True):
        np.testing.assert_allclose(H, harvest(OWN, (x - esn.input_mean_) / esn.input_scale_), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_its_weights_are_where_learning_begins(kind):
    esn = kind(reservoir=OWN, **grouped({**HOW, "epochs": 0})).fit(*data_of(kind))
    same_reservoir(esn.reservoir_, OWN)
    esn = kind(reservoir=OWN, **grouped(HOW, step_size=1e-3)).fit(*data_of(kind))
    for name, weight in OWN.weights().items():
        learned = esn.reservoir_.weights()[name]
        assert 0 < np.abs(learned - weight).max() < 0.1, name
    np.testing.assert_array_equal(esn.reservoir_.W_rec.indices, OWN.W_rec.indices)
    assert esn.reservoir_.activation == "sigmoid"


def test_it_is_learned_as_a_random_one_is():
    """A fit from the drawn reservoir, handed in, is the fit that draws it."""
    drawn = ESNRegressor(learn="none", **grouped(toys.FAST)).fit(SEQUENCES, TARGETS).reservoir_
    expected = ESNRegressor(**grouped(toys.FAST)).fit(SEQUENCES, TARGETS)
    found = ESNRegressor(reservoir=drawn, **grouped(HOW)).fit(SEQUENCES, TARGETS)
    same_reservoir(found.reservoir_, expected.reservoir_)
    np.testing.assert_array_equal(found.readout_weights_, expected.readout_weights_)


def with_feedback():
    return Reservoir.random(2, 8, n_feedback=2, leak=(0.2, 1.0), random_state=1)


def both_ways():
    return bidirectional_reservoir(*(Reservoir.random(2, 5, connections=3, random_state=s) for s in (0, 1)))


@pytest.mark.parametrize("make", [lambda: OWN, with_feedback, both_ways], ids=["own", "feedback", "both directions"])
@pytest.mark.parametrize("changes", [{}, {"learn": "none"}], ids=["learned", "fixed"])
def test_saved_and_loaded(make, changes, tmp_path):
    reservoir = make()
    esn = ESNClassifier(reservoir=reservoir, readout="ridge", **grouped(HOW, changes)).fit(SEQUENCES, LABELS)
    esn.save(tmp_path / "model")
    again = load(tmp_path / "model")
    same_reservoir(again.reservoir, reservoir)
    same_reservoir(again.reservoir_, esn.reservoir_)
    assert flat_settings(again)["initial_state"] is None
    for a, b in zip(again.predict(SEQUENCES), esn.predict(SEQUENCES), strict=True):
        np.testing.assert_array_equal(a, b)
    refitted = clone(again).fit(SEQUENCES, LABELS)
    same_reservoir(refitted.reservoir_, esn.reservoir_)


def test_a_file_whose_reservoir_does_not_fit_is_refused(tmp_path):
    from reliability import forging
    from smallmodels import change_facts

    esn = ESNRegressor(reservoir=OWN, learn="none").fit(SEQUENCES, TARGETS)
    esn.save(tmp_path / "model")
    settings = forging.taken_apart((tmp_path / "model").read_bytes(), "echolearn-model")[1]["settings"]
    assert settings["reservoir"] == "sigmoid"
    for bad in (None, "softplus", 3, {"W": 1}):
        change_facts(tmp_path / "model", settings={**settings, "reservoir": bad})
        with pytest.raises(ModelFileError):
            load(tmp_path / "model")


def test_a_checkpoint_resumes_with_the_same_reservoir_only(tmp_path):
    how = {**HOW, "epochs": 4, "readout": "ridge"}
    whole = ESNClassifier(reservoir=OWN, **grouped(how)).fit(SEQUENCES, LABELS)
    with pytest.raises(KeyboardInterrupt):
        ESNClassifier(reservoir=OWN, **grouped(how)).fit(
            SEQUENCES, LABELS, checkpoint=tmp_path, callback=toys.interrupt_at(2)
        )
    other = OWN.with_weights(bias=OWN.bias + 1e-9)
    with pytest.raises(ValueError, match="reservoir"):
        ESNClassifier(reservoir=other, **grouped(how)).fit(SEQUENCES, LABELS, checkpoint=tmp_path)
    resumed = ESNClassifier(reservoir=OWN, **grouped(how)).fit(SEQUENCES, LABELS, checkpoint=tmp_path)
    same_reservoir(resumed.reservoir_, whole.reservoir_)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"hidden_units": 100}, r"hidden_units=100 beside reservoir=, which has hidden_units=12"),
        ({"leak": 0.5}, "leak=0.5 beside"),
        ({"leak": np.full(12, 0.5)}, "beside reservoir="),
        ({"feedback": True}, "feedback=True beside"),
        ({"bidirectional": True}, "bidirectional=True beside"),
        ({"ensemble": 2}, "ensemble=2 beside reservoir=; expected 1"),
    ],
)
def test_settings_that_contradict_it_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        ESNClassifier(reservoir=OWN, **grouped(settings)).fit(SEQUENCES, LABELS)


def test_settings_that_agree_with_it_may_stand_beside_it():
    agreeing = {"hidden_units": 12, "leak": OWN.leak}
    esn = ESNClassifier(reservoir=OWN, learn="none", readout="ridge", **agreeing).fit(SEQUENCES, LABELS)
    same_reservoir(esn.reservoir_, OWN)
    even = OWN.with_weights(leak=np.ones(12))
    assert ESNClassifier.paper(12, reservoir=even, epochs=1, ridge=1e-3).fit(SEQUENCES, LABELS).reservoir_.N == 12


def test_a_reservoir_of_other_inputs_or_outputs_is_refused():
    with pytest.raises(ValueError, match=r"reservoir has 3 inputs .* X has 2"):
        ESNRegressor(reservoir=Reservoir.random(3, 5, random_state=0)).fit(SEQUENCES, TARGETS)
    with pytest.raises(ValueError, match="reservoir feeds back 3 outputs"):
        ESNRegressor(reservoir=Reservoir.random(2, 5, n_feedback=3, random_state=0)).fit(SEQUENCES, TARGETS)


def test_renormalising_goes_back_to_its_own_spectral_radius():
    radius = spectral_radius_of(OWN.W_rec)
    esn = ESNClassifier(reservoir=OWN, **grouped(HOW, renormalize=True, refine_epochs=0)).fit(SEQUENCES, LABELS)
    assert abs(radius - 0.9) > 0.1
    assert spectral_radius_of(esn.recurrent_weights_) == pytest.approx(radius, rel=1e-3)


@pytest.mark.parametrize("changes", [{}, {"bidirectional": True}, {"ensemble": 3}])
def test_a_leak_for_every_unit(changes, tmp_path):
    leak = np.linspace(0.1, 1.0, 15)
    how = {**toys.FAST, "learn_leak": False, "readout": "ridge", **changes}
    esn = ESNClassifier(leak=leak, **grouped(how)).fit(SEQUENCES, LABELS)
    np.testing.assert_array_equal(esn.reservoir_.leak, leak)
    esn.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.leak, leak)
    np.testing.assert_array_equal(clone(again).fit(SEQUENCES, LABELS).readout_weights_, esn.readout_weights_)
    with pytest.raises(ValueError, match=r"leak has shape \(3,\); expected 15"):
        ESNClassifier(leak=leak[:3], **grouped(how)).fit(SEQUENCES, LABELS)


# The parameters of an estimator as one typed value, and what follows from them.


def network_settings_of(kind=ESNClassifier, /, **params):
    return NetworkSettings.of(flat_settings(kind(**grouped(params))))


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({"hidden_units": 300}, 1),
        ({"hidden_units": 1000}, 1),
        ({"hidden_units": 1000, "ensemble": 4, "learn": "none"}, 4),
        ({"hidden_units": 1000, "ensemble": 4, "epochs": 0}, 4),
        ({"hidden_units": 2, "ensemble": 5}, 2),
        ({"hidden_units": 1000, "ensemble": 4}, 4),
        ({"hidden_units": 1000, "topology": "ring"}, 1),
        ({"hidden_units": 1000, "topology": "ring", "ensemble": 2}, 2),
        ({"hidden_units": 5, "ensemble": 5, "bidirectional": True}, 2),
    ],
)
def test_how_many_networks_share_the_units(settings, count):
    assert network_settings_of(**settings).networks() == count


def test_only_a_classifier_is_split():
    for kind in (ESNRegressor, ESNForecaster):
        assert network_settings_of(kind, hidden_units=1000).networks() == 1


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
    assert network_settings_of(**settings).epochs_for(sequences) == epochs


def test_patience_is_given_or_a_quarter_of_the_epochs():
    assert network_settings_of(patience=3).patience_for(100) == 3
    assert network_settings_of(patience=None).patience_for(100) is None
    assert network_settings_of(patience="auto").patience_for(100) == 25
    assert network_settings_of(patience="auto").patience_for(8) == 5


@pytest.mark.parametrize(
    ("settings", "refines"),
    [
        ({}, True),
        ({"readout": "ridge"}, False),
        ({"refine_epochs": 0}, False),
        ({"learn": "none"}, False),
        ({"epochs": 0}, False),
        ({"gradient": "printed", "leak": 1.0, "learn_leak": False}, False),
    ],
)
def test_when_the_last_epochs_are_on_the_cross_entropy(settings, refines):
    assert network_settings_of(**settings).refines is refines


def test_a_ridge_is_a_number_or_a_choice():
    assert network_settings_of(ridge=np.float32(0.5)).ridge_choice() == 0.5
    given = network_settings_of(ridge=[0.1, 1.0]).ridge_choice()
    np.testing.assert_array_equal(given(7.0), [0.1, 1.0])
    path = network_settings_of().ridge_choice()
    np.testing.assert_allclose(path(10.0), 10 * path(1.0))
    own = NetworkSettings.of(
        {**flat_settings(ESNForecaster()), "dtype": "float64", "direct": True}, ridge_path=(0.5, 2.0)
    )
    np.testing.assert_array_equal(own.ridge_choice()(3.0), [1.5, 6.0])


def test_the_task_of_the_settings():
    task = network_settings_of(washout=2, direct=False, lookback=4, targets="last").task()
    assert (task.washout, task.direct, task.lookback, task.targets) == (2, False, 4, "last")
    assert task.intercept
    assert task.summary is None


def test_parameters_that_an_estimator_lacks_are_at_their_defaults():
    settings = network_settings_of(ESNForecaster)
    assert (settings.readout, settings.feedback, settings.topology, settings.ensemble) == ("ridge", False, "random", 1)
    assert settings.hidden_units == 100


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="leak=3; expected"):
        network_settings_of(leak=3)


def test_the_job_of_a_fit_by_hand(monkeypatch):
    """What the estimate of the cost is given: sequences of 4, 6 and 8 steps, 2 of them in a mini-batch."""
    monkeypatch.setattr(module, "thread_count", lambda: 3)
    X = [np.zeros((n, 2)) for n in (4, 6, 8)]
    train = Dataset(X, [np.zeros(len(x), int) for x in X], 5, True, np.dtype("float32"))
    held_out = Dataset(X[:1], [np.zeros(4, int)], 5, True, np.dtype("float32"))
    usual = {"hidden_units": 20, "connections": 7, "epochs": 9, "batch_size": 2, "readout": "ridge", "ridge": 0.1}
    job = network_settings_of(**usual).job(train, held_out, 4)
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
        itemsize=4,
        threads=3,
        networks=4,
        bidirectional=False,
    )

    def changed(**changes):
        return network_settings_of(**{**usual, **changes}).job(train, None, 1)

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
