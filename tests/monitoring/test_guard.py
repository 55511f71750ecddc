"""Online learning under guard: bad weights are withdrawn, good ones kept, copies exact."""

from __future__ import annotations

import numpy as np
import pytest

from echolearn import ESNClassifier, ESNRegressor
from echolearn.monitoring import GuardedStream
from echolearn.readout import LMS, RLS

rng = np.random.default_rng(0)
X = rng.standard_normal((1600, 1))
Y = np.ravel(np.roll(X, 1)) + 0.1 * rng.standard_normal(1600)
FORGETS = RLS(forgetting=0.99)


@pytest.fixture(scope="module")
def esn():
    return ESNRegressor(20, learn="none", dtype="float64").fit(X[:400], Y[:400])


def later_error(stream, targets, part):
    return np.mean((np.ravel(stream.learn(X[400:], targets))[part] - Y[400:][part]) ** 2)


def test_bad_targets_are_forgotten_at_the_next_test(esn):
    bad = Y[400:].copy()
    bad[300:400] = 3.0
    after = slice(500, 600)
    guarded = GuardedStream(esn.stream(online=FORGETS))
    under_guard, alone = later_error(guarded, bad, after), later_error(esn.stream(online=FORGETS), bad, after)
    assert under_guard < 0.5 * alone
    assert guarded.rollbacks[0].step == 500
    assert guarded.rollbacks[0].to in (200, 300)
    assert guarded.rollbacks[0].worse > 1.1
    assert guarded.steps == 1200


def test_a_real_change_is_learned(esn):
    guarded = GuardedStream(esn.stream(online=FORGETS))
    answers = np.ravel(guarded.learn(X[400:], -Y[400:]))
    assert np.mean((answers[-200:] + Y[1400:]) ** 2) < 0.05
    assert guarded.rollbacks == []


@pytest.mark.parametrize("bound", [0.0, 1e9])
def test_the_bound_decides(esn, bound):
    bad = Y[400:].copy()
    bad[300:400] = 3.0
    guarded = GuardedStream(esn.stream(online=FORGETS), bound=bound)
    guarded.learn(X[400:], bad)
    assert bool(guarded.rollbacks) == (bound == 0.0)


def test_weights_that_pass_become_the_ones_to_return_to(esn):
    """Without bad targets nothing is withdrawn, and the answers are those of the stream alone, to the bit."""
    guarded, alone = GuardedStream(esn.stream(online=RLS())), esn.stream(online=RLS())
    np.testing.assert_array_equal(guarded.learn(X[400:800], Y[400:800]), alone.learn(X[400:800], Y[400:800]))
    assert guarded.rollbacks == []
    np.testing.assert_array_equal(guarded.stream.readout_weights, alone.readout_weights)


def test_a_rollback_has_the_weights_of_its_time_and_the_state_of_now(esn):
    bad = Y[400:].copy()
    bad[100:200] = 3.0
    guarded, alone = GuardedStream(esn.stream(online=FORGETS), keep=2), esn.stream(online=FORGETS)
    weights = {0: alone.readout_weights}
    for at in (0, 100, 200):
        guarded.learn(X[400 + at : 500 + at], bad[at : at + 100])
        alone.learn(X[400 + at : 500 + at], bad[at : at + 100])
        weights[at + 100] = alone.readout_weights
    (rollback,) = guarded.rollbacks
    np.testing.assert_array_equal(guarded.stream.readout_weights, weights[rollback.to])
    np.testing.assert_array_equal(guarded.stream.state, alone.state)


def test_divergence_is_withdrawn_at_once(esn):
    class Explodes(LMS):
        def step(self, P, U, phi, E):
            return P, U * np.inf if phi[-2] > 2 else U

    guarded = GuardedStream(esn.stream(online=Explodes()))
    with np.errstate(all="ignore"):
        answers = guarded.learn(X[400:700], Y[400:700])
    assert np.isfinite(answers).all()
    assert guarded.rollbacks
    assert guarded.rollbacks[0].worse == np.inf


def test_copies_are_exact_and_independent(esn):
    bad = Y[400:].copy()
    bad[100:200] = 3.0
    guarded = GuardedStream(esn.stream(online=FORGETS))
    guarded.learn(X[400:530], bad[:130])
    runs = []
    for copy in (guarded.copy(), guarded.copy()):
        runs.append((copy.learn(X[530:900], bad[130:500]), copy.stream.readout_weights, copy.rollbacks))
    np.testing.assert_array_equal(runs[0][0], runs[1][0])
    np.testing.assert_array_equal(runs[0][1], runs[1][1])
    assert runs[0][2] == runs[1][2] != []
    assert guarded.steps == 130


def test_labels_are_compared_by_mistakes():
    x = np.random.default_rng(3).standard_normal((1000, 1))
    y = (x[:, 0] > 0) * 5 + 2  # numbers as labels: 2 and 7
    esn = ESNClassifier(20, learn="none").fit(x[:300], y[:300])
    guarded = GuardedStream(esn.stream(online=LMS(0.5)))
    bad = y[300:].copy()
    bad[100:200] = 2
    guarded.learn(x[300:], bad)
    assert [r.step for r in guarded.rollbacks][:1] == [300]
    assert guarded.predict_proba(x[:5]).shape == (5, 2)
    assert guarded.predict(x[0]) in (2, 7)
    assert guarded.steps == 706


@pytest.mark.parametrize(
    ("use", "kind", "says"),
    [
        (lambda esn: GuardedStream(esn), TypeError, "ESNRegressor"),
        (lambda esn: GuardedStream(esn.stream(), bound=-1), ValueError, "bound"),
        (lambda esn: GuardedStream(esn.stream(), every=1), ValueError, "every"),
        (lambda esn: GuardedStream(esn.stream()).learn(X[:3], Y[:3]), ValueError, "does not learn"),
        (lambda esn: GuardedStream(esn.stream(online=RLS())).learn(X[:3], Y[:2]), ValueError, "2 entries"),
        (lambda esn: GuardedStream(esn.stream()).predict_proba(X[:3]), AttributeError, "not with probabilities"),
    ],
)
def test_typical_mistakes_are_explained(esn, use, kind, says):
    with pytest.raises(kind, match=says):
        use(esn)
