"""E and its gradients against complex steps through a slow network, on many random draws."""

import itertools

import numpy as np
import pytest

import networks
import reference as ref
import toys
from echolearn.gradients import loss_and_gradients
from echolearn.reservoir import Reservoir
from echolearn.reservoir._activations import ACTIVATIONS

LOOKBACKS = [None, 1, 2, 3, 7]
DRAWS = 240  # each 20 of them have every activation with every look-back; the rest is random


def draw(seed, both_directions=False):
    """Draw a network, sequences with targets, and settings: w, reservoir, X, T, mu, how, and how for the witness."""
    rng = np.random.default_rng([2, seed, both_directions])
    grid = list(itertools.product(ACTIVATIONS, LOOKBACKS))
    activation, lookback = grid[seed % len(grid)]
    n_out = int(rng.integers(1, 4))
    how = {
        "direct": bool(rng.integers(2)),
        "washout": int(rng.integers(0, 3)),
        "lookback": lookback,
        "targets": str(rng.choice(["all", "last"])),
    }
    bias, backward = bool(rng.integers(2)), None
    if both_directions:
        w, backward = networks.two_directions(rng, N=int(rng.integers(2, 7)), n_out=n_out, bias=bias)
    else:
        w = ref.network(rng, n_out=n_out, feedback=bool(rng.integers(2)), bias=bias)
    lengths = rng.integers(how["washout"] + 1, 15, rng.choice([1, 2, 3, 5, 12]))
    X = [rng.normal(size=(n, len(w["W"]))) for n in lengths]
    T = [rng.normal(size=(n, n_out)) for n in lengths]
    h0 = rng.normal(size=w["W"].shape[1]) if rng.integers(2) else None
    mu = 10.0 ** rng.uniform(-4, 1)
    if rng.integers(4) == 0:  # classes, as rows with a single 1
        T = [np.eye(n_out)[rng.integers(0, n_out, t.shape[:-1])] for t in T]
    reservoir = Reservoir(**w, activation=activation, initial_state=h0, backward=backward)
    return w, reservoir, X, T, mu, how


def build(w, activation):
    return Reservoir(**w, activation=activation)


@pytest.mark.parametrize("tens", range(DRAWS // 10))
def test_the_exact_gradient_is_the_derivative_of_the_loss(tens):
    compare_with_complex_steps(tens, both_directions=False)


@pytest.mark.parametrize("tens", range(4))
def test_the_exact_gradient_of_both_directions_is_the_derivative_of_the_loss(tens):
    compare_with_complex_steps(tens, both_directions=True)


def compare_with_complex_steps(tens, both_directions, weighted=False):
    """Compare the loss and every derivative of ten draws with the slow network."""
    for seed in range(10 * tens, 10 * tens + 10):
        w, r, X, T, mu, how = draw(seed, both_directions)
        counts = draw_weights(seed, T) if weighted else None
        found = loss_and_gradients(r, X, T, ridge=mu, sample_weight=counts, **how)

        def witness(moved, r=r, X=X, T=T, mu=mu, how=how, counts=counts):
            h0, backward = r.initial_state, r.backward
            return ref.loss(moved, X, T, r.activation, ridge_mu=mu, h0=h0, backward=backward, counts=counts, **how)

        assert found.loss == pytest.approx(witness(w).real, rel=1e-9), (seed, how)
        for name, values in w.items():
            derivative = getattr(found, f"dE_d{name}")
            if values is None:
                assert derivative is None
                continue
            true = np.zeros_like(values)
            for place in np.ndindex(*values.shape):
                if name != "W_rec" or values[place] != 0:
                    true[place] = ref.complex_step(w, name, place, witness)
            derivative = derivative.toarray() if name == "W_rec" else derivative
            scale = max(np.abs(true).max(), 1e-6)
            assert np.abs(derivative - true).max() <= 1e-8 * scale, (seed, name, r.activation, how)


def test_the_draws_have_every_setting():
    draws = [draw(seed) for seed in range(DRAWS)]
    for key, values in {
        "targets": ["all", "last"],
        "direct": [True, False],
        "washout": [0, 1, 2],
        "lookback": LOOKBACKS,
    }.items():
        assert {how[key] for *_, how in draws} == set(values)
    assert {len(X) for _, _, X, *_ in draws} == {1, 2, 3, 5, 12}
    assert {r.initial_state is None for _, r, *_ in draws} == {True, False}
    assert {r.W_fb is None for _, r, *_ in draws} == {True, False}


def test_the_gradient_of_both_directions_agrees_with_central_differences():
    """A second witness, which shares no loop with the first: the loss itself at moved weights."""
    X, T = toys.echoes(sequences=8)
    rng = np.random.default_rng(3)
    w, backward = networks.two_directions(rng, N=8, n_in=2)
    r = Reservoir(**w, activation="tanh", backward=backward)
    how = {"ridge": 0.1, "washout": 1}
    found = loss_and_gradients(r, X, T, **how)
    for name, value in r.weights().items():
        way, h = rng.normal(size=value.shape), 1e-6
        if name == "leak":
            way, h = -np.abs(way), 1e-7 * value.min()  # never above 1
        up, down = (
            loss_and_gradients(r.with_weights(**{name: value + s * h * way}), X, T, **how).loss for s in (1, -1)
        )
        derivative = getattr(found, f"dE_d{name}")
        derivative = derivative.data if name == "W_rec" else derivative
        assert np.vdot(derivative, way) == pytest.approx((up - down) / (2 * h), rel=1e-5), name


def test_the_gradient_keeps_to_the_pattern_of_W_rec():
    rng = np.random.default_rng(0)
    w = ref.network(rng, N=6)
    out = loss_and_gradients(build(w, "tanh"), rng.normal(size=(9, len(w["W"]))), rng.normal(size=9), ridge=0.1)
    dense = out.dE_dW_rec.toarray()
    assert (dense[w["W_rec"] == 0] == 0).all()
    assert (dense[w["W_rec"] != 0] != 0).all()


@pytest.mark.parametrize("mu", [1e-6, 0.1])  # statistics in float64, in float32
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


def test_numbers_that_do_not_fit_are_refused():
    rng = np.random.default_rng(6)
    r, x, t = Reservoir(W=rng.normal(size=(2, 3)), W_rec=np.eye(3) * 0.5), rng.normal(size=(6, 2)), np.ones(6)
    with pytest.raises(ValueError, match=r"ridge=-1; expected a number >= 0"):
        loss_and_gradients(r, x, t, ridge=-1)
    with pytest.raises(ValueError, match=r"washout=6, but sequence 0 has 6 steps"):
        loss_and_gradients(r, x, t, ridge=1, washout=6)
    with pytest.raises(ValueError, match=r"singular and ridge=0.*Give a positive ridge"):
        loss_and_gradients(r, np.zeros((6, 2)), t, ridge=0)


def test_gradients_that_are_not_finite_are_refused():
    """A chain of units in which states grow by 1e80 from one to the next: sums of states are finite, gradients not."""
    chain = np.diag(np.full(4, 1e80), -1)
    r = Reservoir(W=np.eye(1, 5) * 1e-310, W_rec=chain, activation="identity", leak=np.ones(5))
    x, t = np.random.default_rng(0).normal(size=(2, 30, 1))
    with pytest.raises(ValueError, match="gradients are not finite"):
        loss_and_gradients(r, 1e5 * x, t, ridge=1e-6)


@pytest.mark.parametrize(
    "wrong",
    [{"gradient": "exat"}, {"targets": "lst"}, {"washout": -1}, {"lookback": 0}, {"ridge": np.nan}],
)
def test_unknown_settings_are_refused(wrong):
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
    ("X", "T", "message"),
    [
        ([np.ones((4, 2))], [], "T has 0 entries, but X has 1 sequences"),
        (np.ones((4, 2)), np.ones(3), r"T of sequence 0 has shape \(3,\); expected \(4, outputs\)"),
        (np.ones((4, 2)), np.array([0, 1, np.nan, 0]), "T .*holds NaN"),
        (np.ones((4, 3)), np.ones(4), "X has 3 features, but this network is expecting 2 features"),
        ([], [], "X is an empty list"),
    ],
)
def test_data_that_do_not_fit_are_refused(X, T, message):
    reservoir = Reservoir(W=np.ones((2, 3)), W_rec=np.eye(3) * 0.5)
    with pytest.raises(ValueError, match=message):
        loss_and_gradients(reservoir, X, T, ridge=1.0)


def draw_weights(seed, T):
    """Return weights in the form of T, about a third of them 0, at least one not."""
    rng = np.random.default_rng([3, seed])
    w = [rng.choice([0.0, 0.3, 1.0, 2.0], size=len(t)) for t in T]
    w[0] = np.ones_like(w[0])
    return w


@pytest.mark.parametrize("both_directions", [False, True])
@pytest.mark.parametrize("tens", range(6))
def test_the_gradient_of_weighted_targets_is_the_derivative_of_the_weighted_loss(tens, both_directions):
    compare_with_complex_steps(tens, both_directions, weighted=True)


def test_targets_of_weight_0_do_not_exist():
    """Sequences of weight 0 are as if left out, and a weight of 2 as a sequence that is there twice."""
    rng = np.random.default_rng(0)
    r = Reservoir(**ref.network(rng, N=6, n_in=2), activation="tanh")
    X = [rng.normal(size=(n, 2)) for n in (9, 7, 12, 5)]
    T = [rng.normal(size=(len(x), 2)) for x in X]
    w = [1.0, 0.0, 2.0, 1.0]
    T_missing = [T[0], np.full_like(T[1], np.nan), *T[2:]]
    found = loss_and_gradients(r, X, T_missing, ridge=0.1, sample_weight=w)
    order = [0, 2, 2, 3]
    expected = loss_and_gradients(r, [X[i] for i in order], [T[i] for i in order], ridge=0.1)
    assert found.loss == pytest.approx(expected.loss)
    np.testing.assert_allclose(found.readout, expected.readout, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.dE_dW, expected.dE_dW, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.dE_dW_rec.data, expected.dE_dW_rec.data, rtol=1e-9, atol=1e-12)


def test_weights_of_1_change_no_bit():
    rng = np.random.default_rng(0)
    r = Reservoir(**ref.network(rng, N=6, n_in=2), activation="tanh")
    X, T = ([rng.normal(size=(n, 2)) for n in (9, 7, 12)] for _ in range(2))
    plain = loss_and_gradients(r, X, T, ridge=0.1)
    ones = loss_and_gradients(r, X, T, ridge=0.1, sample_weight=[np.ones(len(x)) for x in X])
    assert plain.loss == ones.loss
    np.testing.assert_array_equal(plain.dE_dW, ones.dE_dW)
