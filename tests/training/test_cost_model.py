"""The cost model: close to the memory that a fit uses, growing with its work, and refusals with numbers."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echolearn import ESNClassifier, ESNRegressor
from echolearn.training import cost_model
from echolearn.training.cost_model import TYPICAL_RATES, Job, nbytes, seconds

JOB = Job(N=500, n_in=20, n_out=10, connections=10, frames=50_000, held_out=5000, longest=400, batch=4000)

# The peak of the memory of a fit above that before it: VmHWM, which the kernel records, reset before the fit.
MEASURE = """
import numpy as np, sys
from pathlib import Path
from echolearn import {kind}
from echolearn.training import cost_model
def mark(name):
    return next(int(line.split()[1]) * 1024 for line in Path("/proc/self/status").read_text().splitlines()
                if line.startswith(name))
rng = np.random.default_rng(0)
X = [rng.normal(size=(200, 4)).astype(np.float32) for _ in range({sequences})]
y = [x[:, :1] for x in X] if {kind}.__name__ == "ESNRegressor" else [(x[:, 0] > 0) * 1 for x in X]
esn = {kind}({settings})
estimated = []
cost_model.check = lambda job, verbose: estimated.append(cost_model.nbytes(job))
{kind}(20, **{{k: v for k, v in dict({settings}).items() if k != "hidden_units"}}).fit(X[:10], y[:10])
Path("/proc/self/clear_refs").write_text("5")
before = mark("VmRSS:")
esn.fit(X, y)
print(mark("VmHWM:") - before, estimated[-1])
"""
LEARNED = {"hidden_units": 1000, "epochs": 1, "ridge": 1.0, "learning": {"batch_size": 50}}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("ESNRegressor", {"hidden_units": 1200, "learn": "none", "ridge": 1e-6}),
        ("ESNRegressor", {"hidden_units": 2200, "learn": "none", "ridge": 1e-6}),
        ("ESNRegressor", LEARNED),
        (
            "ESNRegressor",
            {"hidden_units": 1000, "epochs": 1, "ridge": 1.0, "learning": {"batch_size": 50}, "bidirectional": True},
        ),
        ("ESNClassifier", {"hidden_units": 700, "learn": "none", "readout": "softmax"}),
    ],
)
def test_estimated_bytes_are_close_to_the_peak_of_a_fit(kind, given):
    words = ", ".join(f"{k}={v!r}" for k, v in given.items())
    sequences = 60 if given["hidden_units"] < 2000 else 300  # enough batches for all threads at any time
    script = MEASURE.format(kind=kind, settings=words, sequences=sequences)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    used, estimated = map(float, done.stdout.split())
    # Little data are cut into smaller groups, and small readouts keep their rows: the estimate is then too high.
    assert used / 1.5 < estimated < 2.5 * used, f"used {used / 1e6:.0f} MB, estimated {estimated / 1e6:.0f} MB"


@settings(max_examples=50, deadline=None)
@given(
    N=st.integers(10, 20_000),
    frames=st.integers(100_000, 10**7),
    epochs=st.integers(0, 20),
    softmax=st.booleans(),
    more=st.sampled_from(["N", "n_in", "n_out", "connections", "frames", "epochs"]),
)
def test_more_work_never_costs_less(N, frames, epochs, softmax, more):
    job = Job(N, 20, 10, 10, frames, epochs=epochs, softmax=softmax, batch=3000, threads=2)
    larger = Job(**{**vars(job), more: 2 * getattr(job, more)})
    if (job.wide, job.iterative) != (larger.wide, larger.iterative):
        return  # from there on all cores solve, or no Gram matrix is made
    assert seconds(larger, TYPICAL_RATES) >= seconds(job, TYPICAL_RATES)
    assert nbytes(larger) >= 0.999 * nbytes(job)


def test_seconds_are_proportional_to_frames_and_bytes_nearly_constant():
    """Ten times the frames are two more levels of the tree of sums."""
    few, many = (Job(**{**vars(JOB), "frames": K, "epochs": 3, "softmax": True}) for K in (10**6, 10**7))
    assert seconds(many, TYPICAL_RATES) == pytest.approx(10 * seconds(few, TYPICAL_RATES), rel=0.05)
    assert nbytes(few) <= nbytes(many) <= nbytes(few) + 2 * 8 * few.M**2


def test_epochs_on_the_cross_entropy_are_counted():
    learned = Job(**{**vars(JOB), "epochs": 5, "softmax": True})
    refined = [Job(**{**vars(learned), "refine_epochs": n}) for n in (5, 10)]
    five, ten = (seconds(job, TYPICAL_RATES) for job in refined)
    one = cost_model.refining(refined[0], TYPICAL_RATES) / 5
    assert ten - five == pytest.approx(5 * one)
    assert 0.5 * cost_model.epoch(learned, TYPICAL_RATES) < one < 2 * cost_model.epoch(learned, TYPICAL_RATES)


def test_measured_rates_are_positive_and_in_proportion_to_the_typical_ones():
    rates = cost_model.measured()
    assert rates.flop > 0
    assert rates.unit / rates.flop == pytest.approx(TYPICAL_RATES.unit / TYPICAL_RATES.flop)


X = [np.random.default_rng(0).normal(size=(100, 3)) for _ in range(10)]
Y = [x[:, :1] for x in X]


def test_a_fit_that_needs_more_memory_than_is_free_is_refused_with_numbers(monkeypatch):
    monkeypatch.setattr(cost_model, "available_memory", lambda: 2e9)
    with pytest.raises(MemoryError, match=r"needs about \d+\.\d GB and 2\.0 GB are free.*hidden_units=20000.*fewer"):
        ESNRegressor(20_000, learn="none").fit(X, Y)
    monkeypatch.setattr(cost_model, "available_memory", lambda: 5e6)
    with pytest.raises(MemoryError, match=r"5 MB are free.*batch_size.*dtype=float32"):
        ESNClassifier(50, dtype="float64", learning={"batch_size": 8}).fit(X, [(y[:, 0] > 0) * 1 for y in Y])


def test_nothing_is_refused_if_the_free_memory_is_unknown(monkeypatch):
    monkeypatch.setattr(cost_model, "available_memory", lambda: None)
    ESNRegressor(10, learn="none").fit(X, Y)


def test_a_long_fit_is_announced(monkeypatch, capsys):
    monkeypatch.setattr(cost_model, "available_memory", lambda: 24e9)
    monkeypatch.setattr(cost_model, "measured", lambda: TYPICAL_RATES)
    long = Job(**{**vars(JOB), "N": 3000, "frames": 10**6, "epochs": 50})
    for verbose, job in ((0, long), (1, JOB)):
        cost_model.check(job, verbose)
        assert capsys.readouterr().err == ""
    cost_model.check(long, 1)
    printed = capsys.readouterr().err
    assert printed.startswith("this fit needs about ")
    assert printed.endswith("; you have 24.0 GB\n")


# Counted by hand: 4 units with 2 connections each, 2 inputs, 3 outputs, so M = 7 columns; 10 frames and 5 held out.
SMALL = Job(N=4, n_in=2, n_out=3, connections=2, frames=10, held_out=5, longest=6, batch=4)
LARGE = Job(N=9_997, n_in=2, n_out=3, connections=2, frames=1000, held_out=500, longest=6, batch=200)  # M = 10,000
WIDE = 3e-9 * 49  # seconds that a solution of M = 7 takes beside its operations


def changed(job=SMALL, **changes):
    return Job(**{**vars(job), **changes})


def counts(cost):
    """Return how often each elementary operation occurs: the cost where it takes a second, and others no time."""
    none = dict.fromkeys(vars(TYPICAL_RATES), 0.0)
    rest = cost(cost_model.Rates(**none))
    found = {name: cost(cost_model.Rates(**{**none, name: 1.0})) - rest for name in none}
    return {name: value for name, value in found.items() if abs(value) > 1e-9}


def approximately(**wanted):
    return pytest.approx(wanted, rel=1e-9)


def test_columns_of_the_readout():
    assert SMALL.M == 7
    assert changed(direct=False).M == 5


def test_operations_of_one_pass_and_of_one_solution():
    assert counts(lambda r: cost_model.states(SMALL, 10, r)) == approximately(flop=160, column=20, unit=40, link=80)
    assert counts(lambda r: cost_model.gram(SMALL, 10, r)) == approximately(flop64=490, column=70)
    assert counts(lambda r: cost_model.solve(SMALL, r)) == approximately(factor=343 / 3, flop64=294)
    assert cost_model.solve(SMALL, TYPICAL_RATES.scaled(0.0)) == pytest.approx(WIDE)
    back = 1 + 4 / 2500  # the way back waits for memory
    assert counts(lambda r: cost_model.gradient(SMALL, 10, r)) == approximately(
        flop=820, column=170, unit_back=40 * back, link_back=80 * back
    )
    doubled = changed(itemsize=8)  # products of states in float64
    assert counts(lambda r: cost_model.states(doubled, 10, r))["flop64"] == pytest.approx(160)
    two = changed(threads=2)
    for cost in (cost_model.states, cost_model.gram, cost_model.gradient):
        assert cost(two, 10, TYPICAL_RATES) == pytest.approx(cost(SMALL, 10, TYPICAL_RATES) / 2)
    assert cost_model.solve(two, TYPICAL_RATES) == cost_model.solve(SMALL, TYPICAL_RATES)


def test_operations_of_the_choice_of_a_ridge(monkeypatch):
    assert cost_model.choose(changed(choose=False), TYPICAL_RATES) == 0
    assert counts(lambda r: cost_model.choose(SMALL, r)) == approximately(eigen=343)
    monkeypatch.setattr(cost_model, "MAX_COLUMNS_PER_THREAD", 7)
    assert not SMALL.wide
    monkeypatch.setattr(cost_model, "MAX_COLUMNS_PER_THREAD", 6)
    assert SMALL.wide
    solution = cost_model.solve(SMALL, TYPICAL_RATES)
    assert cost_model.solve(changed(threads=2), TYPICAL_RATES) == pytest.approx(solution / 2)
    assert cost_model.choose(SMALL, TYPICAL_RATES) == pytest.approx(len(cost_model.RIDGE_PATH) * solution)
    assert counts(lambda r: cost_model.choose(changed(held_out=0), r)) == approximately(eigen=343)


@pytest.mark.parametrize("kept", [True, False])
def test_operations_of_large_readouts(kept, monkeypatch):
    """One pass and 20 more over 1,500 frames, five in an epoch over 1,000; states that are kept are computed once."""
    monkeypatch.setattr(cost_model.conjugate_gradients, "kept_bytes", lambda frames, N, itemsize: int(kept))
    large = counts(lambda r: cost_model.ridge_readout(LARGE, r))
    runs, products = 1 if kept else 21, 1.5 * 4 * 10_000 * 3
    assert large["flop"] == pytest.approx(1500 * (21 * products + runs * 2 * 2 * 9_997))
    assert large["unit"] == pytest.approx(runs * 1500 * 9_997)
    runs = 1 if kept else 5
    whole = counts(lambda r: cost_model.epoch(changed(LARGE, batch=None), r))  # and one run each for the rest
    assert whole["unit"] == pytest.approx(9_997 * (runs * 1000 + 1000 + 500))
    gradient = 2 * (10_000 * 3 + 9_997 * 3 + 2 * 9_997) * 1000
    states = 2 * 2 * 9_997 * (runs * 1000 + 1000 + 500)
    assert whole["flop"] == pytest.approx(5 * 1000 * products + gradient + states)
    assert whole["unit_back"] == pytest.approx(2 * 9_997 * 1000)  # waits for memory as long as it computes


def test_operations_of_the_readouts():
    found = counts(lambda r: cost_model.ridge_readout(SMALL, r))
    assert found == approximately(
        flop=240, column=30 + 105, unit=60, link=120, flop64=735 + 294, factor=343 / 3, eigen=343
    )
    softmax = counts(lambda r: cost_model.softmax_readout(SMALL, r))  # four strengths, 100 steps of 2,048 frames
    assert softmax["unit"] == pytest.approx(4 * 204_800 * 4)
    assert softmax["flop"] == pytest.approx(4 * 204_800 * (16 + 2 * 7 * 7 * 3 / 2048 + 4 * 7 * 3))
    assert softmax["factor"] == pytest.approx(4 * 343 / 3)
    assert softmax["flop64"] == pytest.approx(4 * 343 * 2)
    more = counts(lambda r: cost_model.softmax_readout(changed(frames=300_000, threads=2), r))
    assert more["flop"] == pytest.approx(4 * 300_000 * (8 + 2 * 7 * 7 * 3 / 2048 + 4 * 7 * 3 / 2))
    rank = cost_model.SKETCH_RANK
    assert counts(lambda r: cost_model.softmax_readout(LARGE, r))["factor"] == pytest.approx(4 * 10_000 * rank**2 / 3)


def test_operations_of_an_epoch():
    """Ten frames in mini-batches of four: two solutions; in one batch: one solution, and a second pass of states."""
    back = 1 + 4 / 2500
    found = counts(lambda r: cost_model.epoch(SMALL, r))
    validation = 80 + 2 * 5 * 7 * 3
    assert found == approximately(
        flop=160 + 820 + validation,
        column=20 + 70 + 170 + 10,
        unit=40 + 20,
        link=80 + 40,
        flop64=490 + 2 * 294,
        factor=2 * 343 / 3,
        unit_back=40 * back,
        link_back=80 * back,
    )
    whole = counts(lambda r: cost_model.epoch(changed(batch=None), r))
    assert whole["unit"] == pytest.approx(80 + 20)
    assert whole["factor"] == pytest.approx(343 / 3)
    assert counts(lambda r: cost_model.epoch(changed(batch=40), r))["factor"] == pytest.approx(343 / 3)
    large = counts(lambda r: cost_model.epoch(LARGE, r))
    updates = 1.5 * cost_model.trackers.ITERATIONS_PER_BATCH * 4 * 10_000 * 3 * 1000
    gradient = 2 * (10_000 * 3 + 9_997 * 3 + 2 * 9_997) * 1000
    assert large["flop"] == pytest.approx(updates + gradient + 2 * 2 * 9_997 * 1500)


def test_seconds_of_a_whole_fit(monkeypatch):
    monkeypatch.setattr(cost_model, "thread_count", lambda: 2)
    ridge, epoch = cost_model.ridge_readout(SMALL, TYPICAL_RATES), cost_model.epoch(SMALL, TYPICAL_RATES)
    assert seconds(SMALL, TYPICAL_RATES) == pytest.approx(ridge)
    assert seconds(changed(epochs=3), TYPICAL_RATES) == pytest.approx(3 * epoch + 2 * ridge)
    both = seconds(changed(epochs=3, softmax=True), TYPICAL_RATES)
    assert both == pytest.approx(3 * epoch + 2 * ridge + cost_model.softmax_readout(SMALL, TYPICAL_RATES))
    for networks, turns in ((2, 1), (3, 2), (4, 2)):
        assert seconds(changed(networks=networks), TYPICAL_RATES) == pytest.approx(turns * ridge)


MEDIUM = Job(N=497, n_in=2, n_out=3, connections=2, frames=10**6, longest=100)  # M = 500: 2 MB of a Gram matrix
GRAM = 500**2 * 8
K = cost_model.frames_at_once(497) // 1600 * 1600  # frames of a group: whole sixteens of sequences of 100 steps


def test_bytes_of_a_pass_for_the_statistics(monkeypatch):
    one = 4 * (497 + 500 + 2)  # bytes of a frame: f(z) and then H_c, H, X
    levels = int(np.ceil(np.log(np.ceil(10**6 / K)) / np.log(cost_model.TERMS_PER_NODE)))
    assert levels >= 2
    wanted = K * (one + 8 * 500) + (1 + 1 + levels) * GRAM
    assert cost_model.statistics_bytes(MEDIUM) == pytest.approx(wanted)
    two = K * 2 * (one + 8 * 500) + (2 + 1 + levels) * GRAM
    assert cost_model.statistics_bytes(changed(MEDIUM, threads=2)) == pytest.approx(two)
    long = cost_model.frames_at_once(497)  # sixteen sequences of this length are more than a group
    levels = int(np.ceil(np.log(np.ceil(10**6 / long)) / np.log(cost_model.TERMS_PER_NODE)))
    wanted = long * (one + 8 * 500) + (1 + 1 + levels) * GRAM
    assert cost_model.statistics_bytes(changed(MEDIUM, longest=long)) == pytest.approx(wanted)
    few = changed(MEDIUM, frames=50, threads=2)  # fewer than a group
    assert cost_model.statistics_bytes(few) == pytest.approx(50 * (one + 8 * 500) + 4 * GRAM)
    back = changed(MEDIUM, bidirectional=True, longest=50_000)  # time is not cut, and both directions are kept
    levels = int(np.ceil(np.log(10**6 / 50_000) / np.log(cost_model.TERMS_PER_NODE)))
    wanted = 50_000 * (4 * (2 * 497 + 500 + 2) + 8 * 500) + (1 + 1 + levels) * GRAM
    assert cost_model.statistics_bytes(back) == pytest.approx(wanted)
    monkeypatch.setattr(cost_model, "MAX_COLUMNS_PER_THREAD", 400)
    tiles = 2 * cost_model.MAX_COLUMNS_PER_TILE**2 * 8
    wanted = 2 * K * one + K * 500 * (4 + 8) + tiles + GRAM
    assert cost_model.statistics_bytes(changed(MEDIUM, threads=2)) == pytest.approx(wanted)


def test_bytes_of_the_readouts(monkeypatch):
    monkeypatch.setattr(cost_model, "statistics_bytes", lambda job: 3e6)
    assert cost_model.ridge_bytes(MEDIUM) == pytest.approx(6 * GRAM)
    assert cost_model.ridge_bytes(changed(MEDIUM, held_out=9)) == pytest.approx(7 * GRAM)
    assert cost_model.ridge_bytes(changed(MEDIUM, choose=False)) == pytest.approx(2.3 * GRAM)
    monkeypatch.setattr(cost_model, "statistics_bytes", lambda job: 3e9)
    assert cost_model.ridge_bytes(MEDIUM) == pytest.approx(3e9)
    assert cost_model.ridge_bytes(changed(MEDIUM, held_out=9)) == pytest.approx(3e9 + GRAM)
    monkeypatch.setattr(cost_model, "statistics_bytes", lambda job: 0.0)
    monkeypatch.setattr(cost_model, "MAX_COLUMNS_PER_THREAD", 400)
    assert cost_model.ridge_bytes(changed(MEDIUM, held_out=9)) == pytest.approx(3.3 * GRAM)
    assert cost_model.ridge_bytes(MEDIUM) == pytest.approx(6 * GRAM)
    wanted = 6 * GRAM + 3 * 4 * 2048 * 3 * (497 + 500) * 4
    assert cost_model.softmax_bytes(changed(MEDIUM, threads=2)) == pytest.approx(wanted)
    assert cost_model.softmax_bytes(changed(MEDIUM, frames=10)) == pytest.approx(6 * GRAM + 10 * 3 * 997 * 4)


def test_bytes_of_an_epoch(monkeypatch):
    monkeypatch.setattr(cost_model, "ridge_bytes", lambda job: 1e6)
    one = 4 * (2 * 497 + 500) + 8 * 500
    minibatch = changed(MEDIUM, batch=3000)
    assert cost_model.learning_bytes(minibatch) == pytest.approx(3000 * one + 4 * GRAM)
    long = changed(minibatch, longest=9000, threads=2)
    assert cost_model.learning_bytes(long) == pytest.approx(9000 * one + 5 * GRAM)
    both = changed(minibatch, bidirectional=True)
    assert cost_model.learning_bytes(both) == pytest.approx(3000 * (one + 4 * 497) + 4 * GRAM)
    assert cost_model.learning_bytes(changed(MEDIUM, threads=2)) == pytest.approx(2 * K * one + 5 * GRAM)
    assert cost_model.learning_bytes(changed(MEDIUM, frames=200)) == pytest.approx(200 * one + 4 * GRAM)
    monkeypatch.setattr(cost_model, "ridge_bytes", lambda job: 1e12)
    assert cost_model.learning_bytes(minibatch) == 1e12


def test_the_largest_step_decides_on_the_bytes_of_a_fit(monkeypatch):
    monkeypatch.setattr(cost_model, "thread_count", lambda: 2)
    for name, size in (("ridge", 1e9), ("softmax", 3e9), ("learning", 2e9), ("iterative", 5e9)):
        monkeypatch.setattr(cost_model, f"{name}_bytes", lambda job, size=size: size)
    assert nbytes(MEDIUM) == pytest.approx(20e6 + 1e9)
    assert nbytes(changed(MEDIUM, epochs=1)) == pytest.approx(20e6 + 2e9)
    assert nbytes(changed(MEDIUM, epochs=1, softmax=True)) == pytest.approx(20e6 + 3e9)
    assert nbytes(changed(MEDIUM, networks=5)) == pytest.approx(20e6 + 2e9)
    assert nbytes(changed(MEDIUM, networks=1)) == pytest.approx(20e6 + 1e9)
    assert nbytes(LARGE) == pytest.approx(20e6 + 5e9)


def test_bytes_of_a_large_network():
    group = cost_model.frames_at_once(9_997)
    sketch = 10_000 * (cost_model.SAMPLE_FRAMES * 12 + 16 * cost_model.SKETCH_RANK) + 64 * 10_000 * 3
    assert cost_model.iterative_bytes(LARGE) == pytest.approx(sketch + 2 * group * 16 * 10_000)
    learning = changed(LARGE, epochs=1, batch=10 * group, threads=2)
    assert cost_model.iterative_bytes(learning) == pytest.approx(sketch + 3 * 10 * group * 16 * 10_000)
    long = changed(LARGE, epochs=1, batch=None, longest=20 * group)
    assert cost_model.iterative_bytes(long) == pytest.approx(sketch + 2 * 20 * group * 16 * 10_000)


def test_a_fit_that_needs_just_what_is_free_is_not_refused(monkeypatch):
    monkeypatch.setattr(cost_model, "nbytes", lambda job: 5e8)
    monkeypatch.setattr(cost_model, "available_memory", lambda: 5e8)
    cost_model.check(SMALL, 0)
    monkeypatch.setattr(cost_model, "available_memory", lambda: 4.9e8)
    with pytest.raises(MemoryError, match=r"needs about 0\.5 GB and 0\.5 GB are free.*10 frames, 4 in a mini-batch\."):
        cost_model.check(SMALL, 0)
