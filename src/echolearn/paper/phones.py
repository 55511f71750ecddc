"""The plan of `echolearn phones`: which systems, and how their phones are decoded and scored."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NotRequired, Protocol, TypedDict, cast

from echolearn import __version__
from echolearn.estimators import ESNClassifier, StackedClassifier, load
from echolearn.estimators._stacked_base import draw_layers
from echolearn.execution.memory import available_memory
from echolearn.execution.threads import thread_count
from echolearn.fitting.settings import NetworkSettings
from echolearn.fitting.settings import check as check_parameters
from echolearn.modelfile.atomic import write_atomically
from echolearn.paper.cells import (
    CellStore,
    EpochRow,
    MadeWith,
    StateClassifier,
    fingerprint_of,
    fit_fingerprint,
    kept_settings,
    made_with,
    planned_epochs,
    timed_fit,
)
from echolearn.paper.estimate import CorpusSize, Cost, cost_of_cell, gigabytes
from echolearn.paper.parts import CorpusParts
from echolearn.paper.phone_figures import ReportedSystem, draw_figures
from echolearn.paper.phone_report import (
    LEVELS,
    SCHEMA,
    PartScore,
    PhoneComparison,
    PhoneRow,
    PhoneTable,
    phone_page,
    write_phone_table,
)
from echolearn.paper.phone_scoring import (
    TRIALS,
    TRIGRAM_TRIALS,
    TUNING,
    PhoneScoring,
    frame_errors,
    part_probabilities,
    recognise,
)
from echolearn.paper.table1_report import aligned
from echolearn.speech import Corpus, Evaluation, matched_pairs
from echolearn.speech._typing import Progress
from echolearn.speech.recognition._search import Token
from echolearn.training import cost_model
from echolearn.training.cost_model import TYPICAL, Rates
from echolearn.training.progress import clock

SYSTEMS = ("fixed", "learned", "bidirectional", "stacked")
ORDERS = range(1, 6)
DECODED_FRAMES = 25_000  # that a core decodes in a second with a bigram of some 40 phones
TRIGRAM_WORK = 3  # of decoding with a trigram, in units of that with a bigram


@dataclass(frozen=True)
class PhonePlan:
    """The settings of `echolearn phones`.

    Attributes
    ----------
    systems : tuple of str
        Which systems, of `SYSTEMS`.
    units : int
        Hidden units of each system; a stack has half of them in each of its two layers.
    order : int or None
        Order of the phone n-gram; None: 2 or 3, whichever has the smaller phone error on the validation part.
    level : str
        The classes that are scored: "corpus", "phone48" or "phone39".
    seed : int
        The seed of the networks.
    changes : mapping
        Parameters of `ESNClassifier` other than the defaults, for every system, except those that systems differ by.
    """

    systems: tuple[str, ...] = SYSTEMS
    units: int = 300
    order: int | None = None
    level: str = "corpus"
    seed: int = 0
    changes: Mapping[str, Any] = field(default_factory=dict)

    def estimator(self, system: str) -> StateClassifier:
        """Return the network of a system, not fitted."""
        if system == "stacked":
            layers = [ESNClassifier(n, **self._settings()) for n in (self.units - self.units // 2, self.units // 2)]
            return StackedClassifier(layers, random_state=self.seed)
        differs: dict[str, dict[str, Any]] = {"fixed": {"learn": "none"}, "bidirectional": {"bidirectional": True}}
        return ESNClassifier(self.units, **{**self._settings(), **differs.get(system, {})})

    def _settings(self) -> dict[str, Any]:
        return {**self.changes, "random_state": self.seed}

    def name(self, system: str) -> str:
        """Return the name under which the network of a system is kept."""
        return f"{system}-{self.units}-{self.seed}"

    def layer_epochs(self, system: str, sequences: int) -> list[int]:
        """Return how many epochs each layer of a stack takes by itself at most; nothing for a single network."""
        estimator = self.estimator(system)
        if isinstance(estimator, ESNClassifier):
            return []
        return [planned_epochs(layer, sequences) for layer in _layers(estimator)]

    def epochs(self, system: str, sequences: int) -> int:
        """Return how many epochs a fit on this many sequences takes at most, those of all layers together."""
        estimator = self.estimator(system)
        if isinstance(estimator, ESNClassifier):
            return planned_epochs(estimator, sequences)
        return sum(self.layer_epochs(system, sequences)) + int(estimator.joint_epochs)

    def check(self) -> None:
        """Check every setting of every system, before the first is fitted."""
        unknown = [system for system in self.systems if system not in SYSTEMS]
        if unknown or not self.systems or len(set(self.systems)) < len(self.systems):
            found = ", ".join(unknown or self.systems) or "none"
            raise ValueError(f"systems: {found}; expected some of {', '.join(SYSTEMS)}, each once.")
        if self.level not in LEVELS:
            raise ValueError(f"level is {self.level!r}; expected one of {', '.join(LEVELS)}.")
        if self.order is not None and self.order not in ORDERS:
            raise ValueError(f"order is {self.order}; expected {ORDERS[0]} to {ORDERS[-1]}.")
        least = 2 if {"stacked", "bidirectional"} & set(self.systems) else 1
        if self.units < least:
            raise ValueError(f"units is {self.units}; expected at least {least} for these systems.")
        if "stacked" in self.systems and self.changes.get("ensemble", 1) != 1:
            raise ValueError("ensemble: a layer of a stack has one readout; leave stacked out of the systems.")
        if "bidirectional" in self.changes or self.changes.get("learn") == "none":
            raise ValueError("learn='none' and bidirectional are what the systems differ by: choose fixed, learned or "
                             "bidirectional among the systems instead.")  # fmt: skip
        for estimator in map(self.estimator, self.systems):
            if isinstance(estimator, ESNClassifier):
                check_parameters(estimator.get_params(deep=False))
            else:
                draw_layers(estimator.get_params(deep=False), ESNClassifier)


def _layers(stack: StackedClassifier) -> list[ESNClassifier]:
    return [layer for layer in stack.layers if isinstance(layer, ESNClassifier)]


def cost_of_system(plan: PhonePlan, system: str, size: CorpusSize, rates: Rates) -> Cost:
    """Return the cost of the fit of a system; of a stack those of its layers, and of their joint epochs."""
    estimator = plan.estimator(system)
    if isinstance(estimator, ESNClassifier):
        return cost_of_cell(estimator, size, rates)
    lower, upper = _layers(estimator)
    above = replace(size, data=replace(size.data, n_in=size.data.n_out))  # the upper layer sees outputs
    costs = [cost_of_cell(lower, size, rates), cost_of_cell(upper, above, rates)]
    joint = 0.0
    for layer, data in ((lower, size.data), (upper, above.data)):
        settings = NetworkSettings.of(layer.get_params(deep=False))
        job = settings.job_of_size(data, 1, threads=thread_count())
        joint += cost_model.refining(replace(job, refine_epochs=int(estimator.joint_epochs)), rates)
    return Cost(sum(cost.seconds for cost in costs) + joint, max(cost.nbytes for cost in costs))


def decoding_seconds(size: CorpusSize, order: int | None) -> float:
    """Return about how long it takes to tune the decoder on valid and to decode test."""
    work = 1 if order is not None and order < 3 else TRIGRAM_WORK
    trials = TRIALS + TRIGRAM_WORK * TRIGRAM_TRIALS if order is None else TRIALS * work
    return (trials * size.frames["valid"] + work * size.frames["test"]) / DECODED_FRAMES


def estimate_text(plan: PhonePlan, size: CorpusSize, rates: Rates | None = None) -> str:
    """Return a table of the estimated time and memory of every system, and the time of all of them."""
    rates, free = rates or cost_model.measured(), available_memory()
    costs = {system: cost_of_system(plan, system, size, rates) for system in plan.systems}
    decoding = decoding_seconds(size, plan.order)
    rows = [[system, clock(cost.seconds), clock(decoding), gigabytes(cost, free)] for system, cost in costs.items()]
    total = sum(cost.seconds for cost in costs.values()) + decoding * len(costs)
    lines = [
        f"estimated time and memory of every system, on {thread_count()} threads with nothing else running:",
        *aligned(["system", "fit", "decoding", "memory"], rows),
        f"all {len(costs)} systems: about {clock(total)}; fits that stop early take less, finished ones none",
    ]
    if free is not None and any(cost.nbytes > free for cost in costs.values()):
        lines.append(f"!: more than the {free / 1e9:.1f} GB that are free; such a fit is refused when its turn comes")
    return "\n".join(lines)


class PhoneProgress(Protocol):
    """Receives the progress of the experiment.

    `fits` and `decoding` are the work of the fit of each system and of decoding any of them, in the same unit;
    `reused` marks a system of an earlier run.
    """

    def note(self, text: str) -> object: ...
    def plan(self, fits: Mapping[str, float], decoding: float) -> object: ...
    def start(self, system: str, epochs: int) -> object: ...
    def epoch(self, system: str, done: int, row: EpochRow) -> object: ...
    def decode(self, system: str, text: str, done: int, total: int) -> object: ...
    def finish(self, system: str, row: PhoneRow, reused: bool) -> object: ...


class FittedSystem(TypedDict):
    """The fit of a system: its time, history and settings. The network is stored beside it."""

    seconds: float
    processor_seconds: float | None
    peak_memory_mb: float | None
    epochs: int
    history: list[EpochRow]
    settings: dict[str, object]
    made_with: MadeWith
    fingerprint: NotRequired[str]


class ScoredSystem(TypedDict):
    """What is known of the phones of a system; `recognised`: of each test utterance name, first and last + 1 frame."""

    valid: PartScore
    test: PartScore
    order: int
    weights: dict[str, float]
    decoding_seconds: float
    recognised: dict[str, list[tuple[str, int, int]]]


@dataclass(frozen=True)
class _Experiment:
    """The corpus, plan and scoring that all systems share."""

    corpus: Corpus
    plan: PhonePlan
    parts: CorpusParts
    task: PhoneScoring
    store: CellStore[FittedSystem]
    progress: PhoneProgress

    def fingerprint(self, system: str) -> str:
        return fit_fingerprint(self.plan.estimator(system), self.parts.fingerprint)

    def score_fingerprint(self, system: str) -> str:
        return fingerprint_of([self.fingerprint(system), self.plan.level, self.plan.order, SCHEMA, TUNING])

    def row(self, system: str, fitted: FittedSystem, scored: ScoredSystem) -> PhoneRow:
        """Return the row of a system in the table."""
        return {
            "system": system,
            "units": self.plan.units,
            "bidirectional": system == "bidirectional",
            "seconds": fitted["seconds"],
            "processor_seconds": fitted["processor_seconds"],
            "decoding_seconds": scored["decoding_seconds"],
            "epochs": fitted["epochs"],
            "valid": scored["valid"],
            "test": scored["test"],
            "order": scored["order"],
            "weights": scored["weights"],
            "made_with": dict(fitted["made_with"]),
        }


Done = dict[str, tuple[FittedSystem, ScoredSystem]]


def run(corpus: Corpus, plan: PhonePlan, out: Path, progress: PhoneProgress, *, force: bool = False) -> PhoneTable:
    """Compute the systems that the folder `out` does not hold yet, and return the table.

    A network that is kept is not fitted again where only the level or the order of the n-gram has changed. After every
    system the tables on disk hold all that is known. With `force`, all systems are computed again.
    """
    plan.check()
    task = PhoneScoring.of(corpus, plan.level, plan.order)
    check_references(corpus, task)
    out.mkdir(parents=True, exist_ok=True)
    parts = CorpusParts.load(corpus)
    for note in (*corpus.notes, *parts.notes):
        progress.note(note)
    store = CellStore[FittedSystem](out / "systems", progress.note)
    if force:
        store.remove(map(plan.name, plan.systems))
    own = _Experiment(corpus, plan, parts, task, store, progress)
    size = CorpusSize.of(corpus)
    fits = {system: cost_of_system(plan, system, size, TYPICAL).seconds for system in plan.systems}
    progress.plan(fits, decoding_seconds(size, plan.order))
    kept = {system: store.find(plan.name(system), own.fingerprint(system)) for system in plan.systems}
    done = _finished(own, kept)
    write_phone_table(out, table_of(own, done))
    for system in (s for s in plan.systems if s not in done):
        done[system] = _computed(own, system, kept[system])
        write_phone_table(out, table_of(own, done))
    table = table_of(own, done)
    progress.note("drawing the report")
    figures = draw_figures(corpus, task, [_reported(own, system, *done[system]) for system in plan.systems])
    write_atomically(out / "report.html", phone_page(table, figures).encode())
    return table


def check_references(corpus: Corpus, task: PhoneScoring) -> None:
    """Refuse a corpus without phones to recognise in valid or test."""
    for part in ("valid", "test"):
        if not task.spoken[part]:
            raise ValueError(f"{corpus.name} has no utterances of the {part} part; train, valid and test are needed.")
        if not task.evaluate(part, {name: [] for name in task.spoken[part]}).total.reference:
            raise ValueError(f"{corpus.name}: the {part} part has no phone but silences; there is nothing to score.")


def _finished(own: _Experiment, kept: Mapping[str, FittedSystem | None]) -> Done:
    """Return the systems that an earlier run has fitted and scored."""
    done: Done = {}
    for system, fitted in kept.items():
        scored = None if fitted is None else _kept_score(own, system)
        if fitted is not None and scored is not None:
            done[system] = fitted, scored
            own.progress.finish(system, own.row(system, fitted, scored), True)
    return done


def _kept_score(own: _Experiment, system: str) -> ScoredSystem | None:
    found = own.store.find_score(own.plan.name(system), _kind(own.plan), own.score_fingerprint(system))
    return None if found is None else cast(ScoredSystem, found)


def _kind(plan: PhonePlan) -> str:
    return f"{plan.level}-{plan.order}"


def _computed(own: _Experiment, system: str, fitted: FittedSystem | None) -> tuple[FittedSystem, ScoredSystem]:
    """Fit a system, unless its network is kept, and score it; both are stored."""
    name, progress = own.plan.name(system), own.progress
    progress.start(system, own.plan.epochs(system, len(own.parts.train[0])) if fitted is None else 0)
    if fitted is None:
        model: StateClassifier = own.plan.estimator(system)
        fitted = _fitted(own, system, model)
        own.store.save(name, fitted, model)
    else:
        progress.note(f"{system}: its network is kept from an earlier run")
        model = cast(StateClassifier, load(own.store.model_path(name)))
    scored = score(model, own.corpus, own.task, partial(_decode, own, system))
    own.store.save_score(name, _kind(own.plan), own.score_fingerprint(system), cast("dict[str, object]", scored))
    progress.finish(system, own.row(system, fitted, scored), False)
    return fitted, scored


def _fitted(own: _Experiment, system: str, model: StateClassifier) -> FittedSystem:
    """Fit a network, or resume its fit: the training part teaches, the validation part decides on its settings."""
    fingerprint = own.fingerprint(system)
    layers = own.plan.layer_epochs(system, len(own.parts.train[0]))

    def on_epoch(row: EpochRow) -> None:
        before = layers[: int(row["layer"]) - 1] if "layer" in row else layers
        own.progress.epoch(system, sum(before) + int(row["epoch"]), row)

    checkpoint = own.store.checkpoint(own.plan.name(system), fingerprint)
    measured = timed_fit(
        model, own.parts.train, own.parts.valid_known, checkpoint, on_epoch=on_epoch, note=own.progress.note
    )
    history = _history(model)
    return {
        "seconds": measured["seconds"],
        "processor_seconds": measured["processor_seconds"],
        "peak_memory_mb": measured["peak_memory_mb"],
        "epochs": len(history),
        "history": history,
        "settings": kept_settings(model if isinstance(model, ESNClassifier) else model.layers_[-1]),
        "made_with": made_with(),
        "fingerprint": fingerprint,
    }


def _history(model: StateClassifier) -> list[EpochRow]:
    """Return the epochs of a fit: of a stack those of its layers, each with the layer's number, then the joint ones."""
    rows: list[EpochRow] = []
    if not isinstance(model, ESNClassifier):
        rows += [{"layer": number, **row} for number, one in enumerate(model.layers_, 1) for row in one.history_]
    return rows + [dict(row) for row in model.history_]


def _decode(own: _Experiment, system: str, text: str, done: int, total: int) -> None:
    own.progress.decode(system, text, done, total)


def score(model: StateClassifier, corpus: Corpus, task: PhoneScoring, progress: Progress) -> ScoredSystem:
    """Tune a decoder on the validation part and decode the test part with it, once."""
    started = time.perf_counter()
    valid = part_probabilities(model, corpus, "valid")
    decoder, order, _ = task.tuned(valid, progress)
    scores: dict[str, PartScore] = {}
    tokens: dict[str, list[Token]] = {}
    for part, probabilities in (("valid", valid), ("test", part_probabilities(model, corpus, "test"))):
        tokens = recognise(decoder, probabilities)
        found = task.evaluate(part, tokens)
        with_silence = task.evaluate_with_silence(part, tokens).total.error_rate
        by_frame = frame_errors(corpus, part, probabilities, task.phone_map)
        scores[part] = _part_score(found, with_silence, by_frame)
    return {
        "valid": scores["valid"],
        "test": scores["test"],
        "order": order,
        "weights": asdict(decoder.weights),
        "decoding_seconds": round(time.perf_counter() - started, 3),
        "recognised": {name: [(t.name, t.start, t.end) for t in found] for name, found in tokens.items()},
    }


def _part_score(found: Evaluation, with_silence: float, by_frame: tuple[float, float]) -> PartScore:
    total, interval = found.total, found.interval()
    several = len({found.speakers[name] for name in found.alignments}) > 1
    return {
        "phone_error": round(total.error_rate, 6),
        "substitutions": round(total.substitutions / total.reference, 6),
        "deletions": round(total.deletions / total.reference, 6),
        "insertions": round(total.insertions / total.reference, 6),
        "interval": [round(interval.low, 6), round(interval.high, 6)] if several else None,
        "phone_error_with_silence": round(with_silence, 6),
        "state_error": round(by_frame[0], 6),
        "frame_phone_error": round(by_frame[1], 6),
        "reference_phones": total.reference,
    }


def evaluation_of(scored: ScoredSystem, task: PhoneScoring) -> Evaluation:
    """Return the alignments of the phones that were recognised in the test part."""
    return task.evaluate("test", {name: [Token(*one) for one in rows] for name, rows in scored["recognised"].items()})


def table_of(own: _Experiment, done: Done) -> PhoneTable:
    """Return the table of the finished systems."""
    corpus, plan = own.corpus, own.plan
    return {
        "schema": SCHEMA,
        "corpus": corpus.name,
        "digest": own.parts.fingerprint,
        "synthetic": corpus.synthetic,
        "level": plan.level,
        "phones": len(own.task.classes),
        "states": len(corpus.state_names),
        "speakers": len(set(corpus.speakers)),
        "frames": corpus.frames,
        "utterances": {part: len(corpus.which(part)) for part in ("train", "valid", "test")},
        "rows": [own.row(system, *done[system]) for system in plan.systems if system in done],
        "comparisons": comparisons({s: evaluation_of(done[s][1], own.task) for s in plan.systems if s in done}),
        "settings": {**asdict(plan), "systems": list(plan.systems), "changes": dict(plan.changes)},
        "notes": list(corpus.notes),
        "complete": set(done) == set(plan.systems),
        "echolearn": __version__,
    }


def comparisons(found: Mapping[str, Evaluation]) -> list[PhoneComparison]:
    """Return every system against the fixed network, and those that learn more against the learned one."""
    rows: list[PhoneComparison] = []
    for against, systems in (
        ("fixed", ("learned", "bidirectional", "stacked")),
        ("learned", ("bidirectional", "stacked")),
    ):
        for system in (s for s in systems if s in found and against in found):
            rate = found[against].total.error_rate
            gain = round(1 - found[system].total.error_rate / rate, 4) if rate else None
            several = len(found[system].alignments) > 1
            p_value = round(matched_pairs(found[system], found[against]).p_value, 6) if several else None
            rows.append({"system": system, "against": against, "relative_gain": gain, "p_value": p_value})
    return rows


def _reported(own: _Experiment, system: str, fitted: FittedSystem, scored: ScoredSystem) -> ReportedSystem:
    """Return what the report shows of a system."""
    name = own.plan.name(system)
    return ReportedSystem(
        name=system,
        row=own.row(system, fitted, scored),
        evaluation=evaluation_of(scored, own.task),
        history=fitted["history"],
        recognised=scored["recognised"],
        load=lambda: cast(StateClassifier, load(own.store.model_path(name))),
    )
