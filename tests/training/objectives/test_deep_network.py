"""The objective of deep networks: its error from the equations, finite differences, parts that add up, resuming."""

import numpy as np
import pytest

import reference.deep as ref
from deepnets import draw, forward_pairs, frames
from echolearn.sequences.dataset import Dataset
from echolearn.states.deep import Buffers, Dropout
from echolearn.training.loop import Schedule, run_epochs
from echolearn.training.objectives.deep_network import (
    DeepObjective,
    DeepPlan,
    FlatBatch,
    deep_gradient,
    rate,
)
from echolearn.training.optimizers import Muon
from threadpools import thread_pool

LENGTHS = (6, 1, 9, 4)
KINDS = (
    "labels",
    "values",
    "weighted labels",
    "weighted values",
    "labels of sequences",
    "weighted values of sequences",
)


def dataset(kind, dtype="float64", lengths=LENGTHS):
    """Return sequences with random targets; of weighted ones, some do not exist."""
    rng = np.random.default_rng([15, len(kind)])
    per_step, classes = "sequences" not in kind, 3 if "labels" in kind else None
    shapes = [n if per_step else () for n in lengths]
    y = [np.asarray(rng.integers(0, 3, s)) if classes else rng.normal(size=(*np.atleast_1d(s), 2)) for s in shapes]
    if not per_step and not classes:
        y = [rng.normal(size=2) for _ in lengths]
    weights = None
    if "weighted" in kind:
        weights = [np.asarray(rng.choice([0.0, 0.5, 2.0], s)) for s in shapes]
        weights[2] = np.ones_like(weights[2])
        missing = -1 if classes else np.nan
        for t, w in zip(y, weights, strict=True):
            t[w == 0] = missing
    return Dataset(frames(3, lengths), y, classes, per_step, np.dtype(dtype), weights=weights)


def problem(kind, seed=1, bidirectional=False, dtype="float64"):
    """Return data, a network and all its weights."""
    stack, data = draw(seed, units=6, bidirectional=bidirectional), dataset(kind, dtype)
    rng = np.random.default_rng([16, seed])
    weights = {**stack.weights, "V": rng.normal(size=(6, data.n_out)), "v": rng.normal(size=data.n_out)}
    return data, stack, {name: value.astype(dtype) for name, value in weights.items()}


def by_hand(data, stack, weights, dropout=Dropout(), smoothing=0.0):  # noqa: B008
    """Return the sum of the errors, and the number of targets, from the equations: one target after another."""
    how = {"layers": stack.layers, "forward_pairs": forward_pairs(stack), "share": dropout.share, "seed": dropout.seed}
    loss = n = 0.0
    for i, (q, _) in enumerate(ref.deep(weights, data.X, **how)):
        rows = q if data.per_step else ref.pooled_mean(q)
        targets = data.y[i] if data.per_step else [data.y[i]]
        w = np.ones(len(rows)) if data.weights is None else np.atleast_1d(data.weights[i])
        for row, target, weight in zip(rows, targets, w, strict=True):
            if weight == 0:
                continue
            y = weights["V"].T @ row + weights["v"]
            if data.classes:
                shares = (1 - smoothing) * (np.arange(len(y)) == target) + smoothing / len(y)
                error = shares @ (np.log(np.exp(y).sum()) - y)
            else:
                error = ((y - target) ** 2).sum()
            loss, n = loss + weight * error, n + weight
    return loss, n


def found_by(data, stack, weights, which=None, dropout=Dropout(), buffers=None, smoothing=0.0):  # noqa: B008
    batch = FlatBatch.of(data, np.arange(len(data.X)) if which is None else which)
    how = {"softmax": data.classes is not None, "smoothing": smoothing}
    return deep_gradient(weights, stack, batch, dropout, buffers or Buffers(), **how)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("share", "smoothing"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.2)])
@pytest.mark.parametrize("kind", KINDS)
def test_the_error_is_that_of_the_equations_and_its_derivatives_those_of_finite_differences(
    kind, share, smoothing, bidirectional
):
    data, stack, weights = problem(kind, len(kind), bidirectional)
    how, rng = {"dropout": Dropout(share, 3), "smoothing": smoothing}, np.random.default_rng(0)
    found, expected = found_by(data, stack, weights, **how), by_hand(data, stack, weights, **how)
    assert (found.loss, found.n) == (pytest.approx(expected[0], rel=1e-12), pytest.approx(expected[1]))
    assert set(found.gradients) == set(weights)
    for name, value in weights.items():
        way, e = rng.normal(size=value.shape), 1e-6
        ends = (by_hand(data, stack, {**weights, name: value + s * way}, **how)[0] for s in (e, -e))
        slope = np.subtract(*ends) / (2 * e)
        assert np.vdot(found.gradients[name], way) == pytest.approx(slope, rel=1e-6, abs=1e-6 * abs(found.loss)), name


@pytest.mark.parametrize("kind", KINDS)
def test_parts_of_a_mini_batch_add_up(kind):
    data, stack, weights = problem(kind)
    whole, buffers = found_by(data, stack, weights), Buffers()
    parts = [found_by(data, stack, weights, which, buffers=buffers) for which in ([0, 3], [2], [1])]
    total = parts[0]
    for part in parts[1:]:
        total += part
    assert (total.loss, total.n) == (pytest.approx(whole.loss), pytest.approx(whole.n))
    for name, value in whole.gradients.items():
        np.testing.assert_allclose(total.gradients[name], value, atol=1e-11)


def test_missing_targets_count_nothing():
    """A target of weight 0 is as if there were none: other entries there change nothing."""
    for kind in ("weighted labels", "weighted values", "weighted values of sequences"):
        data, stack, weights = problem(kind)
        first = found_by(data, stack, weights)
        for t, w in zip(data.y, data.weights, strict=True):
            t[w == 0] = 1
        again = found_by(data, stack, weights)
        assert np.isfinite(first.loss)
        assert first.loss == pytest.approx(again.loss, rel=1e-14)
        for name, value in first.gradients.items():
            np.testing.assert_allclose(again.gradients[name], value, atol=1e-13)


PLAN = DeepPlan(epochs=3, batch_size=2, step_size=0.05, dropout=0.2, seed=7)


def objective(kind="labels", dtype="float32", plan=PLAN, **how):
    data, stack, weights = problem(kind, dtype=dtype)
    return DeepObjective(stack, weights, data, plan, **how)


def test_a_step_is_one_of_muon_along_the_mean_gradient():
    o = objective(dtype="float64", plan=DeepPlan(epochs=10, batch_size=4, step_size=0.1, dropout=0.0, seed=0))
    data, stack, before = o.data, o.reservoir, o.weights
    whole = found_by(data, stack, before)
    loss, n = o.step(np.arange(4), 2.0)
    assert (loss, n) == (pytest.approx(whole.loss), sum(LENGTHS))
    mean = {name: value / n for name, value in whole.gradients.items()}
    expected, _ = Muon(stack.matrices).step(before, mean, 0.1 * rate(0.2))
    for name, value in expected.items():
        np.testing.assert_allclose(o.weights[name], value, atol=1e-9)
    assert "V" not in stack.matrices


def test_dropout_differs_from_update_to_update_and_from_part_to_part():
    """Where all sequences and weights are alike, so that nothing but the masks can make a difference."""
    stack = draw(1, units=6)
    data = Dataset([frames(1, [5])[0]] * 2, [np.arange(5) % 3] * 2, 3, True, np.dtype(float))
    weights = {**stack.weights, "V": np.ones((6, 3)) * [1, -1, 0.5], "v": np.zeros(3)}
    still = DeepPlan(epochs=1, batch_size=2, step_size=1e-12, dropout=0.3, seed=7)
    o = DeepObjective(stack, weights, data, still)
    losses = [o.step(np.arange(2), 0.0)[0] for _ in range(4)]
    assert len({round(loss, 9) for loss in losses}) == 4
    alone = [DeepObjective(stack, weights, data, still).step(np.array([i]), 0.0)[0] for i in (0, 1)]
    assert alone[0] == alone[1]  # each the first part of the first update
    assert losses[0] != pytest.approx(2 * alone[0], rel=1e-9)  # two parts, two masks


def learned(epochs=3, **how):
    o = objective(plan=DeepPlan(epochs=epochs, batch_size=2, step_size=0.05, dropout=0.2, seed=7), **how)
    return run_epochs(o, Schedule(epochs, None, retries=2), rng=np.random.default_rng(0))


@pytest.mark.parametrize("kind", ["labels", "values", "labels of sequences"])
def test_threads_change_no_bit(kind):
    found = []
    for count in (1, 2, 3):
        with thread_pool(count):
            found.append(learned(kind=kind).best)
    for name, value in found[0].items():
        assert value.dtype == np.float32
        for other in found[1:]:
            np.testing.assert_array_equal(other[name], value)


@pytest.mark.parametrize("kind", ["labels", "weighted values", "labels of sequences"])
def test_learning_lowers_the_error(kind):
    errors = [row[o] for row in learned(60, kind=kind).history for o in ("cross_entropy", "error") if o in row]
    assert np.mean(errors[-5:]) < 0.6 * errors[0]


def test_the_step_size_rises_and_falls():
    shares = np.linspace(0, 1, 201)
    rates = np.array([rate(done) for done in shares])
    top = int(np.argmax(rates))
    assert rates[0] == pytest.approx(0.05)
    assert (rates[top], shares[top]) == (1.0, pytest.approx(0.05))
    assert (np.diff(rates[: top + 1]) > 0).all()
    assert (np.diff(rates[top:]) < 0).all()
    assert rates[-1] == pytest.approx(0, abs=1e-12)
    assert rate(0.05 + 0.95 / 2) == pytest.approx(0.5)


def test_a_kept_state_resumes_to_the_bit():
    o = objective()
    o.step(np.array([0, 1]), 0.0)
    tensors, facts = o.state_dict(inside_epoch=True)
    assert {name: value.shape for name, value in tensors.items()}.items() <= o.shapes().items()
    other = objective()
    other.load_state_dict(tensors, facts)
    for one in (o, other):
        one.step(np.array([2, 3]), 0.5)
    for name, value in o.weights.items():
        np.testing.assert_array_equal(other.weights[name], value)
    packed = o.pack("best", o.snapshot())
    np.testing.assert_array_equal(o.unpack("best", packed)["V"], o.weights["V"])


def test_a_restart_forgets_and_takes_smaller_steps():
    o = objective()
    start = o.snapshot()
    o.step(np.array([0, 1]), 0.0)
    assert (o.weights["V"] != start["V"]).any()
    o.restart(start)
    np.testing.assert_array_equal(o.weights["V"], start["V"])
    assert o.step_size == pytest.approx(0.3 * 0.05)
    assert o.optimizer == Muon(o.reservoir.matrices)
    assert o.is_stable(start)
    assert not o.is_stable({**start, "v": np.array([np.nan, 0, 0])})


def test_a_gradient_that_is_not_finite_is_an_error():
    o = objective()
    o.weights["1/W_out"][0, 0] = np.inf
    with np.errstate(invalid="ignore"), pytest.raises(FloatingPointError, match="not finite"):
        o.step(np.array([0]), 0.0)


def test_frames_take_the_place_of_the_sequences():
    asked, data = [], dataset("labels")

    def changed(i, epoch):
        asked.append((i, epoch))
        return 2 * data.X[i]

    batch = FlatBatch.of(data, [2, 0], changed, 5)
    assert asked == [(2, 5), (0, 5)]
    np.testing.assert_array_equal(batch.X, 2 * np.concatenate([data.X[2], data.X[0]]))
    np.testing.assert_array_equal(batch.bounds, [0, 9, 15])


def test_pooling_and_spreading_are_transposes():
    batch = FlatBatch.of(dataset("labels of sequences"), [0, 1, 2])
    rng = np.random.default_rng(0)
    q, d = rng.normal(size=(16, 4)), rng.normal(size=(3, 4))
    np.testing.assert_allclose(batch.pooled(q), [q[:6].mean(0), q[6], q[7:].mean(0)], atol=1e-14)
    assert np.vdot(batch.pooled(q), d) == pytest.approx(np.vdot(q, batch.spread(d)))
