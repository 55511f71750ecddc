"""The commands `train`, `evaluate` and `align`. Whatever is slow to import is imported when they run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import click
import numpy as np

from echolearn.cli.configuration import Settings
from echolearn.cli.corpora import opened_corpus, part_features
from echolearn.cli.errors import RESUME_NOTE
from echolearn.cli.options import (
    FILE,
    CorpusOptions,
    corpus_options,
    network_changes,
    network_options,
    part_option,
    recognition_options,
    scheduler_option,
)
from echolearn.cli.predict import open_state_network
from echolearn.cli.progress import FitDisplay, stderr
from echolearn.cluster.connection import use_engine
from echolearn.display.progress import clock
from echolearn.estimators import DeepESNClassifier, ESNClassifier
from echolearn.paper.cells import fit_fingerprint
from echolearn.paper.fits import (
    FitResult,
    MeasuredFit,
    check_network,
    confusion_counts,
    measured_fit,
    planned_epochs,
    valid_error,
    with_errors,
)
from echolearn.paper.parts import CorpusParts
from echolearn.speech import Corpus, Evaluation, mfcc, read_audio, usual_deviations, vocal_tract_warps
from echolearn.speech._augmentation import Augment
from echolearn.speech._phone_set import phones_of_states, split_state
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

SHOWN_CONFUSIONS = 8
NETWORK_NAMES = {"esn": "network of one layer", "deep": "deep network"}
WARP_SPREAD = 0.1  # of the factors by which the vocal tracts of training utterances are changed
MEASURED_UTTERANCES = 100  # from which the deviations of cepstra are taken


@click.command()
@click.argument("model", type=FILE)
@corpus_options
@click.option("--network", type=click.Choice(["esn", "deep", "auto"]),
              help="esn: one layer (ESNClassifier). deep: several (DeepESNClassifier). auto: both, and the one with "
              "the smaller state error on valid is kept; --units and --set are those of one layer.  "
              "[default: auto for recognition, else esn]")  # fmt: skip
@network_options(units=None)
@click.option("--paper", is_flag=True, help="Start from the paper's settings instead of our defaults.")
@recognition_options
@scheduler_option
@click.pass_context
def train(
    ctx: click.Context,
    /,
    *,
    model: Path,
    network: str | None,
    units: int | None,
    epochs: int | None,
    settings: tuple[str, ...],
    seed: int,
    paper: bool,
    purpose: str,
    lexicon: Path | None,
    language_model: Path | None,
    order: int,
    scheduler: str | None,
    **corpus_settings: Unpack[CorpusOptions],
) -> None:
    """Fit a network to a corpus and save it as MODEL (.safetensors).

    With --for recognition, MODEL is a recogniser: it has the network and what turns its states into phones and words.

    The same command resumes a fit that was stopped. At most five minutes of work are lost.
    """
    kind = network or ("auto" if purpose == "recognition" else "esn")
    changes = network_changes(ctx, epochs, settings, seed, deep=kind == "deep")
    estimators = networks_of(kind, units, changes, paper=paper)
    check_training(model, estimators, scheduler)
    grammar = check_word_files(purpose, lexicon, language_model)
    with use_engine(scheduler):
        corpus = opened_corpus(**corpus_settings)
        # refuses before the fit what would fail after it
        words = words_for(corpus, lexicon, language_model) if purpose == "recognition" else None
        ctx.meta[RESUME_NOTE] = "stopped; run the same command again to continue: its state is kept beside the model."
        with FitDisplay(stderr()) as display:
            made_of = partial(
                learn_recognizer,
                corpus=corpus,
                order=order,
                lexicon=words,
                language_model=grammar,
                progress=display.stage,
            )
            result = fit_and_save(corpus, estimators, model, display, made_of if purpose == "recognition" else None)
    click.echo(training_summary(result, corpus))
    if purpose == "recognition":
        click.echo(recognition_summary(load_recognizer(model), corpus))
    click.echo(f"written: {model}")


def _kind(synthetic: bool) -> str:
    return " (synthetic speech)" if synthetic else ""


def networks_of(kind: str, units: int | None, changes: Settings, *, paper: bool = False) -> dict[str, StateClassifier]:
    """Return the networks to be fitted by their kinds; for "auto", units and changes are those of one layer."""
    if kind == "deep" and paper:
        raise ValueError("--paper: the paper's network has one layer; leave out --network deep")
    if kind == "deep":
        return {"deep": DeepESNClassifier(units or DeepESNClassifier().units, **changes)}
    single = (ESNClassifier.paper if paper else ESNClassifier)(units or ESNClassifier().hidden_units, **changes)
    if kind == "esn":
        return {"esn": single}
    shared = {name: value for name, value in changes.items() if name in ("epochs", "random_state")}
    return {"esn": single, "deep": DeepESNClassifier(**shared)}


def check_training(model: Path, estimators: Mapping[str, StateClassifier], scheduler: str | None) -> None:
    """Check the settings and the place of the model file, before anything slow begins."""
    for estimator in estimators.values():
        check_network(estimator)
    if scheduler is not None and "deep" in estimators:
        raise ValueError("--scheduler: a deep network is fitted in this process, not on a cluster; add --network esn")
    if model.is_dir() or not model.absolute().parent.is_dir():
        raise ValueError(f"{model} cannot be written: its folder does not exist, or it is a folder itself.")


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


def augmentation(corpus: Corpus) -> Augment | None:
    """Return how training utterances are changed in every epoch of a deep network: as if others had spoken them.

    Features that were not computed here are left as they are: it is not known of which frequencies their cepstra are.
    """
    recipe = corpus.recipe
    if not recipe.audio:
        return None
    if recipe.scale is not None:
        return vocal_tract_warps(WARP_SPREAD, recipe.scale[1], context=recipe.context, per_utterance=False)
    some = corpus.which("train")[:MEASURED_UTTERANCES]
    deviations = usual_deviations([mfcc(read_audio(corpus.audio[k])) for k in some])
    return vocal_tract_warps(WARP_SPREAD, deviations, context=recipe.context)


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
    duration = f"{result['epochs']} epochs in {clock(result['seconds'])}"
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
            raise ValueError(f"{language_model} is a language model of words; --lexicon FILE must say them")
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


def recognition_summary(recognizer: Recognizer, corpus: Corpus) -> str:
    """Return phone error and, where words are known, word error on the validation part, one line each."""
    part = valid_part(corpus)
    inputs = {corpus.utterances[k]: corpus.features[k] for k in corpus.which("valid")}
    found = recognizer.recognize_all(inputs)
    kind = _kind(corpus.synthetic)
    phones = evaluate_phones(part.phones, {n: t.phones for n, t in found.items()}, speakers=part.speakers)
    lines = [f"phone error{kind}: valid {counts_text(phones, 'phones')}"]
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
@click.argument("model", type=FILE)
@corpus_options
@part_option
@click.option("--json", "as_json", is_flag=True, help="Print numbers as JSON.")
def evaluate(*, model: Path, part: str, as_json: bool, **corpus_settings: Unpack[CorpusOptions]) -> None:
    """Print the state and phone error of MODEL on a part of a corpus, by frame."""
    network = open_state_network(model)
    found = part_errors(network, opened_corpus(**corpus_settings), part)
    click.echo(json.dumps(found, indent=1) if as_json else errors_text(found))


def part_errors(model: ESNClassifier, corpus: Corpus, part: str) -> dict[str, Any]:
    """Return the errors of a network on a part, as fractions of frames, and the phones most often confused: what
    `echolearn evaluate --json` prints."""
    _, X = part_features(corpus, part)
    names = np.array(corpus.state_names)
    spoken = np.concatenate([names[corpus.labels[k]] for k in corpus.which(part)])
    unknown = sorted({str(s) for s in np.unique(spoken)} - set(model.classes_.tolist()))
    if len(unknown) == len(np.unique(spoken)):
        raise ValueError(
            f"the model knows none of the corpus's states: it knows {model.classes_[0]}, the corpus has {unknown[0]}"
        )
    recognised = np.concatenate(model.predict(X))
    phones = phones_of_states([*corpus.state_names, *model.classes_])
    counts = confusion_counts(spoken, recognised, phones)
    wrong = counts - np.diag(np.diag(counts))
    largest = zip(*np.unravel_index(np.argsort(-wrong, axis=None)[:SHOWN_CONFUSIONS], wrong.shape), strict=True)
    return {
        "corpus": corpus.name,
        "synthetic": corpus.synthetic,
        "part": part,
        "frames": len(spoken),
        f"{part}_error": float(np.mean(spoken != recognised)),
        "phone_error": float(wrong.sum() / counts.sum()),
        "states_unknown_to_the_model": unknown,
        "confused": [
            {"said": phones[a], "heard": phones[b], "frames": int(wrong[a, b])} for a, b in largest if wrong[a, b] > 0
        ],
    }


def errors_text(found: dict[str, Any]) -> str:
    confusions = ", ".join(f"{c['said']} as {c['heard']} ({c['frames']})" for c in found["confused"])
    part, unknown = found["part"], found["states_unknown_to_the_model"]
    lines = [
        f"state error{_kind(found['synthetic'])}: {part} {100 * found[f'{part}_error']:.1f} %",
        f"phone error by frame: {100 * found['phone_error']:.1f} %, {found['frames']:,} frames",
        f"most frequent confusions (frames): {confusions or 'none'}",
    ]
    return "\n".join([*lines, *([f"states unknown to the model: {', '.join(unknown)}"] if unknown else [])])


@click.command()
@corpus_options
@click.option("--out", type=FILE, required=True, help="FILE.mlf to write.")
def align(*, out: Path, **corpus_settings: Unpack[CorpusOptions]) -> None:
    """Write the state labels of a corpus, by its own GMM-HMM alignment, as an HTK master label file.

    Phones with times are refined; phones without times (.lab files of names alone) are aligned from a flat start.
    """
    corpus = opened_corpus(**corpus_settings)
    corpus.write_mlf(out)
    click.echo(f"written: {out} ({len(corpus.utterances)} utterances, {sum(corpus.frames.values()):,} frames)")
