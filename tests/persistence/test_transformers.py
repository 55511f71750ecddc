"""Transformers of scikit-learn as plain arrays and back: the same bits; what a file cannot hold is refused."""

import contextlib

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from echolearn.modelfile.layout import entries_of
from echolearn.modelfile.values import from_json, to_json
from echolearn.persistence.transformers import (
    SEED_RULE,
    TRANSFORMERS,
    check_transformer,
    outputs,
    restore_transformer,
    transformer_parts,
)

RNG = np.random.default_rng(0)
FRAMES = 3 + 2 * RNG.normal(size=(60, 5)) @ RNG.normal(size=(5, 5))
GAPS = np.where(RNG.random(FRAMES.shape) < 0.2, np.nan, FRAMES)
EMPTY = np.column_stack([GAPS, np.full(len(GAPS), np.nan)])
CASES = {
    "standard": (StandardScaler(), FRAMES),
    "no mean": (StandardScaler(with_mean=False), FRAMES),
    "no deviation": (StandardScaler(with_std=False), FRAMES),
    "neither": (StandardScaler(with_mean=False, with_std=False), FRAMES),
    "gaps": (StandardScaler(), GAPS),
    "single precision": (StandardScaler(), FRAMES.astype(np.float32)),
    "one feature": (StandardScaler(), FRAMES[:, :1]),
    "range": (MinMaxScaler((-1, 2), clip=True), FRAMES),
    "largest": (MaxAbsScaler(), FRAMES),
    "robust": (RobustScaler(quantile_range=(10.0, 80.0), unit_variance=True), FRAMES),
    "robust, no centre": (RobustScaler(with_centering=False), FRAMES),
    "mean": (SimpleImputer(), GAPS),
    "median": (SimpleImputer(strategy="median"), GAPS.astype(np.float32)),
    "most frequent": (SimpleImputer(strategy="most_frequent"), np.round(GAPS)),
    "constant": (SimpleImputer(strategy="constant", fill_value=7.0), GAPS),
    "a number is missing": (SimpleImputer(missing_values=-1.0), np.where(np.isnan(GAPS), -1.0, GAPS)),
    "an empty feature": (SimpleImputer(), EMPTY),
    "an empty feature that stays": (SimpleImputer(keep_empty_features=True), EMPTY),
    "components": (PCA(3), FRAMES),
    "all components": (PCA(), FRAMES),
    "white": (PCA(0.9, whiten=True, svd_solver="full"), FRAMES),
    "components by eigenvalues": (PCA(2, svd_solver="covariance_eigh"), FRAMES),
    "drawn components": (PCA(2, svd_solver="randomized", random_state=0), FRAMES.astype(np.float32)),
    "products": (PolynomialFeatures(2, interaction_only=True, include_bias=False), FRAMES),
    "powers": (PolynomialFeatures((2, 3), order="F"), FRAMES[:, :2]),
}


def there_and_back(transformer):
    arrays, facts = transformer_parts(transformer)
    facts = from_json(to_json(facts))
    check_transformer(entries_of(arrays), to_json(facts))
    return restore_transformer(arrays, facts)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
def test_the_same_bits(case):
    transformer, frames = CASES[case]
    fitted = clone(transformer).fit(frames)
    back = there_and_back(fitted)
    expected = fitted.transform(frames)
    np.testing.assert_array_equal(back.transform(frames), expected)
    np.testing.assert_array_equal(back.transform(frames[:1]), fitted.transform(frames[:1]))
    assert back.transform(frames).dtype == expected.dtype
    assert repr(back.get_params()) == repr(fitted.get_params())
    assert outputs(back) == outputs(fitted) == expected.shape[1]
    if hasattr(fitted, "inverse_transform") and not isinstance(fitted, SimpleImputer):
        np.testing.assert_array_equal(back.inverse_transform(expected), fitted.inverse_transform(expected))
    for name, value in vars(fitted).items():
        if name.endswith("_") and not name.startswith("_"):
            np.testing.assert_array_equal(getattr(back, name), value, err_msg=name)
            assert np.shape(getattr(back, name)) == np.shape(value), name


def test_a_restored_scaler_can_go_on_learning():
    fitted = StandardScaler().fit(FRAMES[:30])
    back = there_and_back(fitted)
    np.testing.assert_array_equal(back.partial_fit(FRAMES[30:]).mean_, fitted.partial_fit(FRAMES[30:]).mean_)


class OwnScaler(StandardScaler):
    pass


@pytest.mark.parametrize(
    ("transformer", "words"),
    [
        (
            QuantileTransformer(n_quantiles=5),
            "QuantileTransformer cannot be saved with a pipeline; known are MaxAbsScaler",
        ),
        (FunctionTransformer(np.abs), "FunctionTransformer cannot be saved"),
        (OwnScaler(), "OwnScaler cannot be saved"),
        (SimpleImputer(add_indicator=True), "add_indicator=True of SimpleImputer cannot be saved; expected False"),
        (PCA(2, random_state=np.random.RandomState(0)), "random_state=.* of PCA cannot be saved"),
    ],
)
def test_what_a_file_cannot_hold_is_refused(transformer, words):
    with pytest.raises((TypeError, ValueError), match=words):
        transformer_parts(transformer.fit(FRAMES))


def forged(facts=None, arrays=None, transformer=None):
    """Take a transformer apart, change its parts, and try to read them."""
    own, known = transformer_parts((transformer or StandardScaler()).fit(FRAMES))
    own = {name: value for name, value in {**own, **(arrays or {})}.items() if value is not None}
    known = to_json({**known, **(facts or {})})
    check_transformer(entries_of(own), known)
    return restore_transformer(own, from_json(known))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"facts": {"transformer": "FunctionTransformer"}}, "is not a transformer that a file can hold"),
        ({"facts": {"transformer": ["StandardScaler"]}}, "is not a transformer that a file can hold"),
        ({"facts": {"settings": {"with_mean": 1}}}, "with_mean=1 of StandardScaler"),
        ({"facts": {"settings": {"steps": []}}}, "StandardScaler has no setting 'steps'"),
        ({"facts": {"settings": {}}}, "has the arrays"),
        ({"facts": {"settings": 3}}, "the settings are not values by name"),
        ({"facts": {"features": 4}}, r"has shape \(5,\); expected \(n_in\), here \(4,\)"),
        ({"facts": {"features": 0}}, "0 is not a count"),
        ({"facts": {"turned": "mean_"}}, "is not a list of words"),
        ({"arrays": {"mean_": None}}, "has the arrays"),
        ({"arrays": {"extra": np.ones(5)}}, "has the arrays"),
        ({"arrays": {"mean_": np.ones((5, 1))}}, "mean_ has shape"),
        ({"arrays": {"mean_": np.ones(5, np.int64)}}, "mean_ holds I64; expected F64 or F32"),
        ({"arrays": {"mean_": np.full(5, np.nan)}}, "mean_ of StandardScaler holds NaN"),
        ({"arrays": {"scale_": np.zeros(5)}}, "scale_ of StandardScaler is not positive"),
        ({"arrays": {"n_samples_seen_": np.ones(3, np.int64)}}, "do not fit 5 features"),
        ({"transformer": SimpleImputer(), "arrays": {"statistics_": np.full(5, np.inf)}}, "holds NaN or infinity"),
        (
            {"transformer": SimpleImputer(missing_values=3.0), "arrays": {"statistics_": np.full(5, 3.0)}},
            "cannot be restored",
        ),
        ({"transformer": PCA(2), "arrays": {"components_": np.ones((7, 5))}}, "expected|do not fit"),
        ({"transformer": PCA(2), "facts": {"settings": {"n_components": "all"}}}, "n_components='all' of PCA"),
        ({"transformer": MinMaxScaler(), "facts": {"settings": {"feature_range": (1, 0)}}}, "feature_range"),
        ({"transformer": PolynomialFeatures(2), "facts": {"settings": {"degree": -1}}}, "degree=-1"),
    ],
)
def test_forged_parts_are_refused(changes, words):
    with pytest.raises((ValueError, KeyError), match=words):
        forged(**changes)


@pytest.mark.parametrize("degree", [10, 2**20, 2**30])
def test_a_forged_degree_costs_nothing(degree):
    with contextlib.suppress(ValueError):  # too many features to count
        assert outputs(forged({"settings": {"degree": degree}}, transformer=PolynomialFeatures(2))) > 3000


def test_every_known_transformer_has_a_case():
    assert set(TRANSFORMERS) == {type(transformer).__name__ for transformer, _ in CASES.values()}


@pytest.mark.parametrize("seed", [0, 1, None])
def test_seeds_from_zero_on_and_none_are_kept(seed):
    assert SEED_RULE.allows(seed)
    assert not SEED_RULE.allows(-1)
