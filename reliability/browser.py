"""A Chromium without a window for pages of models, or Node, and the answers of models in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

from echolearn.export.page.document import PageModel, build_page
from echolearn.export.page.payload import pack_array, pack_plan
from echolearn.runtime._plan import Plan

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
ANSWERS = """([json, frames, steps]) => {
    const model = echolearn.createModel(json), X = echolearn.unpack(frames).values;
    return Array.from(steps === null ? model.run(X).answers : model.forecast(X, steps));
}"""
STEPS = """([json, frames]) => {
    const model = echolearn.createModel(json), X = echolearn.unpack(frames).values, state = model.start(), out = [];
    for (let t = 0; t < X.length; t += model.inputs) out.push(...model.step(state, X.subarray(t, t + model.inputs)));
    return out;
}"""


def find_chromium() -> str | None:
    """Return the path of a Chromium: $ECHOLEARN_CHROMIUM, or the first one on the path."""
    return os.environ.get("ECHOLEARN_CHROMIUM") or next((p for p in map(shutil.which, NAMES) if p), None)


@contextmanager
def browser(*arguments: str) -> Iterator[Any]:
    """Open a Chromium; with further arguments of its command line."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", *arguments]
        opened = playwright.chromium.launch(executable_path=find_chromium(), args=flags)
        try:
            yield opened
        finally:
            opened.close()


class NodeTab:
    """A page in Node instead of a browser: its scripts run, and elements keep their text but are not drawn."""

    def __init__(self) -> None:
        self._page = ""

    def goto(self, uri: str) -> None:
        """Open the page of a file."""
        self._page = unquote(urlsplit(uri).path)

    def wait_for_selector(self, *args: object, **options: object) -> None:
        """Return at once: the scripts of the page run anew whenever a function is evaluated."""

    def evaluate(self, function: str, argument: object = None) -> Any:
        """Return the value of a function in the page; its argument and its value are JSON."""
        command = ["node", str(Path(__file__).with_name("page_in_node.js")), self._page]
        done = subprocess.run(command, input=json.dumps([function, argument]), capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        return json.loads(done.stdout)


@contextmanager
def page_tab() -> Iterator[Any]:
    """Open a tab of a Chromium, or of Node where there is none."""
    if find_chromium() is None:
        yield NodeTab()
        return
    with browser() as opened:
        yield opened.new_page()


def put_page(tab: Any, models: Sequence[PageModel], folder: Path) -> Path:
    """Write the page of some models, open it in a tab and wait until it has started; return its file."""
    file = folder / "page.html"
    file.write_text(build_page(models), encoding="utf-8")
    tab.goto(file.as_uri())
    tab.wait_for_selector("html[data-ready]", state="attached")
    return file


def in_page(tab: Any, plan: Plan, X: np.ndarray, steps: int | None = None) -> np.ndarray:
    """Return the answers (rows, outputs) of a model to frames X in an open page; steps: of a forecast after X."""
    answers = tab.evaluate(ANSWERS, [{"name": "", **pack_plan(plan)}, pack_array(X), steps])
    return np.array(answers, np.float64).reshape(-1, plan.answer.n_out)


def in_page_steps(tab: Any, plan: Plan, X: np.ndarray) -> np.ndarray:
    """Return the answers (steps, outputs) of a model that gets one frame after another."""
    answers = tab.evaluate(STEPS, [{"name": "", **pack_plan(plan)}, pack_array(X)])
    return np.array(answers, np.float64).reshape(-1, plan.answer.n_out)
