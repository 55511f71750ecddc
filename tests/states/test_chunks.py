"""One long sequence in chunks, against the same kernels step by step and against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from echolearn.reservoir import Reservoir
from echolearn.reservoir._activations import ACTIVATIONS
from echolearn.sequences.batch import LANES, pack
from echolearn.states import chunks
from echolearn.states.chunks import MIN_CHUNK_STEPS, agreement, chunk_count
from echolearn.states.run import run
from networks import forgetful

DTYPE = np.dtype("float32")
LONG = LANES * MIN_CHUNK_STEPS * 3


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    activation=st.sampled_from(list(ACTIVATIONS)),
    steps=st.integers(LONG, LONG + 2 * LANES),
    feedback=st.booleans(),
    N=st.integers(1, 40),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_states_in_chunks_agree_with_loops(seed, activation, steps, feedback, N, dtype):
    _, w, h0, x, t = forgetful(seed, steps, feedback=feedback, N=N)
    r = Reservoir(**w, activation=activation, initial_state=h0)
    batch = pack([x], np.dtype(dtype), None if t is None else [t])
    found = run(r, batch)
    assert found.chunk == steps // chunk_count(dtype)
    slow = ref.states(w, x, activation, t, h0).T
    np.testing.assert_allclose(found.H, slow, rtol=0, atol=3 * agreement(dtype) * max(1, np.abs(slow).max()))
    np.testing.assert_array_equal(found.H, run(r, batch).H)
    np.testing.assert_array_equal(found.H, run(r, batch, keep_F=False).H)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_a_network_that_does_not_forget_runs_step_by_step(activation, monkeypatch):
    """tanh far beyond the echo state limit is chaotic; relu units that amplify themselves grow to infinity."""
    _, w, h0, x, _ = forgetful(2, LONG, N=30, radius=6.0)
    if activation == "relu":
        w |= {"W": np.abs(w["W"]), "W_rec": 1.05 * np.eye(30), "bias": np.ones(30), "leak": np.ones(30)}
        x = np.abs(x)
    r = Reservoir(**w, activation=activation, initial_state=h0)
    batch = pack([x], DTYPE)
    found, without_F = run(r, batch), run(r, batch, keep_F=False)
    assert found.chunk == 0
    monkeypatch.setattr(chunks, "MIN_CHUNK_STEPS", 10**9)
    np.testing.assert_array_equal(found.H, run(r, batch).H)
    np.testing.assert_array_equal(without_F.H, found.H)


def test_slow_units_and_short_sequences_run_step_by_step():
    _, w, _, x, _ = forgetful(4, LONG, N=8)
    r = Reservoir(**w, activation="tanh")
    assert run(r, pack([x], DTYPE)).chunk == LONG // LANES
    assert run(r, pack([x], np.float64)).chunk == 2 * LONG // LANES  # half as many chunks
    assert run(r, pack([x[: LANES * MIN_CHUNK_STEPS - 1]], DTYPE)).chunk == 0
    assert run(r, pack([x, x], DTYPE)).chunk == 0
    w["leak"] = np.full(8, 0.01)
    assert run(Reservoir(**w, activation="tanh"), pack([x], DTYPE)).chunk == 0
