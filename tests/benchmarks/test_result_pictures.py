"""The pictures of results show what the result files have."""

import io
import re

import pytest

pytest.importorskip("matplotlib")
import result_pictures
from table_text import ROOT


def texts(svg):
    """Return the texts of a drawing by matplotlib, which names them beside their outlines."""
    return re.findall("<!-- (.*?) -->", svg)


@pytest.mark.parametrize("drawn", result_pictures.PICTURES, ids=lambda drawn: drawn.__name__)
def test_pictures_have_the_figures_of_the_result_files(drawn):
    content = io.StringIO()
    drawn().savefig(content, format="svg", metadata={"Date": None})
    stored = (ROOT / "docs" / "images" / f"{drawn.__name__}.svg").read_text(encoding="utf-8")
    assert texts(stored) == texts(content.getvalue()), "run `make tables`"
