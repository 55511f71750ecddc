"""The stream of a fitted estimator: frames as the user has them, answers as the estimator gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from echolearn.fitting.codecs import ClassCodec, LabelSetCodec
from echolearn.fitting.model import FittedModel, begin_stream
from echolearn.modelfile.snapshot import fingerprint
from echolearn.readout.online import OnlineRule
from echolearn.streams._stream import Stream, check_frames_finite
from echolearn.validation import Array, SequencesLike, check_columns


class EstimatorStream(Stream):
    """The stream of a fitted network, with answers as its estimator gives them: what `ESNRegressor.stream` returns.

    A later fit of the estimator does not change it. Without `warm_up` it continues the series of the fit, if it was
    one. A frame that has names must have `feature_names`, in this order; arrays are read by position.
    """

    def __init__(self, model: FittedModel, *, online: OnlineRule | None, warm_up: SequencesLike = None):
        network = model.network
        readout, view = network.readout, network.view
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
        super().__init__(
            network.reservoir,
            readout.U,
            direct=view.direct,
            washout=view.washout,
            intercept=view.intercept,
            softmax=readout.softmax,
            dtype=model.dtype,
            online=online,
            A=A,
        )
        start, self._known = begin_stream(model, warm_up)
        if start is not None:
            self._h[:] = start.h[0]
            self._y[:] = 0 if start.y is None else start.y[0]

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
