"""Random networks over all options, exported and compared with the models themselves: short form of the campaign."""

import numpy as np
import pytest

from reliability import exports

pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def outcome():
    return exports.compare(30, seed=7)


def test_answers_are_those_of_the_models(outcome):
    rows, _ = outcome
    assert rows["ONNX"]["networks"] == 30
    assert rows["C"]["networks"] == rows["ONNX, step by step"]["networks"] > 10
    assert all(row["largest"] <= exports.ALLOWED for row in rows.values())


def test_all_kinds_are_drawn(outcome):
    assert len(outcome[1]) >= 9


def test_a_difference_is_relative_to_the_largest_answer():
    one = exports.Drawn("", {}, None, None, np.zeros((1, 1)), np.array([[1.0, -4.0]]))
    assert exports.difference(one, np.array([[1.0, -3.0]])) == 0.25
