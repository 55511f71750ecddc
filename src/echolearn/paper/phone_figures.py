"""The figures of the report on phones: which system and utterances they show, their captions, and drawings as SVG.

Names of phones are never read as formulas (`parse_math=False`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from echolearn.display.report import Figure
from echolearn.display.svg import INK, MUTED, SERIES, can_draw, styled_figure, to_svg
from echolearn.paper.fits import EpochRow
from echolearn.paper.phone_report import PhoneRow, alignment_block, audio_block
from echolearn.paper.phone_scoring import PhoneScoring, state_probabilities
from echolearn.paper.table1_figures import (
    FRAMES_PER_SECOND,
    Curve,
    ShownUtterance,
    confusions,
    draw_picture,
    draw_posteriors,
    learning_curves,
    percent_axis,
    picture_of,
    shown_posteriors,
    utterance_sound,
)
from echolearn.speech import Corpus, Evaluation
from echolearn.speech._phone_set import SILENCES, split_state
from echolearn.speech._scoring import Pair
from echolearn.speech.recognition._phone_models import phone_segments
from echolearn.speech.recognition._recognizer import StateClassifier
from echolearn.validation import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_SHOWN_SECONDS = 20.0  # of an utterance that is shown, so that the page stays small
MIN_PHONES = 5  # of the worst utterance: one wrong phone of one is no example
SHOWN_PHONES = 45
ERROR_COLOURS = {"substitution": SERIES[1], "deletion": SERIES[5], "insertion": SERIES[4]}
PIXELS_PER_SECOND = 240  # of an utterance, so that the name of a phone of five frames is readable
MIN_PIXELS, PIXELS_PER_INCH = 760, 79
PIXELS_PER_LETTER = 7  # of a phone's name


@dataclass(frozen=True)
class ReportedSystem:
    """The results of a system that the report shows; `load` returns its network. recognised: of each test utterance the
    phones with their first frame and the one after their last."""

    row: PhoneRow
    evaluation: Evaluation
    history: Sequence[EpochRow]
    recognised: Mapping[str, Sequence[tuple[str, int, int]]]
    load: Callable[[], StateClassifier]

    @property
    def name(self) -> str:
        return self.row["system"]


def draw_figures(corpus: Corpus, task: PhoneScoring, systems: Sequence[ReportedSystem]) -> list[Figure]:
    if not can_draw() or not systems:
        return []
    best = best_system(systems)
    return [
        _errors_by_kind(systems),
        _states_against_phones(systems),
        *_learning(systems),
        _insertions_and_deletions(best),
        *_utterances(corpus, task, best),
        _confusions(task, best),
        _errors_by_phone(best),
        *_errors_by_speaker(best),
    ]


def best_system(systems: Sequence[ReportedSystem]) -> ReportedSystem:
    """Return the system with the smallest phone error on valid; of equal ones the first."""
    return min(systems, key=lambda one: one.row["valid"]["phone_error"])


def _errors_by_kind(systems: Sequence[ReportedSystem]) -> Figure:
    tests = [one.row["test"] for one in systems]
    table = np.array([(test["substitutions"], test["deletions"], test["insertions"]) for test in tests])
    caption = "Phone error on test by kind: substitutions, deletions and insertions as shares of the reference phones."
    with styled_figure("phone-kinds", (6.0, 3.6)) as figure:
        axes = figure.subplots()
        totals = _stack_bars(axes, 0.6, table)
        for place, total in enumerate(totals):
            text = f"{100 * total:.1f} %"
            axes.annotate(text, (place, total), xytext=(0, 3), textcoords="offset points", ha="center")
        axes.set_xticks(range(len(systems)), [one.name for one in systems])
        axes.set_xlim(-0.6, len(systems) - 0.4)
        axes.margins(y=0.12)
        percent_axis(axes.yaxis)
        axes.grid(axis="x", visible=False)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3)
        return Figure("Errors by kind", caption, to_svg(figure, "phone-kinds"))


def _stack_bars(axes: Axes, width: float, counts: Array) -> Array:
    """Draw the errors by kind (bars, kinds) above each other, and return their sums."""
    base = np.zeros(len(counts))
    for (kind, colour), values in zip(ERROR_COLOURS.items(), counts.T, strict=True):
        axes.bar(np.arange(len(counts)), values, width, bottom=base, color=colour, label=f"{kind}s")
        base = base + values
    return base


def _name_bars(axes: Axes, names: Sequence[str]) -> None:
    axes.set_xticks(range(len(names)), names, fontsize=8, rotation=90, parse_math=False)
    axes.set_xlim(-0.6, len(names) - 0.4)


def _states_against_phones(systems: Sequence[ReportedSystem]) -> Figure:
    caption = (
        "What a lower state error is worth: the phone error of each system against the share of frames with a wrong "
        "state, both on test. Lines: 95 % intervals of the phone error over speakers."
    )
    with styled_figure("phone-states", (6.0, 3.9)) as figure:
        axes = figure.subplots()
        for k, one in enumerate(systems):
            colour, test = SERIES[k % len(SERIES)], one.row["test"]
            place = test["state_error"], test["phone_error"]
            if test["interval"] is not None:
                axes.plot([place[0]] * 2, test["interval"], color=colour, lw=1.4, alpha=0.6)
            axes.plot(*place, "o", ms=8, color=colour, label=one.name)
        axes.set(xlabel="state error, by frame", ylabel="phone error")
        axes.margins(x=0.25, y=0.18)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4)
        percent_axis(axes.xaxis)
        percent_axis(axes.yaxis)
        return Figure("Frames against phones", caption, to_svg(figure, "phone-states"))


def _learning(systems: Sequence[ReportedSystem]) -> list[Figure]:
    curves = []
    for one in systems:
        y = [row["valid_error"] for row in one.history if "valid_error" in row]
        if y:
            percent = 100 * one.row["test"]["phone_error"]
            curves.append(Curve(f"{one.name} (phone error {percent:.1f} %)", y))
    if not curves:
        return []
    fixed = [one.row["test"]["phone_error"] for one in systems if one.name == "fixed"]
    beside = f" Without learning the phone error is {100 * fixed[0]:.1f} %." if fixed else ""
    caption = (
        "State error on valid after every epoch of learning, in the legend with the phone error on test at its end."
        f"{beside} The curve of one layer has a ridge readout; the systems end with a softmax readout."
    )
    return [Figure("Learning and phone error", caption, learning_curves({"state error on valid": curves}))]


def _insertions_and_deletions(best: ReportedSystem) -> Figure:
    """Draw how often each phone was inserted (to the right) and deleted (to the left), most of both first."""
    total = best.evaluation.total
    caption = (
        f"System {best.name}: {total.insertions:,} phones were inserted and {total.deletions:,} deleted, of "
        f"{total.reference:,}. Where one is much more frequent than the other, the penalty of the "
        "decoder, which is tuned on valid, does not suit the test part."
    )
    counts = best.evaluation.by_token()
    shown = sorted(counts, key=lambda p: -(counts[p].insertions + counts[p].deletions))[:18]
    shown = [p for p in shown if counts[p].insertions + counts[p].deletions][::-1]
    y = np.arange(len(shown))
    with styled_figure("phone-balance", (6.0, max(1.6, 0.21 * len(shown) + 0.7))) as figure:
        axes = figure.subplots()
        axes.barh(y, [-counts[p].deletions for p in shown], 0.75, color=ERROR_COLOURS["deletion"], label="deleted")
        axes.barh(y, [counts[p].insertions for p in shown], 0.75, color=ERROR_COLOURS["insertion"], label="inserted")
        axes.axvline(0, color=MUTED, lw=0.8)
        axes.set_yticks(y, shown, fontsize=8, parse_math=False)
        axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        axes.grid(axis="y", visible=False)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)
        return Figure("Insertions and deletions", caption, to_svg(figure, "phone-balance"))


def _errors_by_phone(best: ReportedSystem) -> Figure:
    """Draw the errors of each phone by kind, most errors first, and below them the share of the phone's occurrences."""
    caption = (
        f"System {best.name}, test. Above: number of errors of each phone; an insertion counts for the phone that was "
        "inserted. Below: the share of its occurrences that were substituted or deleted."
    )
    shown = sorted(best.evaluation.by_token().items(), key=lambda item: -item[1].errors)[:SHOWN_PHONES]
    counts = [c for _, c in shown]
    with styled_figure("phone-errors", (9.6, 4.4)) as figure:
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1), gridspec_kw={"hspace": 0.12})
        _stack_bars(top, 0.75, np.array([(c.substitutions, c.deletions, c.insertions) for c in counts], dtype=float))
        share = [(c.substitutions + c.deletions) / c.reference if c.reference else np.nan for c in counts]
        bottom.bar(range(len(shown)), share, 0.75, color=MUTED, alpha=0.6)
        percent_axis(bottom.yaxis)
        top.set_ylabel("errors")
        bottom.set_ylabel("not recognised")
        _name_bars(bottom, [phone for phone, _ in shown])
        for axes in (top, bottom):
            axes.grid(axis="x", visible=False)
        top.legend(loc="upper right", ncols=3)
        return Figure("Errors by phone", caption, to_svg(figure, "phone-errors"), wide=True)


def _errors_by_speaker(best: ReportedSystem) -> list[Figure]:
    """Draw the phone error of each speaker, largest first, with that of all of them as a line."""
    speakers = {name: counts.error_rate for name, counts in best.evaluation.by_speaker().items() if counts.reference}
    if len(speakers) < 2:
        return []
    caption = (
        f"System {best.name}, test: the phone error of each of {len(speakers)} speakers. Errors of one "
        "speaker resemble each other, so the interval of the phone error is over speakers."
    )
    shown = sorted(speakers.items(), key=lambda item: -item[1])[:SHOWN_PHONES]
    total = best.evaluation.total.error_rate
    with styled_figure("phone-speakers", (9.6, 2.9)) as figure:
        axes = figure.subplots()
        axes.bar(range(len(shown)), [rate for _, rate in shown], 0.75, color=SERIES[0], alpha=0.8)
        axes.axhline(total, color=SERIES[1], lw=1.4, ls="--", label=f"all speakers: {100 * total:.1f} %")
        _name_bars(axes, [name[:24] for name, _ in shown])
        percent_axis(axes.yaxis)
        axes.grid(axis="x", visible=False)
        axes.legend(loc="upper right")
        return [Figure("Errors by speaker", caption, to_svg(figure, "phone-speakers"), wide=True)]


def confusion_table(evaluation: Evaluation, phones: Sequence[str]) -> tuple[Array, list[str], list[str]]:
    """Return how often each phone (rows, and last what was inserted) was recognised as each (last: as nothing).
    Silences, and phones that occur on neither side, have no row or column."""
    pairs = [pair for pairs in evaluation.alignments.values() for pair in pairs]
    spoken = [p for p in phones if p not in SILENCES and any(true == p for true, _ in pairs)]
    recognised = [p for p in phones if p not in SILENCES and any(p in pair for pair in pairs)]
    row: dict[str | None, int] = {None: len(spoken)} | {p: k for k, p in enumerate(spoken)}
    column: dict[str | None, int] = {None: len(recognised)} | {p: k for k, p in enumerate(recognised)}
    counts = np.zeros((len(row), len(column)), dtype=np.int64)
    for true, answer in pairs:
        counts[row[true], column[answer]] += 1
    return counts, [*spoken, "(inserted)"], [*recognised, "(deleted)"]


def _confusions(task: PhoneScoring, best: ReportedSystem) -> Figure:
    counts, spoken, recognised = confusion_table(best.evaluation, task.classes)
    frequent = best.evaluation.confusions().most_common(6)
    named = ", ".join(f"{a or 'nothing'} as {b or 'nothing'} ({n})" for (a, b), n in frequent)
    caption = (
        f"System {best.name}, test. Rows: the phone spoken; columns: the phone recognised in its place; every row adds "
        f"up to 100 %. Most frequent: {named or 'no errors'}."
    )
    svg = confusions(counts, spoken, recognised, name="phone-confusions", height=7.8)
    return Figure("Phone confusions", caption, svg, wide=True)


def shown_utterances(corpus: Corpus, evaluation: Evaluation) -> dict[str, int]:
    """Return test utterances to show: the shortest, the one of median length and the worst of at least `MIN_PHONES`
    phones, each once; utterances longer than `MAX_SHOWN_SECONDS` only where there are no others."""
    which = [k for k in corpus.which("test") if evaluation.alignments[corpus.utterances[k]]] or corpus.which("test")
    short = [k for k in which if len(corpus.labels[k]) <= MAX_SHOWN_SECONDS * FRAMES_PER_SECOND] or which
    by_length = sorted(short, key=lambda k: len(corpus.labels[k]))
    counts = evaluation.by_utterance()
    of = {k: counts[corpus.utterances[k]] for k in short}
    candidates = [k for k in short if of[k].reference >= MIN_PHONES] or short
    worst = max(candidates, key=lambda k: of[k].error_rate if of[k].reference else float(of[k].insertions > 0))
    found = {"shortest": by_length[0], "of median length": by_length[len(by_length) // 2], "worst": worst}
    return {" and ".join(w for w in found if found[w] == k): k for k in dict.fromkeys(found.values())}


def _utterances(corpus: Corpus, task: PhoneScoring, best: ReportedSystem) -> list[Figure]:
    model = best.load()
    figures = []
    for number, (what, k) in enumerate(shown_utterances(corpus, best.evaluation).items()):
        name = corpus.utterances[k]
        samples = utterance_sound(corpus, k)
        shown = decoded(corpus, k, task, best, model=model, samples=samples)
        short = shown.seconds <= MAX_SHOWN_SECONDS
        counts = best.evaluation.by_utterance()[name]
        caption = (
            f"Test utterance {name} of speaker {corpus.speakers[k]}, {shown.seconds:.1f} s, system {best.name}: "
            f"{counts.errors} errors in {counts.reference} phones. From the top: "
            f"{'its spectrogram' if samples is not None else 'its features'}; the phones spoken and those recognised "
            "(coloured strongly where they differ); the probability that the network gives each phone."
        )
        if samples is not None and not short:
            caption += f" It is longer than {MAX_SHOWN_SECONDS:g} s, so its sound is not in this page."
        sound = audio_block(samples) if samples is not None and short else ""
        below = sound + alignment_block(best.evaluation.alignments[name])
        svg = decoded_utterance(shown, f"utterance{number}")
        figures.append(Figure(f"Utterance: {what}", caption, svg, wide=True, pixels=shown.pixels, below=below))
    return figures


@dataclass(frozen=True)
class Segment:
    """A phone with its frames; kind: right, silence, substitution, deletion or insertion."""

    name: str
    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class DecodedUtterance(ShownUtterance):
    spoken: Sequence[Segment]
    recognised: Sequence[Segment]

    @property
    def pixels(self) -> int:
        """The least width at which it is readable."""
        return max(MIN_PIXELS, round(PIXELS_PER_SECOND * self.seconds))


def decoded(
    corpus: Corpus, k: int, task: PhoneScoring, best: ReportedSystem, *, model: StateClassifier, samples: Array | None
) -> DecodedUtterance:
    """Return one utterance with what was spoken, what was recognised, and the probabilities behind it."""
    X = corpus.features[k]
    (P,) = state_probabilities(model, [X], corpus.state_names)
    pairs = best.evaluation.alignments[corpus.utterances[k]]
    spoken = phone_segments(corpus.labels[k], corpus.state_names)
    recognised = best.recognised[corpus.utterances[k]]
    sides = [marked_phones(spoken, pairs, task, 0), marked_phones(recognised, pairs, task, 1)]
    classes = [task.phone_class(split_state(state)[0]) for state in task.names]
    posteriors, names = shown_posteriors(P, classes, [one.name for side in sides for one in side])
    return DecodedUtterance(*picture_of(X, samples), posteriors, names, *sides)


def marked_phones(
    phones: Sequence[tuple[str, int, int]], pairs: Sequence[Pair], task: PhoneScoring, side: int
) -> list[Segment]:
    """Return phones of one side in the classes of the score, each with what the alignment says of it."""
    aligned = (pair for pair in pairs if pair[side] is not None)
    found = []
    for phone, start, end in phones:
        name = task.phone_class(phone)
        if name is None:
            continue
        if name in SILENCES:
            found.append(Segment(name, start, end, "silence"))
            continue
        pair = next(aligned)
        alone = "deletion" if side == 0 else "insertion"
        kind = "right" if pair[0] == pair[1] else alone if pair[1 - side] is None else "substitution"
        found.append(Segment(name, start, end, kind))
    return found


def decoded_utterance(shown: DecodedUtterance, name: str) -> str:
    """Draw the picture, true and recognised phones as two bars, and posteriors, over one time axis."""
    height = 0.155 * len(shown.names) + 0.3
    with styled_figure(name, (shown.pixels / PIXELS_PER_INCH, 3.0 + height)) as figure:
        grid = {"height_ratios": (1.9, 0.8, height), "hspace": 0.06}
        top, bars, bottom = figure.subplots(3, 1, sharex=True, gridspec_kw=grid)
        draw_picture(top, shown)
        letter = PIXELS_PER_LETTER * shown.seconds / shown.pixels
        _draw_bar(bars, shown.spoken, 1, letter)
        _draw_bar(bars, shown.recognised, 0, letter)
        bars.set_ylim(0, 2)
        bars.set_yticks((0.5, 1.5), ("recognised", "spoken"), fontsize=8.5)
        bars.spines[:].set_visible(False)
        bars.grid(visible=False)
        draw_posteriors(bottom, shown)
        for axes in (top, bars, bottom):
            axes.set_xlim(0, shown.seconds)
        return to_svg(figure, name)


def _draw_bar(axes: Axes, segments: Sequence[Segment], level: int, letter: float) -> None:
    """Draw the phones of one side; names that do not fit are left out. letter: its width in seconds."""
    from matplotlib.patches import Rectangle

    for one in segments:
        start, width = one.start / FRAMES_PER_SECOND, (one.end - one.start) / FRAMES_PER_SECOND
        colour = ERROR_COLOURS.get(one.kind, SERIES[0] if one.kind == "right" else MUTED)
        strong = 0.75 if one.kind in ERROR_COLOURS else 0.3
        axes.add_patch(Rectangle((start, level + 0.06), width, 0.88, facecolor=colour, alpha=strong, lw=0))
        axes.plot([start, start], [level + 0.06, level + 0.94], color=INK, lw=0.6)
        if width >= letter * len(one.name):
            place = (start + width / 2, level + 0.5)
            axes.text(*place, one.name, ha="center", va="center", fontsize=7.5, clip_on=True, parse_math=False)
