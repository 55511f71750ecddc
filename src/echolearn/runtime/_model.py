"""`load` and `Model`: a saved model that answers, with NumPy alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from os import PathLike

import numpy as np

from echolearn.exceptions import ExportError, ModelFileError
from echolearn.modelfile.layout import MODEL, RECOGNIZER
from echolearn.modelfile.reader import file_kind, read_tensors
from echolearn.modelfile.schema import check_contents
from echolearn.runtime._layers import Floats, Running, RunningLayer, running_network
from echolearn.runtime._loader import plan_from_contents
from echolearn.runtime._opening import (
    OpenedSequences,
    check_can_warm_up,
    decode,
    encode,
    is_cold,
    labels_or_values,
    open_sequences,
    running_from,
    training_end,
)
from echolearn.runtime._plan import Plan, Standardize
from echolearn.runtime._streams import Stream, Streams
from echolearn.validation import Answers, Array, check_columns, check_integer, check_path


def load(path: str | PathLike[str]) -> Model:
    """Read a saved model, to be run with NumPy alone.

    Parameters
    ----------
    path : str or path-like
        A file that the `save` method of an estimator, or `echolearn.save`, wrote.

    Returns
    -------
    Model
        The model.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModelFileError
        If the file is damaged, or is not a model file that this version can read. No code in a file is executed.
    ExportError
        If the model, or an option of it, needs the whole library; the message names the option.

    See Also
    --------
    echolearn.load : Read the file as an estimator of the whole library.
    echolearn.export.export_model : Write the model as C, ONNX or a page for the browser.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, echolearn, echolearn.runtime
    >>> X = np.random.default_rng(0).normal(size=(100, 1))
    >>> esn = echolearn.ESNRegressor(10, learn="none").fit(X, np.roll(X[:, 0], 1))
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> esn.save(path)
    >>> model = echolearn.runtime.load(path)
    >>> model
    Model(ESNRegressor: 10 units, 1 feature, 1 value per step, float32)
    >>> bool(np.allclose(model.predict(X), esn.predict(X), atol=1e-5))
    True
    """
    place = check_path("path", path)
    if file_kind(place) == RECOGNIZER:
        raise ModelFileError(
            f"{place} is a recogniser of speech, which needs the whole library: load it with "
            "echolearn.speech.recognition.load_recognizer."
        )
    tensors, facts = read_tensors(place, MODEL, check_contents)
    try:
        return Model(plan_from_contents(tensors, facts))
    except ExportError as problem:
        raise ExportError(f"{place}: {problem}") from problem
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as problem:
        raise ModelFileError(f"{place} is not a model this version understands: {problem!r:.200}") from problem


class Model:
    """A saved model that predicts with NumPy alone; its predictions agree with those of the estimator to rounding.

    `load` makes it from a file.

    Parameters
    ----------
    plan : Plan
        The operations and arrays of the model.

    Attributes
    ----------
    plan : Plan
        The operations and arrays of the model.
    n_features_in_ : int
        The number of features per frame.
    classes_ : array
        The classes of a classifier; other models have none.

    See Also
    --------
    load : Read a model from its file; it has an example.
    """

    def __init__(self, plan: Plan):
        self.plan = plan
        self._network = running_network(plan)

    @property
    def n_features_in_(self) -> int:
        """The number of features per frame; of a forecaster, the dimensions of the series and the exogenous inputs."""
        return self.plan.n_features

    @property
    def classes_(self) -> Array:
        """The classes of a classifier, an array of shape (n_classes,)."""
        if self.plan.answer.labels is None:
            raise AttributeError(f"{self.plan.estimator} has no classes: it answers with values")
        return self.plan.answer.labels

    def __repr__(self) -> str:
        plan, answer = self.plan, self.plan.answer
        what = "class" if answer.kind in ("softmax", "nearest") else "label" if answer.names else "value"
        plural = "" if answer.n_out == 1 else "es" if what == "class" else "s"
        each = "step" if plan.per_step else "sequence"
        features = f"{plan.n_features} feature{'s' * (plan.n_features != 1)}"
        outputs = f"{answer.n_out} {what}{plural} per {each}"
        return f"Model({plan.estimator}: {plan.units} units, {features}, {outputs}, {plan.precision})"

    def predict(self, X: object, *, warm_up: object = None) -> Answers:
        """Return labels or values, as the `predict` method of the estimator does.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths.
        warm_up : array, list of arrays or "cold", default=None
            Frames before X, in the form of X, from whose last state the prediction continues. None: a network that was
            fitted to one series continues from its end, unless X is that series itself. "cold": start in the initial
            state.

        Returns
        -------
        array or list of arrays
            One label or value (or row of values) per step in the form of X, or one per sequence.
        """
        return self._answer(X, warm_up, labels_or_values)

    def predict_proba(self, X: object, *, warm_up: object = None) -> Answers:
        """Return the probabilities of the classes, or of each label if a frame may have several.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths.
        warm_up : array, list of arrays or "cold", default=None
            As in `predict`.

        Returns
        -------
        array or list of arrays
            One row of n_classes probabilities per step in the form of X, or one per sequence.
        """
        if self.plan.answer.kind == "values":
            raise AttributeError(f"{self.plan.estimator} has no probabilities: it answers with values. Use predict.")
        return self._answer(X, warm_up, decode)

    def _answer(self, X: object, warm_up: object, decoding: Callable[..., Array]) -> Answers:
        """Return decoded outputs in the form of X."""
        if self.plan.series_dims is not None:
            raise TypeError(f"{self.plan.estimator} continues series: use forecast(horizon), or forecast(horizon, X).")
        sequences = open_sequences(X, self.plan)
        answers = [decoding(self.plan.answer, Y) for Y in self._outputs(sequences, warm_up)]
        if not self.plan.per_step:
            return np.concatenate(answers)
        return sequences.in_form_of_input(answers)

    def _outputs(self, sequences: OpenedSequences, warm_up: object) -> list[Array]:
        """Return the outputs for each sequence."""
        plan, summary = self.plan, self.plan.summary
        if summary is not None and any(len(x) <= summary.washout for x in sequences.X):
            raise ValueError(
                f"washout={summary.washout}, but a sequence of X has no more steps. Drop sequences so short."
            )
        before: list[Array | None] = [None] * len(sequences.X)
        if warm_up is not None and not is_cold(warm_up):
            check_can_warm_up(plan)
            opened = open_sequences(warm_up, plan, "warm_up")
            if len(opened.X) != len(sequences.X):
                raise ValueError(
                    f"warm_up has {len(opened.X)} sequences, but X has {len(sequences.X)}; expected one each."
                )
            before = list(opened.X)
        follows = warm_up is None and sequences.kind == "one"
        with np.errstate(over="ignore", invalid="ignore"):
            outputs = [self._outputs_of(x, b, follows) for x, b in zip(sequences.X, before, strict=True)]
        if not all(np.isfinite(Y).all() for Y in outputs):
            raise ValueError(
                "outputs are not finite: X holds numbers too large for this model, or units without bounds (relu, "
                "identity) have diverged. Scale X, or fit with dtype='float64' or a smaller spectral_radius."
            )
        return outputs

    def _outputs_of(self, x: Array, before: Array | None, follows: bool) -> Array:
        """Return the outputs for one sequence. before: its warm-up; follows: it may follow the training series."""
        plan, begin, known = self.plan, self._network.start(), None
        end = training_end(plan, x) if follows else None
        if end is not None:
            begin, known = running_from(self._network, end), end.known
        frames = x if before is None else np.concatenate([before, x])
        inputs = encode(plan.inputs, frames, known).astype(self._network.dtype)
        Y, _ = self._network.outputs_of(inputs, begin)
        return Y if before is None else Y[len(before) :]

    def forecast(self, horizon: int, X: object = None, *, exogenous: object = None) -> Answers:
        """Return the values that follow a series; each forecast value is the input of the next step.

        Parameters
        ----------
        horizon : int
            The number of values to forecast.
        X : array of shape (n_steps,) or (n_steps, n_dims), or list of such arrays, default=None
            The series whose continuation is forecast. None: those that the forecaster was fitted to.
        exogenous : array of shape (n_steps, n_inputs), or list of such arrays, default=None
            The exogenous inputs, for a model that was fitted with them: one row for each step of X, followed by one for
            each step of the forecast.

        Returns
        -------
        array of shape (horizon,) or (horizon, n_dims), or list of such arrays
            The forecast, in the form of the series.
        """
        return Forecasts(self.plan).forecast(horizon, X, exogenous)

    def stream(self, *, warm_up: object = None) -> Stream:
        """Return the model as a stream that takes one frame at a time.

        Parameters
        ----------
        warm_up : array of shape (n_steps, n_features) or "cold", default=None
            Frames before those of the stream. None: the stream continues from the end of the training series, if the
            model was fitted to a single one. Otherwise, and with "cold", it starts in the initial state.

        Returns
        -------
        Stream
            A stream at its start.
        """
        if warm_up is None or is_cold(warm_up):
            end = self.plan.resumption if warm_up is None and self.plan.series_dims is None else None
            return Stream(self.plan, self._network, end)
        check_can_warm_up(self.plan)
        (frames,) = open_sequences(warm_up, self.plan, "warm_up").X
        stream = Stream(self.plan, self._network)
        for frame in frames:
            stream.step(frame)
        return stream

    def streams(self, n: int) -> Streams:
        """Return several streams of the model that advance together: one frame of each per call.

        Parameters
        ----------
        n : int
            The number of devices. Each has a state of its own.

        Returns
        -------
        Streams
            Streams in the initial state.
        """
        return Streams(self.plan, self._network, check_integer("n", n, 1))


# ---------------- Closed loops


MAX_FORECAST_DEVIATIONS = 100.0  # from the mean, at which a forecast has left its series


class Forecasts:
    """The continuation of series by the network of a forecaster."""

    def __init__(self, plan: Plan):
        if plan.series_dims is None:
            raise TypeError(f"{plan.estimator} does not continue series; use predict.")
        self._plan, self._dims = plan, plan.series_dims
        self._inputs = plan.n_features - plan.series_dims
        (scaling,) = plan.inputs
        assert isinstance(scaling, Standardize)
        self._mean, self._scale = scaling.mean, scaling.scale
        self._warming = RunningLayer(plan.layer, Floats(plan.precision))
        self._looping = RunningLayer(plan.layer, Floats("float64"))  # in which the library runs closed loops

    def forecast(self, steps: int, X: object, exogenous: object) -> Answers:
        """Return the next values of each series, in the form of the series."""
        check_integer("horizon", steps, 1)
        if X is None:
            many, before = self._plan.many, [np.empty((0, self._dims))] * len(self._plan.ends)
        else:
            before, many = _series(X, self._dims, self._plan.feature_names[: self._dims], "X")
            if min(map(len, before)) < 2:
                raise ValueError("a series of X has a single step; expected at least two, from which to continue.")
        rows = self._exogenous(exogenous, [len(x) + steps for x in before], many)
        begins = [self._begin(i, x, e) for i, (x, e) in enumerate(zip(before, rows, strict=True))]
        E = np.stack([e[len(x) :] for x, e in zip(before, rows, strict=True)], axis=1)
        Y = self._closed_loop(np.stack([h for h, _ in begins]), np.stack([x for _, x in begins]), E)
        values = decode(self._plan.answer, Y.swapaxes(0, 1))
        values = values[..., 0] if self._plan.answer.one_value else values
        return list(values) if many else np.asarray(values[0])

    def _begin(self, number: int, x: Array, e: Array) -> tuple[Array, Array]:
        """Return the state before, and the standardised value at, the last known step of a series."""
        if len(x) == 0:
            end = self._plan.ends[number]
            assert end.fed_back is not None
            return end.state, end.fed_back
        z = (x - self._mean[: self._dims]) / self._scale[: self._dims]
        inputs = np.hstack([z[:-1], e[1 : len(x)]])  # beside a value, what is known of the step after it
        units = self._warming.forward
        return units.run(inputs.astype(self._warming.dtype), units.initial_state)[-1].astype(np.float64), z[-1]

    def _closed_loop(self, h: Array, x: Array, E: Array) -> Array:
        """Return B paths (steps, B, dims) from states h (B, N) and values x (B, dims) on, with exogenous inputs E."""
        layer, out = self._looping, np.empty((len(E), *x.shape))
        now = Running(h, x)
        with np.errstate(over="ignore", invalid="ignore"):
            for t, e in enumerate(E):
                out[t], now = layer.step(np.concatenate([x, e], axis=1), now)
                x = out[t]
            far = ~(np.abs(out) < MAX_FORECAST_DEVIATIONS).all(axis=(1, 2))
        if far.any():
            warnings.warn(
                f"the forecast diverges: after {int(far.argmax()) + 1} steps it is {MAX_FORECAST_DEVIATIONS:g} "
                "standard deviations from the mean of its series. Fit with some noise (for example input_noise=1e-3), "
                "a larger ridge, or more data.",
                stacklevel=4,
            )
        return out

    def _exogenous(self, exogenous: object, lengths: list[int], many: bool) -> list[Array]:
        """Return standardised exogenous inputs, one array (steps, inputs) per series."""
        if exogenous is None:
            if self._inputs:
                raise ValueError(f"this forecaster was fitted with {self._inputs} exogenous inputs: give exogenous=.")
            return [np.empty((n, 0)) for n in lengths]
        if not self._inputs:
            raise ValueError("exogenous is given, but this forecaster was fitted without. Leave it out.")
        rows, found_many = _series(exogenous, self._inputs, self._plan.feature_names[self._dims :], "exogenous")
        if found_many != many or [len(e) for e in rows] != lengths:
            wanted = f"a list of {len(lengths)} arrays" if many else "one array"
            raise ValueError(
                f"exogenous has {[len(e) for e in rows]!r:.60} rows; expected {wanted} of {lengths!r:.60} rows, one "
                "per step that is known and one per step to come."
            )
        return [(e - self._mean[self._dims :]) / self._scale[self._dims :] for e in rows]


def _series(container: object, width: int, columns: Sequence[str], name: str) -> tuple[list[Array], bool]:
    """Return series as a list of finite arrays (steps, width), and whether they came as a list."""
    listed = list(container) if isinstance(container, (list, tuple)) else []
    many = any(np.ndim(s) > 0 for s in listed)
    for table in listed if many else [container]:
        if hasattr(table, "columns"):
            check_columns(table, columns, name)
    try:
        series = [np.asarray(s, np.float64) for s in (listed if many else [container])]
    except (TypeError, ValueError):
        raise ValueError(f"{name} does not hold numbers; expected a series, or a list of series.") from None
    series = [s[:, None] if s.ndim == 1 else s for s in series]
    for s in series:
        if s.ndim != 2 or s.shape[1] != width or len(s) == 0 or not np.isfinite(s).all():
            raise ValueError(f"{name} has shape {s.shape}; expected (steps, {width}) with finite numbers.")
    return series, many
