"""One bar for counted work, wherever it is seen: a live bar with a curve in a notebook, one line that is rewritten on a
terminal, and plain lines now and then in a log."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from html import escape
from types import TracebackType
from typing import Self

from echolearn.display.curve import curve
from echolearn.display.screen import STYLE, Area, in_notebook, on_terminal, tell

INTERVAL = 5.0  # seconds between two lines in a log
REFRESH = 0.1  # seconds between two pictures of a notebook's bar
WIDTH = 20  # characters of a terminal's bar


class Bar:
    """A context in which every step of counted work is shown.

    Parameters
    ----------
    total : int
        How many steps there will be, unless the work ends early.
    shown : bool, default=True
        Whether anything is shown.
    every_line : bool, default=False
        Whether every step is a line of its own, on a terminal and in a log.
    write : callable, default=None
        A function that takes the lines, instead of the screen.
    """

    def __init__(
        self,
        total: int,
        *,
        shown: bool = True,
        every_line: bool = False,
        write: Callable[[str], object] | None = None,
    ) -> None:
        self.total, self.shown, self.every_line = total, shown, every_line
        self.write = tell if write is None else write
        self.area = Area() if shown and write is None and in_notebook() else None
        self.in_place = shown and write is None and not every_line and on_terminal()
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
        now, gap = time.perf_counter(), INTERVAL if self.area is None else REFRESH
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
        halves = math.floor(2 * WIDTH * min(self.done / max(self.total, 1), 1))
        return ("━" * (halves // 2) + "╸" * (halves % 2)).ljust(WIDTH)

    def _html(self, ended: bool) -> str:
        bar = (
            f'<progress value="{self.done}" max="{self.total}" style="width: 14em; vertical-align: middle"></progress> '
        )
        drawing = curve(self.values, self.total)
        return f'<div style="{STYLE}">{"" if ended else bar}{escape(self.text)}</div>{drawing}'
