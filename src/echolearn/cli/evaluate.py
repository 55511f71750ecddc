"""The command `evaluate`: the error of a model on a table or on a part of a corpus."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from echolearn.cli.corpora import opened_corpus, part_features
from echolearn.cli.options import FILE, corpus_options, divided, part_option, table_options
from echolearn.cli.predict import open_network, open_state_network, recipe_of
from echolearn.cli.tables import FrameFile, inputs_of, last_step, read_frames, targets_for
from echolearn.metrics import scorer
from echolearn.paper.fits import confusion_counts
from echolearn.speech import Corpus
from echolearn.speech._phone_set import phones_of_states
from echolearn.speech.recognition._recognizer import StateClassifier
from echolearn.validation import Array

SHOWN_CONFUSIONS = 8
REGRESSION_SCORES = {"neg_root_mean_squared_error": "rmse", "neg_mean_absolute_error": "mae", "r2": "r2"}


@click.command()
@click.argument("model", type=FILE)
@click.argument("data", required=False, type=FILE)
@click.option("--target", metavar="COLUMN", help="The column of a table with the true labels or values.")
@table_options
@corpus_options()
@part_option
@click.option("--json", "as_json", is_flag=True, help="Print numbers as JSON.")
def evaluate(
    *, model: Path, data: Path | None, target: str | None, part: str, as_json: bool, **settings: object
) -> None:
    """Print the error of MODEL on the table DATA (.csv), or by frame on a part of a corpus."""
    how, corpus_settings = divided(settings)
    if data is None:
        network = open_state_network(model)
        found = part_errors(network, opened_corpus(recipe_of(model), **corpus_settings), part)
        text = errors_text(found)
    else:
        if target is None:
            raise ValueError(f"add --target: the column of {data} with the true labels or values.")
        estimator = open_network(model)
        frames = read_frames(data, estimator, how, [target])
        found = table_errors(estimator, frames, targets_for(estimator, frames, target))
        text = "\n".join([*frames.notes, f"{target}: {table_text(found)}"])
    click.echo(json.dumps(found, indent=1) if as_json else text)


def table_errors(model: BaseEstimator, frames: FrameFile, y: Sequence[Array] | Array) -> dict[str, float]:
    """Return the errors of a model on a table, over the steps or sequences that its own `score` counts."""
    labels, per_step = is_classifier(last_step(model)), last_step(model).per_step_
    names = {"accuracy": "error", "balanced_accuracy": "mean_error_of_classes"} if labels else REGRESSION_SCORES
    X = inputs_of(model, frames)
    scores = {name: scorer(score)(model, X, y) for score, name in names.items()}
    counts = {"steps" if per_step else "sequences": sum(map(len, frames.X)) if per_step else len(frames.X)}
    return {
        **counts,
        **{name: 1 - score if labels else abs(score) if name != "r2" else score for name, score in scores.items()},
    }


def table_text(found: Mapping[str, float]) -> str:
    over = next(f"{count:,} {name}" for name, count in found.items())
    if "error" in found:
        error, mean = (100 * found[name] for name in ("error", "mean_error_of_classes"))
        return f"error {error:.1f} %, mean over classes {mean:.1f} %; {over}"
    errors = f"root mean square error {found['rmse']:.4g}, mean absolute error {found['mae']:.4g}"
    return f"{errors}, R² {found['r2']:.3f}; {over}"


def part_errors(model: StateClassifier, corpus: Corpus, part: str) -> dict[str, Any]:
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
        "phones": len(phones),
        "states_unknown_to_the_model": unknown,
        "confused": [
            {"spoken": phones[a], "recognised": phones[b], "frames": int(wrong[a, b])}
            for a, b in largest
            if wrong[a, b] > 0
        ],
    }


def errors_text(found: dict[str, Any]) -> str:
    confusions = ", ".join(f"{c['spoken']} as {c['recognised']} ({c['frames']})" for c in found["confused"])
    part, unknown = found["part"], found["states_unknown_to_the_model"]
    kind = " (synthetic speech)" if found["synthetic"] else ""
    lines = [
        f"state error{kind}: {part} {100 * found[f'{part}_error']:.1f} %",
        f"phone error by frame, {found['phones']} phones of the corpus: {100 * found['phone_error']:.1f} %, "
        f"{found['frames']:,} frames",
        f"most frequent confusions (frames): {confusions or 'none'}",
    ]
    return "\n".join([*lines, *([f"states unknown to the model: {', '.join(unknown)}"] if unknown else [])])
