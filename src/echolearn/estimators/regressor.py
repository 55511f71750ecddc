"""ESNRegressor: fit / predict / score, as scikit-learn has it."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from echolearn.estimators.fitting import Callback, EchoStateNetwork, store
from echolearn.estimators.streams import EstimatorStream
from echolearn.execution.threads import chosen
from echolearn.readout.online import LMS, RLS
from echolearn.sequences.batch import Pooling, scaling
from echolearn.sequences.validation import flat

Array = NDArray[Any]


class ESNRegressor(RegressorMixin, EchoStateNetwork):
    """An echo state network for values a step, or for one (or one vector) a sequence, all weights learned.

    Targets are standardised inside, so that step sizes and ridges mean the same for every scale. `bidirectional` as in
    ESNClassifier.
    """

    def __init__(
        self,
        hidden_units: int = 300,
        *,
        spectral_radius: float | None = 0.9,
        connections: int = 10,
        topology: Any = "random",
        bidirectional: bool = False,
        input_scaling: Any = 0.5,
        bias_scaling: float = 0.1,
        feedback: bool = False,
        feedback_scaling: float = 0.1,
        activation: str = "tanh",
        leak: float | tuple[float, float] = (0.3, 1.0),
        learn_leak: bool = True,
        plasticity: float | None = None,
        initial_state: Any = None,
        washout: int = 0,
        direct: bool = True,
        pooling: Pooling = "mean",
        ridge: Any = "auto",
        learn: str = "both",
        lookback: int | None = None,
        targets: str = "all",
        gradient: str = "exact",
        case: int = 2,
        optimizer: str = "adam",
        momentum: str = "fista",
        step_size: float | None = None,
        epochs: int | None = None,
        batch_size: int | None = 8,
        clip: float | None = None,
        renormalize: bool = False,
        validation_fraction: float = 0.1,
        patience: int | str | None = "auto",
        dtype: str = "float32",
        random_state: int | None = 0,
        verbose: int = 0,
    ):
        store(self, locals())

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        lengths: Any = None,
        validation: tuple[Any, Any] | None = None,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | None = None,
        engine: Any = None,
    ) -> Self:
        """X: (steps, features), or a list of such arrays, or one with `lengths`; y: values a step (steps,) or
        (steps, outputs), or one value or vector a sequence. `validation`, `callback`, `checkpoint` and
        `engine` as in ESNClassifier."""
        with chosen(engine):
            return self._fit(X, y, lengths, validation, callback, checkpoint)

    def partial_fit(self, X: Any, y: Any, *, lengths: Any = None) -> Self:
        """Adds sequences to what the readout was fitted on: the same U as from all of them at once.

        The first call is a fit. Weights learned in it stay, and so does the scale of the targets.
        """
        return self._partial_fit(X, y, lengths)

    def stream(self, *, online: RLS | LMS | None = None) -> EstimatorStream:
        """The network running on, a frame or a chunk at a time; with `online` it learns on (docs/streams.md)."""
        check_is_fitted(self)
        return EstimatorStream(self, online)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @property
    def _classes(self) -> None:
        return None

    def _encode(self, entries: list[Any], fitting: bool) -> list[Any]:
        values = np.asarray(flat(entries, self.per_step_))
        if values.dtype.kind not in "fiub":
            try:
                values = values.astype(np.float64)
            except (TypeError, ValueError, OverflowError):
                raise ValueError(f"y holds {values.dtype} entries; expected numbers.") from None
        if values.ndim > 2:
            raise ValueError(f"y has shape {values.shape}; expected a value or a row of values each.")
        if fitting:
            self._one_value = values.ndim == 1
            self.target_mean_, self.target_scale_ = scaling(values.reshape(len(values), -1), "y")
        wide = values.size // len(values)
        if wide != len(self.target_mean_):
            raise ValueError(f"y has {wide} values each; expected {len(self.target_mean_)}, as when fitting.")
        shape = (-1, wide)
        with np.errstate(over="ignore"):
            scaled = [
                (np.reshape(e, shape).astype(np.float64) - self.target_mean_) / self.target_scale_ for e in entries
            ]
        farthest = max(float(np.abs(e).max()) for e in scaled)
        if not farthest < float(np.finfo(self.dtype).max) ** 0.5:
            raise ValueError(
                f"y holds values {farthest:.3g} standard deviations from those fitted; {self.dtype} has no room for "
                "their squares. Look for errors in y, or fit anew."
            )
        return scaled if self.per_step_ else [e[0] for e in scaled]

    def _decided(self, Y: Array) -> Array:
        values = Y.astype(np.float64) * self.target_scale_ + self.target_mean_
        return np.asarray(values[:, 0] if self._one_value else values)

    @staticmethod
    def _loss(Y: Array, T: Array) -> float:
        return float(((Y - T) ** 2).sum() / T.shape[1])

    @property
    def _fed_back(self) -> Callable[[Array], Array]:
        return np.asarray

    def predict(self, X: Any, *, lengths: Any = None) -> Any:
        """Values of each step, or of each sequence, in the form X came in."""
        given, outputs = self._outputs(X, lengths)
        return self._answer(given, [self._decided(Y) for Y in outputs])

    def score(self, X: Any, y: Any, *, lengths: Any = None) -> float:
        """R² over all steps (or sequences), averaged over outputs."""
        from sklearn.metrics import r2_score

        true, predicted = self._compared(X, y, lengths)
        if true.dtype.kind not in "fiub" or true.size != predicted.size:
            raise ValueError(f"y holds {true.dtype} of shape {true.shape}; expected numbers, {predicted.shape}.")
        return float(r2_score(true.reshape(predicted.shape), predicted))
