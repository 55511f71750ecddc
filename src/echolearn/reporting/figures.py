"""The figures of the reports, each from plain numbers to SVG."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from echolearn.reporting.svg import MUTED, SERIES, styled_figure, to_svg
from echolearn.validation import Array

if TYPE_CHECKING:  # optional, imported when something is drawn
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

FRAMES_PER_SECOND = 100
PAPER_COLUMNS = 5  # of Table 1, before our own
SHORT_PHONE = 9  # frames: the name of a shorter phone may run into its neighbour's


@dataclass(frozen=True)
class Curve:
    """A labelled line; NaN in `y` leaves a gap."""

    label: str
    y: Sequence[float]
    dashed: bool = False


@dataclass(frozen=True)
class Spectrum:
    """The eigenvalues of the recurrent weights before and after learning."""

    title: str
    before: Array
    after: Array


@dataclass(frozen=True)
class Utterance:
    """What is drawn of one utterance; all arrays have one row per frame.

    Attributes
    ----------
    picture : array of shape (frames, rows)
        The spectrogram, or the features where there is no audio.
    picture_label : str
        What the picture shows.
    phones : sequence of (int, str)
        The first frame and the name of each phone that was spoken.
    states : array of shape (frames, units)
        States of the reservoir.
    posteriors : array of shape (frames, len(names))
        The probability of each phone in `names`.
    names : sequence of str
        The phones shown, among them every phone that was spoken.
    """

    picture: Array
    picture_label: str
    phones: Sequence[tuple[int, str]]
    states: Array
    posteriors: Array
    names: Sequence[str]

    @property
    def seconds(self) -> float:
        return len(self.states) / FRAMES_PER_SECOND

    def intervals(self) -> list[tuple[int, int, str]]:
        """Return the first frame, the frame after the last one, and the name of each phone."""
        ends = [start for start, _ in self.phones[1:]] + [len(self.states)]
        return [(start, end, name) for (start, name), end in zip(self.phones, ends, strict=True)]


def errors_by_column(ticks: Sequence[str], curves: Sequence[Curve]) -> str:
    """Draw the test error by column of the table, one line per number of units."""
    with styled_figure("errors", (6.6, 3.9)) as figure:
        axes = figure.subplots()
        for k, curve in enumerate(curves):
            colour = MUTED if curve.dashed else SERIES[k % len(SERIES)]
            _error_curve(axes, curve, colour, label_above=k == 0)
        axes.set_xticks(range(len(ticks)), ticks)
        percent_axis(axes.yaxis)
        axes.set_xlim(-0.4, len(ticks) - 0.6)
        axes.grid(axis="x", visible=False)
        axes.margins(y=0.14)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
        return to_svg(figure, "errors")


def _error_curve(axes: Axes, curve: Curve, colour: str, *, label_above: bool) -> None:
    y = np.asarray(curve.y, float)
    x = np.arange(len(y))
    line, width, marker = ("--", 1.2, 3) if curve.dashed else ("-", 2, 6)
    # The readouts differ: a line from the paper's columns to ours would show a gain that is not due to learning.
    for part, label in ((slice(PAPER_COLUMNS), curve.label), (slice(PAPER_COLUMNS, None), None)):
        axes.plot(x[part], y[part], color=colour, label=label, ls=line, lw=width, marker="o", ms=marker)
    if curve.dashed:
        return
    offset = (0, 7 if label_above else -14)
    for place in zip(x, y, strict=True):
        if np.isfinite(place[1]):
            axes.annotate(
                f"{100 * place[1]:.1f}",
                place,
                xytext=offset,
                textcoords="offset points",
                ha="center",
                fontsize=8.5,
                color=colour,
            )


def learning_curves(panels: Mapping[str, Sequence[Curve]]) -> str:
    """Draw the validation error by epoch, one panel per number of units."""
    from matplotlib.ticker import MaxNLocator

    with styled_figure("learning", (max(4.2, 3.3 * len(panels)), 3.75)) as figure:
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)
        for axes, (title, curves) in zip(grid[0], panels.items(), strict=True):
            for k, curve in enumerate(curves):
                axes.plot(np.arange(1, len(curve.y) + 1), curve.y, color=SERIES[k], label=curve.label)
            axes.set_title(title)
            axes.set_xlabel("epoch")
            axes.yaxis.set_major_locator(MaxNLocator(6, integer=False, steps=[1, 2, 5, 10]))
            percent_axis(axes.yaxis)
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, -0.15), ncols=3)
        return to_svg(figure, "learning")


def percent_axis(axis: Axis) -> None:
    """Label an axis of fractions in per cent."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1, decimals=0))


def eigenvalues(spectra: Sequence[Spectrum]) -> str:
    """Draw the eigenvalues of W_rec in the complex plane, before and after learning, one panel per spectrum."""
    from matplotlib.patches import Circle

    with styled_figure("eigenvalues", (4.8 * len(spectra), 4.9)) as figure:
        grid = figure.subplots(1, len(spectra), squeeze=False)
        for axes, one in zip(grid[0], spectra, strict=True):
            for values, colour, label in ((one.before, SERIES[1], "as drawn"), (one.after, SERIES[0], "learned")):
                axes.scatter(values.real, values.imag, s=7, color=colour, alpha=0.6, lw=0, label=label)
                radius = np.abs(values).max()
                axes.add_patch(Circle((0, 0), radius, fill=False, color=colour, lw=1, ls=":"))
            axes.set_aspect("equal")
            axes.set_title(one.title)
            axes.set_xlabel("real part")
        grid[0][0].set_ylabel("imaginary part")
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, -0.04), ncols=2, markerscale=2.5)
        return to_svg(figure, "eigenvalues")


def utterance(shown: Utterance) -> str:
    """Draw spectrogram, states and posteriors over one time axis; boxes mark the phones that were spoken."""
    rows, seconds = len(shown.names), shown.seconds
    height = 0.155 * rows + 0.3
    with styled_figure("utterance", (9.6, 3.7 + height)) as figure:
        top, middle, bottom = figure.subplots(
            3, 1, sharex=True, height_ratios=(1.9, 1.6, height), gridspec_kw={"hspace": 0.08}
        )
        picture = shown.picture.T
        low, high = np.percentile(picture, (5, 99.8))
        top.imshow(picture, vmin=low, vmax=high, extent=(0, seconds, 0, picture.shape[0]), **image_options("magma"))
        top.set_ylabel(shown.picture_label)
        _phone_names(top, shown)
        states = shown.states.T
        low, high = np.percentile(states, (0.5, 99.5))
        middle.imshow(states, vmin=low, vmax=high, extent=(0, seconds, 0, len(states)), **image_options("viridis"))
        middle.set_ylabel(f"{len(states)} states")
        bottom.imshow(shown.posteriors.T, vmin=0, vmax=1, extent=(0, seconds, 0, rows), **image_options("magma"))
        _phone_boxes(bottom, shown)
        bottom.set_ylabel("posterior by phone")
        bottom.set_xlabel("seconds")
        for axes in (top, middle):
            axes.set_yticks([])
            for start, _ in shown.phones[1:]:
                axes.axvline(start / FRAMES_PER_SECOND, color="white", lw=0.5, alpha=0.35)
        bottom.set_yticks(np.arange(rows) + 0.5, shown.names, fontsize=8)
        for axes in (top, middle, bottom):
            axes.grid(visible=False)
        return to_svg(figure, "utterance")


def image_options(colours: str) -> dict[str, str]:
    """Return how values over time are drawn as a picture."""
    return {"cmap": colours, "origin": "lower", "aspect": "auto", "interpolation": "nearest"}


def _phone_names(axes: Axes, shown: Utterance) -> None:
    """Write each name above the middle of its frames, short phones on two levels so that names do not overlap."""
    level = 0
    for start, end, name in shown.intervals():
        level = 1 - level if end - start < SHORT_PHONE else 0
        place = ((start + end) / (2 * FRAMES_PER_SECOND), 1.02 + 0.085 * level)
        axes.text(*place, name, transform=axes.get_xaxis_transform(), ha="center", fontsize=8)


def _phone_boxes(axes: Axes, shown: Utterance) -> None:
    from matplotlib.patches import Rectangle

    for start, end, name in shown.intervals():
        corner = (start / FRAMES_PER_SECOND, shown.names.index(name))
        width = (end - start) / FRAMES_PER_SECOND
        axes.add_patch(Rectangle(corner, width, 1, fill=False, edgecolor="#7fd4ef", lw=0.9))


def confusions(table: Array, phones: Sequence[str]) -> str:
    """Draw the shares of each phone's frames (rows) that were recognised as each phone (columns)."""
    share = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    with styled_figure("confusions", (8.4, 7.6)) as figure:
        axes = figure.subplots()
        image = axes.imshow(np.sqrt(share), vmin=0, vmax=1, cmap="magma", interpolation="nearest")
        axes.set_xticks(range(len(phones)), phones, rotation=90, fontsize=7.5)
        axes.set_yticks(range(len(phones)), phones, fontsize=7.5)
        axes.grid(visible=False)
        axes.set_xlabel("recognised")
        axes.set_ylabel("spoken")
        bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.02, ticks=np.sqrt((0, 0.01, 0.05, 0.2, 0.5, 1)))
        bar.ax.set_yticklabels(("0", "1 %", "5 %", "20 %", "50 %", "100 %"), fontsize=8)
        bar.outline.set_visible(False)
        return to_svg(figure, "confusions")


def search_history(
    scores: Sequence[float | None], settings: Mapping[str, Sequence[object]], logarithmic: Collection[str]
) -> str:
    """Draw the scores of trials in order with the best so far, and against each setting.

    None is the score of a trial that was stopped early. `logarithmic` names the settings with a logarithmic axis.
    """
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
