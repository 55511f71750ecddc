"""Tests of the report of Table 1; tests/experiments/test_figures.py has those of a page with its figures."""

from __future__ import annotations

import re

from echolearn.reporting.table_page import table_page
from sampletable import table


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
