"""Containers: dictionaries, tensors, objects that NumPy can read, arrays of objects."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import toys
from benchmarks.layouts import IDS, RAGGED, ArrayLike, Tensor, XarrayDataset
from echolearn import ESNClassifier, ESNRegressor
from echolearn.sequences.checks import as_array, check_finite
from echolearn.sequences.opening import open_sequences, unpack
from echolearn.sequences.targets import concatenate_targets, open_targets, open_values
from toys import grouped


class Broken(Tensor):
    def numpy(self):
        raise TypeError("Got unsupported ScalarType BFloat16")


def test_tensors_are_detached_and_read():
    x = np.eye(3)
    assert as_array(Tensor(x)) is x
    assert as_array(x) is x
    np.testing.assert_array_equal(as_array(ArrayLike(x)), x)
    with pytest.raises(TypeError, match=r"NumPy cannot read a tensor.*BFloat16.*float"):
        as_array(Broken(x))


def test_an_unpacked_value_is_not_unpacked_again():
    once = unpack({"a": np.ones((3, 1))})
    assert unpack(once) is once


@pytest.mark.parametrize(
    ("X", "kind", "words"),
    [
        ({}, ValueError, "empty dictionary"),
        (XarrayDataset(), TypeError, "Dataset of xarray"),
        ({"a": 1}, ValueError, "not an array of shape"),
    ],
)
def test_containers_of_nothing_are_refused(X, kind, words):
    with pytest.raises(kind, match=words):
        open_sequences(X)


def test_answers_to_a_dictionary_are_one():
    given = open_sequences(dict(zip(IDS, RAGGED, strict=True)))
    assert list(given.in_given_form(given.X)) == IDS
    assert given.split({i: x[:, 0] for i, x in zip(IDS, RAGGED, strict=True)})[3].shape == RAGGED[3][:, 0].shape


def test_arrays_are_read_without_pandas():
    code = (
        "import sys, numpy as np; sys.modules['pandas'] = None; from echolearn import SeriesClassifier as C; "
        "C(5).fit([np.ones((4, 2)), np.zeros((4, 2))] * 3, [0, 1] * 3)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_answers_to_a_dictionary_of_tables_are_tables_with_their_index():
    pandas = pytest.importorskip("pandas")
    tables = {
        name: pandas.DataFrame(np.ones((4, 2)), index=list("wxyz"), columns=["p", "q"]) for name in ("first", "second")
    }
    given = open_sequences(tables)
    answers = given.in_given_form([np.arange(4.0), np.arange(4.0)])
    assert list(answers) == ["first", "second"]
    assert all(list(answer.index) == list("wxyz") for answer in answers.values())
    plain = open_sequences({"a": np.ones((4, 2)), "b": np.ones((3, 2))})
    assert type(plain.in_given_form([np.arange(4.0), np.arange(3.0)])["a"]) is np.ndarray


# ---------------- User input


X, Y = toys.labels(sequences=6)
VALUES = [y[:, 0] for y in toys.echoes(sequences=6)[1]]
BIG = np.arange(24.0).reshape(8, 3)


def fit(X=X, y=Y, **settings):
    how = {k: settings.pop(k) for k in ("lengths", "validation") if k in settings}
    return ESNClassifier(**grouped({**toys.FAST, **settings})).fit(X, y, **how)


@pytest.fixture(scope="module")
def fitted():
    return fit()


with_nan, with_infinity = [x.copy() for x in X], [x.copy() for x in X]
with_nan[2][3, 1], with_infinity[2][3, 1] = np.nan, -np.inf
SHAPE = r"not an array of shape \(steps, features\) with finite numbers"
ragged = np.empty(2, dtype=object)
ragged[:] = [[1.0, 2.0], [3.0]]

BAD_X = {
    "nan": (with_nan, r"(?s)sequence 2.*contains NaN"),
    "infinity": (with_infinity, r"(?s)sequence 2.*contains infinity"),
    "empty list": ([], r"X is an empty list; expected at least one sequence of shape \(steps, features\)"),
    "zero steps": ([*X[:5], X[5][:0]], r"0 sample\(s\): sequence 5 has no steps; drop empty sequences"),
    "zero features": ([x[:, :0] for x in X], r"0 feature\(s\)"),
    "one step each": ([x[:1] for x in X], r"one step.*no time in this data.*first axis"),
    "numbers": (
        np.arange(5.0),
        r"X has shape \(5,\); expected .*Expected 2D array, got 1D array. Reshape your data",
    ),
    "listed numbers": ([1.0, 2.0, 3.0], r"X has shape \(3,\); expected .*Reshape your data"),
    "dates": (np.full((5, 2), "2024-01-01", "datetime64[D]"), r"X holds dates; expected numbers"),
    "a number": (3.0, r"(?s)Expected 2D array, got scalar"),
    "widths": ([*X[:5], X[5][:, :1]], r"different numbers of features, \[1, 2\]; expected one number"),
    "four dimensions": (np.zeros((2, 3, 4, 5)), rf"(?s){SHAPE}.*dim 4"),
    "words": ([np.full((4, 2), "a")] * 6, rf"sequence 0 is {SHAPE}.*could not convert string"),
    "objects": ([np.full((4, 2), object(), dtype=object)] * 6, rf"sequence 0 is {SHAPE}.*float\(\) argument"),
    "mixed sequences": (
        [x[:, 0] if i else x for i, x in enumerate(X)],
        r"expected \(steps, features\).*pass x\[:, None\]",
    ),
    "ragged object array": (ragged, r"X has 2 sequences|X has 1 features"),
    "ragged lists": ([[[1.0, 2.0], [3.0]], [[1.0, 2.0]]], rf"sequence 0 is {SHAPE}.*inhomogeneous"),
    "complex": ([x + 1j for x in X], r"Complex data not supported"),
    "sparse": (sparse.csr_array(np.eye(4)), r"X is sparse; sequences must be dense arrays: pass X.toarray"),
    "sparse in a list": ([sparse.csr_array(np.eye(4))] * 6, r"X is sparse"),
    "None": (None, SHAPE),
    "a word": ("speech.wav", SHAPE),
}


@pytest.mark.parametrize("kind", BAD_X)
def test_bad_sequences_are_refused_with_a_reason(kind):
    bad, message = BAD_X[kind]
    with pytest.raises((ValueError, TypeError), match=message):
        fit(bad, Y)


@pytest.mark.parametrize("kind", [k for k in BAD_X if k != "one step each"])
def test_bad_sequences_are_refused_at_predict_too(kind, fitted):
    bad, message = BAD_X[kind]
    with pytest.raises((ValueError, TypeError), match=message if kind != "zero features" else "feature"):
        fitted.predict(bad)


BAD_Y = {
    "none": (X, None, r"y is None.*requires y"),
    "too few": (
        X,
        Y[:5],
        r"y has 5 entries, but X has 6 sequences with \d+ steps in all; expected one entry per sequence: 6 labels or "
        r"values, one for each, or a list of 6 arrays with one label or value per step. Look which sequence has no",
    ),
    "too many": (
        X,
        [*Y, Y[0]],
        r"y has 7 entries, but X has 6 sequences with \d+ steps in all; .* Look which label has no sequence",
    ),
    "joined": (X, np.concatenate(Y), r"np.split\(y, np.cumsum\(\[len\(x\) for x in X\]\)\[:-1\]\)"),
    "a step short": (X, [*Y[:3], Y[3][:-1], *Y[4:]], r"y\[3\] has \d+ entries, but sequence 3 has \d+ steps"),
    "one sequence": (X[0], Y[0][:-2], r"y has \d+ entries, but X has \d+ steps.*one label or value per step"),
    "mixed": (X, [*Y[:5], "low"], r"mixes sequences with a single label and sequences with one label per step"),
    "one class": (X, [np.full(len(y), "low") for y in Y], r"only one class, .*low.*at least 2 classes"),
    "real numbers": (X, VALUES, r"Unknown label type: continuous. y holds \d+ different numbers.*such as ESNRegressor"),
    "nan": (X, [np.full(len(y), np.nan) for y in Y], r"Input y contains NaN or infinity; remove or fill"),
    "rows": (X, [np.full((len(y), 2), 3) for y in Y], r"y has shape \(\d+, 2\); expected one label each"),
    "sparse": (X, sparse.csr_array(np.eye(6)), r"y is sparse; pass y.toarray"),
    "a number": (X, 3, r"y is 3; expected one entry per sequence"),
    "complex": (X, [1j * np.ones(len(y)) for y in Y], r"Complex data not supported"),
    "missing": (
        X,
        [np.array(["a", None] + ["b"] * (len(y) - 2), dtype=object) for y in Y],
        r"Input y contains NaN or infinity or None; remove or fill",
    ),
}


@pytest.mark.parametrize("kind", BAD_Y)
def test_bad_targets_are_refused_with_a_reason(kind):
    X, y, message = BAD_Y[kind]
    with pytest.raises((ValueError, TypeError), match=message):
        fit(X, y)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([np.full(len(y), "a") for y in Y], r"y holds <U1 entries; expected numbers"),
        (
            [np.array([1.0, np.inf] + [0.0] * (len(y) - 2), dtype=object) for y in Y],
            r"y contains NaN or infinity",
        ),
        (
            [np.full(len(y), None) for y in Y],
            r"y holds no targets: every entry is NaN",
        ),
        ([np.zeros((len(y), 2, 2)) for y in Y], r"y has shape .*; expected a value or a row of values"),
        ([np.full(len(y), np.inf) for y in Y], r"Input y contains NaN or infinity"),
    ],
)
def test_bad_values_are_refused_with_a_reason(bad, message):
    with pytest.raises(ValueError, match=message):
        ESNRegressor(**grouped(toys.FAST)).fit(X, bad)


def test_a_washout_longer_than_a_sequence_is_refused():
    with pytest.raises(ValueError, match=r"washout=20, but sequence \d has \d+ steps.*smaller washout"):
        fit(washout=20)


@pytest.mark.parametrize("lengths", [[10, 10], [0, 24], [-1, 25], [24.0], [[24]], [], "all", [12, 13]])
def test_lengths_that_do_not_add_up_are_refused(lengths):
    with pytest.raises(ValueError, match=r"lengths must be positive whole numbers that add up to the 24 rows"):
        open_sequences(np.ones((24, 2)), lengths)


def test_lengths_of_a_list_are_refused():
    with pytest.raises(ValueError, match=r"lengths goes with one 2-D array.*already a list"):
        open_sequences(X, [1] * 6)


def test_huge_finite_input_is_not_taken_for_infinite():
    huge = np.full((8, 2), 1e308)
    assert open_sequences(huge).X[0] is huge or (open_sequences(huge).X[0] == huge).all()


@st.composite
def arrays(draw):
    width = draw(st.integers(1, 3))
    return [BIG[:n, :width] for n in draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))]


@settings(max_examples=60, deadline=None)
@given(arrays())
def test_every_form_gives_the_same_sequences(X):
    listed = open_sequences(X)
    joined = open_sequences(np.concatenate(X), [len(x) for x in X])
    nested = open_sequences([x.tolist() for x in X])
    for given_ in (listed, joined, nested):
        assert [x.tolist() for x in given_.X] == [x.tolist() for x in X]
    results = [np.full(len(x), i) for i, x in enumerate(X)]
    np.testing.assert_array_equal(joined.in_given_form(results), np.concatenate(listed.in_given_form(results)))
    for g in (listed, joined):
        for part, result in zip(g.split(g.in_given_form(results)), results, strict=True):
            np.testing.assert_array_equal(part, result)


@settings(max_examples=60, deadline=None)
@given(arrays(), st.integers(-2, 2), st.data())
def test_targets_of_a_wrong_length_are_refused(X, wrong, data):
    i = data.draw(st.integers(0, len(X) - 1))
    y = [np.zeros(len(x), int) for x in X]
    y[i] = np.zeros(max(0, len(X[i]) + wrong), int)
    given_ = open_sequences(X)
    if len(y[i]) == len(X[i]):
        entries, per_step = open_targets(y, given_)
        assert per_step
        assert [len(e) for e in entries] == [len(x) for x in X]
    elif {len(v) for v in y} == {1}:  # one target per sequence
        assert not open_targets(y, given_)[1]
    else:
        with pytest.raises(ValueError, match=rf"y\[{i}\] has {len(y[i])} entries, but sequence {i} has"):
            open_targets(y, given_)


def test_values_come_with_one_row_per_step_or_per_sequence():
    sequences = open_sequences([BIG[:4], BIG[:2]])
    flat, table = open_values([np.arange(4.0), np.arange(4.0).reshape(2, 2)], sequences, per_step=True)
    assert (flat.shape, table.shape) == ((4, 1), (2, 2))
    rows = open_values(np.ones((2, 3)), sequences, per_step=False)
    assert [row.shape for row in rows] == [(3,), (3,)]
    for T, per_step, message in (
        (3.0, True, r"T is 3\.0; expected targets in the form of X"),
        ([np.ones(4)], True, r"T has 1 entries, but X has 2 sequences; expected one each"),
        (
            [np.ones(4), np.ones(3)],
            True,
            r"T of sequence 1 has shape \(3,\); expected \(2, outputs\), one row per step",
        ),
        ([1.0, 2.0], False, r"T of sequence 0 has shape \(\); expected \(outputs,\), one row per sequence"),
    ):
        with pytest.raises(ValueError, match=message):
            open_values(T, sequences, per_step)


def test_targets_of_different_shapes_are_not_concatenated():
    np.testing.assert_array_equal(concatenate_targets([np.array([1, 2]), np.array([3])], True), [1, 2, 3])
    np.testing.assert_array_equal(concatenate_targets([1, 2], False), [1, 2])
    with pytest.raises(ValueError, match=r"y has entries of shapes \(\), \(2,\); expected one shape and kind"):
        concatenate_targets([np.zeros(3), np.zeros((3, 2))], True)


def test_results_that_are_not_finite_are_refused_but_large_ones_are_not():
    check_finite(np.full(5, 1e300), "states")  # the sum of squares overflows
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"states are not finite: X holds numbers too large .* have diverged"):
            check_finite(np.array([1.0, value]), "states")


def test_one_frame_is_one_step_or_one_of_a_stream(fitted):
    with pytest.raises(ValueError, match=r"X has shape \(2,\); expected \(steps, 2\).*pass X\[None\].*esn\.stream\(\)"):
        fitted.predict(X[0][0])
    with pytest.raises(ValueError, match=r"X has shape \(9,\).*the 2 features of the fit at each step, as columns"):
        fitted.predict(np.arange(9.0))
    with pytest.raises(ValueError, match=r"for one series of one feature, pass X\[:, None\]\.$"):
        fit(np.arange(40.0), np.arange(40) % 2)
    row = pd.DataFrame(X[0], columns=["a", "b"]).iloc[0]
    with pytest.raises(ValueError, match=r"X\.to_frame\(\)\.T for one step"):
        fitted.predict(row)


def test_targets_of_another_length_are_named():
    with pytest.raises(ValueError, match=r"y\[4\] has \d+ entries, but sequence 4 has \d+ steps.*All others") as found:
        fit(X, [np.append(y, y[-1]) if i == 4 else y for i, y in enumerate(Y)])
    assert "0 and 1" not in str(found.value)
    named = dict(zip("abcdef", X, strict=True))
    with pytest.raises(ValueError, match=r"but sequence 4 \('e'\) has"):
        fit(named, [np.append(y, y[-1]) if i == 4 else y for i, y in enumerate(Y)])
