"""Tables: which rows are the steps of which sequence, in which order, and what is refused."""

import datetime

import numpy as np
import pandas as pd
import pytest

from benchmarks.layouts import IDS, LABELS, ONE, RAGGED, PolarsFrame, dated, long, nested, panel, steps_of
from echolearn import ESNClassifier, ESNForecaster, ESNRegressor, FrameWise, SeriesClassifier
from echolearn.exceptions import InputWarning
from echolearn.sequences.opening import open_sequences
from echolearn.sequences.tables import TIME_NAMES, holds_dates, is_series, is_table, read_table
from echolearn.sequences.targets import open_targets
from toys import grouped

SMALL = {"hidden_units": 5, "connections": 2, "learn": "none", "readout": "ridge"}
PANEL = panel(RAGGED)


def same(given, sequences):
    assert len(given.X) == len(sequences)
    for a, b in zip(given.X, sequences, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_a_table():
    assert is_table(PANEL)
    assert is_table(PolarsFrame({"a": [1.0]}))
    assert is_series(PANEL["a"])
    assert not any(is_table(x) or is_series(x) for x in (np.ones((2, 2)), [[1]], {"a": 1}, None, "a"))


def test_a_panel_with_three_levels_has_sequences_named_by_the_first_two():
    index = pd.MultiIndex.from_tuples([(i // 3, *pair) for pair in PANEL.index for i in [IDS.index(pair[0])]])
    given = open_sequences(PANEL.set_axis(index))
    same(given, RAGGED)
    assert list(given.per_sequence(np.arange(12)).index) == [(i // 3, IDS[i]) for i in range(12)]


def test_answers_to_a_panel_have_its_index():
    esn = SeriesClassifier(5).fit(PANEL, pd.Series(LABELS, IDS))
    assert list(esn.feature_names_in_) == ["a", "b", "c"]
    answer = esn.predict(PANEL)
    assert list(answer.index) == IDS
    proba = esn.predict_proba(PANEL)
    assert proba.shape == (12, 2)
    assert list(proba.index) == IDS
    steps = ESNClassifier(**grouped(SMALL)).fit(PANEL, np.concatenate(steps_of(RAGGED)))
    assert steps.predict(PANEL).index.equals(PANEL.index)
    assert steps.predict_log_proba(PANEL).index.equals(PANEL.index)
    with pytest.raises(ValueError, match="feature names"):
        esn.predict(PANEL.rename(columns={"a": "z"}))


def test_answers_stand_beside_their_rows_in_any_order():
    """A table whose rows are shuffled gets the same answer to every row."""
    table = dated(ONE[0])
    y = pd.Series(ONE[0][:, 0], table.index).shift(1, fill_value=0.0)
    esn = ESNRegressor(5, reservoir={"connections": 2}, learn="none").fit(table, y)
    mixed = table.sample(frac=1.0, random_state=0)
    with pytest.warns(InputWarning, match="not in the order of time; they were sorted"):
        answer = esn.predict(mixed)
    assert answer.index.equals(mixed.index)
    pd.testing.assert_series_equal(answer.sort_index(), esn.predict(table), check_freq=False)
    with pytest.warns(InputWarning, match="sorted"):
        assert esn.score(mixed, y) == esn.score(table, y)
    rows = long(RAGGED)
    classifier = ESNClassifier(**grouped(SMALL)).fit(
        PANEL.rename_axis(["id", "time"]), np.concatenate(steps_of(RAGGED))
    )
    by_row = classifier.predict(rows)
    assert by_row.index.equals(rows.index)
    by_row.index = pd.MultiIndex.from_frame(rows[["id", "time"]])
    expected = classifier.predict(PANEL)
    assert list(by_row.loc[list(expected.index)]) == list(expected)


def test_an_index_of_numbers_that_is_not_in_order_is_said_but_not_sorted():
    table = pd.DataFrame(ONE[0]).iloc[::-1]
    with pytest.warns(InputWarning, match="not in order; its rows were taken as they stand"):
        same(open_sequences(table), [ONE[0][::-1]])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: PANEL.set_axis(pd.MultiIndex.from_product([[None], range(len(PANEL))])),
            "lacks the name of a sequence",
        ),
        (lambda: dated(ONE[0], pd.DatetimeIndex([pd.NaT, *pd.date_range("2024", periods=199)])), "rows without a time"),
        (lambda: dated(ONE[0], pd.DatetimeIndex(["2024-01-01"] * 200)), "two rows for one time"),
        (lambda: pd.DataFrame({"dim_id": [0], "value": [1.0], "case_id": [0], "reading_id": [0]}), r"X.pivot\(index="),
        (lambda: pd.DataFrame({"a": [pd.Series([1.0, 2.0])], "b": [pd.Series([1.0])]}), "row 0 of X holds series"),
        (lambda: [PANEL, PANEL], r"X\[0\] is a table whose index or columns name sequences"),
        (lambda: pd.DataFrame({"a": ["x", "y"]}), "holds text such as 'x'"),
        (lambda: pd.DataFrame({"a": [np.str_("x"), np.str_("y")]}, dtype=object), "holds text such as 'x'"),
        (lambda: pd.DataFrame({"a": [1.0, None]}), "NaN"),
        (lambda: pd.DataFrame(), "not an array of shape|0 sample"),
    ],
)
def test_tables_that_are_refused(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        open_sequences(make())


def test_numbers_of_every_kind_of_column_are_read():
    table = pd.DataFrame({"a": [1, 2, 3], "b": [True, False, True], "c": pd.array([1.5, 2.5, 3.5], dtype="Float64")})
    same(open_sequences(table), [np.array([[1, 1, 1.5], [2, 0, 2.5], [3, 1, 3.5]])])


def test_business_days_and_months_are_even():
    for freq in ("B", "MS", "h", "QS"):
        assert read_table(dated(ONE[0], pd.date_range("2024", periods=200, freq=freq))).irregular == ""
    assert (
        "evenly"
        in read_table(
            dated(
                ONE[0],
                pd.date_range("2024", periods=400, freq="h")[::2][[*range(199), 199]]
                + pd.to_timedelta([0] * 100 + [99] * 100, "D"),
            )
        ).irregular
    )


def test_nested_cells_may_be_arrays():
    table = nested(RAGGED).map(lambda cell: cell.to_numpy())
    same(open_sequences(table), RAGGED)
    given = open_sequences(nested(RAGGED)["dim_0"])
    same(given, [x[:, :1] for x in RAGGED])
    again = given.in_given_form(given.X)
    same(open_sequences(again), given.X)


def test_frame_wise_transformers_keep_panels_and_dictionaries():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(FrameWise(StandardScaler()), SeriesClassifier(5))
    plain = model.fit(RAGGED, LABELS).predict(RAGGED)
    by_id = model.fit(PANEL, pd.Series(LABELS, IDS)).predict(PANEL)
    assert list(by_id.index) == IDS
    np.testing.assert_array_equal(by_id, plain)
    keyed = dict(zip(IDS, RAGGED, strict=True))
    assert model.fit(keyed, dict(zip(IDS, LABELS, strict=True))).predict(keyed) == dict(zip(IDS, plain, strict=True))


def test_targets_of_other_sequences_are_refused():
    given = open_sequences(PANEL)
    with pytest.raises(ValueError, match="index of y is not that of the sequences of X"):
        open_targets(pd.Series(LABELS, [f"no {i}" for i in range(12)]), given)
    with pytest.raises(ValueError, match="other keys than X"):
        open_targets(dict.fromkeys(IDS[1:], "a"), given)
    with pytest.raises(ValueError, match="y has 5 entries, but X has 12 sequences"):
        open_targets(LABELS[:5], given)
    entries, per_step = open_targets(dict(zip(IDS[::-1], LABELS[::-1], strict=True)), given)
    assert (list(entries), per_step) == (LABELS, False)


def test_names_of_time_are_in_plain_form():
    assert all(name == name.lower() and " " not in name for name in TIME_NAMES)


def test_weights_come_in_the_form_of_the_targets():
    weights = pd.Series(np.arange(1.0, 13.0), IDS)
    by_id = SeriesClassifier(5).fit(PANEL, pd.Series(LABELS, IDS), sample_weight=weights.iloc[::-1])
    plain = SeriesClassifier(5).fit(RAGGED, LABELS, sample_weight=np.arange(1.0, 13.0))
    np.testing.assert_array_equal(by_id.readout_weights_, plain.readout_weights_)


def test_a_warm_up_of_other_sequences_is_refused():
    keyed = dict(zip(IDS, RAGGED, strict=True))
    esn = ESNClassifier(**grouped(SMALL)).fit(keyed, dict(zip(IDS, steps_of(RAGGED), strict=True)))
    answer = esn.predict({i: x[5:] for i, x in keyed.items()}, warm_up={i: x[:5] for i, x in keyed.items()})
    np.testing.assert_array_equal(answer[IDS[3]], esn.predict(keyed)[IDS[3]][5:])
    with pytest.raises(ValueError, match="warm_up names other sequences than X"):
        esn.predict(keyed, warm_up={i: keyed[i][:5] for i in IDS[::-1]})


def test_one_date_is_a_date():
    """A table of a single row is read by its first and only date."""
    table = pd.DataFrame({"date": [datetime.date(2024, 1, 1)], "value": [1.0]}, dtype=object)
    with pytest.raises(ValueError, match="holds dates"):
        read_table(table)


def test_groups_that_still_have_the_names_of_sequences():
    table = pd.DataFrame({"id": [1, 1, 1, 2, 2, 2], "a": np.arange(6.0)})
    groups = [group for _, group in table.groupby("id")]
    with pytest.raises(ValueError, match=r"X\[0\] has a column 'id'.*\[x.drop\(columns='id'\) for x in X\]"):
        open_sequences(groups)
    with pytest.raises(ValueError, match=r"X\[0\] has a column 'id'"):
        open_sequences([group.assign(time=range(3)) for group in groups])


def test_targets_in_a_table_with_other_columns():
    given = open_sequences([np.ones((9, 1)), np.ones((8, 1))])
    labels = pd.DataFrame({"id": [7, 8], "label": ["a", "b"]})
    with pytest.raises(ValueError, match=r"y is a table with the column 'id', which names.*y\['label'\], in the order"):
        open_targets(labels, given)
    assert open_targets(labels["label"], given)[0] == ["a", "b"]
    with pytest.raises(
        ValueError, match=r"columns \['machine', 'label'\]; if one of them is the target, pass y\['label'"
    ):
        open_targets(labels.rename(columns={"id": "machine"}), given)


# ---------------- Columns of tables that are no numbers


SMALL_feature_columns = {"hidden_units": 5, "connections": 2, "learn": "none"}
DAYS = pd.date_range("2020-01-01", periods=60)
VALUES = np.sin(np.arange(60.0))


@pytest.mark.parametrize("days", [DAYS, DAYS.tz_localize("UTC"), list(DAYS.date), DAYS.to_period("D")])
def test_dates_are_refused_by_their_type(days):
    table = pd.DataFrame({"a": VALUES, "when": days})
    with pytest.raises(ValueError, match=r"'when' of X holds dates.*X\.set_index\('when'\)"):
        ESNRegressor(**grouped(SMALL_feature_columns)).fit(table, VALUES)
    with pytest.raises(ValueError, match=r"series: the column 'when' of X holds dates.*X\.set_index\('when'\)"):
        ESNForecaster(**grouped(SMALL_feature_columns)).fit(table)
    assert open_sequences(table.set_index("when")).X[0].shape == (60, 1)


def test_the_first_date_may_be_missing():
    table = pd.DataFrame({"a": VALUES, "when": [None, *DAYS.date[1:]]})
    with pytest.raises(ValueError, match="'when' of X holds dates"):
        open_sequences(table)


def test_series_inside_of_cells_are_no_dates():
    cells = np.empty(2, dtype=object)
    cells[:] = [np.nan, pd.Series(VALUES)]
    assert not holds_dates(cells)


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
        ESNClassifier(**grouped(SMALL_feature_columns)).fit(table, np.arange(60) % 2)
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


def test_a_long_table_with_columns_of_its_own_names_is_told_how_to_be_passed():
    table = pd.DataFrame(
        {"ax": np.arange(240.0) % 7, "gesture": np.repeat(np.arange(12), 20), "n": np.arange(240) % 20}
    )
    y = np.arange(12) % 2
    with pytest.raises(
        ValueError, match=r"Column 1 has 12 different.*pass X\.set_index\(\[X\.columns\[1\], COLUMN_OF_TIME"
    ):
        SeriesClassifier(5).fit(table, y)
    SeriesClassifier(5).fit(table.set_index(["gesture", "n"]), y)
    with pytest.raises(ValueError, match=r"y has 11 entries.*X\.set_index\(\[COLUMN_OF_NAMES, COLUMN_OF_TIME"):
        SeriesClassifier(5).fit(table, y[:11])
    with pytest.raises(ValueError, match=r"per step \(240\)\.$"):
        SeriesClassifier(5).fit(table.to_numpy(), y)
