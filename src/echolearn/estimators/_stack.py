"""Stack: what stacked estimators share, layers that learn one by one and then together (docs/stacks.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from echolearn import __version__
from echolearn.estimators import parameters as settings
from echolearn.estimators.fitting import Callback
from echolearn.execution.threads import each, one_blas_thread
from echolearn.gradients import stacked as joint
from echolearn.gradients.stacked import Layer
from echolearn.modelfile.checkpoint import Checkpoint, fingerprint
from echolearn.readout import collect as passes
from echolearn.readout import conjugate_gradients as iterative
from echolearn.readout import statistics as readout
from echolearn.sequences.batch import Data, groups, pack, unpack
from echolearn.sequences.split import split
from echolearn.sequences.validation import check_finite, check_has_time, check_long_enough, open_sequences, open_targets
from echolearn.states.run import run
from echolearn.training import optimizers as updates
from echolearn.training.loop import History
from echolearn.training.objectives import stacked as together
from echolearn.training.objectives.stacked import Plan, State, Together
from echolearn.training.progress import Progress, say
from echolearn.validation.values import check_pair

Array = NDArray[Any]

STEP = 0.3  # of the step size of a layer that learns by itself


class Stack(BaseEstimator):
    """What both stacks share. Settings are only stored here; `fit` checks them."""

    _kind: Any  # of a layer

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        lengths: Any = None,
        validation: tuple[Any, Any] | None = None,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Self:
        """X, y and `validation` as for a single layer. `callback(row)` is called after each epoch, with the number of
        the layer while it learns by itself; `checkpoint`: a folder where the epochs of each layer, and those together,
        are kept: the same fit, started again, goes on from there and ends in the same bits."""
        before = self.__dict__.copy()
        try:
            interrupted = self._fit(X, y, lengths, validation, callback, checkpoint)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        if interrupted:
            raise KeyboardInterrupt
        return self

    def _fit(
        self,
        X: Any,
        y: Any,
        lengths: Any,
        validation: tuple[Any, Any] | None,
        callback: Callback | None,
        checkpoint: str | PathLike[str] | None,
    ) -> bool:
        """True if Ctrl-C ended the learning early; what was learned by then is kept."""
        self.layers_ = self._drawn()
        top = self.layers_[-1]
        given = open_sequences(X, lengths)
        check_has_time(given)
        washout = max(layer.washout for layer in self.layers_)
        check_long_enough(given, washout)
        entries, self.per_step_ = open_targets(y, given)
        self.n_features_in_ = given.X[0].shape[1]
        self._prepare(entries)
        rng_split, rng_order, rng_readout = np.random.default_rng(self.random_state).spawn(3)
        train, held, spare = Data(given.X, entries, None, self.per_step_, np.dtype(top.dtype)), None, None
        if validation is not None:
            held = self._held_out_given(validation, train)
        else:
            train, held = split(train, self.validation_fraction, washout, rng_split)
            spare = held
        interrupted = self._one_by_one(train, held, callback, checkpoint)
        self.history_ = History()
        if self.joint_epochs and not interrupted:
            with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
                interrupted = self._together(train, held, callback, checkpoint, rng_order)
        self._finish(train, held, spare, rng_readout)
        return interrupted

    def _held_out_given(self, validation: tuple[Any, Any], train: Data) -> Data:
        X, y = check_pair("validation", validation)
        given = open_sequences(X, None, self.n_features_in_)
        entries, per_step = open_targets(y, given)
        if per_step != self.per_step_:
            raise ValueError("validation: its y must be of the same kind as y (an entry a step, or one a sequence).")
        return Data(given.X, entries, None, per_step, train.dtype)

    def _drawn(self) -> list[Any]:
        """The layers as they will learn, each with a seed of its own."""
        settings.check_each(self.get_params(deep=False))
        if not isinstance(self.layers, (list, tuple)) or len(self.layers) < 2:
            raise ValueError(f"layers={self.layers!r}; expected a list of two or more, from the input to the top.")
        seeds = np.random.default_rng(self.random_state).integers(2**31, size=len(self.layers))
        drawn = []
        for number, (layer, seed) in enumerate(zip(self.layers, seeds, strict=True), 1):
            if isinstance(layer, Integral) and not isinstance(layer, bool):
                layer = self._kind(int(layer))
            if not isinstance(layer, self._kind):
                raise ValueError(
                    f"layers[{number - 1}] is {layer!r}; expected a number of hidden units or an {self._kind.__name__}."
                )
            settings.check(layer.get_params(deep=False))
            _check_layer(layer, number)
            drawn.append(clone(layer).set_params(random_state=int(seed), verbose=self.verbose, validation_fraction=0.0))
        if len({layer.dtype for layer in drawn}) > 1:
            raise ValueError(f"dtype={[layer.dtype for layer in drawn]} of the layers; expected one for all of them.")
        return drawn

    def _one_by_one(
        self,
        train: Data,
        held: Data | None,
        callback: Callback | None,
        checkpoint: str | PathLike[str] | None,
    ) -> bool:
        """Each layer on what the ones below pass on; True if Ctrl-C ended the top one early."""
        self._scales: list[Array] = []
        X, X_held = train.X, None if held is None else held.X
        for number, layer in enumerate(self.layers_, 1):
            top = number == len(self.layers_)
            say(self.verbose, f"layer {number} of {len(self.layers_)}: {layer.hidden_units} units")

            def told(row: dict[str, float], number: int = number) -> object:
                return None if callback is None else callback({"layer": number, **row})

            folder = None if checkpoint is None else Path(checkpoint) / f"layer-{number}"
            validation = None if held is None or X_held is None else (X_held, held.y if top else joint.a_step(held))
            try:
                layer.fit(
                    X, train.y if top else joint.a_step(train), validation=validation, callback=told, checkpoint=folder
                )
            except KeyboardInterrupt:
                if not top:
                    raise
                return True
            finally:
                vars(layer).pop("_named_classes", None)
            if not top:
                self._scales.append(np.ones(layer._U.shape[1]))
                X = self._up(number - 1, X, train.X)
                self._scales[-1] = joint.scaled_to_one(X, layer._U.shape[1])
                X_held = None if held is None or X_held is None else self._up(number - 1, X_held, held.X)
        return False

    def _up(self, number: int, X: Sequence[Array], source: Sequence[Array]) -> list[Array]:
        """What a layer passes on for its inputs X and those of the whole stack, one array a sequence."""
        layer, scale, dtype = self.layers_[number], self._scales[number], np.dtype(self.layers_[number].dtype)
        out = [X[0]] * len(X)

        def part(which: Array) -> tuple[Array, list[Array]]:
            batch, first = (pack([M[i] for i in which], dtype) for M in (X, source))
            H = run(layer.reservoir_, batch, keep_F=False).H
            Y = readout.outputs(H, batch.X if layer.direct else batch.X[:, :0], layer._U.astype(dtype))
            return which, unpack(batch, joint.passed_on(H, Y, first.X, scale, self.sees, self._entropy))

        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            for which, parts in each(part, groups(np.array([len(x) for x in X]), passes.at_once(layer.hidden_units))):
                for i, passed in zip(which, parts, strict=True):
                    check_finite(passed, f"outputs of layer {number + 1}")
                    out[i] = passed
        return out

    def _inputs(self, X: Sequence[Array]) -> list[Sequence[Array]]:
        """The inputs of every layer."""
        inputs = [X]
        for number in range(len(self.layers_) - 1):
            inputs.append(self._up(number, inputs[-1], X))
        return inputs

    def _data(self, number: int, X: Sequence[Array], y: Data) -> Data:
        """A layer's data, its targets in the units of the top layer."""
        top = self.layers_[-1]
        data = Data(X, top._encode(y.y, fitting=False), top._classes, self.per_step_, y.dtype)
        return data if number == len(self.layers_) - 1 else replace(data, y=joint.a_step(data), per_step=True)

    def _collected(self, train: Data) -> list[readout.Sums]:
        """Of every layer, for its weights as they are."""
        each_of = zip(self.layers_, enumerate(self._inputs(train.X)), strict=True)
        return [
            passes.collect(layer.reservoir_, self._data(number, X, train), layer._task.readout_view())
            for layer, (number, X) in each_of
        ]

    def _checkpoint(self, folder: str | PathLike[str], train: Data, held: Data | None) -> Checkpoint:
        """Of the epochs together. The layers' own settings stand in their own."""
        about = {k: v for k, v in self.get_params(deep=False).items() if k not in ("verbose", "layers")}
        about |= {"data": fingerprint(train), "held_out": None if held is None else fingerprint(held)}
        return Checkpoint(
            Path(folder) / "together", {"echolearn": __version__, "estimator": type(self).__name__, **about}
        )

    def _together(
        self,
        train: Data,
        held: Data | None,
        callback: Callback | None,
        checkpoint: str | PathLike[str] | None,
        rng: np.random.Generator,
    ) -> bool:
        """All layers at once; True if Ctrl-C ended it early."""
        top = self.layers_[-1]
        data, held_out = (None if d is None else self._data(len(self.layers_) - 1, d.X, d) for d in (train, held))
        assert data is not None
        scales = [*self._scales, np.ones(data.n_out)]
        state = State(
            [Layer(e.reservoir_, e._task, e.ridge_, scale) for e, scale in zip(self.layers_, scales, strict=True)],
            [e._U for e in self.layers_],
        )
        plan = Plan(
            self.sees,
            [e.learn for e in self.layers_],
            [e.learn_leak for e in self.layers_],
            self.step_size or STEP * updates.default_step("adam", max(e.hidden_units for e in self.layers_)),
            self.joint_epochs,
            top.batch_size,
        )
        strengths = [e.strength_ for e in self.layers_] if self._entropy else None
        learner = Together(state, data, plan, rng, self._collected(train), strengths)
        score = (
            None
            if held_out is None
            else partial(together.error, data=held_out, sees=self.sees, entropy=self._entropy, loss=top._loss)
        )
        say(self.verbose, f"all {len(self.layers_)} layers together")
        with Progress(self.verbose, self.joint_epochs, callback) as progress:
            kept = None if checkpoint is None else self._checkpoint(checkpoint, data, held_out)
            state, self.history_, interrupted = together.learn(learner, score, progress.epoch, kept)
        for layer, now, U in zip(self.layers_, state.layers, state.readouts, strict=True):
            layer.reservoir_, layer._U, layer._sums = now.reservoir, U, None
        return interrupted

    def _finish(self, train: Data, held: Data | None, spare: Data | None, rng: np.random.Generator) -> None:
        """The readouts that the layers end with."""
        top, last = self.layers_[-1], len(self.layers_) - 1
        if self._entropy and spare is None:
            return  # they have learned with the other weights
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            if self.joint_epochs and not self._entropy:
                X = train.X
                for number, layer in enumerate(self.layers_[:-1]):
                    s = passes.collect(layer.reservoir_, self._data(number, X, train), layer._task.readout_view())
                    layer._U = readout.solve(s, layer.ridge_, intercept=True)
                    self._take_units(layer)
                    X = self._up(number, X, train.X)
            data, held_out = (None if d is None else self._data(last, self._inputs(d.X)[-1], d) for d in (train, held))
            assert data is not None
            if self._entropy:
                s = passes.collect(top.reservoir_, data, top._task.readout_view())
            else:
                s = top._fit_readout(data, held_out if spare is not None else None, held_out, rng)
            if spare is not None and held_out is not None:
                top._join(data.joined(held_out), s, rng)

    def _asked(self, method: str, X: Any, lengths: Any) -> Any:
        """What the top layer answers, in the form X came in."""
        check_is_fitted(self)
        given = open_sequences(X, lengths, self.n_features_in_, type(self).__name__)
        answer = getattr(self.layers_[-1], method)(self._inputs(given.X)[-1])
        return given.answer(answer) if self.per_step_ else answer

    def predict(self, X: Any, *, lengths: Any = None) -> Any:
        """As the top layer predicts, in the form X came in."""
        return self._asked("predict", X, lengths)

    def _scored(self, X: Any, y: Any, lengths: Any) -> float:
        check_is_fitted(self)
        given = open_sequences(X, lengths, self.n_features_in_, type(self).__name__)
        return float(self.layers_[-1].score(self._inputs(given.X)[-1], open_targets(y, given)[0]))

    def save(self, path: Any) -> None:
        """One safetensors file with every layer; `echolearn.load` reads it."""
        from echolearn.estimators import saving as storage

        check_is_fitted(self)
        storage.save(self, path)

    def _adopt(self, layers: list[Any], scales: list[Array], history: History) -> None:
        """Fitted layers, read from a file."""
        self.layers_, self._scales, self.history_ = layers, scales, history
        self.n_features_in_, self.per_step_ = layers[0].n_features_in_, layers[-1].per_step_
        if hasattr(layers[-1], "classes_"):
            self.classes_ = layers[-1].classes_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "history_")


def _check_layer(layer: Any, number: int) -> None:
    """Settings that a layer of a stack cannot have."""
    for name, value, why in (
        ("feedback", False, "outputs go up, not back"),
        ("gradient", "exact", "the paper's formulas end at one layer"),
        ("targets", "all", "the layer above hears every frame"),
        ("bidirectional", False, "the way back runs in one direction"),
    ):
        if getattr(layer, name, value) != value:
            raise ValueError(
                f"{name}={getattr(layer, name)!r} in layer {number}; expected {value!r} in a stack: {why}."
            )
    if layer.hidden_units >= iterative.FROM:
        raise ValueError(f"layer {number} has {layer.hidden_units} units; expected fewer than {iterative.FROM}.")
