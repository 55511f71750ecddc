"""The way back through time: the transpose of the way forward, for any number of sequences, in chunks or not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import networks
import reference as ref
from echolearn.gradients.exact import Gradients, error_wrt_states, through_time
from echolearn.reservoir import Reservoir
from echolearn.reservoir._activations import ACTIVATIONS
from echolearn.sequences.batch import LANES, pack
from echolearn.states import _loops as loops
from echolearn.states.chunks import MIN_CHUNK_STEPS, agreement, chunk_count
from echolearn.states.run import States, run
from networks import forgetful

NAMES = ("W", "W_rec", "W_fb", "bias", "leak")


def problem(seed, lengths, activation, dtype, N=6):
    rng = np.random.default_rng([5, seed])
    w = ref.network(rng, N=N, n_in=2)
    w["W_rec"] *= 0.8 / max(np.abs(np.linalg.eigvals(w["W_rec"])).max(), 0.8)
    batch = pack([rng.normal(size=(n, 2)) for n in lengths], dtype)
    return rng, Reservoir(**w, activation=activation), batch


def test_the_error_at_the_states_is_that_of_eq_30():
    """dE/dH = 2 R U_h' is -A' of the paper's eq. 30, K × K matrix and all."""
    rng = np.random.default_rng(3)
    for mu in (1e-6, 1.0, 100.0):
        H, T = rng.normal(size=(5, 30)), rng.normal(size=(2, 30))
        F = np.linalg.inv(H @ H.T + mu * np.eye(5))
        A = 2 * T.T @ T @ H.T @ F - 2 * H.T @ F @ H @ T.T @ T @ H.T @ F
        U = ref.ridge(H, T, mu)
        np.testing.assert_allclose(error_wrt_states((U.T @ H - T).T, U), -A, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("lengths", [[1], [5, 3, 3, 1], [2 * loops.STEPS_PER_FLUSH + 3], [300, 299, 20], [12] * 20])
def test_the_way_back_is_the_transpose_of_the_way_forward(activation, lengths):
    """<dE/dH, dH> = <gradients, dweights> along random directions, dH by central differences."""
    rng, r, batch = problem(len(lengths), lengths, activation, np.float64)
    states = run(r, batch)
    D = rng.normal(size=states.H.shape)
    g = through_time(r, batch, states, D.copy(), lookback=None, washout=0)
    ways = {
        name: rng.normal(size=v.shape)
        for name, v in {"W": r.W, "W_rec": r.W_rec.data, "bias": r.bias, "leak": r.leak}.items()
    }
    e = 1e-7
    ahead, behind = (
        run(
            r.with_weights(
                W=r.W + s * ways["W"],
                W_rec=r.W_rec.data + s * ways["W_rec"],
                bias=r.bias + s * ways["bias"],
                leak=r.leak + s * 1e-2 * ways["leak"],
            ),
            batch,
        ).H
        for s in (e, -e)
    )
    along = np.vdot(D, (ahead - behind) / (2 * e))
    found = sum(np.vdot(getattr(g, k), way * (1e-2 if k == "leak" else 1)) for k, way in ways.items())
    assert found == pytest.approx(along, rel=1e-5, abs=1e-5 * np.abs(D).sum())


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_float32_partial_sums_are_added_in_float64(activation):
    """Over thousands of frames the float32 gradient stays close to the float64 one, in any order of sums."""
    lengths = [700, 699, 400, 257, 256, 255, 1]
    (_, r, b64), (_, _, b32) = (problem(9, lengths, activation, d) for d in (np.float64, np.float32))
    D = np.random.default_rng(0).normal(size=(sum(lengths), 6)) + 0.5
    exact = through_time(r, b64, run(r, b64), D.copy(), lookback=None, washout=0)
    short = through_time(r, b32, run(r, b32), D.astype(np.float32), lookback=None, washout=0)
    for name in ("W", "W_rec", "bias", "leak"):
        a, b = getattr(exact, name), getattr(short, name)
        assert b.dtype == np.float64
        assert np.abs(a - b).max() <= 2e-4 * np.abs(a).max(), name


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    N=st.integers(1, 70),
    activation=st.sampled_from(list(ACTIVATIONS)),
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=2 * LANES + 3),
    feedback=st.booleans(),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_the_gradient_of_a_batch_is_the_sum_over_its_sequences(seed, N, activation, lengths, feedback, dtype):
    rng = np.random.default_rng(seed)
    w = networks.contracting(rng, N=N, feedback=feedback, bias=bool(seed % 2))
    h0 = rng.normal(size=N) if seed % 3 == 0 else None
    r = Reservoir(**w, activation=activation, initial_state=h0)
    X = [rng.normal(size=(n, len(w["W"]))) for n in lengths]
    T = [rng.normal(size=(n, 2)) for n in lengths] if feedback else None
    batch = pack(X, dtype, T)
    states = run(r, batch)
    D = rng.normal(size=states.H.shape).astype(dtype)
    g, again = (through_time(r, batch, states, D.copy(), lookback=7, washout=2) for _ in range(2))
    one_by_one = None
    for s, i in enumerate(batch.order):
        one = pack([X[i]], np.float64, None if T is None else [T[i]])
        part = through_time(r, one, run(r, one), D[batch.rows(s)].astype(np.float64), lookback=7, washout=2)
        if one_by_one is None:
            one_by_one = part
        else:
            one_by_one += part
    for name in NAMES:
        a, b = getattr(g, name), getattr(one_by_one, name)
        assert (a is None) == (b is None)
        if b is not None:
            close = 1e3 * np.finfo(dtype).eps * max(np.abs(b).max(initial=0), np.sqrt(sum(lengths)))
            np.testing.assert_allclose(a, b, rtol=0, atol=close)
            np.testing.assert_array_equal(a, getattr(again, name))


def test_the_gradient_of_few_sequences_is_their_sum_to_rounding():
    rng, r, batch = problem(3, [9, 4, 7], "tanh", np.float64)
    D = rng.normal(size=(20, 6))
    whole = through_time(r, batch, run(r, batch), D.copy(), lookback=2, washout=1)
    total = dict.fromkeys(("W", "W_rec", "bias", "leak"), 0)
    for s in range(3):
        one = pack([batch.X[batch.rows(s)]], np.float64)
        g = through_time(r, one, run(r, one), D[batch.rows(s)].copy(), lookback=2, washout=1)
        total = {name: total[name] + getattr(g, name) for name in total}
    for name, value in total.items():
        np.testing.assert_allclose(getattr(whole, name), value, rtol=1e-10, atol=1e-12)


# One long sequence in chunks

LONG = LANES * MIN_CHUNK_STEPS * 3


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    activation=st.sampled_from(list(ACTIVATIONS)),
    steps=st.integers(LONG, LONG + 2 * LANES),
    feedback=st.booleans(),
    N=st.integers(1, 40),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_the_way_back_in_chunks_agrees_with_step_by_step(seed, activation, steps, feedback, N, dtype):
    rng, w, h0, x, t = forgetful(seed, steps, feedback=feedback, N=N)
    r = Reservoir(**w, activation=activation, initial_state=h0)
    batch = pack([x], np.dtype(dtype), None if t is None else [t])
    D = rng.normal(size=(steps, N)).astype(dtype)
    found = run(r, batch)
    assert found.chunk
    chunks, again = (through_time(r, batch, found, D.copy(), lookback=None, washout=0) for _ in range(2))
    whole = through_time(r, batch, States(found.H, found.F, found.h0, found.X_fb), D.copy(), lookback=None, washout=0)
    for name in NAMES:
        a, b = getattr(chunks, name), getattr(whole, name)
        assert (a is None) == (b is None)
        if a is not None:
            scale = max(np.abs(b).max(initial=0), np.sqrt(steps))
            np.testing.assert_allclose(a, b, rtol=0, atol=10 * agreement(dtype) * scale)
            np.testing.assert_array_equal(a, getattr(again, name))


def test_errors_pass_through_several_chunks():
    """The way back is exact however slowly an error fades: here it crosses many chunks."""
    _, w, _, x, _ = forgetful(1, chunk_count("float64") * 20 + 3, N=5)
    w["W_rec"] = np.diag([0.999, -0.99, 0.9, 0.5, 0.0])
    w["leak"] = np.ones(5)
    r = Reservoir(**w, activation="identity")
    batch = pack([x], "float64")
    found = run(r, batch)
    D = np.zeros((len(x), 5))
    D[-1] = 1
    in_chunks = States(found.H, found.F, found.h0, None, 20)
    a = through_time(r, batch, in_chunks, D.copy(), lookback=None, washout=0)
    b = through_time(r, batch, found, D.copy(), lookback=None, washout=0)
    assert found.chunk == 0
    for name in ("W", "W_rec", "bias", "leak"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-10, atol=1e-10)


# Gradients of several batches


def test_gradients_are_added_in_place_and_missing_ones_stay_missing():
    first = Gradients(np.ones((2, 3)), np.arange(4.0), None, np.ones(3), np.zeros(3))
    W = first.W
    first += Gradients(np.full((2, 3), 2.0), np.ones(4), None, np.ones(3), np.ones(3))
    assert first.W is W
    np.testing.assert_array_equal(first.W, 3)
    np.testing.assert_array_equal(first.W_rec, [1, 2, 3, 4])
    np.testing.assert_array_equal(first.bias, 2)
    np.testing.assert_array_equal(first.leak, 1)
    assert first.W_fb is None
