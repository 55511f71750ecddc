"""The figures of the report on phones: which system and utterances they show, and their captions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from echolearn.exceptions import CorpusError
from echolearn.experiments.figures import spectrogram
from echolearn.experiments.measured_fit import EpochRow, StateClassifier
from echolearn.experiments.phone_scoring import PhoneScoring, state_probabilities
from echolearn.reporting import phone_figures as drawings
from echolearn.reporting.figures import FRAMES_PER_SECOND, Curve, learning_curves
from echolearn.reporting.page import Figure
from echolearn.reporting.phone_figures import DecodedUtterance, PhoneErrors, Segment, SystemPoint
from echolearn.reporting.phone_page import alignment_block, audio_block
from echolearn.reporting.phone_table import PhoneRow
from echolearn.reporting.svg import can_draw
from echolearn.speech.audio import RATE, read_audio
from echolearn.speech.corpus import Corpus
from echolearn.speech.phones import SILENCES, split_state
from echolearn.speech.recognition._phone_models import phone_segments
from echolearn.speech.scoring import Counts, Evaluation, Pair
from echolearn.validation import Array

LONGEST = 20.0  # seconds of an utterance that is shown, so that the page stays small
LEAST_PHONES = 5  # of the worst utterance: one wrong phone of one is no example
LIKELY = 0.5  # a phone that the network holds so likely at some frame is shown, though it was not spoken


@dataclass(frozen=True)
class ReportedSystem:
    """The results of a system that the report shows; `load` returns its network.

    recognised: of each test utterance the phones with their first frame and the one after their last.
    """

    name: str
    row: PhoneRow
    evaluation: Evaluation
    history: Sequence[EpochRow]
    recognised: Mapping[str, Sequence[tuple[str, int, int]]]
    load: Callable[[], StateClassifier]


def draw_figures(corpus: Corpus, task: PhoneScoring, systems: Sequence[ReportedSystem]) -> list[Figure]:
    """Return the figures of the report; none where matplotlib is missing."""
    if not can_draw() or not systems:
        return []
    best = best_system(systems)
    return [
        _kinds(systems),
        _states_against_phones(systems),
        *_learning(systems),
        _balance(best),
        *_utterances(corpus, task, best),
        _confusions(task, best),
        _errors_by_phone(best),
        *_errors_by_speaker(best),
    ]


def best_system(systems: Sequence[ReportedSystem]) -> ReportedSystem:
    """Return the system with the smallest phone error on valid; of equal ones the first."""
    return min(systems, key=lambda one: one.row["valid"]["phone_error"])


def _kinds(systems: Sequence[ReportedSystem]) -> Figure:
    tests = {one.name: one.row["test"] for one in systems}
    values = {name: (t["substitutions"], t["deletions"], t["insertions"]) for name, t in tests.items()}
    caption = "Phone error on test by kind: substitutions, deletions and insertions as shares of the reference phones."
    return Figure("Errors by kind", caption, drawings.errors_by_kind(values))


def _states_against_phones(systems: Sequence[ReportedSystem]) -> Figure:
    points = [
        SystemPoint(s.name, s.row["test"]["state_error"], s.row["test"]["phone_error"], s.row["test"]["interval"])
        for s in systems
    ]
    caption = (
        "What a lower state error is worth: the phone error of each system against the share of frames with a wrong "
        "state, both on test. Lines: 95 % intervals of the phone error over speakers."
    )
    return Figure("Frames against phones", caption, drawings.states_against_phones(points))


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
        f"{beside} The curve has a ridge readout; the systems end with a softmax readout and, if they are stacked, "
        "learn layer by layer and then jointly."
    )
    return [Figure("Learning and phone error", caption, learning_curves({"state error on valid": curves}))]


def phone_errors(evaluation: Evaluation) -> list[PhoneErrors]:
    """Return the errors of every phone."""
    return [
        PhoneErrors(phone, c.reference, c.substitutions, c.deletions, c.insertions)
        for phone, c in evaluation.by_token().items()
    ]


def _balance(best: ReportedSystem) -> Figure:
    total = best.evaluation.total
    caption = (
        f"System {best.name}: {total.insertions:,} phones were inserted and {total.deletions:,} deleted, of "
        f"{total.reference:,}. Where one is much more frequent than the other, the penalty of the "
        "decoder, which is tuned on valid, does not suit the test part."
    )
    svg = drawings.insertions_and_deletions(phone_errors(best.evaluation))
    return Figure("Insertions and deletions", caption, svg)


def _errors_by_phone(best: ReportedSystem) -> Figure:
    caption = (
        f"System {best.name}, test. Above: number of errors of each phone; an insertion counts for the phone that was "
        "inserted. Below: the share of its occurrences that were substituted or deleted."
    )
    return Figure("Errors by phone", caption, drawings.errors_by_phone(phone_errors(best.evaluation)), wide=True)


def _errors_by_speaker(best: ReportedSystem) -> list[Figure]:
    speakers = {name: counts.error_rate for name, counts in best.evaluation.by_speaker().items() if counts.reference}
    if len(speakers) < 2:
        return []
    caption = (
        f"System {best.name}, test: the phone error of each of {len(speakers)} speakers. Errors of one "
        "speaker resemble each other, so the interval of the phone error is over speakers."
    )
    svg = drawings.errors_by_speaker(speakers, best.evaluation.total.error_rate)
    return [Figure("Errors by speaker", caption, svg, wide=True)]


def confusion_table(evaluation: Evaluation, phones: Sequence[str]) -> tuple[Array, list[str], list[str]]:
    """Return how often each phone (rows, and last what was inserted) was recognised as each (last: as nothing).

    Silences, and phones that occur on neither side, have no row or column.
    """
    pairs = [pair for pairs in evaluation.alignments.values() for pair in pairs]
    spoken = [p for p in phones if p not in SILENCES and any(true == p for true, _ in pairs)]
    heard = [p for p in phones if p not in SILENCES and any(p in pair for pair in pairs)]
    row: dict[str | None, int] = {None: len(spoken)} | {p: k for k, p in enumerate(spoken)}
    column: dict[str | None, int] = {None: len(heard)} | {p: k for k, p in enumerate(heard)}
    counts = np.zeros((len(row), len(column)), dtype=np.int64)
    for true, found in pairs:
        counts[row[true], column[found]] += 1
    return counts, [*spoken, "(inserted)"], [*heard, "(deleted)"]


def _confusions(task: PhoneScoring, best: ReportedSystem) -> Figure:
    counts, spoken, heard = confusion_table(best.evaluation, task.classes)
    frequent = best.evaluation.confusions().most_common(6)
    named = ", ".join(f"{_said(a)} as {_said(b)} ({n})" for (a, b), n in frequent)
    caption = (
        f"System {best.name}, test. Rows: the phone spoken; columns: the phone recognised in its place; every row adds "
        f"up to 100 %. Most frequent: {named or 'no errors'}."
    )
    svg = drawings.phone_confusions(counts, spoken, heard)
    return Figure("Phone confusions", caption, svg, wide=True)


def _said(phone: str | None) -> str:
    return "nothing" if phone is None else phone


def shown_utterances(corpus: Corpus, evaluation: Evaluation) -> dict[str, int]:
    """Return test utterances to show, each once: the shortest, the one of median length and the worst.

    The worst has the largest phone error among those of at least `LEAST_PHONES` phones; utterances longer than
    `LONGEST` are shown only where there are no others.
    """
    which = [k for k in corpus.which("test") if evaluation.alignments[corpus.utterances[k]]] or corpus.which("test")
    short = [k for k in which if len(corpus.labels[k]) <= LONGEST * FRAMES_PER_SECOND] or which
    by_length = sorted(short, key=lambda k: len(corpus.labels[k]))
    counts = evaluation.by_utterance()
    of = {k: counts[corpus.utterances[k]] for k in short}
    candidates = [k for k in short if of[k].reference >= LEAST_PHONES] or short
    worst = max(candidates, key=lambda k: _rate(of[k]))
    found = {"shortest": by_length[0], "of median length": by_length[len(by_length) // 2], "worst": worst}
    return {" and ".join(w for w in found if found[w] == k): k for k in dict.fromkeys(found.values())}


def _rate(counts: Counts) -> float:
    return counts.error_rate if counts.reference else float(counts.insertions > 0)


def _utterances(corpus: Corpus, task: PhoneScoring, best: ReportedSystem) -> list[Figure]:
    model = best.load()
    figures = []
    for number, (what, k) in enumerate(shown_utterances(corpus, best.evaluation).items()):
        name = corpus.utterances[k]
        pairs = best.evaluation.alignments[name]
        samples = _samples(corpus, k)
        shown = decoded(corpus, k, task, best, model, samples=samples)
        short = shown.seconds <= LONGEST
        sound = audio_block(samples, RATE) if samples is not None and short else ""
        counts = best.evaluation.by_utterance()[name]
        caption = (
            f"Test utterance {name} of speaker {corpus.speakers[k]}, {shown.seconds:.1f} s, system {best.name}: "
            f"{counts.errors} errors in {counts.reference} phones. From the top: "
            f"{'its spectrogram' if samples is not None else 'its features'}; the phones spoken and those recognised "
            "(coloured strongly where they differ); the probability that the network gives each phone."
        )
        if samples is not None and not short:
            caption += f" It is longer than {LONGEST:g} s, so its sound is not in this page."
        svg = drawings.decoded_utterance(shown, f"utterance{number}")
        below = sound + alignment_block(pairs)
        figures.append(Figure(f"Utterance: {what}", caption, svg, wide=True, pixels=shown.pixels, below=below))
    return figures


def _samples(corpus: Corpus, k: int) -> Array | None:
    """Return the sound of an utterance; None where the corpus has none, or its file is no longer there."""
    path = corpus.audio[k] if corpus.audio else ""
    try:
        return read_audio(path) if path else None
    except CorpusError:
        return None


def decoded(
    corpus: Corpus,
    k: int,
    task: PhoneScoring,
    best: ReportedSystem,
    model: StateClassifier,
    *,
    samples: Array | None,
) -> DecodedUtterance:
    """Return one utterance with what was spoken, what was recognised, and the probabilities behind it."""
    X = corpus.features[k]
    (P,) = state_probabilities(model, [X], corpus.state_names)
    pairs = best.evaluation.alignments[corpus.utterances[k]]
    spoken = phone_segments(corpus.labels[k], corpus.state_names)
    heard = best.recognised[corpus.utterances[k]]
    sides = [marked_phones(spoken, pairs, task, 0), marked_phones(heard, pairs, task, 1)]
    posteriors = _class_posteriors(P, task)
    named = dict.fromkeys(one.name for side in sides for one in side)
    likely = sorted((c for c in posteriors if posteriors[c].max() > LIKELY), key=lambda c: -posteriors[c].max())
    names = list(dict.fromkeys([*named, *likely]))[::-1]
    return DecodedUtterance(
        picture=X if samples is None else spectrogram(samples),
        picture_label=f"{X.shape[1]} features" if samples is None else "0 to 8 kHz",
        spoken=sides[0],
        recognised=sides[1],
        posteriors=np.stack([posteriors[name] for name in names], axis=1),
        names=names,
    )


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
        if pair[0] == pair[1]:
            kind = "right"
        elif pair[1 - side] is None:
            kind = "deletion" if side == 0 else "insertion"
        else:
            kind = "substitution"
        found.append(Segment(name, start, end, kind))
    return found


def _class_posteriors(P: Array, task: PhoneScoring) -> Mapping[str, Array]:
    """Return the probability of every phone, in the classes of the score, at every frame."""
    found: dict[str, Array] = {}
    for column, state in enumerate(task.names):
        name = task.phone_class(split_state(state)[0])
        if name is not None:
            found[name] = found.get(name, np.zeros(len(P))) + P[:, column]
    return found
