from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from echolearn.experiments import figures as portraits
from echolearn.experiments import table1
from echolearn.experiments.table1 import PAPER_TIMIT, Plan
from echolearn.reporting import figures as plots
from echolearn.reporting import table as report
from echolearn.speech.corpus import open_corpus
from smallcorpus import write


def entry(error: float, **more: Any) -> dict[str, Any]:
    return {
        "test_error": error,
        "valid_error": error - 0.01,
        "seconds": 12.5,
        "frames_per_second": 1e5,
        "peak_memory_mb": 321.0,
        "spectral_radius": 3.9,
        "epochs": 20,
        "seeds": [0],
        **more,
    }


def table(**changes: Any) -> dict[str, Any]:
    columns = {"esn": entry(0.6), "W_Wrec_m3": entry(0.45), "esn_ours": entry(0.4), "ours": entry(0.3)}
    return {
        "corpus": "synthetic",
        "synthetic": True,
        "frames": {"train": 40_000, "valid": 6_000, "test": 6_100},
        "states": 156,
        "speakers": 30,
        "rows": [{"units": 100, "columns": columns, **table1.gains(columns)}],
        "paper_timit": PAPER_TIMIT,
        "settings": {"seeds": 1, "targets": "all", "gradient": "exact"},
        "notes": ["a note"],
        "complete": True,
        "echolearn": "0.1.0",
        **changes,
    }


def test_markdown_has_our_errors_and_the_papers_marked_as_timits() -> None:
    text = report.markdown(table())
    assert "| 100 | 60.0 | 45.0 | 40.0 | 30.0 | 25.0 | 25.0 |" in text
    assert "| 100 | 75.5 | 66.7 | 64.0 | 63.2 | 16.3 |" in text
    assert "on TIMIT" in text
    assert "synthetic speech" in text
    assert "Not all cells" not in text
    assert "Not all cells" in report.markdown(table(complete=False))


def test_the_table_of_another_corpus_is_not_called_synthetic() -> None:
    other = table(synthetic=False, corpus="timit:/x")
    for text in (report.markdown(other), report.plain(other), report.page(other, [])):
        assert "synthetic" not in re.sub("<style>.*</style>", "", text, flags=re.S)


def test_everything_for_people_calls_the_synthetic_corpus_synthetic() -> None:
    for text in (report.markdown(table()), report.plain(table()), report.page(table(), [])):
        assert "synthetic" in text


def test_deviations_and_literal_settings_are_shown() -> None:
    columns = {"esn": entry(0.6, test_error_deviation=0.0123, seeds=[0, 1])}
    several = table(
        rows=[{"units": 7, "columns": columns, "relative_gain": None, "relative_gain_ours": None}],
        settings={"seeds": 2, "targets": "last", "gradient": "printed"},
    )
    text = report.markdown(several)
    assert "60.0 ± 1.2" in text
    assert "2 seeds" in text
    assert "last frame of each block" in text
    assert "as printed" in text
    assert "30,000" in text  # the paper has no 7 units: all its rows are shown


def test_csv_can_be_read_back() -> None:
    rows = list(csv.DictReader(io.StringIO(report.comma_separated(table()))))
    assert [row["column"] for row in rows] == ["esn", "W_Wrec_m3", "esn_ours", "ours"]
    assert float(rows[0]["test_error"]) == 0.6
    assert float(rows[0]["timit_paper_test_error"]) == 0.755
    assert rows[3]["timit_paper_test_error"] == ""


def test_files_are_written_whole(tmp_path: Path) -> None:
    report.write_tables(tmp_path, table())
    assert json.loads((tmp_path / "table1.json").read_text()) == json.loads(json.dumps(table()))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["table1.csv", "table1.json", "table1.md"]


def test_the_headline_states_the_gains() -> None:
    assert report.headline(table()) == (
        "With 100 hidden units, learning W and W_rec takes the state error from 60.0 % to 45.0 %, 25.0 % relative; "
        "our defaults reach 30.0 %, 25.0 % below the same network unlearned."
    )
    assert report.headline(table(rows=[])) == ""


class Links(HTMLParser):
    """Everything a page would load or link to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.found += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href", "srcset", "action")]


def links(page: str) -> Links:
    parser = Links()
    parser.feed(page)
    return parser


@pytest.fixture(scope="module")
def real_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    corpus = open_corpus(f"features:{write(folder / 'small.npz')}")

    class Quiet:
        def __getattr__(self, name: str) -> Any:
            return lambda *_: None

    plan = Plan(units=(8,), epochs=2, ours={"epochs": 2}, columns=("esn", "W_Wrec_m3", "esn_ours", "ours"))
    table1.run(corpus, plan, folder / "out", Quiet())
    return (folder / "out" / "report.html").read_text()


def test_the_page_is_self_contained(real_page: str) -> None:
    parsed = links(real_page)
    assert all(link.startswith(("data:", "#")) for link in parsed.found)
    assert not {"script", "link", "iframe", "object"} & set(parsed.tags)
    assert parsed.tags.count("svg") == 5
    assert "@import" not in real_page
    assert "prefers-color-scheme: dark" in real_page


def test_drawings_take_their_colours_from_the_page(real_page: str) -> None:
    assert "var(--ink)" in real_page
    assert not [c for c in plots._VARIABLES if c in real_page]


def test_ids_of_drawings_do_not_collide(real_page: str) -> None:
    ids = re.findall(r' id="([^"]+)"', real_page)
    assert len(ids) == len(set(ids))


def test_the_page_escapes_what_it_is_given() -> None:
    page = report.page(table(synthetic=False, corpus="wav:<script>x</script>", notes=["<b>"]), [])
    assert "<script>" not in page
    assert "&lt;b&gt;" in page


def test_without_pictures_the_page_says_how_to_get_them() -> None:
    assert "echolearn[report]" in report.page(table(), [])


def test_the_same_numbers_give_the_same_picture() -> None:
    curves = [plots.Curve("100", (0.5, 0.4, 0.3, 0.3, 0.3, 0.2, 0.1))]
    assert plots.errors("abcdefg", curves) == plots.errors("abcdefg", curves)


def test_a_tone_is_where_it_belongs_in_the_spectrogram() -> None:
    tone = 1000 * np.sin(2 * np.pi * 2_000 * np.arange(16_000) / 16_000)
    picture = portraits.spectrogram(tone)
    assert picture.shape == (98, 257)
    assert (picture.argmax(axis=1) == 64).all()  # 2 kHz of 8 kHz over 256 steps
