"""`echolearn phones`: from a corpus to the phone error of fixed, learned, bidirectional and deep networks."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from echolearn.display.progress import StageProgress, clock
from echolearn.estimators import DeepESNClassifier, ESNClassifier
from echolearn.paper.cells import Cell, CellStore, Experiment, Outcome, Progress, costs_of, fingerprint_of
from echolearn.paper.estimate import CorpusSize, estimate_lines, memory_text
from echolearn.paper.fits import MeasuredFit, check_network
from echolearn.paper.parts import PART_NAMES, CorpusParts
from echolearn.paper.phone_figures import ReportedSystem, draw_figures
from echolearn.paper.phone_report import (
    LEVELS,
    SCHEMA,
    SYSTEM_NAMES,
    DecodedParts,
    PartScore,
    PhoneComparison,
    PhoneRow,
    PhoneTable,
    phone_page,
    write_phone_table,
)
from echolearn.paper.phone_scoring import (
    DECODER_TRIALS,
    TRIGRAM_TRIALS,
    TUNING,
    PhoneScoring,
    frame_errors,
    part_probabilities,
    recognise,
)
from echolearn.paper.table1_report import aligned
from echolearn.speech import Corpus, Evaluation, matched_pairs
from echolearn.speech.recognition._recognizer import StateClassifier
from echolearn.speech.recognition._search import Token
from echolearn.training import cost_model
from echolearn.training.cost_model import Rates

Done = Mapping[Cell, tuple[MeasuredFit, "ScoredSystem"]]  # of each finished system its fit and its phones

SYSTEMS = tuple(SYSTEM_NAMES)
ORDERS = range(1, 6)
FRAMES_DECODED_PER_SECOND = 25_000  # by a core, with a bigram of some 40 phones
TRIGRAM_WORK = 3  # of decoding with a trigram, in units of that with a bigram


@dataclass(frozen=True)
class PhonePlan:
    systems: tuple[str, ...] = SYSTEMS
    units: int = 300  # of each system but `deep`
    order: int | None = None  # of the phone n-gram; None: 2 or 3, whichever has the smaller phone error on valid
    level: str = "corpus"  # the classes that are scored, of LEVELS
    seed: int = 0
    changes: Mapping[str, Any] = field(default_factory=dict)  # of parameters of ESNClassifier; epochs: of all systems
    deep: Mapping[str, Any] = field(default_factory=dict)  # of parameters of DeepESNClassifier

    def estimator(self, cell: Cell) -> StateClassifier:
        settings = {**self.changes, "random_state": cell.seed}
        if cell.column == "deep":
            epochs = {name: value for name, value in self.changes.items() if name == "epochs"}
            return DeepESNClassifier(**{**epochs, **self.deep, "units": cell.units, "random_state": cell.seed})
        differs: dict[str, dict[str, Any]] = {"fixed": {"learn": "none"}, "bidirectional": {"bidirectional": True}}
        return ESNClassifier(cell.units, **{**settings, **differs.get(cell.column, {})})

    def cells(self) -> list[Cell]:
        of_layers = self.deep.get("units", DeepESNClassifier().units)
        return [Cell(of_layers if system == "deep" else self.units, system, self.seed) for system in self.systems]

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
        least = 2 if "bidirectional" in self.systems else 1
        if self.units < least:
            raise ValueError(f"units is {self.units}; expected at least {least} for these systems.")
        if "bidirectional" in self.changes or self.changes.get("learn") == "none":
            raise ValueError("learn='none' and bidirectional are what the systems differ by: choose fixed, learned or "
                             "bidirectional among the systems instead.")  # fmt: skip
        for estimator in map(self.estimator, self.cells()):
            check_network(estimator)


def decoding_seconds(size: CorpusSize, order: int | None) -> float:
    """Return about how long it takes to tune the decoder on valid and to decode test."""
    work = 1 if order is not None and order < 3 else TRIGRAM_WORK
    trials = DECODER_TRIALS + TRIGRAM_WORK * TRIGRAM_TRIALS if order is None else DECODER_TRIALS * work
    return (trials * size.frames["valid"] + work * size.frames["test"]) / FRAMES_DECODED_PER_SECOND


def estimate_text(plan: PhonePlan, size: CorpusSize, rates: Rates | None = None) -> str:
    costs = costs_of(plan, size, rates or cost_model.measured())
    decoding = decoding_seconds(size, plan.order)
    rows = [[c.column, clock(cost.seconds), clock(decoding), memory_text(cost)] for c, cost in costs.items()]
    total = sum(cost.seconds for cost in costs.values()) + decoding * len(costs)
    summary = f"all {len(costs)} systems: about {clock(total)}; fits that stop early take less, finished ones none"
    table = aligned(["system", "fit", "decoding", "memory"], rows)
    return estimate_lines("system", table, summary, refused="fit")


class ScoredSystem(DecodedParts):
    """What is known of the phones of a system; `recognised`: of each test utterance name, first and last + 1 frame."""

    recognised: dict[str, list[tuple[str, int, int]]]


@dataclass(frozen=True)
class Phones(Experiment[MeasuredFit, ScoredSystem, PhoneTable]):
    plan: PhonePlan
    task: PhoneScoring

    def kept_fit(self, model: StateClassifier, fit: MeasuredFit) -> MeasuredFit:
        return fit

    def _kept_as(self, cell: Cell) -> tuple[str, str, str]:
        """Return the names and the fingerprint under which a score is kept."""
        content = [self.fingerprint(cell), self.plan.level, self.plan.order, SCHEMA, TUNING]
        return cell.name, f"{self.plan.level}-{self.plan.order}", fingerprint_of(content)

    def kept_score(self, cell: Cell, fit: MeasuredFit) -> ScoredSystem | None:
        return cast("ScoredSystem | None", self.store.find_score(*self._kept_as(cell)))

    def score(self, cell: Cell, fit: MeasuredFit, model: StateClassifier) -> ScoredSystem:
        scored = score(model, self.corpus, self.task, partial(self.progress.decode, cell))
        self.store.save_score(*self._kept_as(cell), cast("dict[str, object]", scored))
        return scored

    def outcome(self, fit: MeasuredFit, score: ScoredSystem) -> Outcome:
        test, valid = score["test"]["phone_error"], score["valid"]["phone_error"]
        return Outcome(test, valid, fit["seconds"], score["decoding_seconds"])

    def decoding_work(self, size: CorpusSize) -> float:
        return decoding_seconds(size, self.plan.order)

    def table(self, done: Done) -> PhoneTable:
        cells = [cell for cell in self.plan.cells() if cell in done]
        return {
            **self.corpus_report({**asdict(self.plan), "systems": list(self.plan.systems)}, done),
            "schema": SCHEMA,
            "phones": len(self.task.classes),
            "utterances": {part: len(self.corpus.which(part)) for part in PART_NAMES},
            "rows": [_row(cell, *done[cell]) for cell in cells],
            "comparisons": comparisons({cell.column: evaluation_of(done[cell][1], self.task) for cell in cells}),
        }

    def write(self, out: Path, table: PhoneTable) -> None:
        write_phone_table(out, table)

    def page(self, table: PhoneTable, done: Done) -> str:
        systems = []
        for cell, row in zip(self.plan.cells(), table["rows"], strict=True):
            fit, scored = done[cell]
            evaluation, load = evaluation_of(scored, self.task), partial(self.store.load_model, cell.name)
            systems.append(ReportedSystem(row, evaluation, fit["history"], scored["recognised"], load))
        return phone_page(table, draw_figures(self.corpus, self.task, systems))


def run(corpus: Corpus, plan: PhonePlan, out: Path, progress: Progress, *, force: bool = False) -> PhoneTable:
    """Compute the systems that the folder `out` does not hold yet, with `force` all of them, and return the table.
    A network that is kept is not fitted again where only the level or the order of the n-gram has changed."""
    plan.check()
    task = PhoneScoring.of(corpus, plan.level, plan.order)
    check_references(corpus, task)
    out.mkdir(parents=True, exist_ok=True)
    parts, store = CorpusParts.load(corpus), CellStore[MeasuredFit](out / "systems", progress.note)
    return Phones(corpus, plan, parts, store, progress, task).run(out, force=force)


def check_references(corpus: Corpus, task: PhoneScoring) -> None:
    """Refuse a corpus without phones to recognise in valid or test."""
    for part in ("valid", "test"):
        if not task.spoken[part]:
            raise ValueError(f"{corpus.name} has no utterances of the {part} part; train, valid and test are needed.")
        if not task.evaluate(part, {name: [] for name in task.spoken[part]}).total.reference:
            raise ValueError(f"{corpus.name}: the {part} part has no phone but silences; there is nothing to score.")


def _row(cell: Cell, fit: MeasuredFit, scored: ScoredSystem) -> PhoneRow:
    decoded = cast(DecodedParts, {name: value for name, value in scored.items() if name != "recognised"})
    return {
        "system": cell.column,
        "units": cell.units,
        "bidirectional": cell.column == "bidirectional",
        "seconds": fit["seconds"],
        "processor_seconds": fit["processor_seconds"],
        "epochs": fit["epochs"],
        "made_with": fit["made_with"],
        **decoded,
    }


def score(model: StateClassifier, corpus: Corpus, task: PhoneScoring, progress: StageProgress) -> ScoredSystem:
    """Tune a decoder on the validation part and decode the test part with it, once."""
    started = time.perf_counter()
    valid = part_probabilities(model, corpus, "valid")
    decoder, order = task.tuned(valid, progress)
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
    return {
        "phone_error": round(total.error_rate, 6),
        "substitutions": round(total.substitutions / total.reference, 6),
        "deletions": round(total.deletions / total.reference, 6),
        "insertions": round(total.insertions / total.reference, 6),
        "interval": [round(interval.low, 6), round(interval.high, 6)] if interval.high < float("inf") else None,
        "phone_error_with_silence": round(with_silence, 6),
        "state_error": round(by_frame[0], 6),
        "frame_phone_error": round(by_frame[1], 6),
        "reference_phones": total.reference,
    }


def evaluation_of(scored: ScoredSystem, task: PhoneScoring) -> Evaluation:
    return task.evaluate("test", {name: [Token(*one) for one in rows] for name, rows in scored["recognised"].items()})


def comparisons(found: Mapping[str, Evaluation]) -> list[PhoneComparison]:
    """Return every system against the fixed network, and those that learn more against the learned one."""
    rows: list[PhoneComparison] = []
    for against, systems in (("fixed", ("learned", "bidirectional", "deep")), ("learned", ("bidirectional", "deep"))):
        for system in (s for s in systems if s in found and against in found):
            rate = found[against].total.error_rate
            gain = round(1 - found[system].total.error_rate / rate, 4) if rate else None
            several = len(found[system].alignments) > 1
            p_value = round(matched_pairs(found[system], found[against]).p_value, 6) if several else None
            rows.append({"system": system, "against": against, "relative_gain": gain, "p_value": p_value})
    return rows
