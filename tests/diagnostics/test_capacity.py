"""How much reservoirs remember and tell apart: known answers, and slow ways to the same numbers."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echolearn import Reservoir
from echolearn.diagnostics import memory_capacity, ranks
from echolearn.reservoir._topologies import delay_line
from echolearn.states import harvest


def line(k):
    """A delay line: inputs enter at the first unit and move on by one unit per step."""
    return Reservoir(W=np.eye(1, k), W_rec=delay_line(k), activation="identity")


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 20))
def test_a_delay_line_remembers_as_many_steps_as_it_has_units(k):
    memory = memory_capacity(line(k))
    assert memory.total == pytest.approx(k, abs=0.05)
    np.testing.assert_allclose(memory.by_delay[:k], 1, rtol=1e-9)
    assert memory.by_delay[k:].max() < 0.02
    assert len(memory.by_delay) == 2 * k + 1


def test_memory_capacity_is_at_most_n_and_less_where_units_saturate():
    how = {"spectral_radius": 0.95, "random_state": 1}
    straight, bent = (Reservoir.random(1, 30, activation=f, **how) for f in ("identity", "tanh"))
    loud = replace(bent, W=20 * bent.W)
    totals = [memory_capacity(r).total for r in (straight, bent, loud)]
    assert 31 > totals[0] > totals[2]
    assert totals[1] > totals[2]


def test_recall_against_a_least_squares_fit():
    r = Reservoir.random(1, 10, leak=0.5, random_state=0)
    memory = memory_capacity(r, delays=5, steps=200, random_state=3)
    u = np.random.default_rng(3).uniform(-0.5, 0.5, 205)
    H = np.hstack([harvest(r, u[:, None]), np.ones((205, 1))])[5:]
    for d in range(6):
        t = u[5 - d : 205 - d]
        y = H[100:] @ np.linalg.lstsq(H[:100], t[:100], rcond=None)[0]
        assert memory.by_delay[d] == pytest.approx(np.corrcoef(y, t[100:])[0, 1] ** 2, rel=1e-4)
    with pytest.raises(ValueError, match=r"steps=20 is too short for delays=5; give at least 24"):
        memory_capacity(r, delays=5, steps=20)


def test_an_idle_reservoir_remembers_nothing():
    silent = Reservoir(W=np.zeros((1, 3)), W_rec=np.zeros((3, 3)), activation="tanh")
    np.testing.assert_allclose(memory_capacity(silent).by_delay, 0, atol=1e-12)


def test_ranks_of_a_delay_line():
    found = ranks(line(6), steps=20, common=8)
    assert (found.kernel, found.generalisation) == (6, 1)  # all its units forget what is 6 steps old
    assert ranks(line(6), steps=20, common=4).generalisation == 3  # the two last ones have not yet
    with pytest.raises(ValueError, match="common=20 of steps=20"):
        ranks(line(6), steps=20, common=20)


def test_kernel_rank_of_a_linear_reservoir_is_that_of_its_reach():
    """Final states are Σ W_rec^k W'x_{T-k}: they span what W', W_rec W', W_rec² W' ... span."""
    W_rec = np.diag([0.9, 0.9, -0.9, 0.5])  # two units that always do the same
    r = Reservoir(W=np.ones((1, 4)), W_rec=W_rec, activation="identity")
    reach = np.stack([np.linalg.matrix_power(W_rec, k) @ np.ones(4) for k in range(20)])
    assert ranks(r, tolerance=1e-6).kernel == np.linalg.matrix_rank(reach) == 3
