"""Attributes of fitted estimators are views of their model."""

import numpy as np
import pandas as pd
import pytest

from echolearn import ESNForecaster, ESNRegressor

X = np.random.default_rng(0).normal(size=(80, 2))
SMALL = {"hidden_units": 8, "learn": "none", "washout": 5}
FITTED = ESNRegressor(**SMALL).fit(X, X[:, 0]), ESNForecaster(**SMALL, method="closed_loop").fit(X)


@pytest.mark.parametrize("esn", FITTED, ids=lambda esn: type(esn).__name__)
def test_views_are_those_of_the_model(esn):
    network = esn.model_.network
    assert esn.network_ is network
    assert esn.reservoir_ is network.reservoir
    assert esn.history_ is esn.model_.history
    assert esn.n_features_in_ == 2
    assert esn.ridge_ == network.readout.ridge
    np.testing.assert_array_equal(esn.input_weights_, network.reservoir.W)
    assert esn.recurrent_weights_ is network.reservoir.W_rec
    np.testing.assert_array_equal(np.vstack([esn.readout_weights_, esn.intercept_]), network.readout.U)


def test_names_are_those_of_a_table():
    table = pd.DataFrame(X, columns=["a", "b"])
    assert ESNForecaster(**SMALL, method="direct").fit(table).feature_names_in_.tolist() == ["a", "b"]
    assert ESNRegressor(**SMALL).fit(table, X[:, 0]).feature_names_in_.tolist() == ["a", "b"]
    for esn in FITTED:
        with pytest.raises(AttributeError, match="without names of columns"):
            _ = esn.feature_names_in_
