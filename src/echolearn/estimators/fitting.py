"""EchoStateNetwork: what the estimators share, from data at the door to a fitted network and its outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from echolearn import __version__
from echolearn.cluster import sources
from echolearn.estimators import parameters as settings
from echolearn.estimators.data_warnings import warn_of_scale
from echolearn.execution import threads as engine
from echolearn.execution.threads import one_blas_thread
from echolearn.modelfile.checkpoint import Checkpoint, fingerprint, matrix_fingerprint
from echolearn.readout import collect as passes
from echolearn.readout import conjugate_gradients as iterative
from echolearn.readout import solver as ridges
from echolearn.readout import statistics as readout
from echolearn.reservoir.combination import bidirectional_reservoir
from echolearn.reservoir.plasticity import intrinsic_plasticity
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import Data, groups, parts_of
from echolearn.sequences.split import split
from echolearn.sequences.validation import (
    Given,
    check_finite,
    check_has_time,
    check_long_enough,
    flat,
    open_sequences,
    open_targets,
)
from echolearn.states.run import free_run
from echolearn.training import cost_model as costs
from echolearn.training import loop as training
from echolearn.training import optimizers as updates
from echolearn.training.progress import Progress, say
from echolearn.validation.caller import user_stacklevel
from echolearn.validation.values import check_boolean, check_pair, check_path

Array = NDArray[Any]
Callback = Callable[[dict[str, float]], object]

UPDATES = 400  # where `epochs` is None there are so many epochs that W is updated this often,
LEAST_EPOCHS = 8  # and never fewer than these


class EchoStateNetwork(BaseEstimator):
    """What both estimators share. Settings are only stored here; `fit` checks them."""

    _sums: readout.Sums | None  # what the ridge readout was solved from
    # for estimators that have no such settings
    topology: Any = "random"
    bidirectional: bool = False
    plasticity: float | None = None

    def _more_checks(self, per_step: bool) -> None:
        """Settings that only make sense for some targets."""
        if not per_step and self.feedback:
            raise ValueError("feedback=True needs a target a step; y has one a sequence. Set feedback=False.")
        if not per_step and self.targets == "last":
            raise ValueError("targets='last' needs a target a step; y has one a sequence. Use targets='all'.")

    def _fit(
        self,
        X: Any,
        y: Any,
        lengths: Any,
        validation: tuple[Any, Any] | None,
        callback: Callback | None,
        checkpoint: str | PathLike[str] | None,
    ) -> Self:
        before = self.__dict__.copy()
        try:
            settings.check(self.get_params(deep=False))
            X, y = sources.opened(X, y)
            interrupted = self._fit_anew(X, y, lengths, validation, callback, checkpoint)
        except BaseException:
            # A fit that fails leaves the estimator as it was, never new weights with an old readout.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        if interrupted:
            raise KeyboardInterrupt
        return self

    def _fit_anew(
        self,
        X: Any,
        y: Any,
        lengths: Any,
        validation: tuple[Any, Any] | None,
        callback: Callback | None,
        checkpoint: str | PathLike[str] | None,
    ) -> bool:
        """True if Ctrl-C ended the learning early; the readout fits the best weights so far."""
        for stale in ("feature_names_in_", "strength_"):  # of an earlier fit; this one may have none
            self.__dict__.pop(stale, None)
        given = self._open(X, lengths, fitting=True)
        check_has_time(given)
        check_long_enough(given, self.washout)
        entries, per_step = open_targets(y, given)
        self._more_checks(per_step)
        self._look_at(given.X)
        self.per_step_ = per_step
        encoded = self._encode(entries, fitting=True)
        data = engine.together(Data(engine.sent(given.X), encoded, self._classes, per_step, np.dtype(self.dtype)))
        held_out = None if validation is None else self._held_out_given(validation)
        rng_weights, rng_split, rng_order, rng_readout = np.random.default_rng(self.random_state).spawn(4)
        train = data
        if held_out is None:
            train, held_out = split(data, self.validation_fraction, self.washout, rng_split)
        if data.where is engine.HERE:
            costs.check(self._job(train, held_out), self.verbose)
        # Numbers that are not finite are met and told by the readout and the epochs; NumPy need not warn of them too.
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            kept = None if checkpoint is None else self._checkpoint(checkpoint, data, held_out)
            interrupted = self._learn(train, held_out, callback, kept, rng_weights, rng_order)
            spare = held_out if validation is None else None
            s = self._fit_readout(train, spare, held_out, rng_readout, kept)
            if not interrupted:
                interrupted = self._refine(train, held_out, s, kept, rng_readout)
            if spare is not None:
                self._join(train.joined(spare), s, rng_readout)
        if self._sums is not None and isinstance(self.ridge, Real):
            readout.warn_if_drowned(self._sums, self.ridge_, stacklevel=1 + user_stacklevel())
        return interrupted

    def _look_at(self, X: list[Array]) -> None:
        # one that does not fit is refused when the network is drawn
        fits = np.ndim(self.input_scaling) == 0 or np.shape(self.input_scaling) == X[0].shape[1:]
        if fits and isinstance(X[0], np.ndarray):  # those on a cluster are not fetched for this
            warn_of_scale(X, self.input_scaling, self.activation, stacklevel=1 + user_stacklevel())

    def _refine(
        self,
        train: Data,
        held_out: Data | None,
        s: readout.Sums | iterative.Sketch,
        checkpoint: Checkpoint | None,
        rng: np.random.Generator,
    ) -> bool:
        """Last epochs on another error than the squared one; True if Ctrl-C ended them early."""
        return False

    def _join(self, data: Data, s: readout.Sums | iterative.Sketch, rng: np.random.Generator) -> None:
        """Last steps of the readout on all the data, those it was chosen on too."""

    def _open(self, X: Any, lengths: Any, fitting: bool) -> Given:
        if getattr(X, "ndim", 0) == 2 and not isinstance(X, np.ndarray) and hasattr(X, "columns"):
            # a data frame: scikit-learn keeps its column names and compares them at predict
            X = validate_data(self, X, reset=fitting, dtype=[np.float64, np.float32])
        given = open_sequences(
            sources.opened_X(X), lengths, None if fitting else self.n_features_in_, type(self).__name__
        )
        if fitting:
            self.n_features_in_: int = given.X[0].shape[1]
        return given

    def _held_out_given(self, validation: tuple[Any, Any]) -> Data:
        X, y = sources.opened(*check_pair("validation", validation))
        return self._more_data(open_sequences(X, None, self.n_features_in_), y, "validation")

    def _more_data(self, given: Given, y: Any, name: str) -> Data:
        """Data of the kind that was fitted."""
        check_long_enough(given, self.washout)
        entries, per_step = open_targets(y, given)
        if per_step != self.per_step_:
            raise ValueError(f"{name}: its y must be of the same kind as y (an entry a step, or one a sequence).")
        encoded = self._encode(entries, fitting=False)
        return engine.together(Data(engine.sent(given.X), encoded, self._classes, per_step, np.dtype(self.dtype)))

    def _partial_fit(self, X: Any, y: Any, lengths: Any) -> Self:
        """The sums with those of more sequences, and U from them; the first call is a fit."""
        if not self.__sklearn_is_fitted__():
            return self._fit(X, y, lengths, None, None, None)
        before = self._known_sums()
        X, y = sources.opened(X, y)
        data = self._more_data(self._open(X, lengths, fitting=False), y, "partial_fit")
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            s = passes.collect(self.reservoir_, data, self._task.readout_view())
            s += before
            self.ridge_ = ridges.of_sums(s, self._ridge)
            self._U, self._sums = readout.solve(s, self.ridge_, intercept=True), s
        return self

    def _known_sums(self) -> readout.Sums:
        if self._sums is None:
            raise ValueError(
                "this model has no sums of its fit to add to: it was saved without them, its readout is a softmax, it "
                f"learned in blocks, or it has {iterative.FROM} units or more. Fit a smaller one with a ridge readout "
                "and blocks=1, and save it with save(path, sums=True) to go on later."
            )
        return self._sums

    def _penalised_gram(self) -> Array | None:
        """G + ridge I (the intercept goes free), or None without the sums."""
        if self._sums is None:
            return None
        A = self._sums.G.copy()
        A.flat[: -1 : len(A) + 1] += self.ridge_
        return A

    def _checkpoint(self, folder: str | PathLike[str], data: Data, held_out: Data | None) -> Checkpoint:
        """Settings that do not touch the result may differ between the fits that share a checkpoint."""
        if self.random_state is None:
            raise ValueError(
                "checkpoint= with random_state=None: every fit would draw another reservoir, and none could go on from "
                "where one stopped. Give a random_state, for example 0."
            )
        about = {k: v for k, v in self.get_params(deep=False).items() if k != "verbose"}
        if self.initial_state is not None:
            about["initial_state"] = np.asarray(self.initial_state).tolist()
        if not isinstance(self.topology, str):
            about["topology"] = matrix_fingerprint(self.topology)
        if self.hidden_units >= iterative.FROM:
            about["threads"] = engine.threads()  # each takes some of U's columns, and a product's bits show how many
        about |= {"data": fingerprint(data), "held_out": None if held_out is None else fingerprint(held_out)}
        about = {"echolearn": __version__, "estimator": type(self).__name__, **about}
        return Checkpoint(check_path("checkpoint", folder), about)

    @property
    def _task(self) -> passes.Task:
        pooling = None if self.per_step_ else self.pooling
        return passes.Task(self.washout, self.direct, pooling, self.lookback, self.targets)

    def _epochs(self, sequences: int) -> int:
        """Enough epochs for `UPDATES` updates, where none are asked for."""
        if self.epochs is not None:
            return int(self.epochs)
        batches = np.ceil(sequences / (self.batch_size or sequences))
        return max(LEAST_EPOCHS, int(np.ceil(UPDATES / batches)))

    def _job(self, train: Data, held_out: Data | None) -> costs.Job:
        """This fit as the estimate of its cost sees it."""
        lengths = train.lengths
        return costs.Job(
            N=int(self.hidden_units),
            n_in=self.n_features_in_,
            n_out=train.n_out,
            connections=min(self.connections, self.hidden_units),
            frames=int(lengths.sum()),
            held_out=0 if held_out is None else int(held_out.lengths.sum()),
            longest=int(lengths.max()),
            epochs=0 if self.learn == "none" else self._epochs(len(lengths)),
            batch=None if self.batch_size is None else int(min(self.batch_size, len(lengths)) * lengths.mean()),
            softmax=getattr(self, "readout", "ridge") == "softmax",
            choose=not isinstance(self.ridge, Real),
            direct=self.direct,
            parts=parts_of(self._task.pooling),
            itemsize=np.dtype(self.dtype).itemsize,
            threads=1 if engine.inside() else engine.threads(),
            blocks=getattr(self, "_of", 1),
            both_ways=self.bidirectional,
        )

    def _plan(self, ridge: float, epochs: int) -> training.Plan:
        names = "learn learn_leak gradient case optimizer momentum batch_size clip renormalize"
        chosen = {name: getattr(self, name) for name in names.split()}
        step_size = self.step_size or updates.default_step(self.optimizer, self.hidden_units)
        return training.Plan(
            **chosen,
            step_size=step_size,
            epochs=epochs,
            spectral_radius=self.spectral_radius,
            patience=max(5, epochs // 4) if self.patience == "auto" else self.patience,
            ridge=ridge,
            piles=1 if engine.inside() else 2,
        )

    def _learn(
        self,
        train: Data,
        held_out: Data | None,
        callback: Callback | None,
        checkpoint: Checkpoint | None,
        rng_weights: np.random.Generator,
        rng_order: np.random.Generator,
    ) -> bool:
        """Draws the reservoir and learns its weights; True if Ctrl-C ended that early."""
        self.reservoir_ = self._drawn(train, rng_weights)
        self.history_ = training.History()
        epochs = self._epochs(len(train.X))
        if self.learn == "none" or epochs == 0:
            return False
        task = self._task
        ridge, s = ridges.to_learn_with(self.reservoir_, train, task, self._ridge, rng_order)
        score = None
        if held_out is not None:
            view = task.readout_view()

            def score(reservoir: Reservoir, U: Array) -> float:
                return self._error(reservoir, U, held_out, view)

        with Progress(self.verbose, epochs, callback) as progress:
            self.reservoir_, self.history_, interrupted = training.learn(
                self.reservoir_,
                train,
                task,
                self._plan(ridge, epochs),
                rng=rng_order,
                score=score,
                on_epoch=progress.epoch,
                checkpoint=checkpoint,
                sums=s,
            )
        return interrupted

    def _drawn(self, train: Data, rng: np.random.Generator) -> Reservoir:
        """The reservoir to begin with; with `bidirectional` the second half of its units runs backward."""

        def drawn(units: int) -> Reservoir:
            return Reservoir.random(
                self.n_features_in_,
                units,
                spectral_radius=self.spectral_radius,
                connections=self.connections,
                topology=self.topology,
                input_scaling=self.input_scaling,
                bias_scaling=self.bias_scaling,
                feedback_scaling=self.feedback_scaling,
                n_feedback=train.n_out if self.feedback else 0,
                activation=self.activation,
                leak=self.leak,
                random_state=rng,
            )

        N = self.hidden_units
        reservoir = bidirectional_reservoir(drawn(N - N // 2), drawn(N // 2)) if self.bidirectional else drawn(N)
        if self.initial_state is not None:
            reservoir = replace(reservoir, initial_state=np.asarray(self.initial_state))
        if self.plasticity is not None:
            say(self.verbose, "intrinsic plasticity: ten passes over the frames ...")
            reservoir = intrinsic_plasticity(reservoir, list(map(np.asarray, train.X)), spread=self.plasticity)
        return reservoir

    @property
    def _ridge(self) -> ridges.Ridge:
        return float(self.ridge) if isinstance(self.ridge, Real) else self._ridge_path

    def _ridge_path(self, diagonal: float) -> Any:
        return ridges.RIDGES * diagonal if isinstance(self.ridge, str) else self.ridge

    def _fit_readout(
        self,
        train: Data,
        spare: Data | None,
        held_out: Data | None,
        rng: np.random.Generator,
        checkpoint: Checkpoint | None = None,
    ) -> readout.Sums | iterative.Sketch:
        """U from all the data; its ridge chosen on what was held out (or by generalised cross-validation)."""
        self._U, self.ridge_, s = ridges.fitted(
            self.reservoir_,
            self._task.readout_view(),
            self._ridge,
            train,
            spare,
            held_out,
            rng,
            lambda text: say(self.verbose, text),
            checkpoint,
        )
        self._sums = s if isinstance(s, readout.Sums) else None
        return s

    def _error(self, reservoir: Reservoir, U: Array, data: Data, task: passes.Task) -> float:
        """Held-out error of predictions made as `predict` makes them."""
        loss = self._loss

        def part(data: Data, which: Array) -> tuple[float, int]:
            batch = data.batch(which)
            assert batch.T is not None
            if reservoir.W_fb is None:
                H_c, T, _, _ = passes.observed(reservoir, task, batch)
                Y = H_c @ U.astype(H_c.dtype)
            else:
                # U is the ridge readout here, so its outputs stand for the targets as they are
                Y, select = free_run(reservoir, batch, U, task.direct, lambda Y: Y), task.select(batch)
                Y, T = select.take(Y), select.take(batch.T)
            return loss(Y, T), len(T)

        parts = list(data.each(part, groups(data.lengths, passes.FRAMES)))
        return float(sum(e for e, _ in parts) / sum(n for _, n in parts))

    def _outputs(self, X: Any, lengths: Any) -> tuple[Given, list[Array]]:
        """Readout outputs, one array a sequence: (steps, n_out), or (1, n_out) for one label a sequence."""
        check_is_fitted(self)
        given = self._open(X, lengths, fitting=False)
        if not self.per_step_:
            check_long_enough(given, self.washout)
        data = Data(engine.sent(given.X), (), None, self.per_step_, np.dtype(self.dtype))
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            outputs = passes.outputs(self.reservoir_, data, self._task.readout_view(), self._U, self._fed_back)
        for Y in outputs:
            check_finite(Y, "outputs")
        return given, outputs

    def _answer(self, given: Given, parts: list[Array]) -> Any:
        return given.answer(parts) if self.per_step_ else np.concatenate(parts)

    def _compared(self, X: Any, y: Any, lengths: Any) -> tuple[Array, Array]:
        """True and predicted entries, one after another."""
        check_is_fitted(self)
        given = self._open(X, lengths, fitting=False)
        entries, per_step = open_targets(y, given)
        if per_step != self.per_step_:
            kinds = "an entry a sequence", "an entry a step"
            raise ValueError(f"y has {kinds[per_step]}, but this network was fitted with {kinds[self.per_step_]}.")
        predicted = self.predict(X, lengths=lengths)
        return flat(entries, per_step), flat(given.split(predicted), True) if per_step else predicted

    @property
    def input_weights_(self) -> Array:
        """W (features, hidden_units)."""
        return np.asarray(self.reservoir_.W)

    @property
    def recurrent_weights_(self) -> Any:
        """W_rec (hidden_units, hidden_units), sparse."""
        return self.reservoir_.W_rec

    @property
    def feedback_weights_(self) -> Array | None:
        """W_fb (hidden_units, outputs), or None."""
        return self.reservoir_.W_fb

    @property
    def readout_weights_(self) -> Array:
        """U (hidden_units + features, outputs), without the intercept."""
        return np.asarray(self._U[:-1])

    @property
    def intercept_(self) -> Array:
        return np.asarray(self._U[-1])

    def save(self, path: Any, *, sums: bool = False) -> None:
        """One safetensors file: weights, settings, classes, version, checksum. `echolearn.load` reads it.

        sums: also G and Q, from which `partial_fit` and RLS go on (as many numbers as W_rec would have if dense).
        """
        from echolearn.estimators import saving as storage

        check_is_fitted(self)
        if check_boolean("sums", sums):
            self._known_sums()
        storage.save(self, path, sums=sums)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_U")


def store(estimator: BaseEstimator, values: dict[str, Any]) -> None:
    """__init__ only keeps its arguments."""
    for name, value in values.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)
