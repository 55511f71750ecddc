"""Answers to several sequences are a list; taken for one array, they say what to do."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score

import toys
from benchmarks.layouts import IDS, LABELS, RAGGED, panel, steps_of
from echolearn import DeepESNClassifier, ESNClassifier, ESNRegressor, SeriesClassifier, SeriesRegressor, load
from echolearn.sequences.answers import (
    AnswerList,
    DictForm,
    PaddedForm,
    RowForm,
    TableForm,
    aligned,
    is_pandas,
    labelled,
)
from echolearn.sequences.opening import open_sequences
from toys import grouped

TOY_X, TOY_LABELS = toys.labels()
RAGGED_ANSWERS = AnswerList([np.arange(3), np.arange(4)])
EVEN = AnswerList([np.arange(3), np.arange(3)])


def test_it_is_a_list():
    assert isinstance(ESNClassifier(**grouped(toys.FAST)).fit(TOY_X, TOY_LABELS).predict(TOY_X), list)
    assert RAGGED_ANSWERS[:1] == [RAGGED_ANSWERS[0]]
    assert repr(RAGGED_ANSWERS) == repr(list(RAGGED_ANSWERS))
    for twin in (copy.deepcopy(RAGGED_ANSWERS), pickle.loads(pickle.dumps(RAGGED_ANSWERS))):
        assert [a.tolist() for a in twin] == [[0, 1, 2], [0, 1, 2, 3]]
    np.testing.assert_array_equal(np.concatenate(RAGGED_ANSWERS), [0, 1, 2, 0, 1, 2, 3])


def test_arrays_of_it_are_those_of_a_list():
    np.testing.assert_array_equal(np.array(EVEN), [[0, 1, 2], [0, 1, 2]])
    assert np.asarray(EVEN, np.float32).dtype == np.float32
    assert np.stack(EVEN).shape == (2, 3)
    assert np.array(RAGGED_ANSWERS, dtype=object).shape == (2,)


def test_ragged_answers_lead_to_the_line_that_works():
    esn = ESNClassifier(readout="ridge", **grouped(toys.FAST))
    line = r"scoring=echolearn\.metrics\.scorer\('f1_macro'\)"
    for name in ("f1_macro", "accuracy", "recall_macro"):  # others refuse the true labels before they see answers
        with pytest.raises(TypeError, match=line):
            cross_val_score(esn, TOY_X, TOY_LABELS, cv=KFold(2), scoring=name, error_score="raise")
    with pytest.raises(TypeError, match=line):
        cross_val_predict(esn, TOY_X, TOY_LABELS, cv=KFold(2))
    answers = esn.fit(TOY_X, TOY_LABELS).predict(TOY_X)
    for metric in (accuracy_score, f1_score):
        with pytest.raises(TypeError, match=line):
            metric(TOY_LABELS, answers)


# ---------------- Answers in the form of X, and targets aligned by their index


DAYS = pd.date_range("2024-01-01", periods=4)


def test_targets_of_pandas_are_aligned_by_label():
    y = pd.Series([1, 2, 3, 4], DAYS)
    assert list(aligned(y, DAYS)) == [1, 2, 3, 4]
    assert list(aligned(y.iloc[::-1], DAYS)) == [1, 2, 3, 4]
    assert aligned([4, 3, 2, 1], DAYS) == [4, 3, 2, 1]


def test_a_plain_count_beside_dates_means_the_order():
    count = pd.Series([4, 3, 2, 1])
    assert list(aligned(count, DAYS)) == [4, 3, 2, 1]
    assert list(aligned(pd.Series([4, 3, 2, 1], DAYS), pd.RangeIndex(4))) == [4, 3, 2, 1]


@pytest.mark.parametrize("index", [pd.RangeIndex(1, 5), DAYS + pd.Timedelta("1D"), pd.Index([0, 0, 1, 2])])
def test_other_labels_are_refused(index):
    y = pd.Series([1, 2, 3, 4], index)
    x = pd.RangeIndex(4) if index.dtype.kind == "i" else DAYS
    with pytest.raises(ValueError, match=r"the index of y is not that of X.*y.reindex.*y.to_numpy\(\)"):
        aligned(y, x)


def test_entries_are_series_and_rows_are_frames():
    assert labelled(np.arange(4), DAYS).index.equals(DAYS)
    assert labelled(np.ones((4, 2)), DAYS).shape == (4, 2)
    assert is_pandas(labelled(np.arange(4), DAYS))
    assert not is_pandas(np.arange(4))


def test_a_table_gets_each_answer_at_its_row():
    form = TableForm([np.array([2, 0]), np.array([1, 3])], DAYS, pd.Index(["x", "y"]))
    out = form.per_step([np.array([10, 11]), np.array([20, 21])])
    assert list(out) == [11, 20, 10, 21]
    assert list(form.per_sequence(np.array([1, 2])).index) == ["x", "y"]
    assert [list(t) for t in form.targets(pd.Series(list("abcd"), DAYS))] == [["c", "a"], ["b", "d"]]
    assert list(form.targets(pd.Series(["p", "q"], ["y", "x"]))) == ["q", "p"]


def test_a_word_is_one_label_however_long():
    form = TableForm([np.arange(3)], pd.RangeIndex(3), one=True)
    assert form.targets("low") == "low"


def test_padding_is_masked_in_answers_and_left_out_of_targets():
    form = PaddedForm([4, 4], [2, 4], "stack")
    out = form.per_step([np.array(["a", "b"]), np.array(list("cdef"))])
    assert out.shape == (2, 4)
    assert out.mask.tolist() == [[False, False, True, True], [False] * 4]
    assert out.compressed().tolist() == list("abcdef")
    y = np.array([[1.0, 2.0, np.nan, np.nan], [3.0, 4.0, 5.0, 6.0]])
    assert [t.tolist() for t in form.targets(y)] == [[1.0, 2.0], [3.0, 4.0, 5.0, 6.0]]
    assert form.targets(["a", "b"]) == ["a", "b"]
    np.testing.assert_array_equal(form.targets(np.array(["a", "b"])), ["a", "b"])


def test_a_dictionary_is_read_by_key():
    form = DictForm(["x", "y"])
    assert form.targets({"y": 2, "x": 1}) == [1, 2]
    assert list(form.targets(pd.Series([2, 1], ["y", "x"]))) == [1, 2]
    assert form.per_sequence(np.array([5, 6])) == {"x": 5, "y": 6}
    with pytest.raises(ValueError, match=r"other keys than X\. 'z': in y but not in X\. 'y': in X but not in y\."):
        form.targets({"x": 1, "z": 2})


def test_ids_without_a_sequence_are_listed():
    names = list("abcdefghij")
    index = pd.MultiIndex.from_product([names[:3], range(4)])
    forms = [
        open_sequences(dict.fromkeys(names[:3], np.zeros((4, 2)))).form,
        open_sequences(pd.DataFrame(np.zeros((12, 2)), index)).form,
        RowForm(pd.Index(names[:3])),
    ]
    for form in forms:
        with pytest.raises(ValueError, match=r"10 entries, but X has 3 sequences. 'd', .*'h' and 2 more: in y but"):
            form.targets(pd.Series(range(10), names))
        with pytest.raises(ValueError, match=r"X has 3 sequences. 'c': in the sequences of X but not in y"):
            form.targets(pd.Series(range(2), names[:2]))
        np.testing.assert_array_equal(form.targets(pd.Series([1, 2, 3], names[:3])), [1, 2, 3])
    with pytest.raises(ValueError, match=r"index of y is not that of .*'d': in y but not"):
        forms[1].targets(pd.Series(range(3), ["a", "b", "d"]))


# ---------------- Answers to tables have the names of the targets, probabilities those of the classes


SMALL = {"hidden_units": 5, "connections": 2, "learn": "none"}
PANEL = panel(RAGGED)
NAMES = pd.Series(np.where(np.array(LABELS) == LABELS[0], "calm", "wild"), IDS, name="mode")


def test_a_series_of_answers_has_the_name_of_the_targets(tmp_path):
    esn = SeriesClassifier(5).fit(PANEL, NAMES)
    assert esn.predict(PANEL).name == "mode"
    esn.save(tmp_path / "model.safetensors")
    assert load(tmp_path / "model.safetensors").predict(PANEL).name == "mode"
    assert esn.fit(PANEL, NAMES.to_numpy()).predict(PANEL).name == "prediction"
    esn.save(tmp_path / "model.safetensors")
    assert load(tmp_path / "model.safetensors").predict(PANEL).name == "prediction"


def test_probabilities_have_the_classes_as_columns():
    esn = SeriesClassifier(5).fit(PANEL, NAMES)
    for answers in (esn.predict_proba(PANEL), esn.predict_log_proba(PANEL)):
        assert list(answers.columns) == ["calm", "wild"]
        assert list(answers.index) == IDS
    np.testing.assert_array_equal(esn.predict_proba(PANEL).idxmax(axis=1), esn.predict(PANEL))
    tables = [PANEL.loc[name] for name in IDS]
    steps = ESNClassifier(**grouped(SMALL)).fit(PANEL, np.concatenate(steps_of(RAGGED)))
    assert all(list(part.columns) == steps.classes_.tolist() for part in steps.predict_proba(tables))
    assert {part.name for part in steps.predict(dict(zip(IDS, tables, strict=True))).values()} == {"prediction"}
    deep = DeepESNClassifier(6, 2, epochs=10).fit(PANEL, np.concatenate(steps_of(RAGGED)))
    assert list(deep.predict_proba(PANEL).columns) == deep.classes_.tolist()
    assert deep.predict(PANEL).name == "prediction"


def test_values_have_the_columns_of_the_targets():
    values = PANEL[["a", "b"]].shift(1, fill_value=0.0).add_suffix("_before")
    esn = ESNRegressor(**grouped(SMALL)).fit(PANEL, values)
    assert list(esn.predict(PANEL).columns) == ["a_before", "b_before"]
    assert esn.fit(PANEL, values["a_before"]).predict(PANEL).name == "a_before"
    assert list(esn.fit(PANEL, values.to_numpy()).predict(PANEL).columns) == [0, 1]
    assert isinstance(esn.predict(RAGGED)[0], np.ndarray)
    means = PANEL[["a", "b"]].groupby(level=0, sort=False).mean().add_suffix("_mean")
    series = SeriesRegressor(5).fit(PANEL, means)
    assert list(series.predict(PANEL).columns) == ["a_mean", "b_mean"]
    assert list(series.predict(PANEL).index) == IDS
    assert series.fit(PANEL, means["a_mean"]).predict(PANEL).name == "a_mean"
