"""Forecasters that take values one by one."""

import numpy as np
import pytest

from echolearn import ESNForecaster
from echolearn.datasets import mackey_glass

SERIES = mackey_glass(420)[:, 0]


@pytest.mark.parametrize("method", ["closed_loop", "direct"])
def test_a_stream_updates_a_copy_of_its_forecaster(method):
    esn, other = (ESNForecaster(20, learn="none", method=method).fit(SERIES[:400]) for _ in range(2))
    before, stream = esn.predict(5), esn.stream()
    np.testing.assert_array_equal(stream.predict(SERIES[400:410], 5), other.update(SERIES[400:410]).predict(5))
    again = stream.update(SERIES[410]).predict(SERIES[411:], 3)
    np.testing.assert_allclose(again, other.update(SERIES[410:]).predict(3), rtol=1e-9)
    np.testing.assert_array_equal(esn.predict(5), before)


def test_exogenous_inputs_of_new_values_and_of_those_to_come():
    push = np.random.default_rng(0).normal(size=(430, 1))
    esn = ESNForecaster(20, learn="none", method="closed_loop").fit(SERIES[:400], exogenous=push[:400])
    expected = esn.predict(7, warm_up=SERIES[:403], exogenous=push[:410])
    rows = {"exogenous": push[400:403], "ahead": push[403:410]}
    np.testing.assert_allclose(esn.stream().predict(SERIES[400:403], 7, **rows), expected)
    with pytest.raises(ValueError, match="fitted with 1 exogenous inputs"):
        esn.stream().predict(SERIES[400], 7)
