"""The commands `train` and `align`: a network or a recogniser from a table or a corpus, and its state labels."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Unpack, cast

import click
import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier

from echolearn.cli.configuration import Settings
from echolearn.cli.corpora import opened_corpus
from echolearn.cli.csv_files import import_pandas
from echolearn.cli.errors import RESUME_NOTE
from echolearn.cli.info import learning_summary
from echolearn.cli.options import (
    FILE,
    CorpusOptions,
    TableOptions,
    corpus_options,
    divided,
    force_option,
    network_changes,
    network_options,
    recognition_options,
    scheduler_option,
    table_options,
)
from echolearn.cli.outputs import claim, file_digest, report
from echolearn.cli.progress import FitDisplay, stderr
from echolearn.cli.tables import FrameFile, Targets, read_frames, read_targets
from echolearn.cluster.connection import use_engine
from echolearn.display.facts import counted
from echolearn.display.progress import clock
from echolearn.estimators import (
    DeepESNClassifier,
    DeepESNRegressor,
    ESNClassifier,
    ESNRegressor,
    SeriesClassifier,
    SeriesRegressor,
)
from echolearn.paper.cells import fit_fingerprint
from echolearn.paper.fits import (
    FitResult,
    MeasuredFit,
    check_network,
    measured_fit,
    planned_epochs,
    valid_error,
    warnings_as_notes,
    with_errors,
)
from echolearn.paper.parts import CorpusParts, augmentation
from echolearn.persistence.save import check_model_path
from echolearn.sequences.tables import id_columns
from echolearn.speech import Corpus, Evaluation
from echolearn.speech._phone_set import split_state
from echolearn.speech.recognition import (
    Lexicon,
    NGramModel,
    Recognizer,
    learn_recognizer,
    load_recognizer,
    read_arpa,
    read_lexicon,
)
from echolearn.speech.recognition._learner import valid_part
from echolearn.speech.recognition._lexicon import spelled_in
from echolearn.speech.recognition._recognizer import StateClassifier
from echolearn.speech.recognition._tuning import evaluate_phones, evaluate_words
from echolearn.validation import Array

NETWORK_NAMES = {"esn": "network of one layer", "deep": "deep network"}
MAX_SHOWN_WORDS = 5  # of those that a lexicon lacks
HELD_OUT_PARTS = 5  # one of which decides between two networks for a table
# Options of `train` that are for tables alone, and for speech alone.
TABLE_OPTIONS = ("target", "task", *TableOptions.__annotations__)
SPEECH_OPTIONS = ("paper", "purpose", "lexicon", "language_model", "order", "scheduler", "frames", "labels",
                  "transcripts", "normalise", "corpus_seed", "cache")  # fmt: skip
Examples = tuple[Sequence[BaseEstimator], Sequence[Array] | Array]  # data frames and their targets


@click.command()
@click.argument("data", required=False, type=FILE)
@click.option("--target", metavar="COLUMN", help="The column of a table that is learned: labels or values.")
@table_options
@click.option("--task", type=click.Choice(["classification", "regression"]),
              help="Learn labels or values of a table.  [default: found; whole numbers may be either]")  # fmt: skip
@click.option("--out", type=FILE, required=True, help="The model file to write (.safetensors).")
@force_option
@corpus_options()
@click.option("--network", type=click.Choice(["esn", "deep", "auto"]),
              help="esn: one layer. deep: several. auto: both, and the one with the smaller error on held-out data is "
              "kept; --units and --set are those of one layer.  [default: auto for recognition, else esn]")  # fmt: skip
@network_options(units=None)
@click.option("--paper", is_flag=True, help="Start from the paper's settings instead of our defaults.")
@recognition_options
@scheduler_option
@click.pass_context
def train(ctx: click.Context, /, *, data: Path | None, out: Path, **given: Any) -> None:
    """Fit a network to the table DATA (.csv), or to a corpus of speech, and save it.

    A table has one row per time step. Its columns of numbers are the inputs. The labels or values of the column
    --target are learned per step or, if all rows of each --id have the same one, per sequence. What was found is
    printed.

    With --for recognition, the model is a recogniser of speech: it has the network and what turns its states into
    phones and words.

    The same command resumes a fit that was stopped. At most five minutes of work are lost.
    """
    if (data is None) == (given["corpus"] is None):
        raise ValueError(
            f"{'neither a table nor a corpus is' if data is None else 'both a table and a corpus are'} given; expected "
            "echolearn train DATA.csv --target COLUMN --out MODEL, or echolearn train --corpus synthetic --out MODEL"
        )
    others = TABLE_OPTIONS if data is None else SPEECH_OPTIONS
    for option in ctx.command.params:
        source = ctx.get_parameter_source(option.name or "")
        if source is click.core.ParameterSource.COMMANDLINE and option.name in others:
            raise ValueError(f"{option.opts[0]} is for {'tables, not for a corpus' if data is None else 'speech'}.")
    check_model_path(out)
    claim(out)
    ctx.meta[RESUME_NOTE] = "stopped; run the same command again to continue: its state is kept beside the model."
    options = NetworkOptions(*(given.pop(name) for name in NetworkOptions._fields))
    how, rest = divided(given)
    if data is None:
        _train_on_speech(ctx, out, options, **cast("dict[str, Any]", rest))
    else:
        _train_on_table(ctx, out, data, options, how, target=given["target"], task=given["task"])
    report(out)


class NetworkOptions(NamedTuple):
    """Which network is to be fitted, as the options say."""

    network: str | None
    units: int | None
    epochs: int | None
    settings: tuple[str, ...]
    seed: int

    def candidates(
        self, ctx: click.Context, kinds: Sequence[type], network: str, *, paper: bool = False
    ) -> dict[str, BaseEstimator]:
        """Return the networks to be fitted by their kinds; kinds: the classes with one layer and with several."""
        single, deep = kinds
        changes = network_changes(ctx, self.epochs, self.settings, self.seed, deep if network == "deep" else single)
        return networks_of(network, self.units, changes, paper=paper, kinds=kinds)


def _train_on_speech(
    ctx: click.Context,
    out: Path,
    options: NetworkOptions,
    /,
    *,
    paper: bool,
    purpose: str,
    lexicon: Path | None,
    language_model: Path | None,
    order: int,
    scheduler: str | None,
    **corpus_settings: object,
) -> None:
    network = options.network or ("auto" if purpose == "recognition" else "esn")
    estimators = options.candidates(ctx, (ESNClassifier, DeepESNClassifier), network, paper=paper)
    check_training(estimators, scheduler)
    grammar = check_word_files(purpose, lexicon, language_model)
    with use_engine(scheduler):
        named = {name: corpus_settings[name] for name in CorpusOptions.__annotations__}
        corpus = opened_corpus(**cast("CorpusOptions", named))
        # refuses before the fit what would fail after it
        words = words_for(corpus, lexicon, language_model) if purpose == "recognition" else None
        if words is not None and (note := missing_words(words, corpus.words)):
            click.echo(note)
        with FitDisplay(stderr()) as display:
            made_of = partial(
                learn_recognizer,
                corpus=corpus,
                order=order,
                lexicon=words,
                language_model=grammar,
                progress=display.stage,
            )
            result = fit_and_save(corpus, estimators, out, display, made_of if purpose == "recognition" else None)
    click.echo(training_summary(result, corpus))
    if purpose == "recognition":
        click.echo(recognition_summary(load_recognizer(out), corpus))


# Of whether targets are labels and belong to steps, the estimators with one layer and with several.
KINDS = {
    (True, True): (ESNClassifier, DeepESNClassifier),
    (False, True): (ESNRegressor, DeepESNRegressor),
    (True, False): (SeriesClassifier, DeepESNClassifier),
    (False, False): (SeriesRegressor, DeepESNRegressor),
}


def _train_on_table(
    ctx: click.Context,
    out: Path,
    data: Path,
    options: NetworkOptions,
    how: TableOptions,
    *,
    target: str | None,
    task: str | None,
) -> None:
    pandas = import_pandas("training from a table")
    if target is None:
        raise ValueError(f"add --target: the column of {data} that is to be learned.")
    frames = read_frames(data, None, how, [target])
    found = read_targets(frames, target, task)
    for name in id_columns(pandas.DataFrame(columns=frames.features)):
        raise ValueError(f"the column {name!r} looks like the names of sequences; add --id {name}, or rename it.")
    X, y = [pandas.DataFrame(x, columns=frames.features) for x in frames.X], found.y
    if not found.per_step:  # sequences without a target teach nothing
        kept = [k for k, label in enumerate(y) if label is not None and label == label]
        X, y = [X[k] for k in kept], np.array([y[k] for k in kept])
    estimators = options.candidates(ctx, KINDS[found.classes, found.per_step], options.network or "esn")
    if found.classes and found.per_step and any(entries.dtype == object for entries in y):
        estimators = {kind: one.set_params(ignore_label=float("nan")) for kind, one in estimators.items()}
    for note in frames.notes:
        click.echo(note)
    click.echo(_plan_text(estimators, frames, found, target, len(X)))
    _check_gaps(frames, estimators)
    known = f"{file_digest(data)} {target} {task} {how}"
    with FitDisplay(stderr()) as display:
        estimator = _best_on_held_out(estimators, (X, y), display, found.per_step)
        folder = out.with_name(f"{out.name}-{fit_fingerprint(estimator, known)}.checkpoint")
        _fit_table(estimator, (X, y), display, folder)
        estimator.save(out)
    shutil.rmtree(folder, ignore_errors=True)
    if estimator.history_:
        click.echo(learning_summary(estimator.history_))
    if len(estimators) == 1 and not any("valid_error" in row for row in estimator.history_):
        columns = " ".join(f"--{name} {how[name]}" for name in ("id", "time") if how[name] is not None)
        line = f"echolearn evaluate {out} OTHER.csv --target {target} {columns}".rstrip()
        click.echo(f"No data were held out. The error on other data: {line}")


def _plan_text(
    estimators: Mapping[str, BaseEstimator], frames: FrameFile, found: Targets, target: str, sequences: int
) -> str:
    """Return the line about what is fitted to what, and what was guessed."""
    kinds = " or ".join(type(estimator).__name__ for estimator in estimators.values())
    each = "step" if found.per_step else f"sequence ({next(iter(frames.keys))!r})"
    rows = sum(map(len, frames.X))
    line = (
        f"{kinds}: {'labels' if found.classes else 'values'} of {target!r}, one per {each}, from "
        f"{', '.join(frames.features)}; {counted(sequences, 'sequence')}, {counted(rows, 'row')}"
    )
    missing = [entry is None or entry != entry for y in found.y for entry in np.ravel(y).tolist()]
    if found.per_step and (gone := sum(missing)):
        line += f", {gone:,} without a {'label' if found.classes else 'value'}"
    return f"{line}. Guessed: {found.guess}." if found.guess else f"{line}."


def _check_gaps(frames: FrameFile, estimators: Mapping[str, BaseEstimator]) -> None:
    """Refuse inputs with missing values, unless an option names how to fill them."""
    assert frames.table is not None
    gaps = [(r, np.isnan(x)) for x, r in zip(frames.X, frames.rows, strict=True) if np.isnan(x).any()]
    if gaps and any(estimator.missing == "error" for estimator in estimators.values()):
        row, column = np.argwhere(gaps[0][1])[0]
        line, name = frames.table.lines[gaps[0][0][row]], frames.features[column]
        raise ValueError(
            f"{frames.table.path}, line {line}: the input {name!r} is missing. Add --set missing=carry to fill gaps "
            "with the last known value, or --set missing=mean."
        )


def _best_on_held_out(
    estimators: Mapping[str, BaseEstimator], data: Examples, display: FitDisplay, per_step: bool
) -> BaseEstimator:
    """Return an unfitted network: of several the one with the greatest score on a fifth of the data, held out."""
    if len(estimators) == 1:
        return next(iter(estimators.values()))
    train, held_out = _held_out(*data, per_step)
    scores = {}
    for kind, estimator in estimators.items():
        display.note(f"fitting the {NETWORK_NAMES[kind]} to four fifths of the data")
        fitted = _fit_table(clone(estimator), train, display)
        with warnings_as_notes(display.note):
            scores[kind] = fitted.score(*held_out)
    best = max(scores, key=lambda kind: scores[kind])
    measure = "share of right labels" if is_classifier(estimators[best]) else "R²"
    texts = ", ".join(f"{NETWORK_NAMES[kind]} {score:.3f}" for kind, score in scores.items())
    display.note(f"{measure} on held-out data: {texts}; the {NETWORK_NAMES[best]} is kept and fitted to all data")
    return estimators[best]


def _held_out(X: Sequence[BaseEstimator], y: Sequence[Array] | Array, per_step: bool) -> tuple[Examples, Examples]:
    """Return four fifths of the sequences and the others; of few with targets per step, the last fifths of them."""
    if len(X) < HELD_OUT_PARTS and not per_step:
        raise ValueError(f"--network auto: expected at least {HELD_OUT_PARTS} sequences, given {len(X)}.")
    if len(X) < HELD_OUT_PARTS:
        cuts = [len(x) - len(x) // HELD_OUT_PARTS for x in X]
        pairs = [[slice(n) for n in cuts], [slice(n, None) for n in cuts]]
        first, second = (tuple([a[i] for a, i in zip(side, part, strict=True)] for side in (X, y)) for part in pairs)
        return cast("tuple[Examples, Examples]", (first, second))
    order = range(len(X)) if per_step else np.argsort(y, kind="stable")  # both have every label
    parts = [[k for i, k in enumerate(order) if (i % HELD_OUT_PARTS == 0) == held] for held in (False, True)]
    first, second = (([X[k] for k in part], [y[k] for k in part]) for part in parts)
    return first, second


def _fit_table(
    estimator: BaseEstimator, data: Examples, display: FitDisplay, checkpoint: Path | None = None
) -> BaseEstimator:
    """Fit a network with its progress on the terminal."""
    with warnings_as_notes(display.note):
        warnings.filterwarnings("ignore", "the column .* grows from row to row")  # there is a note
        if isinstance(estimator, (SeriesClassifier, SeriesRegressor)):
            return estimator.fit(*data)
        display.start(planned_epochs(estimator, len(data[0])))
        return estimator.fit(*data, callback=display.epoch, checkpoint=checkpoint)


def _kind(synthetic: bool) -> str:
    return " (synthetic speech)" if synthetic else ""


def networks_of(
    kind: str,
    units: int | None,
    changes: Settings,
    *,
    paper: bool = False,
    kinds: Sequence[type] = (ESNClassifier, DeepESNClassifier),
) -> dict[str, BaseEstimator]:
    """Return the networks to be fitted by their kinds; for "auto", units and changes are those of one layer."""
    if kind == "deep" and paper:
        raise ValueError("--paper: the paper's network has one layer; leave out --network deep")
    single, deep = cast("tuple[BaseEstimator, BaseEstimator]", kinds)
    if kind == "deep":
        return {"deep": deep(units or deep().units, **changes)}
    network = (single.paper if paper else single)(units or single().hidden_units, **changes)
    if kind == "esn":
        return {"esn": network}
    shared = {name: value for name, value in changes.items() if name in ("epochs", "random_state")}
    return {"esn": network, "deep": deep(**shared)}


def check_training(estimators: Mapping[str, StateClassifier], scheduler: str | None) -> None:
    """Check the settings before anything slow begins."""
    for estimator in estimators.values():
        check_network(estimator)
    if scheduler is not None and "deep" in estimators and estimators["deep"].ensemble == 1:
        raise ValueError(
            "--scheduler: one deep network learns in one process; add --network esn, or --network deep "
            "--set ensemble=4 for four networks, one task each"
        )


def fit_and_save(
    corpus: Corpus,
    estimators: Mapping[str, StateClassifier],
    model: Path,
    progress: FitDisplay,
    made_of: Callable[..., Recognizer] | None = None,
) -> FitResult:
    """Fit networks, and save the one with the smallest error on valid, or what is made of it. Until the file is there,
    checkpoints allow resuming."""
    parts = CorpusParts.load(corpus)
    for note in (*corpus.notes, *parts.notes):
        progress.note(note)
    fits: dict[str, MeasuredFit] = {}
    checkpoints: dict[str, Path] = {}
    for kind, estimator in estimators.items():
        if isinstance(estimator, DeepESNClassifier):
            estimator.set_params(augment=augmentation(corpus))
        known = fit_fingerprint(estimator, parts.fingerprint)
        checkpoints[kind] = model.with_name(f"{model.name}-{known}.checkpoint")
        if len(estimators) > 1:
            progress.note(f"fitting the {NETWORK_NAMES[kind]}")
        progress.start(planned_epochs(estimator, len(parts.train[0])))
        fits[kind] = measured_fit(estimator, parts, checkpoints[kind], on_epoch=progress.epoch, note=progress.note)
    kept = best_on_valid(estimators, parts, progress)
    result, chosen = with_errors(estimators[kept], parts, fits[kept]), estimators[kept]
    if made_of is not None:
        made_of(chosen, checkpoint=checkpoints[kept]).save(model)
    else:
        if corpus.recipe.audio:
            chosen.model_ = replace(chosen.model_, recipe=corpus.recipe.facts())
        chosen.save(model)
    for checkpoint in checkpoints.values():
        shutil.rmtree(checkpoint, ignore_errors=True)
    return result


def best_on_valid(estimators: Mapping[str, StateClassifier], parts: CorpusParts, progress: FitDisplay) -> str:
    """Return the kind of the network with the smallest state error on valid; of several, the errors are reported."""
    if len(estimators) == 1:
        return next(iter(estimators))
    errors = {kind: valid_error(estimator, parts) for kind, estimator in estimators.items()}
    best = min(errors, key=lambda kind: errors[kind])
    texts = ", ".join(f"{NETWORK_NAMES[kind]} {100 * error:.1f} %" for kind, error in errors.items())
    progress.note(f"state error on valid: {texts}; the {NETWORK_NAMES[best]} is kept")
    return best


def training_summary(result: FitResult, corpus: Corpus) -> str:
    test, valid = 100 * result["test_error"], 100 * result["valid_error"]
    duration = f"{counted(result['epochs'], 'epoch')} in {clock(result['seconds'])}"
    return f"state error{_kind(corpus.synthetic)}: test {test:.1f} %, valid {valid:.1f} %, {duration}"


def check_word_files(purpose: str, lexicon: Path | None, language_model: Path | None) -> NGramModel | None:
    """Read the files of words before anything slow begins, and return the language model. ValueError for files that a
    network of states does not need, CorpusError for what is wrong with them."""
    if purpose != "recognition" and (lexicon or language_model):
        raise ValueError(f"{lexicon or language_model} is for recognition of words; add --for recognition")
    if lexicon is not None:
        read_lexicon(lexicon)
    return None if language_model is None else read_arpa(language_model)


def words_for(corpus: Corpus, lexicon: Path | None, language_model: Path | None) -> Lexicon | None:
    """Return the lexicon of a file, or else that of the corpus. ValueError if it has a phone without a frame in the
    training part: no network can learn such a phone."""
    path = lexicon or (Path(corpus.lexicon) if corpus.lexicon else None)
    if path is None:
        if language_model is not None:
            raise ValueError(f"{language_model} is a language model of words; add --lexicon FILE to pronounce them")
        return None
    words = read_lexicon(path)
    states = {int(k) for utterance in corpus.which("train") for k in corpus.labels[utterance]}
    try:
        spelled_in(words, sorted({split_state(corpus.state_names[k])[0] for k in states}))
    except ValueError as problem:
        raise ValueError(
            f"{path}: {problem}. A phone can be learned only if it occurs in the training part: use more training data "
            "(of synthetic speech: more --frames), or a lexicon without words that have these phones."
        ) from problem
    return words


def missing_words(lexicon: Lexicon, transcripts: Iterable[Sequence[str]]) -> str:
    """Return a note on words of the transcripts that a lexicon lacks; "" where it has all."""
    spoken = {word for words in transcripts for word in words}
    missing = sorted(spoken.difference(lexicon.pronunciations))
    if not missing:
        return ""
    shown = ", ".join(missing[:MAX_SHOWN_WORDS]) + (", ..." if len(missing) > MAX_SHOWN_WORDS else "")
    return (
        f"note: the lexicon lacks {len(missing)} of the {counted(len(spoken), 'word')} in the transcripts ({shown}). "
        "They cannot be recognised and count as errors; add their pronunciations."
    )


def recognition_summary(recognizer: Recognizer, corpus: Corpus) -> str:
    """Return phone error and, where words are known, word error on the validation part, one line each."""
    part = valid_part(corpus)
    inputs = {corpus.utterances[k]: corpus.features[k] for k in corpus.which("valid")}
    found = recognizer.recognize_all(inputs)
    kind = _kind(corpus.synthetic)
    phones = evaluate_phones(part.phones, {n: t.phones for n, t in found.items()}, speakers=part.speakers)
    classes = f"in {len(recognizer.phones.phones)} phones of the corpus"
    lines = [f"phone error {classes}{kind}: valid {counts_text(phones, 'phones')}"]
    if recognizer.words is not None and part.words:
        words = evaluate_words(part.words, {n: found[n].words or () for n in part.words}, speakers=part.speakers)
        lines.append(f"word error{kind}: valid {counts_text(words, 'words')}")
    elif recognizer.words is not None:
        lines.append("word error: unknown, because the words of the valid part are not known (see --transcripts)")
    return "\n".join(lines)


def counts_text(evaluation: Evaluation, of: str) -> str:
    """Return `12.8 % (S 64, D 56, I 24 of 1,127 phones)`."""
    total = evaluation.total
    return (
        f"{100 * total.error_rate:.1f} % (S {total.substitutions:,}, D {total.deletions:,}, I {total.insertions:,} "
        f"of {total.reference:,} {of})"
    )


@click.command()
@corpus_options()
@click.option("--out", type=FILE, required=True, help="FILE.mlf to write.")
@force_option
def align(*, out: Path, **corpus_settings: Unpack[CorpusOptions]) -> None:
    """Write the state labels of a corpus, by its own GMM-HMM alignment, as an HTK master label file.

    Phones with times are refined; phones without times (.lab files of names alone) are aligned from a flat start.
    """
    claim(out)
    corpus = opened_corpus(**corpus_settings)
    corpus.write_mlf(out)
    report(out, f" ({len(corpus.utterances)} utterances, {sum(corpus.frames.values()):,} frames)")
