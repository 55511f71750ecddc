"""A U that follows the weights, against running sums solved anew for every mini-batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toys
from echolearn import ESNClassifier, ESNRegressor
from echolearn.readout import conjugate_gradients as iterative
from echolearn.readout import incremental as following
from echolearn.readout.collect import Task, observed
from echolearn.readout.incremental import follow
from echolearn.readout.ridge import loss, solve
from echolearn.readout.statistics import statistics_of
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from echolearn.training import loop as training

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
def test_following_to_the_end_is_what_running_sums_solve(seed, width, n_out, mu, classes):
    """With all of G behind `inverse`, and a mini-batch that is a small share of many frames."""
    r = np.random.default_rng(seed)
    n, share = 4000, 1e-9
    H = np.hstack([r.normal(size=(n, width)) + 1, np.ones((n, 1))])
    T = r.integers(0, n_out, n) if classes else r.normal(size=(n, n_out))
    batch, past = (H[:60], T[:60]), (H[60:], T[60:])
    sums = statistics_of(*past, n_out)
    U = solve(sums, mu, intercept=True)
    inverse = iterative.sketch(past[0], len(past[0]), width).inverse(mu)
    piles = [(batch[0][:20], batch[1][:20]), (batch[0][20:], batch[1][20:])]
    followed = follow(U, piles, inverse, mu, share, training.TURNOVER, iterations=60)
    expected = solve(training.running(sums, statistics_of(*batch, n_out), share), mu, intercept=True)
    np.testing.assert_allclose(followed, expected, atol=1e-6 * np.abs(expected).max())


def test_few_iterations_go_most_of_the_way():
    """Half of G's directions unknown: four steps still come closer to the running sums' U than the old U is."""
    r = np.random.default_rng(0)
    H = np.hstack([r.normal(size=(4000, 20)) @ r.normal(size=(20, 20)), np.ones((4000, 1))])
    T = r.normal(size=(4000, 3)) + H[:, :3]
    sums = statistics_of(H[200:], T[200:], 3)
    U = solve(sums, 1.0, intercept=True)
    inverse = iterative.sketch(H[200:], 3800, 10).inverse(1.0)
    followed = follow(U, [(H[:200], T[:200])], inverse, 1.0, 0.05, training.TURNOVER)
    sums = training.running(sums, statistics_of(H[:200], T[:200], 3), 0.05)
    best = solve(sums, 1.0, intercept=True)

    def excess(U):
        return loss(sums, U, 1.0, intercept=True) - loss(sums, best, 1.0, intercept=True)

    assert excess(followed) < 0.5 * excess(U)


def test_all_products_of_a_mini_batch_are_in_its_precision():
    """float64 would copy the states for every product."""
    X, y = toys.labels(sequences=4)
    data = Dataset(X, [(v == "low").astype(int) for v in y], 2, True, np.dtype("float32"))
    reservoir = Reservoir.random(2, 15, connections=4, random_state=0)
    follower = following.Follower(data, Task(), np.float64(0.1), training.TURNOVER, np.random.default_rng(0))
    U = follower.start(reservoir)
    follower.begin(reservoir)
    met = []

    def inverse(R, apply=follower.inverse):
        met.extend([R.dtype, apply(R).dtype])
        return apply(R)

    follower.inverse = inverse
    U = follower.step(U, [observed(reservoir, Task(), data.batch([0, 1]))[:2]], np.float64(0.5))
    assert {*met, U.dtype} == {np.dtype("float32")}


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
    small = ESNRegressor(**how).fit(X, VALUES)
    monkeypatch.setattr(iterative, "FROM", 0)
    monkeypatch.setattr(following, "RENEWAL", 1)
    large = ESNRegressor(**how).fit(X, VALUES)
    moved = large.input_weights_ - ESNRegressor(**{**how, "learn": "none"}).fit(X, VALUES).input_weights_
    assert np.abs(moved).max() > 1e-4
    assert large.history_[-1]["error"] < large.history_[0]["error"]
    assert abs(large.score(X, VALUES) - small.score(X, VALUES)) < 0.1


@pytest.mark.parametrize("kind", ["mini-batches", "case 1", "full batch", "full batch, case 1"])
def test_large_networks_go_on_to_the_bit(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(iterative, "FROM", 0)
    monkeypatch.setattr(iterative, "SAMPLE", 40)
    how = {**toys.FAST, "epochs": 4, "patience": None, "validation_fraction": 0.25, **KINDS[kind]}
    straight = ESNClassifier(**how).fit(X, LABELS)
    with pytest.raises(KeyboardInterrupt):
        ESNClassifier(**how).fit(X, LABELS, checkpoint=tmp_path / "kept", callback=toys.interrupt_at(2))
    resumed = ESNClassifier(**how).fit(X, LABELS, checkpoint=tmp_path / "kept")
    np.testing.assert_array_equal(resumed._U, straight._U)
    np.testing.assert_array_equal(resumed.recurrent_weights_.data, straight.recurrent_weights_.data)
    errors = [[row["error"] for row in esn.history_] for esn in (resumed, straight)]
    assert errors[0] == errors[1]
