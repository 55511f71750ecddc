"""The epochs: Case 1 and 2, running sums, mini-batches and what one epoch does, against slow witnesses."""

import numpy as np
import pytest

import toys
from echolearn.gradients.gradients import Gradients
from echolearn.readout import collect as passes
from echolearn.readout.collect import Task, collect
from echolearn.readout.ridge import loss, solve, squared_error
from echolearn.readout.statistics import Statistics
from echolearn.reservoir.reservoir import Reservoir, spectral_radius_of
from echolearn.sequences.dataset import Dataset
from echolearn.training import optimizers as updates
from echolearn.training.loop import Learner, Plan, full_batch, learn, running

X, VALUES = toys.echoes(sequences=8)
DATA = Dataset(X, VALUES, None, True, np.dtype("float64"))
RESERVOIR = Reservoir.random(2, 12, connections=4, bias_scaling=0.1, leak=(0.2, 0.9), random_state=0)


def plan(**changes):
    return Plan(
        **{
            "learn": "both",
            "learn_leak": True,
            "gradient": "exact",
            "case": 2,
            "optimizer": "adam",
            "momentum": "fista",
            "step_size": 0.01,
            "epochs": 3,
            "batch_size": None,
            "clip": None,
            "renormalize": False,
            "spectral_radius": 0.9,
            "patience": None,
            "ridge": 0.1,
            **changes,
        }
    )


def rng():
    return np.random.default_rng(0)


def E(reservoir, task=Task(), mu=0.1):  # noqa: B008
    s = collect(reservoir, DATA, task)
    return loss(s, solve(s, mu, intercept=True), mu, intercept=True)


def as_dict(g: Gradients):
    return {name: getattr(g, name) for name in ("W", "W_rec", "bias", "leak")}


@pytest.mark.parametrize("frames", [1, 40, 10_000])
def test_sums_and_gradients_do_not_depend_on_the_grouping(frames, monkeypatch):
    task = Task(washout=1, lookback=3)
    whole, whole_sums = full_batch(RESERVOIR, DATA, task, plan(), None)[0], collect(RESERVOIR, DATA, task)
    monkeypatch.setattr(passes, "FRAMES", frames)
    parts, parts_sums = full_batch(RESERVOIR, DATA, task, plan(), None)[0], collect(RESERVOIR, DATA, task)
    np.testing.assert_allclose(parts_sums.G, whole_sums.G, rtol=1e-10)
    for name, g in as_dict(whole.gradients).items():
        np.testing.assert_allclose(as_dict(parts.gradients)[name], g, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("task", [Task(), Task(washout=2, direct=False), Task(targets="last", lookback=None)])
def test_the_gradient_with_an_intercept_is_the_slope_of_E(task):
    """Central differences along a random direction, through the whole pipeline with its intercept."""
    weights = updates.learned_weights(RESERVOIR, "both", True)
    g = updates.gradients_of(weights, full_batch(RESERVOIR, DATA, task, plan(), None)[0].gradients, RESERVOIR)
    random = rng()
    e, towards = 1e-5, {k: random.normal(size=w.shape) for k, w in weights.items()}
    up, down = (
        E(updates.with_learned(RESERVOIR, {k: w + s * e * towards[k] for k, w in weights.items()}), task)
        for s in (1, -1)
    )
    slope = sum(np.vdot(g[k], towards[k]) for k in weights)
    assert (up - down) / (2 * e) == pytest.approx(slope, rel=1e-5)


def test_case_1_at_a_fresh_U_is_case_2():
    two, U, n = full_batch(RESERVOIR, DATA, Task(), plan(case=2), None)
    one, U_next, n_one = full_batch(RESERVOIR, DATA, Task(), plan(case=1), U)
    assert n == n_one == sum(map(len, X))
    np.testing.assert_allclose(U_next, U, rtol=1e-9, atol=1e-12)
    for name, g in as_dict(two.gradients).items():
        np.testing.assert_allclose(as_dict(one.gradients)[name], g, rtol=1e-9, atol=1e-11)


def test_case_1_holds_U_from_the_epoch_before_and_takes_one_pass(monkeypatch):
    calls = []
    real = passes.run
    monkeypatch.setattr(passes, "run", lambda *a, **k: (calls.append(1), real(*a, **k))[1])
    monkeypatch.setattr(passes, "FRAMES", 10_000)
    used = []
    real_slope = passes.slope
    monkeypatch.setattr(passes, "slope", lambda r, t, g, U, *a: (used.append(U), real_slope(r, t, g, U, *a))[1])
    learner = Learner(RESERVOIR, DATA, Task(), plan(case=1), rng())
    learner.epoch(1)
    first = len(calls)
    before = collect(learner.reservoir, DATA, Task())
    calls.clear()
    held = learner.U
    learner.epoch(2)
    assert (first, len(calls)) == (2, 1)
    assert used[1] is held
    np.testing.assert_allclose(learner.U, solve(before, 0.1, intercept=True), rtol=1e-9)
    calls.clear()
    Learner(RESERVOIR, DATA, Task(), plan(case=2), rng()).epoch(1)
    assert len(calls) == 2


def test_case_1_with_mini_batches_renews_U_every_epoch():
    learner = Learner(RESERVOIR, DATA, Task(), plan(case=1, batch_size=2), rng())
    learner.epoch(1)
    first = learner.U
    learner.epoch(2)
    assert (first != learner.U).any()


def test_running_sums_keep_their_size_and_forget():
    s = collect(RESERVOIR, DATA, Task())
    G, n = s.G.copy(), s.n
    for _ in range(60):  # batches of 1/10 of the data, all alike: their sums stand for the whole
        s = running(s, Statistics(0.2 * G, 0.2 * s.Q, 0.0, 0.1 * n), 0.1)
    np.testing.assert_allclose(s.G, 2 * G, rtol=1e-3)
    assert s.n == pytest.approx(n)


def test_an_epoch_of_one_full_mini_batch_against_the_formulas():
    """Sums of the start, then (1 - 1.8) → 0 of them and 1.8 times the batch: U has 1.8 times less ridge."""
    learner = Learner(RESERVOIR, DATA, Task(), plan(batch_size=100, step_size=0.02, epochs=4), rng())
    learner.epoch(1)
    s = collect(RESERVOIR, DATA, Task()).scale(1.8)
    U = solve(s, 0.1, intercept=True)
    slope = full_batch(RESERVOIR, DATA, Task(), plan(case=1), U)[0]
    weights = updates.learned_weights(RESERVOIR, "both", True)
    g = updates.gradients_of(weights, slope.gradients, RESERVOIR)
    for name, w in weights.items():
        np.testing.assert_allclose(learner.weights[name], w - 0.02 * np.sign(g[name]), rtol=1e-5, atol=1e-7)


def test_step_sizes_fall_to_a_twentieth_with_mini_batches(monkeypatch):
    sizes = []
    monkeypatch.setattr(Learner, "_update", lambda self, g, size: sizes.append(size) or {})
    learn(RESERVOIR, DATA, Task(), plan(batch_size=4, step_size=1.0, epochs=5), rng=rng())
    assert len(sizes) == 10
    assert sizes[0] == 1.0
    assert (np.diff(sizes) < 0).all()
    assert 0.05 <= sizes[-1] < 0.2


def test_every_sequence_once_an_epoch_in_another_order(monkeypatch):
    seen = []
    real = Dataset.batch
    monkeypatch.setattr(Dataset, "batch", lambda self, which, *a: (seen.append(list(which)), real(self, which, *a))[1])
    learner = Learner(RESERVOIR, DATA, Task(), plan(batch_size=3), rng())
    learner.sums = collect(RESERVOIR, DATA, Task())
    orders = []
    for number in (1, 2):
        seen.clear()
        learner.epoch(number)
        flat = [i for part in seen for i in part]
        assert sorted(flat) == list(range(8))
        orders.append(flat)
    assert orders[0] != orders[1]


@pytest.mark.parametrize("how", [{}, {"batch_size": 2}, {"optimizer": "fista", "step_size": 1e-4}])
def test_learning_lowers_E_and_keeps_the_pattern(how):
    best, history, interrupted = learn(RESERVOIR, DATA, Task(), plan(epochs=8, **how), rng=rng())
    assert not interrupted
    assert len(history) == 8
    assert E(best) < E(RESERVOIR)
    np.testing.assert_array_equal(best.W_rec.indices, RESERVOIR.W_rec.indices)
    np.testing.assert_array_equal(best.W_rec.indptr, RESERVOIR.W_rec.indptr)


def test_renormalisation_after_every_epoch():
    radii = []
    learn(
        RESERVOIR, DATA, Task(), plan(renormalize=True, spectral_radius=0.7, step_size=0.05), rng=rng(),
        on_epoch=lambda row: radii.append(row["spectral_radius"]),
    )  # fmt: skip
    np.testing.assert_allclose(radii, 0.7, rtol=1e-9)
    free, _, _ = learn(RESERVOIR, DATA, Task(), plan(step_size=0.05), rng=rng())
    assert abs(spectral_radius_of(free.W_rec) - 0.9) > 1e-3


def test_clipping_bounds_the_step_of_full_batch_descent():
    how = {"optimizer": "fista", "step_size": 0.07, "clip": 0.5, "epochs": 1, "learn_leak": False}
    new, history, _ = learn(RESERVOIR, DATA, Task(), plan(**how), rng=rng())
    for name in ("W", "bias"):
        moved = np.linalg.norm(getattr(new, name) - getattr(RESERVOIR, name))
        assert moved == pytest.approx(0.07 * min(0.5, history[0][f"gradient_{name}"]))
    assert history[0]["gradient_W"] > 0.5


def test_the_error_in_the_history_is_the_mean_squared_error():
    _, history, _ = learn(RESERVOIR, DATA, Task(washout=2), plan(epochs=1), rng=rng())
    s = collect(RESERVOIR, DATA, Task(washout=2))
    U = solve(s, 0.1, intercept=True)
    assert history[0]["error"] == pytest.approx(squared_error(s, U) / s.n, rel=1e-9)


def scored(scores, **changes):
    """What `learn` makes of these held-out scores, the first one being that of the weights as drawn."""
    scores, seen = iter(scores), []

    def score(reservoir, U):
        seen.append(reservoir)
        return next(scores)

    best, history, _ = learn(RESERVOIR, DATA, Task(), plan(**changes), rng=rng(), score=score)
    return best, seen, [row["valid_error"] for row in history]


def test_patience_and_the_best_weights():
    best, seen, errors = scored([0.8, 0.5, 0.4, 0.45, 0.6, 0.7, 0.1], epochs=6, patience=3)
    assert errors == [0.5, 0.4, 0.45, 0.6, 0.7]
    assert best is seen[2]


def test_learning_must_beat_the_weights_as_drawn():
    best, seen, errors = scored([0.3, 0.5, 0.4, 0.3], epochs=3)
    assert len(errors) == 3
    assert best is seen[0] is RESERVOIR


def test_a_held_out_score_that_is_nan_never_wins():
    best, seen, _ = scored([0.5, np.nan, 0.4, np.nan])
    assert best is seen[2]


def test_weights_as_drawn_that_score_nan_do_not_win():
    best, seen, _ = scored([np.nan, 0.5, 0.4, 0.45])
    assert best is seen[2]


def test_ctrl_c_gives_the_best_so_far():
    def press(row):
        if row["epoch"] == 2:
            raise KeyboardInterrupt

    best, history, interrupted = learn(RESERVOIR, DATA, Task(), plan(epochs=9), rng=rng(), on_epoch=press)
    assert interrupted
    assert len(history) == 2
    twice, _, _ = learn(RESERVOIR, DATA, Task(), plan(epochs=2), rng=rng())
    np.testing.assert_array_equal(best.W, twice.W)


def test_the_reservoir_given_is_left_alone():
    before = RESERVOIR.W.copy(), RESERVOIR.W_rec.data.copy(), RESERVOIR.leak.copy()
    learn(RESERVOIR, DATA, Task(), plan(batch_size=2, renormalize=True), rng=rng())
    for old, now in zip(before, (RESERVOIR.W, RESERVOIR.W_rec.data, RESERVOIR.leak), strict=True):
        np.testing.assert_array_equal(old, now)
