"""All layers of a stack, learned jointly: running statistics, exact gradients, divergence, resuming."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toys
from echolearn import ESNClassifier, StackedClassifier
from echolearn.exceptions import TrainingWarning
from echolearn.gradients.stacked import stacked_gradients
from echolearn.gradients.stacked_network import StackedNetwork, stacked_outputs
from echolearn.readout.statistics import Statistics
from echolearn.sequences.dataset import Dataset
from echolearn.training.loop import Schedule, run_epochs
from echolearn.training.objectives import joint as module
from echolearn.training.objectives.joint import JointPlan, RunningPass, StackedObjective
from stacks import N_OUT, draw, two_batches
from toys import grouped


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(0, 1000))
def test_running_values_of_equal_batches_are_those_of_a_full_pass(batches, seed):
    part = np.random.default_rng(seed).normal(size=(3, 2))
    running = RunningPass([])
    running.share = 1 / batches
    for _ in range(3 * batches):
        P = running.readout_gradient(0, part.copy())
        s = running.statistics(0, Statistics(np.eye(3), part.copy(), 2.0, 5.0))
        np.testing.assert_allclose(P, part * batches)
        np.testing.assert_allclose(s.Q, part * batches)
        np.testing.assert_allclose(s.G, np.eye(3) * batches)
        assert s.n == pytest.approx(5 * batches)


def test_full_batch_epochs_take_the_exact_gradient():
    """However many epochs there were, statistics and P are those of the current weights."""
    _, X, labels, layers, how, _ = draw(0)
    data = Dataset(X, labels, N_OUT, True, np.dtype(float))
    plan = JointPlan(["both"] * len(layers), [True] * len(layers), 1e-3, 5, None)
    zeros = [Statistics.zeros(1, 1)] * len(layers)  # forgotten at once
    network = StackedNetwork(layers, how["sees"], softmax=False)
    objective = StackedObjective(
        network, data, None, plan, statistics=zeros, strengths=None, loss=lambda Y, T: float(np.vdot(Y, Y))
    )
    everything = np.arange(len(X))
    for _ in range(2):
        objective.step(everything, 0.0)
    now = objective.network
    assert (now.layers[0].reservoir.W != layers[0].reservoir.W).any()
    exact = stacked_gradients(now, two_batches(X, labels), N_OUT)
    objective.running.share = 1.0
    batches = two_batches(X, labels)
    found = stacked_gradients(now, batches, N_OUT, full_pass=objective.running)
    for a, b in zip(exact.gradients, found.gradients, strict=True):
        np.testing.assert_allclose(a.W, b.W, rtol=1e-9, atol=1e-12)


def test_values_of_older_weights_fade():
    """As in `fade_in`: a mini-batch that is a tenth of all frames replaces 1.8 tenths."""
    running = RunningPass([Statistics(np.eye(2), np.ones((2, 1)), 3.0, 10.0)])
    running.share = 0.1
    s = running.statistics(0, Statistics(0.5 * np.eye(2), np.zeros((2, 1)), 0.0, 1.0))
    np.testing.assert_allclose(s.G, (0.82 + 1.8 * 0.5) * np.eye(2))
    assert s.n == pytest.approx(0.82 * 10 + 1.8 * 1)


def test_a_running_pass_resumes_to_the_bit():
    rng = np.random.default_rng(0)
    first = RunningPass([Statistics(np.eye(2), np.ones((2, 1)), 3.0, 10.0)])
    first.share = 0.3
    first.readout_gradient(0, rng.normal(size=(2, 1)))
    second = RunningPass([])
    tensors, facts = first.state_dict()
    second.load_state_dict({name: value.copy() for name, value in tensors.items()}, facts)
    second.share = 0.3
    P, more = rng.normal(size=(2, 1)), Statistics(np.ones((2, 2)), np.ones((2, 1)), 1.0, 2.0)
    np.testing.assert_array_equal(second.readout_gradient(0, P), first.readout_gradient(0, P))
    copies = [Statistics(more.G.copy(), more.Q.copy(), more.tt, more.n) for _ in range(2)]
    one, other = first.statistics(0, copies[0]), second.statistics(0, copies[1])
    for name in ("G", "Q", "tt", "n"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def squared(Y, T):
    return float(((Y - np.eye(N_OUT)[T]) ** 2).sum())


def objective(seed=0, *, softmax, batch_size=3, held_out=None, epochs=4):
    """Return the objective of a stack of random layers, with statistics of random states."""
    _, X, labels, layers, how, _ = draw(seed)
    data = Dataset(X, labels, N_OUT, True, np.dtype(float))
    network = StackedNetwork(layers, how["sees"], softmax=False)
    readouts = stacked_gradients(network, two_batches(X, labels), N_OUT).readouts
    layers = [replace(layer, U=U) for layer, U in zip(layers, readouts, strict=True)]
    statistics = []
    for layer in layers:
        M = len(layer.U)
        H = np.random.default_rng(M).normal(size=(50, M))
        H[:, -1] = 1
        statistics.append(Statistics(H.T @ H, np.zeros((M, N_OUT)), 50.0, 50.0))
    plan = JointPlan(["both"] * len(layers), [True] * len(layers), 1e-2, epochs, batch_size)
    return StackedObjective(
        StackedNetwork(layers, how["sees"], softmax=softmax),
        data,
        None if held_out is None else data.subset(held_out),
        plan,
        statistics=statistics,
        strengths=[1e-2] * len(layers) if softmax else None,
        loss=squared,
    )


def weights_of(network):
    return [w for layer in network.layers for w in (*layer.reservoir.weights().values(), layer.U)]


@pytest.mark.parametrize("softmax", [False, True])
def test_the_validation_error_is_that_of_the_outputs_at_the_top(softmax):
    o = objective(softmax=softmax, held_out=[1, 4, 6])
    expected = [squared(*stacked_outputs(o.network, o.held_out.batch([i]))[:2]) for i in range(3)]
    targets = sum(len(stacked_outputs(o.network, o.held_out.batch([i]))[1]) for i in range(3))
    assert o.validation_error() == pytest.approx(sum(expected) / targets)
    result = run_epochs(o, Schedule(2), rng=np.random.default_rng(0))
    assert [set(row) for row in result.history] == [{"epoch", "error", "valid_error"}] * 2


def test_softmax_readouts_take_preconditioned_steps_slower_below_the_top():
    o = objective(softmax=True, batch_size=None)
    before = [layer.U for layer in o.network.layers]
    found = stacked_gradients(o.network, two_batches(o.data.X, o.data.y), N_OUT)
    o.step(np.arange(len(o.data.X)), 0.0)
    for number, (U, layer) in enumerate(zip(before, o.network.layers, strict=True)):
        G = o.running.kept[f"{number}.sums"].G / 50
        penalty = np.diag(np.append(np.full(len(U) - 1, 1e-2), 0.0))
        rate = module.REFINING_RATE if number == len(before) - 1 else module.LOWER_RATE
        towards = np.linalg.solve(G + penalty, found.dE_dV[number] / found.n + penalty @ U)
        np.testing.assert_allclose(layer.U - U, -rate * 0.1 * towards, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("softmax", [False, True])
def test_a_state_resumes_to_the_bit(softmax):
    straight, resumed = objective(softmax=softmax), objective(softmax=softmax)
    straight.step(np.array([0, 1, 2]), 0.0)
    tensors, facts = straight.state_dict(inside_epoch=True)
    tensors |= straight.pack("best", straight.snapshot())
    assert {name: value.shape for name, value in tensors.items()}.items() <= straight.shapes().items()
    tensors = {name: value.copy() for name, value in tensors.items()}
    resumed.load_state_dict(tensors, facts)
    for one, other in zip(weights_of(resumed.unpack("best", tensors)), weights_of(straight.network), strict=True):
        np.testing.assert_array_equal(one, other)
    for o in (straight, resumed):
        o.step(np.array([3, 4]), 0.5)
    for one, other in zip(weights_of(resumed.network), weights_of(straight.network), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("softmax", [False, True])
def test_an_epoch_that_diverges_ends_joint_learning_with_a_warning(softmax):
    """It once ended without a word. A joint epoch is not tried again."""
    o = objective(softmax=softmax, held_out=[0, 1])
    by_weight, start, steps = o.learned[0].by_weight, o.snapshot(), []

    def diverging(gradients):
        steps.append(gradients)
        if len(steps) == 2:
            gradients.W[0, 0] = np.nan
        return by_weight(gradients)

    o.learned[0].by_weight = diverging
    with pytest.warns(TrainingWarning, match=r"stopped in epoch 1: the gradient is not finite\. The best weights"):
        result = run_epochs(o, Schedule(4), rng=np.random.default_rng(0))
    assert result.best is start
    assert result.history == []
    with pytest.raises(NotImplementedError, match="not tried again"):
        o.restart(start)


def test_a_stack_whose_joint_learning_diverges_warns_and_keeps_its_layers(monkeypatch):
    X, y = toys.labels(sequences=8)
    how = {"connections": 4, "epochs": 2, "batch_size": 4}

    def stack(epochs):
        return StackedClassifier(
            [ESNClassifier(6, **grouped(how)), ESNClassifier(5, **grouped(how))], joint_epochs=epochs
        )

    alone = stack(0).fit(X, y)

    def diverging(self, which, done):
        raise FloatingPointError("the gradient is not finite")

    monkeypatch.setattr(StackedObjective, "step", diverging)
    with pytest.warns(TrainingWarning, match="training stopped in epoch 1"):
        diverged = stack(2).fit(X, y)
    assert diverged.history_ == []
    for one, other in zip(diverged.layers_, alone.layers_, strict=True):
        np.testing.assert_array_equal(one.input_weights_, other.input_weights_)


def test_a_stack_whose_error_is_not_finite_is_not_stable():
    o = objective(softmax=False)
    assert o.is_stable(o.snapshot())
    top = o.network.layers[-1]
    broken = replace(o.network, layers=[*o.network.layers[:-1], replace(top, U=np.full_like(top.U, np.inf))])
    with np.errstate(over="ignore", invalid="ignore"):
        assert not o.is_stable(broken)
