"""The errors that a running network makes, frame by frame: of its forecasts, its values, or its labels."""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from echolearn.estimators import ESNClassifier, ESNForecaster, ESNRegressor
from echolearn.exceptions import ForecastWarning, InputWarning
from echolearn.fitting.inputs import InputCodec
from echolearn.fitting.model import TrainingEnd
from echolearn.monitoring.guard import GuardedStream
from echolearn.sequences.opening import open_sequences
from echolearn.sequences.targets import open_targets
from echolearn.streams import Stream
from echolearn.streams._estimator import ClassifierStream, EstimatorStream
from echolearn.validation import Array, check_pair, warn_user

Monitored = ESNRegressor | ESNClassifier | ESNForecaster | Stream | GuardedStream
MIN_PROBABILITY = 1e-6  # probabilities below this count as this
NO_ERRORS = np.empty((0, 1))
HELD_OUT_FOLDS = 5  # parts of the training data, of which one at a time is held out


def error_source(model: Monitored, *, learn: bool, targets: bool) -> ErrorSource:
    """Return the running network of a model: with targets for each frame, or without."""
    if isinstance(model, ESNForecaster):
        if targets:
            raise ValueError("a forecaster's targets are the next frames: update(x), without y.")
        if learn:
            raise ValueError("learn=True needs a target for each frame, which a forecaster is not given.")
        if len(model.forecast_.form.exogenous_mean):
            raise ValueError(
                "this forecaster has exogenous inputs, which a monitor cannot know a step ahead. Watch an ESNRegressor "
                "whose frames hold them: update(x, y)."
            )
        if model.forecast_.method != "closed_loop":
            _warn_of_separate_columns(model)
            return SteppedForecasts(model)
        return Forecasts(*forecast_stream(model), earlier=_training_errors(model))
    if isinstance(model, (ESNClassifier, ESNRegressor)):
        stream: Stream | GuardedStream = model.stream()
    elif isinstance(model, (Stream, GuardedStream)):
        stream = model
    else:
        raise TypeError(
            f"a monitor watches a fitted ESNForecaster, ESNRegressor or ESNClassifier, or a stream; given "
            f"{type(model).__name__}."
        )
    fills = getattr(model, "missing", "error") == "error"
    inner = stream.stream if isinstance(stream, GuardedStream) else stream
    if learn and not targets:
        raise ValueError("learn=True needs a target for each frame: update(x, y).")
    if isinstance(inner, ClassifierStream):
        return Labels(stream, inner.classes, targets=targets, learn=learn, fills=fills)
    return Values(stream, learn=learn, fills=fills) if targets else Forecasts(stream)


def held_out_errors(model: Monitored, training: object, *, targets: bool) -> Array:
    """Return the errors (n, n_outputs) in each fifth of the training data by an estimator fitted to the other four:
    fifths of the sequences or, where there are fewer, of the time of each sequence."""
    X, y = check_pair("training", training)
    if not isinstance(model, (ESNClassifier, ESNRegressor)):
        raise TypeError(
            f"training= goes with a fitted ESNRegressor or ESNClassifier; given {type(model).__name__}. A forecaster "
            "has its residuals; let the monitor of a stream run over recorded frames first."
        )
    given = open_sequences(X, gaps=True, layout=model.layout_)
    entries, per_step = open_targets(y, given, missing=True)
    if not per_step:
        raise ValueError("training: y has one target per sequence; expected one per step, as in the fit.")
    count, washout = len(given.X), model.network_.view.washout
    found = [np.full((0, 0), np.nan)] * count
    for fold in range(HELD_OUT_FOLDS):
        pieces, tested = [], []
        for i, n in enumerate(given.lengths):
            start, stop = (0, n * (i % HELD_OUT_FOLDS == fold))
            if count < HELD_OUT_FOLDS:
                start, stop = n * fold // HELD_OUT_FOLDS, n * (fold + 1) // HELD_OUT_FOLDS
            tested.append((i, start, stop))
            pieces += [(i, *bounds) for bounds in ((0, start), (stop, n)) if bounds[1] - bounds[0] > washout]
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # of fits that are only steps on the way
            again = clone(model).set_params(layout="time_first", verbose=0)
            again.fit([given.X[i][a:b] for i, a, b in pieces], [entries[i][a:b] for i, a, b in pieces])
        for i, start, stop in tested:
            if start < stop:
                source = error_source(again, learn=False, targets=targets)
                errors, _ = source.errors(given.X[i][:stop], entries[i][:stop] if targets else None)
                errors[:washout] = np.nan
                if model.get_params().get("ignore_label") is not None:
                    errors[np.asarray(entries[i][:stop]) == model.get_params()["ignore_label"]] = np.nan
                found[i] = np.concatenate([found[i].reshape(-1, errors.shape[1]), errors[start:]])
    errors = np.concatenate(found)
    return np.asarray(errors[np.isfinite(errors).any(axis=1)])


def _warn_of_separate_columns(esn: ESNForecaster) -> None:
    """Warn if several sensors are forecast directly: faults that show in their relation may then be missed."""
    if len(esn.target_mean_) > 1:
        warn_user(
            f"this forecaster smooths each of its {len(esn.target_mean_)} columns by itself (method_ is 'direct'): a "
            "sensor that is stuck or contradicts the others may go unnoticed. Fit it with method='closed_loop', which "
            "forecasts all columns from each other.",
            InputWarning,
        )


def forecast_stream(esn: ESNForecaster) -> tuple[EstimatorStream, Array | None]:
    """Return a stream that answers each value of a series with the next one, and the first value that it expects. Of
    several series, it starts in the initial state and expects nothing."""
    known = esn.forecast_
    mean, scale = esn.target_mean_, esn.target_scale_
    inputs = InputCodec(mean, scale, "error", mean, np.zeros(len(mean), bool))
    model = replace(esn.model_, inputs=inputs, feature_names=())
    if len(known.last_state) > 1:
        return EstimatorStream(model, online=None), None
    end = TrainingEnd(known.last_state[0], None, inputs.unknown, np.empty((0, len(mean))))
    stream = EstimatorStream(replace(model, training_end=end), online=None)
    # the last value of the fit is not yet part of its last state
    return stream, np.ravel(stream.predict(known.last_value[0] * scale + mean))


def _training_errors(esn: ESNForecaster) -> Array:
    """Return the errors (n, n_dims) of forecasts of the next value in the series of the fit."""
    forecast = esn.forecast_
    return np.asarray(forecast.residuals * forecast.form.codec.scale)


class _Gaps:
    """Frames whose gaps are filled by the last known values, or by what is expected; fills: False leaves them."""

    def __init__(self, fills: bool = True) -> None:
        self._fills, self._known = fills, np.empty(0)

    def filled(self, frame: Array, expected: Array | None = None) -> Array:
        """Return a frame without gaps; before anything is known, they are 0."""
        before = self._known if len(self._known) else np.zeros(len(frame))
        self._known = np.where(np.isfinite(frame), frame, before if expected is None else expected)
        return self._known

    def all_filled(self, X: Array) -> Array:
        """Return frames without gaps, unless the network knows what to do with them."""
        if not self._fills:
            return X
        if np.isfinite(X).all():
            self.filled(X[-1])
            return X
        return np.array([self.filled(x) for x in X])


class Forecasts:
    """A stream whose answer to a frame is the next frame. Gaps are filled by what was expected there."""

    one_sided = False

    def __init__(
        self, stream: Stream | GuardedStream, expected: Array | None = None, earlier: Array = NO_ERRORS
    ) -> None:
        self._stream, self._expected, self._gaps, self.earlier = stream, expected, _Gaps(), earlier

    def errors(self, X: Array, y: ArrayLike | None) -> tuple[Array, Array]:
        """Return x - forecast and the forecasts, which the frames before have given; NaN where there is none."""
        expected = np.full(X.shape, np.nan)
        if np.isfinite(X).all():
            answers = self._rows(X)
            expected[1:] = answers[:-1]
            if self._expected is not None:
                expected[0] = self._expected
            self._expected = answers[-1]
            self._gaps.filled(X[-1])
            return X - expected, expected
        for t, x in enumerate(X):
            if self._expected is not None:
                expected[t] = self._expected
            self._expected = self._rows(self._gaps.filled(x, self._expected)[None])[0]
        return np.where(np.isfinite(X), X, np.nan) - expected, expected

    def _rows(self, X: Array) -> Array:
        answers = np.asarray(self._stream.predict(X), dtype=np.float64).reshape(len(X), -1)
        if answers.shape[1] != X.shape[1]:
            raise ValueError(
                f"this network answers {X.shape[1]} features with {answers.shape[1]} values, so its answers are not "
                "forecasts of the next frame. Give the targets too: update(x, y)."
            )
        return answers


class SteppedForecasts:
    """A forecaster whose forecasts are not those of its network alone: it is asked for each of them."""

    one_sided = False

    def __init__(self, esn: ESNForecaster):
        if len(esn.forecast_.last_value) > 1:
            raise ValueError("this forecaster was fitted to several series. Fit one for the series to be watched.")
        self._esn, self.earlier = deepcopy(esn), _training_errors(esn)
        codec = esn.forecast_.form.codec
        self._one_value, self._width = codec.one_value, len(codec.mean)

    def errors(self, X: Array, y: ArrayLike | None) -> tuple[Array, Array]:
        """Return x - forecast and the forecasts."""
        if X.shape[1] != self._width:
            raise ValueError(
                f"a frame has shape ({self._width},) here, a chunk (steps, {self._width}); given {X.shape}."
            )
        expected = np.empty(X.shape)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ForecastWarning)  # of odd values, which the monitor reports itself
            for t, x in enumerate(X):
                expected[t] = np.ravel(np.asarray(self._esn.predict(1)))
                self._esn.update(x if self._one_value else x[None])
        return X - expected, expected


class Values:
    """A stream of values with a target for each frame; with `learn`, it learns from each after it was judged."""

    one_sided, earlier = False, NO_ERRORS

    def __init__(self, stream: Stream | GuardedStream, *, learn: bool, fills: bool):
        self._stream, self._learn, self._gaps = stream, learn, _Gaps(fills)

    def errors(self, X: Array, y: ArrayLike | None) -> tuple[Array, Array]:
        """Return y - answer and the answers; where y is not known, NaN."""
        T = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
        X = self._gaps.all_filled(X)
        if not self._learn:
            answers = np.asarray(self._stream.predict(X), dtype=np.float64).reshape(len(X), -1)
        else:
            single = [
                self._stream.learn(x[None], t[None]) if np.isfinite(t).all() else self._stream.predict(x[None])
                for x, t in zip(X, T, strict=True)
            ]
            answers = np.concatenate([np.asarray(a, dtype=np.float64).reshape(1, -1) for a in single])
        if answers.shape != T.shape:
            raise ValueError(f"y has {T.shape[1]} values per frame; expected {answers.shape[1]}.")
        return T - answers, answers


class Labels:
    """A stream of labels. The error is -log P of the true label; without labels, -log P of the likeliest one. A stream
    that learns gives labels only: its error is 1 where the label is wrong."""

    one_sided, earlier = True, NO_ERRORS

    def __init__(self, stream: Stream | GuardedStream, classes: Array, *, targets: bool, learn: bool, fills: bool):
        self._stream, self._classes, self._targets, self._learn = stream, classes, targets, learn
        self._gaps = _Gaps(fills)

    def errors(self, X: Array, y: ArrayLike | None) -> tuple[Array, Array]:
        """Return losses (n, 1), and the labels that were answered (n, 1)."""
        X = self._gaps.all_filled(X)
        if self._learn:
            true = np.asarray(y).ravel()
            answers = [self._stream.learn(x[None], true[t : t + 1]) for t, x in enumerate(X)]
            labels = np.concatenate([np.ravel(answer) for answer in answers])
            return (labels != true).astype(np.float64)[:, None], labels[:, None]
        assert isinstance(self._stream, (ClassifierStream, GuardedStream))
        P = np.asarray(self._stream.predict_proba(X), dtype=np.float64)
        chosen = P.argmax(axis=1)
        labels = self._classes[chosen]
        if not self._targets:
            return -np.log(np.maximum(P.max(axis=1), MIN_PROBABILITY))[:, None], labels[:, None]
        true = np.ravel(np.asarray(y))
        column = {label: j for j, label in enumerate(self._classes.tolist())}
        columns = np.array([column.get(label, -1) for label in true.tolist()])  # an unknown label has no probability
        likely = np.where(columns >= 0, P[np.arange(len(P)), columns], 0.0)
        return -np.log(np.maximum(likely, MIN_PROBABILITY))[:, None], labels[:, None]


# Their errors are (n, n_outputs) of the answers to frames (n, n_features); one_sided: only large ones are unusual;
# earlier: the errors of training, where they are known.
ErrorSource = Forecasts | SteppedForecasts | Values | Labels
