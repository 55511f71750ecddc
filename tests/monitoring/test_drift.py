"""The test of Page and Hinkley, and how rare its false alarms are."""

from __future__ import annotations

import numpy as np
import pytest

from echolearn.monitoring import PageHinkley
from echolearn.monitoring._scores import Anchor, Reference


def test_sums_are_those_of_page_and_hinkley():
    """The witness is the definition: the sum of z - k so far, less its smallest value so far."""
    z = np.random.default_rng(0).standard_normal((300, 2)) + np.array([0.3, -0.3])
    test = PageHinkley(0.25, 1e-6)
    sums, alarm = test.run(z)
    for row, side in ((0, z), (2, -z)):
        walk = np.vstack([np.zeros(2), np.cumsum(side - 0.25, axis=0)])
        expected = (walk - np.minimum.accumulate(walk, axis=0))[1:] / test.threshold(2)
        np.testing.assert_allclose(sums[:, row], expected[: len(sums)], atol=1e-12)
        np.testing.assert_array_equal(sums[:, row], sums[:, row + 1])  # independent: patient and quick are the same
    assert alarm is None or sums[alarm].max() > 1


def test_false_alarms_are_as_rare_as_asked():
    """80 series of 500 independent numbers, one alarm in 1000 steps: 40 alarms, less those after a first one."""
    rng = np.random.default_rng(0)
    test = PageHinkley(0.5, 1 / 1000)
    alarms = sum(test.run(rng.standard_normal((500, 1)))[1] is not None for _ in range(80))
    assert 15 < alarms < 48


def test_correlated_numbers_do_not_raise_more_of_them():
    rng = np.random.default_rng(0)
    alarms = {1.0: 0, None: 0}
    for _ in range(20):
        shocks = rng.standard_normal(1500)
        z = np.zeros(1500)
        for t in range(1, 1500):
            z[t] = 0.8 * z[t - 1] + 0.6 * shocks[t]
        anchor = Anchor.of(z[:500, None], Reference.of(z[:500, None], one_sided=True))
        numbers = anchor.normal_scores(z[500:, None])
        for given in alarms:
            alarms[given] += PageHinkley(0.25, 1e-4).run(numbers, None, given or anchor.correlation)[1] is not None
    assert alarms[None] <= 5
    assert alarms[1.0] >= 10


def test_the_quick_sum_finds_a_large_change_of_correlated_numbers_early():
    z = np.full((400, 1), 2.5)
    test = PageHinkley()
    _, quick = test.run(z, None, 16.0)
    assert quick < 0.5 * 16 * test.threshold() / (2.5 - 0.25)


def test_one_sided_tests_let_errors_shrink():
    z = np.full((200, 1), -1.0)
    assert PageHinkley().run(z)[1] is not None
    assert PageHinkley(two_sided=False).run(z)[1] is None


@pytest.mark.parametrize("wrong", [{"allowance": 0}, {"false_alarms": 0.0}, {"false_alarms": 1}, {"two_sided": 1}])
def test_parameters_of_the_test_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        PageHinkley(**wrong)
