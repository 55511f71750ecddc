"""The heart: E and its gradients against complex steps through a slow network, on many random draws."""

import itertools

import numpy as np
import pytest

import reference as ref
from echolearn.gradients.exact import error_wrt_states
from echolearn.gradients.loss import loss_and_gradients
from echolearn.reservoir.reservoir import Reservoir

ACTIVATIONS = ["sigmoid", "tanh", "relu", "identity"]
LOOKBACKS = [None, 1, 2, 3, 7]
DRAWS = 240  # the first 20 go through every activation with every lookback, then chance takes over


def draw(seed):
    rng = np.random.default_rng([2, seed])
    grid = list(itertools.product(ACTIVATIONS, LOOKBACKS))
    activation, lookback = grid[seed % len(grid)]
    pooling = [None, None, "mean", "last", 2, 4][rng.integers(6)]
    n_out = int(rng.integers(1, 4))
    how = {
        "direct": bool(rng.integers(2)),
        "washout": int(rng.integers(0, 3)),
        "lookback": lookback,
        "targets": "all" if pooling else str(rng.choice(["all", "last"])),
        "pooling": pooling,
    }
    w = ref.network(rng, n_out=n_out, feedback=pooling is None and bool(rng.integers(2)), bias=bool(rng.integers(2)))
    lengths = rng.integers(how["washout"] + 1, 15, rng.integers(1, 6))
    X = [rng.normal(size=(n, len(w["W"]))) for n in lengths]
    T = [rng.normal(size=(n_out,) if pooling else (n, n_out)) for n in lengths]
    h0 = rng.normal(size=w["W"].shape[1]) if rng.integers(2) else None
    mu = 10.0 ** rng.uniform(-4, 1)
    if rng.integers(4) == 0:  # classes, as rows with a single 1
        T = [np.eye(n_out)[rng.integers(0, n_out, t.shape[:-1])] for t in T]
    return w, X, T, activation, h0, mu, how


def build(w, activation, h0=None):
    return Reservoir(**w, activation=activation, initial_state=h0)


@pytest.mark.parametrize("tens", range(DRAWS // 10))
def test_exact_gradient_is_the_derivative_of_the_loss(tens):
    for seed in range(10 * tens, 10 * tens + 10):
        w, X, T, activation, h0, mu, how = draw(seed)
        mine = loss_and_gradients(build(w, activation, h0), X, T, ridge=mu, **how)

        def witness(moved, X=X, T=T, activation=activation, mu=mu, h0=h0, how=how):
            return ref.loss(moved, X, T, activation, ridge_mu=mu, h0=h0, **how)

        assert mine.loss == pytest.approx(witness(w).real, rel=1e-9), (seed, how)
        for name, values in w.items():
            derivative = getattr(mine, f"dE_d{name}")
            if values is None:
                assert derivative is None
                continue
            true = np.zeros_like(values)
            for place in np.ndindex(*values.shape):
                if name != "W_rec" or values[place] != 0:
                    true[place] = ref.complex_step(w, name, place, witness)
            derivative = derivative.toarray() if name == "W_rec" else derivative
            scale = max(np.abs(true).max(), 1e-6)
            assert np.abs(derivative - true).max() <= 1e-8 * scale, (seed, name, activation, how)


def test_draws_cover_what_they_should():
    hows = [draw(seed) for seed in range(DRAWS)]
    for key, values in {
        "pooling": [None, "mean", "last", 2, 4],
        "targets": ["all", "last"],
        "direct": [True, False],
        "washout": [0, 1, 2],
        "lookback": LOOKBACKS,
    }.items():
        assert {d[6][key] for d in hows} == set(values)
    assert {len(d[1]) for d in hows} == {1, 2, 3, 4, 5}
    assert {d[4] is None for d in hows} == {d[0]["W_fb"] is None for d in hows} == {True, False}


def test_gradient_keeps_to_the_pattern_of_W_rec():
    rng = np.random.default_rng(0)
    w = ref.network(rng, N=6)
    out = loss_and_gradients(build(w, "tanh"), rng.normal(size=(9, len(w["W"]))), rng.normal(size=9), ridge=0.1)
    dense = out.dE_dW_rec.toarray()
    assert (dense[w["W_rec"] == 0] == 0).all()
    assert (dense[w["W_rec"] != 0] != 0).all()


@pytest.mark.parametrize("mu", [1e-6, 0.1])  # sums in float64, in float32
def test_float32_is_close_to_float64(mu):
    rng = np.random.default_rng(1)
    w = ref.network(rng, N=6, n_in=3)
    X = [rng.normal(size=(n, 3)) for n in (40, 25)]
    T = [rng.normal(size=(n, 2)) for n in (40, 25)]
    for activation in ("sigmoid", "tanh"):
        a, b = (loss_and_gradients(build(w, activation), X, T, ridge=mu, dtype=d) for d in (np.float64, np.float32))
        assert b.loss == pytest.approx(a.loss, rel=1e-5)
        assert np.abs(a.dE_dW - b.dE_dW).max() <= 1e-4 * np.abs(a.dE_dW).max()
        assert np.abs(a.dE_dleak - b.dE_dleak).max() <= 1e-4 * np.abs(a.dE_dleak).max()


def test_envelope_theorem_against_eq_30():
    """dE/dH = 2 R U_h' is -A' of the paper's eq. 30, K × K matrix and all."""
    rng = np.random.default_rng(3)
    for mu in (1e-6, 1.0, 100.0):
        H, T = rng.normal(size=(5, 30)), rng.normal(size=(2, 30))
        F = np.linalg.inv(H @ H.T + mu * np.eye(5))
        A = 2 * T.T @ T @ H.T @ F - 2 * H.T @ F @ H @ T.T @ T @ H.T @ F
        U = ref.ridge(H, T, mu)
        np.testing.assert_allclose(error_wrt_states((U.T @ H - T).T, U), -A, rtol=1e-8, atol=1e-10)


def test_lists_and_single_sequences_agree_and_gradients_add_up():
    rng = np.random.default_rng(4)
    w = ref.network(rng, N=4, n_in=2)
    x, t = rng.normal(size=(12, 2)), rng.normal(size=(12, 2))
    one, listed = (loss_and_gradients(build(w, "tanh"), X, T, ridge=1.0) for X, T in [(x, t), ([x], [t])])
    assert one.loss == listed.loss
    np.testing.assert_array_equal(one.dE_dW, listed.dE_dW)
    # the same sequence twice with twice the ridge: the same U, twice E and its gradients
    twice = loss_and_gradients(build(w, "tanh"), [x, x], [t, t], ridge=2.0)
    np.testing.assert_allclose(twice.readout, one.readout, rtol=1e-10)
    np.testing.assert_allclose(twice.dE_dW, 2 * one.dE_dW, rtol=1e-9)
    np.testing.assert_allclose(twice.dE_dleak, 2 * one.dE_dleak, rtol=1e-9)


def test_arguments_are_left_as_found():
    rng = np.random.default_rng(5)
    w = ref.network(rng, N=4, n_in=2, feedback=True)
    X, T = [rng.normal(size=(9, 2)) for _ in range(3)], [rng.normal(size=(9, 2)) for _ in range(3)]
    before = [a.copy() for a in (*X, *T, *w.values())]
    for a in (*X, *T, *w.values()):
        a.flags.writeable = False
    loss_and_gradients(build(w, "tanh"), X, T, ridge=1.0, washout=2, lookback=3, targets="last")
    for old, now in zip(before, (*X, *T, *w.values()), strict=True):
        np.testing.assert_array_equal(old, now)


def test_bad_arguments_are_named():
    rng = np.random.default_rng(6)
    r, x, t = Reservoir(W=rng.normal(size=(2, 3)), W_rec=np.eye(3) * 0.5), rng.normal(size=(6, 2)), np.ones(6)
    with pytest.raises(ValueError, match=r"ridge=-1; expected a number >= 0"):
        loss_and_gradients(r, x, t, ridge=-1)
    with pytest.raises(ValueError, match=r"washout=6, but sequence 0 has 6 steps"):
        loss_and_gradients(r, x, t, ridge=1, washout=6)
    with pytest.raises(ValueError, match=r"singular and ridge=0.*Give a positive ridge"):
        loss_and_gradients(r, np.zeros((6, 2)), t, ridge=0)


@pytest.mark.parametrize(
    "wrong",
    [{"gradient": "exat"}, {"targets": "lst"}, {"pooling": "max"}, {"lookback": 0}, {"ridge": np.nan}],
)
def test_unknown_words_are_refused(wrong):
    rng = np.random.default_rng(6)
    r, x, t = (
        Reservoir(W=rng.normal(size=(2, 3)), W_rec=np.eye(3) * 0.5),
        rng.normal(size=(6, 2)),
        np.ones((6, 1)),
    )
    (name,) = wrong
    with pytest.raises(ValueError, match=name):
        loss_and_gradients(r, x, t, **{"ridge": 1.0, **wrong})


@pytest.mark.parametrize(
    ("X", "T", "words"),
    [
        ([np.ones((4, 2))], [], "T has 0 entries, but X has 1 sequences"),
        (np.ones((4, 2)), np.ones(3), r"T of sequence 0 has shape \(3,\); expected \(4, outputs\)"),
        (np.ones((4, 2)), np.array([0, 1, np.nan, 0]), "T .*holds NaN"),
        (np.ones((4, 3)), np.ones(4), "X has 3 features, but this network is expecting 2 features"),
        ([], [], "X is an empty list"),
    ],
)
def test_what_does_not_fit_is_named(X, T, words):
    reservoir = Reservoir(W=np.ones((2, 3)), W_rec=np.eye(3) * 0.5)
    with pytest.raises(ValueError, match=words):
        loss_and_gradients(reservoir, X, T, ridge=1.0)
