"""The stream of a pipeline, in which frames pass through the transformers and then the network."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from os import PathLike
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from echolearn.modelfile.snapshot import fingerprint, read_snapshot, write_snapshot
from echolearn.persistence.transformers import TRANSFORMERS, outputs, transformer_parts
from echolearn.streams._estimator import EstimatorStream
from echolearn.validation import Array, check_columns, check_path


class PipelineStream:
    """The stream of a pipeline, in which frames pass through the transformers and then `network`, the stream with
    `state`, `steps` and `readout_weights`."""

    def __init__(
        self, transformers: Sequence[BaseEstimator], network: EstimatorStream, feature_names: Array | None = None
    ):
        self._transformers, self.network, self.feature_names = transformers, network, feature_names
        self._elementwise = all(TRANSFORMERS[type(transformer).__name__].elementwise for transformer in transformers)

    def _transformed(self, X: ArrayLike) -> Array:
        """Return a frame or a chunk as the network takes it, with the same bits however frames are cut into chunks."""
        check_columns(X, self.feature_names)
        try:
            given = np.asarray(X)
        except ValueError:
            raise ValueError(f"a frame holds numbers; given {X!r:.80}.") from None
        if not self._transformers:
            return given
        n_in = self._transformers[0].n_features_in_
        if given.dtype.kind not in "fiub" or given.ndim not in (1, 2) or given.shape[-1] != n_in:
            raise ValueError(
                f"a frame has shape ({n_in},) here, a chunk (steps, {n_in}), and holds numbers; given {given.shape} "
                f"of {given.dtype}."
            )
        frames = np.atleast_2d(given if given.dtype in (np.float32, np.float64) else given.astype(float))
        if len(frames) == 0:
            return np.empty((0, outputs(self._transformers[-1])))
        # a product over many rows at once may add in another order than one over a single row
        parts = [frames] if self._elementwise else [frame[None] for frame in frames]
        for transformer in self._transformers:
            parts = [transformer.transform(part) for part in parts]
        return np.concatenate(parts).reshape(*given.shape[:-1], -1)

    def predict(self, X: ArrayLike) -> Array:
        """Return the answer to the next frame, or the answers to a chunk of frames."""
        return self.network.predict(self._transformed(X))

    @available_if(lambda running: hasattr(running.network, "predict_proba"))
    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probabilities of the classes, where `predict` returns labels; only of a classifier."""
        answers: Array = self.network.predict_proba(self._transformed(X))  # type: ignore[attr-defined]
        return answers

    def learn(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Return what `predict` answers to each frame, and take a step of the online readout towards its target."""
        return self.network.learn(self._transformed(X), y)

    def reset(self, state: ArrayLike | None = None) -> Self:
        """Return to the start of a sequence, or to a given state there. What was learned stays learned."""
        self.network.reset(state)
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Save the present state of the stream, to continue later, also in another process."""
        write_snapshot(check_path("path", path), self.network.running(), self.identity())

    def resume(self, path: str | PathLike[str]) -> Self:
        """Continue where `save` was called: the same frames give the same bits from there on."""
        self.network.run_from(read_snapshot(check_path("path", path), self.network.running(), self.identity()))
        return self

    def identity(self) -> str:
        """Return a hash of all that decides on the next answers beside the running state."""
        return fingerprint([transformer_parts(t) for t in self._transformers], self.network.identity())

    def copy(self) -> Self:
        """Return an independent stream that continues from the present state."""
        return deepcopy(self)
