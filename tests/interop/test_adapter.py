"""Adapters take the parameters of an estimator, with its names and defaults."""

from __future__ import annotations

from inspect import signature

import numpy as np
import pytest

from echolearn.interop._adapter import as_columns, chosen_parameters, one_or_many, parameters_of, time_first


class Estimator:
    def __init__(self, units=10, *, leak=0.5, layout="auto"):
        self.units, self.leak, self.layout = units, leak, layout


class Adapter:
    @parameters_of(Estimator, without=["layout"])
    def __init__(self, horizon=1, **parameters):
        self.received = {"horizon": horizon, **parameters}


def test_the_signature_is_that_of_the_estimator_and_its_own():
    shown = signature(Adapter)
    assert {name: p.default for name, p in shown.parameters.items()} == {"units": 10, "horizon": 1, "leak": 0.5}


def test_arguments_are_stored_and_handed_on():
    adapter = Adapter(20, leak=0.1)
    assert (adapter.units, adapter.leak, adapter.horizon) == (20, 0.1, 1)
    assert adapter.received == {"units": 20, "leak": 0.1, "horizon": 1}
    assert chosen_parameters(adapter, Estimator) == {"units": 20, "leak": 0.1}


@pytest.mark.parametrize("unknown", [{"layout": "rows"}, {"leaks": 0.3}])
def test_what_there_is_not_is_refused(unknown):
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        Adapter(**unknown)


def test_series_with_time_last_and_first():
    cases = time_first(np.arange(12.0).reshape(2, 2, 3))
    assert [case.shape for case in cases] == [(3, 2), (3, 2)]
    assert cases[1].tolist() == [[6, 9], [7, 10], [8, 11]]
    assert [case.shape for case in time_first([np.zeros((2, 3)), np.zeros((2, 5))])] == [(3, 2), (5, 2)]
    assert one_or_many(np.zeros((4, 1))).shape == (4,)
    assert one_or_many(np.zeros((4, 2))).shape == (4, 2)
    assert as_columns(np.zeros(4)).shape == (4, 1)
    assert as_columns(np.zeros((4, 2))).shape == (4, 2)
