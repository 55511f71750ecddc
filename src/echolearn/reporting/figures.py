"""Numbers -> pictures: SVG to stand inside a page, its colours taken from the page's light or dark style."""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

matplotlib.use("svg")  # no window, no display
from matplotlib import pyplot as plt
from matplotlib.ticker import LogLocator, MaxNLocator, PercentFormatter

Array = NDArray[Any]

# Colours nobody would choose, each replaced by a variable of the page's style sheet.
INK, MUTED, GRID = "#010203", "#010204", "#010205"
SERIES = ("#010211", "#010212", "#010213", "#010214", "#010215", "#010216")
_VARIABLES = {INK: "--ink", MUTED: "--muted", GRID: "--line"} | {c: f"--c{k}" for k, c in enumerate(SERIES, 1)}
_STYLE = {
    "svg.fonttype": "none",
    "font.size": 10,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "lines.linewidth": 2,
}


@dataclass(frozen=True)
class Curve:
    label: str
    y: Sequence[float]
    dashed: bool = False


@dataclass(frozen=True)
class Spectrum:
    title: str
    before: Array
    after: Array


@dataclass(frozen=True)
class Spoken:
    """One utterance, all rows at 100 a second. picture (frames, rows): its spectrogram, or its features.

    phones: (first frame, name) of each; states (frames, N); posteriors (frames, P), of the phones in `names`,
    which has every phone said.
    """

    picture: Array
    picture_label: str
    phones: Sequence[tuple[int, str]]
    states: Array
    posteriors: Array
    names: Sequence[str]


def _svg(figure: Any, name: str) -> str:
    with io.StringIO() as out:
        figure.savefig(
            out, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight", pad_inches=0.04
        )
        text = out.getvalue()
    plt.close(figure)
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r'\1 role="img"', text, count=1)
    # Several drawings share the page: whatever they refer to inside themselves carries their name.
    text = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{name}-", text)
    text = re.sub(r"(font|font-family):([^;\"]*?)'?DejaVu Sans'?[^;\"]*", _own_font, text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    return text


def _own_font(match: re.Match[str]) -> str:
    return f"font:{match[2]}system-ui, sans-serif" if match[1] == "font" else "font-family: system-ui, sans-serif"


def _style(name: str) -> Any:
    return plt.rc_context(_STYLE | {"svg.hashsalt": name})


def errors(ticks: Sequence[str], curves: Sequence[Curve]) -> str:
    """Test error by column, one line a size; NaN leaves a gap."""
    with _style("errors"):
        figure, axes = plt.subplots(figsize=(6.6, 3.9))
        for k, curve in enumerate(curves):
            colour = MUTED if curve.dashed else SERIES[k % len(SERIES)]
            y = np.asarray(curve.y, float)
            x = np.arange(len(y))
            # Two readouts: a line from the paper's to ours would join what learning did not.
            for part in (slice(0, 5), slice(5, None)):
                style = {"ls": "--", "lw": 1.2, "marker": "o", "ms": 3} if curve.dashed else {"marker": "o", "ms": 6}
                label = curve.label if part.start == 0 else None
                axes.plot(x[part], y[part], color=colour, label=label, **style)
            if not curve.dashed:
                for at, value in zip(x, y, strict=True):
                    if np.isfinite(value):
                        place = {"xytext": (0, 7 if k == 0 else -14), "textcoords": "offset points"}
                        axes.annotate(
                            f"{100 * value:.1f}", (at, value), ha="center", fontsize=8.5, color=colour, **place
                        )
        axes.set_xticks(range(len(ticks)), ticks)
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.set_xlim(-0.4, len(ticks) - 0.6)
        axes.grid(axis="x", visible=False)
        axes.margins(y=0.14)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
        return _svg(figure, "errors")


def learning(panels: Mapping[str, Sequence[Curve]]) -> str:
    """Validation error by epoch, one panel a size."""
    with _style("learning"):
        figure, grid = plt.subplots(
            1, len(panels), figsize=(max(4.2, 3.3 * len(panels)), 3.75), sharey=True, squeeze=False
        )
        for axes, (title, curves) in zip(grid[0], panels.items(), strict=True):
            for k, curve in enumerate(curves):
                axes.plot(np.arange(1, len(curve.y) + 1), curve.y, color=SERIES[k], label=curve.label)
            axes.set_title(title)
            axes.set_xlabel("epoch")
            axes.yaxis.set_major_locator(MaxNLocator(6, integer=False, steps=[1, 2, 5, 10]))
            axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, -0.15), ncols=3)
        return _svg(figure, "learning")


def eigenvalues(spectra: Sequence[Spectrum]) -> str:
    """The eigenvalues of W_rec in the complex plane, as drawn and as learned."""
    with _style("eigenvalues"):
        figure, grid = plt.subplots(1, len(spectra), figsize=(4.8 * len(spectra), 4.9), squeeze=False)
        for axes, one in zip(grid[0], spectra, strict=True):
            for values, colour, label in ((one.before, SERIES[1], "as drawn"), (one.after, SERIES[0], "learned")):
                axes.scatter(values.real, values.imag, s=7, color=colour, alpha=0.6, lw=0, label=label)
                radius = np.abs(values).max()
                axes.add_patch(plt.Circle((0, 0), radius, fill=False, color=colour, lw=1, ls=":"))
            axes.set_aspect("equal")
            axes.set_title(one.title)
            axes.set_xlabel("real part")
        grid[0][0].set_ylabel("imaginary part")
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, -0.04), ncols=2, markerscale=2.5)
        return _svg(figure, "eigenvalues")


def utterance(spoken: Spoken) -> str:
    """Spectrogram, states and posteriors over one time axis; boxes show what was really said."""
    seconds = len(spoken.states) / 100
    rows = len(spoken.names)
    with _style("utterance"):
        height = 0.155 * rows + 0.3
        figure, (top, middle, low) = plt.subplots(
            3,
            1,
            figsize=(9.6, 3.7 + height),
            sharex=True,
            height_ratios=(1.9, 1.6, height),
            gridspec_kw={"hspace": 0.08},
        )
        picture = spoken.picture.T
        floor, ceiling = np.percentile(picture, (5, 99.8))
        top.imshow(picture, vmin=floor, vmax=ceiling, extent=(0, seconds, 0, picture.shape[0]), **_image("magma"))
        top.set_ylabel(spoken.picture_label)
        _phones(top, spoken.phones, seconds)
        states = spoken.states.T
        least, most = np.percentile(states, (0.5, 99.5))
        middle.imshow(states, vmin=least, vmax=most, extent=(0, seconds, 0, len(states)), **_image("viridis"))
        middle.set_ylabel(f"{len(states)} states")
        low.imshow(spoken.posteriors.T, vmin=0, vmax=1, extent=(0, seconds, 0, rows), **_image("magma"))
        _boxes(low, spoken, seconds)
        low.set_ylabel("posterior by phone")
        low.set_xlabel("seconds")
        for axes in (top, middle):
            axes.set_yticks([])
            for start, _ in spoken.phones[1:]:
                axes.axvline(start / 100, color="white", lw=0.5, alpha=0.35)
        low.set_yticks(np.arange(rows) + 0.5, spoken.names, fontsize=8)
        for axes in (top, middle, low):
            axes.grid(visible=False)
        return _svg(figure, "utterance")


def search(scores: Sequence[float | None], settings: Mapping[str, Sequence[Any]], by_log: Collection[str]) -> str:
    """Scores of trials in order, with the best so far; and against each setting, numbers on a logarithmic axis."""
    y = np.array([np.nan if s is None else s for s in scores])
    with _style("search"):
        rows = -(-(1 + len(settings)) // 3)
        figure, grid = plt.subplots(
            rows, 3, figsize=(9.6, 3.1 * rows), sharey=True, squeeze=False, layout="constrained"
        )
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
            x = _places(axes, values, name in by_log)
            axes.scatter(x, y, s=22, color=SERIES[0], lw=0)
            axes.scatter(x[best], y[best], s=70, facecolor="none", edgecolor=SERIES[1], lw=2)
            axes.set_xlabel(name)
        return _svg(figure, "search")


def _places(axes: Any, values: Sequence[Any], logarithmic: bool) -> Array:
    """Where values stand on the x axis: by their logarithm, or side by side with their names."""
    if logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
        axes.tick_params(axis="x", which="minor", length=0)
        return np.asarray(values, float)
    words = list(dict.fromkeys(map(str, values)))
    axes.set_xticks(range(len(words)), words, fontsize=8)
    axes.margins(x=0.2)
    return np.array([words.index(str(v)) for v in values])


def _boxes(axes: Any, spoken: Spoken, seconds: float) -> None:
    for start, end, name in _spans(spoken.phones, seconds):
        corner = (start / 100, spoken.names.index(name))
        box = plt.Rectangle(corner, (end - start) / 100, 1, fill=False, edgecolor="#7fd4ef", lw=0.9)
        axes.add_patch(box)


def _spans(phones: Sequence[tuple[int, str]], seconds: float) -> list[tuple[int, int, str]]:
    ends = [start for start, _ in phones[1:]] + [round(100 * seconds)]
    return [(start, end, name) for (start, name), end in zip(phones, ends, strict=True)]


def _image(colours: str) -> dict[str, Any]:
    return {"cmap": colours, "origin": "lower", "aspect": "auto", "interpolation": "nearest"}


def _phones(axes: Any, phones: Sequence[tuple[int, str]], seconds: float) -> None:
    """Names over the middle of their frames, short ones on two levels so that they do not run into each other."""
    level = 0
    for start, end, name in _spans(phones, seconds):
        level = 1 - level if end - start < 9 else 0
        place = ((start + end) / 200, 1.02 + 0.085 * level)
        axes.text(*place, name, transform=axes.get_xaxis_transform(), ha="center", fontsize=8)


def confusions(table: Array, phones: Sequence[str]) -> str:
    """Shares of each phone's frames (rows) heard as each phone (columns)."""
    share = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    with _style("confusions"):
        figure, axes = plt.subplots(figsize=(8.4, 7.6))
        image = axes.imshow(np.sqrt(share), vmin=0, vmax=1, cmap="magma", interpolation="nearest")
        axes.set_xticks(range(len(phones)), phones, rotation=90, fontsize=7.5)
        axes.set_yticks(range(len(phones)), phones, fontsize=7.5)
        axes.grid(visible=False)
        axes.set_xlabel("heard")
        axes.set_ylabel("said")
        bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.02, ticks=np.sqrt((0, 0.01, 0.05, 0.2, 0.5, 1)))
        bar.ax.set_yticklabels(("0", "1 %", "5 %", "20 %", "50 %", "100 %"), fontsize=8)
        bar.outline.set_visible(False)
        return _svg(figure, "confusions")
