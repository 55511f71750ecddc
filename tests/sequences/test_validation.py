"""What comes in at the door, in every form and of every kind of wrong."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

import toys
from echolearn import ESNClassifier, ESNRegressor
from echolearn.sequences.validation import open_sequences, open_targets

X, Y = toys.labels(sequences=6)
VALUES = [y[:, 0] for y in toys.echoes(sequences=6)[1]]
BIG = np.arange(24.0).reshape(8, 3)


def fit(X=X, y=Y, **settings):
    how = {k: settings.pop(k) for k in ("lengths", "validation") if k in settings}
    return ESNClassifier(**{**toys.FAST, **settings}).fit(X, y, **how)


@pytest.fixture(scope="module")
def fitted():
    return fit()


with_nan, with_inf = [x.copy() for x in X], [x.copy() for x in X]
with_nan[2][3, 1], with_inf[2][3, 1] = np.nan, -np.inf
SHAPE = r"not an array of shape \(steps, features\) with finite numbers"
ragged = np.empty(2, dtype=object)
ragged[:] = [[1.0, 2.0], [3.0]]

BAD_X = {
    "nan": (with_nan, r"(?s)sequence 2.*contains NaN"),
    "infinity": (with_inf, r"(?s)sequence 2.*contains infinity"),
    "empty list": ([], r"X is an empty list; expected at least one sequence of shape \(steps, features\)"),
    "zero steps": ([*X[:5], X[5][:0]], r"0 sample\(s\): sequence 5 has no steps; drop empty sequences"),
    "zero features": ([x[:, :0] for x in X], r"0 feature\(s\)"),
    "one step each": ([x[:1] for x in X], r"one step.*no time in this data.*first axis"),
    "numbers": (np.arange(5.0), r"(?s)Expected 2D array, got 1D array.*[Rr]eshape"),
    "a number": (3.0, r"(?s)Expected 2D array, got scalar"),
    "flat sequences": ([x[:, 0] for x in X], SHAPE),
    "widths": ([*X[:5], X[5][:, :1]], r"different numbers of features, \[1, 2\]; expected one number"),
    "four dimensions": (np.zeros((2, 3, 4, 5)), rf"(?s){SHAPE}.*dim 4"),
    "words": ([np.full((4, 2), "a")] * 6, rf"sequence 0 is {SHAPE}.*could not convert string"),
    "objects": ([np.full((4, 2), object(), dtype=object)] * 6, rf"sequence 0 is {SHAPE}.*float\(\) argument"),
    "ragged object array": (ragged, SHAPE),
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
    "too few": (X, Y[:5], r"y has 5 entries, but X has 6 sequences; expected one entry a sequence"),
    "a step short": (X, [*Y[:3], Y[3][:-1], *Y[4:]], r"y\[3\] has \d+ entries, but sequence 3 has \d+ steps"),
    "one sequence": (X[0], Y[0][:-2], r"y has \d+ entries, but X has \d+ steps.*one label or value a step"),
    "mixed": (X, [*Y[:5], "low"], r"mixes sequences with one label and sequences with a label a step"),
    "one class": (X, [np.full(len(y), "low") for y in Y], r"only one class, .*low.*at least 2 classes"),
    "real numbers": (X, VALUES, r"Unknown label type: .?continuous"),
    "nan": (X, [np.full(len(y), np.nan) for y in Y], r"Input y contains NaN or infinity; remove or fill"),
    "rows": (X, [np.zeros((len(y), 2), int) for y in Y], r"y has shape \(\d+, 2\); expected one label each"),
    "sparse": (X, sparse.csr_array(np.eye(6)), r"y is sparse; pass y.toarray"),
    "a number": (X, 3, r"y is 3; expected one entry a sequence"),
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
            [np.array([1.0, np.nan] + [0.0] * (len(y) - 2), dtype=object) for y in Y],
            r"y contains NaN or infinity",
        ),
        (
            [np.array([1.0, None] + [0.0] * (len(y) - 2), dtype=object) for y in Y],
            r"y contains NaN or infinity or None",
        ),
        ([np.zeros((len(y), 2, 2)) for y in Y], r"y has shape .*; expected a value or a row of values"),
        ([np.full(len(y), np.inf) for y in Y], r"Input y contains NaN or infinity"),
    ],
)
def test_bad_values_are_refused_with_a_reason(bad, message):
    with pytest.raises(ValueError, match=message):
        ESNRegressor(**toys.FAST).fit(X, bad)


def test_washout_longer_than_a_sequence():
    with pytest.raises(ValueError, match=r"washout=20, but sequence \d has \d+ steps.*smaller washout"):
        fit(washout=20)


def test_washout_at_predict_binds_only_where_states_are_pooled():
    esn = fit(washout=5)
    assert esn.predict(X[0][:3]).shape == (3,)
    pooled = fit(X, ["a", "b"] * 3, washout=5)
    with pytest.raises(ValueError, match=r"washout=5, but sequence 0 has 3 steps"):
        pooled.predict([X[0][:3]])


def test_wrong_feature_count_at_predict(fitted):
    with pytest.raises(ValueError, match=r"X has 3 features, but ESNClassifier is expecting 2 features"):
        fitted.predict(np.ones((5, 3)))


def test_predict_before_fit():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ESNClassifier().predict(X)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ESNRegressor().score(X, Y)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ESNClassifier().save("nowhere")


@pytest.mark.parametrize("lengths", [[10, 10], [0, 24], [-1, 25], [24.0], [[24]], [], "all", [12, 13]])
def test_bad_lengths(lengths):
    with pytest.raises(ValueError, match=r"lengths must be positive whole numbers that add up to the 24 rows"):
        open_sequences(np.ones((24, 2)), lengths)


def test_lengths_with_a_list():
    with pytest.raises(ValueError, match=r"lengths goes with one 2-D array.*already a list"):
        open_sequences(X, [1] * 6)


def test_labels_that_were_not_there_when_fitting():
    with pytest.raises(ValueError, match=r"labels that were not there when fitting: \['middle'\]"):
        fit(validation=(X, [np.where(y == "low", "middle", y) for y in Y]))


def test_validation_of_another_kind():
    with pytest.raises(ValueError, match=r"validation: its y must be of the same kind as y"):
        fit(validation=(X, ["low"] * 6))


def test_validation_values_of_another_width():
    esn = ESNRegressor(**toys.FAST)
    Y2 = toys.echoes(sequences=6)[1]
    with pytest.raises(ValueError, match=r"y has 1 .*expected 2"):
        esn.fit(
            [x[:10] for x in X],
            [y[:10] for y in Y2],
            validation=([x[:10] for x in X], [y[:10, :1] for y in Y2]),
        )


def test_pooling_clashes_are_named():
    one_each = ["low", "high"] * 3
    with pytest.raises(ValueError, match=r"feedback=True needs one target per step.*Set feedback=False"):
        fit(X, one_each, feedback=True)
    with pytest.raises(ValueError, match=r"targets='last' needs one target per step.*Use targets='all'"):
        fit(X, one_each, targets="last")


STRANGE = {
    "read-only": lambda x: (x.setflags(write=False), x)[1],
    "strided": lambda x: np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda x: x[::-1].copy()[::-1],
    "Fortran": np.asfortranarray,
    "big-endian": lambda x: x.astype(">f8"),
    "nested lists": lambda x: x.tolist(),
    "data frame": lambda x: pd.DataFrame(x),
    "objects that are numbers": lambda x: x.astype(object),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_strange_but_good_input_gives_the_same_and_is_left_alone(kind, fitted):
    strange = [STRANGE[kind](x.copy()) for x in X]
    before = [np.array(x, dtype=float) for x in strange]
    other = fit(strange, Y)
    np.testing.assert_array_equal(other.network_.readout.U, fitted.network_.readout.U)
    for a, b in zip(other.predict(strange), fitted.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)
    for old, now in zip(before, strange, strict=True):
        np.testing.assert_array_equal(old, np.array(now, dtype=float))


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "int64", "bool", "float16", ">i4", ">f4"])
def test_number_types(dtype):
    whole = [np.abs(3 * x).astype(np.uint8).astype(dtype) for x in X]
    a, b = fit(whole, Y), fit([x.astype(np.float64) for x in whole], Y)
    np.testing.assert_allclose(a.network_.readout.U, b.network_.readout.U, rtol=1e-9)


def test_huge_finite_input_is_not_taken_for_infinite():
    huge = np.full((8, 2), 1e308)
    assert open_sequences(huge).X[0] is huge or (open_sequences(huge).X[0] == huge).all()


def test_forms_of_input_and_answers():
    stack = np.stack([x[:12] for x in X])
    labels = np.stack([y[:12] for y in Y])
    esn = fit(stack, labels)
    assert esn.predict(stack).shape == (6, 12)
    assert esn.predict_proba(stack).shape == (6, 12, 2)
    joined = esn.predict(np.concatenate(X), lengths=[len(x) for x in X])
    assert joined.shape == (sum(map(len, X)),)
    assert isinstance(esn.predict(X), list)
    assert isinstance(esn.predict(tuple(X)), list)
    assert esn.predict(X[0]).shape == (len(X[0]),)
    objects = np.empty(6, dtype=object)
    objects[:] = X
    for a, b in zip(esn.predict(objects), esn.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_per_sequence_forms():
    one_each = ["low", "high"] * 3
    for y in (
        one_each,
        tuple(one_each),
        np.array(one_each),
        pd.Series(one_each),
        np.array(one_each, dtype=object),
    ):
        esn = fit(X, y)
        assert not esn.per_step_
        assert esn.predict(X).shape == (6,)
    joined = fit(np.concatenate(X), one_each, lengths=[len(x) for x in X])
    np.testing.assert_array_equal(joined.predict(X), esn.predict(X))


@st.composite
def arrays(draw):
    width = draw(st.integers(1, 3))
    return [BIG[:n, :width] for n in draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))]


@settings(max_examples=60, deadline=None)
@given(arrays())
def test_every_form_opens_to_the_same_sequences(X):
    listed = open_sequences(X)
    joined = open_sequences(np.concatenate(X), [len(x) for x in X])
    nested = open_sequences([x.tolist() for x in X])
    for given_ in (listed, joined, nested):
        assert [x.tolist() for x in given_.X] == [x.tolist() for x in X]
    answers = [np.full(len(x), i) for i, x in enumerate(X)]
    np.testing.assert_array_equal(joined.answer(answers), np.concatenate(listed.answer(answers)))
    for g in (listed, joined):
        for part, answer in zip(g.split(g.answer(answers)), answers, strict=True):
            np.testing.assert_array_equal(part, answer)


@settings(max_examples=60, deadline=None)
@given(arrays(), st.integers(-2, 2), st.data())
def test_targets_open_only_where_they_fit(X, wrong, data):
    i = data.draw(st.integers(0, len(X) - 1))
    y = [np.zeros(len(x), int) for x in X]
    y[i] = np.zeros(max(0, len(X[i]) + wrong), int)
    given_ = open_sequences(X)
    if len(y[i]) == len(X[i]):
        entries, per_step = open_targets(y, given_)
        assert per_step
        assert [len(e) for e in entries] == [len(x) for x in X]
    else:
        with pytest.raises(ValueError, match=rf"y\[{i}\] has {len(y[i])} entries, but sequence {i} has"):
            open_targets(y, given_)
