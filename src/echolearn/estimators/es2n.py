"""ES2NFeatures: the states of an edge-of-stability echo state network, as a transformer."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from echolearn.reservoir import Reservoir
from echolearn.sequences.opening import open_sequences
from echolearn.validation import Answers, Array, SequencesLike, as_generator, check_integer


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
