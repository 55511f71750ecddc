"""Progress on the screen while a network learns: one line per epoch, on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Self

_screen: ContextVar[Callable[[str], object] | None] = ContextVar("echolearn-screen", default=None)  # None: stderr


class Progress:
    """A context in which each epoch prints a line, if `verbose`, and its row of history is passed on to a callback.

    With verbose=1, a terminal shows one line that is rewritten; with verbose=2, or in a file, there is one per epoch.
    """

    def __init__(self, verbose: int, epochs: int, callback: Callable[[dict[str, float]], object] | None):
        self.verbose, self.epochs, self.callback = verbose, epochs, callback
        self.started = time.perf_counter()
        self.in_place = verbose == 1 and _screen.get() is None and sys.stderr.isatty()

    def epoch(self, row: dict[str, float]) -> object:
        """Print the line of an epoch; return what the callback returns."""
        if self.verbose:
            left = (time.perf_counter() - self.started) / row["epoch"] * (self.epochs - row["epoch"])
            text = line(row, self.epochs, left)
            if self.in_place:
                print(f"\r\x1b[2K{text}", end="", file=sys.stderr, flush=True)
            else:
                say(self.verbose, text)
        return None if self.callback is None else self.callback(row)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.in_place:
            print(file=sys.stderr)


def say(verbose: int, text: str) -> None:
    """Print a line of text to stderr, if `verbose`, or pass it on to where `shown_by` says."""
    show = _screen.get()
    if verbose and show is None:
        print(text, file=sys.stderr, flush=True)
    elif verbose and show is not None:
        show(text)


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
