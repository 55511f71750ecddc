"""fit(y, X): recognised where X is refused and y could be X."""

import numpy as np
import pandas as pd
import pytest

from echolearn import ESNClassifier, ESNRegressor

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
        ESNClassifier(**SMALL).fit(wrong_X, wrong_y)


def test_numbers_may_be_either():
    for wrong_X, wrong_y in ((X[0][:, 0], X[0]), (pd.Series(X[0][:, 0]), pd.DataFrame(X[0], columns=list("abc")))):
        with pytest.raises(ValueError, match=r"got 1D array.*If X and y are swapped, call fit\(X, y\)"):
            ESNRegressor(**SMALL).fit(wrong_X, wrong_y)
    with pytest.raises(ValueError, match=r"y has shape .*Look whether X and y are swapped"):
        ESNClassifier(**SMALL).fit(STEPS, X)


def test_other_refusals_stay_as_they_are():
    with pytest.raises(ValueError, match="NaN") as found:
        ESNRegressor(**SMALL).fit(X[0] * np.nan, X[0])
    assert "swapped" not in str(found.value)
    with pytest.raises(ValueError, match="cluster") as found:
        ESNRegressor(**SMALL).fit(["a.npy", "b.npy"], X[:2])
    assert "X holds labels" not in str(found.value)
