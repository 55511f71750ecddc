"""Columns of tables that are no numbers: refused by what they hold, whatever their names are."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.layouts import PolarsFrame
from echolearn import ESNClassifier, ESNForecaster, ESNRegressor
from echolearn.sequences.validation import open_sequences

SMALL = {"hidden_units": 5, "connections": 2, "learn": "none"}
DAYS = pd.date_range("2020-01-01", periods=60)
VALUES = np.sin(np.arange(60.0))


@pytest.mark.parametrize("days", [DAYS, DAYS.tz_localize("UTC"), list(DAYS.date), DAYS.to_period("D")])
def test_dates_are_refused_by_their_type(days):
    table = pd.DataFrame({"a": VALUES, "when": days})
    with pytest.raises(ValueError, match=r"'when' of X holds dates.*X\.set_index\('when'\)"):
        ESNRegressor(**SMALL).fit(table, VALUES)
    with pytest.raises(ValueError, match=r"series: the column 'when' of X holds dates.*X\.set_index\('when'\)"):
        ESNForecaster(**SMALL).fit(table)
    assert open_sequences(table.set_index("when")).X[0].shape == (60, 1)


def test_the_first_date_may_be_missing():
    table = pd.DataFrame({"a": VALUES, "when": [None, *DAYS.date[1:]]})
    with pytest.raises(ValueError, match="'when' of X holds dates"):
        open_sequences(table)


def test_dates_of_a_panel_become_a_level_of_its_index():
    table = pd.DataFrame({"a": VALUES, "when": DAYS}, index=pd.MultiIndex.from_product([range(6), range(10)]))
    with pytest.raises(ValueError, match=r"X\.set_index\('when', append=True\)"):
        open_sequences(table)


def test_durations_are_refused():
    with pytest.raises(ValueError, match=r"'wait' of X holds durations.*total_seconds"):
        open_sequences(pd.DataFrame({"a": VALUES, "wait": DAYS - DAYS[0]}))


def test_text_that_names_sequences_becomes_a_level_of_the_index():
    table = pd.DataFrame({"cycle": np.repeat(["C0000", "C0001", "C0002"], 20), "time": [*range(20)] * 3, "a": VALUES})
    with pytest.raises(ValueError, match=r"'cycle' of X holds text, 'C0000'.*X\.set_index\(\['cycle', 'time'\]\)"):
        ESNClassifier(**SMALL).fit(table, np.arange(60) % 2)
    with pytest.raises(ValueError, match=r"X\.groupby\('cycle'\)\.cumcount\(\)"):
        open_sequences(table.drop(columns="time"))
    dated = table.drop(columns="time").assign(when=np.tile(DAYS[:20], 3))
    with pytest.raises(ValueError, match=r"X\.set_index\(\['cycle', 'when'\]\)"):
        open_sequences(dated)
    assert len(open_sequences(dated.set_index(["cycle", "when"])).X) == 3


@pytest.mark.parametrize("dtype", ["str", "category", "string", "object"])
def test_other_text_is_dropped_or_encoded(dtype):
    table = pd.DataFrame({"a": VALUES, "mode": pd.Series(["on", "off"] * 30, dtype=dtype)})
    with pytest.raises(ValueError, match=r"'mode' of X holds text such as 'on'.*drop\(columns='mode'\), or encode it"):
        open_sequences(table)


def test_dates_that_were_not_parsed():
    table = pd.DataFrame({"a": VALUES, "when": [str(day.date()) for day in DAYS]})
    with pytest.raises(ValueError, match=r"such as '2020-01-01'.*pandas\.to_datetime\(X\['when'\]\)"):
        open_sequences(table)


def test_a_table_without_index():
    with pytest.raises(ValueError, match=r"'mode' of X holds text"):
        open_sequences(PolarsFrame({"a": [1.0, 2.0, 3.0], "mode": ["on", "off", "on"]}))


def test_numbers_of_any_type_are_features():
    table = pd.DataFrame(
        {
            "text": [str(v) for v in VALUES],
            "gaps": pd.array([None, *range(59)], dtype="Int64"),
            "category": pd.Categorical(np.arange(60) % 3),
            "truth": np.arange(60) % 2 == 0,
        }
    )
    given = open_sequences(table, gaps=True)
    np.testing.assert_array_equal(given.X[0][:, 0], VALUES)
    assert np.isnan(given.X[0][0, 1])
