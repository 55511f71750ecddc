"""Facts and settings of a model file that make no sense are refused."""

import numpy as np
import pytest

import toys
from echolearn import ESNClassifier, load
from echolearn.estimators.model_layout import FORMAT
from echolearn.estimators.restoring import _present_names
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


@pytest.mark.parametrize(("blocks", "units", "ensemble"), [(None, 15, 1), (1, 15, 1), (3, 15, 3)])
def test_files_that_say_blocks_are_ensembles(blocks, units, ensemble, tmp_path):
    X, y = toys.labels(sequences=8)
    esn = ESNClassifier(**{**toys.FAST, "hidden_units": units}, ensemble=ensemble).fit(X, y)
    esn.save(tmp_path / "model")
    facts = forging.taken_apart((tmp_path / "model").read_bytes(), FORMAT)[1]
    settings = {name: value for name, value in facts["settings"].items() if name != "ensemble"} | {"blocks": blocks}
    columns = ["block" if name == "network" else name for name in facts["history_columns"]]
    change_facts(tmp_path / "model", settings=settings, history_columns=columns)
    loaded = load(tmp_path / "model")
    assert loaded.get_params() == esn.get_params()
    assert loaded.history_ == esn.history_
    np.testing.assert_array_equal(np.concatenate(loaded.predict(X)), np.concatenate(esn.predict(X)))


@pytest.mark.parametrize(
    ("units", "changes", "ensemble"), [(1000, {}, 4), (100, {}, 1), (1000, {"topology": "ring"}, 1)]
)
def test_files_without_a_number_of_blocks_had_one_network_per_250_units(units, changes, ensemble):
    assert _present_names({"hidden_units": units, "blocks": None, **changes})["ensemble"] == ensemble
