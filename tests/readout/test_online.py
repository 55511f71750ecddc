"""Online readouts against the minimum of what they claim to minimise, solved at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from echolearn import Reservoir
from echolearn.readout import LMS, RLS
from echolearn.readout.ridge import solve
from echolearn.readout.statistics import statistics_of
from echolearn.streams import Stream


def frames(seed, K=30, M=5, n_out=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(K, M)), rng.normal(size=(K, n_out)), rng.normal(size=(M, n_out))


def learned(rule, Phi, T, U, A=None):
    P = rule.start(len(U), A)
    for phi, t in zip(Phi, T, strict=True):
        P, U = rule.step(P, U, phi, phi @ U - t)
    return P, U


@pytest.mark.parametrize("mu", [1e-3, 0.7, 50.0])
def test_rls_without_forgetting_is_the_ridge_solution(mu):
    Phi, T, U = frames(0)
    _, got = learned(RLS(ridge=mu), Phi, T, 0 * U)
    np.testing.assert_allclose(got, solve(statistics_of(Phi, T, 2), mu, intercept=False), rtol=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 999), st.floats(0.5, 1.0), st.floats(0.01, 100.0))
def test_rls_minimises_its_documented_error(seed, forgetting, ridge):
    Phi, T, U_0 = frames(seed, K=12)
    _, got = learned(RLS(forgetting, ridge), Phi, T, U_0)
    weights = forgetting ** np.arange(11, -1, -1)
    slow = ref.weighted_ridge(Phi, T, weights, forgetting**12 * ridge * np.eye(5), U_0)
    np.testing.assert_allclose(got, slow, rtol=1e-6, atol=1e-8)


def test_rls_continues_from_a_gram_matrix():
    Phi, T, U_0 = frames(1)
    A = Phi[:10].T @ Phi[:10] + 0.1 * np.eye(5)
    U_0 = np.linalg.solve(A, Phi[:10].T @ T[:10])
    _, got = learned(RLS(), Phi[10:], T[10:], U_0, A)
    np.testing.assert_allclose(got, ref.ridge(Phi.T, T.T, 0.1), rtol=1e-9)


def test_the_memory_of_rls_stays_symmetric_to_the_bit():
    Phi, T, U_0 = frames(2, K=500)
    P, _ = learned(RLS(0.98, 1.0), Phi, T, U_0)
    np.testing.assert_array_equal(P, P.T)
    assert np.linalg.eigvalsh(P).min() > 0


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0, 1.9])
def test_lms_removes_its_share_of_the_error_and_changes_nothing_else(rate):
    Phi, T, U = frames(3)
    phi, t = Phi[0], T[0]
    _, new = LMS(rate).step(np.empty(0), U, phi, phi @ U - t)
    np.testing.assert_allclose(phi @ new - t, (1 - rate) * (phi @ U - t), atol=1e-12)
    across = np.linalg.svd(phi[None])[2][1:]  # directions about which this frame has no information
    np.testing.assert_allclose(across @ new, across @ U, atol=1e-12)


def test_lms_finds_a_linear_rule():
    Phi, _, U = frames(4, K=2000)
    _, got = learned(LMS(0.5), Phi, Phi @ U, 0 * U)
    np.testing.assert_allclose(got, U, atol=1e-6)


@pytest.mark.parametrize("bad", [0, -0.5, 1.1, np.nan])
def test_forgetting_outside_0_to_1_is_refused(bad):
    with pytest.raises(ValueError, match=r"forgetting=.*expected a number in \(0, 1\]"):
        RLS(bad)


@pytest.mark.parametrize("bad", [0, -1.0, np.inf, np.nan])
def test_a_ridge_that_is_not_positive_is_refused(bad):
    with pytest.raises(
        ValueError, match=r"ridge=.*expected a number > 1e-300, or None to continue from the statistics"
    ):
        RLS(ridge=bad)


@pytest.mark.parametrize("bad", [0, 2, -1, np.nan])
def test_a_rate_outside_0_to_2_is_refused(bad):
    with pytest.raises(ValueError, match=r"rate=.*expected a number in \(0, 2\)"):
        LMS(bad)


def test_rls_without_statistics_or_ridge_is_an_error_with_advice():
    with pytest.raises(
        ValueError, match=r"continues from the statistics of a fit, and there are none.*RLS\(ridge=1\.0\)"
    ):
        RLS().start(3, None)
    with pytest.raises(ValueError, match=r"singular in float64.*larger"):
        RLS().start(2, np.zeros((2, 2)))


@pytest.mark.parametrize("seed", range(3))
def test_force_learns_a_sine_and_keeps_producing_it(seed):
    """The reservoir has no input but its own output, from which it learns to produce a sine."""
    r = Reservoir.random(
        1, 150, n_feedback=1, feedback_scaling=1.0, spectral_radius=1.2, leak=0.3, bias_scaling=0.2, random_state=seed
    )
    sine = np.sin(2 * np.pi * np.arange(4000) / 40)
    stream = Stream.untrained(r, 1, online=RLS(ridge=1.0), direct=False)
    nothing = np.zeros(1)
    for target in sine[:3000]:
        stream.learn(nothing, target)
    alone = stream.predict(np.zeros((1000, 1)))[:, 0]
    spectrum = np.abs(np.fft.rfft(alone * np.hanning(1000)))
    assert spectrum.argmax() == 25  # still a period of 40 steps
    assert 0.9 < np.sqrt(2) * alone[-200:].std() < 1.1  # and still of height 1
