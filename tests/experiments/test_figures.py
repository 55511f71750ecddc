"""Tests of the figures beside Table 1, and of the report with all of them."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from echolearn.experiments import figures, table1
from echolearn.experiments.plan import Plan
from echolearn.reporting.svg import VARIABLES
from echolearn.speech.corpus import Corpus
from sampletable import table


class Links(HTMLParser):
    """Everything a page would load or link to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.found += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href", "srcset", "action")]


@pytest.fixture(scope="module")
def page(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> str:
    class Silent:
        def __getattr__(self, name: str) -> Any:
            return lambda *_: None

    out: Path = tmp_path_factory.mktemp("page")
    plan = Plan(units=(8,), epochs=2, ours={"epochs": 2}, columns=("esn", "W_Wrec_m3", "esn_ours", "ours"))
    table1.run(corpus, plan, out, Silent())
    return (out / "report.html").read_text()


def test_the_page_is_self_contained(page: str) -> None:
    parsed = Links()
    parsed.feed(page)
    assert all(link.startswith(("data:", "#")) for link in parsed.found)
    assert not {"script", "link", "iframe", "object"} & set(parsed.tags)
    assert parsed.tags.count("svg") == 5
    assert "@import" not in page
    assert "prefers-color-scheme: dark" in page


def test_figures_take_their_colours_from_the_page(page: str) -> None:
    assert "var(--ink)" in page
    assert not [c for c in VARIABLES if c in page]


def test_ids_of_figures_do_not_collide(page: str) -> None:
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_without_matplotlib_there_are_no_figures(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "can_draw", lambda: False)
    assert figures.draw_figures(corpus, table(), {}, None) == []  # type: ignore[arg-type]


def test_the_best_cell_is_chosen_on_validation() -> None:
    results: Any = {
        "esn-5-0": {"valid_error": 0.4, "test_error": 0.1},
        "ours-5-0": {"valid_error": 0.3, "test_error": 0.5},
    }
    assert figures.best_cell(results) == "ours-5-0"


def test_a_tone_is_at_its_frequency_in_the_spectrogram() -> None:
    tone = 1000 * np.sin(2 * np.pi * 2_000 * np.arange(16_000) / 16_000)
    picture = figures.spectrogram(tone)
    assert picture.shape == (98, 257)
    assert (picture.argmax(axis=1) == 64).all()  # 2 kHz of 8 kHz over 256 steps
