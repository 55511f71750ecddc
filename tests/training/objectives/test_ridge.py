"""Learning on the squared error: Case 1 and 2, mini-batches and what one epoch does, against slow witnesses."""

import numpy as np
import pytest

import toys
from echolearn.gradients.batch import batch_gradient
from echolearn.gradients.exact import Gradients
from echolearn.readout import trackers
from echolearn.readout import view as views
from echolearn.readout.ridge import loss, solve, squared_error
from echolearn.readout.statistics import collect
from echolearn.readout.view import Task, observe
from echolearn.reservoir import Reservoir
from echolearn.reservoir._spectrum import spectral_radius_of
from echolearn.sequences import batch
from echolearn.sequences.dataset import Dataset
from echolearn.training.loop import Schedule, run_epochs
from echolearn.training.objectives import ridge as module
from echolearn.training.objectives.ridge import LearningPlan, RidgeObjective, gives_finite_states
from echolearn.training.optimizers import Adam, LearnedWeights, with_learned
from passes import work_on_frames

X, VALUES = toys.echoes(sequences=8)
DATA = Dataset(X, VALUES, None, True, np.dtype("float64"))
RESERVOIR = Reservoir.random(2, 12, connections=4, bias_scaling=0.1, leak=(0.2, 0.9), random_state=0)


def plan(**changes):
    return LearningPlan(
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
            "ridge": 0.1,
            **changes,
        }
    )


def rng():
    return np.random.default_rng(0)


def objective(task=Task(), *, validate=None, reservoir=RESERVOIR, **changes):  # noqa: B008
    return RidgeObjective(reservoir, DATA, task, plan(**changes), rng(), validate=validate)


def learn(task=Task(), *, validate=None, patience=None, on_epoch=None, **changes):  # noqa: B008
    schedule = Schedule(plan(**changes).epochs, patience, retries=3)
    return run_epochs(objective(task, validate=validate, **changes), schedule, rng=rng(), on_epoch=on_epoch)


def run_one_epoch(o, number=1, batches=None):
    """Run one epoch of an objective, as the loop does; return the error summed over all targets, and their number."""
    o.begin_epoch(lambda: None)
    batches = [np.arange(len(X))] if batches is None else batches
    found = [o.step(which, number - 1 + i / len(batches)) for i, which in enumerate(batches)]
    o.end_epoch()
    return tuple(map(sum, zip(*found, strict=True)))


def E(reservoir, task=Task(), mu=0.1):  # noqa: B008
    s = collect(reservoir, DATA, task)
    return loss(s, solve(s, mu, intercept=True), mu, intercept=True)


def gradient_at(U, task=Task(), reservoir=RESERVOIR):  # noqa: B008
    """Return the gradient over all the data at a readout, one batch."""
    return batch_gradient(reservoir, task, "exact", U, observe(reservoir, task, DATA.batch(range(8)))).gradients


def full_gradient(task):
    """Return the gradient of E, at the best readout, as a full-batch objective computes it."""
    o, found = objective(task), []
    o.begin_epoch(lambda: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LearnedWeights, "by_weight", lambda self, g: found.append(g) or {})
        patch.setattr(LearnedWeights, "step", lambda *_: None)
        o.step(np.arange(8), 0.0)
    return found[0]


def as_dict(g: Gradients):
    return {name: getattr(g, name) for name in ("W", "W_rec", "bias", "leak")}


@pytest.mark.parametrize("frames", [1, 40, 10_000])
def test_gradients_do_not_depend_on_the_grouping(frames, monkeypatch):
    task = Task(washout=1, lookback=3)
    whole = as_dict(full_gradient(task))
    work_on_frames(monkeypatch, frames)
    for name, g in as_dict(full_gradient(task)).items():
        np.testing.assert_allclose(g, whole[name], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "task",
    [
        Task(),
        Task(washout=2, direct=False),
        Task(targets="last", lookback=None),
        Task(intercept=False),
        Task(washout=2, direct=False, intercept=False),
    ],
)
def test_the_gradient_with_or_without_an_intercept_is_the_slope_of_E(task):
    """Central differences along a random direction, through the whole pipeline."""
    learned = LearnedWeights(RESERVOIR, "both", True, Adam())
    weights, g = learned.weights, learned.by_weight(full_gradient(task))
    random = rng()
    e, towards = 1e-5, {k: random.normal(size=w.shape) for k, w in weights.items()}
    up, down = (
        E(with_learned(RESERVOIR, {k: w + s * e * towards[k] for k, w in weights.items()}), task) for s in (1, -1)
    )
    slope = sum(np.vdot(g[k], towards[k]) for k in weights)
    assert (up - down) / (2 * e) == pytest.approx(slope, rel=1e-5)


def test_the_first_epoch_of_case_1_is_that_of_case_2():
    """U of Case 1 is that of the epoch before; the first epoch has none before it."""
    one, two = objective(case=1), objective(case=2)
    errors = [run_one_epoch(o) for o in (one, two)]
    assert errors[0] == pytest.approx(errors[1])
    assert errors[0][1] == sum(map(len, X))
    for name, w in two.learned.weights.items():
        np.testing.assert_allclose(one.learned.weights[name], w, rtol=1e-9, atol=1e-11)


def test_case_1_holds_the_readout_of_the_epoch_before_and_makes_one_pass(monkeypatch):
    passes, used = [], []
    real_collect, real_observe, real_gradient = trackers.collect, module.observe, module.batch_gradient
    monkeypatch.setattr(trackers, "collect", lambda *a: (passes.append("statistics"), real_collect(*a))[1])
    monkeypatch.setattr(module, "whole_groups", lambda data, N: data.frames)
    monkeypatch.setattr(module, "observe", lambda *a: (passes.append("gradient"), real_observe(*a))[1])
    monkeypatch.setattr(
        module, "batch_gradient", lambda r, t, g, U, *a, **k: (used.append(U), real_gradient(r, t, g, U, *a, **k))[1]
    )
    o = objective(case=1)
    run_one_epoch(o)
    assert passes == ["statistics", "gradient"]
    held, before = o.tracker.gradient_readout(), o.snapshot()
    passes.clear()
    run_one_epoch(o, 2)
    assert passes == ["gradient"]
    assert used[1] is held
    expected = solve(collect(before, DATA, Task()), 0.1, intercept=True)
    np.testing.assert_allclose(o.tracker.gradient_readout(), expected, rtol=1e-9)
    passes.clear()
    monkeypatch.setattr(trackers, "MAX_KEPT_STATES", 0)  # with little data, one pass serves both
    two = objective(case=2)
    run_one_epoch(two)
    run_one_epoch(two, 2)
    assert passes == ["statistics", "gradient"] * 2


@pytest.mark.parametrize("washout", [0, 4])
@pytest.mark.parametrize("lookback", [1, 3, None])
def test_the_gradient_is_the_same_where_time_is_cut_between_blocks(lookback, washout, monkeypatch):
    """Large networks: all sequences run together, some steps at a time; only a whole look-back keeps them whole."""
    task = Task(washout, lookback=lookback)
    monkeypatch.setattr(trackers, "MAX_KEPT_STATES", 0)
    weights, runs, real = [], [], views.run
    frames = max(map(len, X)) * 3 // 2  # of one or two sequences
    for numbers in (views.MAX_NUMBERS_PER_PASS, 12 * frames):
        runs.clear()
        monkeypatch.setattr(views, "MAX_NUMBERS_PER_PASS", numbers)
        o = objective(task, learn_leak=False, optimizer="fista")
        monkeypatch.setattr(views, "run", lambda r, batch, *a, **k: (runs.append(batch), real(r, batch, *a, **k))[1])
        run_one_epoch(o)
        monkeypatch.setattr(views, "run", real)
        weights.append(o.learned.weights)
    for name, w in weights[0].items():
        np.testing.assert_allclose(weights[1][name], w, rtol=1e-9, atol=1e-12)
    assert max(batch.frames for batch in runs) <= frames
    assert (max(len(batch.lengths) for batch in runs) > 2) == (lookback is not None)


def test_a_full_batch_step_of_adam_is_the_sign_of_the_gradient():
    o = objective(step_size=0.02)
    run_one_epoch(o)
    U = solve(collect(RESERVOIR, DATA, Task()), 0.1, intercept=True)
    learned = LearnedWeights(RESERVOIR, "both", True, Adam())
    g = learned.by_weight(gradient_at(U))
    for name, w in learned.weights.items():
        np.testing.assert_allclose(o.learned.weights[name], w - 0.02 * np.sign(g[name]), rtol=1e-5, atol=1e-7)


def test_an_epoch_of_one_mini_batch_against_the_formulas():
    """Statistics of the start, then (1 - 1.8) -> 0 of them and 1.8 times the batch: U has 1.8 times less ridge."""
    o = objective(batch_size=100, step_size=0.02, epochs=4)
    run_one_epoch(o)
    U = solve(collect(RESERVOIR, DATA, Task()).scale(1.8), 0.1, intercept=True)
    learned = LearnedWeights(RESERVOIR, "both", True, Adam())
    g = learned.by_weight(gradient_at(U))
    for name, w in learned.weights.items():
        np.testing.assert_allclose(o.learned.weights[name], w - 0.02 * np.sign(g[name]), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_mini_batch_is_split_evenly_between_threads(threads, monkeypatch):
    """The parts add up: the step does not depend on their number but for rounding."""
    monkeypatch.setattr(batch, "MIN_STATES_FOR_TWO_THREADS", 0)
    whole, parts = objective(batch_size=8, threads=1), objective(batch_size=8, threads=threads)
    errors = [run_one_epoch(o) for o in (whole, parts)]
    assert errors[0] == pytest.approx(errors[1])
    np.testing.assert_allclose(parts.snapshot().W, whole.snapshot().W, rtol=1e-6, atol=1e-8)


def test_step_sizes_of_adam_fall_to_a_twentieth(monkeypatch):
    sizes = []
    monkeypatch.setattr(LearnedWeights, "step", lambda self, g, size: sizes.append(size))
    learn(batch_size=4, step_size=1.0, epochs=5)
    assert len(sizes) == 10
    assert sizes[0] == 1.0
    assert (np.diff(sizes) < 0).all()
    assert 0.05 <= sizes[-1] < 0.2
    sizes.clear()
    learn(batch_size=None, step_size=1.0, epochs=5)
    np.testing.assert_allclose(sizes, [1.0, 0.81, 0.62, 0.43, 0.24])
    sizes.clear()
    learn(batch_size=None, step_size=1.0, epochs=5, optimizer="fista")
    assert sizes == [1.0] * 5


@pytest.mark.parametrize("how", [{}, {"batch_size": 2}, {"optimizer": "fista", "step_size": 1e-4}])
def test_learning_lowers_E_and_keeps_the_pattern(how):
    result = learn(epochs=8, **how)
    assert not result.interrupted
    assert len(result.history) == 8
    assert E(result.best) < E(RESERVOIR)
    np.testing.assert_array_equal(result.best.W_rec.indices, RESERVOIR.W_rec.indices)
    np.testing.assert_array_equal(result.best.W_rec.indptr, RESERVOIR.W_rec.indptr)


def test_the_spectral_radius_is_renormalised_after_every_epoch():
    radii = []
    learn(renormalize=True, spectral_radius=0.7, step_size=0.05, on_epoch=lambda r: radii.append(r["spectral_radius"]))
    np.testing.assert_allclose(radii, 0.7, rtol=1e-9)
    free = learn(step_size=0.05).best
    assert abs(spectral_radius_of(free.W_rec) - 0.9) > 1e-3


def test_clipping_bounds_the_step_of_full_batch_descent():
    result = learn(optimizer="fista", step_size=0.07, clip=0.5, epochs=1, learn_leak=False)
    row = result.history[0]
    for name in ("W", "bias"):
        moved = np.linalg.norm(getattr(result.best, name) - getattr(RESERVOIR, name))
        assert moved == pytest.approx(0.07 * min(0.5, row[f"gradient_{name}"]))
    assert row["gradient_W"] > 0.5


def test_the_error_in_the_history_is_the_mean_squared_error():
    history = learn(Task(washout=2), epochs=1).history
    s = collect(RESERVOIR, DATA, Task(washout=2))
    U = solve(s, 0.1, intercept=True)
    assert history[0]["error"] == pytest.approx(squared_error(s, U) / s.n, rel=1e-9)


@pytest.mark.parametrize(("epochs", "shown"), [(3, [1, 2, 3]), (20, [2, 4, 6])])
def test_the_history_shows_about_ten_spectral_radii(epochs, shown):
    o = objective(epochs=epochs)
    rows = {number: o.row(number, {"gradient_W": 2.0}, 1.5) for number in range(1, 7)}
    assert [number for number in range(1, shown[-1] + 1) if "spectral_radius" in rows[number]] == shown
    assert all((row["gradient_W"], row["step_size"], row["seconds"]) == (2.0, 0.01, 1.5) for row in rows.values())


def validated(scores, **changes):
    """Learn with these validation errors, the first being that of the weights as drawn."""
    scores, seen = iter(scores), []

    def validate(reservoir, U):
        seen.append(reservoir)
        return next(scores)

    result = learn(validate=validate, **changes)
    return result.best, seen, [row["valid_error"] for row in result.history]


def test_patience_and_the_best_weights():
    best, seen, errors = validated([0.8, 0.5, 0.4, 0.45, 0.6, 0.7, 0.1], epochs=6, patience=3)
    assert errors == [0.5, 0.4, 0.45, 0.6, 0.7]
    assert best is seen[2]


def test_learning_must_beat_the_weights_as_drawn():
    best, seen, errors = validated([0.3, 0.5, 0.4, 0.3], epochs=3)
    assert len(errors) == 3
    assert best is seen[0] is RESERVOIR


def test_a_validation_error_that_is_nan_never_wins():
    best, seen, _ = validated([0.5, np.nan, 0.4, np.nan])
    assert best is seen[2]


def test_weights_as_drawn_with_an_error_that_is_nan_do_not_win():
    best, seen, _ = validated([np.nan, 0.5, 0.4, 0.45])
    assert best is seen[2]


def test_validation_sees_the_readout_of_the_newest_weights():
    seen = []
    learn(validate=lambda reservoir, U: seen.append((reservoir, U)) or 0.5, epochs=2)
    for reservoir, U in seen:
        np.testing.assert_allclose(U, solve(collect(reservoir, DATA, Task()), 0.1, intercept=True), rtol=1e-8)


def test_ctrl_c_gives_the_best_so_far():
    how = {"optimizer": "fista", "step_size": 1e-4}  # whose steps do not depend on the number of epochs
    result = learn(epochs=9, on_epoch=toys.interrupt_at(2), **how)
    assert result.interrupted
    assert len(result.history) == 2
    np.testing.assert_array_equal(result.best.W, learn(epochs=2, **how).best.W)


def test_a_restart_has_smaller_steps_and_forgets_what_the_optimizer_and_the_readout_knew():
    halves = [np.arange(4), np.arange(4, 8)]
    o = objective(batch_size=4, step_size=1.0)
    run_one_epoch(o, 1, halves)
    o.restart(RESERVOIR)
    assert o.step_size == pytest.approx(module.STEP_BACKOFF)
    assert o.snapshot() is RESERVOIR
    anew = objective(batch_size=4, step_size=module.STEP_BACKOFF)
    for each in (o, anew):
        run_one_epoch(each, 1, halves)
    np.testing.assert_array_equal(o.snapshot().W, anew.snapshot().W)


def test_weights_that_make_states_explode_are_not_stable():
    linear = Reservoir.random(2, 12, connections=4, activation="identity", random_state=0)
    assert objective().is_stable(RESERVOIR)
    assert gives_finite_states(linear, DATA)
    with np.errstate(over="ignore", invalid="ignore"):
        assert not objective().is_stable(linear.with_weights(W_rec=1e30 * linear.W_rec.data))


def test_weights_survive_being_packed_for_a_checkpoint():
    o = objective()
    tensors = o.pack("best", RESERVOIR)
    assert set(tensors) <= set(o.shapes())
    assert all(value.shape == o.shapes()[name] for name, value in tensors.items())
    back = o.unpack("best", {**tensors, "safe/W": 0 * RESERVOIR.W})
    for name, value in RESERVOIR.weights().items():
        np.testing.assert_array_equal(back.weights()[name], value)


@pytest.mark.parametrize("changes", [{}, {"case": 1}, {"batch_size": 4}, {"batch_size": 4, "optimizer": "fista"}])
def test_a_state_resumes_to_the_bit(changes):
    straight = objective(**changes)
    run_one_epoch(straight)
    tensors, facts = straight.state_dict(inside_epoch=False)
    assert set(tensors) <= set(straight.shapes())
    resumed = objective(**changes)
    resumed.load_state_dict({name: value.copy() for name, value in tensors.items()}, facts)
    for o in (straight, resumed):
        run_one_epoch(o, 2)
    for name, value in straight.snapshot().weights().items():
        np.testing.assert_array_equal(resumed.snapshot().weights()[name], value)


def test_the_reservoir_given_is_not_changed():
    before = RESERVOIR.W.copy(), RESERVOIR.W_rec.data.copy(), RESERVOIR.leak.copy()
    learn(batch_size=2, renormalize=True)
    for old, now in zip(before, (RESERVOIR.W, RESERVOIR.W_rec.data, RESERVOIR.leak), strict=True):
        np.testing.assert_array_equal(old, now)


@pytest.mark.parametrize("case", [1, 2])
def test_mini_batches_take_the_gradient_at_the_readout_that_their_case_names(case, monkeypatch):
    """Case 1: at the U of the weights at the beginning of the epoch, for every mini-batch; Case 2: at a newer one."""
    readouts = []

    def recorded(reservoir, task, gradient, U, seen):
        readouts.append(U)
        return batch_gradient(reservoir, task, gradient, U, seen)

    monkeypatch.setattr(module, "batch_gradient", recorded)
    o = objective(case=case, batch_size=2)
    run_one_epoch(o, batches=[np.arange(0, 4), np.arange(4, 8)])
    at_start = solve(collect(RESERVOIR, DATA, Task()), 0.1, intercept=True)
    old = [np.allclose(U, at_start, rtol=1e-9, atol=1e-12) for U in readouts]
    assert old == [case == 1] * len(readouts)
    assert len(readouts) >= 2
