"""NVARForecaster: next-generation reservoir computing, a ridge readout of products of delayed values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from echolearn.execution.blas import one_blas_thread
from echolearn.forecasting.series import SeriesData, check_steps_ahead, refuse_targets
from echolearn.metrics._forecast_errors import VALID_ERROR, step_errors
from echolearn.readout.orthogonal import ORTHOGONAL_RIDGES, OrthogonalFactors
from echolearn.validation import Answers, Array, SequencesLike, check_integer

MAX_PRODUCTS = 20_000  # more are a slip in most cases
LOOPS_PER_SERIES = 20  # by which a ridge is chosen
STEPS_PER_PASS = 50  # of these loops, which end where they leave the series


@dataclass(frozen=True)
class PolynomialFeatures:
    """All monomials of some degrees of the last `delays` inputs, `stride` steps apart.

    inputs: the number of inputs d; degrees: of the monomials, for example (1, 2). There is no constant among them.
    """

    inputs: int
    delays: int
    stride: int
    degrees: tuple[int, ...]

    @property
    def memory(self) -> int:
        """The number of steps before a step that its features need."""
        return (self.delays - 1) * self.stride

    @property
    def count(self) -> int:
        """The number of features."""
        n = self.inputs * self.delays
        return sum(comb(n + degree - 1, degree) for degree in self.degrees)

    def of_series(self, X: Array) -> Array:
        """Return the features (steps - memory, count) of a series (steps, d), from the first step that has them."""
        rows = len(X) - self.memory
        return self.of_windows([X[self.memory - j * self.stride :][:rows] for j in range(self.delays)])

    def of_windows(self, delayed: Sequence[Array]) -> Array:
        """Return the features (B, count) of B windows: delayed[j] (B, d) are the inputs j strides ago."""
        L = np.hstack(list(delayed))
        products = []
        for degree in self.degrees:
            factors = np.array(list(combinations_with_replacement(range(L.shape[1]), degree))).T
            product = L[:, factors[0]]
            for columns in factors[1:]:
                product = product * L[:, columns]
            products.append(product)
        return np.hstack(products)


class NVARForecaster(BaseEstimator):
    """Next-generation reservoir computing: a forecaster without a reservoir.

    The next value is the last one plus a linear readout of all products of up to `degree` values among the last
    `delays`. Nothing is drawn at random, and nothing but the readout is learned: the products are fixed. It forecasts
    small systems with polynomial equations very well; the number of products grows quickly with the dimensions.

    Parameters
    ----------
    delays : int, default=2
        How many of the last values of each dimension are used.
    stride : int, default=1
        The steps between them.
    degree : int, default=2
        The largest number of factors of a product.
    ridge : float, list of float, or "auto", default="auto"
        The penalty of the readout, in units of the mean square of the products; a list or "auto" is chosen from by how
        long closed loops forecast the held-out end of the series.
    validation_fraction : float, default=0.2
        The share of the steps of each series that is held out to choose the ridge; the final readout is fitted to them
        too.

    Attributes
    ----------
    n_products_ : int
        The number of products.
    ridge_ : float
        The ridge, given or chosen, in units of the mean square of the products.
    readout_weights_ : array of shape (n_products + 1, n_dims)
        The readout of the products of standardised values; the last row is its intercept.
    target_mean_, target_scale_ : array of shape (n_dims,)
        The mean and standard deviation of each dimension.
    last_values_ : list of arrays
        The last standardised values of each series, from which forecasts continue.

    References
    ----------
    Gauthier, Bollt, Griffith and Barbosa, Next generation reservoir computing, Nature Communications 12 (2021).

    Examples
    --------
    >>> from echolearn import NVARForecaster
    >>> from echolearn.datasets import lorenz
    >>> from echolearn.metrics import valid_time
    >>> series = lorenz(2000)
    >>> model = NVARForecaster(delays=2, degree=2).fit(series[:1500])
    >>> bool(valid_time(series[1500:], model.predict(500), dt=0.02, lyapunov=0.906) > 3)
    True
    """

    def __init__(
        self,
        delays: int = 2,
        *,
        stride: int = 1,
        degree: int = 2,
        ridge: str | ArrayLike = "auto",
        validation_fraction: float = 0.2,
    ):
        self.delays = delays
        self.stride = stride
        self.degree = degree
        self.ridge = ridge
        self.validation_fraction = validation_fraction

    def fit(self, series: SequencesLike, y: None = None) -> Self:
        """Fit the readout to the steps of one series or several.

        Parameters
        ----------
        series : array of shape (n_steps,) or (n_steps, n_dims), or list of such arrays
            The series.
        y : None
            Here for scikit-learn; anything else is refused.

        Returns
        -------
        NVARForecaster
            The estimator itself.
        """
        refuse_targets(y)
        data = SeriesData.open(series, None, gaps=False, dtype="float64")
        features, ridges = self._checked(data.form.dims)
        shortest = features.memory + 3
        if data.lengths.min() < shortest:
            raise ValueError(f"a series has {data.lengths.min()} steps; {shortest} or more are needed.")
        self.form_, self.features_, self.n_products_ = data.form, features, features.count
        self.target_mean_, self.target_scale_ = data.form.codec.mean, data.form.codec.scale
        with one_blas_thread():
            if len(ridges) > 1:
                cuts = [max(shortest, int(len(z) * (1 - self.validation_fraction))) for z in data.Z]
                head = self._factored([z[:c] for z, c in zip(data.Z, cuts, strict=True)])
                scores = [self._valid_steps(head.readout(r * head.square), data.Z, cuts) for r in ridges]
                ridges = [ridges[int(np.argmax(scores))]]
            whole = self._factored(data.Z)
            self.ridge_ = ridges[0]
            self.readout_weights_ = whole.readout(self.ridge_ * whole.square)
        self.last_values_ = [z[-features.memory - 1 :] for z in data.Z]
        return self

    def predict(self, horizon: int, *, warm_up: SequencesLike = None) -> Answers:
        """Return the next values, each of which is the input of the one after it.

        Parameters
        ----------
        horizon : int
            How many values to forecast.
        warm_up : array or list of arrays, default=None
            Series whose continuation is forecast. None: those of `fit`.

        Returns
        -------
        array of shape (horizon,) or (horizon, n_dims), or list of such arrays
            The forecast, in the form of the series.
        """
        check_is_fitted(self)
        check_steps_ahead(horizon, updates=False)
        opened, last = self.form_.ends, self.last_values_
        if warm_up is not None:
            opened, memory = self.form_.open(warm_up, "warm_up", gaps=False), self.features_.memory + 1
            if opened.lengths.min() < memory:
                raise ValueError(f"a warm-up has {opened.lengths.min()} steps; this model looks back over {memory}.")
            last = [z[-memory:] for z in self.form_.standardised(opened.X)]
        with one_blas_thread():
            Y = self._loop(self.readout_weights_, np.stack(last, axis=1), horizon)
        return self.form_.answer(list(np.swapaxes(Y, 0, 1) * self.target_scale_ + self.target_mean_), opened)

    def _checked(self, dims: int) -> tuple[PolynomialFeatures, list[float]]:
        """Return the products of so many dimensions and the ridges to choose from, or refuse the parameters."""
        for name in ("delays", "stride", "degree"):
            check_integer(name, getattr(self, name), 1)
        features = PolynomialFeatures(dims, self.delays, self.stride, tuple(range(1, self.degree + 1)))
        if features.count > MAX_PRODUCTS:
            raise ValueError(
                f"delays={self.delays} and degree={self.degree} make {features.count} products of {features.inputs} "
                f"dimensions; at most {MAX_PRODUCTS} are computed. Lower either, or use an ESNForecaster."
            )
        if isinstance(self.ridge, str) and self.ridge != "auto":
            raise ValueError(f"ridge={self.ridge!r}; expected a number, a list of numbers, or 'auto'.")
        ridges = (
            list(ORTHOGONAL_RIDGES)
            if isinstance(self.ridge, str)
            else np.atleast_1d(np.asarray(self.ridge, float)).tolist()
        )
        if not ridges or not all(np.isfinite(r) and r >= 0 for r in ridges):
            raise ValueError(f"ridge={self.ridge!r:.80}; expected numbers >= 0.")
        if not 0 < float(self.validation_fraction) < 1:
            raise ValueError(f"validation_fraction={self.validation_fraction!r}; expected a number between 0 and 1.")
        return features, ridges

    def _factored(self, Z: list[Array]) -> OrthogonalFactors:
        """Return the factors of the products of all series, for the differences to the next values."""
        memory = self.features_.memory
        F = np.vstack([self.features_.of_series(z[:-1]) for z in Z])
        T = np.vstack([np.diff(z[memory:], axis=0) for z in Z])
        return OrthogonalFactors.of(np.hstack([F, np.ones((len(F), 1))]), T)

    def _loop(self, U: Array, window: Array, horizon: int) -> Array:
        """Return closed loops (horizon, B, dims) from the last values (memory + 1, B, dims)."""
        features, past, out = self.features_, list(window), []
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(horizon):
                delayed = [past[-1 - j * features.stride] for j in range(features.delays)]
                out.append(past[-1] + features.of_windows(delayed) @ U[:-1] + U[-1])
                past = [*past[1:], out[-1]]
        return np.array(out)

    def _valid_steps(self, U: Array, Z: list[Array], cuts: list[int]) -> float:
        """Return the mean valid time of closed loops from the first halves of the held-out ends, to their ends."""
        total, count, memory = 0.0, 0, self.features_.memory
        for z, cut in zip(Z, cuts, strict=True):
            left = len(z) - cut
            for at in np.unique(cut + np.linspace(0, left // 2, LOOPS_PER_SERIES, endpoint=False).astype(int)):
                alive, window = True, z[at - memory - 1 : at][:, None]
                while alive and at < len(z):
                    Y = self._loop(U, window, min(STEPS_PER_PASS, len(z) - at))
                    window = np.concatenate([window, Y])[-memory - 1 :]
                    wrong = step_errors(z[at : at + len(Y)], Y[:, 0], np.ones(z.shape[1])) >= VALID_ERROR
                    total += float(wrong.argmax() if wrong.any() else len(Y))
                    alive, at = not wrong.any(), at + len(Y)
                count += 1
        return total / max(count, 1)
