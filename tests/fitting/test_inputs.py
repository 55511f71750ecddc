"""Inputs on their own scale, and inputs with gaps."""

from __future__ import annotations

import numpy as np
import pytest

from echolearn import ESNClassifier, ESNRegressor, load
from echolearn.fitting.inputs import InputCodec
from echolearn.sequences.dataset import Dataset
from toys import grouped


def dataset(X):
    return Dataset(X, (), None, True, np.dtype("float64"))


def sequences(seed=0, n=12, features=3):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(rng.integers(15, 30), features)) for _ in range(n)]


def test_moments_are_those_of_all_frames():
    X = [x * [1, 1e-9, 1e150] + [5e6, 0, 0] for x in sequences()]
    codec = InputCodec.of(dataset(X), standardize=True, missing="error")
    table = np.concatenate(X)
    np.testing.assert_allclose(codec.mean, table.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(codec.scale, [table[:, 0].std(), table[:, 1].std(), 1e150 * (table[:, 2] / 1e150).std()])


def test_a_constant_feature_is_only_centred():
    X = [np.column_stack([x[:, 0], np.full(len(x), 7.1)]) for x in sequences()]
    encoded = InputCodec.of(dataset(X), standardize=True, missing="error").encode_all(dataset(X))
    np.testing.assert_allclose(np.concatenate(encoded)[:, 1], 0, atol=1e-12)


def test_gaps_carry_the_last_known_value_and_are_flagged():
    nan = np.nan
    x = np.array([[nan, 1.0], [2.0, 2.0], [nan, 3.0], [nan, 6.0], [4.0, 8.0]])
    codec = InputCodec.of(dataset([x]), standardize=False, missing="carry")
    expected = [[3, 1, 1], [2, 2, 0], [2, 3, 1], [2, 6, 1], [4, 8, 0]]  # 3: the mean of what is known; the flag last
    np.testing.assert_array_equal(codec.encode(x, float), expected)
    np.testing.assert_array_equal(codec.encode(x[2:], float, known=np.array([9.0, nan]))[:, 0], [9, 9, 4])
    np.testing.assert_array_equal(codec.last_known(x[:4], codec.unknown), [2, 6])


def test_cut_anywhere_gaps_are_filled_as_in_one_piece():
    rng = np.random.default_rng(0)
    x = np.where(rng.random((40, 2)) < 0.5, np.nan, rng.normal(size=(40, 2)))
    codec = InputCodec.of(dataset([x]), standardize=True, missing="carry")
    whole = codec.encode(x, float)
    known, parts = codec.unknown, []
    for part in np.split(x, [3, 4, 17]):
        parts.append(codec.encode(part, float, known))
        known = codec.last_known(part, known)
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_the_mean_fills_gaps_without_flags():
    x = np.array([[1.0], [np.nan], [3.0]])
    codec = InputCodec.of(dataset([x]), standardize=False, missing="mean")
    np.testing.assert_array_equal(codec.encode(x, float), [[1], [2], [3]])
    assert codec.n_in == 1


def test_a_feature_without_any_value_is_refused():
    with pytest.raises(ValueError, match="feature 1 of X has no value"):
        InputCodec.of(dataset([np.array([[1.0, np.nan], [2.0, np.nan]])]), standardize=True, missing="carry")


@pytest.mark.parametrize("learn", ["none", "both"])
def test_a_feature_of_any_unit_and_offset_gives_the_same_network(learn):
    X = sequences()
    y = [np.roll(x[:, 0], 1) + x[:, 1] for x in X]
    moved = [x * [1e-6, 1, 1e9] + [0.25, -3e5, 4e9] for x in X]
    fit = {"hidden_units": 20, "learn": learn, "epochs": 3, "dtype": "float64"}
    one, other = ESNRegressor(**grouped(fit)).fit(X, y), ESNRegressor(**grouped(fit)).fit(moved, y)
    for a, b in zip(one.predict(X), other.predict(moved), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    np.testing.assert_allclose(one.input_weights_, other.input_weights_, atol=1e-6)
    raw = ESNRegressor(standardize=False, **grouped(fit)).fit(X, y)
    np.testing.assert_array_equal(raw.input_mean_, 0)


def test_thirty_percent_missing_costs_little_with_carry_and_more_with_the_mean(tmp_path):
    rng = np.random.default_rng(1)
    walk = [np.cumsum(rng.normal(size=(60, 1)), axis=0) for _ in range(40)]  # slow: the last value tells the next
    y = [(x[:, 0] > np.median(x)).astype(int) for x in walk]
    holes = [np.where(rng.random(x.shape) < 0.3, np.nan, x) for x in walk]
    scores = {}
    for missing in ("carry", "mean"):
        esn = ESNClassifier(30, learn="none", readout="ridge", missing=missing).fit(holes[:30], y[:30])
        scores[missing] = esn.score(holes[30:], y[30:])
        esn.save(tmp_path / "model.safetensors")
        loaded = load(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(loaded.predict(holes[30]), esn.predict(holes[30]))
    assert scores["carry"] > scores["mean"]


def test_streams_fill_gaps_and_scale_as_predictions_do():
    rng = np.random.default_rng(2)
    X = [np.where(rng.random((30, 2)) < 0.3, np.nan, 1e5 + rng.normal(size=(30, 2))) for _ in range(10)]
    y = [np.nan_to_num(np.roll(x[:, 0], 1), nan=1e5) for x in X]
    esn = ESNRegressor(20, learn="none", missing="carry", dtype="float64").fit(X, y)
    stream = esn.stream()
    answers = np.array([stream.predict(frame) for frame in X[0]])
    np.testing.assert_allclose(answers, esn.predict(X[0]), rtol=1e-9)
    np.testing.assert_allclose(stream.reset().predict(X[1]), esn.predict(X[1]), rtol=1e-9)


def test_gaps_are_refused_with_the_setting_that_fills_them():
    X = [np.array([[1.0], [np.nan], [2.0]])] * 3
    with pytest.raises(ValueError, match="missing='carry'"):
        ESNRegressor(5).fit(X, [np.arange(3.0)] * 3)
    esn = ESNRegressor(5, learn="none").fit([np.ones((3, 1)) * k for k in range(3)], [np.arange(3.0)] * 3)
    with pytest.raises(ValueError, match="missing='carry'"):
        esn.predict(X)


def test_infinity_is_never_a_gap():
    X = [np.array([[1.0], [np.inf], [2.0]])] * 3
    with pytest.raises(ValueError, match="infinity"):
        ESNRegressor(5, missing="carry").fit(X, [np.arange(3.0)] * 3)
