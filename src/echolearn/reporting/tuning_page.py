"""A search for settings on a corpus: trials kept in a folder, a report to look at, and a file for `echolearn train`."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from echolearn import __version__
from echolearn.estimators import parameters as settings
from echolearn.estimators.classifier import ESNClassifier
from echolearn.experiments.fitted_cells import Parts, heard
from echolearn.modelfile.atomic import write_atomically
from echolearn.reporting import table as report
from echolearn.speech.corpus import Corpus
from echolearn.training.progress import clock, say
from echolearn.tuning.search import Trial, Tuning, tune

HEAD = ["trial", "score", "seconds", "epochs"]


def search(corpus: Corpus, estimator: ESNClassifier, out: Path, trials: int, given: dict[str, Any]) -> Tuning:
    """Searches on the training part, scores on the validation part; `given`: settings the user fixed."""
    settings.check(estimator.get_params(deep=False))
    parts = Parts.of(corpus)
    if not parts.check[0]:
        raise ValueError(f"{corpus.name}: every validation utterance has states that no training frame has.")
    out.mkdir(parents=True, exist_ok=True)
    with heard(lambda text: say(1, text)):
        found = tune(
            estimator,
            *parts.train,
            validation=parts.check,
            trials=trials,
            storage=out / "trials.sqlite",
            refit=False,
            random_state=0,
            verbose=1,
        )
    best = {**given, **found.best_settings}
    write_atomically(out / "best.toml", as_toml(estimator.hidden_units, best).encode())
    write_atomically(out / "report.html", page(found, corpus.name).encode())
    return found


def as_toml(units: int, best: dict[str, Any]) -> str:
    """A configuration file for `echolearn train --config`."""
    lines = [f"{name} = {_toml(value)}" for name, value in sorted(best.items())]
    return "\n".join([f"units = {units}", "", "[estimator]", *lines, ""])


def _toml(value: Any) -> str:
    if value is None:
        return '"none"'
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def sentence(found: Tuning) -> str:
    first, best = found.trials[0], found.best
    stopped = sum(t.score is None for t in found.trials)
    gain = "" if first.score is None else f", the settings it began with {first.score:.4f}"
    return (
        f"best of {len(found.trials)} trials: {found.best_score:.4f} held out (trial {best.number + 1}){gain}; "
        f"{stopped} trials were stopped early."
    )


def page(found: Tuning, data: str = "") -> str:
    """What was tried, as one page."""
    names = list(found.space)
    took = clock(sum(t.seconds for t in found.trials))
    best = [[name, _words(found.best_settings[name])] for name in names]
    ranked = sorted(found.trials, key=lambda t: (t.score is None, -(t.score or 0), t.number))
    body = f"""<header><p class=kicker>echolearn {html.escape(__version__)} · tuning</p>
<h1>What the search found</h1>
<p class=lead>{html.escape(sentence(found))}</p>
<p class=note>{html.escape(data and data + ".")} All trials took {took}.</p></header>
<section><h2>Best settings</h2>{report.html_grid(["setting", "value"], best)}
</section>
{report.pictures(_figures(found))}
<section><h2>Every trial, best first</h2>{report.html_grid([*HEAD, *names], [_row(t, names) for t in ranked])}
<p class=note>–: stopped early, its held-out error lagged behind the median of trials before it.</p></section>"""
    return report.document("Tuning an echo state network", body)


def _row(trial: Trial, names: list[str]) -> list[str]:
    score = "–" if trial.score is None else f"{trial.score:.4f}"
    values = [_words(trial.settings[name]) for name in names]
    return [str(trial.number + 1), score, f"{trial.seconds:.1f}", str(len(trial.curve) or "–"), *values]


def _words(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _figures(found: Tuning) -> list[report.Figure]:
    try:
        from echolearn.reporting import figures as plots
    except ImportError:
        return []
    logarithmic = {name for name, options in found.space.items() if isinstance(options, tuple)}
    columns = {name: [t.settings[name] for t in found.trials] for name in found.space}
    picture = plots.search([t.score for t in found.trials], columns, logarithmic)
    caption = "A dot: a finished trial; the ring: the best; the line: the best so far; ticks: trials stopped early."
    return [report.Figure("The search", caption, picture, wide=True)]
