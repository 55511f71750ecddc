"""ESNClassifier: fit / predict / score, as scikit-learn has it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from os import PathLike
from typing import Any, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from echolearn.estimators import ensemble as blocks
from echolearn.estimators.data_warnings import warn_of_labels
from echolearn.estimators.fitting import Callback, EchoStateNetwork, store
from echolearn.estimators.streams import ClassifierStream
from echolearn.execution.threads import chosen
from echolearn.modelfile.checkpoint import Checkpoint
from echolearn.readout import conjugate_gradients as iterative
from echolearn.readout import softmax
from echolearn.readout import statistics as readout
from echolearn.readout.online import LMS, RLS
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import Data, Pooling
from echolearn.sequences.validation import flat
from echolearn.training.loop import History
from echolearn.training.objectives.cross_entropy import Refiner, refine
from echolearn.training.progress import say
from echolearn.validation.caller import user_stacklevel

Array = NDArray[Any]

REFINED = (3.0,)  # the penalty of a softmax readout that is refined; on AN4, 300 units, the one chosen


def _has_sums(esn: Any) -> bool:
    if esn.readout == "ridge":
        return True
    raise AttributeError(
        "partial_fit adds to the sums of a ridge readout; a softmax readout has none and needs all the data at once. "
        "Set readout='ridge', or learn on a stream: stream(online=LMS())."
    )


class ESNClassifier(ClassifierMixin, EchoStateNetwork):
    """An echo state network for a label a step, or one a sequence, with all its weights learned.

    Everything is a keyword; the defaults learn W, W_rec and the leaks on mini-batches and end in a softmax
    readout. `ESNClassifier.paper(hidden_units)` has the paper's own settings. With `bidirectional=True` half of the
    hidden_units read every sequence from its end: for whole sequences, not for streams.
    """

    def __init__(
        self,
        hidden_units: int = 300,
        *,
        blocks: int | None = None,
        spectral_radius: float | None = 0.9,
        connections: int = 10,
        topology: Any = "random",
        bidirectional: bool = False,
        input_scaling: Any = 0.1,
        bias_scaling: float = 0.1,
        feedback: bool = False,
        feedback_scaling: float = 0.1,
        activation: str = "tanh",
        leak: float | tuple[float, float] = (0.03, 0.9),
        learn_leak: bool = True,
        plasticity: float | None = None,
        initial_state: Any = None,
        washout: int = 0,
        direct: bool = True,
        pooling: Pooling = "mean",
        ridge: Any = "auto",
        readout: str = "softmax",
        learn: str = "both",
        lookback: int | None = None,
        targets: str = "all",
        gradient: str = "exact",
        case: int = 2,
        optimizer: str = "adam",
        momentum: str = "fista",
        step_size: float | None = None,
        epochs: int | None = None,
        refine_epochs: int = 3,
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

    @classmethod
    def paper(cls, hidden_units: int, **changes: Any) -> ESNClassifier:
        """The paper's settings: sigmoid units, λ = 3.9, μ = 1e-8, α = 0.07, FISTA on the whole data with
        clipped gradients, W_rec renormalised, ridge readout, no leak. `changes` replace single ones.

        The paper does not say at which norm it clips: 8 was best of 1, 4 and 8 on validation data.

        `learn="none"` is its fixed ESN; `learn="input", lookback=1` and `learn="both", lookback=1` or 3 are the
        columns of its table.
        """
        own: dict[str, Any] = {
            "blocks": 1,
            "spectral_radius": 3.9,
            "activation": "sigmoid",
            "leak": 1.0,
            "learn_leak": False,
            "bias_scaling": 0.0,
            "ridge": 1e-8,
            "readout": "ridge",
            "lookback": 3,
            "optimizer": "fista",
            "step_size": 0.07,
            "epochs": 40,
            "batch_size": None,
            "clip": 8.0,
            "renormalize": True,
            "validation_fraction": 0.0,
            "patience": None,
        }
        return cls(hidden_units, **{**own, **changes})

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
        """X: (steps, features), or a list of such arrays, or one with `lengths`; y: a label a step, or one a
        sequence. `validation=(X, y)` decides on stopping and strengths instead of held-back sequences.
        `callback(row)` is called after each epoch; return True to stop. `checkpoint`: a folder where the state
        is kept after each epoch and, in long ones, every five minutes; the same fit, started again, goes on from there
        and ends in the same bits. `engine`: "dask", a scheduler's address or a `distributed.Client`, to work on a
        cluster (docs/scaling.md)."""
        with chosen(engine):
            return self._fit(X, y, lengths, validation, callback, checkpoint)

    @available_if(_has_sums)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, lengths: Any = None) -> Self:
        """Adds sequences to what the (ridge) readout was fitted on: the same U as from all of them at once.

        The first call is a fit; name all `classes` there if its y may lack some. Weights learned in it stay.
        """
        if self._blocks > 1:
            raise ValueError(
                f"partial_fit goes on with the sums of one readout of all units, and these {self.hidden_units} learn "
                f"in {self._blocks} blocks with one each. Set blocks=1, or learn='none'."
            )
        if classes is not None:
            named = _named(classes)
            if hasattr(self, "classes_") and not np.array_equal(named, self.classes_):
                raise ValueError(
                    f"classes={classes!r:.80}; expected those of the first call, {self.classes_.tolist()}."
                )
            self._named_classes = named
        try:
            return self._partial_fit(X, y, lengths)
        finally:
            self.__dict__.pop("_named_classes", None)

    def stream(self, *, online: RLS | LMS | None = None) -> ClassifierStream:
        """The network running on, a frame or a chunk at a time; with `online` it learns on (docs/streams.md)."""
        check_is_fitted(self)
        return ClassifierStream(self, online)

    @property
    def _blocks(self) -> int:
        if self.learn == "none" or self.epochs == 0:
            return 1  # nothing is learned but one readout of all units
        random = isinstance(self.topology, str) and self.topology == "random"  # any other is meant for all units
        count = max(1, round(self.hidden_units / blocks.UNITS)) if random else 1
        most = self.hidden_units // 2 if self.bidirectional else self.hidden_units
        return int(max(1, min(most, self.blocks or count)))

    def _fit_anew(self, *arguments: Any) -> bool:
        return super()._fit_anew(*arguments) if self._blocks == 1 else blocks.fit(self, self._blocks, *arguments)

    @property
    def _classes(self) -> int:
        return len(self.classes_)

    def _encode(self, entries: list[Any], fitting: bool) -> list[Any]:
        labels = flat(entries, self.per_step_)
        if fitting:
            if labels.ndim == 2 and labels.shape[1] == 1:
                labels = column_or_1d(labels, warn=True)
                entries = [e.ravel() for e in entries]
            if labels.ndim > 1:
                raise ValueError(f"y has shape {labels.shape}; expected one label each, not a row of them.")
            try:
                with warnings.catch_warnings(action="ignore", category=UserWarning):  # of many classes: told below
                    check_classification_targets(labels)
                self.classes_ = getattr(self, "_named_classes", np.unique(labels))
            except TypeError:
                kinds = sorted({type(label).__name__ for label in labels})
                raise ValueError(f"y mixes labels of types {kinds}; use one type, for example strings.") from None
            if len(self.classes_) < 2:
                raise ValueError(
                    f"y holds only one class, {self.classes_[0]!r}; a classifier needs at least 2 classes."
                )
            if not hasattr(self, "_named_classes"):  # of partial_fit: other labels may come later
                warn_of_labels(labels, stacklevel=1 + user_stacklevel())
        try:
            unknown = np.setdiff1d(labels, self.classes_)
        except TypeError:  # labels of another type than the classes, which cannot be ordered among them
            unknown = np.array(
                [e for e in labels.tolist() if e not in self.classes_.tolist()] or labels.tolist(), object
            )
        if len(unknown):
            raise ValueError(f"y holds labels that were not there when fitting: {unknown[:5].tolist()}.")
        numbers = [np.searchsorted(self.classes_, e) for e in entries]
        return numbers

    @staticmethod
    def _loss(Y: Array, T: Array) -> float:
        return float((Y.argmax(axis=1) != T).sum())

    @property
    def _fed_back(self) -> Callable[[Array], Array]:
        return softmax.probabilities if self.readout == "softmax" else np.asarray

    def _fit_readout(
        self,
        train: Data,
        spare: Data | None,
        held_out: Data | None,
        rng: np.random.Generator,
        checkpoint: Checkpoint | None = None,
    ) -> readout.Sums | iterative.Sketch:
        # A large network's U starts the softmax readout, whose penalty is chosen on what U must not have seen.
        unseen = self.readout == "softmax" and self.hidden_units >= iterative.FROM
        s = super()._fit_readout(train, None if unseen else spare, held_out, rng, checkpoint)
        self.refinement_ = History()
        if self.readout == "softmax":
            task = self._task.readout_view()
            say(self.verbose, "softmax readout ...")
            self._U, self.strength_ = softmax.refit(
                self.reservoir_,
                train,
                task,
                s,
                held_out=held_out,
                rng=rng,
                strengths=REFINED if self._refines else softmax.STRENGTHS,
                U=self._U,
            )
            self._sums = None
        return s

    def _decided(self, Y: Array) -> Array:
        return np.asarray(self.classes_[Y.argmax(axis=1)])

    def _likely(self, Y: Array) -> Array:
        turn = softmax.probabilities if self.readout == "softmax" else nearest_distribution
        return np.asarray(turn(Y.astype(np.float64)))

    @property
    def _refines(self) -> bool:
        # with one label a sequence there are too few targets for all weights to follow: it made toy tasks worse
        exact = self.learn != "none" and self.gradient == "exact" and self.per_step_
        return bool(exact and self.readout == "softmax" and self.refine_epochs > 0 and self.epochs != 0)

    def _refine(
        self,
        train: Data,
        held_out: Data | None,
        s: readout.Sums | iterative.Sketch,
        checkpoint: Checkpoint | None,
        rng: np.random.Generator,
    ) -> bool:
        if not self._refines:
            return False
        view = self._task.readout_view()

        def score(reservoir: Reservoir, V: Array) -> float:
            assert held_out is not None
            return softmax.cross_entropy(reservoir, held_out, view, V)

        def note(row: dict[str, float]) -> None:
            held = f"  valid {row['valid_cross_entropy']:.4f}" if held_out is not None else ""
            told = f"cross entropy {row['cross_entropy']:.4f}{held}"
            say(self.verbose, f"refining {row['epoch']}/{self.refine_epochs}  {told}")

        plan = self._plan(self.ridge_, self.refine_epochs)
        kept = None if checkpoint is None else checkpoint.for_stage("refining")
        refiner = Refiner(self.reservoir_, self._U, train, self._task, s, self.strength_, plan, self.refine_epochs, rng)
        self.reservoir_, self._U, self.refinement_, interrupted = refine(
            refiner, None if held_out is None else score, note, kept
        )
        return interrupted

    def _join(self, data: Data, s: readout.Sums | iterative.Sketch, rng: np.random.Generator) -> None:
        if self.readout == "softmax":
            view = self._task.readout_view()
            self._U = softmax.descend(
                self.reservoir_, data, view, s, self._U, self.strength_, rng, rate=softmax.RATE / 4
            )

    def decision_function(self, X: Any, *, lengths: Any = None) -> Any:
        """Readout outputs a class: logits, or the ridge readout's values; for two classes, their difference."""
        given, outputs = self._outputs(X, lengths)
        if len(self.classes_) == 2:
            outputs = [Y[:, 1] - Y[:, 0] for Y in outputs]
        return self._answer(given, outputs)

    def predict(self, X: Any, *, lengths: Any = None) -> Any:
        """The label of each step, or of each sequence, in the form X came in."""
        given, outputs = self._outputs(X, lengths)
        return self._answer(given, [self._decided(Y) for Y in outputs])

    def predict_proba(self, X: Any, *, lengths: Any = None) -> Any:
        """Probabilities a class. Calibrated with readout="softmax"; a ridge readout's values are moved to the
        nearest point that is a distribution."""
        given, outputs = self._outputs(X, lengths)
        return self._answer(given, [self._likely(Y) for Y in outputs])

    def predict_log_proba(self, X: Any, *, lengths: Any = None) -> Any:
        P = self.predict_proba(X, lengths=lengths)
        with np.errstate(divide="ignore"):
            return [np.log(p) for p in P] if isinstance(P, list) else np.log(P)

    def score(self, X: Any, y: Any, *, lengths: Any = None) -> float:
        """The share of right labels over all steps (or sequences)."""
        true, predicted = self._compared(X, y, lengths)
        return float(np.mean(predicted == column_or_1d(true)))


@njit(nogil=True, cache=True, error_model="numpy")  # NaN in, NaN out
def nearest_distribution(Y: Any) -> Any:
    """Each row moved to the nearest point of the simplex (it keeps the order of the classes): all classes lowered by
    one amount and cut off at 0. Those kept must add up to 1, which sets the amount, which sets those kept, until none
    of them falls away any more."""
    P = np.empty_like(Y)
    for row in range(Y.shape[0]):
        before, amount = 0, -np.inf
        for _ in range(Y.shape[1]):
            kept, total = 0, 0.0
            for y in Y[row]:
                if y > amount:
                    kept += 1
                    total += y
            if kept == before:
                break
            before, amount = kept, (total - 1) / kept
        for k in range(Y.shape[1]):
            P[row, k] = max(Y[row, k] - amount, 0.0)
        P[row] /= P[row].sum()
    return P


def _named(classes: Any) -> Array:
    """Each class once, in order."""
    try:
        return np.unique(classes)
    except (TypeError, ValueError):
        raise ValueError(f"classes={classes!r:.80}; expected labels of one type, as in y.") from None
