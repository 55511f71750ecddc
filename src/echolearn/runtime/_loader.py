"""`plan_from_contents`: from the arrays and facts of a model file to the `Plan` of the model.

This is the only way to a plan: that of a fitted estimator is the plan of the file that it would be saved to. Names,
dtypes and shapes of arrays have been checked (`modelfile.schema`); here what is in them is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from echolearn.exceptions import ExportError
from echolearn.modelfile.schema import (
    CLASSIFIERS,
    DEEP,
    LAYER_TENSORS,
    MAX_LOGIT,
    MOMENTS_PER_UNIT,
    NETWORK,
    NETWORKS,
    STACK_TENSORS,
    arrays_of,
    check_delays,
    layout_of,
)
from echolearn.modelfile.values import as_count, as_truth, as_whole, as_words
from echolearn.runtime._plan import (
    Answer,
    Block,
    Clip,
    Deep,
    FillGaps,
    InputOperation,
    Layer,
    Plan,
    Project,
    Resumption,
    Sparse,
    Stack,
    Standardize,
    Summary,
)
from echolearn.validation import Array

Facts = Mapping[str, Any]
RUNNABLE_ACTIVATIONS = ("tanh", "sigmoid", "relu", "identity")
TRANSFORMERS = ("MaxAbsScaler", "MinMaxScaler", "PCA", "RobustScaler", "SimpleImputer", "StandardScaler")


def plan_from_contents(tensors: Mapping[str, Array], facts: Facts) -> Plan:
    """Return the plan of a model from the arrays and facts of its file. ExportError names an option that cannot be
    exported or run; ValueError, TypeError or KeyError: the contents contradict one another."""
    if "steps" in facts:
        return _pipeline_plan(tensors, facts)
    return _network_plan(_Contents(tensors, facts))


def _frozen(values: Array) -> Array:
    """Return a copy in float64 that cannot be written to."""
    copy = np.array(values, np.float64, order="C")
    if not np.isfinite(copy).all():
        raise ExportError("the model holds weights that are not finite; fit it again.")
    copy.flags.writeable = False
    return copy


class _Contents:
    """The arrays and facts of one network."""

    def __init__(self, tensors: Mapping[str, Array], facts: Facts):
        self.tensors, self.facts, self.settings = tensors, facts, facts["settings"]
        if facts["estimator"] not in NETWORKS:
            raise ExportError(f"{facts['estimator']!r:.40} cannot be exported or run; known are {', '.join(NETWORKS)}.")
        if "direct" in facts:
            raise ExportError(
                "a forecaster of direct forecasts (trend, season and a correction per horizon) cannot be exported, nor "
                "run without echolearn's estimators; method='closed_loop' fits one that can."
            )
        if self.settings.get("neighbourhood") is not None:
            raise ExportError(
                "a forecaster with neighbourhood= cannot be exported, nor run without echolearn's estimators: one "
                "network runs on every block of points. neighbourhood=None fits one that can."
            )
        self.deep = facts["estimator"] in DEEP
        self.n_in, self.units = tensors["0/W_0" if self.deep else "W"].shape
        self.n_out = tensors["U"].shape[1]
        self.summarizes = "thresholds" in tensors

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def array(self, name: str) -> Array:
        """Return an array as finite float64."""
        return _frozen(self.tensors[name])

    def of_units(self, name: str) -> Array:
        """Return an array (N,); zeros if it is not there."""
        return self.array(name) if name in self else np.zeros(self.units)

    def option(self, name: str, otherwise: object = None) -> Any:
        """Return a setting; otherwise: of an estimator that does not have it."""
        return self.settings.get(name, otherwise)


def _network_plan(contents: _Contents) -> Plan:
    """Return the plan of one network."""
    facts = contents.facts
    inputs, n_features = _input_operations(contents)
    plan = Plan(
        estimator=facts["estimator"],
        precision=str(np.dtype(contents.settings["dtype"])),
        n_features=n_features,
        feature_names=tuple(as_words(facts["feature_names"])),
        inputs=inputs,
        network=_deep(contents) if contents.deep else _layer(contents),
        summary=None if contents.deep else _summary(contents),
        answer=_answer(contents),
        resumption=_training_end(contents, n_features),
        layout=layout_of(facts),
    )
    return _forecast_plan(plan, contents) if facts["estimator"] == "ESNForecaster" else plan


def _training_end(contents: _Contents, n_features: int) -> Resumption | None:
    """Return where one training series ended; only there NaN stands for what is not known."""
    if "end_state" not in contents:
        return None
    fed_back = contents.array("end_fed_back") if "end_fed_back" in contents else None
    known, opening = (np.asarray(contents.tensors[name], np.float64) for name in ("end_known", "opening"))
    if len(known) != n_features:
        raise ValueError("the end of training does not have the features of the model")
    return Resumption(contents.array("end_state"), fed_back, known, opening)


def _forecast_plan(plan: Plan, contents: _Contents) -> Plan:
    """Return the plan of a forecaster; its features are the series, then the exogenous inputs."""
    mean = np.concatenate([plan.answer.mean, contents.array("exogenous_mean")])
    scale = np.concatenate([plan.answer.scale, contents.array("exogenous_scale")])
    if len(mean) != contents.n_in:
        raise ValueError(f"{contents.n_in} inputs; expected {len(mean)}, values and exogenous inputs")
    states, values = contents.array("last_state"), contents.array("last_value")
    ends = tuple(Resumption(h, x, None) for h, x in zip(states, values, strict=True))
    return replace(
        plan,
        inputs=(Standardize(_frozen(mean), _frozen(scale)),),
        series_dims=contents.n_out,
        resumption=ends[0] if len(ends) == 1 else None,
        ends=ends,
        many=as_truth(contents.facts["many"]),
        residuals=contents.array("residuals"),
    )


def _pipeline_plan(tensors: Mapping[str, Array], facts: Facts) -> Plan:
    """Return the plan of a pipeline: the operations of its steps, then its network."""
    plan = plan_from_contents(arrays_of(NETWORK, tensors), facts[NETWORK])
    steps = facts["steps"]
    operations: list[InputOperation] = []
    for number, step in enumerate(steps):
        operations += _step_operations(arrays_of(str(number), tensors), step)
    if not steps:
        return plan
    if plan.series_dims is not None:
        raise ExportError("a pipeline that ends in ESNForecaster cannot be exported or run; take the forecaster alone.")
    if plan.carried is not None:
        raise ExportError(
            "missing='carry' after the steps of a pipeline cannot be exported or run; use missing='error'."
        )
    n_features = as_count(steps[0]["features"])
    inputs = (*operations, *plan.inputs)
    return replace(plan, inputs=inputs, steps=len(operations), n_features=n_features, feature_names=())


def _layer(contents: _Contents) -> Layer:
    """Return a reservoir and its readout as plain arrays."""
    U = contents.array("U")
    statistics = MOMENTS_PER_UNIT + len(contents.tensors["thresholds"]) if contents.summarizes else 1
    of_states = statistics * contents.units  # rows of U; the others are of inputs, and the intercept
    activation = contents.option("reservoir") or contents.option("activation", "tanh")
    if activation not in RUNNABLE_ACTIVATIONS:
        raise ExportError(
            f"activation={activation!r:.40} cannot be exported or run; known are {', '.join(RUNNABLE_ACTIVATIONS)}."
        )
    return Layer(
        W=contents.array("W"),
        W_rec=_sparse(contents),
        W_fb=_frozen(contents.array("W_fb").T) if "W_fb" in contents else None,
        bias=contents.of_units("bias"),
        leak=contents.array("leak"),
        initial_state=contents.of_units("initial_state"),
        backward=np.asarray(contents.tensors.get("backward", np.zeros(contents.units)), bool),
        activation=activation,
        U_states=_frozen(U[:of_states]),
        U_inputs=_frozen(U[of_states:-1]),
        intercept=_frozen(U[-1]),
        softmax=_is_softmax(contents),
    )


def _deep(contents: _Contents) -> Deep:
    """Return the stacks of a deep network and their readout as plain arrays."""
    U, pairs = contents.array("U"), contents.units // 4 if contents.option("bidirectional") else 0
    return Deep(
        stacks=tuple(_stack(contents, k, pairs) for k in range(as_count(contents.facts["stacks"]))),
        U=_frozen(U[:-1]),
        intercept=_frozen(U[-1]),
        softmax=_is_softmax(contents),
        pooled=not as_truth(contents.facts["per_step"]),
    )


def _stack(contents: _Contents, k: int, backward_pairs: int) -> Stack:
    blocks, precision = [], np.dtype(contents.settings["dtype"])
    for layer in range(1, as_count(contents.option("layers")) + 1):
        arrays = {name: contents.array(f"{k}/{layer}/{name}") for name in LAYER_TENSORS}
        # In the precision of the states, as while learning: near 1, a rounded to float32 decides on what 1 - a is.
        alpha, theta = (arrays.pop(name).astype(precision) for name in ("alpha", "theta"))
        a = 1 / (1 + np.exp(-np.clip(alpha, -MAX_LOGIT, MAX_LOGIT)))
        turns = {"re": a * np.cos(theta), "im": a * np.sin(theta), "gain": 1 - a}
        blocks.append(Block(**arrays, **{name: _frozen(value) for name, value in turns.items()}))
    arrays = {name: contents.array(f"{k}/{name}") for name in STACK_TENSORS}
    return Stack(**arrays, blocks=tuple(blocks), backward_pairs=backward_pairs)


def _is_softmax(contents: _Contents) -> bool:
    return contents.option("readout") == "softmax" and "label_slopes" not in contents  # which has a ridge readout


def _sparse(contents: _Contents) -> Sparse:
    """Return W_rec, every index in its place."""
    N = contents.units
    indptr, indices = (np.asarray(contents.tensors[f"W_rec.{part}"]).astype(np.int64) for part in ("indptr", "indices"))
    data = contents.array("W_rec.data")
    rows_fit = indptr[0] == 0 and indptr[-1] == len(data) and (np.diff(indptr) >= 0).all()
    if not rows_fit or (len(indices) and not 0 <= indices.min() <= indices.max() < N):
        raise ValueError("the indices of W_rec are not those of its units")
    return Sparse(indptr, indices, data)


def _summary(contents: _Contents) -> Summary | None:
    """Return how series become one row, or None for one answer per step."""
    if as_truth(contents.facts["per_step"]) == contents.summarizes:
        raise ValueError("a summary is of whole series, not of steps")
    if not contents.summarizes:
        return None
    check_delays(contents.tensors["delays"])
    delays = tuple(contents.tensors["delays"].tolist())
    if contents.n_in % (2 * len(delays)):
        raise ValueError(f"{contents.n_in} inputs are not {2 * len(delays)} times as many")
    washout = as_whole(contents.facts.get("washout", contents.option("washout", 0)))
    return Summary(washout, delays, contents.array("thresholds"))


def _answer(contents: _Contents) -> Answer:
    """Return what outputs stand for."""
    n_out, facts = contents.n_out, contents.facts
    if facts["estimator"] not in CLASSIFIERS:
        mean, scale = contents.array("target_mean"), contents.array("target_scale")
        return Answer("values", n_out, mean, scale, (), one_value=as_truth(facts["one_value"]))
    labels = contents.tensors["classes"] if "classes" in contents else np.array(as_words(facts["class_names"]))
    names = tuple(str(label) for label in labels.tolist())
    if "label_slopes" in contents:
        return Answer("independent", n_out, np.zeros(n_out), contents.array("label_slopes"), names, labels)
    kind = "softmax" if _is_softmax(contents) else "nearest"
    return Answer(kind, n_out, np.zeros(n_out), np.ones(n_out), names, labels)


def _input_operations(contents: _Contents) -> tuple[tuple[InputOperation, ...], int]:
    """Return how frames become inputs, and the number of features of a frame."""
    features = contents.n_in // (2 * len(contents.tensors["delays"]) if contents.summarizes else 1)
    if "input_mean" not in contents:
        return (), features
    mean = contents.array("input_mean")
    n = len(mean)
    scale, fill = contents.array("input_scale"), contents.array("input_fill")
    flagged = np.asarray(contents.tensors["input_flagged"], bool)
    if n + flagged.sum() != features:
        raise ValueError(f"{features} inputs; expected {n} features and {int(flagged.sum())} flags of gaps")
    operations: list[InputOperation] = []
    missing = contents.option("missing", "error")
    if missing not in ("error", "carry", "mean"):
        raise ExportError(f"missing={missing!r:.40} cannot be exported or run.")
    if missing != "error":
        operations.append(FillGaps(fill, missing == "carry", flagged))
    if mean.any() or (scale != 1).any():
        zeros = np.zeros(int(flagged.sum()))
        operations.append(Standardize(_frozen(np.append(mean, zeros)), _frozen(np.append(scale, zeros + 1))))
    return tuple(operations), n


def _step_operations(arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> Sequence[InputOperation]:
    """Return the operations of a fitted transformer; its arrays and settings have the names of its attributes."""
    name, settings, n = facts["transformer"], facts["settings"], as_count(facts["features"])
    if name not in TRANSFORMERS:
        raise ExportError(
            f"{name:.40} cannot be exported or run with a pipeline; known are {', '.join(TRANSFORMERS)}. Apply it to "
            "the frames before they reach the exported model."
        )
    zero, one = np.zeros(n), np.ones(n)

    def fitted(array: str, otherwise: Array | None = None) -> Array:
        found = _frozen(arrays[array]) if otherwise is None or array in arrays else otherwise
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
        scaled = Standardize(_frozen(-fitted("min_") / scale), _frozen(1 / scale))
        return [scaled, *([Clip(low, high)] if settings["clip"] else [])]
    if name == "PCA":
        components, spread = fitted("components_"), np.ones(1)
        if settings["whiten"]:
            spread = np.sqrt(np.maximum(_frozen(arrays["explained_variance_"]), np.finfo(float).eps))
        return [Standardize(fitted("mean_"), one), Project(_frozen(components.T / spread))]
    return [_imputed(arrays["statistics_"], settings, n)]


def _imputed(statistics: Array, settings: Mapping[str, object], n: int) -> FillGaps:
    """Return what a SimpleImputer does."""
    missing, values = settings["missing_values"], np.asarray(statistics, np.float64)
    if not (isinstance(missing, float) and np.isnan(missing)):
        raise ExportError(f"SimpleImputer(missing_values={missing!r:.40}) cannot be exported or run; expected NaN.")
    if np.isnan(values).any() or values.shape != (n,):
        raise ExportError("SimpleImputer with features that were empty when it was fitted cannot be exported or run.")
    return FillGaps(_frozen(values), False, np.zeros(n, bool))
