"""Transformers of scikit-learn as arrays and settings, and back, for the file of a pipeline.

Only those of `TRANSFORMERS` are written and read. A file names one of them, never a module or a function: no code of a
file is executed, and arrays and settings are compared with what the named transformer must have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, PolynomialFeatures, RobustScaler, StandardScaler

from echolearn.modelfile.layout import Entry, Facts
from echolearn.modelfile.schema import check_entry
from echolearn.modelfile.values import as_count, as_words, from_json
from echolearn.modelfile.writer import storable
from echolearn.validation import (
    BOOLEAN,
    NON_NEGATIVE,
    Array,
    Rule,
    any_of,
    is_list,
    is_number,
    number,
    one_of,
    or_none,
    whole_number,
)

NUMBER_DTYPES, COUNT_DTYPES = ("F64", "F32"), ("I64", "F64")  # scikit-learn counts frames in either


@dataclass(frozen=True)
class _Fitted:
    """An array of a fitted transformer: its dtypes, its shape in letters, and the settings of which one must be on."""

    shape: tuple[str, ...] = ("n_in",)
    dtypes: tuple[str, ...] = NUMBER_DTYPES
    needs: tuple[str, ...] = ()
    above: float | None = None  # every number must be greater


@dataclass(frozen=True)
class _Known:
    """A transformer that can be written. elementwise: it treats features one by one. refit: the array with one row,
    fitted to which it has the same arrays again; "": any row will do."""

    kind: type[BaseEstimator]
    settings: Mapping[str, Rule]
    arrays: Mapping[str, _Fitted] = field(default_factory=dict)
    elementwise: bool = True
    refit: str | None = None


def _pair(low: float, high: float, expected: str) -> Rule:
    def allows(value: object) -> bool:
        if not is_list(value) or len(value) != 2:
            return False
        first, last = value
        return is_number(first) and is_number(last) and low <= first < last <= high

    return Rule(allows, expected)


COPY_RULE = {"copy": BOOLEAN}
FRAMES_SEEN = {"n_samples_seen_": _Fitted(("seen",), COUNT_DTYPES)}
SEED_RULE = or_none(whole_number(0), "another one each time")
TRANSFORMERS = {
    known.kind.__name__: known
    for known in (
        _Known(
            StandardScaler,
            {"with_mean": BOOLEAN, "with_std": BOOLEAN, **COPY_RULE},
            {
                "mean_": _Fitted(needs=("with_mean", "with_std")),
                "var_": _Fitted(needs=("with_std",)),
                "scale_": _Fitted(needs=("with_std",), above=0),
                **FRAMES_SEEN,
            },
        ),
        _Known(
            MinMaxScaler,
            {"feature_range": _pair(-1e100, 1e100, "two numbers, the smaller first"), "clip": BOOLEAN, **COPY_RULE},
            {
                **{name: _Fitted() for name in ("min_", "data_min_", "data_max_", "data_range_")},
                "scale_": _Fitted(above=0),
                **FRAMES_SEEN,
            },
        ),
        _Known(
            MaxAbsScaler,
            {"clip": BOOLEAN, **COPY_RULE},
            {"scale_": _Fitted(above=0), "max_abs_": _Fitted(), **FRAMES_SEEN},
        ),
        _Known(
            RobustScaler,
            {
                "with_centering": BOOLEAN,
                "with_scaling": BOOLEAN,
                "quantile_range": _pair(0, 100, "two percentages, the smaller first"),
                "unit_variance": BOOLEAN,
                **COPY_RULE,
            },
            {"center_": _Fitted(needs=("with_centering",)), "scale_": _Fitted(needs=("with_scaling",), above=0)},
        ),
        _Known(
            SimpleImputer,
            {
                "missing_values": Rule(
                    lambda v: is_number(v) or (isinstance(v, float) and math.isnan(v)), "a number or NaN"
                ),
                "strategy": one_of("mean", "median", "most_frequent", "constant"),
                "fill_value": or_none(number(lambda _: True, "a number"), "zero"),
                "add_indicator": Rule(lambda v: v is False, "False"),
                "keep_empty_features": BOOLEAN,
                **COPY_RULE,
            },
            {"statistics_": _Fitted()},
            refit="statistics_",
        ),
        _Known(
            PCA,
            {
                "n_components": any_of(
                    one_of("mle"), or_none(number(lambda v: v > 0, ""), ""), expected="a number > 0, 'mle' or None"
                ),
                "whiten": BOOLEAN,
                "svd_solver": one_of("auto", "full", "covariance_eigh", "arpack", "randomized"),
                "tol": NON_NEGATIVE,
                "iterated_power": any_of(one_of("auto"), whole_number(0), expected="'auto' or a whole number >= 0"),
                "n_oversamples": whole_number(1),
                "power_iteration_normalizer": one_of("auto", "QR", "LU", "none"),
                "random_state": SEED_RULE,
                **COPY_RULE,
            },
            {
                "components_": _Fitted(("n_out", "n_in")),
                "mean_": _Fitted(),
                "explained_variance_": _Fitted(("n_out",), above=-1e-300),
                "explained_variance_ratio_": _Fitted(("n_out",)),
                "singular_values_": _Fitted(("n_out",)),
                "noise_variance_": _Fitted(("one",)),
                "n_samples_": _Fitted(("one",), COUNT_DTYPES),
            },
            elementwise=False,
        ),
        _Known(
            PolynomialFeatures,
            {
                "degree": any_of(
                    whole_number(0), _pair(0, 2**31, ""), expected="a whole number >= 0, or a least and a greatest one"
                ),
                "interaction_only": BOOLEAN,
                "include_bias": BOOLEAN,
                "order": one_of("C", "F"),
            },
            refit="",
        ),
    )
}


def transformer_parts(transformer: BaseEstimator) -> tuple[dict[str, Array], Facts]:
    """Return the arrays and facts of a fitted transformer, or raise TypeError if a file cannot hold it."""
    name = type(transformer).__name__
    if name not in TRANSFORMERS or type(transformer) is not TRANSFORMERS[name].kind:
        raise TypeError(
            f"{name} cannot be saved with a pipeline; known are {', '.join(sorted(TRANSFORMERS))}. Apply it to the "
            "sequences before they reach the pipeline, or save the network alone with its own save method."
        )
    settings = transformer.get_params(deep=False)
    _check_settings(name, settings)
    arrays = {
        array: np.atleast_1d(np.asarray(getattr(transformer, array)))
        for array in _announced(TRANSFORMERS[name], settings)
    }
    plain = {"i": np.int64, "u": np.int64, "O": np.float64}  # a constant that an imputer fills in is an object
    stored = {array: value.astype(plain.get(value.dtype.kind, value.dtype)) for array, value in arrays.items()}
    # products add in an order that depends on the layout: arrays that lie column by column must lie so again
    turned = [array for array, value in arrays.items() if value.ndim == 2 and value.strides[0] < value.strides[1]]
    facts = {"transformer": name, "settings": settings, "features": int(transformer.n_features_in_), "turned": turned}
    return {array: storable(array, value) for array, value in stored.items()}, facts


def _announced(known: _Known, settings: Facts) -> list[str]:
    """Return the names of the arrays that a transformer with these settings has."""
    return [name for name, a in known.arrays.items() if not a.needs or any(settings[need] for need in a.needs)]


def _check_settings(name: str, settings: Mapping[str, object]) -> None:
    """Raise ValueError unless the settings are those of a known transformer."""
    rules = TRANSFORMERS[name].settings
    if not set(settings) <= set(rules):
        raise ValueError(f"{name} has no setting {min(set(settings) - set(rules))!r:.40} that a file can hold")
    for setting, value in settings.items():
        if not rules[setting].allows(value):
            raise ValueError(f"{setting}={value!r:.40} of {name} cannot be saved; expected {rules[setting].expected}")


def check_transformer(entries: Mapping[str, Entry], facts: Facts) -> None:
    """Raise ValueError unless the arrays are those that a transformer with these facts has, by dtype and shape."""
    name = facts["transformer"]
    if not isinstance(name, str) or name not in TRANSFORMERS:
        raise ValueError(f"{name!r:.40} is not a transformer that a file can hold")
    known, settings = TRANSFORMERS[name], from_json(facts["settings"])
    if not isinstance(settings, dict):
        raise ValueError("the settings are not values by name")
    _check_settings(name, settings)
    missing = {need for a in known.arrays.values() for need in a.needs} - set(settings)
    expected = set() if missing else set(_announced(known, settings))
    if missing or set(entries) != expected:
        raise ValueError(f"{name} has the arrays {sorted(entries)!r:.80}; expected {sorted(expected)}")
    lengths = {"n_in": as_count(facts["features"]), "one": 1}
    for array, entry in entries.items():
        check_entry(array, entry, known.arrays[array].shape, known.arrays[array].dtypes, lengths)
    if lengths.get("seen", 1) not in (1, lengths["n_in"]) or not 1 <= lengths.get("n_out", 1) <= lengths["n_in"]:
        raise ValueError(f"the arrays of {name} do not fit {lengths['n_in']} features")


def restore_transformer(arrays: Mapping[str, Array], facts: Facts) -> BaseEstimator:
    """Return the fitted transformer; raise ValueError where its numbers are impossible."""
    name, n_in = facts["transformer"], as_count(facts["features"])
    known = TRANSFORMERS[name]
    transformer = known.kind(**facts["settings"])
    turned = as_words(facts["turned"])
    for array, value in arrays.items():
        finite = np.isfinite(value) if known.refit is None else ~np.isinf(value)  # an imputer marks empty features NaN
        if not finite.all():
            raise ValueError(f"{array} of {name} holds NaN or infinity")
        least = known.arrays[array].above
        if least is not None and not (value > least).all():
            raise ValueError(f"{array} of {name} is not positive")
    if known.refit is not None:
        row = arrays[known.refit] if known.refit else np.zeros(n_in)
        transformer.fit(row[None])
        for array, value in arrays.items():
            if not np.array_equal(np.asarray(getattr(transformer, array), float), value, equal_nan=True):
                raise ValueError(f"{array} of {name} cannot be restored: it is not what a fit gives")
        return transformer
    transformer.n_features_in_ = n_in
    for array in known.arrays:  # those that the settings switch off are None
        setattr(transformer, array, _as_fitted(array, arrays[array], turned) if array in arrays else None)
    if isinstance(transformer, PCA):
        transformer.n_components_ = len(transformer.components_)
    return transformer


def _as_fitted(name: str, value: Array, turned: list[str]) -> Array | float:
    """Return an array as a fit leaves it: column by column if it lay so, a single number as such."""
    if name in turned:
        return np.asfortranarray(value)
    return value[0] if name in ("n_samples_seen_", "n_samples_", "noise_variance_") and len(value) == 1 else value


def outputs(transformer: BaseEstimator) -> int:
    """Return the number of features that a fitted transformer passes on."""
    if isinstance(transformer, PCA):
        return len(transformer.components_)
    if isinstance(transformer, PolynomialFeatures):
        return int(transformer.n_output_features_)
    if isinstance(transformer, SimpleImputer) and not transformer.keep_empty_features:
        return int(np.count_nonzero(~np.isnan(np.asarray(transformer.statistics_, float))))
    return int(transformer.n_features_in_)
