"""All layers of a stack, learned jointly: running statistics, and the gradient of full batches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echolearn.gradients.stacked import StackedNetwork, stacked_gradients
from echolearn.readout.statistics import Statistics
from echolearn.sequences.dataset import Dataset
from echolearn.training.objectives.stacked import JointPlan, RunningPass, StackedObjective
from stacks import N_OUT, draw, two_batches


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
    _, X, labels, layers, how, _, _ = draw(0)
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
    exact = stacked_gradients(now, two_batches(X, labels, True), N_OUT)
    objective.running.share = 1.0
    batches = two_batches(X, labels, True)
    found = stacked_gradients(now, batches, N_OUT, full_pass=objective.running)
    for a, b in zip(exact.gradients, found.gradients, strict=True):
        np.testing.assert_allclose(a.W, b.W, rtol=1e-9, atol=1e-12)
