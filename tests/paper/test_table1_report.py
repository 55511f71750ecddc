"""Tests of Table 1 as Markdown, CSV, JSON and plain text."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

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


def test_ensembles_have_a_gain_of_their_own_where_they_are_shown() -> None:
    pairs = table()
    assert report.error_head(pairs)[-2:] == ["gain, m=3", "gain, ours"]
    pairs["rows"][0]["columns"] |= {"esn_ours_ensemble": entry(0.5), "ours_ensemble": entry(0.2)}
    pairs["rows"][0]["relative_gain_ours_ensemble"] = 0.6
    assert report.error_head(pairs)[-3:] == ["gain, m=3", "gain, ours", "gain, ensemble"]
    assert report.error_rows(pairs)[0][-5:] == ["50.0", "20.0", "25.0", "25.0", "60.0"]


def test_the_page_has_the_errors_the_gains_and_the_paper() -> None:
    page = table_page(table(), [])
    assert ">60.0</td>" in page
    assert "<td class=gain>−25.0 %</td>" in page
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
