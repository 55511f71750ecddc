"""The stream of a fitted estimator: frames as the user has them, answers as the estimator gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from echolearn.fitting.codecs import ClassCodec, LabelSetCodec
from echolearn.fitting.model import FittedModel, begin_stream
from echolearn.modelfile.snapshot import fingerprint
from echolearn.readout.deep_network import DeepNetwork
from echolearn.readout.network import Network, probabilities
from echolearn.readout.online import OnlineRule
from echolearn.streams._stream import OUTPUTS_NOT_FINITE, Stream, check_frames_finite
from echolearn.validation import Array, SequencesLike, check_columns, finite_array


class EstimatorStream(Stream):
    """The stream of a fitted network, with answers as its estimator gives them: what `ESNRegressor.stream` returns.

    A later fit of the estimator does not change it. Without `warm_up` it continues the series of the fit, if it was
    one. A frame that has names must have `feature_names`, in this order; arrays are read by position.
    """

    def __init__(self, model: FittedModel, *, online: OnlineRule | None, warm_up: SequencesLike = None):
        network = model.network
        readout = network.readout
        if readout.softmax and online is not None and online.squared_error_only:
            rule = type(online).__name__
            raise ValueError(f"{rule} fits squared errors, this readout is a softmax. Use LMS(), or readout='ridge'.")
        A = None
        if online is not None and online.continues_from_gram and readout.statistics is not None:
            A = readout.statistics.G.copy()  # G + ridge I, with the intercept not penalised
            A.flat[: -1 : len(A) + 1] += readout.ridge
            A[-1, -1] = A[-1, -1] or 1.0  # without an intercept, G has nothing there
        self._codec, self._inputs = model.codec, model.inputs
        self.feature_names = np.array(model.feature_names, dtype=object) if model.feature_names else None
        self._begin(network, model.dtype, online, A)
        start, self._known = begin_stream(model, warm_up)
        if start is not None:
            self._h[:] = start.h[0]
            self._y[:] = 0 if start.y is None else start.y[0]

    def _begin(self, network: Network | DeepNetwork, dtype: str, online: OnlineRule | None, A: Array | None) -> None:
        """Start with the weights of a network."""
        assert isinstance(network, Network)
        view = network.view
        super().__init__(
            network.reservoir,
            network.readout.U,
            direct=view.direct,
            washout=view.washout,
            intercept=view.intercept,
            softmax=network.readout.softmax,
            dtype=dtype,
            online=online,
            A=A,
        )

    def reset(self, state: ArrayLike | None = None) -> Self:
        self._known = self._inputs.unknown
        return super().reset(state)

    def running(self) -> dict[str, Array]:
        return {**super().running(), "known": self._known}

    def run_from(self, arrays: Mapping[str, Array]) -> Self:
        self._known = arrays["known"].copy()
        return super().run_from(arrays)

    def identity(self) -> str:
        return fingerprint(super().identity(), self._inputs, self._codec)

    def _frames(self, X: ArrayLike) -> tuple[Array, bool]:
        check_columns(X, self.feature_names)
        frames, one = self._given_frames(X, self._inputs.n_features)
        encoded = np.ascontiguousarray(self._inputs.encode(frames, self._dtype, self._known))
        if self._inputs.missing == "carry":
            check_frames_finite(encoded)
            self._known = self._inputs.last_known(frames, self._known)
        return encoded, one

    def _answer(self, Y: Array, one: bool) -> Array:
        answers = self._codec.decode(Y)
        return answers[0] if one else answers

    def _targets(self, y: object) -> Array:
        return self._codec.encode_frames(super()._targets(y))


class ClassifierStream(EstimatorStream):
    """The stream of a fitted classifier: labels, or probabilities. It is what `ESNClassifier.stream` returns."""

    _codec: ClassCodec | LabelSetCodec

    @property
    def classes(self) -> Array:
        """The labels, in the order of the columns of `predict_proba`."""
        return self._codec.labels.copy()

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probabilities of the classes, where `predict` returns labels. Each call takes new frames."""
        frames, one = self._frames(X)
        P = self._codec.probabilities(self._run(frames), self._softmax)
        return P[0] if one else P

    def _targets(self, y: object) -> Array:
        return self._codec.encode_frames(y)


class _DeepLayers(EstimatorStream):
    """The steps of a stream that differ for a deep network: from frames to states and outputs."""

    def _begin(self, network: Network | DeepNetwork, dtype: str, online: OnlineRule | None, A: Array | None) -> None:
        assert isinstance(network, DeepNetwork)
        if network.reservoir.backward is not None or not network.per_step:
            raise ValueError(
                "a stream has not seen the end of a sequence, where half of the units of bidirectional=True begin, and "
                "up to which one answer per sequence is pooled. Predict whole sequences, or fit another network."
            )
        self._network, self._dtype, self._online = network, np.dtype(dtype), online
        self._U = self._fitted_U = network.readout.U
        self._softmax, self._washout = network.readout.softmax, 0
        self._P = np.empty(0) if online is None else online.start(len(self._U), A)
        self._seen = np.empty(0)  # the features of the newest frame
        self.reset()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._network}, after {self.steps} steps)"

    def reset(self, state: ArrayLike | None = None) -> Self:
        """Return to the start of a sequence, or to given states of all layers. What was learned stays learned."""
        N = self._network.N
        h = np.zeros(N) if state is None else finite_array("state", state)
        if h.shape != (N,):
            raise ValueError(f"state has shape {h.shape}; expected {N} finite numbers, one per unit of all layers.")
        self._known, self.steps = self._inputs.unknown, 0
        self._h, self._y = h.astype(self._dtype), np.zeros(self._U.shape[1], self._dtype)
        return self

    def identity(self) -> str:
        """Return a hash of all that decides on the next answers beside the running state."""
        weights = [dict(stack.weights) for stack in self._network.stacks]
        return fingerprint(weights, self._fitted_U, str(self._dtype), self._online, self._inputs, self._codec)

    def _run(self, X: Array) -> Array:
        check_frames_finite(X)
        if not len(X):
            return np.empty((0, self._U.shape[1]), self._dtype)
        found = self._network.features([X], self._dtype, self._h[None])
        rows, _ = self._network.rows(found)
        U = self._U.astype(self._dtype)
        Y = np.asarray(rows @ U[:-1] + U[-1])
        if not np.isfinite(Y).all():
            raise FloatingPointError(OUTPUTS_NOT_FINITE)
        self._h, self._seen = np.concatenate([one.ends()[0] for one in found]), rows[-1]
        self._y = probabilities(Y[-1:])[0] if self._softmax else Y[-1]
        self.steps += len(X)
        return Y

    def _regressors(self, x: Array) -> Array:
        return np.append(self._seen, 1.0)

    def _lay_out(self) -> None:
        """Do nothing: U is used as it is."""


class DeepStream(_DeepLayers, EstimatorStream):
    """The stream of a deep regressor."""


class DeepClassifierStream(_DeepLayers, ClassifierStream):
    """The stream of a deep classifier."""
