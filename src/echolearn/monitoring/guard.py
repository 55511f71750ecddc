"""Online learning under guard: new weights are tested on recent frames beside old ones, and withdrawn where worse."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from echolearn.streams import Stream
from echolearn.streams._estimator import ClassifierStream
from echolearn.validation import Array, check_columns, check_integer, is_number

CERTAIN_STANDARD_ERRORS = 2.0  # standard errors by which a difference must be more than chance


@dataclass(frozen=True)
class Rollback:
    """A return to earlier weights."""

    step: int  # the frame after which it was made
    to: int  # the frame after which the weights were taken that are in use again
    worse: float  # how many times larger the error of the withdrawn weights was; infinite if they diverged


class GuardedStream:
    """A stream that learns online, and returns to weights that were better.

    Beside the stream that learns, copies with earlier weights answer the same frames: those it started with, and the
    last ones that passed the test. After every `every` frames the errors over these frames are compared. Where the
    weights that learned are worse than the best of the copies by more than `bound`, and by more than chance (two
    standard errors), they are withdrawn; otherwise they become the newest copy. Weights that diverge are withdrawn at
    once. Each copy costs as much as the stream itself.

    Parameters
    ----------
    stream : Stream
        A stream that learns: ``esn.stream(online=RLS())``. It is used as it is, not copied.
    every : int, default=100
        Frames between two tests, which also are the frames that are tested on. Fewer withdraw bad weights earlier, and
        good ones more often by chance.
    bound : float, default=0.1
        By which share the error may be larger than that of the best copy: the mean over the outputs of the squared
        error relative to the copy's.
    keep : int, default=3
        How many copies there are. The first is always that of the start; bad targets that last longer than
        ``(keep - 1) * every`` frames leave only this one to return to.

    Attributes
    ----------
    stream : Stream
        The stream that learns.
    rollbacks : list of Rollback
        What was withdrawn, in the order of time.
    steps : int
        The number of frames so far.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import ESNRegressor
    >>> from echolearn.monitoring import GuardedStream
    >>> from echolearn.readout import RLS
    >>> X = np.random.default_rng(0).normal(size=(900, 1))
    >>> y = np.roll(X[:, 0], 1)
    >>> esn = ESNRegressor(20, learn="none").fit(X[:300], y[:300])
    >>> guarded = GuardedStream(esn.stream(online=RLS(forgetting=0.98)))
    >>> targets = y[300:].copy()
    >>> targets[100:200] = 5.0  # a sensor is stuck
    >>> answers = guarded.learn(X[300:], targets)
    >>> guarded.rollbacks[0].step, guarded.rollbacks[0].to
    (300, 100)
    """

    def __init__(self, stream: Stream, *, every: int = 100, bound: float = 0.1, keep: int = 3):
        if not isinstance(stream, Stream):
            raise TypeError(f"expected a stream that learns, esn.stream(online=RLS()); given {type(stream).__name__}.")
        if not is_number(bound) or not bound >= 0:
            raise ValueError(f"bound={bound!r:.80}; expected a share from 0 on, for example 0.1.")
        self.stream, self.every, self.bound = stream, check_integer("every", every, 2), float(bound)
        self.keep = check_integer("keep", keep, 1)
        self.steps = 0
        self.rollbacks: list[Rollback] = []
        self._copies = [(0, stream.copy())]
        self._squares: list[Array] = []  # of each frame since the last test: squared errors (1 + copies, n_outputs)

    def predict(self, X: ArrayLike) -> Array:
        """Return the answer to the next frame, or the answers to a chunk of frames, and learn nothing.

        Parameters
        ----------
        X : array of shape (n_features,) or (n_steps, n_features)
            The next frame, or the next frames.

        Returns
        -------
        array
            One answer, or one per frame.
        """
        return self._followed(X, self.stream.predict(X))

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probabilities of the classes, where `predict` returns labels.

        Parameters
        ----------
        X
            As in `predict`.

        Returns
        -------
        array
            One row of probabilities, or one per frame.
        """
        if not isinstance(self.stream, ClassifierStream):
            raise AttributeError("this stream answers with values, not with probabilities of labels.")
        return self._followed(X, self.stream.predict_proba(X))

    def _followed(self, X: ArrayLike, answers: Array) -> Array:
        """Return answers of the stream, after the copies have taken the same frames."""
        for _, copy in self._copies:
            copy.predict(X)
        self.steps += 1 if np.ndim(X) == 1 else len(np.asarray(X))
        return answers

    def learn(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Return what `predict` answers to each frame, and then learn from its target, under guard.

        Parameters
        ----------
        X
            As in `predict`.
        y : scalar or array
            The target of each frame.

        Returns
        -------
        array
            One answer, or one per frame, made before learning from it.
        """
        check_columns(X, getattr(self.stream, "feature_names", None))
        frames = np.asarray(X)
        if frames.ndim == 1:
            return np.asarray(self._learn_one(frames, y))
        targets = np.asarray(y)
        if len(targets) != len(frames):
            raise ValueError(f"y has {len(targets)} entries for {len(frames)} frames; expected one target per frame.")
        return np.array([self._learn_one(x, t) for x, t in zip(frames, targets, strict=True)])

    def _learn_one(self, x: Array, t: ArrayLike) -> Array:
        """Learn from one frame; where the weights diverge, return to the newest copy."""
        try:
            answers = [self.stream.learn(x, t)]
        except FloatingPointError:
            answers = []
        diverged = not answers
        answers += [copy.predict(x) for _, copy in self._copies]
        self.steps += 1
        if diverged:
            self._return_to(len(self._copies) - 1, np.inf)
            return answers[-1]
        self._squares.append(_squared_errors(answers, t, isinstance(self.stream, ClassifierStream)))
        if len(self._squares) == self.every:
            self._test()
        return answers[0]

    def _test(self) -> None:
        """Compare the weights that learned with the copies, over the frames since the last test."""
        squares = np.array(self._squares)  # (frames, 1 + copies, n_outputs)
        least = 1e-12 * squares.mean() + 1e-200  # where a copy makes no error at all
        theirs = np.maximum(squares[:, 1:].mean(axis=0), least)
        more = ((squares[:, :1] - squares[:, 1:]) / theirs).mean(axis=2)  # than each copy, at each frame
        worse = more.mean(axis=0)
        best = int(worse.argmax())
        chance = more[:, best].std() / np.sqrt(len(more))
        if worse[best] > self.bound and worse[best] > CERTAIN_STANDARD_ERRORS * chance:
            self._return_to(best, 1 + float(worse[best]))
            return
        self._squares = []
        if len(self._copies) == self.keep and self.keep > 1:
            del self._copies[1]
        if len(self._copies) < self.keep:
            self._copies.append((self.steps, self.stream.copy()))

    def _return_to(self, which: int, worse: float) -> None:
        """Take the weights of a copy, which has seen all frames; younger copies are withdrawn too."""
        to, copy = self._copies[which]
        self.stream = copy.copy()
        self.rollbacks.append(Rollback(self.steps, to, worse))
        del self._copies[which + 1 :]
        self._squares = []

    def copy(self) -> Self:
        """Return an independent copy of everything: weights, memories, states, earlier weights and tests."""
        return deepcopy(self)


def _squared_errors(answers: list[Array], t: ArrayLike, labels: bool) -> Array:
    """Return the squared errors of each answer, (n_answers, n_outputs); of labels, 1 where they are wrong."""
    true, rows = np.ravel(np.asarray(t)), np.array([np.ravel(a) for a in answers])
    if labels:
        return np.asarray(rows != true, dtype=np.float64)
    return np.asarray((rows.astype(np.float64) - true.astype(np.float64)) ** 2)
