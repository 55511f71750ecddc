"""The figures beside Table 1: which cells and which utterance they show, their captions, and the drawings as SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from echolearn.display.report import Figure
from echolearn.display.svg import MUTED, SERIES, can_draw, styled_figure, to_svg
from echolearn.exceptions import CorpusError
from echolearn.paper.fits import FitResult
from echolearn.paper.table1_report import COLUMNS, Table, paper_note, shown_columns
from echolearn.speech import Corpus, read_audio
from echolearn.speech._features import SHIFT_SAMPLES, WINDOW_SAMPLES
from echolearn.speech._phone_set import phones_of_states, split_state
from echolearn.speech.recognition._recognizer import StateClassifier
from echolearn.validation import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

Results = Mapping[str, FitResult]  # by the name of the cell, "column-units-seed"
LoadModel = Callable[[str], StateClassifier]  # the network of a cell, by the same name

FRAMES_PER_SECOND = 100
SHORT_PHONE_FRAMES = 9  # the name of a shorter phone may run into its neighbour's
MAX_SPECTRUM_UNITS = 2_000  # the eigenvalues of a larger W_rec take too long
SHOWN_STATES = 100
LIKELY_PROBABILITY = 0.5  # a phone that the network holds so likely at some frame is shown, though it was not spoken
SHOWN_FRAMES = (180, 420)  # an utterance of about two to four seconds fills the width
FFT_LENGTH = 512
# Pairs of a fixed column and learned ones, the first of which that has a cell is shown.
SPECTRUM_COLUMNS = {
    "the paper's settings": ("esn", ("W_Wrec_full", "W_Wrec_m3", "W_Wrec_m1")),
    "our defaults": ("esn_ours", ("ours",)),
}


def draw_figures(corpus: Corpus, table: Table, results: Results, load_model: LoadModel) -> list[Figure]:
    """Return the figures of the report; none where matplotlib is missing."""
    if not can_draw():
        return []
    found = [
        _errors(table),
        _learning_curves(table, results),
        _utterance(corpus, table, results, load_model),
        _eigenvalues(results, load_model),
        _confusions(corpus, results),
    ]
    return [figure for figure in found if figure is not None]


def _errors(table: Table) -> Figure:
    columns = shown_columns(table)
    curves = []
    for row in table["rows"]:
        y = [row["columns"][c]["test_error"] if c in row["columns"] else np.nan for c in columns]
        curves.append(Curve(f"{row['units']:,} units", y))
    for paper in table["paper_timit"]:
        if any(paper["units"] == row["units"] for row in table["rows"]):
            y = [paper["test_error"].get(c, np.nan) for c in columns]
            curves.append(Curve(f"{paper['units']:,}, TIMIT (paper)", y, dashed=True))
    svg = errors_by_column({COLUMNS[c].short: (COLUMNS[c].kind, COLUMNS[c].ensemble) for c in columns}, curves)
    caption = "Test error by what is learned. Lines connect networks of the same form and readout."
    if any(curve.dashed for curve in curves):
        caption += f" Dashed: the paper's results ({paper_note(table)})."
    return Figure("What learning gains", caption, svg)


def _learning_curves(table: Table, results: Results) -> Figure | None:
    panels: dict[str, list[Curve]] = {}
    for row in table["rows"]:
        curves = []
        for column in (c for c in row["columns"] if not COLUMNS[c].ensemble):  # theirs are those of several networks
            result = results.get(f"{column}-{row['units']}-0")
            if result and result["history"] and "valid_error" in result["history"][0]:
                y, other = [r["valid_error"] for r in result["history"]], COLUMNS[column].kind == "ours"
                curves.append(Curve(COLUMNS[column].head, y, other, result["valid_error"] if other else None))
        if curves:
            panels[f"{row['units']:,} units"] = curves
    if not panels:
        return None
    caption = (
        "Validation error after every epoch, with the readout of the table (first seed). Dashed: one layer of ours "
        "learns with a ridge readout; the dot is its error with the softmax readout of the table, which follows. The "
        "paper's columns take one step per epoch, the others one per mini-batch."
    )
    return Figure("Learning curves", caption, learning_curves(panels))


def _eigenvalues(results: Results, load_model: LoadModel) -> Figure | None:
    spectra = {}
    for title, (fixed, learned) in SPECTRUM_COLUMNS.items():
        pair = _largest_pair(results, fixed, learned)
        if pair is not None:
            before, after = (np.linalg.eigvals(load_model(name).recurrent_weights_.toarray()) for name in pair)
            spectra[f"{title}, {len(before):,} units"] = before, after
    if not spectra:
        return None
    caption = (
        "Eigenvalues of the recurrent weights as drawn and as learned, with their spectral radius. The paper's "
        "settings scale the radius back to λ after every epoch; ours leave it free."
    )
    return Figure("How learning changes W_rec", caption, eigenvalues(spectra), wide=True)


def _largest_pair(results: Results, fixed: str, learned: Sequence[str]) -> tuple[str, str] | None:
    """Return the names of a fixed cell and a learned one that started from the same weights."""
    sizes = sorted({int(name.split("-")[1]) for name in results}, reverse=True)
    for units in (n for n in sizes if n <= MAX_SPECTRUM_UNITS):
        for column in learned:
            pair = f"{fixed}-{units}-0", f"{column}-{units}-0"
            if all(name in results for name in pair):
                return pair
    return None


def best_cell(results: Results) -> str:
    return min(results, key=lambda name: results[name]["valid_error"])


def _utterance(corpus: Corpus, table: Table, results: Results, load_model: LoadModel) -> Figure:
    name = best_cell(results)
    network = load_model(name)
    k = typical_utterance(corpus, network, results[name]["test_error"])
    shown = _shown_utterance(corpus, k, network)
    column, units, _ = name.split("-")
    all_units = "all" if COLUMNS[column].kind == "deep" else f"the {int(units):,}"  # the row's are those of one layer
    kind = "Synthetic speech" if table["synthetic"] else "Speech"
    caption = (
        f"{kind}, test utterance {corpus.utterances[k]} (its error is close to that of the test part). From the top: "
        f"its spectrogram with the phones spoken; states of {shown.states.shape[1]} of {all_units} units, slow "
        "ones at the bottom, fast ones at the top; the probability that the network gives each phone at each moment "
        f"({COLUMNS[column].long}), with boxes around the phones spoken."
    )
    return Figure("One utterance", caption, utterance(shown), wide=True)


def typical_utterance(corpus: Corpus, network: StateClassifier, error: float) -> int:
    """Return the index of the test utterance with an error nearest to `error`, among those of a length to show."""
    low, high = SHOWN_FRAMES
    off = {k: max(low - len(corpus.labels[k]), len(corpus.labels[k]) - high, 0) for k in corpus.which("test")}
    fitting = [k for k in off if off[k] == min(off.values())]
    names = np.array(corpus.state_names)
    recognised = network.predict([corpus.features[k] for k in fitting])
    errors = [float(np.mean(r != names[corpus.labels[k]])) for k, r in zip(fitting, recognised, strict=True)]
    return fitting[int(np.argmin(np.abs(np.array(errors) - error)))]


def _shown_utterance(corpus: Corpus, k: int, network: StateClassifier) -> Utterance:
    X = corpus.features[k]
    spoken = [split_state(corpus.state_names[label])[0] for label in corpus.labels[k]]
    starts = [t for t, name in enumerate(spoken) if t == 0 or name != spoken[t - 1]]
    phone_of_class = [split_state(str(name))[0] for name in network.classes_]
    return Utterance(
        *picture_of(X, utterance_sound(corpus, k)),
        *shown_posteriors(network.predict_proba([X])[0], phone_of_class, spoken),
        phones=[(start, end, spoken[start]) for start, end in pairwise([*starts, len(spoken)])],
        states=_states_by_speed(network, X),
    )


def utterance_sound(corpus: Corpus, k: int) -> Array | None:
    """Return the sound of an utterance; None where the corpus has none, or its file is no longer there."""
    path = corpus.audio[k] if corpus.audio else ""
    try:
        return read_audio(path) if path else None
    except CorpusError:
        return None


def picture_of(X: Array, samples: Array | None) -> tuple[Array, str]:
    """Return the spectrogram, or the features where there is no sound, and its label."""
    return (X, f"{X.shape[1]} features") if samples is None else (spectrogram(samples), "0 to 8 kHz")


def shown_posteriors(P: Array, phones: Sequence[str | None], named: Sequence[str]) -> tuple[Array, list[str]]:
    """Return the probabilities of phones, and their names; phones: of each column of P, None: of none. Shown, from the
    top, are the phones that are named, then those the network wrongly held likely."""
    found: dict[str, Array] = {name: np.zeros(len(P)) for name in named}
    for column, name in enumerate(phones):
        if name is not None:
            found[name] = found.get(name, np.zeros(len(P))) + P[:, column]
    likely = sorted((n for n in found if found[n].max() > LIKELY_PROBABILITY), key=lambda n: -found[n].max())
    names = list(dict.fromkeys([*named, *likely]))[::-1]
    return np.stack([found[name] for name in names], axis=1), names


def _states_by_speed(network: StateClassifier, X: Array) -> Array:
    """Return standardised states (frames, at most SHOWN_STATES), slow units first."""
    states = np.asarray(network.states([X])[0])
    deviation = states.std(axis=0) + 1e-9
    by_speed = np.argsort(np.abs(np.diff(states, axis=0)).mean(axis=0) / deviation, kind="stable")
    chosen = np.linspace(0, len(by_speed) - 1, min(SHOWN_STATES, len(by_speed))).astype(int)
    standardised: Array = (states - states.mean(axis=0)) / deviation
    return standardised[:, by_speed[chosen]]


def spectrogram(samples: Array) -> Array:
    """Return decibels (frames, 257), in the frames of the features: 25 ms every 10 ms."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, WINDOW_SAMPLES)[::SHIFT_SAMPLES]
    return np.asarray(20 * np.log10(np.abs(np.fft.rfft(frames * np.hamming(WINDOW_SAMPLES), FFT_LENGTH)) + 1.0))


def _confusions(corpus: Corpus, results: Results) -> Figure:
    name = best_cell(results)
    counts = np.array(results[name]["confusion"])
    occurs = counts.sum(axis=1) > 0
    phones = [p for p, shown in zip(phones_of_states(corpus.state_names), occurs, strict=True) if shown]
    column, units, _ = name.split("-")
    right = np.trace(counts) / counts.sum()
    caption = (
        f"{COLUMNS[column].long}, {int(units):,} units: {100 * right:.1f} % of the test frames get the right phone. "
        "Rows: the phone spoken; columns: the phone recognised; every row adds up to 100 %."
    )
    svg = confusions(counts[occurs][:, occurs], phones, phones)
    return Figure("Phone confusions", caption, svg, wide=True)


@dataclass(frozen=True)
class Curve:
    """A labelled line; NaN in `y` leaves a gap. end: a value after the last one, which is drawn as a dot."""

    label: str
    y: Sequence[float]
    dashed: bool = False
    end: float | None = None


@dataclass(frozen=True)
class ShownUtterance:
    """An utterance as it is drawn: picture (frames, rows), posteriors (frames, phones) and the names of these phones.
    The picture is the spectrogram, or the features where there is no sound."""

    picture: Array
    picture_label: str
    posteriors: Array
    names: Sequence[str]

    @property
    def seconds(self) -> float:
        return len(self.posteriors) / FRAMES_PER_SECOND


@dataclass(frozen=True)
class Utterance(ShownUtterance):
    """Also first frame, frame after the last one and name of each phone spoken, and states (frames, units)."""

    phones: Sequence[tuple[int, int, str]]
    states: Array


def errors_by_column(groups: Mapping[str, object], curves: Sequence[Curve]) -> str:
    """Draw errors over columns; groups: of each column by its name, those that a line connects."""
    ticks, of_column = list(groups), list(groups.values())
    parts = [[k for k, own in enumerate(of_column) if own == group] for group in dict.fromkeys(of_column)]
    with styled_figure("errors", (max(6.6, 0.8 * len(ticks)), 3.9)) as figure:
        axes = figure.subplots()
        for k, curve in enumerate(curves):
            colour = MUTED if curve.dashed else SERIES[k % len(SERIES)]
            _error_curve(axes, curve, colour, parts, label_above=k == 0)
        axes.set_xticks(range(len(ticks)), ticks, fontsize=8.5)
        percent_axis(axes.yaxis)
        axes.set_xlim(-0.4, len(ticks) - 0.6)
        axes.grid(axis="x", visible=False)
        axes.margins(y=0.14)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
        return to_svg(figure, "errors")


def _error_curve(axes: Axes, curve: Curve, colour: str, parts: Sequence[list[int]], *, label_above: bool) -> None:
    y = np.asarray(curve.y, float)
    x = np.arange(len(y))
    line, width, marker = ("--", 1.2, 3) if curve.dashed else ("-", 2, 6)
    # The readouts differ: a line from the paper's columns to ours would show a gain that is not due to learning.
    for k, part in enumerate(parts):
        label = None if k else curve.label
        axes.plot(x[part], y[part], color=colour, label=label, ls=line, lw=width, marker="o", ms=marker)
    if curve.dashed:
        return
    offset = (0, 7 if label_above else -14)
    for place in zip(x, y, strict=True):
        if np.isfinite(place[1]):
            text = f"{100 * place[1]:.1f}"
            axes.annotate(text, place, offset, textcoords="offset points", ha="center", fontsize=8.5, color=colour)


def learning_curves(panels: Mapping[str, Sequence[Curve]]) -> str:
    from matplotlib.ticker import MaxNLocator

    with styled_figure("learning", (max(5.4, 3.3 * len(panels)), 3.75)) as figure:
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)
        for axes, (title, curves) in zip(grid[0], panels.items(), strict=True):
            for k, curve in enumerate(curves):
                style, last = "--" if curve.dashed else "-", len(curve.y)
                axes.plot(np.arange(1, last + 1), curve.y, color=SERIES[k], label=curve.label, ls=style)
                if curve.end is not None:
                    axes.plot([last, last + 1], [curve.y[-1], curve.end], color=SERIES[k], marker="o", markevery=[1])
            axes.set(title=title, xlabel="epoch")
            axes.yaxis.set_major_locator(MaxNLocator(6, integer=False, steps=[1, 2, 5, 10]))
            percent_axis(axes.yaxis)
        handles, labels = grid[0][0].get_legend_handles_labels()
        columns = 3 if len(panels) > 1 else 1  # a legend that is wider than the axes would make them small
        figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=columns)
        return to_svg(figure, "learning")


def percent_axis(axis: Axis) -> None:
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1, decimals=0))


def eigenvalues(spectra: Mapping[str, tuple[Array, Array]]) -> str:
    from matplotlib.patches import Circle

    with styled_figure("eigenvalues", (4.8 * len(spectra), 4.9)) as figure:
        grid = figure.subplots(1, len(spectra), squeeze=False)
        for axes, (title, (before, after)) in zip(grid[0], spectra.items(), strict=True):
            for values, colour, label in ((before, SERIES[1], "as drawn"), (after, SERIES[0], "learned")):
                axes.scatter(values.real, values.imag, s=7, color=colour, alpha=0.6, lw=0, label=label)
                radius = np.abs(values).max()
                axes.add_patch(Circle((0, 0), radius, fill=False, color=colour, lw=1, ls=":"))
            axes.set(aspect="equal", title=title, xlabel="real part")
        grid[0][0].set_ylabel("imaginary part")
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, -0.04), ncols=2, markerscale=2.5)
        return to_svg(figure, "eigenvalues")


def utterance(shown: Utterance) -> str:
    """Draw spectrogram, states and posteriors over one time axis; boxes mark the phones that were spoken."""
    from matplotlib.patches import Rectangle

    height = 0.155 * len(shown.names) + 0.3
    with styled_figure("utterance", (9.6, 3.7 + height)) as figure:
        grid = {"height_ratios": (1.9, 1.6, height), "hspace": 0.08}
        top, middle, bottom = figure.subplots(3, 1, sharex=True, gridspec_kw=grid)
        draw_picture(top, shown)
        _phone_names(top, shown)
        _draw_over_time(middle, shown.states, shown.seconds, "viridis", np.percentile(shown.states, (0.5, 99.5)))
        middle.set(ylabel=f"{shown.states.shape[1]} states", yticks=[])
        draw_posteriors(bottom, shown)
        for start, end, name in shown.phones:
            corner = (start / FRAMES_PER_SECOND, shown.names.index(name))
            width = (end - start) / FRAMES_PER_SECOND
            bottom.add_patch(Rectangle(corner, width, 1, fill=False, edgecolor="#7fd4ef", lw=0.9))
        for axes in (top, middle):
            for start, _, _ in shown.phones[1:]:
                axes.axvline(start / FRAMES_PER_SECOND, color="white", lw=0.5, alpha=0.35)
        return to_svg(figure, "utterance")


def draw_picture(axes: Axes, shown: ShownUtterance) -> None:
    """Draw the picture over time; colours end at percentiles of its values."""
    _draw_over_time(axes, shown.picture, shown.seconds, "magma", np.percentile(shown.picture, (5, 99.8)))
    axes.set(ylabel=shown.picture_label, yticks=[])


def draw_posteriors(axes: Axes, shown: ShownUtterance) -> None:
    _draw_over_time(axes, shown.posteriors, shown.seconds, "magma", (0, 1))
    axes.set_yticks(np.arange(len(shown.names)) + 0.5, shown.names, fontsize=8, parse_math=False)
    axes.set(ylabel="posterior by phone", xlabel="seconds")


def _draw_over_time(
    axes: Axes, values: Array, seconds: float, colours: str, limits: Array | tuple[float, float]
) -> None:
    low, high = limits
    place = (0, seconds, 0, values.shape[1])
    axes.imshow(
        values.T, colours, vmin=low, vmax=high, extent=place, origin="lower", aspect="auto", interpolation="nearest"
    )
    axes.grid(visible=False)


def _phone_names(axes: Axes, shown: Utterance) -> None:
    """Write each name above the middle of its frames, short phones on two levels so that names do not overlap."""
    level = 0
    for start, end, name in shown.phones:
        level = 1 - level if end - start < SHORT_PHONE_FRAMES else 0
        place = ((start + end) / (2 * FRAMES_PER_SECOND), 1.02 + 0.085 * level)
        axes.text(*place, name, transform=axes.get_xaxis_transform(), ha="center", fontsize=8)


def confusions(
    counts: Array, spoken: Sequence[str], recognised: Sequence[str], *, name: str = "confusions", height: float = 7.6
) -> str:
    """Draw the shares of each row of counts; `spoken` names the rows, `recognised` the columns."""
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    with styled_figure(name, (8.4, height)) as figure:
        axes = figure.subplots()
        image = axes.imshow(np.sqrt(share), vmin=0, vmax=1, cmap="magma", interpolation="nearest")
        axes.set_xticks(range(len(recognised)), recognised, rotation=90, fontsize=7.5, parse_math=False)
        axes.set_yticks(range(len(spoken)), spoken, fontsize=7.5, parse_math=False)
        axes.grid(visible=False)
        axes.set(xlabel="recognised", ylabel="spoken")
        bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.02, ticks=np.sqrt((0, 0.01, 0.05, 0.2, 0.5, 1)))
        bar.ax.set_yticklabels(("0", "1 %", "5 %", "20 %", "50 %", "100 %"), fontsize=8)
        bar.outline.set_visible(False)
        return to_svg(figure, name)
