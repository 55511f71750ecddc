"""ESNForecaster: continues a series, in a closed loop or by direct forecasts of every horizon."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from echolearn.estimators._base import FittedEstimator, SequenceEstimator, set_fitted, store_parameters
from echolearn.estimators.direct_forecasts import (
    MIN_KNOWN_VALUES,
    SeriesSettings,
    direct_state,
    drawing,
    fit_direct_network,
    followed,
    one_value_ahead,
)
from echolearn.estimators.loop_fitting import fit_through_loop
from echolearn.exceptions import ForecastWarning
from echolearn.execution.blas import one_blas_thread
from echolearn.fitting.advice.scores import warn_of_poor_values
from echolearn.fitting.codecs import ValueCodec, squared_error
from echolearn.fitting.inputs import InputCodec
from echolearn.fitting.model import ForecastState
from echolearn.fitting.settings import NetworkSettings
from echolearn.fitting.stages import Callback, FitRequest, fit_network
from echolearn.forecasting.dynamics import MIN_PROBE_STEPS, MIN_PROBE_UNITS, follows_dynamics
from echolearn.forecasting.model import DirectModel, FollowedSeries
from echolearn.forecasting.seasons import check_time_index, seasons_of_index
from echolearn.forecasting.series import (
    check_runs_down,
    check_steps_ahead,
    inputs_of,
    open_exogenous,
    open_series,
    standardised,
    time_index,
)
from echolearn.readout.network import Network
from echolearn.readout.observation import stack
from echolearn.sequences.batch import pack
from echolearn.sequences.checks import mean_and_scale
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.opening import Sequences, check_has_time, check_long_enough
from echolearn.states.closed_loop import run_closed_loop
from echolearn.states.run import run
from echolearn.training.history import History
from echolearn.validation import (
    Answers,
    Array,
    SequencesLike,
    check_columns,
    check_integer,
    column_names,
    is_number,
    user_stacklevel,
)

FAR = 100.0  # standard deviations from the mean at which a forecast has left its series
PATHS = 2000  # forecasts that run side by side in `score`
# Down to what float64 statistics can carry: a noiseless series has small errors to find.
RIDGES = tuple(10.0 ** np.arange(-11, 2))


class ESNForecaster(SequenceEstimator):
    """An echo state network that continues a series: in a closed loop, or by direct forecasts of every horizon.

    **Closed loop**, for series that follow dynamics of their own (chaos, waves, driven systems). The input at step t is
    [x_t, e_{t+1}], the target x_{t+1}: what is known of the next step (`exogenous`) may help to predict it. In a
    forecast every output is the next input, so feedback goes through W, and W, W_rec and the leaks are learned for the
    one-step error by the exact gradient. Series are standardised inside.

    **Direct**, for what people measure and count: short, noisy, with trend and season, with gaps. Level, trend and up
    to two seasons are followed by exponential smoothing, several variants (with and without trend, damping, logarithm,
    autoregression) weighted by their errors from every origin of the training series. The inputs of the reservoir are
    the deviations of values from these forecasts; its weights are not learned. Its readout corrects the forecasts, one
    output per horizon, as far as a backtest shows that this helps. Intervals come from the errors of the past origins.

    By default (`method="auto"`) a backtest on the training series decides: `method_`.

    Parameters
    ----------
    hidden_units : int, default=100
        The number of hidden units N. More units fit more, cost more, and need more data.
    spectral_radius : float or None, default=0.9
        The spectral radius lambda to which W_rec is scaled at the start (eq. 3). Larger values remember longer; above 1
        (tanh) or 4 (sigmoid) a network without leak never forgets. None leaves a `topology` matrix unscaled.
    connections : int, default=10
        The number of units from which each unit receives connections. The cost of the recurrence grows with it; more
        rarely help.
    input_scaling : float or array of shape (n_features,), default=0.5
        W is drawn uniformly from [-input_scaling, input_scaling], for all features or for each. Raise it if the task is
        non-linear in the inputs, lower it if it needs long memory.
    bias_scaling : float, default=0.1
        The bias of the units is drawn uniformly from [-bias_scaling, bias_scaling]. 0: no bias.
    activation : {"tanh", "sigmoid", "relu", "identity"}, default="tanh"
        The activation function f of the units.
    leak : float or (float, float), default=(0.3, 1.0)
        The leak a of the units, in (0, 1]: 1 for no leak, small for slow units. A pair spreads the leaks evenly in
        logarithm between its ends.
    learn_leak : bool, default=True
        Whether the leak of each unit is learned too.
    initial_state : array of shape (hidden_units,), default=None
        The state before the first step of every sequence. None: zero.
    washout : int, default=50
        Steps at the start of each sequence that are not learned from and not scored on while fitting. Raise it if the
        initial transient disturbs the fit.
    direct : bool, default=True
        Whether the inputs are regressors of the readout beside the states (eq. 7).
    noise : float, default=0.0
        Standard deviation of Gaussian noise on the inputs x_t that the network learns from (not on its targets), in
        units of the series' standard deviation. It moves the states as the network's own errors will in a closed loop,
        which should steady forecasts that run away.
    method : {"auto", "closed_loop", "direct"}, default="auto"
        How series are forecast. "auto": the closed loop, where a readout of the first three quarters predicts the rest
        one step ahead to a fifth of the changes from step to step and its closed loop is better than smoothing;
        otherwise direct.
    horizon : int, default=None
        How many steps ahead direct forecasts have readouts for; later steps continue level, trend and season. None: two
        seasons, 8 to 48, at most a third of the series.
    season : int, "auto" or None, default="auto"
        The steps of one season. "auto": as the time index of a pandas series announces (12 for months, 4 for quarters,
        24 and 168 for hours, ...) or, without one, as the autocorrelation shows, if it is there at all. None: none.
    trend : bool or "auto", default="auto"
        Whether direct forecasts have a trend. "auto": members with and without are weighted by their errors.
    log : bool or "auto", default="auto"
        Whether direct forecasts are made in logarithms, so that trend and season multiply. "auto": weighted likewise,
        where all values are positive.
    topology : str or matrix of shape (hidden_units, hidden_units), default="random"
        The pattern of connections, as for the other estimators.
    plasticity : float, default=None
        The spread of the units' outputs that intrinsic plasticity aims at before learning. None: no plasticity.
    ridge : float, list of float, or "auto", default="auto"
        The penalty mu of the ridge readout of the closed loop (eq. 9): a number, numbers to choose from, or "auto" for
        a path in units of the mean squared state. The choice is made on held-out data, or by generalised
        cross-validation without any.
    solver : {"gram", "qr"}, default="gram"
        How readout and weights are found. "qr" is for series without noise, such as those of equations: orthogonal
        factors of the states in place of their Gram matrix, ridges down to 1e-22 (`ridge` is then in units of the mean
        squared state), L-BFGS in place of `optimizer`, and all choices by how long closed loops forecast the held-out
        end of the series. It needs the states of all steps at once. Take a `validation_fraction` of 0.2 or more.
    loop_steps : int, default=1
        With solver="qr": how many closed-loop steps the weights are learned through, after the one-step error. More
        than 1 may help where forecasts run away from the series; a fit then takes about twice as long.
    learn : {"both", "input", "none"}, default="both"
        Which weights are learned: W, W_rec, W_fb and the bias ("both"), all but W_rec ("input"), or only the readout
        ("none": a classical echo state network).
    lookback : int, default=None
        How many steps the gradient follows back in time (m in the paper). None: the whole sequence.
    optimizer : {"adam", "fista"}, default="adam"
        How gradients become updates: Adam, or the paper's FISTA-like momentum (eq. 36, 37).
    step_size : float, default=None
        The step size alpha at the start. None: 0.01 for Adam, less above 300 units; 0.07 for FISTA.
    epochs : int, default=None
        Passes over the training data while the weights are learned. None: enough for 400 updates, at least 8.
    batch_size : int, default=8
        Sequences per mini-batch. None: all of them, one update per epoch.
    clip : float, default=None
        The norm to which each gradient is shortened if it is longer. None: no clipping.
    renormalize : bool, default=False
        Whether W_rec is scaled back to `spectral_radius` after every epoch, as in the paper.
    validation_fraction : float, default=0.1
        The share of the sequences that is held out to decide on stopping, ridge and penalty; with fewer than five
        sequences, the last steps of each. The final readout is fitted to them too. 0: nothing is held out.
    patience : int, "auto" or None, default=None
        Epochs without a better validation error after which learning stops; "auto": a quarter of the epochs, at least
        5. None: no early stopping.
    dtype : {"float32", "float64"}, default="float64"
        The precision of the states. Statistics and gradients are summed up in float64 in any case.
    random_state : int, numpy.random.Generator or None, default=0
        The seed of the weights, the held-out sequences and the order of mini-batches. The same seed and data give the
        same results, bit by bit, with any number of threads. None: another network in every fit.
    verbose : int, default=0
        1 shows a bar over the epochs: live in a notebook, with the curve of the errors, and on a terminal; in a log, a
        line every few seconds. 2 prints one line per epoch.

    Attributes
    ----------
    method_ : {"closed_loop", "direct"}
        How the series are forecast.
    season_ : tuple of int, or None
        The seasons of direct forecasts, of the first series; 1 for none. None for the closed loop.
    horizon_ : int or None
        How many steps ahead direct forecasts have readouts for.
    target_mean_ : array of shape (n_dims,)
        The mean of each dimension of the series.
    target_scale_ : array of shape (n_dims,)
        The standard deviation of each dimension of the series.
    residuals_ : array of shape (n_residuals, n_dims)
        The one-step residuals of the training series, in standard deviations.
    forecast_ : ForecastState
        Where forecasts continue from, the scale of exogenous inputs, and the one-step residuals.
    network_ : Network
        The fitted network.
    reservoir_ : Reservoir
        All weights of the state equation.
    input_weights_ : array of shape (n_dims + n_inputs, n_units)
        W.
    recurrent_weights_ : sparse array of shape (n_units, n_units)
        W_rec.
    readout_weights_ : array of shape (n_units + n_dims + n_inputs, n_dims)
        U, without the intercept, for standardised series.
    intercept_ : array of shape (n_dims,)
        The intercept of each output.
    ridge_ : float
        The ridge of the readout, given or chosen.
    history_ : History
        One row per epoch of learning.
    n_features_in_ : int
        The number of inputs: dimensions of the series, and exogenous inputs.

    Examples
    --------
    >>> from echolearn import ESNForecaster
    >>> from echolearn.datasets import mackey_glass
    >>> series = mackey_glass(600)
    >>> esn = ESNForecaster(50, learn="none").fit(series[:500])
    >>> esn.predict(10).shape
    (10, 1)
    """

    forecast_: ForecastState
    codec_: ValueCodec

    def __init__(
        self,
        hidden_units: int = 100,
        *,
        spectral_radius: float | None = 0.9,
        connections: int = 10,
        input_scaling: ArrayLike = 0.5,
        bias_scaling: float = 0.1,
        activation: str = "tanh",
        leak: float | tuple[float, float] = (0.3, 1.0),
        learn_leak: bool = True,
        initial_state: ArrayLike | None = None,
        washout: int = 50,
        direct: bool = True,
        noise: float = 0.0,
        method: str = "auto",
        horizon: int | None = None,
        season: str | int | None = "auto",
        trend: str | bool = "auto",
        log: str | bool = "auto",
        topology: str | ArrayLike = "random",
        plasticity: float | None = None,
        ridge: str | ArrayLike = "auto",
        solver: str = "gram",
        loop_steps: int = 1,
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
        random_state: int | np.random.Generator | None = 0,
        verbose: int = 0,
    ):
        store_parameters(self, locals())

    def fit(
        self,
        series: SequencesLike,
        y: None = None,
        *,
        exogenous: SequencesLike = None,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Self:
        """Learn to predict each value of a series from those before it.

        Parameters
        ----------
        series : array of shape (n_steps,) or (n_steps, n_dims), pandas Series or DataFrame, or list of such
            One series, or several that are learned by one model, each in its own scale and of its own length. NaN
            stands for a missing value (direct forecasts only).
        y : None
            Ignored; here for scikit-learn.
        exogenous : array of shape (n_steps, n_inputs), or list of such arrays, default=None
            What is known of each step in advance, in the form of the series.
        callback : callable, default=None
            Called after each epoch with its row of `history_`; learning stops if it returns True.
        checkpoint : str or path-like, default=None
            A folder where the state of learning is kept; the same fit, started again, resumes from there and ends with
            the same bits.

        Returns
        -------
        ESNForecaster
            The estimator itself. After Ctrl-C it holds the best weights so far, and KeyboardInterrupt is raised.
        """
        check_time_index(time_index(series))
        params = self.get_params(deep=False)
        settings = NetworkSettings.of(params, ridge_path=RIDGES, time_folds=False)
        given, one_value = open_series(series, "series", None, gaps=self.method != "closed_loop")
        check_runs_down(given)
        settings = settings.resolved(given.lengths, True)
        many = given.kind != "one"
        mean, scale = mean_and_scale(_known(given.X), "series")
        codec = ValueCodec(mean, scale, one_value, settings.dtype)
        rows = open_exogenous(exogenous, given.lengths, None, many)
        exogenous_scale = mean_and_scale(np.concatenate(rows), "exogenous")
        Z, E = standardised(given.X, codec.mean, codec.scale), standardised(rows, *exogenous_scale)
        opened = _Opened(given.X, Z, E, codec, exogenous_scale, many)
        if self._is_direct(opened, settings):
            self._fit_direct(opened, settings, seasons_of_index(time_index(series)))
        else:
            self._fit_closed_loop(opened, settings, callback, checkpoint)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        names = [*(_columns(series) or []), *(_columns(exogenous) or [])]
        if len(names) == self.n_features_in_ > 1:
            self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def _is_direct(self, opened: _Opened, settings: NetworkSettings) -> bool:
        """Return whether the forecasts are direct ones."""
        if self.method != "auto":
            return bool(self.method == "direct")
        if self.solver == "qr":  # for the closed loops of noiseless series
            return False
        n_in = opened.Z[0].shape[1] + opened.E[0].shape[1]
        washout = settings.washout_steps
        if opened.least < washout + MIN_PROBE_STEPS:
            return True
        if isinstance(settings.topology, str):  # whether there are dynamics does not depend on the size of the network
            units = max(MIN_PROBE_UNITS, settings.hidden_units)
            leak = (0.3, 1.0) if isinstance(settings.leak, np.ndarray) else settings.leak
            settings = replace(settings, hidden_units=units, leak=leak, initial_state=None)
        reservoir = drawing(settings)(n_in)
        return not follows_dynamics(reservoir, opened.Z, opened.E, washout, settings.dtype)

    def _fit_direct(self, opened: _Opened, settings: NetworkSettings, seasons: tuple[int, int] | None) -> Self:
        """Fit the direct method."""
        of_series = SeriesSettings(
            horizon=self.horizon, season=self.season, trend=self.trend, log=self.log, seasons=seasons
        )
        model, network = fit_direct_network(opened.Y, opened.E, settings, of_series)
        self.forecast_ = direct_state(model, opened.Y, opened.exogenous_scale, opened.many, opened.codec)
        n_inputs = len(opened.codec.mean) + len(opened.exogenous_scale[0])
        set_fitted(self, network, opened.codec, History([]), InputCodec.identity(n_inputs))
        self.layout_ = "time_first"
        return self

    def _fit_closed_loop(
        self,
        opened: _Opened,
        settings: NetworkSettings,
        callback: Callback | None,
        checkpoint: str | PathLike[str] | None,
    ) -> Self:
        """Fit the network of the closed loop."""
        if opened.least < settings.washout_steps + 3:
            raise ValueError(
                f"a series has {opened.least} steps; washout={settings.washout} and learning one step from "
                f"another need at least {settings.washout_steps + 3}. Give longer series, or a smaller washout."
            )
        Z, E = opened.Z, opened.E
        request = FitRequest(
            owner=type(self).__name__,
            params=self.get_params(deep=False),
            settings=settings,
            data=_one_step_data(Z, E, settings, self.noise),
            validation=None,
            loss=squared_error,
            callback=callback,
            checkpoint=checkpoint,
        )
        if self.solver == "qr":
            clean = [inputs_of(z, e) for z, e in zip(Z, E, strict=True)]
            fitted = fit_through_loop(request, clean, self.loop_steps)
        else:
            fitted = fit_network(request)
        assert fitted.ridge_fit is not None
        share = fitted.ridge_fit.degrees_of_freedom() / fitted.ridge_fit.n
        self.forecast_ = _forecast_state(
            fitted.network, settings.dtype, Z, E, share, scale=opened.exogenous_scale, many=opened.many
        )
        return self._adopt(FittedEstimator(fitted, opened.codec, InputCodec.identity(fitted.network.reservoir.n_in)))

    @property
    def method_(self) -> str:
        """The method of forecasting: "closed_loop" or "direct"."""
        return "closed_loop" if self.forecast_.direct is None else "direct"

    @property
    def season_(self) -> tuple[int, int] | None:
        """The seasons of direct forecasts, of the first series; None for the closed loop."""
        direct = self.forecast_.direct
        return None if direct is None else direct.series[0].columns[0].members.seasons

    @property
    def horizon_(self) -> int | None:
        """The number of steps ahead that direct forecasts have readouts for; None for the closed loop."""
        return None if self.forecast_.direct is None else self.forecast_.direct.horizon

    @property
    def target_mean_(self) -> Array:
        """The mean of each dimension of the series."""
        return self.codec_.mean

    @property
    def target_scale_(self) -> Array:
        """The standard deviation of each dimension of the series."""
        return self.codec_.scale

    @property
    def residuals_(self) -> Array:
        """The one-step residuals of the training series, in standard deviations."""
        return self.forecast_.residuals

    def predict(self, steps: int, *, warm_up: SequencesLike = None, exogenous: SequencesLike = None) -> Answers:
        """Return the next values.

        Parameters
        ----------
        steps : int
            How many values to forecast.
        warm_up : array or list of arrays, default=None
            Series whose continuation is forecast. None: those of `fit`.
        exogenous : array of shape (n_steps, n_inputs), or list of such arrays, default=None
            One row for each step to come and, before them, for each step of the warm-up.

        Returns
        -------
        array of shape (steps,) or (steps, n_dims), or list of such arrays
            The forecast, in the form of the series.
        """
        if self._has_direct():
            return self._direct_answer(steps, warm_up, exogenous, DirectModel.forecast)
        h, x, E, many = self._begin(steps, warm_up, exogenous)
        return self._in_units(self._closed_loop(h, x, E).swapaxes(0, 1), many)

    def forecast_interval(
        self,
        steps: int,
        coverage: float = 0.9,
        *,
        paths: int = 500,
        warm_up: SequencesLike = None,
        exogenous: SequencesLike = None,
    ) -> tuple[Answers, Answers]:
        """Return bounds between which each value lies with probability `coverage`.

        Direct forecasts are conformal: their bounds are quantiles of the errors that forecasts from the rolling origins
        of the training series had, scaled to each horizon, at a level that allows for the number of origins. In the
        closed loop, `paths` loops run side by side; after each step a one-step residual of the training series, drawn
        anew, is added to the input of each of them, and the bounds are quantiles over the paths.

        Parameters
        ----------
        steps : int
            How many values to forecast.
        coverage : float, default=0.9
            The probability that a value lies between the bounds.
        paths : int, default=500
            How many closed loops to run. More give smoother bounds.
        warm_up : array or list of arrays, default=None
            Series whose continuation is forecast. None: those of `fit`.
        exogenous : array of shape (n_steps, n_inputs), or list of such arrays, default=None
            One row for each step to come and, before them, for each step of the warm-up.

        Returns
        -------
        lower, upper : array of shape (steps,) or (steps, n_dims), or list of such arrays
            The bounds, in the form of the series.

        Examples
        --------
        >>> import numpy as np
        >>> from echolearn import ESNForecaster
        >>> rng = np.random.default_rng(0)
        >>> series = 10 + np.sin(2 * np.pi * np.arange(120) / 12) + 0.2 * rng.standard_normal(120)
        >>> esn = ESNForecaster(20, season=12, method="direct").fit(series[:108])
        >>> lower, upper = esn.forecast_interval(12, coverage=0.9)
        >>> bool(np.mean((lower < series[108:]) & (series[108:] < upper)) > 0.7)
        True
        """
        if not is_number(coverage) or not 0 < coverage < 1:
            raise ValueError(f"coverage={coverage!r}; expected a number between 0 and 1, for example 0.9.")
        check_integer("paths", paths, 2)
        if self._has_direct():
            bounds = [
                self._direct_answer(steps, warm_up, exogenous, partial(_bound, coverage=float(coverage), which=which))
                for which in (0, 1)
            ]
            return bounds[0], bounds[1]
        h, x, E, many = self._begin(steps, warm_up, exogenous)
        shares = np.array([0.5 - float(coverage) / 2, 0.5 + float(coverage) / 2])
        bounds_ = [np.quantile(Y, shares, axis=1) for Y in self._shocked_loops(h, x, E, paths)]
        lower, upper = np.stack(bounds_, axis=1)
        return self._in_units(lower, many), self._in_units(upper, many)

    def forecast_paths(
        self,
        steps: int,
        n_paths: int = 500,
        *,
        warm_up: SequencesLike = None,
        exogenous: SequencesLike = None,
    ) -> Answers:
        """Return sample paths of the future, from which any functional follows: sums, maxima, times of crossing.

        A path of direct forecasts is the forecast and the whole run of errors that the forecasts from one past origin
        had, drawn at random. In the closed loop it is a loop with one-step residuals added, as for the intervals.

        Parameters
        ----------
        steps : int
            How many values to forecast.
        n_paths : int, default=500
            How many paths to draw.
        warm_up : array or list of arrays, default=None
            Series whose continuation is forecast. None: those of `fit`.
        exogenous : array of shape (n_steps, n_inputs), or list of such arrays, default=None
            One row for each step to come and, before them, for each step of the warm-up.

        Returns
        -------
        array of shape (n_paths, steps) or (n_paths, steps, n_dims), or list of such arrays
            The paths, one array per series. The same seed gives the same paths.
        """
        check_integer("n_paths", n_paths, 1)
        if self._has_direct():
            rng = np.random.default_rng(self.random_state).spawn(6)[-1]
            return self._direct_answer(steps, warm_up, exogenous, partial(DirectModel.paths, count=n_paths, rng=rng))
        h, x, E, many = self._begin(steps, warm_up, exogenous)
        found = [np.asarray(self._in_units(Y.swapaxes(0, 1), True)) for Y in self._shocked_loops(h, x, E, n_paths)]
        return found if many else found[0]

    def update(self, new: SequencesLike, *, exogenous: SequencesLike = None) -> Self:
        """Take in further values of the series; later forecasts continue from there. Nothing is fitted again.

        Parameters
        ----------
        new : float, array of shape (n_steps,) or (n_steps, n_dims), or list of such arrays
            The values that follow those known so far; a list where several series were fitted. NaN: not known (direct
            forecasts only).
        exogenous : array of shape (n_steps, n_inputs), or list of such arrays, default=None
            One row for each of these steps.

        Returns
        -------
        ESNForecaster
            The estimator itself.
        """
        check_is_fitted(self)
        state = self.forecast_
        if np.ndim(new) == 0:  # type: ignore[arg-type]
            new = np.reshape(np.asarray(new, dtype=np.float64), 1)
        given = self._series(new, "new")
        if len(given.X) != len(state.last_value):
            raise ValueError(f"new has {len(given.X)} series; expected {len(state.last_value)}, those of fit.")
        rows = self._exogenous(exogenous, given.lengths, given.kind != "one")
        Z, E = self._scaled(given.X, rows)
        values = np.stack([z[-1] for z in Z])
        if state.direct is not None:
            with one_blas_thread():
                each = zip(state.direct.series, given.X, E, strict=True)
                ends = tuple(state.direct.follow(series, y, e) for series, y, e in each)
            direct = replace(state.direct, series=ends)
            states = np.stack([end.state for end in ends])
            self.forecast_ = replace(state, direct=direct, last_state=states, last_value=values)
            return self
        states_ = []
        for h, x, z, e in zip(state.last_state, state.last_value, Z, E, strict=True):
            inputs = np.hstack([np.vstack([x, z])[:-1], e])
            with one_blas_thread():
                states_.append(run(self.network_.reservoir, pack([inputs], np.dtype(self.dtype)), h[None]).H[-1])
        self.forecast_ = replace(state, last_state=np.stack(states_), last_value=values)
        return self

    def stream(self) -> ForecastStream:
        """Return a stream that takes values as they arrive and forecasts the next ones; the estimator is not changed.

        Returns
        -------
        ForecastStream
            A stream at the end of the training series.

        Examples
        --------
        >>> import numpy as np
        >>> from echolearn import ESNForecaster
        >>> series = np.sin(np.arange(420) / 5)
        >>> stream = ESNForecaster(30, learn="none", method="closed_loop").fit(series[:400]).stream()
        >>> errors = [abs(stream.predict(series[t])[0] - series[t + 1]) for t in range(400, 419)]
        >>> bool(max(errors) < 0.01)
        True
        """
        check_is_fitted(self)
        return ForecastStream(self)

    def score(
        self, series: SequencesLike, y: None = None, *, exogenous: SequencesLike = None, horizon: int = 1
    ) -> float:
        """Return minus the NRMSE of closed-loop forecasts `horizon` steps ahead, from every step after the washout.

        sqrt(Σ (forecast - x)² / Σ (x - mean)²), with dimensions weighted by their scale in training. From 50 forecasts
        on, a score of -1 or less is warned of (`echolearn.exceptions.PoorScoreWarning`).

        Parameters
        ----------
        series : array of shape (n_steps,) or (n_steps, n_dims), or list of such arrays
            The series to forecast.
        y : None
            Ignored; here for scikit-learn.
        exogenous : array of shape (n_steps, n_inputs), or list of such arrays, default=None
            What is known of each step in advance, in the form of the series.
        horizon : int, default=1
            How many steps ahead each forecast is.

        Returns
        -------
        float
            0 is perfect, -1 no better than the mean.
        """
        check_is_fitted(self)
        check_integer("horizon", horizon, 1)
        given = self._series(series, "series")
        rows = self._exogenous(exogenous, given.lengths, given.kind != "one")
        washout = self.network_.view.washout
        direct = self.forecast_.direct
        if direct is not None:
            washout = min(washout, max(0, int(given.lengths.min()) - horizon - 2) // 2)
        least = washout + horizon + 2
        if given.lengths.min() < least:
            raise ValueError(
                f"a series has {given.lengths.min()} steps; washout={washout} and horizon={horizon} need at least "
                f"{least}."
            )
        errors, truth = [], []
        for values, z, e in zip(given.X, *self._scaled(given.X, rows), strict=True):
            if direct is not None:
                forecasts = (one_value_ahead(direct, values, e, horizon) - self.codec_.mean) / self.codec_.scale
                known = ~np.isnan(z[horizon:]).any(axis=1) & (np.arange(len(z) - horizon) > washout)
                errors.append((forecasts - z[horizon:])[known])
                truth.append(z[horizon:][known])
                continue
            H = _states(self.network_, self.dtype, z, e)
            first = np.arange(washout + 1, len(z) - horizon)  # the last known value
            for t in np.array_split(first, np.ceil(len(first) / PATHS)):
                E = e[t + 1 + np.arange(horizon)[:, None]]
                errors.append(self._closed_loop(H[t - 1], z[t], E)[-1] - z[t + horizon])
                truth.append(z[t + horizon])
        T = np.concatenate(truth)
        spread = float(((T - T.mean(axis=0)) ** 2).sum())
        if spread == 0:
            raise ValueError("the series is constant after the washout: there is no spread to measure errors by.")
        with np.errstate(over="ignore"):
            share = float((np.concatenate(errors) ** 2).sum()) / spread
        warn_of_poor_values(1 - share, np.ones(len(T)))
        return -float(np.sqrt(share))

    def _has_direct(self) -> bool:
        check_is_fitted(self)
        return self.forecast_.direct is not None

    def _direct_answer(
        self, steps: int, warm_up: SequencesLike, exogenous: SequencesLike, answer: Callable[..., Array]
    ) -> Answers:
        """Return what `answer(model, series, steps)` says in the scale of the errors, (..., steps, dims), in units."""
        model = self.forecast_.direct
        assert model is not None
        check_steps_ahead(steps)
        if warm_up is None:
            many, parts, known = self.forecast_.many, list(model.series), np.zeros(len(model.series), int)
            _, E = self._scaled([], self._exogenous(exogenous, known + steps, many))
        else:
            given = self._series(warm_up, "warm_up")
            many, known = given.kind != "one", given.lengths
            if known.min() < MIN_KNOWN_VALUES:
                raise ValueError(f"warm_up has {known.min()} steps; expected at least {MIN_KNOWN_VALUES}.")
            _, E = self._scaled([], self._exogenous(exogenous, known + steps, many))
            parts = followed(model, given.X, E)
        answers = [
            series.in_units(answer(model, series, steps), e[n:]) for series, e, n in zip(parts, E, known, strict=True)
        ]
        if self.codec_.one_value:
            answers = [values[..., 0] for values in answers]
        return answers if many else answers[0]

    def _shocked_loops(self, h: Array, x: Array, E: Array, paths: int) -> Iterator[Array]:
        """Yield, for each series, closed loops (steps, paths, dims) with residuals added after every step."""
        rng = np.random.default_rng(self.random_state).spawn(6)[-1]
        residuals = self.forecast_.residuals
        for i in range(len(h)):
            shocks = residuals[rng.integers(len(residuals), size=(len(E), paths))]
            h_i, x_i, E_i = (np.repeat(v, paths, axis=-2) for v in (h[i : i + 1], x[i : i + 1], E[:, i : i + 1]))
            yield self._closed_loop(h_i, x_i, E_i, shocks)

    def _scaled(self, series: Sequence[Array], rows: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        known = self.forecast_
        return (
            standardised(series, self.codec_.mean, self.codec_.scale),
            standardised(rows, known.exogenous_mean, known.exogenous_scale),
        )

    def _begin(self, steps: int, warm_up: SequencesLike, exogenous: SequencesLike) -> tuple[Array, Array, Array, bool]:
        """Return the state before and the value at the last known step, (B, N) and (B, dims); E (steps, B, inputs) to
        come; and whether the caller gave a list."""
        check_is_fitted(self)
        check_steps_ahead(steps)
        if warm_up is None:
            many, known = self.forecast_.many, np.zeros(len(self.forecast_.last_value), int)
            h, x = self.forecast_.last_state, self.forecast_.last_value
            _, E = self._scaled([], self._exogenous(exogenous, known + steps, many))
        else:
            given = self._series(warm_up, "warm_up")
            check_long_enough(given, max(1, self.network_.view.washout))
            many, known = given.kind != "one", given.lengths
            Z, E = self._scaled(given.X, self._exogenous(exogenous, known + steps, many))
            ends = [_states(self.network_, self.dtype, z, e[: len(z)])[-1] for z, e in zip(Z, E, strict=True)]
            h, x = np.stack(ends), np.stack([z[-1] for z in Z])
        return h, x, np.stack([e[n:] for e, n in zip(E, known, strict=True)], axis=1), many

    def _closed_loop(self, h: Array, x: Array, E: Array, shocks: Array | None = None) -> Array:
        """Return closed loops from here on, (steps, B, dims); warn of one that leaves its series."""
        network = self.network_
        with one_blas_thread():
            Y = run_closed_loop(network.reservoir, network.readout.U, network.view.direct, h, x, E=E, shocks=shocks)
        with np.errstate(invalid="ignore"):
            far = ~(np.abs(Y) < FAR).all(axis=(1, 2))
        if far.any():
            warnings.warn(
                f"the forecast runs away: after {int(far.argmax()) + 1} steps it is {FAR:g} standard deviations from "
                "the mean of its series. Fit with some noise (for example noise=1e-3), a larger ridge, or more data.",
                ForecastWarning,
                stacklevel=user_stacklevel(),
            )
        return Y

    def _check_columns(self, given: SequencesLike, part: slice, name: str) -> None:
        """Refuse a data frame whose columns are not those of the fit; part: those of the series, or exogenous ones."""
        names = getattr(self, "feature_names_in_", None)
        if names is not None and _columns(given) is not None:
            check_columns(given[0] if isinstance(given, (list, tuple)) else given, names[part], name)

    def _series(self, series: SequencesLike, name: str) -> Sequences:
        self._check_columns(series, slice(len(self.codec_.mean)), name)
        given, _ = open_series(series, name, len(self.codec_.mean), gaps=self.forecast_.direct is not None)
        return given

    def _exogenous(self, exogenous: SequencesLike, lengths: Array, many: bool) -> list[Array]:
        self._check_columns(exogenous, slice(len(self.codec_.mean), None), "exogenous")
        return open_exogenous(exogenous, lengths, len(self.forecast_.exogenous_mean), many)

    def _in_units(self, Y: Array, many: bool) -> Answers:
        """Return standardised values (B, steps, dims) in the units and form of the series."""
        values = Y * self.codec_.scale + self.codec_.mean
        if self.codec_.one_value:
            values = values[..., 0]
        return list(values) if many else values[0]


@dataclass(frozen=True, eq=False)
class _Opened:
    """The data of a fit: series as given and standardised, exogenous inputs standardised, their scales."""

    Y: list[Array]
    Z: list[Array]
    E: list[Array]
    codec: ValueCodec
    exogenous_scale: tuple[Array, Array]
    many: bool

    @property
    def least(self) -> int:
        """The length of the shortest series."""
        return min(map(len, self.Y))


class ForecastStream:
    """A forecaster that takes values one by one: what `ESNForecaster.stream` returns.

    Parameters
    ----------
    forecaster : ESNForecaster
        The fitted forecaster. A later fit or update of it does not change the stream.
    """

    def __init__(self, forecaster: ESNForecaster):
        self._forecaster = copy(forecaster)  # what an update replaces is never changed in place

    def predict(
        self, new: SequencesLike, steps: int = 1, *, exogenous: SequencesLike = None, ahead: SequencesLike = None
    ) -> Answers:
        """Take in the newest values, and return the next ones.

        Parameters
        ----------
        new : float, array of shape (n_steps,) or (n_steps, n_dims), or list of such arrays
            The values since the last call.
        steps : int, default=1
            How many values to forecast.
        exogenous : array of shape (n_steps, n_inputs), default=None
            One row for each new value.
        ahead : array of shape (steps, n_inputs), default=None
            One row for each step to come.

        Returns
        -------
        array of shape (steps,) or (steps, n_dims), or list of such arrays
            The forecast.
        """
        return self._forecaster.update(new, exogenous=exogenous).predict(steps, exogenous=ahead)

    def update(self, new: SequencesLike, *, exogenous: SequencesLike = None) -> Self:
        """Take in the newest values without a forecast.

        Parameters
        ----------
        new : float, array of shape (n_steps,) or (n_steps, n_dims), or list of such arrays
            The values since the last call.
        exogenous : array of shape (n_steps, n_inputs), default=None
            One row for each new value.

        Returns
        -------
        ForecastStream
            The stream itself.
        """
        self._forecaster.update(new, exogenous=exogenous)
        return self


def _columns(given: SequencesLike) -> list[str] | None:
    """Return the names of the columns of a data frame, or of the first one in a list; None for all else."""
    first = given[0] if isinstance(given, (list, tuple)) and len(given) else given
    return column_names(first) if getattr(first, "ndim", 0) == 2 else None


def _known(series: Sequence[Array]) -> Array:
    """Return the known values of all series (n, dims), gaps filled with the mean of their column."""
    table = np.concatenate(series)
    gaps = np.isnan(table)
    if not gaps.any():
        return table
    if gaps.all(axis=0).any():
        raise ValueError("series: a column has no value at all, only gaps. Leave it out.")
    return np.where(gaps, np.nanmean(table, axis=0), table)


def _bound(model: DirectModel, series: FollowedSeries, steps: int, coverage: float, which: int) -> Array:
    """Return the lower or the upper bounds in the scale of the errors."""
    return model.interval(series, steps, coverage)[which]


def _one_step_data(Z: list[Array], E: list[Array], settings: NetworkSettings, noise: float) -> Dataset:
    """Return pairs of inputs and the next values, as a dataset."""
    rng = np.random.default_rng(settings.random_state).spawn(5)[-1]
    noisy = [z + noise * rng.standard_normal(z.shape) for z in Z] if noise else Z
    inputs = [inputs_of(z, e) for z, e in zip(noisy, E, strict=True)]
    given = Sequences(inputs, "list")
    check_has_time(given)
    check_long_enough(given, settings.washout_steps)
    return Dataset.place(inputs, [z[1:] for z in Z], None, per_step=True, dtype=settings.dtype)


def _states(network: Network, dtype: str, z: Array, e: Array) -> Array:
    """Return the state after each value but the last: (steps - 1, N)."""
    with one_blas_thread():
        return run(network.reservoir, pack([inputs_of(z, e)], np.dtype(dtype))).H


def _forecast_state(
    network: Network,
    dtype: str,
    Z: list[Array],
    E: list[Array],
    share: float,
    *,
    scale: tuple[Array, Array],
    many: bool,
) -> ForecastState:
    """Return where forecasts continue from, and the one-step residuals of all series.

    Residuals of a fitted readout are too small; divided by 1 - df / n (df: its degrees of freedom, df / n: `share`)
    they have about the size that leaving each one out would give.
    """
    H = [_states(network, dtype, z, e) for z, e in zip(Z, E, strict=True)]
    U, residuals = network.readout.U, []
    for z, e, h in zip(Z, E, H, strict=True):
        H_c = stack(h, inputs_of(z, e).astype(h.dtype), direct=network.view.direct, intercept=True)
        residuals.append(z[1:] - np.asarray(H_c @ U.astype(h.dtype), dtype=np.float64))
    return ForecastState(
        exogenous_mean=scale[0],
        exogenous_scale=scale[1],
        last_state=np.stack([h[-1] for h in H]),
        last_value=np.stack([z[-1] for z in Z]),
        residuals=np.concatenate([r[network.view.washout :] for r in residuals]) / (1 - share),
        many=many,
    )
