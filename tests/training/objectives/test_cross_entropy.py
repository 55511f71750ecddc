"""Learning on the cross entropy: derivatives against finite differences, the best epoch, divergence, resuming."""

import numpy as np
import pytest

import toys
from echolearn import ESNClassifier
from echolearn.exceptions import TrainingWarning
from echolearn.readout import softmax
from echolearn.readout.network import Network, Readout
from echolearn.readout.ridge import solve
from echolearn.readout.solver import ExactFit
from echolearn.readout.statistics import collect
from echolearn.readout.view import Task
from echolearn.reservoir import Reservoir
from echolearn.reservoir._spectrum import spectral_radius_of
from echolearn.sequences.dataset import Dataset
from echolearn.training.loop import Schedule, run_epochs
from echolearn.training.objectives import cross_entropy as module
from echolearn.training.objectives.cross_entropy import CrossEntropyObjective, entropy_gradient
from echolearn.training.objectives.ridge import LearningPlan
from echolearn.training.optimizers import default_step_size
from toys import grouped

X, LABELS = toys.labels(sequences=8)
DATA = Dataset(
    X, [(y == "low").astype(int) + 2 * (np.arange(len(y)) % 5 == 0) for y in LABELS], 4, True, np.dtype(float)
)
RESERVOIR = Reservoir.random(2, 7, connections=3, input_scaling=0.5, bias_scaling=0.1, leak=(0.2, 0.9), random_state=0)


@pytest.mark.parametrize("task", [Task(), Task(washout=2, direct=False)], ids=str)
def test_derivatives_are_those_of_the_cross_entropy(task):
    rng = np.random.default_rng(0)
    V = rng.normal(size=(7 + 2 * task.direct + 1, 4))
    found = entropy_gradient(RESERVOIR, task, V, DATA.batch(range(len(X))))

    def loss(V=V, **weights):
        return found.n * softmax.cross_entropy(RESERVOIR.with_weights(**weights), DATA, task, V)

    assert found.loss == pytest.approx(loss(), rel=1e-12)
    for name, value in {**RESERVOIR.weights(), "V": V}.items():
        derivative = found.dE_dV if name == "V" else getattr(found.gradients, name)
        direction, h = rng.normal(size=value.shape), 1e-6
        slope = (loss(**{name: value + h * direction}) - loss(**{name: value - h * direction})) / (2 * h)
        assert np.vdot(derivative, direction) == pytest.approx(slope, rel=1e-6), name


def plan(**changes):
    return LearningPlan(
        **{
            "learn": "both",
            "learn_leak": True,
            "gradient": "exact",
            "case": 2,
            "optimizer": "adam",
            "momentum": "fista",
            "step_size": 0.01,
            "epochs": 4,
            "batch_size": 3,
            "clip": None,
            "renormalize": False,
            "spectral_radius": 0.9,
            "ridge": 0.1,
            **changes,
        }
    )


def objective(held_out=None, task=Task(), **changes):  # noqa: B008
    s = collect(RESERVOIR, DATA, task)
    fit = ExactFit(solve(s, 0.1, intercept=True), 0.1, s)
    network = Network(RESERVOIR, Readout(softmax.LOGIT_SPREAD * fit.U, True, 0.1, strength=1e-3), task.view())
    return CrossEntropyObjective(network, DATA, held_out, task, plan(**changes), fit=fit)


def rng():
    return np.random.default_rng(0)


def test_a_step_is_one_of_adam_for_the_weights_and_a_preconditioned_one_for_the_readout():
    o = objective(batch_size=None, learn_leak=False)
    V, everything = o.readout.V, DATA.batch(range(8))
    found = entropy_gradient(RESERVOIR, Task(), V, everything)
    loss, n = o.step(np.arange(8), 0.0)
    assert (loss, n) == (pytest.approx(found.loss), found.n)
    for name in ("W", "bias"):
        moved = getattr(o.learned.reservoir, name) - getattr(RESERVOIR, name)
        np.testing.assert_allclose(moved, -o.step_size * np.sign(getattr(found.gradients, name)), rtol=1e-5, atol=1e-9)
    s = collect(RESERVOIR, DATA, Task())
    penalty = np.diag(np.append(np.full(len(V) - 1, 1e-3), 0.0))
    expected = -0.1 * np.linalg.solve(s.G / s.n + penalty, found.dE_dV / n + penalty @ V)
    np.testing.assert_allclose(o.readout.V - V, expected, rtol=1e-3, atol=1e-5)


def test_steps_fall_to_a_twentieth(monkeypatch):
    o, sizes = objective(step_size=1.0, epochs=5), []
    monkeypatch.setattr(o.learned, "step", lambda g, size: sizes.append(size))
    monkeypatch.setattr(o.readout, "step", lambda g, rate: sizes.append(rate))
    run_epochs(o, Schedule(5), rng=rng())
    weights, readout = np.array(sizes[::2]), np.array(sizes[1::2])
    assert len(weights) == 15
    assert (weights[0], readout[0]) == (module.REFINING_STEP_FACTOR, module.REFINING_RATE)
    np.testing.assert_allclose(weights / module.REFINING_STEP_FACTOR, readout / module.REFINING_RATE)
    assert (np.diff(weights) < 0).all()
    assert 0.05 <= readout[-1] < 0.2


def test_the_step_size_is_a_share_of_that_of_the_epochs_before():
    assert objective(step_size=0.02).step_size == pytest.approx(module.REFINING_STEP_FACTOR * 0.02)
    assert objective(step_size=5.0, optimizer="fista").step_size == module.REFINING_STEP_FACTOR * default_step_size(
        "adam", 7
    )


def test_without_a_batch_size_all_sequences_are_one_mini_batch():
    assert objective(batch_size=None).batch_size == 8
    assert objective(batch_size=3).batch_size == 3


def test_the_validation_error_is_the_cross_entropy_of_the_newest_weights():
    held_out = DATA.subset([0, 3])
    o = objective(held_out)
    result = run_epochs(o, Schedule(2), rng=rng())
    expected = softmax.cross_entropy(o.learned.reservoir, held_out, Task(), o.readout.V)
    assert result.history[-1]["valid_cross_entropy"] == pytest.approx(expected)
    assert set(result.history[0]) == {"epoch", "cross_entropy", "valid_cross_entropy"}


def test_the_spectral_radius_is_renormalised_after_every_epoch():
    reservoir, _ = run_epochs(objective(renormalize=True, spectral_radius=0.7), Schedule(1), rng=rng()).best
    assert spectral_radius_of(reservoir.W_rec) == pytest.approx(0.7)


@pytest.mark.parametrize("inside", [False, True])
def test_a_state_resumes_to_the_bit(inside):
    straight = objective()
    straight.step(np.array([0, 1, 2]), 0.0)
    tensors, facts = straight.state_dict(inside_epoch=inside)
    tensors |= straight.pack("best", straight.snapshot())
    assert {name: value.shape for name, value in tensors.items()}.items() <= straight.shapes().items()
    resumed = objective()
    resumed.load_state_dict({name: value.copy() for name, value in tensors.items()}, facts)
    kept, V = resumed.unpack("best", tensors)
    np.testing.assert_array_equal(kept.W, straight.snapshot()[0].W)
    np.testing.assert_array_equal(V, straight.snapshot()[1])
    for o in (straight, resumed):
        o.step(np.array([3, 4]), 0.5)
    (one, V), (other, other_V) = straight.snapshot(), resumed.snapshot()
    np.testing.assert_array_equal(V, other_V)
    for name, value in one.weights().items():
        np.testing.assert_array_equal(other.weights()[name], value)


def test_an_epoch_that_diverges_ends_the_refinement_with_a_warning():
    """It once ended without a word. An epoch on the cross entropy is not tried again."""
    o = objective()
    step, start = o.step, o.snapshot()

    def diverging(which, done):
        if done >= 1:
            raise FloatingPointError("the gradient is not finite")
        return step(which, done)

    o.step = diverging
    with pytest.warns(TrainingWarning, match=r"stopped in epoch 2: the gradient is not finite\. The best weights"):
        result = run_epochs(o, Schedule(4), rng=rng())
    assert len(result.history) == 1
    assert result.best is not start
    with pytest.raises(NotImplementedError, match="not tried again"):
        o.restart(start)


def test_gradients_that_are_not_finite_are_an_error():
    o = objective()
    o.readout.V = np.full_like(o.readout.V, np.nan)
    with np.errstate(invalid="ignore"), pytest.raises(FloatingPointError, match="not finite"):
        o.step(np.arange(3), 0.0)


def test_stability_is_that_of_the_states():
    o = objective()
    assert o.is_stable(o.snapshot())
    linear = Reservoir.random(2, 7, connections=3, activation="identity", random_state=0)
    with np.errstate(over="ignore", invalid="ignore"):
        assert not o.is_stable((linear.with_weights(W_rec=1e30 * linear.W_rec.data), o.readout.V))


HOW = {**toys.FAST, "validation_fraction": 0.25, "refine_epochs": 4}


def test_the_best_epoch_counts_and_the_start_is_one():
    esn = ESNClassifier(**grouped(HOW)).fit(X, LABELS)
    assert [row["epoch"] for row in esn.refinement_] == [1, 2, 3, 4]
    wild = ESNClassifier(**grouped(HOW, step_size=50.0)).fit(X, LABELS)
    assert np.isfinite(wild.network_.readout.U).all()
    assert np.isfinite(wild.input_weights_).all()


def test_a_classifier_whose_refinement_diverges_warns_and_keeps_the_weights_before(monkeypatch):
    def diverging(self, which, done):
        raise FloatingPointError("the gradient is not finite")

    monkeypatch.setattr(CrossEntropyObjective, "step", diverging)
    with pytest.warns(TrainingWarning, match="training stopped in epoch 1"):
        esn = ESNClassifier(**grouped(HOW)).fit(X, LABELS)
    monkeypatch.undo()
    plain = ESNClassifier(**grouped({**HOW, "refine_epochs": 0})).fit(X, LABELS)
    assert esn.refinement_ == []
    np.testing.assert_array_equal(esn.input_weights_, plain.input_weights_)


def test_refining_lowers_the_training_cross_entropy():
    def entropy(epochs):
        how = {**HOW, "validation_fraction": 0.0, "refine_epochs": epochs, "hidden_units": 20}
        P = ESNClassifier(**grouped(how)).fit(X, LABELS).predict_proba(X)
        right = np.concatenate([p[np.arange(len(p)), (y == "low").astype(int)] for p, y in zip(P, LABELS, strict=True)])
        return -np.log(right).mean()

    assert entropy(8) < entropy(0)


@pytest.mark.parametrize("without", [{"learn": "none"}, {"readout": "ridge"}, {"refine_epochs": 0}, {"epochs": 0}])
def test_settings_without_refinement(without):
    assert ESNClassifier(**grouped({**HOW, **without})).fit(X, LABELS).refinement_ == []


def test_an_interrupted_refinement_resumes_to_the_same_bits(tmp_path, monkeypatch):
    straight = ESNClassifier(**grouped(HOW)).fit(X, LABELS)
    end_epoch, ended = CrossEntropyObjective.end_epoch, []

    def until_three(self):
        end_epoch(self)
        ended.append(1)
        if len(ended) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(CrossEntropyObjective, "end_epoch", until_three)
    with pytest.raises(KeyboardInterrupt):
        ESNClassifier(**grouped(HOW)).fit(X, LABELS, checkpoint=tmp_path)
    monkeypatch.undo()
    resumed = ESNClassifier(**grouped(HOW)).fit(X, LABELS, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.network_.readout.U, straight.network_.readout.U)
    np.testing.assert_array_equal(resumed.recurrent_weights_.data, straight.recurrent_weights_.data)
    assert resumed.refinement_ == straight.refinement_


@pytest.mark.parametrize("task", [Task(), Task(washout=2, direct=False)])
def test_derivatives_of_weighted_targets_are_those_of_the_weighted_cross_entropy(task):
    rng = np.random.default_rng(0)
    w = [rng.choice([0.0, 0.5, 3.0], size=np.shape(labels)) for labels in DATA.y]
    w[0] = np.ones_like(w[0])
    marked = [np.where(c > 0, labels, -1) for c, labels in zip(w, DATA.y, strict=True)]
    data = Dataset(X, marked, 4, True, np.dtype(float), weights=w)
    V = rng.normal(size=(7 + 2 * task.direct + 1, 4))
    found = entropy_gradient(RESERVOIR, task, V, data.batch(range(len(X))))
    assert found.n == pytest.approx(data.target_weights(task.washout).sum())

    def loss(V=V, **weights):
        return found.n * softmax.cross_entropy(RESERVOIR.with_weights(**weights), data, task, V)

    assert found.loss == pytest.approx(loss(), rel=1e-12)
    for name, value in {**RESERVOIR.weights(), "V": V}.items():
        derivative = found.dE_dV if name == "V" else getattr(found.gradients, name)
        direction, h = rng.normal(size=value.shape), 1e-6
        slope = (loss(**{name: value + h * direction}) - loss(**{name: value - h * direction})) / (2 * h)
        assert np.vdot(derivative, direction) == pytest.approx(slope, rel=1e-6), name
