"""Lines and bars for the user: in the output of a cell where a Jupyter kernel runs, otherwise on stderr.

A bar of counted work is live with a curve in a notebook, one line that is rewritten on a terminal, and plain lines now
and then in a log. (rich shows one live display at a time, and the commands have theirs.) IPython is never imported
here: where a kernel runs, it is loaded already. What a kernel prints to stderr is shown in red, as if something were
wrong; so nothing of echolearn goes there.
"""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from types import TracebackType
from typing import Any, Self

LINE_STYLE = "font-size: 90%; opacity: 0.75; white-space: pre-wrap"
LOG_SECONDS = 5.0  # seconds between two lines in a log
REFRESH_SECONDS = 0.1  # seconds between two pictures of a notebook's bar
BAR_CHARACTERS = 20  # characters of a terminal's bar
CURVE_COLOURS = ("#8a8a8a", "#2a6fb0")  # as in the figures: training is grey, validation is blue
CURVE_SIZE = (420.0, 130.0)
LEFT_MARGIN, BOTTOM_MARGIN, TOP_MARGIN = 52.0, 20.0, 8.0
MIN_CURVE_POINTS = 2  # points that make a curve
ERROR_CURVES = {"error": "train", "valid_error": "valid"}  # what curves are shown of, and their names
ENTROPY_CURVES = {"cross_entropy": "train", "valid_cross_entropy": "valid"}
StageProgress = Callable[[str, int, int], None]  # what is being done, how much of it is done, how much there is
_screen: ContextVar[Callable[[str], object] | None] = ContextVar("echolearn-screen", default=None)


def in_notebook() -> bool:
    """Return whether the code runs in a kernel, whose outputs may be HTML; the shell of IPython is none."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


def show_line(text: str) -> None:
    """Show a line of text: in a notebook in the output of the cell, otherwise on stderr."""
    if in_notebook():
        Area().show(f'<div style="{LINE_STYLE}">{escape(text)}</div>', text)
    else:
        print(text, file=sys.stderr, flush=True)


class Area:
    """A place in the output of a notebook's cell whose content can be replaced."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, html: str, text: str) -> None:
        """Show HTML, or the text where a front end shows none."""
        content = {"text/html": html, "text/plain": text}
        if self._handle is None:
            self._handle = sys.modules["IPython"].display.display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


class Bar:
    """A context in which every step of counted work is shown."""

    def __init__(
        self, total: int, *, shown: bool = True, every_line: bool = False, write: Callable[[str], object] | None = None
    ) -> None:
        self.total, self.shown, self.every_line = total, shown, every_line
        self.write = show_line if write is None else write
        self.area = Area() if shown and write is None and in_notebook() else None
        self.in_place = shown and write is None and not (every_line or in_notebook()) and sys.stderr.isatty()
        self.done, self.text, self.seen = 0, "", -math.inf
        self.pending = False  # whether the newest step was not shown
        self.values: dict[str, list[float]] = {}

    def step(self, done: int, text: str, values: Mapping[str, float] | None = None) -> None:
        """Show that so many steps are done; values: numbers by name, whose curves a notebook shows."""
        self.done, self.text, self.pending = done, text, True
        for name, value in (values or {}).items():
            self.values.setdefault(name, []).append(value)
        if not self.shown:
            return
        if self.area is None and (self.in_place or self.every_line):
            self._show()
            return
        now, gap = time.perf_counter(), LOG_SECONDS if self.area is None else REFRESH_SECONDS
        if done >= self.total or now - self.seen >= gap:
            self.seen = now
            self._show()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.shown or not self.text:
            return
        if self.pending or self.area is not None:
            self._show(ended=True)
        if self.in_place:
            print(file=sys.stderr)

    def _show(self, ended: bool = False) -> None:
        self.pending = False
        if self.area is not None:
            self.area.show(self._html(ended), self.text)
        elif self.in_place:
            room = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[2K{f'{self._drawn()} {self.text}'[:room]}", end="", file=sys.stderr, flush=True)
        else:
            self.write(self.text)

    def _drawn(self) -> str:
        """Return the bar in characters, to half a character."""
        halves = math.floor(2 * BAR_CHARACTERS * min(self.done / max(self.total, 1), 1))
        return ("━" * (halves // 2) + "╸" * (halves % 2)).ljust(BAR_CHARACTERS)

    def _html(self, ended: bool) -> str:
        bar = (
            f'<progress value="{self.done}" max="{self.total}" style="width: 14em; vertical-align: middle"></progress> '
        )
        drawing = curve(self.values, self.total)
        return f'<div style="{LINE_STYLE}">{"" if ended else bar}{escape(self.text)}</div>{drawing}'


class Progress(Bar):
    """A bar over epochs, if `verbose`, which passes the row of history of each on to a callback. With verbose=2 there
    is a line per epoch, with 1 only every few seconds in a log; a notebook shows the curve of the errors too."""

    def __init__(self, verbose: int, epochs: int, callback: Callable[[dict[str, float]], object] | None):
        super().__init__(epochs, shown=verbose > 0, every_line=verbose > 1, write=_screen.get())
        self.callback, self.started = callback, time.perf_counter()

    def epoch(self, row: dict[str, float]) -> object:
        """Show an epoch; return what the callback returns."""
        if self.shown:
            left = (time.perf_counter() - self.started) / row["epoch"] * (self.total - row["epoch"])
            errors = {name: row[key] for key, name in ERROR_CURVES.items() if key in row}
            self.step(int(row["epoch"]), epoch_line(row, self.total, left), errors)
        return None if self.callback is None else self.callback(row)


class RefiningProgress(Bar):
    """A bar over the last epochs, on the cross entropy, if `verbose`."""

    def __init__(self, verbose: int, epochs: int):
        super().__init__(epochs, shown=verbose > 0, every_line=verbose > 1, write=_screen.get())

    def epoch(self, row: dict[str, float]) -> None:
        errors = {name: row[key] for key, name in ENTROPY_CURVES.items() if key in row}
        held = f"  valid {errors['valid']:.4f}" if "valid" in errors else ""
        text = f"refining {row['epoch']:.0f}/{self.total}  cross entropy {errors['train']:.4f}{held}"
        self.step(int(row["epoch"]), text, errors)


def show_if_verbose(verbose: int, text: str) -> None:
    """Show a line of text, if `verbose`, or pass it on to where `shown_by` says."""
    if verbose:
        (_screen.get() or show_line)(text)


@contextmanager
def shown_by(show: Callable[[str], object]) -> Iterator[None]:
    """Pass lines of text on to a function while the context is open, as a worker of a cluster does."""
    token = _screen.set(show)
    try:
        yield
    finally:
        _screen.reset(token)


def epoch_line(row: dict[str, float], epochs: int, left: float) -> str:
    """Return the line of an epoch; left: estimated seconds until the last one is done. Example: "epoch 3/12 error
    0.6566 valid 0.4278 ρ 0.911 |dE/dW| 181 |dE/dW_rec| 42 0:08 left"."""
    parts = [f"epoch {row['epoch']:.0f}/{epochs}", f"error {row['error']:.4g}"]
    if "valid_error" in row:
        parts.append(f"valid {row['valid_error']:.4g}")
    if "spectral_radius" in row:
        parts.append(f"ρ {row['spectral_radius']:.3f}")
    parts += [f"|dE/d{name}| {row['gradient_' + name]:.3g}" for name in ("W", "W_rec") if "gradient_" + name in row]
    parts.append(f"{clock(left)} left")
    return "  ".join(parts)


def clock(seconds: float) -> str:
    """Return a duration as "m:ss" or "h:mm:ss"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def curve(values: Mapping[str, Sequence[float]], steps: int) -> str:
    """Return the curves of one or two kinds of numbers over so many steps, or "" if none has two finite points."""
    finite = {name: [(k, v) for k, v in enumerate(found, 1) if math.isfinite(v)] for name, found in values.items()}
    drawn = {
        name: points for name, points in list(finite.items())[: len(CURVE_COLOURS)] if len(points) >= MIN_CURVE_POINTS
    }
    if not drawn:
        return ""
    every = [v for points in drawn.values() for _, v in points]
    low, high = min(every), max(every)
    spread = (high - low) or abs(high) or 1.0
    last = max(steps, max(points[-1][0] for points in drawn.values()))
    width, height = CURVE_SIZE

    def place(step: int, value: float) -> tuple[float, float]:
        x = LEFT_MARGIN + (width - LEFT_MARGIN - 90.0) * (step - 1) / max(last - 1, 1)
        return x, TOP_MARGIN + (height - TOP_MARGIN - BOTTOM_MARGIN) * (1 - (value - low) / spread)

    parts = []
    for (name, points), colour in zip(drawn.items(), CURVE_COLOURS[-len(drawn) :], strict=True):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in points))
        x, y = place(*points[-1])
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(name, x + 5, y + 4, fill=colour))
    parts += [_text(f"{v:.3g}", LEFT_MARGIN - 6, place(1, v)[1] + 4, anchor="end") for v in dict.fromkeys((low, high))]
    parts += [_text("1", LEFT_MARGIN, height - 4), _text(str(last), place(last, low)[0], height - 4, anchor="end")]
    named = escape(", ".join(f"{name} {points[-1][1]:.4g}" for name, points in drawn.items()))
    return (
        f'<svg role="img" aria-label="{named}" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'style="max-width: 100%; font: 11px sans-serif" fill="currentColor">{"".join(parts)}</svg>'
    )


def _text(text: str, x: float, y: float, *, anchor: str = "start", fill: str = "currentColor") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'
