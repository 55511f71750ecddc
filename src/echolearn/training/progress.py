"""Progress while a network learns: a bar over the epochs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from echolearn.display.bar import Bar
from echolearn.display.screen import tell

ERRORS = {"error": "train", "valid_error": "valid"}  # what curves are shown of, and their names
ENTROPIES = {"cross_entropy": "train", "valid_cross_entropy": "valid"}
_screen: ContextVar[Callable[[str], object] | None] = ContextVar("echolearn-screen", default=None)


class Progress(Bar):
    """A bar over epochs, if `verbose`, which passes the row of history of each on to a callback.

    With verbose=1, it is live in a notebook and on a terminal, and in a log there is a line every few seconds; with
    verbose=2 there is a line per epoch. A notebook shows the curve of the validation error too.
    """

    def __init__(self, verbose: int, epochs: int, callback: Callable[[dict[str, float]], object] | None):
        super().__init__(epochs, shown=verbose > 0, every_line=verbose > 1, write=_screen.get())
        self.callback, self.started = callback, time.perf_counter()

    def epoch(self, row: dict[str, float]) -> object:
        """Show an epoch; return what the callback returns."""
        if self.shown:
            left = (time.perf_counter() - self.started) / row["epoch"] * (self.total - row["epoch"])
            errors = {name: row[key] for key, name in ERRORS.items() if key in row}
            self.step(int(row["epoch"]), line(row, self.total, left), errors)
        return None if self.callback is None else self.callback(row)


class RefiningProgress(Bar):
    """A bar over the last epochs, on the cross entropy, if `verbose`."""

    def __init__(self, verbose: int, epochs: int):
        super().__init__(epochs, shown=verbose > 0, every_line=verbose > 1, write=_screen.get())

    def epoch(self, row: dict[str, float]) -> None:
        """Show an epoch."""
        errors = {name: row[key] for key, name in ENTROPIES.items() if key in row}
        held = f"  valid {errors['valid']:.4f}" if "valid" in errors else ""
        text = f"refining {row['epoch']:.0f}/{self.total}  cross entropy {errors['train']:.4f}{held}"
        self.step(int(row["epoch"]), text, errors)


def say(verbose: int, text: str) -> None:
    """Show a line of text, if `verbose`, or pass it on to where `shown_by` says."""
    if verbose:
        (_screen.get() or tell)(text)


@contextmanager
def shown_by(show: Callable[[str], object]) -> Iterator[None]:
    """Pass lines of text on to a function while the context is open, as a worker of a cluster does."""
    token = _screen.set(show)
    try:
        yield
    finally:
        _screen.reset(token)


def line(row: dict[str, float], epochs: int, left: float) -> str:
    """Return the line of an epoch; left: estimated seconds until the last one is done.

    Example: "epoch 3/12  error 0.6566  valid 0.4278  ρ 0.911  |dE/dW| 181  |dE/dW_rec| 42  0:08 left".
    """
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
