"""The statistics of all the data: the same whichever way the frames are grouped, cut, tiled and spread on threads."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from echolearn.readout import collect as module
from echolearn.readout import observation, statistics
from echolearn.readout.collect import collect
from echolearn.readout.observation import Task
from echolearn.readout.statistics import Statistics
from echolearn.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from echolearn.states.harvesting import harvest
from threadpools import thread_pool


def network(N=12, n_in=2, **more):
    return Reservoir.random(n_in, N, spectral_radius=0.9, connections=3, leak=(0.2, 0.9), random_state=0, **more)


def data_of(lengths, seed=0, classes=None):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(n, 2)) for n in lengths]
    y = [rng.normal(size=(n, 3)) if classes is None else rng.integers(0, classes, n) for n in lengths]
    return Dataset(X, y, classes, True, np.dtype(np.float64))


def obvious(reservoir, data, task):
    """Return the statistics from all the states at once, one sequence after another."""
    H_c, T = [], []
    for x, y in zip(data.X, data.y, strict=True):
        H = harvest(reservoir, x)
        H_c.append(np.hstack([H, x, np.ones((len(x), 1))])[task.washout :])
        T.append((y if data.classes is None else np.eye(data.classes)[y])[task.washout :])
    H_c, T = np.vstack(H_c), np.vstack(T)
    return H_c.T @ H_c, H_c.T @ T, (T * T).sum(), len(T)


def same(s, expected):
    """Check G, Q, tt and n, and that G is symmetric to the bit."""
    for value, other in zip((s.G, s.Q, s.tt, s.n), expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(s.G, s.G.T)


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    washout=st.integers(0, 15),
    frames=st.integers(1, 30),
    tile=st.sampled_from([3, 7, 1024]),
    classes=st.sampled_from([None, 4]),
)
def test_statistics_are_the_obvious_ones_in_chunks_and_tiles(lengths, washout, frames, tile, classes):
    reservoir, data, task = network(), data_of(lengths, classes=classes), Task(washout)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(observation, "FRAMES", frames)
        patch.setattr(statistics, "TILE", tile)
        patch.setattr(module, "WIDE", 2 * tile)
        same(collect(reservoir, data, task), obvious(reservoir, data, task))


@pytest.mark.parametrize(
    "task", [Task(2, targets="last", lookback=4), Task(2, pooling="mean"), Task(2, pooling=3), Task(2)]
)
def test_sequences_stay_whole_where_frames_depend_on_others(task, monkeypatch):
    y = data_of([30, 9, 25]).y
    per_step = task.pooling is None
    data = Dataset(data_of([30, 9, 25]).X, y if per_step else [t[0] for t in y], None, per_step, np.dtype(np.float64))
    at_once = collect(network(), data, task)
    monkeypatch.setattr(observation, "FRAMES", 7)
    for wide in (module.WIDE, 4):
        monkeypatch.setattr(module, "WIDE", wide)
        chunks = collect(network(), data, task)
        same(chunks, (at_once.G, at_once.Q, at_once.tt, at_once.n))


def test_feedback_comes_from_the_target_before_in_every_group(monkeypatch):
    reservoir, data = network(n_feedback=3), data_of([30, 9, 25])
    whole = collect(reservoir, data, Task())
    monkeypatch.setattr(observation, "FRAMES", 7)
    same(collect(reservoir, data, Task()), (whole.G, whole.Q, whole.tt, whole.n))


@pytest.mark.parametrize("wide", [5, 2048])
def test_statistics_do_not_depend_on_the_number_of_threads(wide, monkeypatch):
    monkeypatch.setattr(statistics, "TILE", 4)
    monkeypatch.setattr(module, "WIDE", wide)
    monkeypatch.setattr(observation, "FRAMES", 50)
    results = []
    for count in (1, 2, 5):
        with thread_pool(count):
            results.append(collect(network(), data_of([70, 30, 20, 45, 9, 120]), Task(3)))
    for s in results[1:]:
        np.testing.assert_array_equal(s.G, results[0].G)
        np.testing.assert_array_equal(s.Q, results[0].Q)


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    task=st.sampled_from([Task(), Task(3), Task(2, targets="last", lookback=4)]),
    frames=st.integers(1, 30),
    wide=st.booleans(),
    classes=st.sampled_from([None, 4]),
)
def test_statistics_of_weighted_targets_are_sums_over_repeated_targets(lengths, task, frames, wide, classes):
    lengths = [n + task.washout for n in lengths]
    reservoir, data = network(), data_of(lengths, classes=classes)
    rng = np.random.default_rng(0)
    w = [rng.integers(0, 4, n).astype(float) for n in lengths]
    missing = -1 if classes else np.nan
    y = [np.where((c > 0).reshape(-1, *[1] * (t.ndim - 1)), t, missing) for c, t in zip(w, data.y, strict=True)]
    y = [t.astype(data.y[0].dtype) for t in y]
    expected = Statistics.zeros(reservoir.N + 3, classes or 3)
    for x, t, c in zip(data.X, data.y, w, strict=True):
        kept = ref.kept_steps(len(x), task.washout, task.lookback, task.targets)
        again = np.repeat(kept, c[kept].astype(int))
        H_c = np.hstack([harvest(reservoir, x), x, np.ones((len(x), 1))])[again]
        expected += statistics.statistics_of(H_c, t[again], classes or 3)
    data = replace(data, y=y, weights=w)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(observation, "FRAMES", frames)
        if wide:
            patch.setattr(module, "WIDE", 5)
        same(collect(reservoir, data, task), (expected.G, expected.Q, expected.tt, expected.n))
    assert task.target_count(data) == expected.n
    rows = [(c[ref.kept_steps(len(c), task.washout, task.lookback, task.targets)] > 0).sum() for c in w]
    assert task.targets_per_sequence(data).tolist() == rows
