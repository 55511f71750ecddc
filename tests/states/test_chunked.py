"""One long sequence in pieces, there and back, against the same kernels step by step and against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from echolearn.gradients.exact import through_time
from echolearn.reservoir.activations import ACTIVATIONS
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import pack
from echolearn.sequences.batching import LANES
from echolearn.states import chunked
from echolearn.states.chunked import SHORTEST
from echolearn.states.harvesting import harvest
from echolearn.states.run import States, run


def problem(seed, activation, steps, *, feedback=False, radius=0.6, N=None):
    """A network that forgets within a piece, and a sequence for it."""
    rng = np.random.default_rng([11, seed])
    w = ref.network(rng, N=N, feedback=feedback, bias=bool(seed % 2))
    w["W_rec"] *= radius / np.linalg.norm(w["W_rec"], 2)
    w["leak"] = rng.uniform(0.7, 1, len(w["leak"]))
    h0 = rng.normal(size=len(w["leak"])) if seed % 3 == 0 else None
    x = rng.normal(size=(steps, len(w["W"])))
    t = rng.normal(size=(steps, 2)) if feedback else None
    return rng, w, h0, x, t


DTYPE = np.dtype("float32")  # the only one that is cut
lengths = st.integers(LANES * SHORTEST * 3, LANES * SHORTEST * 3 + 2 * LANES)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    activation=st.sampled_from(list(ACTIVATIONS)),
    steps=lengths,
    feedback=st.booleans(),
    N=st.integers(1, 40),
)
def test_states_in_pieces_agree_with_loops(seed, activation, steps, feedback, N):
    _, w, h0, x, t = problem(seed, activation, steps, feedback=feedback, N=N)
    r = Reservoir(**w, activation=activation, initial_state=h0)
    batch = pack([x], DTYPE, None if t is None else [t])
    found = run(r, batch)
    assert found.chunk == steps // LANES
    slow = ref.states(w, x, activation, t, h0).T
    np.testing.assert_allclose(found.H, slow, rtol=0, atol=100 * np.finfo(DTYPE).eps * max(1, np.abs(slow).max()))
    np.testing.assert_array_equal(found.H, run(r, batch).H)
    np.testing.assert_array_equal(found.H, run(r, batch, keep_F=False).H)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    activation=st.sampled_from(list(ACTIVATIONS)),
    steps=lengths,
    feedback=st.booleans(),
    N=st.integers(1, 40),
)
def test_the_way_back_in_pieces_agrees_with_step_by_step(seed, activation, steps, feedback, N):
    rng, w, h0, x, t = problem(seed, activation, steps, feedback=feedback, N=N)
    r = Reservoir(**w, activation=activation, initial_state=h0)
    batch = pack([x], DTYPE, None if t is None else [t])
    D = rng.normal(size=(steps, N)).astype(DTYPE)
    found = run(r, batch)
    assert found.chunk
    pieces = through_time(r, batch, found, D.copy(), lookback=None, washout=0)
    again = through_time(r, batch, found, D.copy(), lookback=None, washout=0)
    whole = through_time(r, batch, States(found.H, found.F, found.h0, found.X_fb), D.copy(), lookback=None, washout=0)
    for name in ("W", "W_rec", "W_fb", "bias", "leak"):
        a, b = getattr(pieces, name), getattr(whole, name)
        assert (a is None) == (b is None)
        if a is not None:
            scale = max(np.abs(b).max(initial=0), np.sqrt(steps))
            np.testing.assert_allclose(a, b, rtol=0, atol=300 * np.finfo(DTYPE).eps * scale)
            np.testing.assert_array_equal(a, getattr(again, name))


def test_errors_that_pass_through_several_pieces():
    """The way back is exact however slowly an error fades: here it crosses many pieces."""
    _, w, _, x, _ = problem(1, "identity", LANES * 20 + 3, N=5)
    w["W_rec"] = np.diag([0.999, -0.99, 0.9, 0.5, 0.0])
    w["leak"] = np.ones(5)
    r = Reservoir(**w, activation="identity")
    batch = pack([x], "float64")
    found = run(r, batch)
    D = np.zeros((len(x), 5))
    D[-1] = 1
    as_pieces = States(found.H, found.F, found.h0, None, 20)
    a = through_time(r, batch, as_pieces, D.copy(), lookback=None, washout=0)
    b = through_time(r, batch, found, D.copy(), lookback=None, washout=0)
    assert found.chunk == 0
    for name in ("W", "W_rec", "bias", "leak"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_a_network_that_does_not_forget_runs_step_by_step(activation, monkeypatch):
    """tanh far beyond the echo state limit is chaotic; relu units that amplify themselves grow to infinity."""
    _, w, h0, x, _ = problem(2, activation, LANES * SHORTEST * 3, N=30, radius=6.0)
    if activation == "relu":
        w |= {"W": np.abs(w["W"]), "W_rec": 1.05 * np.eye(30), "bias": np.ones(30), "leak": np.ones(30)}
        x = np.abs(x)
    r = Reservoir(**w, activation=activation, initial_state=h0)
    batch = pack([x], DTYPE)
    found, quiet = run(r, batch), run(r, batch, keep_F=False)
    assert found.chunk == 0
    monkeypatch.setattr(chunked, "SHORTEST", 10**9)
    np.testing.assert_array_equal(found.H, run(r, batch).H)
    np.testing.assert_array_equal(quiet.H, found.H)


def test_slow_leaks_are_not_cut():
    _, w, _, x, _ = problem(4, "tanh", LANES * SHORTEST * 3, N=8)
    w["leak"] = np.full(8, 0.01)
    assert run(Reservoir(**w, activation="tanh"), pack([x], DTYPE)).chunk == 0


def test_harvest_of_a_list_keeps_the_callers_order():
    """More than one group of sequences, worked on by several threads."""
    rng, w, h0, _, _ = problem(6, "tanh", 1, N=20)
    r = Reservoir(**w, activation="tanh", initial_state=h0)
    X = [rng.normal(size=(n, len(w["W"]))) for n in rng.integers(1, 900, 40)]
    for x, H in zip(X, harvest(r, X), strict=True):
        np.testing.assert_allclose(H, ref.states(w, x, "tanh", None, h0).T, rtol=0, atol=1e-12)
