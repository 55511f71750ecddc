"""Facts and settings of a model file that make no sense are refused."""

import pytest

from echolearn import load
from echolearn.estimators.model_layout import FORMAT
from echolearn.exceptions import ModelFileError
from reliability import forging
from smallmodels import change_facts


@pytest.mark.parametrize(
    "changes",
    [
        {"estimator": "os.system"},
        {"settings": {}},
        {"settings": {"no_such_setting": 1}},
        {"settings": None},
        {"features": 7},
        {"features": 10**30},
        {"feature_names": ["a"]},
        {"class_names": ["a"]},
        {"class_names": ["low", "high"]},
        {"history_columns": 3},
        {"per_step": None},
        {"ridge": -1.0},
        {"ridge": {"float": "nan"}},
        {"tt": 1.0, "n": 2.0},
    ],
)
def test_facts_that_make_no_sense_are_refused(file, changes):
    change_facts(file, **changes)
    with pytest.raises(ModelFileError, match=r"not a model this version understands|not an echolearn-model file"):
        load(file)


@pytest.mark.parametrize(
    ("name", "value"), [("hidden_units", 10**12), ("direct", "yes"), ("washout", -1), ("dtype", "object"), ("leak", 7)]
)
def test_settings_that_no_network_has_are_refused(file, name, value):
    settings = forging.taken_apart(file.read_bytes(), FORMAT)[1]["settings"]
    change_facts(file, settings={**settings, name: value})
    with pytest.raises(ModelFileError, match=name):
        load(file)
