"""ESNForecaster: a series in, its future out. One step ahead is learned; further ahead the network hears itself."""

from __future__ import annotations

import warnings
from numbers import Integral
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from echolearn.estimators.fitting import Callback, EchoStateNetwork, store
from echolearn.execution.threads import one_blas_thread
from echolearn.readout import conjugate_gradients as iterative
from echolearn.readout import statistics as readout
from echolearn.sequences.batch import pack, scaling
from echolearn.sequences.validation import Given, check_long_enough, open_sequences
from echolearn.states.run import closed_loop, run
from echolearn.validation.values import is_number

Array = NDArray[Any]

FAR = 100.0  # standard deviations from the mean at which a forecast has left its series
PATHS = 2000  # forecasts that run side by side in `score`


class ForecastWarning(UserWarning):
    """The closed loop ran away from the series."""


class ESNForecaster(EchoStateNetwork):
    """An echo state network that continues a series, with all its weights learned.

    Its input at step t is [x_t, e_{t+1}], its target x_{t+1}: what is known of the next step (`exogenous`) may help
    to tell it. Forecasting, every output is the next input, so feeding back goes through W, and W, W_rec and the
    leaks are learned for the one-step error by the exact gradient. Series are standardised inside.

    noise: standard deviations of Gaussian noise on the x_t the network learns from (not on its targets). It moves the
    states as the network's own errors will when it runs alone, which should steady closed loops that run away.
    The other settings are those of ESNRegressor. States are float64: errors of 1e-5 are not rare here.
    """

    # what a series in a closed loop leaves no choice about
    feedback, feedback_scaling, pooling, targets = False, 1.0, "mean", "all"
    gradient, case, momentum = "exact", 2, "fista"
    _classes = None

    def __init__(
        self,
        hidden_units: int = 100,
        *,
        spectral_radius: float = 0.9,
        connections: int = 10,
        input_scaling: float = 0.5,
        bias_scaling: float = 0.1,
        activation: str = "tanh",
        leak: float | tuple[float, float] = (0.3, 1.0),
        learn_leak: bool = True,
        initial_state: Any = None,
        washout: int = 50,
        direct: bool = True,
        noise: float = 0.0,
        ridge: Any = "auto",
        learn: str = "both",
        lookback: int | None = None,
        optimizer: str = "adam",
        step_size: float | None = None,
        epochs: int | None = None,
        batch_size: int | None = 8,
        clip: float | None = None,
        renormalize: bool = False,
        validation_fraction: float = 0.1,
        patience: int | str | None = None,
        dtype: str = "float64",
        random_state: int | None = 0,
        verbose: int = 0,
    ):
        store(self, locals())

    def fit(
        self,
        series: Any,
        y: None = None,
        *,
        exogenous: Any = None,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Self:
        """series: (steps,) or (steps, dims), or a list of such arrays; exogenous: rows that go with the steps of the
        series, (steps, inputs), in the same form. y is not looked at. `callback` and `checkpoint` as in
        ESNClassifier."""
        return self._fit(series, exogenous, None, None, callback, checkpoint)

    def _fit_anew(self, X: Any, y: Any, lengths: Any, *rest: Any) -> bool:
        """X is the series and y the exogenous rows; the network below learns from pairs made of them."""
        given, self._one_value = open_series(X, "series", None)
        series = given.X
        if given.lengths.min() < self.washout + 3:
            raise ValueError(
                f"a series has {given.lengths.min()} steps; washout={self.washout} and learning one step from another "
                f"need at least {self.washout + 3}. Give longer series, or a smaller washout."
            )
        self._many = given.kind != "one"
        self.target_mean_, self.target_scale_ = scaling(np.concatenate(series), "series")
        outside = open_exogenous(y, given.lengths, None, self._many)
        self.exogenous_mean_, self.exogenous_scale_ = scaling(np.concatenate(outside), "exogenous")
        Z, E = self._scaled(series, outside)
        rng = np.random.default_rng(self.random_state).spawn(5)[-1]
        heard = [z + self.noise * rng.standard_normal(z.shape) for z in Z] if self.noise else Z
        pairs = [inputs(z, e) for z, e in zip(heard, E, strict=True)]
        interrupted = super()._fit_anew(pairs, [z[1:] for z in Z], None, *rest)
        self._remember(Z, E)
        return interrupted

    def _look_at(self, X: list[Array]) -> None:
        """Series are standardised, and a constant one has a sound forecast."""

    def _scaled(self, series: list[Array], outside: list[Array]) -> tuple[list[Array], list[Array]]:
        return (
            [(s - self.target_mean_) / self.target_scale_ for s in series],
            [(e - self.exogenous_mean_) / self.exogenous_scale_ for e in outside],
        )

    def _encode(self, entries: list[Any], fitting: bool) -> list[Any]:
        return entries  # standardised already

    @staticmethod
    def _loss(Y: Array, T: Array) -> float:
        return float(((Y - T) ** 2).sum() / T.shape[1])

    def _ridge_path(self, diagonal: float) -> Any:
        """Down to what float64 sums can carry: a noiseless series has small errors to find."""
        return 10.0 ** np.arange(-11, 2) * diagonal if isinstance(self.ridge, str) else self.ridge

    def _fit_readout(self, *parts: Any) -> readout.Sums | iterative.Sketch:
        s = super()._fit_readout(*parts)
        values = s.values if isinstance(s, iterative.Sketch) else readout.spectrum(s)
        self._fitted_share = readout.freedom(values, self.ridge_) / s.n
        return s

    def _remember(self, Z: list[Array], E: list[Array]) -> None:
        """Where forecasts go on from, and the one-step residuals of all series.

        Residuals of a fitted readout are too small; divided by 1 - df / n (df: its degrees of freedom) they have
        about the size that leaving each one out would give.
        """
        H = [self._states(z, e) for z, e in zip(Z, E, strict=True)]
        self.last_state_ = np.stack([h[-1] for h in H])
        self.last_value_ = np.stack([z[-1] for z in Z])
        R = [z[1:] - self._one_step(h, inputs(z, e)) for z, e, h in zip(Z, E, H, strict=True)]
        self.residuals_ = np.concatenate([r[self.washout :] for r in R]) / (1 - self._fitted_share)

    def _states(self, z: Array, e: Array) -> Array:
        """The state after hearing each value but the last: (steps - 1, N)."""
        with one_blas_thread():
            return run(self.reservoir_, pack([inputs(z, e)], np.dtype(self.dtype))).H

    def _one_step(self, H: Array, X: Array) -> Array:
        H_c = readout.stack(H, X.astype(H.dtype), direct=self.direct, intercept=True)
        return np.asarray(H_c @ self._U.astype(H.dtype), dtype=np.float64)

    def predict(self, steps: int, *, warm_up: Any = None, exogenous: Any = None) -> Any:
        """The next `steps` values, each heard as the next input: (steps,) or (steps, dims) as the series came.

        They follow the end of the series of `fit`, or of `warm_up` (a series, or a list). exogenous: a row for each of
        the steps and, before them, for each of the warm-up.
        """
        h, x, E, many = self._begin(steps, warm_up, exogenous)
        return self._answer_paths(self._alone(h, x, E).swapaxes(0, 1), many)

    def forecast_interval(
        self,
        steps: int,
        coverage: float = 0.9,
        *,
        paths: int = 500,
        warm_up: Any = None,
        exogenous: Any = None,
    ) -> tuple[Any, Any]:
        """Lower and upper bounds that each step's value keeps between with probability `coverage`, as `predict` gives
        values.

        `paths` closed loops run side by side; after each step every one adds a one-step residual of the training
        series, drawn anew, to what it hears; the bounds are quantiles over the paths.
        """
        if not is_number(coverage) or not 0 < coverage < 1:
            raise ValueError(f"coverage={coverage!r}; expected a number between 0 and 1, for example 0.9.")
        _at_least("paths", paths, 2)
        h, x, E, many = self._begin(steps, warm_up, exogenous)
        rng = np.random.default_rng(self.random_state).spawn(6)[-1]
        shares = np.array([0.5 - float(coverage) / 2, 0.5 + float(coverage) / 2])
        bounds: list[Array] = []
        for i in range(len(h)):
            shocks = self.residuals_[rng.integers(len(self.residuals_), size=(steps, paths))]
            h_i, x_i, E_i = (np.repeat(v, paths, axis=-2) for v in (h[i : i + 1], x[i : i + 1], E[:, i : i + 1]))
            bounds.append(np.quantile(self._alone(h_i, x_i, E_i, shocks), shares, axis=1))
        lower, upper = np.stack(bounds, axis=1)
        return self._answer_paths(lower, many), self._answer_paths(upper, many)

    def score(self, series: Any, y: None = None, *, exogenous: Any = None, horizon: int = 1) -> float:
        """Minus the NRMSE of forecasts `horizon` steps ahead, in closed loop, from every step after the washout:
        sqrt(Σ (forecast - x)² / Σ (x - mean)²), dims weighted by their scale in training. 0 is perfect, -1 no better
        than the mean."""
        check_is_fitted(self)
        _at_least("horizon", horizon, 1)
        given = self._series(series, "series")
        outside = self._exogenous(exogenous, given.lengths, given.kind != "one")
        least = self.washout + horizon + 2
        if given.lengths.min() < least:
            raise ValueError(
                f"a series has {given.lengths.min()} steps; washout={self.washout} and horizon={horizon} need at least "
                f"{least}."
            )
        errors, truth = [], []
        for z, e in zip(*self._scaled(given.X, outside), strict=True):
            H = self._states(z, e)
            first = np.arange(self.washout + 1, len(z) - horizon)  # the last value heard
            for t in np.array_split(first, np.ceil(len(first) / PATHS)):
                E = e[t + 1 + np.arange(horizon)[:, None]]
                errors.append(self._alone(H[t - 1], z[t], E)[-1] - z[t + horizon])
                truth.append(z[t + horizon])
        T = np.concatenate(truth)
        spread = float(((T - T.mean(axis=0)) ** 2).sum())
        if spread == 0:
            raise ValueError("the series is constant after the washout: there is no spread to measure errors by.")
        with np.errstate(over="ignore"):
            return -float(np.sqrt((np.concatenate(errors) ** 2).sum() / spread))

    def _begin(self, steps: int, warm_up: Any, exogenous: Any) -> tuple[Array, Array, Array, bool]:
        """State before and value at the last known step, (B, N) and (B, dims); E (steps, B, inputs) to come; and
        whether the caller gave a list."""
        check_is_fitted(self)
        _at_least("steps", steps, 1)
        if warm_up is None:
            many, known = self._many, np.zeros(len(self.last_value_), int)
            h, x = self.last_state_, self.last_value_
            _, E = self._scaled([], self._exogenous(exogenous, known + steps, many))
        else:
            given = self._series(warm_up, "warm_up")
            check_long_enough(given, max(1, self.washout))
            many, known = given.kind != "one", given.lengths
            Z, E = self._scaled(given.X, self._exogenous(exogenous, known + steps, many))
            h = np.stack([self._states(z, e[: len(z)])[-1] for z, e in zip(Z, E, strict=True)])
            x = np.stack([z[-1] for z in Z])
        return h, x, np.stack([e[n:] for e, n in zip(E, known, strict=True)], axis=1), many

    def _alone(self, h: Array, x: Array, E: Array, shocks: Array | None = None) -> Array:
        """Closed loops from here on, (steps, B, dims); one that leaves its series is told of."""
        with one_blas_thread():
            Y = closed_loop(self.reservoir_, self._U, self.direct, h, x, E, shocks)
        with np.errstate(invalid="ignore"):
            far = ~(np.abs(Y) < FAR).all(axis=(1, 2))
        if far.any():
            warnings.warn(
                f"the forecast runs away: after {int(far.argmax()) + 1} steps it is {FAR:g} standard deviations from "
                "the mean of its series. Fit with some noise (for example noise=1e-3), a larger ridge, or more data.",
                ForecastWarning,
                stacklevel=3,
            )
        return Y

    def _series(self, series: Any, name: str) -> Given:
        given, _ = open_series(series, name, len(self.target_mean_))
        return given

    def _exogenous(self, exogenous: Any, lengths: Array, many: bool) -> list[Array]:
        return open_exogenous(exogenous, lengths, len(self.exogenous_mean_), many)

    def _answer_paths(self, Y: Array, many: bool) -> Any:
        """(B, steps, dims), standardised, as the caller knows the series."""
        values = Y * self.target_scale_ + self.target_mean_
        if self._one_value:
            values = values[..., 0]
        return list(values) if many else values[0]


def inputs(z: Array, e: Array) -> Array:
    """[x_t, e_{t+1}] for every step but the last: (steps - 1, dims + inputs)."""
    return np.hstack([z[:-1], e[1:]])


def open_series(series: Any, name: str, dims: int | None) -> tuple[Given, bool]:
    """One series (steps,) or (steps, dims) or a list of such, as float64; and whether values stand alone."""
    try:
        many = isinstance(series, (list, tuple)) and len(series) > 0 and any(np.ndim(s) > 0 for s in series)
        parts = list(series) if many else [series]
        alone = all(np.ndim(p) == 1 for p in parts)
        columns = [np.asarray(p)[:, None] if np.ndim(p) == 1 else p for p in parts]
        given = open_sequences(columns if many else columns[0], None, dims, "this forecaster")
    except (TypeError, ValueError) as problem:
        kind = TypeError if isinstance(problem, TypeError) else ValueError
        raise kind(f"{name}: {problem}") from problem
    return Given([x.astype(np.float64) for x in given.X], given.kind), alone


def open_exogenous(exogenous: Any, lengths: Array, width: int | None, many: bool) -> list[Array]:
    """Exogenous rows, one array (length, inputs) a series; without any, arrays with no columns."""
    if exogenous is None:
        if width:
            raise ValueError(f"this forecaster was fitted with {width} exogenous inputs: give exogenous= for them too.")
        return [np.empty((n, 0)) for n in lengths]
    if width == 0:
        raise ValueError("exogenous is given, but this forecaster was fitted without. Leave it out, or fit with it.")
    given, _ = open_series(exogenous, "exogenous", width)
    if (given.kind != "one") != many or len(given.X) != len(lengths):
        found = "one array" if given.kind == "one" else f"a list of {len(given.X)}"
        wanted = f"a list of {len(lengths)}" if many else "one array"
        raise ValueError(f"exogenous is {found}; expected {wanted}, as the series were when fitting.")
    for i, (e, n) in enumerate(zip(given.X, lengths, strict=True)):
        if len(e) != n:
            raise ValueError(f"exogenous of series {i} has {len(e)} rows; expected {n}, one a step.")
    return given.X


def _at_least(name: str, value: Any, least: int) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r}; expected a whole number >= {least}.")
