"""Estimators that begin with a reservoir of the user's own."""

import numpy as np
import pytest
from sklearn.base import clone

import toys
from echolearn import ESNClassifier, ESNRegressor, Reservoir, StackedRegressor, load
from echolearn.exceptions import ModelFileError
from echolearn.reservoir.combination import bidirectional_reservoir
from echolearn.reservoir.spectrum import spectral_radius_of
from echolearn.states import harvest

X, LABELS = toys.labels(sequences=10)
VALUES = toys.echoes(sequences=10)[1]
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
    return (X, LABELS) if kind is ESNClassifier else (X, VALUES)


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
    for H, x in zip(esn.states(X), X, strict=True):
        np.testing.assert_allclose(H, harvest(OWN, x), atol=1e-14)


def test_it_sees_standardised_inputs_unless_they_are_left_as_they_are():
    esn = ESNRegressor(reservoir=OWN, learn="none", dtype="float64").fit(X, VALUES)
    for H, x in zip(esn.states(X), X, strict=True):
        np.testing.assert_allclose(H, harvest(OWN, (x - esn.input_mean_) / esn.input_scale_), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_its_weights_are_where_learning_begins(kind):
    esn = kind(reservoir=OWN, **{**HOW, "epochs": 0}).fit(*data_of(kind))
    same_reservoir(esn.reservoir_, OWN)
    esn = kind(reservoir=OWN, **HOW, step_size=1e-3).fit(*data_of(kind))
    for name, weight in OWN.weights().items():
        learned = esn.reservoir_.weights()[name]
        assert 0 < np.abs(learned - weight).max() < 0.1, name
    np.testing.assert_array_equal(esn.reservoir_.W_rec.indices, OWN.W_rec.indices)
    assert esn.reservoir_.activation == "sigmoid"


def test_it_is_learned_as_a_random_one_is():
    """A fit from the drawn reservoir, handed in, is the fit that draws it."""
    drawn = ESNRegressor(**toys.FAST, learn="none").fit(X, VALUES).reservoir_
    expected = ESNRegressor(**toys.FAST).fit(X, VALUES)
    found = ESNRegressor(reservoir=drawn, **HOW).fit(X, VALUES)
    same_reservoir(found.reservoir_, expected.reservoir_)
    np.testing.assert_array_equal(found.readout_weights_, expected.readout_weights_)


def with_feedback():
    return Reservoir.random(2, 8, n_feedback=2, leak=(0.2, 1.0), random_state=1)


def both_ways():
    return bidirectional_reservoir(*(Reservoir.random(2, 5, connections=3, random_state=s) for s in (0, 1)))


@pytest.mark.parametrize("make", [lambda: OWN, with_feedback, both_ways], ids=["own", "feedback", "both directions"])
@pytest.mark.parametrize("changes", [{}, {"learn": "none"}, {"plasticity": 0.3}], ids=["learned", "fixed", "plastic"])
def test_saved_and_loaded(make, changes, tmp_path):
    reservoir = make()
    if "plasticity" in changes and reservoir.W_fb is not None:
        pytest.skip("plasticity is for networks without feedback")
    esn = ESNClassifier(reservoir=reservoir, readout="ridge", **HOW, **changes).fit(X, LABELS)
    esn.save(tmp_path / "model")
    again = load(tmp_path / "model")
    same_reservoir(again.reservoir, reservoir)
    same_reservoir(again.reservoir_, esn.reservoir_)
    assert again.initial_state is None
    for a, b in zip(again.predict(X), esn.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)
    refitted = clone(again).fit(X, LABELS)
    same_reservoir(refitted.reservoir_, esn.reservoir_)


def test_a_file_whose_reservoir_does_not_fit_is_refused(tmp_path):
    from reliability import forging
    from smallmodels import change_facts

    esn = ESNRegressor(reservoir=OWN, learn="none").fit(X, VALUES)
    esn.save(tmp_path / "model")
    settings = forging.taken_apart((tmp_path / "model").read_bytes(), "echolearn-model")[1]["settings"]
    assert settings["reservoir"] == "sigmoid"
    for bad in (None, "softplus", 3, {"W": 1}):
        change_facts(tmp_path / "model", settings={**settings, "reservoir": bad})
        with pytest.raises(ModelFileError):
            load(tmp_path / "model")


def test_a_checkpoint_resumes_with_the_same_reservoir_only(tmp_path):
    how = {**HOW, "epochs": 4, "readout": "ridge"}
    whole = ESNClassifier(reservoir=OWN, **how).fit(X, LABELS)
    with pytest.raises(KeyboardInterrupt):
        ESNClassifier(reservoir=OWN, **how).fit(X, LABELS, checkpoint=tmp_path, callback=toys.interrupt_at(2))
    other = OWN.with_weights(bias=OWN.bias + 1e-9)
    with pytest.raises(ValueError, match="reservoir"):
        ESNClassifier(reservoir=other, **how).fit(X, LABELS, checkpoint=tmp_path)
    resumed = ESNClassifier(reservoir=OWN, **how).fit(X, LABELS, checkpoint=tmp_path)
    same_reservoir(resumed.reservoir_, whole.reservoir_)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"hidden_units": 100}, r"hidden_units=100 beside reservoir=, which has hidden_units=12"),
        ({"activation": "relu"}, "activation='relu' beside"),
        ({"leak": 0.5}, "leak=0.5 beside"),
        ({"leak": np.full(12, 0.5)}, "beside reservoir="),
        ({"feedback": True}, "feedback=True beside"),
        ({"bidirectional": True}, "bidirectional=True beside"),
        ({"initial_state": np.zeros(12)}, "initial_state="),
        ({"ensemble": 2}, "ensemble=2 beside reservoir=; expected 1"),
    ],
)
def test_settings_that_contradict_it_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        ESNClassifier(reservoir=OWN, **settings).fit(X, LABELS)


def test_settings_that_agree_with_it_may_stand_beside_it():
    agreeing = {"hidden_units": 12, "activation": "sigmoid", "leak": OWN.leak, "initial_state": OWN.initial_state}
    esn = ESNClassifier(reservoir=OWN, learn="none", readout="ridge", **agreeing).fit(X, LABELS)
    same_reservoir(esn.reservoir_, OWN)
    even = OWN.with_weights(leak=np.ones(12))
    assert ESNClassifier.paper(12, reservoir=even, epochs=1, ridge=1e-3).fit(X, LABELS).reservoir_.N == 12


def test_a_reservoir_of_other_inputs_or_outputs_is_refused():
    with pytest.raises(ValueError, match=r"reservoir has 3 inputs .* X has 2"):
        ESNRegressor(reservoir=Reservoir.random(3, 5, random_state=0)).fit(X, VALUES)
    with pytest.raises(ValueError, match="reservoir feeds back 3 outputs"):
        ESNRegressor(reservoir=Reservoir.random(2, 5, n_feedback=3, random_state=0)).fit(X, VALUES)


def test_renormalising_goes_back_to_its_own_spectral_radius():
    radius = spectral_radius_of(OWN.W_rec)
    esn = ESNClassifier(reservoir=OWN, renormalize=True, refine_epochs=0, **HOW).fit(X, LABELS)
    assert abs(radius - 0.9) > 0.1
    assert spectral_radius_of(esn.recurrent_weights_) == pytest.approx(radius, rel=1e-3)


def test_a_layer_of_a_stack_may_have_one():
    layers = [ESNRegressor(reservoir=OWN, **{**HOW, "epochs": 0}), ESNRegressor(5, connections=3, **HOW)]
    stack = StackedRegressor(layers, joint_epochs=0).fit(X, VALUES)
    same_reservoir(stack.layers_[0].reservoir_, OWN)


@pytest.mark.parametrize("changes", [{}, {"bidirectional": True}, {"ensemble": 3}])
def test_a_leak_for_every_unit(changes, tmp_path):
    leak = np.linspace(0.1, 1.0, 15)
    how = {**toys.FAST, "learn_leak": False, "readout": "ridge", **changes}
    esn = ESNClassifier(**how, leak=leak).fit(X, LABELS)
    np.testing.assert_array_equal(esn.reservoir_.leak, leak)
    esn.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.leak, leak)
    np.testing.assert_array_equal(clone(again).fit(X, LABELS).readout_weights_, esn.readout_weights_)
    with pytest.raises(ValueError, match=r"leak has shape \(3,\); expected 15"):
        ESNClassifier(**how, leak=leak[:3]).fit(X, LABELS)
