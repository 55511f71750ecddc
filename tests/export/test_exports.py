"""Random networks over all options, exported and compared with the models themselves: short form of the campaign."""

import numpy as np
import pytest

import exported
from echolearn import ESNRegressor, Reservoir
from reliability import exports
from toys import grouped

pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def outcome():
    return exports.compare(30, seed=7)


def test_answers_are_those_of_the_models(outcome):
    rows, _ = outcome
    assert rows["ONNX"]["networks"] == rows["NumPy"]["networks"] == 30
    assert rows["NumPy, step by step"]["networks"] == rows["NumPy, streams side by side"]["networks"] > 6
    assert rows["C"]["networks"] == rows["ONNX, step by step"]["networks"] > 6
    assert all(row["largest"] <= exports.ALLOWED for row in rows.values())


def test_all_kinds_are_drawn(outcome):
    assert len(outcome[1]) >= 9


def test_a_difference_is_relative_to_the_largest_answer():
    one = exports.Drawn("", {}, None, None, np.zeros((1, 1)), np.array([[1.0, -4.0]]))
    assert exports.difference(one, np.array([[1.0, -3.0]])) == 0.25


def test_units_without_connections_and_a_single_unit():
    """Reservoirs at the edge: an empty W_rec, and one unit that nothing recurs to."""
    some = []
    for units in (3, 1):
        reservoir = Reservoir(W=np.full((3, units), 0.1), W_rec=np.zeros((units, units)), activation="tanh", leak=0.5)
        esn = ESNRegressor(reservoir=reservoir, **grouped(exported.FIXED)).fit(exported.X, exported.VALUES)
        some.append(exported.drawn(esn))
    for one, found in zip(some, exports.in_c(some), strict=True):
        assert exports.difference(one, found) < 1e-5
        assert exports.difference(one, exports.in_onnx(one)) < 1e-5
        assert exports.difference(one, exports.in_onnx_steps(one)) < 1e-5
