"""NARMA and sums of sines, term by term."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echolearn import datasets
from echolearn.datasets import _memory_tasks


@given(order=st.sampled_from([10, 30]), seed=st.integers(0, 10**6), discard=st.sampled_from([0, 200]))
@settings(max_examples=20, deadline=None)
def test_narma_term_by_term(order, seed, discard):
    u, y = datasets.narma(80, order, discard=discard, random_state=seed)
    assert u.shape == y.shape == (80, 1)
    assert 0 <= u.min() <= u.max() <= 0.5
    alpha, beta, gamma, delta = {10: (0.3, 0.05, 1.5, 0.1), 30: (0.2, 0.004, 1.5, 0.201)}[order]
    for t in range(order, 80):
        past = sum(y[t - 1 - i, 0] for i in range(order))
        expected = alpha * y[t - 1] + beta * y[t - 1] * past + gamma * u[t - order + 1] * u[t] + delta
        np.testing.assert_allclose(y[t], expected)


def test_narma_starts_from_zero():
    u, y = datasets.narma(30, discard=0, random_state=1)
    assert len(u) == 30
    assert y[0, 0] >= 0.1  # alpha 0 + ... + delta, and a product of inputs that are not negative


def test_narma_draws_again_and_gives_up(monkeypatch):
    monkeypatch.setitem(_memory_tasks.NARMA_COEFFICIENTS, 10, (0.3, 0.05, 2.0, 0.1))  # a third of all draws explode
    for seed in range(10):
        assert np.isfinite(datasets.narma(100, random_state=seed)[1]).all()
    monkeypatch.setitem(_memory_tasks.NARMA_COEFFICIENTS, 10, (2.0, 0.05, 1.5, 0.1))  # all do
    with pytest.raises(ValueError, match="20 draws of u all diverged"):
        datasets.narma(100)


@pytest.mark.parametrize("count", [1, 2, 5, 8, 12])
def test_mso_is_a_sum_of_sines(count):
    x = datasets.mso(40, count)
    frequencies = [0.2, 0.311, 0.42, 0.51, 0.63, 0.74, 0.85, 0.97, 1.08, 1.19, 1.27, 1.32][:count]
    for t in range(40):
        assert x[t, 0] == pytest.approx(sum(np.sin(f * t) for f in frequencies))
