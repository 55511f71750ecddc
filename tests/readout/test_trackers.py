"""The exact readout trackers: running statistics, Case 1 and Case 2, and states that resume to the bit."""

import numpy as np
import pytest

import toys
from echolearn.readout import trackers
from echolearn.readout.ridge import solve
from echolearn.readout.statistics import Statistics, collect
from echolearn.readout.trackers import ExactFullBatch, ExactMiniBatches, fade_in
from echolearn.readout.view import Task
from echolearn.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset

X, VALUES = toys.echoes(sequences=8)
DATA = Dataset(X, VALUES, None, True, np.dtype("float64"))
RESERVOIR = Reservoir.random(2, 12, connections=4, bias_scaling=0.1, leak=(0.2, 0.9), random_state=0)
LATER = RESERVOIR.with_weights(W=1.1 * RESERVOIR.W)
MU = 0.1


def solution(reservoir, scale=1.0, task=Task()):  # noqa: B008
    return solve(collect(reservoir, DATA, task).scale(scale), MU, intercept=True)


@pytest.fixture
def passes(monkeypatch):
    """Count the passes that a tracker makes over the data, those that keep what they see included."""
    made = []
    monkeypatch.setattr(trackers, "collect", lambda *args: (made.append(args[0]), collect(*args))[1])
    real = trackers.observe_sequences
    monkeypatch.setattr(trackers, "observe_sequences", lambda *args: (made.append(args[0]), real(*args))[1])
    monkeypatch.setattr(trackers, "whole_groups", lambda data, N: data.frames)  # one group, so one call per pass
    return made


def pause():
    pass


def test_faded_statistics_keep_their_size_and_forget():
    s = collect(RESERVOIR, DATA, Task())
    G, n = s.G.copy(), s.n
    for _ in range(60):  # batches of 1/10 of the data, all alike: their statistics stand for the whole
        s = fade_in(s, Statistics(0.2 * G, 0.2 * s.Q, 0.0, 0.1 * n), 0.1)
    np.testing.assert_allclose(s.G, 2 * G, rtol=1e-3)
    assert s.n == pytest.approx(n)


def test_one_batch_replaces_its_share_of_the_statistics():
    old, batch = Statistics(np.eye(2), np.ones((2, 1)), 3.0, 10.0), Statistics(np.ones((2, 2)), np.eye(2, 1), 1.0, 2.0)
    s = fade_in(old, batch, 0.2)
    np.testing.assert_allclose(s.G, (1 - 1.8 * 0.2) * np.eye(2) + 1.8 * np.ones((2, 2)))
    assert s.n == pytest.approx((1 - 1.8 * 0.2) * 10 + 1.8 * 2)
    assert fade_in(s, batch, 1.0) is s  # in place: a batch of all frames leaves nothing of the old ones
    np.testing.assert_allclose(s.tt, 1.8 * 1.0 * 1.8)


def test_case_2_solves_for_the_weights_of_every_epoch(passes):
    tracker = ExactFullBatch(DATA, Task(), MU, 2)
    for reservoir in (RESERVOIR, LATER):
        tracker.begin_epoch(reservoir, pause)
        np.testing.assert_allclose(tracker.gradient_readout(), solution(reservoir), rtol=1e-9)
        assert tracker.finish(None) == DATA.frames
    assert passes == [RESERVOIR, LATER]


def test_case_1_takes_the_readout_of_the_epoch_before(passes):
    tracker = ExactFullBatch(DATA, Task(), MU, 1)
    assert tracker.with_statistics
    tracker.begin_epoch(RESERVOIR, pause)
    tracker.finish(collect(RESERVOIR, DATA, Task()))
    tracker.begin_epoch(LATER, pause)
    np.testing.assert_allclose(tracker.gradient_readout(), solution(RESERVOIR), rtol=1e-9)
    tracker.finish(collect(LATER, DATA, Task()))
    np.testing.assert_allclose(tracker.gradient_readout(), solution(LATER), rtol=1e-9)
    assert passes == [RESERVOIR]


def test_the_readout_for_validation_serves_the_next_epoch_too(passes):
    tracker = ExactFullBatch(DATA, Task(), MU, 2)
    np.testing.assert_allclose(tracker.readout(RESERVOIR), solution(RESERVOIR), rtol=1e-9)
    tracker.begin_epoch(RESERVOIR, pause)
    assert passes == [RESERVOIR]


def test_what_the_readout_sees_is_kept_for_the_gradient_of_little_data(passes, monkeypatch):
    tracker = ExactFullBatch(DATA, Task(), MU, 2)
    tracker.begin_epoch(RESERVOIR, pause)
    [seen] = tracker.kept
    np.testing.assert_array_equal(seen.H_c, trackers.observe(RESERVOIR, Task(), DATA.batch(range(len(DATA.X)))).H_c)
    tracker.finish(None)
    assert tracker.kept is None  # the weights move
    monkeypatch.setattr(trackers, "MAX_KEPT_STATES", 1)
    tracker.begin_epoch(RESERVOIR, pause)
    assert tracker.kept is None
    np.testing.assert_allclose(tracker.gradient_readout(), solution(RESERVOIR), rtol=1e-9)


def test_the_readout_for_validation_sees_all_frames_even_if_only_some_carry_targets(passes):
    task = Task(targets="last", lookback=3)
    tracker = ExactFullBatch(DATA, task, MU, 2)
    np.testing.assert_allclose(tracker.readout(RESERVOIR), solution(RESERVOIR), rtol=1e-9)
    tracker.begin_epoch(RESERVOIR, pause)
    np.testing.assert_allclose(tracker.gradient_readout(), solution(RESERVOIR, task=task), rtol=1e-9)
    assert len(passes) == 2


def test_the_state_may_be_kept_once_the_readout_is_solved():
    paused = []
    tracker = ExactFullBatch(DATA, Task(), MU, 2)
    tracker.begin_epoch(RESERVOIR, lambda: paused.append(tracker.gradient_readout()))
    tracker.begin_epoch(RESERVOIR, lambda: paused.append("not solved again"))
    assert len(paused) == 1


def step(tracker, reservoir, which):
    which = np.asarray(which)
    return tracker.update(
        tracker.observe(reservoir, [which[::2], which[1::2]]), DATA.lengths[which].sum() / DATA.frames
    )


def test_a_mini_batch_of_all_frames_gives_their_own_readout():
    """(1 - 1.8) is cut off at 0: what is left is 1.8 times the batch, and 1.8 times less ridge."""
    tracker = ExactMiniBatches(DATA, Task(), MU, 2)
    tracker.begin_epoch(RESERVOIR)
    U, n = step(tracker, LATER, range(8))
    assert n == DATA.frames
    np.testing.assert_allclose(U, solution(LATER, 1.8), rtol=1e-8)
    np.testing.assert_array_equal(tracker.readout(LATER), U)


def test_case_1_holds_one_readout_for_the_whole_epoch():
    tracker = ExactMiniBatches(DATA, Task(), MU, 1)
    tracker.begin_epoch(RESERVOIR)
    readouts = [step(tracker, LATER, which)[0] for which in ([0, 1, 2], [3, 4])]
    for U in readouts:
        np.testing.assert_allclose(U, solution(RESERVOIR), rtol=1e-9)
    tracker.begin_epoch(LATER)
    assert (step(tracker, LATER, [5, 6, 7])[0] != readouts[0]).any()


@pytest.fixture
def plenty(monkeypatch):
    """Let few frames per column of H_c be enough, so that the statistics of these data take every third one."""
    columns = RESERVOIR.N + 2 + 1
    monkeypatch.setattr(trackers, "PLENTIFUL_FRAMES_PER_COLUMN", DATA.frames / (3.5 * columns))
    monkeypatch.setattr(trackers, "MAX_FRAME_STRIDE", 4)


def test_of_plenty_frames_the_running_statistics_take_every_third_three_times(plenty):
    which = np.array([0, 1, 2, 4])  # their sum is 1 modulo 3, so steps 1, 4, 7, ... are taken
    tracker = ExactMiniBatches(DATA, Task(washout=2), MU, 2, Statistics.zeros(15, VALUES[0].shape[1]))
    tracker.statistics.n = DATA.frames
    [(seen, found)] = tracker.observe(RESERVOIR, [which])
    steps = np.concatenate([np.arange(2, len(X[i])) for i in which])
    H_c = [trackers.observe(RESERVOIR, Task(washout=2), DATA.batch([i])).H_c for i in which]
    rows, n = np.concatenate(H_c)[steps % 3 == 1], len(steps)
    np.testing.assert_allclose(found.G, rows.T @ rows * (n / len(rows)), rtol=1e-10)
    T = np.concatenate([VALUES[i][2:] for i in which])[steps % 3 == 1]
    np.testing.assert_allclose(found.Q, rows.T @ T * (n / len(rows)), rtol=1e-10)
    assert found.n == n == len(seen.H_c)  # the gradient is that of all frames


def test_of_plenty_frames_the_readout_is_solved_for_every_third_mini_batch(plenty):
    tracker = ExactMiniBatches(DATA, Task(), MU, 2)
    tracker.begin_epoch(RESERVOIR)
    found = [step(tracker, RESERVOIR, [i % 8, (i + 3) % 8])[0] for i in range(7)]
    assert [found[i] is found[i - 1] for i in range(1, 7)] == [True, True, False, True, True, False]
    assert tracker.readout(RESERVOIR) is not found[-1]


def test_a_batch_without_any_of_the_frames_taken_adds_nothing(plenty):
    tracker = ExactMiniBatches(
        Dataset([X[0], X[1][:1]], [VALUES[0], VALUES[1][:1]], None, True, DATA.dtype), Task(), MU, 2
    )
    tracker.begin_epoch(RESERVOIR)
    tracker.statistics.n = DATA.frames
    [(_, found)] = tracker.observe(RESERVOIR, [np.array([1])])  # its only step is 0, and 1 modulo 3 is not
    assert found.n == 1
    assert not found.G.any()


def test_targets_that_are_no_neighbours_are_all_taken(plenty):
    tracker = ExactMiniBatches(DATA, Task(targets="last", lookback=3), MU, 2, Statistics.zeros(15, 1))
    tracker.statistics.n = DATA.frames
    assert tracker.every() == 1


def test_known_statistics_save_the_first_pass(passes):
    ExactMiniBatches(DATA, Task(), MU, 2, collect(RESERVOIR, DATA, Task())).begin_epoch(RESERVOIR)
    assert passes == []


def test_a_reset_tracker_begins_anew():
    for case in (1, 2):
        batches = ExactMiniBatches(DATA, Task(), MU, case)
        batches.begin_epoch(RESERVOIR)
        step(batches, RESERVOIR, [0, 1])
        batches.reset()
        np.testing.assert_allclose(batches.readout(LATER), solution(LATER), rtol=1e-9)
        full = ExactFullBatch(DATA, Task(), MU, case)
        full.begin_epoch(RESERVOIR, pause)
        full.reset()
        full.begin_epoch(LATER, pause)
        np.testing.assert_allclose(full.gradient_readout(), solution(LATER), rtol=1e-9)


def test_a_tracker_resumes_with_the_readout_that_it_held(plenty):
    first, second = (ExactMiniBatches(DATA, Task(), MU, 2) for _ in range(2))
    first.begin_epoch(RESERVOIR)
    for i in range(2):
        step(first, RESERVOIR, [i, i + 2])
    tensors, facts = first.state_dict(inside_epoch=True)
    second.load_state_dict({name: value.copy() for name, value in tensors.items()}, facts)
    for i in range(2, 6):
        np.testing.assert_array_equal(step(second, LATER, [i, i + 2])[0], step(first, LATER, [i, i + 2])[0])


@pytest.mark.parametrize("case", [1, 2])
def test_trackers_resume_to_the_bit(case):
    first = ExactMiniBatches(DATA, Task(), MU, case)
    first.begin_epoch(RESERVOIR)
    step(first, RESERVOIR, [0, 1, 2])
    tensors, facts = first.state_dict(inside_epoch=True)
    second = ExactMiniBatches(DATA, Task(), MU, case)
    second.load_state_dict({name: value.copy() for name, value in tensors.items()}, facts)
    np.testing.assert_array_equal(step(second, LATER, [3, 4])[0], step(first, LATER, [3, 4])[0])

    full = ExactFullBatch(DATA, Task(), MU, case)
    full.begin_epoch(RESERVOIR, pause)
    again = ExactFullBatch(DATA, Task(), MU, case)
    again.load_state_dict(*full.state_dict(inside_epoch=True))
    np.testing.assert_array_equal(again.gradient_readout(), full.gradient_readout())
    assert again.finish(None) == full.finish(None) == DATA.frames


def test_the_state_before_the_first_epoch_is_empty():
    assert ExactMiniBatches(DATA, Task(), MU, 2).state_dict(inside_epoch=False) == ({}, {})
    assert ExactFullBatch(DATA, Task(), MU, 2).state_dict(inside_epoch=False) == ({}, {"solved_n": 0.0})
