"""One batch's share of the gradient: additive, and the whole of it where the batch has all sequences."""

from dataclasses import replace

import numpy as np
import pytest

import reference as ref
from echolearn.gradients import loss_and_gradients
from echolearn.gradients.batch import batch_gradient
from echolearn.readout.statistics import statistics_of
from echolearn.readout.view import Task, observe
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import pack


@pytest.fixture
def problem():
    """A reservoir with sequences and values, the task, and E with its gradients over all of them."""
    rng = np.random.default_rng(0)
    reservoir = Reservoir(**ref.network(rng, N=6, n_in=2), activation="tanh")
    X, T = ([rng.normal(size=(n, 2)) for n in (9, 7, 12)] for _ in range(2))
    whole = loss_and_gradients(reservoir, X, T, ridge=0.1, washout=2, lookback=4)
    whole = replace(whole, readout=np.vstack([whole.readout, np.zeros((1, 2))]))  # with the row of an intercept
    return reservoir, X, T, Task(washout=2, lookback=4, intercept=False), whole


def observed(reservoir, task, X, T):
    return observe(reservoir, task, pack(X, np.float64, T))


def test_a_batch_of_all_sequences_has_the_gradient_of_the_loss(problem):
    reservoir, X, T, task, whole = problem
    found = batch_gradient(reservoir, task, "exact", whole.readout, observed(reservoir, task, X, T))
    assert found.squared + 0.1 * (whole.readout**2).sum() == pytest.approx(whole.loss)
    assert found.statistics is None
    np.testing.assert_allclose(found.gradients.W, whole.dE_dW, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.gradients.W_rec, whole.dE_dW_rec.data, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.gradients.leak, whole.dE_dleak, rtol=1e-9, atol=1e-12)


def test_shares_of_several_batches_add_up(problem):
    reservoir, X, T, task, whole = problem
    seen = [observed(reservoir, task, X[i : i + 1], T[i : i + 1]) for i in range(3)]
    total, *more = (batch_gradient(reservoir, task, "exact", whole.readout, one, with_statistics=True) for one in seen)
    for share in more:
        total += share
    everything = observed(reservoir, task, X, T)
    expected = batch_gradient(reservoir, task, "exact", whole.readout, everything)
    statistics = statistics_of(everything.H_c, everything.T, 2)
    assert total.squared == pytest.approx(expected.squared)
    np.testing.assert_allclose(total.gradients.W, expected.gradients.W, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(total.statistics.G, statistics.G, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(total.statistics.Q, statistics.Q, rtol=1e-10, atol=1e-12)
