"""`plan_of`: from a fitted estimator, stack or pipeline to the `Plan` of its export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from echolearn.estimators._base import SequenceEstimator, fitted_model
from echolearn.estimators._stack import StackedEstimator, fitted_stack
from echolearn.estimators.codecs import ClassCodec, LabelSetCodec, TargetCodec, ValueCodec
from echolearn.estimators.framewise import FrameWise
from echolearn.estimators.input_codec import InputCodec
from echolearn.estimators.models import FittedModel, FittedStack
from echolearn.export.plan import (
    Answer,
    Clip,
    ExportError,
    FillGaps,
    InputOperation,
    Layer,
    Passing,
    Plan,
    Pooling,
    Project,
    Resumption,
    Sparse,
    Standardize,
)
from echolearn.readout.network import Network
from echolearn.readout.observation import ReadoutView
from echolearn.reservoir.reservoir import Reservoir
from echolearn.validation.array_types import Array

BESIDE = {"output": "", "output+input": "input", "output+hidden": "hidden"}


def plan_of(model: BaseEstimator) -> Plan:
    """Return the plan of a fitted estimator of echolearn, or of a pipeline that ends in one.

    Parameters
    ----------
    model : estimator of echolearn, or sklearn.pipeline.Pipeline
        The steps of a pipeline before the network may be StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, PCA
        and SimpleImputer, in `FrameWise` or without it.

    Returns
    -------
    Plan
        Its operations and arrays.

    Raises
    ------
    ExportError
        If the model, or an option of it, cannot be exported; the message names it.
    """
    if isinstance(model, Pipeline):
        *steps, (_, network) = model.steps
        kept = [step for _, step in steps if step is not None and step != "passthrough"]
        plan = plan_of(network)
        operations = [operation for step in kept for operation in _step_operations(step)]
        if not kept:
            return plan
        if plan.horizon is not None:
            raise ExportError("a pipeline that ends in ESNForecaster cannot be exported; export the forecaster alone.")
        if plan.carried is not None:
            raise ExportError("missing='carry' after the steps of a pipeline cannot be exported; use missing='error'.")
        first = kept[0].transformer_ if isinstance(kept[0], FrameWise) else kept[0]
        n_features = int(first.n_features_in_)
        return replace(plan, inputs=(*operations, *plan.inputs), n_features=n_features, feature_names=())
    if isinstance(model, StackedEstimator):
        check_is_fitted(model)
        return _stack_plan(fitted_stack(model))
    if not isinstance(model, SequenceEstimator):
        raise ExportError(
            f"{type(model).__name__} cannot be exported; expected a classifier, regressor, forecaster or stack of "
            "echolearn, or a Pipeline that ends in one."
        )
    check_is_fitted(model)
    return _forecast_plan(fitted_model(model)) if hasattr(model, "forecast_") else _network_plan(fitted_model(model))


def _network_plan(model: FittedModel) -> Plan:
    """Return the plan of one network."""
    view, end = model.network.view, model.training_end
    resumption = None if end is None else Resumption(end.state, end.fed_back, end.known)
    return Plan(
        estimator=model.estimator,
        precision=str(np.dtype(model.settings["dtype"])),
        n_features=model.inputs.n_features,
        feature_names=tuple(map(str, model.feature_names)),
        inputs=_input_operations(model.inputs),
        layers=(_layer(model.network),),
        pooling=_pooling(view),
        answer=_answer(model.codec, model.network),
        resumption=resumption,
    )


def _forecast_plan(model: FittedModel) -> Plan:
    """Return the plan of a forecaster; its features are the series, then the exogenous inputs."""
    state, codec = model.forecast, model.codec
    assert state is not None
    if state.direct is not None:
        raise ExportError(
            "a forecaster of direct forecasts (trend, season and a correction per horizon) cannot be exported; "
            "method='closed_loop' fits one that can."
        )
    assert isinstance(codec, ValueCodec)
    mean = np.concatenate([codec.mean, state.exogenous_mean])
    scale = np.concatenate([codec.scale, state.exogenous_scale])
    resumption = None if len(state.last_state) > 1 else Resumption(state.last_state[0], state.last_value[0], None)
    plan = _network_plan(model)
    return replace(plan, inputs=(Standardize(mean, scale),), horizon=len(codec.mean), resumption=resumption)


def _stack_plan(stack: FittedStack) -> Plan:
    """Return the plan of a stack: the inputs of its first layer, the answer of its top one."""
    first, *_, top = stack.layers
    beside = BESIDE[stack.settings["sees"]]
    layers = [_layer(model.network) for model in stack.layers]
    below = [
        replace(layer, passing=Passing(scale, beside)) for layer, scale in zip(layers[:-1], stack.scales, strict=True)
    ]
    plan = _network_plan(top)
    return replace(
        plan,
        estimator=stack.estimator,
        n_features=first.inputs.n_features,
        feature_names=tuple(map(str, first.feature_names)),
        inputs=_input_operations(first.inputs),
        layers=(*below, layers[-1]),
        resumption=None,
    )


def _layer(network: Network) -> Layer:
    """Return a reservoir and its readout as plain arrays."""
    r, view, U = network.reservoir, network.view, network.readout.U
    N = r.N
    of_states = view.rows(r) - 1 - (_parts(view) * r.n_in if view.direct and view.summary is None else 0)
    return Layer(
        W=_frozen(r.W),
        W_rec=_sparse(r),
        W_fb=None if r.W_fb is None else _frozen(r.W_fb.T),
        bias=_frozen(np.zeros(N) if r.bias is None else r.bias),
        leak=_frozen(r.leak),
        initial_state=_frozen(np.zeros(N) if r.initial_state is None else r.initial_state),
        backward=np.zeros(N, bool) if r.backward is None else np.asarray(r.backward, bool),
        activation=r.activation,
        U_states=_frozen(U[:of_states]),
        U_inputs=_frozen(U[of_states:-1]),
        intercept=_frozen(U[-1]),
        softmax=network.readout.softmax,
    )


def _sparse(r: Reservoir) -> Sparse:
    W_rec = r.W_rec
    return Sparse(W_rec.indptr.astype(np.int64), W_rec.indices.astype(np.int64), _frozen(W_rec.data))


def _frozen(values: Array) -> Array:
    """Return a copy in float64 that cannot be written to."""
    copy = np.array(values, np.float64, order="C")
    if not np.isfinite(copy).all():
        raise ExportError("the model holds weights that are not finite; fit it again.")
    copy.flags.writeable = False
    return copy


def _parts(view: ReadoutView) -> int:
    return int(view.pooling) if isinstance(view.pooling, Integral) else 1


def _pooling(view: ReadoutView) -> Pooling | None:
    """Return how sequences become one row, or None for one answer per step."""
    if view.pooling is None:
        return None
    if view.summary is not None:
        delays = tuple(int(d) for d in view.summary.delays)
        return Pooling("summary", view.washout, delays=delays, thresholds=_frozen(view.summary.thresholds))
    if isinstance(view.pooling, Integral):
        return Pooling("parts", view.washout, parts=int(view.pooling))
    return Pooling(str(view.pooling), view.washout)


def _answer(codec: TargetCodec, network: Network) -> Answer:
    """Return what outputs stand for."""
    n_out = network.readout.U.shape[1]
    if isinstance(codec, ValueCodec):
        return Answer("values", n_out, _frozen(codec.mean), _frozen(codec.scale), ())
    if isinstance(codec, LabelSetCodec):
        return Answer("independent", n_out, np.zeros(n_out), _frozen(codec.slopes), _names(codec.labels))
    if isinstance(codec, ClassCodec):
        kind = "softmax" if network.readout.softmax else "nearest"
        return Answer(kind, n_out, np.zeros(n_out), np.ones(n_out), _names(codec.labels))
    raise ExportError(f"targets of type {type(codec).__name__} cannot be exported.")


def _names(labels: Array) -> tuple[str, ...]:
    return tuple(str(label) for label in labels.tolist())


def _input_operations(inputs: InputCodec) -> tuple[InputOperation, ...]:
    """Return how an `InputCodec` turns frames into inputs."""
    operations: list[InputOperation] = []
    flags = int(inputs.flagged.sum())
    if inputs.missing != "error":
        operations.append(FillGaps(_frozen(inputs.fill), inputs.missing == "carry", np.asarray(inputs.flagged, bool)))
    if inputs.mean.any() or (inputs.scale != 1).any():
        mean, scale = np.append(inputs.mean, np.zeros(flags)), np.append(inputs.scale, np.ones(flags))
        operations.append(Standardize(_frozen(mean), _frozen(scale)))
    return tuple(operations)


def _step_operations(step: BaseEstimator) -> Sequence[InputOperation]:
    """Return the operations of a fitted transformer of scikit-learn."""
    check_is_fitted(step)
    t = step.transformer_ if isinstance(step, FrameWise) else step
    n = int(getattr(t, "n_features_in_", 0))
    zero, one = np.zeros(n), np.ones(n)
    if type(t) is StandardScaler:
        return [Standardize(_or(t.mean_ if t.with_mean else None, zero), _or(t.scale_, one))]
    if type(t) is RobustScaler:
        return [Standardize(_or(t.center_, zero), _or(t.scale_, one))]
    if type(t) is MaxAbsScaler:
        return [Standardize(zero, _frozen(t.scale_)), *([Clip(-one, one)] if getattr(t, "clip", False) else [])]
    if type(t) is MinMaxScaler:
        low, high = (np.full(n, float(bound)) for bound in t.feature_range)
        scaled = Standardize(_frozen(-t.min_ / t.scale_), _frozen(1 / t.scale_))
        return [scaled, *([Clip(low, high)] if t.clip else [])]
    if type(t) is PCA:
        scale = np.sqrt(np.maximum(t.explained_variance_, np.finfo(float).eps)) if t.whiten else 1.0
        return [Standardize(_frozen(t.mean_), one), Project(_frozen(t.components_.T / scale))]
    if type(t) is SimpleImputer:
        return [_imputed(t)]
    raise ExportError(
        f"{type(t).__name__} cannot be exported with a pipeline; known are MaxAbsScaler, MinMaxScaler, PCA, "
        "RobustScaler, SimpleImputer and StandardScaler. Apply it to the frames before they reach the exported model."
    )


def _or(values: Array | None, otherwise: Array) -> Array:
    return otherwise if values is None else _frozen(values)


def _imputed(t: SimpleImputer) -> FillGaps:
    values = np.asarray(t.statistics_, np.float64)
    if not (isinstance(t.missing_values, float) and np.isnan(t.missing_values)):
        raise ExportError(f"SimpleImputer(missing_values={t.missing_values!r:.40}) cannot be exported; expected NaN.")
    if np.isnan(values).any() or t.add_indicator:
        raise ExportError("SimpleImputer with empty features or add_indicator=True cannot be exported.")
    return FillGaps(_frozen(values), False, np.zeros(len(values), bool))
