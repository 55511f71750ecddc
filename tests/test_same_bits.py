"""The comparer of `make same-bits`: it must notice the smallest difference. The cases themselves are not run here."""

import ast

import numpy as np
import pytest

from reliability.same_bits.compare import CASES, FAILURE, difference, read, table


def results(tmp_path, name, **arrays):
    """What the file of a run with these arrays is read as; "__" stands for the "/" between case and name."""
    np.savez(tmp_path / name, **{key.replace("__", "/"): value for key, value in arrays.items()})
    return read(tmp_path / name)


WEIGHTS = np.array([[0.1, -2.0], [np.nan, 3.0]])
BASE = {"one__W": WEIGHTS, "one__words": np.array(["low", "high"]), "two__n/0": np.arange(3)}
BASE |= {"one__text": np.array("a\nword")}


def one_bit(array):
    changed = array.copy()
    changed.view(np.uint64)[0, 0] ^= np.uint64(1)
    return changed


def test_equal_results_are_equal(tmp_path):
    other_nan = WEIGHTS.copy()
    other_nan.view(np.uint64)[1, 0] |= np.uint64(1)
    text, equal = table(results(tmp_path, "a.npz", **BASE), results(tmp_path, "b.npz", **BASE | {"one__W": other_nan}))
    assert equal
    assert "2 of 2 cases are equal" in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"one__W": one_bit(WEIGHTS)}, "first W: largest absolute difference 1.39e-17"),
        ({"one__W": WEIGHTS.astype(np.float32)}, "first W: float64 (2, 2) at BASE, float32 (2, 2) at HEAD"),
        ({"one__W": WEIGHTS.ravel()}, "first W: float64 (2, 2) at BASE, float64 (4,) at HEAD"),
        ({"one__words": np.array(["low", "mid!"])}, "first words: 1 of 2 entries differ"),
        ({"one__text": np.array("a\nmore")}, "first text: line 2 is 'word' at BASE, 'more' at HEAD"),
        ({"one__text": np.array("a\nword\n")}, "first text: line 3 is '(no line)' at BASE, '' at HEAD"),
        ({"two__n/0": np.array([0, 1, 3])}, "first n/0: largest absolute difference 1"),
        ({"two__n/1": np.arange(3)}, "first n/1 exists at HEAD only"),
        ({"three__W": WEIGHTS}, "the case exists at HEAD only"),
        ({f"one__{FAILURE}": np.array("ValueError: no")}, "FAILED\nHEAD: ValueError: no"),
    ],
)
def test_every_difference_is_reported(tmp_path, change, words):
    text, equal = table(results(tmp_path, "a.npz", **BASE), results(tmp_path, "b.npz", **BASE | change))
    assert not equal
    assert words in text


def test_a_missing_case_or_array_is_reported(tmp_path):
    base = results(tmp_path, "a.npz", **BASE)
    for missing, words in (("two__n/0", "the case exists at BASE only"), ("one__W", "first W exists at BASE only")):
        left = {key: value for key, value in BASE.items() if key != missing}
        text, equal = table(base, results(tmp_path, "b.npz", **left))
        assert not equal
        assert words in text


def test_a_failure_on_both_sides_is_no_success(tmp_path):
    failed = results(tmp_path, "a.npz", **{f"one__{FAILURE}": np.array("ValueError: no")})
    assert not table(failed, failed)[1]
    assert not table({}, {})[1]


def test_signs_of_zero_and_nan_count():
    assert difference(np.zeros(2), -np.zeros(2)) == "NaN on one side, or another sign of zero"
    assert difference(np.array([np.nan]), np.ones(1)) == "NaN on one side, or another sign of zero"
    assert difference(np.array([-np.nan], np.float32), np.array([np.nan], np.float32)) == ""


def test_every_module_of_cases_is_run():
    """cases.py names the modules that it imports; those beside it are the comparer, the basis and the cases."""
    (named,) = [
        ast.literal_eval(node.value)
        for node in ast.parse(CASES.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MODULES"
    ]
    assert {path.stem for path in CASES.parent.glob("*.py")} == {*named, "basis", "cases", "compare"}
