"""Transformers of scikit-learn, as a pipeline's file holds them, as operations of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from echolearn.exceptions import ExportError
from echolearn.modelfile.facts import as_count
from echolearn.runtime.plan import Clip, FillGaps, InputOperation, Project, Standardize
from echolearn.validation import Array

KNOWN = ("MaxAbsScaler", "MinMaxScaler", "PCA", "RobustScaler", "SimpleImputer", "StandardScaler")


def frozen(values: Array) -> Array:
    """Return a copy in float64 that cannot be written to."""
    copy = np.array(values, np.float64, order="C")
    if not np.isfinite(copy).all():
        raise ExportError("the model holds weights that are not finite; fit it again.")
    copy.flags.writeable = False
    return copy


def step_operations(arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> Sequence[InputOperation]:
    """Return the operations of a fitted transformer; its arrays and settings have the names of its attributes."""
    name, settings, n = facts["transformer"], facts["settings"], as_count(facts["features"])
    if name not in KNOWN:
        raise ExportError(
            f"{name:.40} cannot be exported or run with a pipeline; known are {', '.join(KNOWN)}. Apply it to the "
            "frames before they reach the exported model."
        )
    zero, one = np.zeros(n), np.ones(n)

    def fitted(array: str, otherwise: Array | None = None) -> Array:
        found = frozen(arrays[array]) if otherwise is None or array in arrays else otherwise
        if found.shape[-1] != n:
            raise ValueError(f"{array} of {name} has shape {found.shape}; expected {n} features")
        return found

    if name == "StandardScaler":
        return [Standardize(fitted("mean_", zero) if settings["with_mean"] else zero, fitted("scale_", one))]
    if name == "RobustScaler":
        return [Standardize(fitted("center_", zero), fitted("scale_", one))]
    if name == "MaxAbsScaler":
        return [Standardize(zero, fitted("scale_")), *([Clip(-one, one)] if settings.get("clip") else [])]
    if name == "MinMaxScaler":
        low, high = (np.full(n, float(bound)) for bound in settings["feature_range"])
        scale = fitted("scale_")
        scaled = Standardize(frozen(-fitted("min_") / scale), frozen(1 / scale))
        return [scaled, *([Clip(low, high)] if settings["clip"] else [])]
    if name == "PCA":
        components, spread = fitted("components_"), np.ones(1)
        if settings["whiten"]:
            spread = np.sqrt(np.maximum(frozen(arrays["explained_variance_"]), np.finfo(float).eps))
        return [Standardize(fitted("mean_"), one), Project(frozen(components.T / spread))]
    return [_imputed(arrays["statistics_"], settings, n)]


def _imputed(statistics: Array, settings: Mapping[str, object], n: int) -> FillGaps:
    """Return what a SimpleImputer does."""
    missing, values = settings["missing_values"], np.asarray(statistics, np.float64)
    if not (isinstance(missing, float) and np.isnan(missing)):
        raise ExportError(f"SimpleImputer(missing_values={missing!r:.40}) cannot be exported or run; expected NaN.")
    if np.isnan(values).any() or values.shape != (n,):
        raise ExportError("SimpleImputer with features that were empty when it was fitted cannot be exported or run.")
    return FillGaps(frozen(values), False, np.zeros(n, bool))
