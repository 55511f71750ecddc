"""The iterative readout against the direct one, and its sketch against G itself."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import toys
from echolearn import ESNClassifier, ESNRegressor
from echolearn.modelfile import checkpoint as checkpoints
from echolearn.readout import conjugate_gradients as iterative
from echolearn.readout.collect import Task, collect, observed
from echolearn.readout.ridge import choose_ridge, loss, solve
from echolearn.readout.statistics import column_squares, statistics_of
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset

X, VALUES = toys.echoes(sequences=12, steps=(30, 60))
DATA = Dataset(X, VALUES, None, True, np.dtype("float64"))
RESERVOIR = Reservoir.random(2, 20, connections=4, bias_scaling=0.1, leak=(0.2, 0.9), random_state=0)


def rng():
    return np.random.default_rng(0)


def problem(seed, frames, width, n_out):
    """H_c with columns of very different size and a mean, and targets."""
    r = np.random.default_rng(seed)
    scale = 10.0 ** r.uniform(-2, 1, width)
    H = (r.normal(size=(frames, width)) + r.normal(size=width)) * scale
    return np.hstack([H, np.ones((frames, 1))]), r.normal(size=(frames, n_out))


def to_the_end(H_c, T, mu, U, inverse, **how):
    R = H_c.T @ (T - H_c @ U) - iterative.penalised(U, mu)
    E = ((H_c @ U - T) ** 2).sum() + mu * (U[:-1] ** 2).sum()
    start = iterative.Way(U, R, inverse(R), E)
    at = iterative.conjugate_gradients(lambda D: H_c.T @ (H_c @ D), start, inverse, mu, **how)
    return at.U, at.E, at.count


PROBLEMS = {
    "seed": st.integers(0, 2**16),
    "frames": st.integers(30, 80),
    "width": st.integers(1, 20),
    "n_out": st.integers(1, 4),
    "mu": st.sampled_from([1e-2, 1.0, 30.0]),
}


@settings(max_examples=40, deadline=None)
@given(**PROBLEMS, rank=st.integers(1, 25), warm=st.booleans())
@example(seed=0, frames=30, width=6, n_out=2, mu=0.01, rank=1, warm=True)  # directions that lean on each other
def test_conjugate_gradients_come_to_the_direct_solution(seed, frames, width, n_out, mu, rank, warm):
    H_c, T = problem(seed, frames, width, n_out)
    s = statistics_of(H_c, T, n_out)
    expected = solve(s, mu, intercept=True)
    U = np.random.default_rng(seed).normal(size=expected.shape) * warm
    inverse = iterative.sketch(H_c[: frames // 2], frames, rank).inverse(mu)
    found, E, _ = to_the_end(H_c, T, mu, U, inverse, iterations=200, tolerance=1e-14)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    np.testing.assert_allclose(E, loss(s, expected, mu, intercept=True), rtol=1e-8)


@settings(max_examples=40, deadline=None)
@given(**PROBLEMS)
def test_a_sketch_of_every_frame_and_direction_is_the_gram_matrix(seed, frames, width, n_out, mu):
    H_c, T = problem(seed, frames, width, n_out)
    s = statistics_of(H_c, T, n_out)
    whole = iterative.sketch(H_c, frames, rank=width)
    np.testing.assert_allclose(whole.V.T @ whole.V, np.eye(len(whole.values)), atol=1e-8)
    np.testing.assert_allclose(whole.square * width, column_squares(s).sum(), rtol=1e-10)
    if len(whole.values) == width:  # none was too weak to be told from rounding
        U = whole.inverse(mu)(s.Q)
        expected = solve(s, mu, intercept=True)
        np.testing.assert_allclose(U, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def test_both_ways_to_a_sketch_agree():
    """Fewer frames than columns, or more: the same directions."""
    H_c, _ = problem(0, 60, 60, 1)
    wide, tall = iterative.sketch(H_c, 60, 10), iterative.sketch(np.vstack([H_c, H_c]), 60, 10)
    np.testing.assert_allclose(wide.values, tall.values, rtol=1e-8)
    np.testing.assert_allclose(np.abs(np.sum(wide.V * tall.V, axis=0)), 1, rtol=1e-6)


def test_steps_stop_when_they_no_longer_pay():
    H_c, T = problem(1, 80, 20, 2)
    inverse = iterative.sketch(H_c[:40], 80, 5).inverse(1.0)
    U = np.zeros((21, 2))
    few = to_the_end(H_c, T, 1.0, U, inverse, iterations=200, tolerance=1e-2)
    many = to_the_end(H_c, T, 1.0, U, inverse, iterations=200, tolerance=1e-12)
    assert few[2] < many[2]
    assert many[1] < few[1] < many[1] * 1.1


@pytest.mark.parametrize("task", [Task(), Task(washout=3), Task(lookback=4, targets="last"), Task(direct=False)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_streamed_readout_is_the_direct_one(task, dtype, monkeypatch):
    monkeypatch.setattr(iterative, "ITERATIONS", 100)
    usual = iterative.conjugate_gradients.__kwdefaults__
    to_the_last = {**usual, "iterations": 100, "tolerance": 1e-13}
    monkeypatch.setattr(iterative.conjugate_gradients, "__kwdefaults__", to_the_last)
    data = Dataset(X, VALUES, None, True, np.dtype(dtype))
    expected = solve(collect(RESERVOIR, data, task), 0.1, intercept=True)
    cold = iterative.solve(RESERVOIR, data, task, 0.1, rng())
    warm = iterative.solve(RESERVOIR, data, task, 0.1, rng(), np.ones_like(expected))
    near = 1e-2 if dtype == "float32" else 1e-5
    np.testing.assert_allclose(cold, expected, atol=near * np.abs(expected).max())
    np.testing.assert_allclose(warm, expected, atol=near * np.abs(expected).max())


@pytest.mark.parametrize("learn", ["none", "both"])
def test_a_readout_goes_on_from_its_checkpoint(learn, tmp_path, monkeypatch):
    """Stopped after every second pass: the bits of a fit that was left alone."""
    monkeypatch.setattr(iterative, "FROM", 20)
    five = {**iterative.conjugate_gradients.__kwdefaults__, "iterations": 5, "tolerance": -1.0}
    monkeypatch.setattr(iterative.conjugate_gradients, "__kwdefaults__", five)
    esn = ESNRegressor(20, connections=4, learn=learn, epochs=2, ridge=0.1, random_state=0)
    straight = esn.fit(X, VALUES)._U
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    keep, stops = iterative._keep, []

    def keep_and_stop(checkpoint, whose, at):
        keep(checkpoint, whose, at)
        if at.count % 2 == 0:
            stops.append(at.count)
            raise RuntimeError

    monkeypatch.setattr(iterative, "_keep", keep_and_stop)
    again = clone(esn)
    while not hasattr(again, "_U"):
        with suppress(RuntimeError):
            again.fit(X, VALUES, checkpoint=tmp_path)
    assert stops == [2, 4]
    np.testing.assert_array_equal(again._U, straight)


def test_the_way_of_other_weights_is_not_gone_on_from(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    about = iterative.sketch(iterative.sample(RESERVOIR, DATA, Task(), rng())[0], DATA.lengths.sum())
    other = RESERVOIR.with_weights(W=2 * RESERVOIR.W)

    def fitted(reservoir, checkpoint):
        return iterative.fit(reservoir, DATA, Task(), 0.1, about, checkpoint=checkpoint)

    fitted(other, checkpoints.Checkpoint(tmp_path, {}))
    U = fitted(RESERVOIR, checkpoints.Checkpoint(tmp_path, {}))
    np.testing.assert_array_equal(U, fitted(RESERVOIR, None))


@pytest.mark.parametrize(
    "task", [Task(), Task(washout=3), Task(lookback=4, targets="last"), Task(pooling="mean"), Task(pooling=2)]
)
def test_rows_are_counted_as_they_are_seen(task):
    data = DATA if task.pooling is None else Dataset(X, [v[0] for v in VALUES], None, False, np.dtype("float64"))
    seen = [len(observed(RESERVOIR, task, data.batch([i]))[1]) for i in range(len(X))]
    assert iterative.rows(data, task).tolist() == seen


def test_a_sample_holds_the_rows_asked_for_and_no_row_twice():
    H_c, T = iterative.sample(RESERVOIR, DATA, Task(), rng(), frames=50)
    assert 50 <= len(H_c) == len(T) <= 50 + len(X)
    assert len(np.unique(H_c, axis=0)) == len(H_c)
    everything, _ = iterative.sample(RESERVOIR, DATA, Task(), rng(), frames=10_000)
    assert len(everything) == DATA.lengths.sum()


def test_the_ridge_of_a_whole_sample_is_that_of_the_sums():
    path = 10.0 ** np.arange(-4.0, 4)
    H_c, T = iterative.sample(RESERVOIR, DATA, Task(), rng(), frames=10_000)
    held = observed(RESERVOIR, Task(), Dataset(*toys.echoes(seed=1), None, True, np.dtype("float64")).batch(range(8)))[
        :2
    ]
    s, h = statistics_of(H_c, T, 2), statistics_of(*held, 2)
    for sums, rows in ((None, None), (h, held)):
        expected, _ = choose_ridge(s, path, intercept=True, held_out=sums)
        assert iterative.choose_ridge((H_c, T), path, 2, rows) == expected


def test_states_that_explode_are_told():
    H_c, _ = problem(0, 30, 5, 1)
    H_c[3, 2] = np.inf
    with pytest.raises(FloatingPointError, match="NaN or infinity"):
        iterative.sketch(H_c, 30)


FIXED = {**toys.FAST, "hidden_units": 30, "learn": "none", "validation_fraction": 0.2}


@pytest.mark.parametrize("ridge", ["auto", 0.1, (0.01, 1.0)])
def test_a_large_regressor_comes_close_to_the_direct_one(ridge, monkeypatch):
    direct = ESNRegressor(**FIXED, ridge=ridge).fit(X, VALUES)
    monkeypatch.setattr(iterative, "FROM", 0)
    large = ESNRegressor(**FIXED, ridge=ridge).fit(X, VALUES)
    assert not np.array_equal(large._U, direct._U)
    assert abs(large.score(X, VALUES) - direct.score(X, VALUES)) < 0.02


def test_a_large_classifier_comes_close_to_the_direct_one(monkeypatch):
    y = toys.labels(sequences=12, steps=(30, 60))[1]
    direct = ESNClassifier(**FIXED).fit(X, y)
    monkeypatch.setattr(iterative, "FROM", 0)
    large = ESNClassifier(**FIXED).fit(X, y)
    assert abs(large.score(X, y) - direct.score(X, y)) < 0.02
