"""A readout moved by mini-batches, against running statistics solved anew for every one of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toys
from echolearn import ESNClassifier, ESNRegressor
from echolearn.readout import solver
from echolearn.readout.large import conjugate_gradients as iterations
from echolearn.readout.large import sketch, trackers
from echolearn.readout.large.conjugate_gradients import conjugate_gradients
from echolearn.readout.large.sketch import make_sketch
from echolearn.readout.large.trackers import (
    IterativeFullBatch,
    IterativeMiniBatches,
    solve_from_sample,
    update_readout,
)
from echolearn.readout.ridge import loss, solve, squared_error
from echolearn.readout.statistics import collect, statistics_of
from echolearn.readout.trackers import fade_in
from echolearn.readout.view import Task
from echolearn.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from toys import grouped

X, LABELS = toys.labels(sequences=8)
VALUES = toys.echoes(sequences=8)[1]


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    width=st.integers(1, 12),
    n_out=st.integers(1, 5),
    mu=st.sampled_from([0.1, 3.0]),
    classes=st.booleans(),
)
def test_an_update_to_convergence_is_the_solution_of_running_statistics(seed, width, n_out, mu, classes):
    """With all of G behind `inverse`, and a mini-batch that is a small share of many frames."""
    r = np.random.default_rng(seed)
    n, share = 4000, 1e-9
    H = np.hstack([r.normal(size=(n, width)) + 1, np.ones((n, 1))])
    T = r.integers(0, n_out, n) if classes else r.normal(size=(n, n_out))
    batch, past = (H[:60], T[:60]), (H[60:], T[60:])
    past_statistics = statistics_of(*past, n_out)
    U = solve(past_statistics, mu, intercept=True)
    inverse = make_sketch(past[0], len(past[0]), width).inverse(mu)
    parts = [(batch[0][:20], batch[1][:20], None), (batch[0][20:], batch[1][20:], None)]
    updated = update_readout(U, parts, inverse, mu, share, iterations=60)
    expected = solve(fade_in(past_statistics, statistics_of(*batch, n_out), share), mu, intercept=True)
    np.testing.assert_allclose(updated, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_an_update_to_convergence_solves_its_equation(share):
    """(G + mu I + 1.8 H'H) C = 1.8 (H'(T - H U) - share mu U), the intercept not penalised."""
    r = np.random.default_rng(0)
    past = np.hstack([r.normal(size=(300, 6)) + 1, np.ones((300, 1))])
    H, T, U, mu = past[:40] + 0.0, r.normal(size=(40, 2)), r.normal(size=(7, 2)), 30.0
    H[:, :-1] += r.normal(size=(40, 6))
    penalty = np.diag(np.append(np.full(6, mu), 0.0))
    right = 1.8 * (H.T @ (T - H @ U) - share * penalty @ U)
    expected = U + np.linalg.solve(past.T @ past + penalty + 1.8 * H.T @ H, right)
    inverse = make_sketch(past, len(past), 6).inverse(mu)
    np.testing.assert_allclose(
        update_readout(U, [(H, T, None)], inverse, mu, share, iterations=60), expected, rtol=1e-6
    )


def test_few_iterations_remove_most_of_the_error():
    """Half of G's directions unknown: four iterations still come closer to the best U than the old U is."""
    r = np.random.default_rng(0)
    H = np.hstack([r.normal(size=(4000, 20)) @ r.normal(size=(20, 20)), np.ones((4000, 1))])
    T = r.normal(size=(4000, 3)) + H[:, :3]
    s = statistics_of(H[200:], T[200:], 3)
    U = solve(s, 1.0, intercept=True)
    inverse = make_sketch(H[200:], 3800, 10).inverse(1.0)
    updated = update_readout(U, [(H[:200], T[:200], None)], inverse, 1.0, 0.05)
    s = fade_in(s, statistics_of(H[:200], T[:200], 3), 0.05)
    best = solve(s, 1.0, intercept=True)

    def excess(U):
        return loss(s, U, 1.0, intercept=True) - loss(s, best, 1.0, intercept=True)

    assert excess(updated) < 0.5 * excess(U)


def test_all_products_of_a_mini_batch_are_in_its_precision():
    """float64 would copy the states for every product."""
    X, y = toys.labels(sequences=4)
    data = Dataset(X, [(v == "low").astype(int) for v in y], 2, True, np.dtype("float32"))
    reservoir = Reservoir.random(2, 15, connections=4, random_state=0)
    tracker = IterativeMiniBatches(data, Task(), np.float64(0.1), np.random.default_rng(0), 2)
    tracker.begin_epoch(reservoir)
    dtypes = []

    def inverse(R, apply=tracker.inverse):
        dtypes.extend([R.dtype, apply(R).dtype])
        return apply(R)

    tracker.inverse = inverse
    U, _ = tracker.update(tracker.observe(reservoir, [np.array([0, 1])]), np.float64(0.5))
    assert {*dtypes, U.dtype} == {np.dtype("float32")}


DATA = Dataset(X, VALUES, None, True, np.dtype("float64"))
RESERVOIR = Reservoir.random(2, 12, connections=4, bias_scaling=0.1, leak=(0.2, 0.9), random_state=0)
LATER = RESERVOIR.with_weights(W=1.1 * RESERVOIR.W)


def rng():
    return np.random.default_rng(0)


def exact(reservoir):
    return solve(collect(reservoir, DATA, Task()), 0.1, intercept=True)


@pytest.fixture
def converged(monkeypatch):
    """Let conjugate gradients run to the end."""
    for name in ("FIRST_ITERATIONS", "ITERATIONS_PER_EPOCH"):
        monkeypatch.setattr(trackers, name, 100)
    to_the_end = {**conjugate_gradients.__kwdefaults__, "tolerance": 1e-13}
    monkeypatch.setattr(conjugate_gradients, "__kwdefaults__", to_the_end)


@pytest.mark.parametrize("start", [None, 1.0])
@pytest.mark.usefixtures("converged")
def test_a_readout_solved_from_a_sample_is_the_exact_one(start):
    expected = exact(RESERVOIR)
    U = None if start is None else np.full_like(expected, start)
    found = solve_from_sample(RESERVOIR, DATA, Task(), 0.1, rng(), U=U)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_the_readout_of_other_weights_is_corrected_and_needs_few_iterations(monkeypatch):
    """The first U takes up to eight iterations, a later one four, from what the sample has corrected."""
    made, real = [], trackers.solve_iteratively

    def recorded(*a, U=None, iterations=None):
        made.append((U, iterations))
        return real(*a, U=U, iterations=iterations)

    monkeypatch.setattr(trackers, "solve_iteratively", recorded)
    tracker = IterativeFullBatch(DATA, Task(), 0.1, rng(), 2)
    tracker.begin_epoch(RESERVOIR, lambda: None)
    before = 10 * tracker.gradient_readout()  # as wrong as that of weights that have changed much
    tracker.U = before
    tracker.finish(None)
    tracker.begin_epoch(LATER, lambda: None)
    assert made[0] == (None, trackers.FIRST_ITERATIONS)
    assert made[1][1] == trackers.ITERATIONS_PER_EPOCH < trackers.FIRST_ITERATIONS < iterations.MAX_SOLVER_ITERATIONS
    s = collect(LATER, DATA, Task())
    wrong, corrected = (squared_error(s, U) for U in (before, made[1][0]))
    assert s.tt < wrong
    assert corrected < 1.1 * squared_error(s, exact(LATER))


@pytest.mark.parametrize("case", [1, 2])
@pytest.mark.usefixtures("converged")
def test_full_batches_take_the_readout_that_their_case_names(case):
    """Case 2: of the weights of the epoch. Case 1: of the epoch before; the first epoch has only its own."""
    tracker = IterativeFullBatch(DATA, Task(), 0.1, rng(), case)
    for reservoir, expected in ((RESERVOIR, RESERVOIR), (LATER, RESERVOIR if case == 1 else LATER)):
        tracker.begin_epoch(reservoir, lambda: None)
        U = exact(expected)
        np.testing.assert_allclose(tracker.gradient_readout(), U, atol=1e-5 * np.abs(U).max())
        assert tracker.finish(None) == DATA.frames
    np.testing.assert_allclose(tracker.readout(LATER), exact(LATER), atol=1e-4)


@pytest.mark.parametrize(("case", "targets", "known"), [(2, "all", True), (1, "all", False), (2, "last", False)])
def test_an_epoch_begins_with_the_readout_that_the_validation_has_solved(case, targets, known, monkeypatch):
    """The passes over the data for it are needed once. Other targets have another U, Case 1 an older one."""
    tracker = IterativeFullBatch(DATA, Task(targets=targets), 0.1, rng(), case)
    tracker.begin_epoch(RESERVOIR, lambda: None)
    tracker.finish(None)
    U, solved = tracker.readout(LATER), []
    monkeypatch.setattr(trackers, "solve_iteratively", lambda *_, **__: solved.append(1) or U)
    tracker.begin_epoch(LATER, lambda: None)
    assert (solved == []) == known
    if known:
        np.testing.assert_array_equal(tracker.gradient_readout(), U)


def test_mini_batches_of_case_1_take_the_readout_at_the_beginning_of_the_epoch():
    for case in (1, 2):
        tracker = IterativeMiniBatches(DATA, Task(), 0.1, rng(), case)
        tracker.begin_epoch(RESERVOIR)
        before = tracker.readout(RESERVOIR)
        U, n = tracker.update(tracker.observe(LATER, [np.array([0, 1])]), 0.25)
        assert n == len(X[0]) + len(X[1])
        assert (before == U).all() == (case == 1)
        assert (tracker.readout(LATER) != before).any()


@pytest.mark.usefixtures("converged")
def test_the_first_readout_is_that_of_some_sequences_with_their_share_of_the_ridge(monkeypatch):
    monkeypatch.setattr(trackers, "FIRST_SOLUTION_FRAMES", 50)
    part = sketch.sample_sequences(DATA, Task(), 50, rng())
    assert len(part.X) < len(DATA.X)
    expected = solve(collect(RESERVOIR, part, Task()), 10.0 * part.frames / DATA.frames, intercept=True)
    found = IterativeMiniBatches(DATA, Task(), 10.0, rng(), 2).readout(RESERVOIR)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_the_sketch_is_renewed_after_some_mini_batches(monkeypatch):
    monkeypatch.setattr(trackers, "BATCHES_PER_SKETCH", 2)
    tracker = IterativeMiniBatches(DATA, Task(), 0.1, rng(), 2)
    tracker.begin_epoch(RESERVOIR)
    sketches = [tracker.sketch]
    for which in ([0, 1], [2, 3], [4, 5], [6, 7]):
        tracker.update(tracker.observe(LATER, [np.array(which)]), 0.25)
        sketches.append(tracker.sketch)
    assert [a is b for a, b in zip(sketches[1:], sketches, strict=False)] == [True, False, True, False]


@pytest.mark.parametrize("updates", [0, 1, 3])
def test_the_state_inside_an_epoch_resumes_to_the_bit(updates, monkeypatch):
    monkeypatch.setattr(trackers, "BATCHES_PER_SKETCH", 2)
    first = IterativeMiniBatches(DATA, Task(), 0.1, rng(), 2)
    first.begin_epoch(RESERVOIR)
    for which in ([0], [1, 2], [3])[:updates]:
        first.update(first.observe(RESERVOIR, [np.array(which)]), 0.2)
    second = IterativeMiniBatches(DATA, Task(), 0.1, rng(), 2)
    second.load_state_dict(*first.state_dict(inside_epoch=True))
    second.rng.bit_generator.state = first.rng.bit_generator.state
    for _ in range(3):
        one, other = (t.update(t.observe(LATER, [np.array([4, 5])]), 0.2)[0] for t in (first, second))
        np.testing.assert_array_equal(one, other)


def test_a_kept_sketch_that_does_not_fit_together_is_refused():
    tracker = IterativeMiniBatches(DATA, Task(), 0.1, rng(), 2)
    tracker.begin_epoch(RESERVOIR)
    tensors, facts = tracker.state_dict(inside_epoch=True)
    with pytest.raises(ValueError, match="a sketch of"):
        tracker.load_state_dict({**tensors, "sketch/values": tensors["sketch/values"][1:]}, facts)
    with pytest.raises(ValueError, match=r"rows \[7\]"):
        tracker.load_state_dict(tensors, {"following": {**facts["following"], "recent": [7]}})


KINDS = {
    "mini-batches": {},
    "case 1": {"case": 1},
    "full batch": {"batch_size": None, "optimizer": "fista", "step_size": 0.01},
    "full batch, case 1": {"batch_size": None, "case": 1},
    "last targets": {"lookback": 3, "targets": "last"},
    "float64": {"dtype": "float64", "washout": 2},
}


@pytest.mark.parametrize("kind", KINDS)
def test_large_networks_learn_as_small_ones_do(kind, monkeypatch):
    how = {**toys.FAST, "epochs": 4, **KINDS[kind]}
    small = ESNRegressor(**grouped(how)).fit(X, VALUES)
    monkeypatch.setattr(solver, "MIN_ITERATIVE_UNITS", 0)
    monkeypatch.setattr(trackers, "BATCHES_PER_SKETCH", 1)
    large = ESNRegressor(**grouped(how)).fit(X, VALUES)
    moved = large.input_weights_ - ESNRegressor(**grouped({**how, "learn": "none"})).fit(X, VALUES).input_weights_
    assert np.abs(moved).max() > 1e-4
    assert large.history_[-1]["error"] < large.history_[0]["error"]
    assert abs(large.score(X, VALUES) - small.score(X, VALUES)) < 0.1


@pytest.mark.parametrize("kind", ["mini-batches", "case 1", "full batch", "full batch, case 1"])
def test_large_networks_resume_to_the_bit(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(solver, "MIN_ITERATIVE_UNITS", 0)
    monkeypatch.setattr(sketch, "SAMPLE_FRAMES", 40)
    how = {**toys.FAST, "epochs": 4, "patience": None, "validation_fraction": 0.25, **KINDS[kind]}
    straight = ESNClassifier(**grouped(how)).fit(X, LABELS)
    with pytest.raises(KeyboardInterrupt):
        ESNClassifier(**grouped(how)).fit(X, LABELS, checkpoint=tmp_path / "kept", callback=toys.interrupt_at(2))
    resumed = ESNClassifier(**grouped(how)).fit(X, LABELS, checkpoint=tmp_path / "kept")
    np.testing.assert_array_equal(resumed.network_.readout.U, straight.network_.readout.U)
    np.testing.assert_array_equal(resumed.recurrent_weights_.data, straight.recurrent_weights_.data)
    errors = [[row["error"] for row in esn.history_] for esn in (resumed, straight)]
    assert errors[0] == errors[1]


@pytest.mark.parametrize("classes", [True, False])
def test_an_update_by_weighted_targets_is_that_by_repeated_ones(classes):
    r = np.random.default_rng(0)
    past = np.hstack([r.normal(size=(300, 6)) + 1, np.ones((300, 1))])
    H, U, w = past[:40] + r.normal(size=(40, 7)) * 0.1, r.normal(size=(7, 2)), r.integers(1, 4, 40)
    T = r.integers(0, 2, 40) if classes else r.normal(size=(40, 2))
    inverse = make_sketch(past, len(past), 6).inverse(3.0)
    found = update_readout(U, [(H, T, w.astype(float))], inverse, 3.0, 0.1, iterations=60)
    again = np.repeat(np.arange(40), w)
    expected = update_readout(U, [(H[again], T[again], None)], inverse, 3.0, 0.1, iterations=60)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
