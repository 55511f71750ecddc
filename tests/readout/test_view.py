"""What the readout sees: which frames, which columns, and the same states whichever way they are streamed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echolearn.readout import view as views
from echolearn.readout.view import (
    ReadoutView,
    Task,
    frames_at_once,
    observe,
    stack,
    stream_observations,
    stream_rows,
    time_chunks,
)
from echolearn.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from echolearn.states import harvest

TASKS = [Task(), Task(washout=3), Task(lookback=4, targets="last")]


def network(N=12, n_in=2, **more):
    return Reservoir.random(n_in, N, spectral_radius=0.9, connections=3, leak=(0.2, 0.9), random_state=0, **more)


def data_of(lengths, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(n, 2)) for n in lengths]
    y = [rng.normal(size=(n, 3)) for n in lengths]
    return Dataset(X, y, None, True, np.dtype(np.float64))


def test_stack_appends_the_inputs_and_a_column_of_ones():
    rng = np.random.default_rng(0)
    H, X, ones = rng.normal(size=(60, 5)), rng.normal(size=(60, 2)), np.ones((60, 1))
    np.testing.assert_array_equal(stack(H, X, direct=True, intercept=True), np.hstack([H, X, ones]))
    np.testing.assert_array_equal(stack(H, X, direct=False, intercept=True), np.hstack([H, ones]))
    np.testing.assert_array_equal(stack(H, X, direct=True, intercept=False), np.hstack([H, X, 0 * ones]))
    np.testing.assert_array_equal(stack(H, X, direct=False, intercept=False), np.hstack([H, 0 * ones]))


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_an_observation_of_one_sequence_is_its_states_inputs_and_targets(direct, intercept):
    reservoir, data, view = network(), data_of([20]), ReadoutView(4, direct, intercept=intercept)
    seen = observe(reservoir, view, data.batch([0]))
    H, X, T = harvest(reservoir, data.X[0])[4:], data.X[0][4:], data.y[0][4:]
    np.testing.assert_allclose(seen.H, H, atol=1e-12)
    np.testing.assert_array_equal(seen.X, X if direct else X[:, :0])
    np.testing.assert_array_equal(seen.T, T)
    np.testing.assert_array_equal(seen.H_c, stack(seen.H, X, direct=direct, intercept=intercept))
    assert seen.H_c is seen.H_c  # stacked once
    assert seen.H_c.shape == (16, view.rows(reservoir))


@pytest.mark.parametrize("task", TASKS)
def test_targets_are_counted_as_they_are_seen(task):
    lengths = [30, 9, 25, 4]
    data, reservoir = data_of(lengths), network()
    seen = [observe(reservoir, task, data.batch([i])) for i in range(len(lengths))]
    assert task.targets_per_sequence(data).tolist() == [len(s.T) for s in seen]
    assert task.target_count(data) == sum(len(s.H_c) for s in seen)
    assert {s.H_c.shape[1] for s in seen} == {task.rows(reservoir)}


@pytest.mark.parametrize("task", TASKS)
def test_the_final_readout_sees_every_frame_after_the_washout(task):
    data, view = data_of([30, 9]), task.view()
    assert type(view) is ReadoutView
    assert (view.washout, view.direct, view.summary) == (task.washout, task.direct, None)
    assert view.targets_per_sequence(data).tolist() == [30 - task.washout, 9 - task.washout]


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    task=st.sampled_from([Task(), Task(1), Task(9), Task(2, lookback=3), Task(2, targets="last", lookback=4)]),
    frames=st.integers(1, 30),
)
def test_streamed_states_are_those_of_the_whole_batch(lengths, task, frames):
    lengths = [n + task.washout for n in lengths]
    reservoir, batch = network(), data_of(lengths).batch(range(len(lengths)))
    seen = observe(reservoir, task, batch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(views, "MAX_FRAMES_PER_PASS", frames)
        chunks = list(stream_observations(reservoir, task, batch))
    most = max(frames, len(lengths) * task.block_steps)
    assert task.targets == "last" or max(len(part.H) for part in chunks) <= most
    assert all(part.w is None for part in chunks)
    H, X, targets = (np.concatenate([getattr(part, name) for part in chunks]) for name in "HXT")
    np.testing.assert_allclose(np.hstack([H, X]), seen.H_c[:, :-1], atol=1e-12)
    np.testing.assert_array_equal(targets, seen.T)


@pytest.mark.parametrize("washout", [0, 5, 12])
def test_streamed_rows_of_a_long_sequence_are_those_of_the_whole(washout, monkeypatch):
    reservoir, data, view = network(), data_of([50]), ReadoutView(washout)
    seen = observe(reservoir, view, data.batch([0]))
    monkeypatch.setattr(views, "MAX_FRAMES_PER_PASS", 8)
    chunks = list(stream_rows(reservoir, data, view, np.array([0])))
    assert len(chunks) == 7
    H_c, T = (np.concatenate(parts) for parts in list(zip(*chunks, strict=True))[:2])
    np.testing.assert_allclose(H_c, seen.H_c, atol=1e-12)
    np.testing.assert_array_equal(T, seen.T)


@pytest.mark.parametrize(
    ("view", "more"),
    [
        (Task(targets="last", lookback=4), {}),
        (ReadoutView(), {"n_feedback": 3}),
    ],
)
def test_sequences_stay_whole_where_frames_depend_on_later_ones_or_on_targets(view, more, monkeypatch):
    monkeypatch.setattr(views, "MAX_FRAMES_PER_PASS", 7)
    reservoir = network(**more)
    assert view.needs_whole_sequences(reservoir)
    assert time_chunks(reservoir, view, np.array([30])) == [slice(None)]


def test_only_a_single_long_sequence_is_cut(monkeypatch):
    monkeypatch.setattr(views, "MAX_FRAMES_PER_PASS", 7)
    assert not ReadoutView(2).needs_whole_sequences(network())
    assert time_chunks(network(), ReadoutView(2), np.array([30, 9])) == [slice(None)]
    chunks = time_chunks(network(), ReadoutView(2), np.array([30]))
    assert [i for steps in chunks for i in range(30)[steps]] == list(range(30))
    assert all(len(range(30)[steps]) <= 7 for steps in chunks)


def test_large_networks_take_fewer_frames_at_once():
    assert frames_at_once(100) == frames_at_once(2000) == views.MAX_FRAMES_PER_PASS
    assert frames_at_once(10_000) * 10_000 <= views.MAX_NUMBERS_PER_PASS
    assert frames_at_once(10**9) == 1
