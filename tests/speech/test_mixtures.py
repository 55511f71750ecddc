"""Mixtures of Gaussians: their densities against scipy's, and expectation-maximisation."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from echolearn.speech.mixtures import Mixtures


def test_log_densities_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    S, M, D = 3, 2, 4
    mix = Mixtures(
        np.log(np.array([[0.3, 0.7], [0.5, 0.5], [0.9, 0.1]])),
        rng.normal(size=(S, M, D)),
        rng.uniform(0.5, 2, size=(S, M, D)),
        np.full(D, 1e-3),
    )
    X = rng.normal(size=(5, D)).astype(np.float32)
    each = norm.logpdf(X[:, None, None, :], mix.means, np.sqrt(mix.variances)).sum(axis=3) + mix.log_weights
    np.testing.assert_allclose(mix.log_densities(X, np.arange(S)), logsumexp(each, axis=2), rtol=1e-4)


def test_reestimation_gives_mean_and_variance_and_never_lowers_the_likelihood() -> None:
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(-2, 1, (200, 3)), rng.normal(3, 0.5, (100, 3))]).astype(np.float32)
    labels = np.zeros(300, dtype=np.int64)
    flat = Mixtures.flat(2, np.zeros(3), np.ones(3))
    one = flat.reestimated(X, labels)
    np.testing.assert_allclose(one.means[0, 0], X.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(one.variances[0, 0], X.var(axis=0), rtol=1e-3)
    np.testing.assert_array_equal(one.means[1], flat.means[1])  # a state without frames keeps its density
    model, last = one.grown(2, np.array([300, 0])), -np.inf
    for _ in range(8):
        model = model.reestimated(X, labels)
        now = float(model.log_densities(X, np.array([0])).sum())
        assert now >= last - 1e-2
        last = now
    np.testing.assert_allclose(sorted(model.means[0, :, 0]), [-2, 3], atol=0.3)
    assert model.log_weights[1, 1] == -np.inf  # a state without frames is not split


def test_variances_have_a_floor() -> None:
    X = np.ones((50, 2), dtype=np.float32)
    mix = Mixtures.flat(1, np.zeros(2), np.full(2, 4.0)).reestimated(X, np.zeros(50, dtype=np.int64))
    np.testing.assert_allclose(mix.variances, 0.04)
