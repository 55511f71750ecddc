"""ESNForecaster: continues a series, in a closed loop or by direct forecasts of every horizon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from echolearn.estimators._base import ModelViews, store_parameters
from echolearn.estimators._display import ExportMixin, NotebookMixin, plot_network
from echolearn.fitting.advice.scores import warn_of_poor_values
from echolearn.fitting.parameters import LOOP_DRAWING, LOOP_LEARNING, GroupedSettings, Parameters, flat_settings
from echolearn.fitting.settings import NetworkSettings
from echolearn.fitting.stages import Callback
from echolearn.forecasting.direct_forecast import DirectForecast, fit_direct_forecast
from echolearn.forecasting.direct_model import DirectModel, SeriesSettings
from echolearn.forecasting.forecast import FittedForecaster, Forecast, MeanForecast, choose_method
from echolearn.forecasting.loop_forecast import fit_loop_forecast
from echolearn.forecasting.series import Continuation, SeriesData, refuse_targets
from echolearn.persistence.save import save_model
from echolearn.readout.network import Network
from echolearn.reservoir import Reservoir
from echolearn.streams._forecaster import ForecastStream
from echolearn.validation import Answers, Array, SequencesLike, check_integer, is_number

if TYPE_CHECKING:  # an optional dependency
    from matplotlib.figure import Figure

# Down to what float64 statistics can carry: a noiseless series has small errors to find.
LOOP_RIDGES = tuple(10.0 ** np.arange(-11, 2))


class ESNForecaster(ModelViews, ExportMixin, NotebookMixin, GroupedSettings):
    """An echo state network that continues a series: in a closed loop, or by direct forecasts of every horizon.

    **Closed loop**, for series that follow dynamics of their own (chaos, waves, driven systems). The input at step t is
    [x_t, e_{t+1}], the target x_{t+1}: what is known of the next step (`exogenous`) may help to predict it. In a
    forecast every output is the next input; W, W_rec and the leaks are learned for the one-step error by the exact
    gradient.

    **Direct**, for what people measure and count: short, noisy, with trend and season, with gaps. The forecast is the
    median of several variants of exponential smoothing (with and without trend, damping, logarithm, up to two seasons)
    and of autoregressions, weighted by their errors in the last third of the series. A network that is not learned
    reads the deviations from these forecasts; its readout corrects them, one output per horizon, as far as a backtest
    shows that this helps. Intervals come from the errors of past origins. Every series and column has a model of its
    own.

    By default (`method="auto"`), the training series decides between the two and the mean of both: `method_`. A closed
    loop that is chosen for a noisy series keeps W and W_rec as they were drawn.

    Parameters
    ----------
    hidden_units : int, default=100
        The number of hidden units N. More units fit more, cost more, and need more data.
    reservoir : dict, default=None
        How the reservoir is drawn, as a dict of arguments of `Reservoir.random`: `connections` (10), `topology`
        ("random"), `activation` ("tanh"), `bias_scaling` (0.1), `initial_state` (zero).
    spectral_radius : float or None, default=0.9
        The spectral radius lambda to which W_rec is scaled at the start (eq. 3). Larger values remember longer; above 1
        (tanh) or 4 (sigmoid) a network without leak never forgets. None leaves a matrix given as topology unscaled.
    input_scaling : float or array of shape (n_features,), default=0.5
        W is drawn uniformly from [-input_scaling, input_scaling], for all features or for each. Raise it if the task is
        non-linear in the inputs, lower it if it needs long memory.
    leak : float or (float, float), default=(0.3, 1.0)
        The leak a of the units, in (0, 1]: 1 for no leak, small for slow units. A pair spreads the leaks evenly in
        logarithm between its ends.
    washout : int or "auto", default=50
        Steps at the start of each sequence that are not learned from and not scored on while fitting. Raise it if the
        initial transient disturbs the fit.
    input_noise : float, default=0.0
        Standard deviation of Gaussian noise on the inputs x_t that the network learns from, in units of the series'
        standard deviation. It moves the states as the network's own errors will, against forecasts that diverge.
    neighbourhood : int or (int, int), default=None
        For series whose columns are points of one field around a ring, such as temperatures around a circle of
        latitude, in one unit: each point is forecast from itself and so many points on each side, by one small network
        that learns from all of them. A pair (points, reach) forecasts blocks of points together, which is faster. None:
        one network sees and forecasts all columns. `exogenous` and export are refused.
    method : {"auto", "closed_loop", "direct"}, default="auto"
        How series are forecast. "auto": the closed loop, where a readout of the first three quarters predicts the rest
        one step ahead to a twentieth of the changes from step to step; otherwise what forecast one series best from
        origins in its last quarter: the closed loop with the weights as drawn, direct forecasts, or the mean of both.
    horizon : int, default=None
        The number of steps ahead for which direct forecasts have readouts; later steps continue level, trend and
        season. None: two seasons, 8 to 48, at most a third of the series.
    season : int, "auto" or None, default="auto"
        The number of steps of one season. "auto": what the dates of a pandas series suggest (12 for months, 4 for
        quarters, 24 and 168 for hours, ...), if the values show it, or what the autocorrelation shows. None: no season.
    trend : bool or "auto", default="auto"
        Whether direct forecasts have a trend. "auto": members with and without are weighted by their errors.
    log : bool or "auto", default="auto"
        Whether direct forecasts are made in logarithms, so that trend and season multiply. "auto": weighted likewise,
        where all values are positive.
    ridge : float, list of float, or "auto", default="auto"
        The penalty mu of the ridge readout of the closed loop (eq. 9): a number, numbers to choose from, or "auto" for
        a path in units of the mean squared state. The choice is made on held-out data, or by generalised
        cross-validation without any.
    solver : {"gram", "qr"}, default="gram"
        How readout and weights are found. "qr" is for series without noise, such as those of equations: orthogonal
        factors of the states in place of their Gram matrix, ridges down to 1e-22 (in units of the mean squared state),
        L-BFGS in place of Adam, and all choices by how long closed loops forecast the held-out end of the series. Take
        a `validation_fraction` of 0.2 or more.
    learn : {"both", "input", "none"}, default="both"
        Which weights are learned: W, W_rec, W_fb and the bias ("both"), all but W_rec ("input"), or only the readout
        ("none": a classical echo state network).
    epochs : int, default=None
        Passes over the training data while the weights are learned. None: enough for 400 updates, at least 8.
    learning : dict, default=None
        How the weights of a closed loop are learned, where it differs from the defaults in parentheses. `step_size`:
        alpha at the start (0.01 for Adam, less above 300 units; 0.07 for FISTA). `batch_size` (8): series per
        mini-batch, None for all. `lookback` (None): how many steps the gradient follows back in time; None for all.
        `patience` (None): epochs without a better validation error after which learning stops, or "auto" for a quarter
        of the epochs, at least 5. `learn_leak` (True): whether the leak of each unit is learned. `loop_steps` (1), with
        solver="qr": how many closed-loop steps the weights are learned through, after the one-step error; more than 1
        may help where forecasts diverge, in about twice the time. For comparisons with the paper: `optimizer` ("adam",
        or "fista"), `clip` (None) and `renormalize` (False), as in `ESNClassifier`.
    validation_fraction : float, default=0.1
        The share of the sequences that is held out to decide on stopping, ridge and penalty; with fewer than five
        sequences, the last steps of each. The final readout is fitted to them too. 0: nothing is held out.
    random_state : int, numpy.random.Generator or None, default=0
        The seed of the weights, the held-out sequences and the order of mini-batches. The same seed and data give the
        same results, bit by bit, with any number of threads. None: another network in every fit.
    verbose : int, default=0
        1 shows a bar over the epochs: live in a notebook, with the curve of the errors, and on a terminal; in a log, a
        line every few seconds. 2 prints one line per epoch.

    Attributes
    ----------
    method_ : {"closed_loop", "direct", "mean"}
        How the series are forecast.
    season_ : tuple of int, or None
        The seasons of direct forecasts, of the first series; 1 for none. None for the closed loop.
    horizon_ : int or None
        How many steps ahead direct forecasts have readouts for.
    target_mean_, target_scale_ : array of shape (n_dims,)
        The mean and the standard deviation of each dimension of the series.
    residuals_ : array of shape (n_residuals, n_dims)
        The one-step residuals of the training series, in standard deviations.
    n_features_in_ : int
        The number of inputs: dimensions of the series, and exogenous inputs.
    model_, forecast_ : FittedForecaster, and LoopForecast, DirectForecast or MeanForecast
        All that was fitted, and the part of it that forecasts.
    history_ : History
        One row per epoch of learning; empty for direct forecasts.
    network_, reservoir_ : Network and Reservoir
        The network of the closed loop, and all weights of its state equation. Direct forecasts have no such
        attributes, nor those that follow.
    input_weights_, recurrent_weights_ : arrays of shape (n_dims + n_inputs, n_units) and (n_units, n_units)
        W, and W_rec, which is sparse. With `neighbourhood`, W has one row per point that a block sees.
    readout_weights_, intercept_ : arrays of shape (n_units + n_dims + n_inputs, n_dims) and (n_dims,)
        U, for standardised series, and the intercept of each output; with `neighbourhood`, of the points of a block.
    ridge_ : float
        The ridge of the readout, given or chosen.

    Examples
    --------
    >>> from echolearn import ESNForecaster
    >>> from echolearn.datasets import mackey_glass
    >>> series = mackey_glass(600)
    >>> esn = ESNForecaster(50, learn="none").fit(series[:500])
    >>> esn.predict(10).shape
    (10, 1)

    Points on a ring, each of which is forecast from its neighbours:

    >>> from echolearn.datasets import lorenz_96
    >>> field = lorenz_96(300, dims=12)
    >>> esn = ESNForecaster(50, learn="none", solver="qr", neighbourhood=3).fit(field[:250])
    >>> esn.predict(50).shape, esn.input_weights_.shape
    ((50, 12), (7, 50))
    """

    groups: ClassVar[Mapping[str, Parameters]] = {"learning": LOOP_LEARNING, "reservoir": LOOP_DRAWING}
    fixed: ClassVar[Parameters] = {"dtype": "float64", "direct": True}
    model_: FittedForecaster

    def __init__(
        self,
        hidden_units: int = 100,
        *,
        reservoir: Mapping[str, object] | None = None,
        spectral_radius: float | None = 0.9,
        input_scaling: ArrayLike = 0.5,
        leak: float | tuple[float, float] = (0.3, 1.0),
        washout: int | str = 50,
        input_noise: float = 0.0,
        neighbourhood: int | tuple[int, int] | None = None,
        method: str = "auto",
        horizon: int | None = None,
        season: str | int | None = "auto",
        trend: str | bool = "auto",
        log: str | bool = "auto",
        ridge: str | ArrayLike = "auto",
        solver: str = "gram",
        learn: str = "both",
        epochs: int | None = None,
        learning: Mapping[str, object] | None = None,
        validation_fraction: float = 0.1,
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
            One series, or several of any lengths. Direct forecasts have one model per series and column; a closed loop
            learns all of them by one network, in one scale. NaN stands for a missing value (direct forecasts only).
        y : None
            Here for scikit-learn; anything else is refused.
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
        if isinstance(self.reservoir, Reservoir):
            raise ValueError("reservoir is a Reservoir; ESNForecaster draws its own. Give a dict of how it is drawn.")
        params = flat_settings(self)
        settings = NetworkSettings.of(params, ridge_path=LOOP_RIDGES, time_folds=False)
        local, method, direct = self.neighbourhood is not None, self.method, None
        if local and method == "direct":
            raise ValueError("neighbourhood= is for closed loops: leave it out, or set method='closed_loop'.")
        if method == "auto" and (local or self.solver == "qr"):  # qr is for closed loops of noiseless series
            method = "closed_loop"
        refuse_targets(y)
        gaps, owner = method != "closed_loop", type(self).__name__
        data = SeriesData.open(series, exogenous, gaps=gaps, dtype=settings.dtype, one_scale=local)
        settings = settings.resolved(data.lengths)
        trend, log = (None if isinstance(choice, str) else bool(choice) for choice in (self.trend, self.log))
        of_series = SeriesSettings(params["horizon"], params["season"], trend, log)
        if method == "auto":
            method, settings, direct = choose_method(data, settings, of_series)
        if method == "direct":
            direct = direct or fit_direct_forecast(data, settings, of_series)
            self.model_ = FittedForecaster.of(owner, params, direct)
            return self
        loop, fit = fit_loop_forecast(
            data, settings, owner=owner, params=params, callback=callback, checkpoint=checkpoint
        )
        learned = {"history": fit.history, "initial_reservoir": fit.initial_reservoir}
        forecast = MeanForecast.of(loop, direct) if method == "mean" and direct is not None else loop
        self.model_ = FittedForecaster.of(owner, params, forecast, **learned)
        if fit.interrupted:
            raise KeyboardInterrupt
        return self

    def predict(self, horizon: int, *, warm_up: SequencesLike = None, exogenous: SequencesLike = None) -> Answers:
        """Return the next values.

        Parameters
        ----------
        horizon : int
            How many values to forecast.
        warm_up : array or list of arrays, default=None
            Series whose continuation is forecast. None: those of `fit`.
        exogenous : array of shape (n_steps, n_inputs), or list of such arrays, default=None
            One row for each step to come and, before them, for each step of the warm-up.

        Returns
        -------
        array of shape (horizon,) or (horizon, n_dims), or list of such arrays
            The forecast, in the form of the series.
        """
        check_is_fitted(self)
        return self.forecast_.predict(Continuation(horizon, warm_up, exogenous))

    def forecast_interval(
        self,
        horizon: int,
        coverage: float = 0.9,
        *,
        n_paths: int = 500,
        warm_up: SequencesLike = None,
        exogenous: SequencesLike = None,
    ) -> tuple[Answers, Answers]:
        """Return bounds between which each value lies with probability `coverage`.

        Direct forecasts are conformal: their bounds are quantiles of the errors of forecasts from rolling origins of
        the training series, scaled to each horizon. In the closed loop they are quantiles of `n_paths` loops to whose
        inputs one-step residuals of the training series are added.

        Parameters
        ----------
        horizon, warm_up, exogenous
            As in `predict`.
        coverage : float, default=0.9
            The probability that a value lies between the bounds.
        n_paths : int, default=500
            How many closed loops to run. More give smoother bounds.

        Returns
        -------
        lower, upper : array of shape (horizon,) or (horizon, n_dims), or list of such arrays
            The bounds, in the form of the series.
        """
        if not is_number(coverage) or not 0 < coverage < 1:
            raise ValueError(f"coverage={coverage!r}; expected a number between 0 and 1, for example 0.9.")
        check_integer("n_paths", n_paths, 2)
        check_is_fitted(self)
        ahead = Continuation(horizon, warm_up, exogenous)
        return self.forecast_.interval(ahead, float(coverage), n_paths, self.random_state)

    def forecast_paths(
        self, horizon: int, n_paths: int = 500, *, warm_up: SequencesLike = None, exogenous: SequencesLike = None
    ) -> Answers:
        """Return sample paths of the future, from which any functional follows: sums, maxima, times of crossing.

        A path of direct forecasts is the forecast and the whole run of errors that the forecasts from one past origin
        had, drawn at random. In the closed loop it is a loop with one-step residuals added, as for the intervals.

        Parameters
        ----------
        horizon, warm_up, exogenous
            As in `predict`.
        n_paths : int, default=500
            How many paths to draw.

        Returns
        -------
        array of shape (n_paths, horizon) or (n_paths, horizon, n_dims), or list of such arrays
            The paths, one array per series. The same seed gives the same paths.
        """
        check_integer("n_paths", n_paths, 1)
        check_is_fitted(self)
        return self.forecast_.paths(Continuation(horizon, warm_up, exogenous), n_paths, self.random_state)

    def update(self, new: SequencesLike, *, exogenous: SequencesLike = None) -> Self:
        """Take in further values of the series; later forecasts continue from there. Nothing is fitted again.

        Parameters
        ----------
        new : float, array of shape (n_steps,) or (n_steps, n_dims), or list of such arrays
            The values that follow those known so far; a list if several series were fitted. NaN: not known (direct
            forecasts only).
        exogenous : array of shape (n_steps, n_inputs), or list of such arrays, default=None
            One row for each of these steps.

        Returns
        -------
        ESNForecaster
            The estimator itself.
        """
        check_is_fitted(self)
        self.model_ = replace(self.model_, forecast=self.forecast_.update(new, exogenous))
        return self

    def stream(self) -> ForecastStream:
        """Return a stream that takes values as they arrive and forecasts the next ones; the estimator is not changed.

        Returns
        -------
        ForecastStream
            A stream at the end of the training series.
        """
        check_is_fitted(self)
        return ForecastStream(self.forecast_)

    def score(
        self, series: SequencesLike, y: None = None, *, exogenous: SequencesLike = None, horizon: int = 1
    ) -> float:
        """Return minus the NRMSE of forecasts `horizon` steps ahead, from every step after the washout.

        sqrt(Σ (forecast - x)² / Σ (x - mean)²), with dimensions weighted by their scale in training. From 50 forecasts
        on, a score of -1 or less causes a warning (`echolearn.exceptions.PoorScoreWarning`).

        Parameters
        ----------
        series : array of shape (n_steps,) or (n_steps, n_dims), or list of such arrays
            The series to forecast.
        y, exogenous
            As in `fit`.
        horizon : int, default=1
            How many steps ahead each forecast is.

        Returns
        -------
        float
            0 is perfect, -1 no better than the mean.
        """
        check_is_fitted(self)
        check_integer("horizon", horizon, 1)
        errors, truth = self.forecast_.errors(series, exogenous, horizon)
        spread = float((truth**2).sum())
        if spread == 0:
            raise ValueError("the series is constant after the washout: there is no spread to measure errors by.")
        with np.errstate(over="ignore"):
            share = float((errors**2).sum()) / spread
        warn_of_poor_values(1 - share, np.ones(len(truth)))
        return -float(np.sqrt(share))

    def save(self, path: str | PathLike[str]) -> None:
        """Save the fitted forecaster to one safetensors file: weights, settings, series so far, version and a checksum.

        Parameters
        ----------
        path : str or path-like
            Where to write, for example "model.safetensors". The file appears when it is complete; an existing one is
            replaced. The endings of pickles, JSON and exported files are refused.

        See Also
        --------
        echolearn.load : Read the file back.
        """
        check_is_fitted(self)
        save_model(replace(self.model_, settings=flat_settings(self)), path)

    def plot(self) -> Figure:
        """Plot what was learned: errors, weights and eigenvalues before and after, and the readout.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, which a notebook shows. It requires matplotlib (`pip install 'echolearn[report]'`).
        """
        check_is_fitted(self)
        return plot_network(self.model_.single, self.model_.history, self.model_.initial_reservoir, None)

    @property
    def forecast_(self) -> Forecast:
        """All that forecasts are made from: a LoopForecast, a DirectForecast, or the MeanForecast of both."""
        return self.model_.forecast

    @property
    def method_(self) -> str:
        """The method of forecasting: "closed_loop", "direct" or "mean"."""
        return self.forecast_.method

    @property
    def season_(self) -> tuple[int, int] | None:
        """The seasons of direct forecasts, of the first series; None for the closed loop."""
        model = direct_model(self.forecast_)
        return None if model is None else model.columns[0].members.seasons

    @property
    def horizon_(self) -> int | None:
        """The number of steps ahead that direct forecasts have readouts for; None for the closed loop."""
        model = direct_model(self.forecast_)
        return None if model is None else model.horizon

    @property
    def target_mean_(self) -> Array:
        """The mean of each dimension of the series."""
        return self.forecast_.form.codec.mean

    @property
    def target_scale_(self) -> Array:
        """The standard deviation of each dimension of the series."""
        return self.forecast_.form.codec.scale

    @property
    def residuals_(self) -> Array:
        """The one-step residuals of the training series, in standard deviations."""
        return self.forecast_.residuals

    @property
    def network_(self) -> Network:
        """The network of the closed loop."""
        if self.method_ == "direct":
            raise AttributeError(
                "direct forecasts have no network of their own: smoothing forecasts, and the readout of a reservoir "
                "only corrects it. Fit with method='closed_loop' for a network that forecasts."
            )
        return self.model_.single


def direct_model(forecast: Forecast) -> DirectModel | None:
    """Return the direct model of the first series; None for a closed loop."""
    direct = forecast.direct if isinstance(forecast, MeanForecast) else forecast
    return direct.models[0] if isinstance(direct, DirectForecast) else None
