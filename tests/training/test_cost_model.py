"""The cost model: close to the memory that a fit uses, growing with its work, and refusals with numbers."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echolearn import ESNClassifier, ESNRegressor
from echolearn.training import cost_model
from echolearn.training.cost_model import TYPICAL, Job, nbytes, seconds

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


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("ESNRegressor", {"hidden_units": 1200, "learn": "none", "ridge": 1e-6}),
        ("ESNRegressor", {"hidden_units": 2200, "learn": "none", "ridge": 1e-6}),
        ("ESNRegressor", {"hidden_units": 1000, "epochs": 1, "ridge": 1.0, "batch_size": 50}),
        ("ESNRegressor", {"hidden_units": 1000, "epochs": 1, "ridge": 1.0, "batch_size": 50, "bidirectional": True}),
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


@settings(max_examples=50)
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
    assert seconds(larger, TYPICAL) >= seconds(job, TYPICAL)
    assert nbytes(larger) >= 0.999 * nbytes(job)


def test_seconds_are_proportional_to_frames_and_bytes_nearly_constant():
    """Ten times the frames are two more levels of the tree of sums."""
    few, many = (Job(**{**vars(JOB), "frames": K, "epochs": 3, "softmax": True}) for K in (10**6, 10**7))
    assert seconds(many, TYPICAL) == pytest.approx(10 * seconds(few, TYPICAL), rel=0.05)
    assert nbytes(few) <= nbytes(many) <= nbytes(few) + 2 * 8 * few.M**2


def test_epochs_on_the_cross_entropy_are_counted():
    learned = Job(**{**vars(JOB), "epochs": 5, "softmax": True})
    refined = [Job(**{**vars(learned), "refine_epochs": n}) for n in (5, 10)]
    five, ten = (seconds(job, TYPICAL) for job in refined)
    one = cost_model.refining(refined[0], TYPICAL) / 5
    assert ten - five == pytest.approx(5 * one)
    assert 0.5 * cost_model.epoch(learned, TYPICAL) < one < 2 * cost_model.epoch(learned, TYPICAL)


def test_full_batches_of_large_networks_pass_over_the_data_for_every_readout():
    large = Job(**{**vars(JOB), "N": 10_000, "epochs": 5})
    batch, full = (cost_model.epoch(Job(**{**vars(large), "batch": b}), TYPICAL) for b in (4000, None))
    assert full > cost_model.ridge_readout(Job(**{**vars(large), "held_out": 0}), TYPICAL)
    assert full > 2 * batch


def test_measured_rates_are_positive_and_in_proportion_to_the_typical_ones():
    rates = cost_model.measured()
    assert rates.flop > 0
    assert rates.unit / rates.flop == pytest.approx(TYPICAL.unit / TYPICAL.flop)


X = [np.random.default_rng(0).normal(size=(100, 3)) for _ in range(10)]
Y = [x[:, :1] for x in X]


def test_a_fit_that_needs_more_memory_than_is_free_is_refused_with_numbers(monkeypatch):
    monkeypatch.setattr(cost_model, "available_memory", lambda: 2e9)
    with pytest.raises(MemoryError, match=r"needs about \d+\.\d GB and 2\.0 GB are free.*hidden_units=20000.*fewer"):
        ESNRegressor(20_000, learn="none").fit(X, Y)
    monkeypatch.setattr(cost_model, "available_memory", lambda: 5e6)
    with pytest.raises(MemoryError, match=r"5 MB are free.*batch_size.*dtype=float32"):
        ESNClassifier(50, dtype="float64", batch_size=8).fit(X, [(y[:, 0] > 0) * 1 for y in Y])


def test_nothing_is_refused_if_the_free_memory_is_unknown(monkeypatch):
    monkeypatch.setattr(cost_model, "available_memory", lambda: None)
    ESNRegressor(10, learn="none").fit(X, Y)


def test_a_long_fit_is_announced(monkeypatch, capsys):
    monkeypatch.setattr(cost_model, "available_memory", lambda: 24e9)
    monkeypatch.setattr(cost_model, "measured", lambda: TYPICAL)
    long = Job(**{**vars(JOB), "N": 3000, "frames": 10**6, "epochs": 50})
    for verbose, job in ((0, long), (1, JOB)):
        cost_model.check(job, verbose)
        assert capsys.readouterr().err == ""
    cost_model.check(long, 1)
    printed = capsys.readouterr().err
    assert printed.startswith("this fit needs about ")
    assert printed.endswith("; you have 24.0 GB\n")
