"""Conjugate gradients against the direct solution, and resumed between passes."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import toys
from echolearn import ESNRegressor
from echolearn.execution.threads import map_in_order
from echolearn.modelfile import checkpoint as checkpoints
from echolearn.modelfile.checkpoint import Checkpoint
from echolearn.readout import solver
from echolearn.readout import view as views
from echolearn.readout.large import conjugate_gradients as module
from echolearn.readout.large.conjugate_gradients import (
    Progress,
    conjugate_gradients,
    penalised,
    solve_iteratively,
    stream_chunks,
)
from echolearn.readout.large.sketch import make_sketch, sample_rows
from echolearn.readout.ridge import loss, solve
from echolearn.readout.statistics import collect, statistics_of
from echolearn.readout.view import Task
from echolearn.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from passes import work_on_frames
from threadpools import thread_pool

X, VALUES = toys.echoes(sequences=12, steps=(30, 60))
DATA = Dataset(X, VALUES, None, True, np.dtype("float64"))
RESERVOIR = Reservoir.random(2, 20, connections=4, bias_scaling=0.1, leak=(0.2, 0.9), random_state=0)


def rng():
    return np.random.default_rng(0)


def iterate(monkeypatch, iterations, tolerance):
    """Let conjugate gradients make so many iterations, unless one lowers the error by less than the tolerance."""
    monkeypatch.setattr(module, "MAX_SOLVER_ITERATIONS", iterations)
    usual = conjugate_gradients.__kwdefaults__
    monkeypatch.setattr(conjugate_gradients, "__kwdefaults__", {**usual, "tolerance": tolerance})


def problem(seed, frames, width, n_out):
    """Return H_c with columns of very different size and a mean, and targets."""
    r = np.random.default_rng(seed)
    scale = 10.0 ** r.uniform(-2, 1, width)
    H = (r.normal(size=(frames, width)) + r.normal(size=width)) * scale
    return np.hstack([H, np.ones((frames, 1))]), r.normal(size=(frames, n_out))


def run_to_the_end(H_c, T, mu, U, inverse, **how):
    R = H_c.T @ (T - H_c @ U) - penalised(U, mu)
    E = ((H_c @ U - T) ** 2).sum() + mu * (U[:-1] ** 2).sum()
    start = Progress(U, R, inverse(R), E)
    at = conjugate_gradients(lambda D: H_c.T @ (H_c @ D), start, inverse, mu, **how)
    return at.U, at.E, at.count


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    frames=st.integers(30, 80),
    width=st.integers(1, 20),
    n_out=st.integers(1, 4),
    mu=st.sampled_from([1e-2, 1.0, 30.0]),
    rank=st.integers(1, 25),
    warm=st.booleans(),
)
@example(seed=0, frames=30, width=6, n_out=2, mu=0.01, rank=1, warm=True)  # nearly dependent directions
def test_conjugate_gradients_converge_to_the_direct_solution(seed, frames, width, n_out, mu, rank, warm):
    H_c, T = problem(seed, frames, width, n_out)
    s = statistics_of(H_c, T, n_out)
    expected = solve(s, mu, intercept=True)
    U = np.random.default_rng(seed).normal(size=expected.shape) * warm
    inverse = make_sketch(H_c[: frames // 2], frames, rank).inverse(mu)
    found, E, _ = run_to_the_end(H_c, T, mu, U, inverse, iterations=200, tolerance=1e-14)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    np.testing.assert_allclose(E, loss(s, expected, mu, intercept=True), rtol=1e-8)


def test_iterations_end_when_they_lower_the_error_too_little():
    H_c, T = problem(1, 80, 20, 2)
    inverse = make_sketch(H_c[:40], 80, 5).inverse(1.0)
    U = np.zeros((21, 2))
    few = run_to_the_end(H_c, T, 1.0, U, inverse, iterations=200, tolerance=1e-2)
    many = run_to_the_end(H_c, T, 1.0, U, inverse, iterations=200, tolerance=1e-12)
    assert few[2] < many[2]
    assert many[1] < few[1] < many[1] * 1.1


@pytest.mark.parametrize(
    "task", [Task(), Task(washout=3), Task(lookback=4, targets="last"), Task(direct=False), Task(intercept=False)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_readout_over_streamed_states_is_the_direct_one(task, dtype, monkeypatch):
    iterate(monkeypatch, 100, 1e-13)
    data = Dataset(X, VALUES, None, True, np.dtype(dtype))
    expected = solve(collect(RESERVOIR, data, task), 0.1, intercept=True)
    sketch = make_sketch(sample_rows(RESERVOIR, data, task, rng())[0], task.target_count(data))
    cold = solve_iteratively(RESERVOIR, data, task, 0.1, sketch)
    start = np.ones_like(expected)
    start[-1] *= task.intercept
    warm = solve_iteratively(RESERVOIR, data, task, 0.1, sketch, U=start)
    near = 1e-2 if dtype == "float32" else 1e-5
    np.testing.assert_allclose(cold, expected, atol=near * np.abs(expected).max())
    np.testing.assert_allclose(warm, expected, atol=near * np.abs(expected).max())


LABELS = [np.random.default_rng(i).integers(0, 3, len(x)) for i, x in enumerate(X)]
SINGLE = Dataset(X, LABELS, 3, True, np.dtype("float32"))


def solved(data, task=Task()):  # noqa: B008
    sketch = make_sketch(sample_rows(RESERVOIR, data, task, rng())[0], task.target_count(data))
    return solve_iteratively(RESERVOIR, data, task, 0.1, sketch)


def runs_of(monkeypatch):
    """Return a list that grows by the frames of every run of the network."""
    runs, real = [], views.run
    monkeypatch.setattr(views, "run", lambda r, batch, *a, **k: (runs.append(batch.frames), real(r, batch, *a, **k))[1])
    return runs


@pytest.mark.parametrize("task", [Task(), Task(washout=3, lookback=4), Task(lookback=4, targets="last")])
@pytest.mark.parametrize("data", [SINGLE, DATA], ids=["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_states_are_kept_where_they_fit_and_computed_again_where_not_with_the_same_bits(
    task, data, threads, monkeypatch
):
    work_on_frames(monkeypatch, 150)
    numbers = data.frames * RESERVOIR.N * (2 if data is SINGLE else 8)
    found, runs = {}, runs_of(monkeypatch)
    for kept in (True, False):
        free = numbers / module.MAX_KEPT_MEMORY_SHARE + (1 if kept else -1)
        monkeypatch.setattr(module, "available_memory", lambda free=free: free)
        runs.clear()
        with thread_pool(threads):
            found[kept] = solved(data, task)
        found[kept, "frames"] = sum(runs)
    np.testing.assert_array_equal(found[True], found[False])
    np.testing.assert_array_equal(found[True], solved(data, task))
    assert found[True, "frames"] < 3 * data.frames < found[False, "frames"]


def test_states_are_not_kept_where_the_memory_is_unknown_or_several_networks_are_fitted(monkeypatch):
    def frames():
        runs.clear()
        solved(DATA)
        return sum(runs)

    runs = runs_of(monkeypatch)
    assert frames() < 3 * DATA.frames
    assert next(map_in_order(lambda _: frames(), [0])) < 3 * DATA.frames
    with thread_pool(2):  # two networks at once would both count on the same memory
        assert max(map_in_order(lambda _: frames(), [0, 1])) > 3 * DATA.frames
    monkeypatch.setattr(module, "available_memory", lambda: None)
    assert frames() > 3 * DATA.frames


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    kind=st.sampled_from(["tanh", "sigmoid", "relu"]),
    ridge=st.sampled_from([1e-8, 1e-4]),
)
def test_rounded_states_lose_little_against_a_float64_witness(seed, kind, ridge):
    """E of the best readout of rounded states, on those of float64, is at most 0.1 % above the least one."""
    reservoir = Reservoir.random(2, 20, activation=kind, bias_scaling=0.3, random_state=seed)
    s = collect(reservoir, DATA, Task())
    mu = ridge * s.mean_diagonal
    single = Dataset(X, VALUES, None, True, np.dtype("float32"))
    rounded = None
    for chunk in stream_chunks(reservoir, Task(), single.batch(range(len(X)))):
        H = chunk.scale * chunk.H.astype(np.int16).astype(np.float64)
        part = statistics_of(np.hstack([H, chunk.X, np.ones((len(H), 1))]), chunk.T, 2)
        rounded = part if rounded is None else rounded.__iadd__(part)
    least, found = (loss(s, solve(one, mu, intercept=True), mu, intercept=True) for one in (s, rounded))
    assert least * (1 - 1e-9) <= found < 1.001 * least


def test_every_pass_and_the_error_are_reported():
    sketch = make_sketch(sample_rows(RESERVOIR, DATA, Task(), rng())[0], DATA.frames)
    lines = []
    U = solve_iteratively(RESERVOIR, DATA, Task(), 0.1, sketch, say=lines.append)
    E = loss(collect(RESERVOIR, DATA, Task()), U, 0.1, intercept=True) / DATA.frames
    count = len(lines) - 1
    assert set(lines[:-1]) == {"ridge readout: one more pass over the data ..."}
    assert lines[-1] == f"ridge readout: error {E:.4f} after {count} conjugate gradients"


@pytest.mark.parametrize("learn", ["none", "both"])
def test_a_readout_that_is_stopped_between_passes_resumes_to_the_bit(learn, tmp_path, monkeypatch):
    """Stopped after every second pass: the bits of a fit that was not interrupted."""
    monkeypatch.setattr(solver, "MIN_ITERATIVE_UNITS", 20)
    iterate(monkeypatch, 5, -1.0)
    esn = ESNRegressor(20, reservoir={"connections": 4}, learn=learn, epochs=2, ridge=0.1, random_state=0)
    straight = esn.fit(X, VALUES).network_.readout.U
    monkeypatch.setattr(checkpoints, "SECONDS_BETWEEN_STATES", 0.0)
    save, stops = Checkpoint.save, []

    def save_and_stop(checkpoint, tensors, state):
        save(checkpoint, tensors, state)
        if state.get("count", 1) % 2 == 0:  # states of epochs have no count
            stops.append(state["count"])
            raise RuntimeError

    monkeypatch.setattr(Checkpoint, "save", save_and_stop)
    again = clone(esn)
    while not hasattr(again, "network_"):
        with suppress(RuntimeError):
            again.fit(X, VALUES, checkpoint=tmp_path)
    assert stops == [2, 4]
    np.testing.assert_array_equal(again.network_.readout.U, straight)


def test_the_progress_of_other_weights_is_not_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SECONDS_BETWEEN_STATES", 0.0)
    sketch = make_sketch(sample_rows(RESERVOIR, DATA, Task(), rng())[0], DATA.frames)
    other = RESERVOIR.with_weights(W=2 * RESERVOIR.W)

    def fitted(reservoir, checkpoint):
        return solve_iteratively(reservoir, DATA, Task(), 0.1, sketch, checkpoint=checkpoint)

    fitted(other, Checkpoint(tmp_path, {}))
    U = fitted(RESERVOIR, Checkpoint(tmp_path, {}))
    np.testing.assert_array_equal(U, fitted(RESERVOIR, None))


@pytest.mark.parametrize("task", [Task(), Task(washout=3), Task(lookback=4, targets="last"), Task(direct=False)])
def test_the_readout_of_weighted_targets_is_the_direct_one(task, monkeypatch):
    iterate(monkeypatch, 100, 1e-13)
    r = rng()
    w = [r.choice([0.0, 1.0, 5.0], size=len(x)) for x in X]
    y = [np.where(c[:, None] > 0, v, np.nan) for c, v in zip(w, VALUES, strict=True)]
    data = Dataset(X, y, None, True, np.dtype("float64"), weights=w)
    expected = solve(collect(RESERVOIR, data, task), 0.1, intercept=True)
    H_c, _, sampled = sample_rows(RESERVOIR, data, task, r)
    sketch = make_sketch(H_c, task.target_count(data), w=sampled)
    for U in (None, np.ones_like(expected)):
        found = solve_iteratively(RESERVOIR, data, task, 0.1, sketch, U=U)
        np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_more_than_eight_iterations_are_made_where_eight_would_not_do():
    """How many, up to 20, depends on the rounding of the processor: they end once the error no longer falls."""
    H_c, T = problem(2, 300, 40, 2)
    T = H_c @ np.random.default_rng(0).normal(size=(41, 2)) / np.linalg.norm(H_c, axis=0).mean() + 0.01 * T
    inverse, U = np.copy, np.zeros((41, 2))
    best = loss(s := statistics_of(H_c, T, 2), solve(s, 0.01, intercept=True), 0.01, intercept=True)
    _, E, count = run_to_the_end(H_c, T, 0.01, U, inverse)
    _, eight, _ = run_to_the_end(H_c, T, 0.01, U, inverse, iterations=8)
    assert 8 < count <= 20
    assert E - best < 0.1 * (eight - best)
