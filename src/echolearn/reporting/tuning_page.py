"""The HTML report of a search for settings."""

from __future__ import annotations

import html
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from echolearn import __version__
from echolearn.reporting import figures
from echolearn.reporting.page import Figure, document, figure_blocks, table_block
from echolearn.reporting.svg import can_draw
from echolearn.training.progress import clock

HEAD = ["trial", "score", "seconds", "epochs"]


class Trial(Protocol):
    """What the report shows of one trial. `score` is None where it was stopped early."""

    @property
    def number(self) -> int: ...
    @property
    def settings(self) -> Mapping[str, object]: ...
    @property
    def score(self) -> float | None: ...
    @property
    def seconds(self) -> float: ...
    @property
    def curve(self) -> Sequence[float]: ...


def search_summary(trials: Sequence[Trial], best: Trial) -> str:
    """Return the result of a search in one sentence."""
    first = trials[0].score
    stopped = sum(trial.score is None for trial in trials)
    start = "" if first is None else f", the initial settings {first:.4f}"
    return (
        f"best of {len(trials)} trials: {best.score:.4f} held out (trial {best.number + 1}){start}; "
        f"{stopped} trials were stopped early."
    )


def tuning_page(trials: Sequence[Trial], best: Trial, logarithmic: Collection[str], data: str = "") -> str:
    """Return the page: the best settings, the search as a figure, and every trial.

    `logarithmic` names the settings that are drawn on a logarithmic axis; `data` is the name of the data.
    """
    names = list(best.settings)
    seconds = clock(sum(trial.seconds for trial in trials))
    settings = [[name, _text(best.settings[name])] for name in names]
    ranked = sorted(trials, key=lambda trial: (trial.score is None, -(trial.score or 0), trial.number))
    body = f"""<header><p class=kicker>echolearn {html.escape(__version__)} · tuning</p>
<h1>What the search found</h1>
<p class=lead>{html.escape(search_summary(trials, best))}</p>
<p class=note>{html.escape(data and data + ".")} All trials took {seconds}.</p></header>
<section><h2>Best settings</h2>{table_block(["setting", "value"], settings)}
</section>
{figure_blocks(_figures(trials, names, logarithmic))}
<section><h2>Every trial, best first</h2>{table_block([*HEAD, *names], [_row(trial, names) for trial in ranked])}
<p class=note>–: stopped early, because its held-out error lagged behind the median of the trials before it.</p>
</section>"""
    return document("Tuning an echo state network", body)


def _row(trial: Trial, names: Sequence[str]) -> list[str]:
    score = "–" if trial.score is None else f"{trial.score:.4f}"
    values = [_text(trial.settings[name]) for name in names]
    return [str(trial.number + 1), score, f"{trial.seconds:.1f}", str(len(trial.curve) or "–"), *values]


def _text(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _figures(trials: Sequence[Trial], names: Sequence[str], logarithmic: Collection[str]) -> list[Figure]:
    if not can_draw():
        return []
    columns = {name: [trial.settings[name] for trial in trials] for name in names}
    svg = figures.search_history([trial.score for trial in trials], columns, logarithmic)
    caption = (
        "Each dot is a finished trial, the ring is the best one, the line is the best score so far, and the ticks are "
        "trials that were stopped early."
    )
    return [Figure("The search", caption, svg, wide=True)]
