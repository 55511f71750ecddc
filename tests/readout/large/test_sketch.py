"""The sketch of a Gram matrix against the matrix itself, and the samples that it is made from."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toys
from echolearn.readout.large.sketch import (
    CORRECTED_DIRECTIONS,
    TAIL_VARIANCE,
    choose_ridge_by_sample,
    make_sketch,
    sample_rows,
    sample_sequences,
)
from echolearn.readout.ridge import choose_ridge, solve
from echolearn.readout.statistics import column_squares, statistics_of
from echolearn.readout.view import Task, observe
from echolearn.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset

X, VALUES = toys.echoes(sequences=12, steps=(30, 60))
DATA = Dataset(X, VALUES, None, True, np.dtype("float64"))
RESERVOIR = Reservoir.random(2, 20, connections=4, bias_scaling=0.1, leak=(0.2, 0.9), random_state=0)


def rng():
    return np.random.default_rng(0)


def problem(seed, frames, width, n_out):
    """Return H_c with columns of very different size and a mean, and targets."""
    r = np.random.default_rng(seed)
    scale = 10.0 ** r.uniform(-2, 1, width)
    H = (r.normal(size=(frames, width)) + r.normal(size=width)) * scale
    return np.hstack([H, np.ones((frames, 1))]), r.normal(size=(frames, n_out))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    frames=st.integers(30, 80),
    width=st.integers(1, 20),
    n_out=st.integers(1, 4),
    mu=st.sampled_from([1e-2, 1.0, 30.0]),
)
def test_a_sketch_of_every_frame_and_direction_is_the_gram_matrix(seed, frames, width, n_out, mu):
    H_c, T = problem(seed, frames, width, n_out)
    s = statistics_of(H_c, T, n_out)
    whole = make_sketch(H_c, frames, rank=width)
    np.testing.assert_allclose(whole.V.T @ whole.V, np.eye(len(whole.values)), atol=1e-8)
    np.testing.assert_allclose(whole.square * width, column_squares(s).sum(), rtol=1e-10)
    if len(whole.values) == width:  # none was too weak to be distinguished from rounding
        U = whole.inverse(mu)(s.Q)
        expected = solve(s, mu, intercept=True)
        np.testing.assert_allclose(U, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def test_few_frames_and_many_frames_give_the_same_sketch():
    """With fewer frames than columns HH' is decomposed, with more H'H: the same directions."""
    H_c, _ = problem(0, 60, 60, 1)
    wide, tall = make_sketch(H_c, 60, 10), make_sketch(np.vstack([H_c, H_c]), 60, 10)
    np.testing.assert_allclose(wide.values, tall.values, rtol=1e-8)
    np.testing.assert_allclose(np.abs(np.sum(wide.V * tall.V, axis=0)), 1, rtol=1e-6)


@pytest.mark.parametrize("rank", [3, 20])
def test_the_inverse_is_that_of_the_matrix_it_stands_for(rank):
    """G of the sketch, written out: centred directions and tail, the mean, and the intercept."""
    H_c, _ = problem(2, 50, 12, 1)
    sketch = make_sketch(H_c, 500, rank)
    V, M = sketch.V, 12
    assert sketch.tail == pytest.approx(TAIL_VARIANCE * sketch.values[-1])
    G = np.zeros((M + 1, M + 1))
    G[:M, :M] = V @ np.diag(sketch.values) @ V.T + sketch.tail * (np.eye(M) - V @ V.T)
    full = np.append(sketch.mean, 1.0)
    G += sketch.n * np.outer(full, full)
    penalty = np.diag(np.append(np.full(M, 0.7), 0.0))
    R = rng().normal(size=(M + 1, 2))
    np.testing.assert_allclose(sketch.inverse(0.7)(R), np.linalg.solve(G + penalty, R), rtol=1e-6, atol=1e-9)


def test_a_sketch_of_constant_states_has_no_directions():
    sketch = make_sketch(np.ones((30, 5)), 300)
    assert len(sketch.values) == 0
    assert sketch.tail == 0
    assert np.isfinite(sketch.inverse(0.1)(np.ones((5, 2)))).all()


def test_a_sketch_of_states_that_explode_is_refused():
    H_c, _ = problem(0, 30, 5, 1)
    H_c[3, 2] = np.inf
    with pytest.raises(FloatingPointError, match="NaN or infinity"):
        make_sketch(H_c, 30)


def test_a_sample_has_the_requested_number_of_rows_and_no_row_twice():
    H_c, T, w = sample_rows(RESERVOIR, DATA, Task(), rng(), frames=50)
    assert w is None
    assert 50 <= len(H_c) == len(T) <= 50 + len(X)
    assert len(np.unique(H_c, axis=0)) == len(H_c)
    everything, _, _ = sample_rows(RESERVOIR, DATA, Task(), rng(), frames=10_000)
    assert len(everything) == DATA.lengths.sum()


def test_sampled_sequences_have_the_requested_number_of_targets():
    task = Task(washout=5)
    some = sample_sequences(DATA, task, 100, rng())
    assert 100 <= task.target_count(some) < 100 + max(task.targets_per_sequence(DATA))
    assert len(sample_sequences(DATA, task, 10**6, rng()).X) == len(X)


def test_the_ridge_of_a_whole_sample_is_that_of_the_statistics():
    path = 10.0 ** np.arange(-4.0, 4)
    H_c, T, _ = sample_rows(RESERVOIR, DATA, Task(), rng(), frames=10_000)
    seen = observe(RESERVOIR, Task(), Dataset(*toys.echoes(seed=1), None, True, np.dtype("float64")).batch(range(8)))
    held = seen.H_c, seen.T, None
    s, h = statistics_of(H_c, T, 2), statistics_of(seen.H_c, seen.T, 2)
    for held_statistics, rows in ((None, None), (h, held)):
        expected, _ = choose_ridge(s, path, intercept=True, held_out=held_statistics)
        assert choose_ridge_by_sample((H_c, T, None), path, 2, rows) == expected


def test_a_sketch_of_weighted_rows_is_that_of_repeated_rows():
    r = np.random.default_rng(0)
    H_c = np.hstack([r.normal(size=(50, 6)) + 1, np.ones((50, 1))])
    w = r.integers(1, 4, 50)
    found = make_sketch(H_c, 700, 4, w=w.astype(float))
    expected = make_sketch(np.repeat(H_c, w, axis=0), 700, 4)
    np.testing.assert_allclose(found.mean, expected.mean)
    np.testing.assert_allclose(found.values, expected.values)
    assert found.tail == pytest.approx(expected.tail)
    assert found.square == pytest.approx(expected.square)
    R = r.normal(size=(7, 2))
    np.testing.assert_allclose(found.inverse(0.5)(R), expected.inverse(0.5)(R))


def test_a_sample_of_weighted_targets_has_their_weights():
    w = [np.arange(len(x)) % 3.0 for x in X]
    data = replace(DATA, weights=w)
    H_c, T, sampled = sample_rows(RESERVOIR, data, Task(), rng(), frames=10_000)
    assert len(H_c) == len(T) == len(sampled) == sum(int((c > 0).sum()) for c in w)
    assert sampled.sum() == pytest.approx(sum(c.sum() for c in w))
    path = 10.0 ** np.arange(-4.0, 4)
    expected, _ = choose_ridge(statistics_of(H_c, T, 2, w=sampled), path, intercept=True)
    assert choose_ridge_by_sample((H_c, T, sampled), path, 2, None) == expected


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    width=st.integers(1, 12),
    n_out=st.integers(1, 4),
    intercept=st.booleans(),
    weights=st.booleans(),
)
def test_a_readout_is_corrected_to_the_least_error_of_the_rows(seed, width, n_out, intercept, weights):
    """With every direction in the sketch, that is the least of all; without an intercept the last row stays."""
    H_c, T = problem(seed, 60, width, n_out)
    H_c[:, -1] *= intercept
    w = np.random.default_rng(seed).integers(1, 4, 60).astype(float) if weights else None
    sketch = make_sketch(H_c, 60, rank=width, w=w)
    U = 10 * np.random.default_rng(seed).normal(size=(width + 1, n_out))
    found = sketch.correct(U, (H_c, T, w))
    root = np.ones(60) if w is None else np.sqrt(w)
    best = np.linalg.lstsq(H_c * root[:, None], T * root[:, None], rcond=None)[0]
    errors = [np.square((H_c @ one - T) * root[:, None]).sum() for one in (found, best)]
    if len(sketch.values) == width:  # none was too weak to be distinguished from rounding
        assert errors[0] == pytest.approx(errors[1], rel=1e-6)
    if not intercept:
        np.testing.assert_array_equal(found[-1], U[-1])


def test_a_readout_is_corrected_in_the_leading_directions_alone():
    H_c, T = problem(0, 400, 150, 2)
    sketch, U = make_sketch(H_c, 400, rank=150), np.ones((151, 2))
    moved = sketch.correct(U, (H_c, T, None))[:-1] - U[:-1]
    strength = np.linalg.norm(sketch.V.T @ moved, axis=1)
    assert strength[:CORRECTED_DIRECTIONS].min() > 0
    np.testing.assert_allclose(strength[CORRECTED_DIRECTIONS:], 0, atol=1e-9 * strength.max())
