"""The results of a search: its trials, and the best of them."""

from __future__ import annotations

import html
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from echolearn import __version__
from echolearn.display.facts import one_line
from echolearn.display.progress import clock
from echolearn.display.report import Figure, document, figure_blocks, table_block
from echolearn.display.svg import MUTED, SERIES, can_draw, styled_figure, to_svg
from echolearn.modelfile.atomic import write_atomically
from echolearn.tuning._space import Options
from echolearn.validation import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Settings = dict[str, Any]  # values of the types that the estimator's parameters have


@dataclass(frozen=True)
class Trial:
    """One trial of a search: an estimator fitted and scored with certain settings."""

    number: int  # the index of the trial, from 0. Trial 0 has the estimator's own settings
    settings: Settings  # the value of every setting that was searched
    score: float | None  # on held-out sequences, averaged over folds; None if it was stopped early, or not finite
    seconds: float  # the time that the trial took
    curve: tuple[float, ...] = ()  # held-out error after each epoch of the first fold; empty if nothing is learned


@dataclass(frozen=True)
class Tuning:
    """The result of `tune`: all trials, the best settings, and the fitted estimator."""

    trials: list[Trial]  # every finished trial, in order
    space: dict[str, Options]  # of every setting that was searched, by its name in the estimator
    estimator: BaseEstimator = field(default=None, repr=False)  # with the best settings, fitted on all data; or None

    def __repr__(self) -> str:
        finished = any(trial.score is not None for trial in self.trials)
        return one_line(self, [self.summary().rstrip(".") if finished else "no finished trials"])

    @property
    def best(self) -> Trial:
        """The trial with the greatest score; the first of them if several have it."""
        finished = [t for t in self.trials if t.score is not None]
        if not finished:
            raise ValueError("no trial has a finite score; check the space, or fit the estimator once as it is.")
        return max(finished, key=lambda t: (t.score, -t.number))

    @property
    def best_settings(self) -> Settings:
        """The settings of the best trial."""
        return self.best.settings

    @property
    def best_score(self) -> float:
        """The score of the best trial. It is optimistic, because it is the greatest of many scores."""
        assert self.best.score is not None
        return self.best.score

    def summary(self) -> str:
        """Return the result in one sentence."""
        first = self.trials[0].score
        stopped = sum(trial.score is None for trial in self.trials)
        start = "" if first is None else f", the initial settings {first:.4f}"
        return (
            f"best of {len(self.trials)} trials: {self.best_score:.4f} held out (trial {self.best.number + 1}){start}; "
            f"{stopped} trials were stopped early."
        )

    def report(self, path: str | Path, data: str = "") -> None:
        """Write one self-contained HTML page: the best settings, every trial and, with matplotlib (`pip install
        'echolearn[report]'`), a figure of the search."""
        write_atomically(Path(path), tuning_page(self, data).encode())


TRIAL_HEAD = ["trial", "score", "seconds", "epochs"]


def tuning_page(tuning: Tuning, data: str = "") -> str:
    """Return the page: the best settings, the search as a figure, and every trial; `data` is the name of the data."""
    names = list(tuning.best_settings)
    seconds = clock(sum(trial.seconds for trial in tuning.trials))
    settings = [[name, _text(tuning.best_settings[name])] for name in names]
    ranked = sorted(tuning.trials, key=lambda trial: (trial.score is None, -(trial.score or 0), trial.number))
    body = f"""<header><p class=kicker>echolearn {html.escape(__version__)} · tuning</p>
<h1>What the search found</h1>
<p class=lead>{html.escape(tuning.summary())}</p>
<p class=note>{html.escape(data and data + ".")} All trials took {seconds}.</p></header>
<section><h2>Best settings</h2>{table_block(["setting", "value"], settings)}
</section>
{figure_blocks(_figures(tuning, names))}
<section><h2>Every trial, best first</h2>{table_block([*TRIAL_HEAD, *names], [_row(trial, names) for trial in ranked])}
<p class=note>–: stopped early, because its held-out error lagged behind the median of the trials before it.</p>
</section>"""
    return document("Tuning an echo state network", body)


def _row(trial: Trial, names: Sequence[str]) -> list[str]:
    score = "–" if trial.score is None else f"{trial.score:.4f}"
    values = [_text(trial.settings[name]) for name in names]
    return [str(trial.number + 1), score, f"{trial.seconds:.1f}", str(len(trial.curve) or "–"), *values]


def _text(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _figures(tuning: Tuning, names: Sequence[str]) -> list[Figure]:
    if not can_draw():
        return []
    columns = {name: [trial.settings[name] for trial in tuning.trials] for name in names}
    logarithmic = [name for name, options in tuning.space.items() if isinstance(options, tuple)]
    svg = search_history([trial.score for trial in tuning.trials], columns, logarithmic)
    caption = (
        "Each dot is a finished trial, the ring is the best one, the line is the best score so far, and the ticks are "
        "trials that were stopped early."
    )
    return [Figure("The search", caption, svg, wide=True)]


def search_history(
    scores: Sequence[float | None], settings: Mapping[str, Sequence[object]], logarithmic: Collection[str]
) -> str:
    """Draw the scores of trials (None: stopped early) in order, and against each setting, some `logarithmic`."""
    y = np.array([np.nan if s is None else s for s in scores])
    rows = -(-(1 + len(settings)) // 3)
    with styled_figure("search", (9.6, 3.1 * rows), layout="constrained") as figure:
        grid = figure.subplots(rows, 3, sharey=True, squeeze=False)
        first, *others = grid.flat
        trials, stopped = np.arange(1, len(y) + 1), np.isnan(y)
        first.plot(trials, np.fmax.accumulate(y), color=SERIES[1], drawstyle="steps-post", lw=1.5)
        first.scatter(trials, y, s=22, color=SERIES[0], lw=0)
        first.scatter(trials[stopped], np.full(stopped.sum(), np.nanmin(y)), s=22, marker="|", color=MUTED)
        first.set_xlabel("trial")
        for row in grid:
            row[0].set_ylabel("held-out score")
        best = int(np.nanargmax(y))
        for axes in others[len(settings) :]:
            axes.set_visible(False)
        for axes, (name, values) in zip(others, settings.items(), strict=False):
            x = _numbers(axes, values) if name in logarithmic else _categories(axes, values)
            axes.scatter(x, y, s=22, color=SERIES[0], lw=0)
            axes.scatter(x[best], y[best], s=70, facecolor="none", edgecolor=SERIES[1], lw=2)
            axes.set_xlabel(name)
        return to_svg(figure, "search")


def _numbers(axes: Axes, values: Sequence[object]) -> Array:
    """Make the x axis logarithmic and return the places of the values on it."""
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.tick_params(axis="x", which="minor", length=0)
    return np.asarray(values, float)


def _categories(axes: Axes, values: Sequence[object]) -> Array:
    """Label the x axis with the different values and return the place of each on it."""
    names = list(dict.fromkeys(map(str, values)))
    axes.set_xticks(range(len(names)), names, fontsize=8)
    axes.margins(x=0.2)
    return np.array([names.index(str(v)) for v in values])
