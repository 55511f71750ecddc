"""Answers to tables have the names of the targets, probabilities those of the classes."""

import numpy as np
import pandas as pd

from benchmarks.layouts import IDS, LABELS, RAGGED, panel, steps_of
from echolearn import ESNClassifier, ESNRegressor, StackedClassifier, load

SMALL = {"hidden_units": 5, "connections": 2, "learn": "none"}
PANEL = panel(RAGGED)
NAMES = pd.Series(np.where(np.array(LABELS) == LABELS[0], "calm", "wild"), IDS, name="mode")


def test_a_series_of_answers_has_the_name_of_the_targets(tmp_path):
    esn = ESNClassifier(**SMALL).fit(PANEL, NAMES)
    assert esn.predict(PANEL).name == "mode"
    esn.save(tmp_path / "model.safetensors")
    assert load(tmp_path / "model.safetensors").predict(PANEL).name == "mode"
    assert esn.fit(PANEL, NAMES.to_numpy()).predict(PANEL).name == "prediction"
    esn.save(tmp_path / "model.safetensors")
    assert load(tmp_path / "model.safetensors").predict(PANEL).name == "prediction"


def test_probabilities_have_the_classes_as_columns():
    esn = ESNClassifier(**SMALL).fit(PANEL, NAMES)
    for answers in (esn.predict_proba(PANEL), esn.predict_log_proba(PANEL)):
        assert list(answers.columns) == ["calm", "wild"]
        assert list(answers.index) == IDS
    np.testing.assert_array_equal(esn.predict_proba(PANEL).idxmax(axis=1), esn.predict(PANEL))
    tables = [PANEL.loc[name] for name in IDS]
    steps = ESNClassifier(**SMALL).fit(PANEL, np.concatenate(steps_of(RAGGED)))
    assert all(list(part.columns) == steps.classes_.tolist() for part in steps.predict_proba(tables))
    assert {part.name for part in steps.predict(dict(zip(IDS, tables, strict=True))).values()} == {"prediction"}
    stack = StackedClassifier([ESNClassifier(**SMALL)] * 2, joint_epochs=1).fit(PANEL, np.concatenate(steps_of(RAGGED)))
    assert list(stack.predict_proba(PANEL).columns) == stack.classes_.tolist()
    assert stack.predict(PANEL).name == "prediction"


def test_values_have_the_columns_of_the_targets():
    values = PANEL[["a", "b"]].shift(1, fill_value=0.0).add_suffix("_before")
    esn = ESNRegressor(**SMALL).fit(PANEL, values)
    assert list(esn.predict(PANEL).columns) == ["a_before", "b_before"]
    assert esn.fit(PANEL, values["a_before"]).predict(PANEL).name == "a_before"
    assert list(esn.fit(PANEL, values.to_numpy()).predict(PANEL).columns) == [0, 1]
    assert isinstance(esn.predict(RAGGED)[0], np.ndarray)
