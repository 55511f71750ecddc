"""The gradient through an unrolled closed loop against complex steps of a slow one."""

from __future__ import annotations

import numpy as np
import pytest

from echolearn import Reservoir
from echolearn.gradients.closed_loop import Series, one_step, several_steps
from echolearn.readout.orthogonal import OrthogonalFactors
from echolearn.sequences.batch import pack
from echolearn.states.closed_loop import Ring
from reference.closed_loop import driven_states, loop_loss, one_step_loss, readout
from reference.gradients import complex_step

CASES = [("tanh", True, 0), ("tanh", False, 2), ("sigmoid", True, 1), ("identity", True, 0)]


def example(activation, exogenous, seed=0):
    """Return a small reservoir and two series: a rotation with noise, and exogenous columns."""
    rng = np.random.default_rng(seed)
    reservoir = Reservoir.random(
        2 + exogenous, 7, connections=3, input_scaling=0.6, bias_scaling=0.4, leak=(0.3, 0.9), activation=activation,
        random_state=seed,
    )  # fmt: skip
    X, T = [], []
    for steps in (31, 24):
        t = np.arange(steps + 1)
        z = np.stack([np.sin(0.4 * t), np.cos(0.4 * t)], axis=1) + 0.2 * rng.standard_normal((steps + 1, 2))
        X.append(np.hstack([z[:-1], rng.standard_normal((steps, exogenous))]))
        T.append(z[1:])
    return reservoir, X, T


def differences(reservoir, found, loss_of):
    """Return the largest difference of each gradient from complex steps, relative to its largest entry."""
    w = {"W": reservoir.W, "W_rec": reservoir.W_rec.toarray(), "bias": reservoir.bias, "leak": reservoir.leak}
    rows, columns = reservoir.W_rec.tocoo().row, reservoir.W_rec.tocoo().col
    places = {name: list(np.ndindex(w[name].shape)) for name in ("W", "bias", "leak")}
    places["W_rec"] = list(zip(rows, columns, strict=True))
    out = {}
    for name, where in places.items():
        expected = np.array([complex_step(w, name, index, loss_of) for index in where])
        ours = np.asarray(getattr(found, name)).ravel()
        out[name] = np.abs(ours - expected).max() / np.abs(expected).max()
    return out


@pytest.mark.parametrize(("activation", "direct", "exogenous"), CASES)
@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_gradient_through_the_loop_is_exact(activation, direct, exogenous, k):
    reservoir, X, T = example(activation, exogenous)
    how = {"mu": 0.03, "washout": 4, "direct": direct}
    series = [Series(pack([x], np.float64), t, 4, direct) for x, t in zip(X, T, strict=True)]
    value, found = several_steps(reservoir, series, how["mu"], k)

    def loss_of(w):
        return loop_loss(w, X, T, k=k, activation=activation, **how)

    as_drawn = {"W": reservoir.W, "W_rec": reservoir.W_rec.toarray(), "bias": reservoir.bias, "leak": reservoir.leak}
    assert value == pytest.approx(loss_of(as_drawn), rel=1e-10)
    worst = differences(reservoir, found, loss_of)
    assert max(worst.values()) < 1e-8, worst


@pytest.mark.parametrize(("activation", "direct", "exogenous"), CASES)
def test_the_gradient_of_one_step_is_exact(activation, direct, exogenous):
    reservoir, X, T = example(activation, exogenous)
    how = {"mu": 0.03, "washout": 4, "direct": direct}
    series = [Series(pack([x], np.float64), t, 4, direct) for x, t in zip(X, T, strict=True)]
    value, found = one_step(reservoir, series, how["mu"])

    def loss_of(w):
        return one_step_loss(w, X, T, activation=activation, **how)

    as_drawn = {"W": reservoir.W, "W_rec": reservoir.W_rec.toarray(), "bias": reservoir.bias, "leak": reservoir.leak}
    assert value == pytest.approx(loss_of(as_drawn), rel=1e-10)
    assert max(differences(reservoir, found, loss_of).values()) < 1e-8


def test_leaving_out_the_motion_of_the_readout_would_be_wrong(monkeypatch):
    """For several steps the envelope theorem does not hold: without the adjoint of U the gradient is another one."""
    reservoir, X, T = example("tanh", 0)
    series = [Series(pack([x], np.float64), t, 4, True) for x, t in zip(X, T, strict=True)]
    _, exact = several_steps(reservoir, series, 0.03, 5)
    monkeypatch.setattr(OrthogonalFactors, "adjoint", lambda self, mu, P: (0 * P, np.zeros((self.n, P.shape[1]))))
    _, without = several_steps(reservoir, series, 0.03, 5)
    cosine = np.vdot(exact.W, without.W) / np.linalg.norm(exact.W) / np.linalg.norm(without.W)
    assert cosine < 0.99


def ring_loss(w, Z, *, size, reach, mu, k, washout):
    """Return L of loops around a ring, written point by point: every block sees its points and their neighbours."""
    steps, dims = Z.shape
    first = range(0, dims, size)

    def sees(x, begin):
        return np.array([x[(begin - reach + i) % dims] for i in range(size + 2 * reach)])

    X = {b: np.array([sees(z, b) for z in Z[:-1]]) for b in first}
    H = {b: driven_states(w, X[b], "tanh") for b in first}
    T = {b: Z[1:, b : b + size] for b in first}
    U, _ = readout(*(np.concatenate([part[b][washout:] for b in first]) for part in (H, X, T)), mu, True)
    total = 0.0
    for s in range(max(washout, 1), steps - 1 - k + 1, k):
        h, x = {b: H[b][s - 1] for b in first}, list(Z[s])
        for j in range(k):
            new = list(x)
            for b in first:
                v = sees(x, b)
                h[b] = (1 - w["leak"]) * h[b] + w["leak"] * np.tanh(w["W"].T @ v + w["W_rec"] @ h[b] + w["bias"])
                new[b : b + size] = U.T @ np.concatenate([h[b], v, [1.0]])
            x = new
            total += ((np.array(x) - Z[s + j + 1]) ** 2).sum() / k
    return total


@pytest.mark.parametrize(("size", "reach", "k"), [(1, 1, 3), (2, 1, 2), (1, 2, 1), (3, 0, 4)])
def test_the_gradient_through_loops_around_a_ring_is_exact(size, reach, k):
    rng = np.random.default_rng(4)
    t, place = np.arange(22)[:, None], np.arange(6)
    Z = np.sin(0.4 * t + 2 * np.pi * place / 6) + 0.2 * rng.standard_normal((22, 6))
    reservoir = Reservoir.random(
        size + 2 * reach, 5, connections=3, input_scaling=0.6, bias_scaling=0.4, leak=(0.3, 0.9), random_state=0
    )
    ring = Ring.of(6, size, size + 2 * reach)
    T = pack(np.split(Z[1:], 6 // size, axis=1), np.float64).X
    series = Series(pack([Z[:-1, columns] for columns in ring.columns], np.float64), T, 4, True)
    how = {"size": size, "reach": reach, "mu": 0.03, "k": k, "washout": 4}
    value, found = several_steps(reservoir, [series], 0.03, k)
    as_drawn = {"W": reservoir.W, "W_rec": reservoir.W_rec.toarray(), "bias": reservoir.bias, "leak": reservoir.leak}
    assert value == pytest.approx(ring_loss(as_drawn, Z, **how), rel=1e-10)
    worst = differences(reservoir, found, lambda w: ring_loss(w, Z, **how))
    assert max(worst.values()) < 1e-8, worst
