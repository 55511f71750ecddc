"""Numbers out of pasted text, and the sentences where there are none."""

import math

import pytest

import exported
from echolearn.export import plan_of
from echolearn.export.page.document import PageModel
from reliability.browser import put_page

READ = """([text, options]) => {
    try {
        const table = echolearn.readTable(text, options);
        return {...table, X: Array.from(table.X)};
    } catch (problem) { return problem.message; }
}"""
TWO = {"inputs": 2, "names": ["speed", "heat"], "gaps": False, "truth": True}
PLAIN = {"inputs": 2, "names": ["input 1", "input 2"], "gaps": False, "truth": True}
ONE = {"inputs": 1, "names": ["input 1"], "gaps": False, "truth": True}
X = [1, 2.5, -3, 4e3]


@pytest.fixture(scope="module")
def read(chromium, tmp_path_factory):
    page = chromium.new_page()
    put_page(page, [PageModel("first", plan_of(exported.regressor(5)))], tmp_path_factory.mktemp("page"))
    yield lambda text, options: page.evaluate(READ, [text, options])
    page.close()


@pytest.mark.parametrize(
    ("text", "options", "note"),
    [
        ("1,2.5\n-3,4e3", TWO, ""),
        ("\ufeff1,2.5\r\n-3,4000\r\n\r\n", TWO, ""),
        ("speed,heat\n1,2.5\n-3,4000", TWO, ""),
        ("heat,speed\n2.5,1\n4000,-3", TWO, ""),  # by name
        ('"speed";"heat"\n1;2,5\n-3;4000', TWO, "Commas are taken as decimal points."),
        ("1\t2.5\n-3\t4000", TWO, ""),
        ("1 2.5\n-3  4000", TWO, ""),
        ("1 2,5\n-3 4000", TWO, "Commas are taken as decimal points."),
        ("# a comment\n1,2.5\n-3,4000", TWO, ""),
        ("time,a,b\n0,1,2.5\n1,-3,4000", PLAIN, "The first column (“time”) is left out."),
        ("a,b\n1,2.5\n-3,4000", TWO, "The names of the columns are not those of the model"),
        ("speed,other,more,heat\n1,0,0,2.5\n-3,0,0,4000", TWO, "Not used: “other”, “more”."),
        ("1,2.5,-3,4000", ONE, "One line is taken as one series."),
        ("1\n2.5\n-3\n4000", ONE, ""),
        ("1\n2,5\n-3\n4000", ONE, "Commas are taken as decimal points."),
    ],
)
def test_tables_that_can_be_read(read, text, options, note):
    found = read(text, options)
    assert isinstance(found, dict), found
    assert found["X"] == X
    assert found["truth"] is None
    assert note in " ".join(found["notes"])
    assert bool(note) == bool(found["notes"])


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("1,2.5,a\n-3,4000,b", ["a", "b"]),
        ("speed,class,heat\n1,7,2.5\n-3,8,4000", ["7", "8"]),
        ('speed,heat,label\n1,2.5,"a, b"\n-3,4000,c', ["a, b", "c"]),
    ],
)
def test_one_more_column_holds_the_truth(read, text, truth):
    found = read(text, TWO)
    assert found["X"] == X
    assert found["truth"] == truth
    assert "taken as the true answers" in " ".join(found["notes"])


CLASSES = {**TWO, "truth": ["up", "down"]}


@pytest.mark.parametrize(
    ("text", "truth", "note"),
    [
        ("1,2.5,up\n-3,4000,down", ["up", "down"], "The last column is taken as the true answers."),
        ("1,2.5,up\n-3,4000,left", None, "The last column is not used: not all of its entries are classes"),
        ("run,speed,heat,label\na,1,2.5,up\na,-3,4000,", ["up", ""], "the true answers. Not used: “run”."),
        ("run,speed,heat\na,1,2.5\na,-3,4000", None, "Not used: “run”."),
        ("one,speed,heat,two\nup,1,2.5,up\nup,-3,4000,up", None, "Not used: “one”, “two”."),
    ],
)  # fmt: skip
def test_a_column_of_classes_holds_the_truth(read, text, truth, note):
    found = read(text, CLASSES)
    assert found["X"] == X
    assert found["truth"] == truth
    assert note in " ".join(found["notes"])


def test_gaps_of_a_model_that_takes_them(read):
    found = read("1,\nNA,4", {**TWO, "gaps": True})
    assert found["X"][0] == 1
    assert math.isnan(found["X"][1])
    assert math.isnan(found["X"][2])
    assert found["notes"] == ["2 gaps filled as the model does it."]


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("", TWO, "There is nothing here yet."),
        ("  \n\n", TWO, "There is nothing here yet."),
        ("a,b", TWO, "only one line, and it holds names"),
        ("1\n2", TWO, "The text has 1 column; this model takes 2: speed, heat. Put one step on each line"),
        ("1,2,3,4\n1,2,3,4", TWO, "The text has 4 columns; this model takes 2"),
        ("1,2,3,4\n1,2,3,4", PLAIN, "takes 2. Put one step on each line, one column for each input."),
        ("speed,heat\n1,warm\n2,3", TWO, "Line 2, column 2 (heat) says “warm”, which is not a number."),
        ("1,2\n3,\n", TWO, 'Line 2, column 2 (heat) is empty, and this model does not take gaps: it was fitted with missing="error"'),  # noqa: E501
        ("1,2\n3,nan\n", TWO, "is empty, and this model does not take gaps"),
        ("1,2\n3\n", TWO, "Line 2 has 1 column; the lines before it have 2."),
        ("a,b\n1,2,3\n", TWO, "Line 2 has 3 columns; the first line has 2."),
        ("PK\x00\x01", TWO, "This is not a text file. Save the table as CSV first."),
        ("1,2\n0x1F,2", TWO, "says “0x1F”, which is not a number"),
        ("1,2\nInfinity,2", TWO, "says “Infinity”, which is not a number"),
        ("1,2\n" + "z" * 99 + ",2", TWO, "says “" + "z" * 30 + "…”"),
    ],
)  # fmt: skip
def test_typical_mistakes_get_a_sentence(read, text, options, sentence):
    found = read(text, options)
    assert isinstance(found, str), found
    assert sentence in found


def test_very_long_tables_are_cut(read):
    found = read("1,2\n" * 20_100, TWO)
    assert found["steps"] == 20_000
    assert found["notes"] == ["Only the first 20,000 of 20,100 steps are shown."]
