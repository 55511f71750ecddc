"""A monitor of a running network: frames that differ from its forecasts, and lasting changes of its errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from echolearn.display.figures import BLUE, GREY, ORANGE, RED, prepared_axes
from echolearn.monitoring._scores import Anchor, Reference, carried_over, largest
from echolearn.monitoring._sources import NO_ERRORS, ErrorSource, Monitored, error_source, held_out_errors
from echolearn.monitoring.drift import PageHinkley
from echolearn.monitoring.guard import GuardedStream
from echolearn.validation import Array, check_boolean, check_columns, check_integer, is_number

if TYPE_CHECKING:  # an optional dependency
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

REFRESHES_PER_WINDOW = 20  # of the reference, while its errors are replaced once
REFRESHES_PER_DOUBLING = 4  # of the reference, while the errors since a change become twice as many


class Observation(NamedTuple):
    """The judgement of a monitor on one frame."""

    score: float  # distance of the error from what is usual, in robust standard deviations, of the worst output; or NaN
    p_value: float  # the probability of a score at least as large, by the errors before; NaN where the score is
    anomalous: bool  # whether the p-value is below the level
    drift: bool  # whether errors have become larger, or smaller, for good, as is seen at this frame
    expected: Array  # (n_outputs,): the forecast, value or label that the network has answered
    error: Array  # (n_outputs,): what was observed less what was expected; of a classifier, the loss
    output: int  # the output with the largest score, and at a drift the one whose errors have changed
    step: int  # the number of the frame, from 0 on


@dataclass(frozen=True, eq=False)
class Observations:
    """The judgements of a monitor on several frames: the fields of `Observation` as arrays with one row per frame."""

    score: Array
    p_value: Array
    anomalous: Array
    drift: Array
    expected: Array
    error: Array
    output: Array
    step: Array
    level: float

    def __len__(self) -> int:
        return len(self.step)

    def __getitem__(self, i: int) -> Observation:
        return Observation(
            float(self.score[i]),
            float(self.p_value[i]),
            bool(self.anomalous[i]),
            bool(self.drift[i]),
            self.expected[i],
            self.error[i],
            int(self.output[i]),
            int(self.step[i]),
        )

    def __str__(self) -> str:
        steps = ", ".join(map(str, self.step[self.anomalous][:10])) + (", ..." if self.anomalous.sum() > 10 else "")
        drifts = ", ".join(map(str, self.step[self.drift]))
        return (
            f"{len(self)} frames, {int(self.anomalous.sum())} anomalous{f' ({steps})' if steps else ''}, "
            f"{int(self.drift.sum())} drifts{f' ({drifts})' if drifts else ''}, "
            f"{int(np.isnan(self.p_value).sum())} not judged"
        )

    def plot(self, axes: Axes | None = None) -> Figure | SubFigure:
        """Plot the p-values over time, with the level, the anomalies and the drifts."""
        axes = prepared_axes(axes, (7.5, 3.0))
        shown = np.maximum(self.p_value, 1e-12)
        axes.semilogy(self.step, shown, ".", color=BLUE, markersize=2.5, alpha=0.5, markeredgewidth=0)
        axes.semilogy(self.step[self.anomalous], shown[self.anomalous], "o", color=RED, markersize=5, markeredgewidth=0)
        axes.axhline(self.level, color=GREY, linewidth=1, linestyle="--")
        for step in self.step[self.drift]:
            axes.axvline(step, color=ORANGE, linewidth=1.4)
        axes.set(xlabel="step", ylabel="p-value (smaller is rarer)", ylim=(None, 2))
        axes.invert_yaxis()
        counts = f"{int(self.anomalous.sum())} anomalies (red), {int(self.drift.sum())} drifts (orange)"
        axes.set_title(counts, fontsize=10)
        return axes.figure


class Monitor:
    """A running network whose errors are watched: anomalies of single frames, and drifts.

    The error of each frame is compared with the errors of the last `window` frames. Those of a forecaster start with
    the residuals of its training, so that it is judged from its first frame on, and so do others with `training`. The
    score of an error is its distance from their median in units of their median absolute deviation, which outliers
    hardly change; with several outputs, the largest distance. The p-value of a score is its rank among theirs and, for
    scores that are rarer than one in ten, the predictive probability of generalised Pareto tails, weighed by how well
    they fit. Independently of that, a test of Page and Hinkley looks for outputs whose errors have become larger or
    smaller permanently since the first full window. After a drift, the window starts anew with the frames since the
    change; as long as these are few, frames are compared with the errors before the change, moved and widened as the
    frames since require.

    Parameters
    ----------
    model : ESNForecaster, ESNRegressor, ESNClassifier, Stream or GuardedStream
        What is watched. A fitted estimator is run as a stream that continues its training series; a stream is used as
        it is. A forecaster, or a network whose answer to a frame is the next frame, is watched by ``update(x)``; others
        by ``update(x, y)``. A classifier without `y` is watched for its uncertainty.
    level : float, default=1e-4
        The p-value below which a frame is anomalous: the share of false alarms per frame. Below 1 / `window` it relies
        on the fitted tail.
    window : int, default=1000
        How many errors a new one is compared with. More give finer p-values, fewer follow changes faster.
    warm_up : int, default=200
        The errors that are needed before frames are judged, those of training included, and before a change is looked
        for again after a drift. At least 20.
    drift : PageHinkley or None, default=PageHinkley()
        The test for drifts. None: there is none.
    learn : bool, default=False
        Whether the stream learns from each target, after its error was taken. It must have been made with ``online=``.
    training : (X, y), default=None
        The data that an `ESNRegressor` or `ESNClassifier` was fitted to: the monitor then judges from its first frame
        on, as that of a forecaster does. At this first frame the estimator is fitted five times, each time without a
        fifth of the data, whose errors are what the first frames are compared with. Errors in data that were fitted
        would be too small.

    Attributes
    ----------
    steps : int
        The number of frames so far.

    Notes
    -----
    Missing values (NaN) in a frame are filled by the forecast, or by the last known value, unless the estimator has its
    own rule (``missing="carry"``); missing targets are not judged. Of the anomalous errors in the window, only as many
    are kept as chance explains, and they count as larger than the others, whatever their size. So they neither hide the
    next ones nor make usual errors anomalous.

    References
    ----------
    A. Siffer et al., "Anomaly detection in streams with extreme value theory", KDD 2017. J. Zhang and M. A. Stephens,
    "A new and efficient estimation method for the generalized Pareto distribution", Technometrics 51, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import ESNForecaster
    >>> from echolearn.monitoring import Monitor
    >>> t = np.arange(2500)
    >>> series = np.sin(t / 5) + 0.05 * np.random.default_rng(0).standard_normal(2500)
    >>> series[2200] += 1.0  # a fault
    >>> esn = ESNForecaster(50, learn="none").fit(series[:1000])
    >>> monitor = Monitor(esn)
    >>> seen = monitor.run(series[1000:])
    >>> (1000 + seen.step[seen.anomalous])[0]
    np.int64(2200)
    """

    def __init__(
        self,
        model: Monitored,
        *,
        level: float = 1e-4,
        window: int = 1000,
        warm_up: int = 200,
        drift: PageHinkley | None = PageHinkley(),  # noqa: B008  (frozen)
        learn: bool = False,
        training: object = None,
    ):
        if not is_number(level) or not 0 < level < 1:
            raise ValueError(f"level={level!r:.80}; expected a probability, for example 1e-4.")
        if drift is not None and not isinstance(drift, PageHinkley):
            raise TypeError(f"drift={drift!r:.80}; expected PageHinkley(...), or None.")
        self.model, self.level, self.drift, self.learn = model, float(level), drift, check_boolean("learn", learn)
        self.warm_up = check_integer("warm_up", warm_up, 20)
        self.window = check_integer("window", window, self.warm_up)
        self.training, self.steps = training, 0
        self._source: ErrorSource | None = None
        self._targets = False
        self._changed = 0  # frames since the last change, when its drift was seen
        self._drifted = 0  # the output that it was seen in
        # of the last frames, in the order of time: errors (n, n_outputs), and which of them were anomalies
        self._errors, self._unusual = NO_ERRORS, np.empty(0, bool)
        self._foreign = 0  # how many of them are not those of this network: no drift is measured against them
        self._reference: Reference | None = None
        self._restart(0)

    def _restart(self, kept: int) -> None:
        """Set the errors before the last `kept` ones aside, and look for changes among the others anew."""
        cut = max(0, len(self._errors) - kept)
        self._foreign = max(0, self._foreign - cut)
        self._before, self._errors = np.split(self._errors, [cut])
        self._before_unusual, self._unusual = np.split(self._unusual, [cut])
        self._anchor: Anchor | None = None  # what drifts are measured against: the first full window
        self._settled = False  # whether that window was full
        self._due = 0  # frames until the reference is made anew
        self._sums: Array | None = None  # of the test for drifts
        self._since = np.zeros((1, 1), int)  # frames since each of them was 0

    @property
    def ready(self) -> bool:
        """Whether frames are judged."""
        return self._reference is not None

    def update(self, x: ArrayLike, y: ArrayLike | None = None) -> Observation:
        """Judge the next frame and return the judgement.

        Parameters
        ----------
        x : array of shape (n_features,), or a number
            The next frame.
        y : scalar or array of shape (n_outputs,), default=None
            Its target. None: the network is watched by its forecasts of the frames themselves.

        Returns
        -------
        Observation
            Its score, p-value, and whether it is anomalous or shows a drift.
        """
        self._check_names(x)
        return self.run(np.atleast_1d(np.asarray(x))[None], None if y is None else np.asarray(y)[None])[0]

    def run(self, X: ArrayLike, y: ArrayLike | None = None) -> Observations:
        """Judge several frames as `update` would one after the other, and return the judgements.

        Parameters
        ----------
        X : array of shape (n_steps, n_features) or (n_steps,)
            The next frames.
        y : array of shape (n_steps,) or (n_steps, n_outputs), default=None
            The target of each.

        Returns
        -------
        Observations
            One row per frame.
        """
        self._check_names(X)
        frames = np.asarray(X, dtype=np.float64)
        frames = frames[:, None] if frames.ndim == 1 else frames
        if frames.ndim != 2 or not len(frames):
            raise ValueError(f"X has shape {np.shape(X)}; expected frames (n_steps, n_features), at least one.")
        if y is not None and len(np.asarray(y)) != len(frames):
            raise ValueError(f"y has {len(np.asarray(y))} entries for {len(frames)} frames; expected one target each.")
        if self._source is None:
            self._targets = y is not None
            self._source = error_source(self.model, learn=self.learn, targets=self._targets)
            self._errors = self._source.earlier[-self.window :]
            if self.training is not None:
                self._errors = held_out_errors(self.model, self.training, targets=self._targets)[-self.window :]
                self._foreign = len(self._errors)
            self._unusual = np.zeros(len(self._errors), bool)
        elif self._targets != (y is not None):
            raise ValueError("some frames came with targets and some without. Give y for all of them, or for none.")
        errors, expected = self._source.errors(frames, y)
        seen = self._judge(errors, expected)
        self.steps += len(seen)
        return seen

    def _check_names(self, X: ArrayLike) -> None:
        """Refuse frames whose columns have other names than those of the fit."""
        inner = self.model.stream if isinstance(self.model, GuardedStream) else self.model
        check_columns(X, getattr(inner, "feature_names_in_", getattr(inner, "feature_names", None)))

    def _judge(self, errors: Array, expected: Array) -> Observations:
        """Judge errors (n, n_outputs) in blocks, between which the reference stays the same."""
        n = len(errors)
        judged = Observations(
            score=np.full(n, np.nan),
            p_value=np.full(n, np.nan),
            anomalous=np.zeros(n, bool),
            drift=np.zeros(n, bool),
            expected=expected,
            error=errors,
            output=np.zeros(n, int),
            step=self.steps + np.arange(n),
            level=self.level,
        )
        at = 0
        while at < n:
            self._refresh()
            block = slice(at, at + min(n - at, self._due))
            used = self._judge_block(judged, block)
            self._remember(errors[at : at + used], judged.anomalous[at : at + used])
            self._due -= used
            if judged.drift[at + used - 1]:
                self._restart(self._changed)
            at += used
        return judged

    def _remember(self, errors: Array, unusual: Array) -> None:
        """Add errors to the last ones, of which a window is kept."""
        before = self._errors if len(self._errors) else errors[:0]
        self._foreign = max(0, self._foreign - max(0, len(before) + len(errors) - self.window))
        self._errors = np.concatenate([before, errors])[-self.window :]
        self._unusual = np.concatenate([self._unusual, unusual])[-self.window :]

    def _judge_block(self, judged: Observations, block: slice) -> int:
        """Judge some errors by the present reference, up to the first drift; return how many."""
        count = int(block.stop - block.start)
        if self._reference is None:
            return count
        errors = judged.error[block]
        score, output = largest(self._reference.distances(errors))
        p = self._reference.p_values(score)
        if self.drift is not None and self._anchor is not None:
            alarm = self._test(errors, self.drift, self._anchor)
            if alarm is not None:
                judged.drift[block.start + alarm] = True
                output[alarm] = self._drifted
                count = alarm + 1
        used = slice(block.start, block.start + count)
        judged.score[used], judged.output[used], judged.p_value[used] = score[:count], output[:count], p[:count]
        with np.errstate(invalid="ignore"):
            judged.anomalous[used] = p[:count] < self.level
        return count

    def _test(self, errors: Array, test: PageHinkley, anchor: Anchor) -> int | None:
        """Continue the test for drifts; return where it raises an alarm, and note how long ago the change was."""
        sums, alarm = test.run(anchor.normal_scores(errors), self._sums, anchor.correlation)
        zero = sums == 0
        last = len(sums) - 1 - zero[::-1].argmax(axis=0)
        before = self._since if self._sums is not None else np.zeros(sums.shape[1:], int)
        self._since = np.where(zero.any(axis=0), len(sums) - 1 - last, before + len(sums))
        self._sums = sums[-1]
        if alarm is not None:
            which = int(self._sums.argmax())
            self._changed, self._drifted = int(self._since.flat[which]), which % self._sums.shape[1]
        return alarm

    def _refresh(self) -> None:
        """Make the reference anew, where that is due: of the errors since the last change, or with those before it."""
        if self._due > 0:
            return
        errors, unusual, n = self._errors, self._unusual, len(self._errors)
        self._due = max(1, self.window // REFRESHES_PER_WINDOW)
        if n < self.warm_up and len(self._before):
            self._due = max(1, min(self._due, self.warm_up - n, n // REFRESHES_PER_DOUBLING))
            errors = np.concatenate([carried_over(self._before, errors), errors])
            unusual = np.concatenate([self._before_unusual, unusual])
        elif n < self.warm_up:
            self._due = self.warm_up - n
            return
        assert self._source is not None
        one_sided = self._source.one_sided
        self._reference = Reference.of(errors, one_sided=one_sided, unusual=unusual, level=self.level)
        own = self._errors[self._foreign :]
        if len(own) >= self.warm_up and not self._settled and self.drift is not None:
            self._anchor, self._settled = Anchor.of(own, self._reference), len(own) == self.window
