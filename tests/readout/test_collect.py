"""Passes over the data: the same sums and outputs whichever way the frames are taken."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echolearn import ESNClassifier, ESNRegressor
from echolearn.execution import threads as engine
from echolearn.readout import collect as passes
from echolearn.readout import statistics as readout
from echolearn.readout.collect import Task, collect
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from echolearn.states.harvesting import harvest


def network(N=12, n_in=2, **more):
    return Reservoir.random(n_in, N, spectral_radius=0.9, connections=3, leak=(0.2, 0.9), random_state=0, **more)


def data_of(lengths, seed=0, classes=None):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(n, 2)) for n in lengths]
    y = [rng.normal(size=(n, 3)) if classes is None else rng.integers(0, classes, n) for n in lengths]
    return Dataset(X, y, classes, True, np.dtype(np.float64))


def obvious(reservoir, data, task):
    """The sums from all the states at once, one sequence after another."""
    H_c, T = [], []
    for x, y in zip(data.X, data.y, strict=True):
        H = harvest(reservoir, x)
        H_c.append(np.hstack([H, x, np.ones((len(x), 1))])[task.washout :])
        T.append((y if data.classes is None else np.eye(data.classes)[y])[task.washout :])
    H_c, T = np.vstack(H_c), np.vstack(T)
    return H_c.T @ H_c, H_c.T @ T, (T * T).sum(), len(T)


def same(s, expected):
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
def test_sums_are_the_obvious_ones_in_pieces_and_tiles(lengths, washout, frames, tile, classes):
    reservoir, data, task = network(), data_of(lengths, classes=classes), Task(washout)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "FRAMES", frames)
        patch.setattr(readout, "TILE", tile)
        patch.setattr(readout, "WIDE", 2 * tile)
        same(collect(reservoir, data, task), obvious(reservoir, data, task))


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    task=st.sampled_from([Task(), Task(1), Task(9), Task(2, targets="last", lookback=4)]),
    frames=st.integers(1, 30),
)
def test_streamed_states_are_those_of_the_whole_batch(lengths, task, frames):
    lengths = [n + task.washout for n in lengths]
    reservoir, batch = network(), data_of(lengths).batch(range(len(lengths)))
    H_c, T, _, _ = passes.observed(reservoir, task, batch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "FRAMES", frames)
        stretches = list(passes.streamed(reservoir, task, batch))
    assert task.targets == "last" or max(len(H) for H, _, _ in stretches) <= max(frames, len(lengths))
    H, X, targets = (np.concatenate(parts) for parts in zip(*stretches, strict=True))
    np.testing.assert_allclose(np.hstack([H, X]), H_c[:, :-1], atol=1e-12)
    np.testing.assert_array_equal(targets, T)


@pytest.mark.parametrize(
    "task", [Task(2, targets="last", lookback=4), Task(2, pooling="mean"), Task(2, pooling=3), Task(2)]
)
def test_where_a_frame_asks_for_others_sequences_stay_whole(task, monkeypatch):
    y = data_of([30, 9, 25]).y
    per_step = task.pooling is None
    data = Dataset(data_of([30, 9, 25]).X, y if per_step else [t[0] for t in y], None, per_step, np.dtype(np.float64))
    at_once = collect(network(), data, task)
    monkeypatch.setattr(passes, "FRAMES", 7)
    for wide in (readout.WIDE, 4):
        monkeypatch.setattr(readout, "WIDE", wide)
        pieces = collect(network(), data, task)
        same(pieces, (at_once.G, at_once.Q, at_once.tt, at_once.n))


def test_feedback_is_not_cut_off_from_the_target_before(monkeypatch):
    reservoir, data = network(n_feedback=3), data_of([30, 9, 25])
    whole = collect(reservoir, data, Task())
    monkeypatch.setattr(passes, "FRAMES", 7)
    same(collect(reservoir, data, Task()), (whole.G, whole.Q, whole.tt, whole.n))


@pytest.mark.parametrize("wide", [5, 2048])
def test_the_sums_do_not_depend_on_the_number_of_threads(wide, monkeypatch):
    monkeypatch.setattr(readout, "TILE", 4)
    monkeypatch.setattr(readout, "WIDE", wide)
    monkeypatch.setattr(passes, "FRAMES", 50)
    results = []
    for count in (1, 2, 5):
        monkeypatch.setattr(engine, "threads", lambda count=count: count)
        engine._pool.cache_clear()
        try:
            results.append(collect(network(), data_of([70, 30, 20, 45, 9, 120]), Task(3)))
        finally:
            engine._pool().shutdown()
            engine._pool.cache_clear()
    for s in results[1:]:
        np.testing.assert_array_equal(s.G, results[0].G)
        np.testing.assert_array_equal(s.Q, results[0].Q)


@pytest.mark.parametrize("esn", [ESNRegressor(20, learn="none"), ESNRegressor(20, learn="none", feedback=True)])
def test_predictions_of_a_long_sequence_are_the_same_in_pieces(esn, monkeypatch):
    data = data_of([300, 40, 50])
    whole = esn.fit(data.X, data.y).predict(data.X)
    monkeypatch.setattr(passes, "FRAMES", 64)
    for one, other in zip(esn.predict(data.X), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_pooled_predictions_of_a_long_sequence_are_the_same(monkeypatch):
    data = data_of([300, 40, 50, 60, 45, 90])
    esn = ESNClassifier(20, learn="none", readout="ridge").fit(data.X, [0, 1, 0, 1, 0, 1])
    whole = esn.decision_function(data.X)
    monkeypatch.setattr(passes, "FRAMES", 64)
    np.testing.assert_allclose(esn.decision_function(data.X), whole, rtol=1e-4, atol=1e-5)


def test_large_networks_take_fewer_frames_at_once():
    assert passes.at_once(100) == passes.at_once(2000) == passes.FRAMES
    assert passes.at_once(10_000) * 10_000 <= passes.NUMBERS
    assert passes.at_once(10**9) == 1
