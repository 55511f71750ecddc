"""ReservoirFeatures: the states of a reservoir as features, for any readout of scikit-learn."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from echolearn.estimators._base import SequenceEstimator, store_parameters
from echolearn.estimators._classifier import ESNClassifier
from echolearn.estimators._regressor import ESNRegressor
from echolearn.fitting.data import check_names
from echolearn.gradients.loss import GRADIENT_RULES
from echolearn.reservoir import Reservoir
from echolearn.reservoir._rules import RESERVOIR_RULES
from echolearn.reservoir._topologies import Topology
from echolearn.sequences.checks import check_finite
from echolearn.sequences.opening import Sequences, check_long_enough, open_sequences, unpack
from echolearn.states import harvest
from echolearn.validation import (
    BOOLEAN,
    Answers,
    Array,
    Rule,
    SequencesLike,
    any_of,
    as_generator,
    check_each,
    check_integer,
    one_of,
    or_none,
    whole_number,
)

RULES: dict[str, Rule] = {
    **RESERVOIR_RULES,
    "reservoir": Rule(
        lambda v: v is None or isinstance(v, (Reservoir, ESNClassifier, ESNRegressor)),
        "None (one is drawn), a Reservoir, an ESNClassifier or an ESNRegressor",
    ),
    "pooling": any_of(
        or_none(one_of("mean", "last"), "one row per step"),
        whole_number(1),
        expected="None (one row per step), 'mean', 'last', or a whole number >= 1 (into how many parts time is cut, "
        "each with its own mean)",
    ),
    "washout": GRADIENT_RULES["washout"],
    "direct": BOOLEAN,
    "dtype": one_of("float32", "float64"),
}


class ReservoirFeatures(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """The states of a reservoir as features for any estimator of scikit-learn.

    The reservoir is drawn at random, given, or that of an estimator which has learned it.

    Parameters
    ----------
    reservoir : Reservoir, ESNClassifier or ESNRegressor, default=None
        Where the states come from. None: a reservoir that `fit` draws. A `Reservoir`: this one. A fitted estimator: its
        learned network. An estimator that is not fitted (as after `clone`, and so in every fold of a cross-validation):
        a copy of it, which `fit` fits to X and y.
    pooling : {"mean", "last"} or int, default=None
        None: one row per step. Otherwise one row per sequence: the mean of its states, the last one, or the means over
        this many equal parts of time side by side.
    direct : bool, default=False
        Whether the inputs are further columns after the states, as for the readout of an estimator.
    washout : int, default=0
        Steps at the start of each sequence that are not pooled. With one row per step, no step is left out.
    hidden_units : int, default=300
        The number of hidden units. This and the following parameters are for a reservoir that is drawn.
    spectral_radius : float or None, default=0.9
        The spectral radius to which the recurrent weights are scaled. Larger values remember longer. None leaves
        a `topology` matrix unscaled.
    connections : int, default=10
        The number of units from which each unit receives connections.
    topology : str or square matrix, default="random"
        Which units are connected, by name or as a matrix (docs/howto/reservoirs.md).
    input_scaling : float or array of shape (n_features,), default=0.5
        Input weights are drawn uniformly from [-input_scaling, input_scaling], for all features or for each.
    bias_scaling : float, default=0.1
        The bias of the units is drawn uniformly from [-bias_scaling, bias_scaling]. 0: no bias.
    activation : {"tanh", "sigmoid", "relu", "identity"}, default="tanh"
        The activation function of the units.
    leak : float, (float, float) or array of shape (hidden_units,), default=(0.3, 1.0)
        The leak of the units, in (0, 1]: 1 for no leak, small for slow units. A pair spreads the leaks evenly in
        logarithm between its ends.
    dtype : {"float32", "float64"}, default="float32"
        The precision of the states. An estimator has its own.
    random_state : int, numpy.random.Generator or None, default=0
        The seed of the weights. None: another reservoir in every fit.

    Attributes
    ----------
    reservoir_ : Reservoir
        The reservoir that makes the states.
    estimator_ : ESNClassifier, ESNRegressor or None
        The fitted estimator, if `reservoir` is an estimator.
    n_features_in_ : int
        The number of features.

    See Also
    --------
    ESNClassifier.states : The states of a fitted estimator.
    FrameWise : A transformer of scikit-learn on every frame.

    Examples
    --------
    One label per sequence, by a logistic regression on mean states:

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from echolearn import ReservoirFeatures
    >>> rng = np.random.default_rng(0)
    >>> X = [np.sin(rng.uniform(0.2, 0.3) * (1 + k % 2) * np.arange(50))[:, None] for k in range(20)]
    >>> y = [k % 2 for k in range(20)]
    >>> model = make_pipeline(ReservoirFeatures(hidden_units=30, pooling="mean"), LogisticRegression(C=100))
    >>> model.fit(X, y).predict(X).shape
    (20,)

    One row per step, in the form of X:

    >>> [states.shape for states in ReservoirFeatures(hidden_units=30).fit_transform(X[:2])]
    [(50, 30), (50, 30)]
    """

    reservoir_: Reservoir
    estimator_: ESNClassifier | ESNRegressor | None
    n_features_in_: int

    def __init__(
        self,
        reservoir: Reservoir | ESNClassifier | ESNRegressor | None = None,
        *,
        pooling: str | int | None = None,
        direct: bool = False,
        washout: int = 0,
        hidden_units: int = 300,
        spectral_radius: float | None = 0.9,
        connections: int = 10,
        topology: Topology = "random",
        input_scaling: ArrayLike = 0.5,
        bias_scaling: float = 0.1,
        activation: str = "tanh",
        leak: float | tuple[float, float] | Array = (0.3, 1.0),
        dtype: str = "float32",
        random_state: int | np.random.Generator | None = 0,
    ):
        store_parameters(self, locals())

    def fit(self, X: SequencesLike, y: SequencesLike = None) -> Self:
        """Draw the reservoir, or take the given one; fit an estimator that is not fitted yet.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths.
        y : array or list of arrays, default=None
            Targets, as the estimator takes them; only an estimator that is not fitted yet needs them.

        Returns
        -------
        ReservoirFeatures
            The transformer itself.
        """
        check_each(self.get_params(deep=False), RULES)
        given, esn = self.reservoir, None
        if isinstance(given, SequenceEstimator):
            esn = given if given.__sklearn_is_fitted__() else _fitted(clone(given), X, y)
            reservoir = esn.reservoir_
            self._open(X, reset=True)
        else:
            n_features = self._open(X, reset=True).X[0].shape[1]
            reservoir = self._drawn(n_features) if given is None else _usable(given, n_features)
        self.estimator_, self.reservoir_ = esn, reservoir
        return self

    def _open(self, X: SequencesLike, *, reset: bool) -> Sequences:
        """Check sequences; with `reset` their features become those that are expected from then on."""
        unpacked = unpack(X)
        if unpacked.features is not None:
            check_names(self, unpacked, "time_first", reset=reset)
        elif reset and hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        given = open_sequences(unpacked, None, None if reset else self.n_features_in_, type(self).__name__)
        if reset:
            self.n_features_in_ = given.X[0].shape[1]
        return given

    def _drawn(self, n_features: int) -> Reservoir:
        """Return a random reservoir."""
        return Reservoir.random(
            n_features,
            self.hidden_units,
            spectral_radius=self.spectral_radius,
            connections=self.connections,
            topology=self.topology,
            input_scaling=self.input_scaling,
            bias_scaling=self.bias_scaling,
            activation=self.activation,
            leak=self.leak,
            random_state=self.random_state,
        )

    def transform(self, X: SequencesLike) -> Answers:
        """Return the states of sequences, or what pooling makes of them.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths.

        Returns
        -------
        array or list of arrays
            One row per step, in the form of X; with `pooling`, one row per sequence.
        """
        check_is_fitted(self)
        esn, given = self.estimator_, self._open(X, reset=False)
        states = harvest(self.reservoir_, given.X, dtype=self.dtype) if esn is None else given.split(esn.states(X))
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large for this dtype is refused below
            rows = [self._seen(np.asarray(H), x) for H, x in zip(states, given.X, strict=True)]
            if self.pooling is not None:
                check_long_enough(given, self.washout)
                rows = [self._pooled(row) for row in rows]
        for row in rows:
            check_finite(row, "features")
        return given.in_given_form(rows) if self.pooling is None else np.stack(rows)

    def _seen(self, H: Array, x: Array) -> Array:
        """Return states, with the inputs beside them if `direct` says so."""
        return np.hstack([H, x.astype(H.dtype)]) if self.direct else H

    def _pooled(self, rows: Array) -> Array:
        """Return one row for the rows of a sequence."""
        backward = self.reservoir_.backward
        if self.pooling == "last":
            last: Array = rows[-1].copy()
            if backward is not None:
                last[: len(backward)][backward] = rows[0, : len(backward)][backward]  # where they have seen all
            return last
        n, parts = len(rows) - self.washout, self._parts  # no part is empty: neighbours share a step where n is small
        bounds = [(self.washout + i * n // parts, self.washout - (-(i + 1) * n // parts)) for i in range(parts)]
        return np.concatenate([rows[start:stop].mean(axis=0) for start, stop in bounds])

    @property
    def _parts(self) -> int:
        """The number of parts of time that are pooled separately."""
        return 1 if self.pooling is None or isinstance(self.pooling, str) else int(self.pooling)

    def get_feature_names_out(self, input_features: list[str] | None = None) -> Array:
        """Return the names of the features that `transform` gives.

        Parameters
        ----------
        input_features : list of str, default=None
            The names of the inputs, for the columns of `direct`. None: those of the fit, or x0, x1, ...

        Returns
        -------
        array of str
            One name per column: "reservoir0", "reservoir1", ...; with pooling over parts of time they begin with
            "part0_", "part1_", ...
        """
        check_is_fitted(self)
        names = [f"reservoir{i}" for i in range(self.reservoir_.N)]
        named = hasattr(self, "feature_names_in_")
        known = list(self.feature_names_in_) if named else [f"x{i}" for i in range(self.n_features_in_)]
        inputs = known if input_features is None else list(input_features)
        if len(inputs) != self.n_features_in_ or (named and inputs != known):
            raise ValueError(
                f"input_features is not equal to feature_names_in_: given {inputs!r:.80}; expected the names of the "
                f"{self.n_features_in_} features of the fit, or None. They should have length equal to that number."
            )
        names += inputs if self.direct else []
        parts = range(self._parts)
        return np.array([f"part{p}_{name}" for p in parts for name in names] if len(parts) > 1 else names, object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "reservoir_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # states have the precision `dtype`
        tags.target_tags.required = isinstance(self.reservoir, SequenceEstimator)
        return tags


def _fitted(esn: ESNClassifier | ESNRegressor, X: SequencesLike, y: SequencesLike) -> ESNClassifier | ESNRegressor:
    """Return the estimator, fitted; raise ValueError without targets."""
    if y is None:
        raise ValueError(
            f"this {type(esn).__name__} is not fitted, and y=None: give fit(X, y) the targets to learn from, a fitted "
            "estimator, or a Reservoir."
        )
    return esn.fit(X, y)


def _usable(reservoir: Reservoir, n_features: int) -> Reservoir:
    """Return a given reservoir if states can be made of the inputs alone, or raise ValueError."""
    if reservoir.W_fb is not None:
        raise ValueError("reservoir has feedback weights, but no readout to feed back. Give a fitted estimator.")
    if reservoir.n_in != n_features:
        raise ValueError(f"reservoir has {reservoir.n_in} inputs; X has {n_features} features.")
    return reservoir


class ES2NFeatures(TransformerMixin, BaseEstimator):
    """The states of an edge-of-stability echo state network (ES²N).

    Each state is a mixture of a nonlinear step and a rotation of the one before::

        h_t = proximity tanh(W'x_t + W_rec h_{t-1} + bias) + (1 - proximity) O h_{t-1}

    O is a random orthogonal matrix. With a small `proximity` the network stays near the edge of stability, where it
    remembers almost as long as a linear rotation does, and is still nonlinear. The weights are drawn and not learned;
    use a readout of scikit-learn behind it, with `FrameWise` for sequences.

    Parameters
    ----------
    hidden_units : int, default=100
        The number of units N.
    proximity : float, default=0.1
        The share of the nonlinear step, in (0, 1]; 1 is an ordinary echo state network.
    spectral_radius : float, default=0.9
        The spectral radius of W_rec.
    connections : int, default=10
        The number of units from which each unit receives connections.
    input_scaling : float, default=0.1
        W is uniform between minus and plus this number.
    bias_scaling : float, default=0.0
        The bias is uniform between minus and plus this number.
    random_state : int, numpy.random.Generator or None, default=0
        The seed of all weights.

    Attributes
    ----------
    reservoir_ : Reservoir
        W, W_rec and the bias.
    rotation_ : array of shape (N, N)
        O.
    n_features_in_ : int
        The number of inputs.

    References
    ----------
    Ceni and Gallicchio, Edge of stability echo state network, IEEE Transactions on Neural Networks and Learning
    Systems 36 (2025).

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import ES2NFeatures
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> ES2NFeatures(20).fit_transform(X).shape
    (50, 20)
    """

    def __init__(
        self,
        hidden_units: int = 100,
        *,
        proximity: float = 0.1,
        spectral_radius: float = 0.9,
        connections: int = 10,
        input_scaling: float = 0.1,
        bias_scaling: float = 0.0,
        random_state: int | np.random.Generator | None = 0,
    ):
        self.hidden_units = hidden_units
        self.proximity = proximity
        self.spectral_radius = spectral_radius
        self.connections = connections
        self.input_scaling = input_scaling
        self.bias_scaling = bias_scaling
        self.random_state = random_state

    def fit(self, X: SequencesLike, y: object = None) -> Self:
        """Draw the weights for the features of X.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several; only the number of features counts.
        y : object
            Ignored; here for scikit-learn.

        Returns
        -------
        ES2NFeatures
            The transformer itself.
        """
        N = check_integer("hidden_units", self.hidden_units, 1)
        if not 0 < float(self.proximity) <= 1:
            raise ValueError(f"proximity={self.proximity!r}; expected a number in (0, 1].")
        given = open_sequences(X)
        weights, rotation = as_generator(self.random_state).spawn(2)
        self.n_features_in_ = int(given.X[0].shape[1])
        self.reservoir_ = Reservoir.random(
            self.n_features_in_,
            N,
            spectral_radius=self.spectral_radius,
            connections=self.connections,
            input_scaling=self.input_scaling,
            bias_scaling=self.bias_scaling,
            random_state=weights,
        )
        Q, R = np.linalg.qr(rotation.standard_normal((N, N)))
        self.rotation_ = Q * np.sign(np.diagonal(R))  # all rotations and reflections are equally likely
        return self

    def transform(self, X: SequencesLike) -> Answers:
        """Return the states, one row per step, in the form of X; every sequence starts from zero.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several.

        Returns
        -------
        array of shape (n_steps, N), or list of such arrays
            The states.
        """
        check_is_fitted(self)
        given = open_sequences(X, n_features=self.n_features_in_)
        return given.in_given_form([self._states(np.asarray(x, dtype=np.float64)) for x in given.X])

    def _states(self, X: Array) -> Array:
        r, share = self.reservoir_, float(self.proximity)
        drive = X @ r.W if r.bias is None else X @ r.W + r.bias
        W_rec, O = r.W_rec.toarray(), (1 - share) * self.rotation_
        H, h = np.empty_like(drive), np.zeros(r.N)
        for t, z in enumerate(drive):
            h = share * np.tanh(z + W_rec @ h) + O @ h
            H[t] = h
        return H
