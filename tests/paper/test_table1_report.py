"""Tests of Table 1 as Markdown, CSV, JSON and plain text."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from echolearn.paper import table1_report as report
from echolearn.paper.table1_report import table_page
from sampletable import entry, table


def test_markdown_has_our_errors_and_those_of_the_paper_marked_as_timit() -> None:
    text = report.markdown(table())
    assert "| 100 | 60.0 | 45.0 | 40.0 | 30.0 | 25.0 | 25.0 |" in text
    assert "| 100 | 75.5 | 66.7 | 64.0 | 63.2 | 16.3 |" in text
    assert "on TIMIT" in text
    assert "synthetic speech" in text
    assert "Not all cells" not in text
    assert "Not all cells" in report.markdown(table(complete=False))


@pytest.mark.parametrize("form", [report.markdown, report.plain_text])
def test_only_the_table_of_the_synthetic_corpus_is_called_synthetic(form) -> None:
    assert "synthetic" in form(table())
    assert "synthetic" not in form(table(synthetic=False, corpus="timit:/x"))


def test_only_the_standard_parts_of_timit_are_compared_directly_with_the_paper() -> None:
    timit = {"synthetic": False, "corpus": "timit:/x", "speakers": 462 + 50 + 24}
    assert report.paper_note(table(**timit)) == "the same parts"
    assert "errors of states" in report.paper_note(table(**timit, level="phone39"))
    for other in ({"speakers": 16}, {"corpus": "wav:/x"}):
        assert report.paper_note(table(**{**timit, **other})).startswith("another corpus")


def test_deviations_and_settings_as_in_the_paper_are_shown() -> None:
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
    assert "30,000" in text  # the paper has no row of 7 units: all its rows are shown


def test_csv_can_be_read_back() -> None:
    rows = list(csv.DictReader(io.StringIO(report.comma_separated(table()))))
    assert [row["column"] for row in rows] == ["esn", "W_Wrec_m3", "esn_ours", "ours"]
    assert float(rows[0]["test_error"]) == 0.6
    assert float(rows[0]["timit_paper_test_error"]) == 0.755
    assert rows[3]["timit_paper_test_error"] == ""


def test_the_files_are_complete_and_leave_nothing_temporary_behind(tmp_path: Path) -> None:
    report.write_tables(tmp_path, table())
    assert json.loads((tmp_path / "table1.json").read_text()) == json.loads(json.dumps(table()))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["table1.csv", "table1.json", "table1.md"]


def test_the_headline_states_the_gains() -> None:
    assert report.headline(table()) == (
        "With 100 hidden units, learning W and W_rec takes the state error from 60.0 % to 45.0 %, 25.0 % relative; "
        "our defaults reach 30.0 %, 25.0 % below the same network with fixed weights."
    )
    assert report.headline(table(rows=[])) == ""


def test_the_headline_states_a_loss_as_a_loss() -> None:
    worse = table()
    worse["rows"][0]["relative_gain_ours"] = -0.1
    assert report.headline(worse).endswith("10.0 % above the same network with fixed weights.")


def deep_table() -> dict[str, Any]:
    """Return a table with deep networks, of which one row has cells of an earlier version, without weights."""
    found = table(settings={**table()["settings"], "deep": {}})
    (row,) = found["rows"]
    row["columns"] |= {"esn_deep": entry(0.5, weights=34_500.0), "deep": entry(0.2, weights=34_500.0)}
    row["columns"]["ours"]["weights"] = 46_000.0
    row["relative_gain_deep"] = 0.6
    found["rows"].append({**row, "units": 500, "columns": {"deep": entry(0.1)}, "relative_gain": None})
    return found


def test_deep_networks_have_a_column_a_gain_and_a_sentence_on_their_size() -> None:
    deep = deep_table()
    assert report.error_head(deep)[-5:] == ["fixed, deep", "learned, deep", "gain, m=3", "gain, ours", "gain, deep"]
    assert report.error_rows(deep)[0][-5:] == ["50.0", "20.0", "25.0", "25.0", "60.0"]
    assert report.headline(deep).endswith("the same network with fixed weights; deep networks reach 20.0 %.")
    size = (
        " Deep networks have about as many weights as one layer of the row's units; in the row of 100 units: 6 layers "
        "of 44 (34,500 weights against 46,000 weights); of 500 units: 6 layers of 96."
    )
    assert report.deep_summary(deep) == size
    assert size in report.markdown(deep)
    assert size in report.plain_text(deep)
    assert size.replace("'", "&#x27;") in table_page(deep, [])
    assert report.deep_summary(table()) == ""
    lines = list(csv.DictReader(io.StringIO(report.comma_separated(deep))))
    assert [line["weights"] for line in lines if line["column"] == "deep"] == ["34500.0", ""]


def test_on_a_narrow_screen_every_cell_carries_the_name_of_its_column() -> None:
    """There the table is folded: its head is hidden, and each cell is a line with its name."""
    page = table_page(deep_table(), [])
    first = page[page.index("<table class='main fold'>") : page.index("</table>")]
    cells = re.findall(r"<td[^>]*>", first)
    assert all("data-label=" in cell for cell in cells)
    labels = [re.search("data-label='([^']*)'", cell)[1] for cell in cells]  # type: ignore[index]
    assert labels == 2 * ["hidden units", *report.error_head(deep_table())[1:]]
    assert ".fold td::before { content: attr(data-label)" in page


def test_ensembles_have_a_gain_of_their_own_where_they_are_shown() -> None:
    pairs = table()
    assert "gain, ensemble" not in report.error_head(pairs)
    assert report.error_head(pairs)[-2:] == ["gain, m=3", "gain, ours"]
    pairs["rows"][0]["columns"] |= {"esn_ours_ensemble": entry(0.5), "ours_ensemble": entry(0.2)}
    pairs["rows"][0]["relative_gain_ours_ensemble"] = 0.6
    assert report.error_head(pairs)[-3:] == ["gain, m=3", "gain, ours", "gain, ensemble"]
    assert report.error_rows(pairs)[0][-5:] == ["50.0", "20.0", "25.0", "25.0", "60.0"]


def test_the_page_has_the_errors_the_gains_and_the_paper() -> None:
    page = table_page(table(), [])
    assert ">60.0</td>" in page
    assert "<td class=gain data-label='gain, m=3'>25.0</td>" in page
    assert ">75.5</td>" in page


def test_a_bar_is_as_long_as_its_error() -> None:
    assert re.findall(r"--w:([0-9.]+)", table_page(table(), [])) == ["1.000", "0.750", "0.667", "0.500"]


def test_the_page_escapes_what_it_is_given() -> None:
    page = table_page(table(synthetic=False, corpus="wav:<script>x</script>", notes=["<b>"]), [])
    assert "<script>" not in page
    assert "&lt;b&gt;" in page


def test_only_the_page_of_the_synthetic_corpus_is_called_synthetic() -> None:
    def without_style(page: str) -> str:
        return re.sub("<style>.*</style>", "", page, flags=re.S)

    assert "synthetic" in without_style(table_page(table(), []))
    assert "synthetic" not in without_style(table_page(table(synthetic=False, corpus="timit:/x"), []))


def test_without_figures_the_page_says_how_to_get_them() -> None:
    assert "echolearn[report]" in table_page(table(), [])


@pytest.mark.parametrize("columns", range(1, 14))
@pytest.mark.parametrize("room", [20, 80, 200])
def test_tables_that_are_too_wide_fold(monkeypatch: pytest.MonkeyPatch, columns: int, room: int) -> None:
    monkeypatch.setenv("COLUMNS", str(room))
    rows = [[f"r{k}c{i}" + "x" * (i % 4) for i in range(columns)] for k in range(3)]
    lines = report.aligned(rows[0], rows[1:])
    assert max(map(len, lines)) <= room
    assert all(line.split()[0] == f"r{k % 3}c0" for k, line in enumerate(lines))
    cells = [[c for line in lines[k::3] for c in line.split()[columns > 1 :]] for k in range(3)]
    assert cells == [row[columns > 1 :] for row in rows]
