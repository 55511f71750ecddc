"""The figures of the report on phones, each from plain numbers to SVG. Names of phones are never read as formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from echolearn.reporting.figures import FRAMES_PER_SECOND, image_options, percent_axis
from echolearn.reporting.svg import INK, MUTED, SERIES, styled_figure, to_svg
from echolearn.validation import Array

if TYPE_CHECKING:  # optional, imported when something is drawn
    from matplotlib.axes import Axes

RIGHT, SILENCE = SERIES[0], MUTED
WRONG = {"substitution": SERIES[1], "deletion": SERIES[5], "insertion": SERIES[4]}
PIXELS_PER_SECOND = 240  # of an utterance, so that the name of a phone of five frames is readable
NARROWEST, PIXELS_PER_INCH = 760, 79
LETTER = 7  # pixels that a letter of a phone's name is wide
SHOWN_PHONES = 45


@dataclass(frozen=True)
class Segment:
    """A phone with its frames; kind: right, silence, substitution, deletion or insertion."""

    name: str
    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class DecodedUtterance:
    """What is drawn of one utterance; all arrays have one row per frame.

    Attributes
    ----------
    picture : array of shape (frames, rows)
        The spectrogram, or the features where there is no audio.
    picture_label : str
        What the picture shows.
    spoken, recognised : sequence of Segment
        The phones of both sides.
    posteriors : array of shape (frames, len(names))
        The probability of each phone in `names`.
    names : sequence of str
        The phones shown.
    """

    picture: Array
    picture_label: str
    spoken: Sequence[Segment]
    recognised: Sequence[Segment]
    posteriors: Array
    names: Sequence[str]

    @property
    def seconds(self) -> float:
        """Its duration."""
        return len(self.posteriors) / FRAMES_PER_SECOND

    @property
    def pixels(self) -> int:
        """The least width at which it is readable."""
        return max(NARROWEST, round(PIXELS_PER_SECOND * self.seconds))


def decoded_utterance(shown: DecodedUtterance, name: str) -> str:
    """Draw the picture, true and recognised phones as two bars, and posteriors, over one time axis."""
    rows, seconds = len(shown.names), shown.seconds
    height = 0.155 * rows + 0.3
    with styled_figure(name, (shown.pixels / PIXELS_PER_INCH, 3.0 + height)) as figure:
        top, bars, bottom = figure.subplots(
            3, 1, sharex=True, height_ratios=(1.9, 0.8, height), gridspec_kw={"hspace": 0.06}
        )
        picture = shown.picture.T
        low, high = np.percentile(picture, (5, 99.8))
        top.imshow(picture, vmin=low, vmax=high, extent=(0, seconds, 0, picture.shape[0]), **image_options("magma"))
        top.set_ylabel(shown.picture_label)
        top.set_yticks([])
        letter = LETTER * seconds / shown.pixels
        _draw_bar(bars, shown.spoken, 1, letter)
        _draw_bar(bars, shown.recognised, 0, letter)
        bars.set_ylim(0, 2)
        bars.set_yticks((0.5, 1.5), ("recognised", "spoken"), fontsize=8.5)
        bars.spines[:].set_visible(False)
        bottom.imshow(shown.posteriors.T, vmin=0, vmax=1, extent=(0, seconds, 0, rows), **image_options("magma"))
        bottom.set_yticks(np.arange(rows) + 0.5, shown.names, fontsize=8, parse_math=False)
        bottom.set_ylabel("posterior by phone")
        bottom.set_xlabel("seconds")
        for axes in (top, bars, bottom):
            axes.grid(visible=False)
            axes.set_xlim(0, seconds)
        return to_svg(figure, name)


def _draw_bar(axes: Axes, segments: Sequence[Segment], level: int, letter: float) -> None:
    """Draw the phones of one side; names that do not fit are left out. letter: its width in seconds."""
    from matplotlib.patches import Rectangle

    for one in segments:
        start, width = one.start / FRAMES_PER_SECOND, (one.end - one.start) / FRAMES_PER_SECOND
        colour = WRONG.get(one.kind, RIGHT if one.kind == "right" else SILENCE)
        strong = 0.75 if one.kind in WRONG else 0.3
        axes.add_patch(Rectangle((start, level + 0.06), width, 0.88, facecolor=colour, alpha=strong, lw=0))
        axes.plot([start, start], [level + 0.06, level + 0.94], color=INK, lw=0.6)
        if width >= letter * len(one.name):
            place = (start + width / 2, level + 0.5)
            axes.text(*place, one.name, ha="center", va="center", fontsize=7.5, clip_on=True, parse_math=False)


def phone_confusions(counts: Array, spoken: Sequence[str], recognised: Sequence[str]) -> str:
    """Draw the shares of each phone (rows; the last: inserted) that were recognised as each phone (columns)."""
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    with styled_figure("phone-confusions", (8.4, 7.8)) as figure:
        axes = figure.subplots()
        image = axes.imshow(np.sqrt(share), vmin=0, vmax=1, cmap="magma", interpolation="nearest")
        axes.set_xticks(range(len(recognised)), recognised, rotation=90, fontsize=7.5, parse_math=False)
        axes.set_yticks(range(len(spoken)), spoken, fontsize=7.5, parse_math=False)
        axes.grid(visible=False)
        axes.set_xlabel("recognised")
        axes.set_ylabel("spoken")
        bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.02, ticks=np.sqrt((0, 0.01, 0.05, 0.2, 0.5, 1)))
        bar.ax.set_yticklabels(("0", "1 %", "5 %", "20 %", "50 %", "100 %"), fontsize=8)
        bar.outline.set_visible(False)
        return to_svg(figure, "phone-confusions")


@dataclass(frozen=True)
class PhoneErrors:
    """The errors of one phone; an insertion counts for the phone that was inserted."""

    phone: str
    reference: int
    substitutions: int
    deletions: int
    insertions: int

    @property
    def errors(self) -> int:
        """All of them."""
        return self.substitutions + self.deletions + self.insertions


def errors_by_phone(phones: Sequence[PhoneErrors]) -> str:
    """Draw the errors of each phone by kind, most errors first, and below them the share of the phone's occurrences."""
    shown = sorted(phones, key=lambda p: -p.errors)[:SHOWN_PHONES]
    x = np.arange(len(shown))
    with styled_figure("phone-errors", (9.6, 4.4)) as figure:
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1), gridspec_kw={"hspace": 0.12})
        base = np.zeros(len(shown))
        for kind, values in _by_kind(shown).items():
            top.bar(x, values, 0.75, bottom=base, color=WRONG[kind], label=f"{kind}s")
            base += values
        share = [(p.substitutions + p.deletions) / p.reference if p.reference else np.nan for p in shown]
        bottom.bar(x, share, 0.75, color=MUTED, alpha=0.6)
        percent_axis(bottom.yaxis)
        top.set_ylabel("errors")
        bottom.set_ylabel("not recognised")
        bottom.set_xticks(x, [p.phone for p in shown], fontsize=8, rotation=90, parse_math=False)
        bottom.set_xlim(-0.6, len(shown) - 0.4)
        for axes in (top, bottom):
            axes.grid(axis="x", visible=False)
        top.legend(loc="upper right", ncols=3)
        return to_svg(figure, "phone-errors")


def _by_kind(phones: Sequence[PhoneErrors]) -> dict[str, Array]:
    return {kind: np.array([getattr(p, f"{kind}s") for p in phones], dtype=float) for kind in WRONG}


def insertions_and_deletions(phones: Sequence[PhoneErrors]) -> str:
    """Draw how often each phone was inserted (to the right) and deleted (to the left), most of both first."""
    shown = sorted(phones, key=lambda p: -(p.insertions + p.deletions))[:18]
    shown = [p for p in shown if p.insertions + p.deletions][::-1]
    y = np.arange(len(shown))
    with styled_figure("phone-balance", (6.0, max(1.6, 0.21 * len(shown) + 0.7))) as figure:
        axes = figure.subplots()
        axes.barh(y, [-p.deletions for p in shown], 0.75, color=WRONG["deletion"], label="deleted")
        axes.barh(y, [p.insertions for p in shown], 0.75, color=WRONG["insertion"], label="inserted")
        axes.axvline(0, color=MUTED, lw=0.8)
        axes.set_yticks(y, [p.phone for p in shown], fontsize=8, parse_math=False)
        axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        axes.grid(axis="y", visible=False)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)
        return to_svg(figure, "phone-balance")


def errors_by_kind(systems: Mapping[str, Sequence[float]]) -> str:
    """Draw substitutions, deletions and insertions of each system, as fractions of reference phones."""
    x, base = np.arange(len(systems)), np.zeros(len(systems))
    table = np.array(list(systems.values()))
    with styled_figure("phone-kinds", (6.0, 3.6)) as figure:
        axes = figure.subplots()
        for k, (kind, colour) in enumerate(WRONG.items()):
            axes.bar(x, table[:, k], 0.6, bottom=base, color=colour, label=f"{kind}s")
            base += table[:, k]
        for place, total in zip(x, base, strict=True):
            axes.annotate(
                f"{100 * total:.1f} %", (place, total), xytext=(0, 3), textcoords="offset points", ha="center"
            )
        axes.set_xticks(x, list(systems))
        axes.set_xlim(-0.6, len(systems) - 0.4)
        axes.margins(y=0.12)
        percent_axis(axes.yaxis)
        axes.grid(axis="x", visible=False)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3)
        return to_svg(figure, "phone-kinds")


def errors_by_speaker(rates: Mapping[str, float], total: float) -> str:
    """Draw the phone error of each speaker, largest first, with that of all of them as a line."""
    shown = sorted(rates.items(), key=lambda item: -item[1])[:SHOWN_PHONES]
    x = np.arange(len(shown))
    with styled_figure("phone-speakers", (9.6, 2.9)) as figure:
        axes = figure.subplots()
        axes.bar(x, [rate for _, rate in shown], 0.75, color=SERIES[0], alpha=0.8)
        axes.axhline(total, color=SERIES[1], lw=1.4, ls="--", label=f"all speakers: {100 * total:.1f} %")
        axes.set_xticks(x, [name[:24] for name, _ in shown], fontsize=8, rotation=90, parse_math=False)
        axes.set_xlim(-0.6, len(shown) - 0.4)
        percent_axis(axes.yaxis)
        axes.grid(axis="x", visible=False)
        axes.legend(loc="upper right")
        return to_svg(figure, "phone-speakers")


@dataclass(frozen=True)
class SystemPoint:
    """A system in the plane of state error and phone error on test; interval: of the phone error."""

    name: str
    state_error: float
    phone_error: float
    interval: Sequence[float] | None


def states_against_phones(points: Sequence[SystemPoint]) -> str:
    """Draw the phone error of each system against its state error, with intervals."""
    with styled_figure("phone-states", (6.0, 3.9)) as figure:
        axes = figure.subplots()
        for k, point in enumerate(points):
            colour = SERIES[k % len(SERIES)]
            if point.interval is not None:
                axes.plot([point.state_error] * 2, point.interval, color=colour, lw=1.4, alpha=0.6)
            axes.plot(point.state_error, point.phone_error, "o", ms=8, color=colour)
            place = (point.state_error, point.phone_error)
            axes.annotate(point.name, place, xytext=(8, 4), textcoords="offset points", color=colour, fontsize=9.5)
        axes.set_xlabel("state error, by frame")
        axes.set_ylabel("phone error")
        axes.margins(x=0.25, y=0.18)
        percent_axis(axes.xaxis)
        percent_axis(axes.yaxis)
        return to_svg(figure, "phone-states")
