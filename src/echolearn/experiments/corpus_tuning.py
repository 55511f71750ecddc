"""A search for settings on a corpus: trials kept in a folder, a report, and a file for `echolearn train`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from echolearn.estimators import parameters
from echolearn.estimators.classifier import ESNClassifier
from echolearn.experiments.corpus_parts import CorpusParts
from echolearn.experiments.measured_fit import warnings_as_notes
from echolearn.modelfile.atomic import write_atomically
from echolearn.speech.corpus import Corpus
from echolearn.tuning.results import Tuning
from echolearn.tuning.search import tune


def tune_on_corpus(
    corpus: Corpus, estimator: ESNClassifier, out: Path, trials: int, given: Mapping[str, object]
) -> Tuning:
    """Fit trials on the training part, score them on the validation part, and write the result to the folder `out`.

    `given` are the settings that the user chose; `best.toml` repeats them beside those that were found.
    """
    parameters.check(estimator.get_params(deep=False))
    parts = CorpusParts.load(corpus)
    if not parts.valid_known[0]:
        raise ValueError(f"{corpus.name}: every validation utterance has states that no training frame has.")
    out.mkdir(parents=True, exist_ok=True)
    with warnings_as_notes(lambda text: print(text, file=sys.stderr, flush=True)):
        found = tune(
            estimator,
            *parts.train,
            validation=parts.valid_known,
            trials=trials,
            storage=out / "trials.sqlite",
            refit=False,
            random_state=0,
            verbose=1,
        )
    best = {**given, **found.best_settings}
    write_atomically(out / "best.toml", as_toml(estimator.hidden_units, best).encode())
    found.report(out / "report.html", corpus.name)
    return found


def as_toml(units: int, settings: Mapping[str, object]) -> str:
    """Return a configuration file for `echolearn train --config`."""
    lines = [f"{name} = {_toml_value(value)}" for name, value in sorted(settings.items())]
    return "\n".join([f"units = {units}", "", "[estimator]", *lines, ""])


def _toml_value(value: object) -> str:
    if value is None:
        return '"none"'
    return json.dumps(list(value) if isinstance(value, tuple) else value)
