"""Scores and p-values of errors among earlier ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from echolearn.monitoring._scores import Reference, largest


@pytest.mark.parametrize("draw", ["normal", "laplace", "t"])
def test_p_values_are_those_of_the_distribution(draw):
    """Beside the exact probability of |e| at its 99.9 % quantile, which no rank among 1000 can tell."""
    law = {"normal": stats.norm(), "laplace": stats.laplace(), "t": stats.t(4)}[draw]
    found = []
    for seed in range(30):
        reference = Reference.of(law.rvs((1000, 1), random_state=seed), one_sided=False)
        far = law.isf(0.0005)
        found.append(reference.p_values(largest(reference.distances(np.array([[far]])))[0])[0])
    assert 0.5e-3 < np.median(found) < 2e-3


def test_p_values_fall_without_end_and_are_ranks_in_the_bulk():
    errors = np.random.default_rng(0).standard_normal((2000, 1))
    reference = Reference.of(errors, one_sided=False)
    scores = np.sort(largest(reference.distances(errors))[0])
    p = reference.p_values(scores)
    np.testing.assert_allclose(p[:1600], (2001 - np.arange(1600)) / 2001)
    far = reference.p_values(np.linspace(0, 1e4, 20000))
    assert (np.diff(far) <= 0).all()
    assert far[-1] > 0
    assert reference.p_values(np.array([20.0]))[0] < 1e-8


def test_the_scale_is_robust_and_each_output_has_its_own():
    rng = np.random.default_rng(0)
    errors = rng.standard_normal((400, 2)) * [1.0, 1000.0] + [0.0, 50.0]
    errors[:40] = 1e6  # a tenth of them are wild
    reference = Reference.of(errors, one_sided=False)
    assert 0.8 < reference.scale[0] < 1.5
    assert 800 < reference.scale[1] < 1500
    scores, which = largest(
        reference.distances(np.array([[6.0, 0.0], [0.0, 6000.0], [np.nan, 60.0], [np.nan, np.nan]]))
    )
    assert which[:3].tolist() == [0, 1, 1]
    assert np.isnan(scores).tolist() == [False, False, False, True]


def test_known_anomalies_do_not_widen_the_tail():
    errors = np.random.default_rng(0).standard_normal((500, 1))
    clean = Reference.of(errors, one_sided=False)
    unusual = np.zeros(500, bool)
    unusual[:5] = True
    errors[:5] = 100.0
    told, not_told = (Reference.of(errors, one_sided=False, unusual=u, level=1e-4) for u in (unusual, None))
    score = np.array([6.0])
    assert told.p_values(score)[0] < 50 * clean.p_values(score)[0]
    assert not_told.p_values(score)[0] > 20 * told.p_values(score)[0]


def test_losses_are_unusual_only_if_large():
    reference = Reference.of(np.random.default_rng(0).exponential(size=(500, 1)), one_sided=True)
    low, high = reference.p_values(largest(reference.distances(np.array([[-5.0], [12.0]])))[0])
    assert low == 1.0
    assert high < 1e-3


@pytest.mark.parametrize("errors", [np.zeros((100, 1)), np.full((100, 2), 3.0), np.full((100, 1), np.nan)])
def test_errors_that_are_all_alike(errors):
    reference = Reference.of(errors, one_sided=False)
    with np.errstate(all="raise"):
        p = reference.p_values(largest(reference.distances(errors[:1]))[0])
    assert np.isnan(p[0]) or p[0] == pytest.approx(1)
    other = reference.p_values(largest(reference.distances(errors[:1] + 1))[0])
    assert np.isnan(other[0]) or other[0] < 0.02
