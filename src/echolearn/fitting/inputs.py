"""The inputs as a network sees them: features on one scale, gaps filled, and flags where there were gaps.

The counterpart of the target codecs. An `InputCodec` is fitted to the training inputs and is part of the model: of its
file, of its streams and of every prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike

from echolearn.display.facts import brief
from echolearn.execution.executor import LOCAL
from echolearn.sequences.batch import group_sequences
from echolearn.sequences.checks import MAX_STANDARDISED
from echolearn.sequences.dataset import Dataset
from echolearn.validation import Array

FRAMES_PER_TASK = 65536  # examined at once by one thread
CONSTANT_SPREAD_SHARE = 1e-12  # a spread of this share of the mean is rounding: the feature is constant


@dataclass(frozen=True, eq=False)
class InputCodec:
    """The map from frames (n_features,) as the user has them to the inputs of the network: (x - mean) / scale.

    missing: what NaN stands for: an "error", the last known value ("carry"), or the "mean". fill: the mean of each
    feature, for values that were never known. flagged: features for which a further input is 1 where they are missing.
    """

    mean: Array
    scale: Array
    missing: str
    fill: Array
    flagged: Array

    def __repr__(self) -> str:
        return brief(self)

    @classmethod
    def identity(cls, n_features: int) -> InputCodec:
        """Return the codec that leaves inputs as they are."""
        zero = np.zeros(n_features)
        return cls(zero, np.ones(n_features), "error", zero, np.zeros(n_features, bool))

    @classmethod
    def of(cls, data: Dataset, *, standardize: bool, missing: str) -> InputCodec:
        """Return the codec of the training inputs."""
        n_features = data.X[0].shape[1]
        if not standardize and missing == "error":
            return cls.identity(n_features)
        found = _moments(data)
        if (found.count == 0).any():
            j = int(np.argmin(found.count))
            raise ValueError(f"feature {j} of X has no value at all, only gaps. Leave it out.")
        mean = found.mean if standardize else np.zeros(n_features)
        scale = found.scale if standardize else np.ones(n_features)
        return cls(mean, scale, missing, found.mean, (found.count < data.frames) & (missing == "carry"))

    @property
    def n_features(self) -> int:
        """The number of features as the user counts them."""
        return len(self.mean)

    @property
    def n_in(self) -> int:
        """The number of inputs of the network: the features, then the flags."""
        return len(self.mean) + int(self.flagged.sum())

    @property
    def is_identity(self) -> bool:
        """Whether inputs are left as they are."""
        return self.missing == "error" and not self.mean.any() and bool((self.scale == 1).all())

    @property
    def unknown(self) -> Array:
        """The last known values (n_features,) before the first frame: none."""
        return np.full(len(self.mean), np.nan)

    def encode(self, x: Array, dtype: DTypeLike, known: Array | None = None) -> Array:
        """Return the inputs (steps, n_in) of the network for frames (steps, n_features).

        known: the last known values before these frames; NaN, or None, for none, which stand for the mean.
        """
        if self.is_identity:
            return x.astype(dtype, copy=False)
        x = x.astype(np.float64, copy=False)
        flags = np.empty((len(x), 0))
        if self.missing != "error":
            gaps = np.isnan(x)
            flags = gaps[:, self.flagged]
            x = self._filled(x, gaps, known) if gaps.any() else x
        with np.errstate(over="ignore", invalid="ignore"):
            return np.hstack([(x - self.mean) / self.scale, flags]).astype(dtype, copy=False)

    def _filled(self, x: Array, gaps: Array, known: Array | None) -> Array:
        """Return frames in which each gap has the mean, or the last known value."""
        if self.missing == "mean":
            return np.where(gaps, self.fill, x)
        before = self.fill if known is None else np.where(np.isnan(known), self.fill, known)
        rows = np.vstack([before, x])
        newest = np.where(np.vstack([np.zeros(len(before), bool), gaps]), 0, np.arange(len(rows))[:, None])
        return np.asarray(np.take_along_axis(rows, np.maximum.accumulate(newest, axis=0), axis=0)[1:])

    def last_known(self, x: Array, known: Array) -> Array:
        """Return the last known values after frames x (steps, n_features), for `encode` of what follows them."""
        if not len(x):
            return known
        there = ~np.isnan(x)
        last = len(x) - 1 - there[::-1].argmax(axis=0)
        return np.where(there.any(axis=0), x[last, np.arange(x.shape[1])], known)

    def dataset(self, X: Sequence[Array], *, per_step: bool, dtype: str) -> Dataset:
        """Return sequences as the network sees them, without targets."""
        placed = Dataset.place(X, (), None, per_step=per_step, dtype=dtype)
        return replace(placed, X=self.encode_all(placed))

    def encode_all(self, data: Dataset) -> Sequence[Array]:
        """Return the inputs of all sequences of a dataset, where its sequences are."""
        if self.is_identity and (data.executor is not LOCAL or all(x.dtype == data.dtype for x in data.X)):
            return data.X
        return data.executor.transform(data.X, _Encoding(self, data.dtype), self.n_in)


@dataclass(frozen=True)
class _Encoding:
    """`InputCodec.encode` as a function of one sequence that can be sent to a worker."""

    codec: InputCodec
    dtype: DTypeLike

    def __call__(self, x: Array) -> Array:
        return self.codec.encode(x, self.dtype)


@dataclass(frozen=True, eq=False)
class _Moments:
    """How many values each feature has, their mean, and their standard deviation (1 for a constant feature)."""

    count: Array
    mean: Array
    scale: Array


@dataclass(eq=False)
class _Sums:
    """Sums over frames, one entry per feature. They can be added."""

    count: Array
    total: Array

    def __iadd__(self, other: _Sums) -> _Sums:
        self.count = self.count + other.count
        self.total = self.total + other.total
        return self


def _moments(data: Dataset) -> _Moments:
    """Return the moments of each feature, computed where the data are; NaN does not count.

    The square of 1e200 is infinite and that of 1e-200 is zero, so the numbers are first divided by a power of two that
    brings them near 1.
    """
    groups = list(group_sequences(data.lengths, FRAMES_PER_TASK))
    with np.errstate(all="ignore"):
        peak = np.max(list(data.map(_peaks, groups)), axis=0)
        if (peak > MAX_STANDARDISED).any():
            raise ValueError(f"X holds {peak.max():.3g}, so large that float64 has no room for sums; scale it first.")
        power = np.frexp(peak)[1]
        first = data.sum(_totals, [(which, power, np.zeros(len(peak)), 1) for which in groups])
        mean = first.total / np.maximum(first.count, 1)
        second = data.sum(_totals, [(which, power, mean, 2) for which in groups])
        scale = np.sqrt(second.total / np.maximum(second.count, 1))
    varies = scale > CONSTANT_SPREAD_SHARE * np.abs(mean)
    return _Moments(first.count, np.ldexp(mean, power), np.where(varies, np.ldexp(scale, power), 1.0))


def _peaks(data: Dataset, which: Array) -> Array:
    """Return the largest absolute value of each feature, 0 without any."""
    peaks = [np.fmax.reduce(np.abs(np.asarray(data.X[i], np.float64)), axis=0, initial=0.0) for i in which]
    return np.asarray(np.max(peaks, axis=0))


def _totals(data: Dataset, which: Array, power: Array, mean: Array, exponent: int) -> _Sums:
    """Return sums of (x - mean)^exponent over the frames, with x divided by 2^power."""
    X = np.concatenate([data.X[i] for i in which]).astype(np.float64)
    rest = (np.ldexp(X, -power) - mean) ** exponent
    return _Sums((~np.isnan(rest)).sum(axis=0), np.nansum(rest, axis=0))
