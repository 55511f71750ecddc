"""Warnings about inputs and labels from which little can be learned."""

import warnings

import numpy as np
import pandas as pd
import pytest

import toys
from echolearn import DeepESNClassifier, ESNClassifier, ESNRegressor, SeriesClassifier
from echolearn.exceptions import InputWarning
from echolearn.fitting.advice.before import warn_of_extreme_values, warn_of_scale
from toys import grouped


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.ones((50, 2)), "all features are constant"),
        (1e-9 * np.random.default_rng(0).normal(size=(50, 2)), "are lost beside bias"),
        (np.random.default_rng(0).normal(0, [1, 1e5], (50, 2)), "feature 1.*forget the past.*StandardScaler"),
        (np.random.default_rng(0).normal([1e6, 0], 1, (50, 2)), "feature 0: mean 1e"),
        (np.random.default_rng(0).normal([100, 0], 1, (50, 2)), "feature 0: mean 1e.*StandardScaler"),
    ],
)
def test_inputs_of_no_use_are_reported(X, words):
    y = np.arange(50) % 2
    with pytest.warns(InputWarning, match=words) as found:
        ESNClassifier(10, learn="none", standardize=False).fit(X, y)
    assert found[0].filename == __file__


def test_standardised_inputs_are_always_of_use():
    rng = np.random.default_rng(0)
    for X in (1e-9 * rng.normal(size=(50, 2)), rng.normal([1e6, 0], [1, 1e5], (50, 2))):
        ESNClassifier(10, learn="none").fit(X, np.arange(50) % 2)  # warnings are errors in tests
    with pytest.warns(InputWarning, match="all features are constant"):
        ESNClassifier(10, learn="none").fit(np.ones((50, 2)), np.arange(50) % 2)


def test_inputs_of_use_are_not_reported():
    rng = np.random.default_rng(0)
    pulses = np.zeros((300_000, 20))  # most steps are never looked at
    pulses[5::7001] = 1
    for X in (pulses, *(scale * rng.normal(size=(50, 2)) for scale in (1e-3, 1, 30)), rng.normal(5, 1, (50, 2))):
        warn_of_scale([X], 0.5, "tanh")
    warn_of_scale([1e9 * rng.normal(size=(50, 2))], 0.5, "identity")  # which does not bend


@pytest.mark.parametrize("estimator", [ESNClassifier, DeepESNClassifier, SeriesClassifier])
def test_a_few_extreme_values_are_reported_because_the_others_are_lost_beside_them(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 50, 2))
    X[:, :, 0] += np.arange(20)[:, None] % 2
    y = np.arange(20) % 2 if estimator is SeriesClassifier else list((X[:, :, 0] > 0.5).astype(int))
    X[3, 7, 1] = -1e6
    with pytest.warns(InputWarning, match=r"few values of feature 1 .* between -1\.\d+ and 1\.\d+, .*missing='carry'"):
        estimator(20).fit(X, y)


def test_extreme_values_that_do_no_harm_are_not_reported():
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(3000, 1)), np.zeros((3000, 1)), np.full((3000, 1), np.nan)])
    X[5] = 300, 1, 2  # far from the others, the only one that is not zero, and the only one that is known
    warn_of_extreme_values([X], np.nanstd(X, axis=0))


def test_a_class_that_is_nearly_all_is_reported():
    X, _ = toys.labels()
    y = [np.zeros(len(x), int) for x in X]
    y[0][0] = 1
    with pytest.warns(InputWarning, match="of y is 0: answering it always") as found:
        ESNClassifier(15, learn="none").fit(X, y)
    assert found[0].filename == __file__


def test_many_classes_with_few_labels_are_reported():
    X, _ = toys.labels()
    y = [np.arange(len(x)) for x in X]
    with pytest.warns(InputWarning, match="24 classes and 164 labels, 6.8 for each"):
        ESNClassifier(15, learn="none").fit(X, y)
    with pytest.warns(InputWarning) as found:  # and scikit-learn says nothing of its own
        ESNClassifier(15, learn="none").fit(X[:2], [np.arange(len(x)) for x in X[:2]])
    assert {w.category for w in found} == {InputWarning}


@pytest.mark.parametrize(("activation", "limit"), [("tanh", 8.0), ("identity", 1000.0)])
def test_means_are_reported_that_are_far_beyond_the_spread(activation, limit):
    """Of units with a drive of 0.9 of one standard deviation: the mean may be `limit` times as large."""
    changes = np.array([1.0, -1.0] * 25)[:, None] * 0.9 * np.sqrt(3)
    warn_of_scale([changes + 0.99 * limit * 0.9 * np.sqrt(3)], 1.0, activation)
    with pytest.warns(InputWarning, match="the means of the features shift the units"):
        warn_of_scale([changes + 1.01 * limit * 0.9 * np.sqrt(3)], 1.0, activation)


def test_a_mean_that_moves_the_units_little_is_not_reported():
    """A drive of up to 4 by the mean is no trouble, however small the spread."""
    changes = np.array([1e-2, -1e-2] * 25)[:, None]
    warn_of_scale([changes + 3.9 * np.sqrt(3)], 1.0, "tanh")
    with pytest.warns(InputWarning, match="the means of the features shift the units"):
        warn_of_scale([changes + 4.1 * np.sqrt(3)], 1.0, "tanh")


def test_drives_are_reported_beyond_60_and_below_3e_4():
    signs = np.array([1.0, -1.0] * 25)[:, None] * np.sqrt(3)
    for drive in (59.0, 3.1e-4):
        warn_of_scale([drive * signs], 1.0, "tanh")
    for drive, words in ((61.0, "forget the past"), (2.9e-4, "are lost beside")):
        with pytest.warns(InputWarning, match=words):
            warn_of_scale([drive * signs], 1.0, "tanh")


def _groups(column, count=6):
    """Return sequences with a column that has one value in each, as a list of arrays."""
    rng = np.random.default_rng(0)
    return [np.c_[rng.normal(size=(20 + i, 2)), np.full(20 + i, column(i))] for i in range(count)]


def test_a_column_that_names_the_sequences():
    X, y = _groups(lambda i: 100 + 7 * i), ["a", "b"] * 3
    with pytest.warns(InputWarning, match=r"the column 2 of X has one whole number in each.*np.delete\(x, 2, axis=1\)"):
        SeriesClassifier(5).fit(X, y)
    tables = [pd.DataFrame(x, columns=["a", "b", "machine"]) for x in X]
    with pytest.warns(InputWarning, match=r"the column 'machine' of X.*x.drop\(columns='machine'\) for x in X"):
        SeriesClassifier(5).fit(tables, y)


@pytest.mark.parametrize(
    "X",
    [
        _groups(lambda i: 50 + i // 2),  # an age, which some have in common
        _groups(lambda i: 70.5 + i),  # a weight
        _groups(lambda i: i, count=4),  # too few to tell
        [np.c_[x[:, :2], np.r_[x[:5, 2], 0, x[6:, 2]]] for x in _groups(lambda i: i)],  # not constant
    ],
)
def test_other_constant_columns_are_features(X):
    SeriesClassifier(5).fit(X, ["a", "b"] * (len(X) // 2))


def test_one_label_in_each_sequence_may_be_meant():
    X = [np.random.default_rng(i).normal(size=(8 + i, 2)) for i in range(6)]
    y = [np.full(len(x), i % 2) for i, x in enumerate(X)]
    esn = ESNClassifier(5, learn="none")
    with pytest.warns(
        InputWarning, match=r"each of the 6 sequences.*SeriesClassifier with \[t\[0\] for t in y\] as y"
    ) as found:
        esn.fit(X, y)
    assert found[0].filename == __file__
    with pytest.warns(InputWarning, match=r"SeriesClassifier with \{name: t\[0\] for name, t in y.items\(\)\}"):
        esn.fit(dict(enumerate(X)), dict(enumerate(y)))
    lengths = np.array([len(x) for x in X])
    with pytest.warns(InputWarning, match=r"SeriesClassifier with y\[numpy.cumsum\(lengths\) - lengths\]"):
        esn.fit(np.concatenate(X), np.concatenate(y), lengths=lengths)
    index = pd.MultiIndex.from_tuples([(i, t) for i, x in enumerate(X) for t in range(len(x))], names=["cycle", "t"])
    panel, labels = pd.DataFrame(np.concatenate(X), index, ["a", "b"]), pd.Series(np.concatenate(y), index)
    with pytest.warns(InputWarning, match=r"SeriesClassifier with y.groupby\(level=0\).first\(\)"):
        esn.fit(panel, labels)
    with pytest.warns(InputWarning, match=r"SeriesClassifier with y.groupby\(X\['id'\]\).first\(\)"):
        esn.fit(panel.rename_axis(["id", "t"]).reset_index(), labels.to_numpy())
    with pytest.warns(InputWarning, match="each of the 6 sequences"):
        DeepESNClassifier(6, 2, epochs=40).fit(X, y)
    SeriesClassifier(5).fit(panel, labels.groupby(level=0).first())  # as advised; warnings are errors in tests
    SeriesClassifier(5).fit(X, [t[0] for t in y])
    y[0][0] = 1
    esn.fit(X, y)
    esn.fit(X[1:5], y[1:5])


def test_a_missing_label_does_not_hide_that_the_others_are_the_same():
    X = [np.random.default_rng(i).normal(size=(8 + i, 2)) for i in range(6)]
    y = [np.append(np.full(len(x) - 1, i % 2), -1) for i, x in enumerate(X)]
    with pytest.warns(InputWarning, match="each of the 6 sequences"):
        ESNClassifier(5, learn="none", ignore_label=-1).fit(X, y)


def test_a_column_that_counts_recordings_in_one_table_is_warned_of():
    rng = np.random.default_rng(0)
    trips = np.repeat([3, 1, 7, 4, 9, 2], 40)
    table = pd.DataFrame({"trip": trips, "speed": rng.normal(size=240), "floor": rng.integers(0, 9, 240)})
    y = np.where(table["speed"] > 0, "up", "down")
    esn = ESNClassifier(5, learn="none")
    with pytest.warns(InputWarning, match=r"the column 'trip' of X holds 6 whole.*X.set_index\(\['trip', TIME\]"):
        esn.fit(table, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        esn.fit(table.drop(columns="trip"), y)
        esn.fit(table.assign(trip=trips % 3), y)  # a state that comes back is a feature


# fit(y, X).


RNG = np.random.default_rng(0)
X = [RNG.normal(size=(20 + i, 3)) for i in range(6)]
STEPS = [(x[:, 0] > 0).astype(int) for x in X]
NAMES = ["a", "b"] * 3
SMALL = {"hidden_units": 5, "learn": "none"}


@pytest.mark.parametrize(
    ("wrong_X", "wrong_y"),
    [(NAMES, X), (np.array(NAMES), X), (STEPS[0], X[0]), (np.arange(6) % 2, np.stack([x[:20] for x in X]))],
)
def test_labels_in_place_of_sequences(wrong_X, wrong_y):
    with pytest.raises(ValueError, match=r"^X and y are swapped: X holds labels, and y has 3 features. Call fit"):
        ESNClassifier(**grouped(SMALL)).fit(wrong_X, wrong_y)


def test_numbers_may_be_either():
    for wrong_X, wrong_y in ((X[0][:, 0], X[0]), (pd.Series(X[0][:, 0]), pd.DataFrame(X[0], columns=list("abc")))):
        with pytest.raises(ValueError, match=r"got 1D array.*If X and y are swapped, call fit\(X, y\)"):
            ESNRegressor(**grouped(SMALL)).fit(wrong_X, wrong_y)
    with pytest.raises(ValueError, match=r"y has shape .*Check whether X and y are swapped"):
        ESNClassifier(**grouped(SMALL)).fit(STEPS, X)


def test_other_refusals_stay_as_they_are():
    with pytest.raises(ValueError, match="NaN") as found:
        ESNRegressor(**grouped(SMALL)).fit(X[0] * np.nan, X[0])
    assert "swapped" not in str(found.value)
    with pytest.raises(ValueError, match="cluster") as found:
        ESNRegressor(**grouped(SMALL)).fit(["a.npy", "b.npy"], X[:2])
    assert "X holds labels" not in str(found.value)
