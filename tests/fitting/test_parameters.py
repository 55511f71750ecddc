"""Unknown settings are answered with the one that was meant; scikit-learn's conventions stay; settings in groups."""

import copy
import inspect
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import toys
from echolearn import (
    DeepESNClassifier,
    DeepESNRegressor,
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    Reservoir,
    load,
)
from echolearn.fitting.parameters import DRAWING, LEARNING, flat_settings, grouped_settings, merged_settings
from echolearn.validation import SYNONYMS
from toys import grouped

ESTIMATORS = pytest.mark.parametrize(
    "kind", [ESNClassifier, ESNRegressor, ESNForecaster, DeepESNClassifier, DeepESNRegressor]
)
MEANT = {
    "units": "hidden_units",
    "n_units": "hidden_units",
    "n_reservoir": "hidden_units",
    "sr": "spectral_radius",
    "rho": "spectral_radius",
    "lr": "leak or step_size",
    "learning_rate": "step_size",
    "seed": "random_state",
    "random_seed": "random_state",
    "input_scale": "input_scaling",
    "regularization": "ridge",
    "alpha": "ridge",
    "leek": "leak",  # by its spelling
    "hiden_units": "hidden_units",
}


@pytest.mark.parametrize("name", MEANT)
@pytest.mark.parametrize("kind", [ESNClassifier, ESNRegressor, ESNForecaster])
def test_an_unknown_setting_is_answered_with_the_one_that_was_meant(kind, name):
    words = rf"^{kind.__name__} has no setting '{name}'; did you mean {MEANT[name]}\?"
    with pytest.raises(TypeError, match=words):
        kind(**{name: 1})
    with pytest.raises(ValueError, match=words):
        kind().set_params(**{name: 1})


def test_words_for_the_networks_of_an_ensemble():
    with pytest.raises(TypeError, match=r"no setting 'n_estimators'; did you mean ensemble\?"):
        ESNClassifier(n_estimators=2)
    with pytest.raises(ValueError, match=r"no setting 'blocks'; did you mean ensemble\?"):
        ESNClassifier().set_params(blocks=2)


@pytest.mark.parametrize(
    ("name", "instead"),
    [("pooling", "SeriesClassifier and SeriesRegressor"), ("plasticity", "write reservoir=intrinsic_plasticity")],
)
def test_a_former_setting_is_answered_with_what_replaces_it(name, instead):
    with pytest.raises(TypeError, match=rf"^ESNClassifier has no setting '{name}'; {instead}"):
        ESNClassifier(**{name: "mean"})
    with pytest.raises(ValueError, match=instead):
        ESNClassifier().set_params(**{name: "mean"})


@pytest.mark.parametrize("name", ["depth", "objective", "windows", "dropout"])
def test_a_name_that_resembles_none_suggests_none(name):
    with pytest.raises(TypeError, match=rf"^ESNForecaster has no setting '{name}'; known are"):
        ESNForecaster(**{name: 1})


@ESTIMATORS
def test_names_unlike_all_others_are_answered_with_the_list(kind):
    with pytest.raises(TypeError, match=rf"^{kind.__name__} has no setting 'qqq'; known are .*random_state"):
        kind(qqq=1)


@ESTIMATORS
def test_the_conventions_of_scikit_learn_stay(kind):
    own = kind()
    assert set(inspect.signature(kind).parameters) == set(own.get_params(deep=False))
    assert next(iter(inspect.signature(kind).parameters)) in ("hidden_units", "units")
    for twin in (
        clone(own),
        copy.deepcopy(own),
        pickle.loads(pickle.dumps(own)),
        kind(**own.get_params(deep=False)),
    ):
        assert twin.get_params() == own.get_params()
    with pytest.raises(TypeError, match="positional"):
        kind(1, 2, 3)


def test_in_pipelines_and_grids():
    X, y = toys.rising(sequences=8)
    with pytest.raises(ValueError, match="did you mean spectral_radius"):
        make_pipeline(ESNClassifier()).set_params(esnclassifier__sr=0.5)
    with pytest.raises(ValueError, match="did you mean spectral_radius"):
        GridSearchCV(ESNClassifier(**grouped(toys.FAST)), {"rho": [0.5, 0.9]}, cv=2, error_score="raise").fit(X, y)
    with pytest.raises(TypeError, match="did you mean hidden_units"):
        ESNClassifier.paper(10, units=3)
    with pytest.raises(TypeError, match="DeepESNClassifier has no setting 'n_layers'; did you mean layers"):
        DeepESNClassifier(n_layers=3)


def test_a_subclass_with_settings_of_its_own():
    class Mine(ESNClassifier):
        def __init__(self, hidden_units=10, *, loudness=1.0):
            super().__init__(hidden_units)
            self.loudness = loudness

    assert Mine(7, loudness=2.0).get_params() == {"hidden_units": 7, "loudness": 2.0}
    with pytest.raises(TypeError, match=r"Mine has no setting 'loud'; did you mean loudness\?"):
        Mine(loud=1)


def test_no_synonym_is_a_setting_that_there_is():
    known = set(inspect.signature(ESNClassifier).parameters) | set(inspect.signature(ESNForecaster).parameters)
    shadowed = {word for words in SYNONYMS.values() for word in words.split()} & known
    assert shadowed <= {"blocks", "ensemble", "bias", "washout", "solver"}


# ---------------------------------------------------------------- settings that are given together

NETWORKS = pytest.mark.parametrize("kind", [ESNClassifier, ESNRegressor, ESNForecaster])
OWN = Reservoir.random(2, 8, random_state=0)


@NETWORKS
def test_constructors_are_short_and_every_setting_has_one_place(kind):
    parameters = set(inspect.signature(kind).parameters)
    inside = [key for names in kind.groups.values() for key in names]
    assert len(parameters) <= 25
    assert len(set(inside)) == len(inside)
    assert not parameters & set(inside)
    assert set(flat_settings(kind())) == (parameters - {"learning"}) | set(inside) | set(kind.fixed)


@NETWORKS
def test_single_settings_are_got_and_set_by_their_group(kind):
    esn = kind(learning={"patience": 3})
    assert esn.get_params()["learning__patience"] == 3
    assert esn.get_params()["learning__step_size"] is None
    assert esn.get_params()["reservoir__connections"] == 10
    assert "learning__patience" not in esn.get_params(deep=False)
    before = esn.learning
    esn.set_params(learning__step_size=0.02, reservoir__topology="ring", epochs=2)
    assert esn.learning == {"patience": 3, "step_size": 0.02}
    assert before == {"patience": 3}  # the dict that was given is left as it is
    assert esn.reservoir == {"topology": "ring"}
    assert esn.epochs == 2
    assert esn.set_params(learning=None).get_params()["learning__patience"] == kind().get_params()["learning__patience"]
    assert esn.set_params(learning={"clip": 1.0}, learning__patience=4).learning == {"clip": 1.0, "patience": 4}


@NETWORKS
def test_clones_and_copies_have_dicts_of_their_own(kind):
    esn = kind(learning={"patience": 3}, reservoir={"initial_state": np.zeros(4)})
    for twin in (clone(esn), copy.deepcopy(esn), pickle.loads(pickle.dumps(esn))):
        assert twin.learning == esn.learning
        np.testing.assert_array_equal(twin.reservoir["initial_state"], np.zeros(4))
        twin.set_params(learning__patience=9)
        assert esn.learning == {"patience": 3}
    assert "learning={'patience': 3}" in repr(kind(learning={"patience": 3}))


@pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorScoreWarning")
def test_grids_and_pipelines_search_single_settings():
    X, y = toys.labels(sequences=8)
    grid = {"learning__step_size": [1e-3, 1e-1], "reservoir__topology": ["random", "ring"]}
    esn = ESNClassifier(10, epochs=2, learning={"refine_epochs": 0, "batch_size": 4})
    found = GridSearchCV(esn, grid, cv=2).fit(X, y)
    assert len(found.cv_results_["params"]) == 4
    assert len(set(found.cv_results_["mean_test_score"])) > 1
    learning = {"refine_epochs": 0, "batch_size": 4, "step_size": found.best_params_["learning__step_size"]}
    assert found.best_estimator_.learning == learning
    assert esn.learning == {"refine_epochs": 0, "batch_size": 4}
    piped = make_pipeline(esn).set_params(esnclassifier__learning__step_size=0.5)
    assert piped[-1].learning["step_size"] == 0.5


@NETWORKS
@pytest.mark.parametrize("group", ["learning", "reservoir"])
def test_unknown_keys_of_a_dict_are_answered(kind, group):
    X = np.sin(np.arange(60) / 3)[:, None]
    for wrong, words in (({"toplogy": "ring"}, "topology"), ({"stepsize": 1.0}, "step_size"), ({3: 4}, "known are")):
        if (group == "learning") == ("toplogy" in wrong):
            continue
        with pytest.raises(ValueError, match=rf"^{group}: there is no setting .*{words}"):
            kind(**{group: wrong}).fit(X, X)
    with pytest.raises(ValueError, match=rf"^{group}: there is no setting 'qqq'; known are"):
        kind().set_params(**{f"{group}__qqq": 1})
    for odd in ("fast", 3, [("step_size", 0.1)]):
        with pytest.raises(ValueError, match=rf"^{group}=.*; expected None"):
            kind(**{group: odd}).fit(X, X)
        with pytest.raises(ValueError, match=rf"beside {group}=.*; expected a dict or None"):
            kind(**{group: odd}).set_params(**{f"{group}__{next(iter(kind.groups[group]))}": 1})


@NETWORKS
def test_a_setting_at_its_former_place_is_answered_with_where_it_is(kind):
    for group, names in kind.groups.items():
        for name in names:
            words = rf"^{kind.__name__} has no setting '{name}'; {name} is part of {group}: write {group}="
            with pytest.raises(TypeError, match=words + rf"{{'{name}': ...}}\.$"):
                kind(**{name: 1})
            with pytest.raises(ValueError, match=words):
                kind().set_params(**{name: 1})
    with pytest.raises(TypeError, match=r"did you mean step_size\? step_size is part of learning: write learning="):
        kind(learning_rate=1)


def test_what_one_estimator_has_and_another_does_not():
    with pytest.raises(ValueError, match="learning: there is no setting 'refine_epochs'"):
        ESNRegressor(learning={"refine_epochs": 1}).fit(*toys.echoes())
    with pytest.raises(ValueError, match="reservoir: there is no setting 'feedback_scaling'"):
        ESNForecaster(reservoir={"feedback_scaling": 1.0}).fit(np.arange(90.0))
    with pytest.raises(ValueError, match="draws its own"):
        ESNForecaster(reservoir=OWN).fit(np.arange(90.0))


def test_beside_a_given_reservoir_nothing_is_drawn():
    esn = ESNClassifier(reservoir=OWN)
    assert not any(name.startswith("reservoir__") for name in esn.get_params())
    assert flat_settings(esn)["reservoir"] is OWN
    with pytest.raises(ValueError, match=r"reservoir__topology='ring' beside reservoir=<Reservoir"):
        esn.set_params(reservoir__topology="ring")
    assert esn.set_params(reservoir={}, reservoir__topology="ring").reservoir == {"topology": "ring"}
    assert grouped_settings(flat_settings(ESNClassifier(reservoir=OWN)), ESNClassifier)["reservoir"] is OWN


def test_the_paper_is_completed_and_not_replaced():
    esn = ESNClassifier.paper(20, learning={"lookback": 1}, reservoir={"connections": 3})
    assert esn.learning == {**ESNClassifier.paper(20).learning, "lookback": 1}
    assert esn.reservoir == {**ESNClassifier.paper(20).reservoir, "connections": 3}
    assert ESNClassifier.paper(20, learning=None).learning == ESNClassifier.paper(20).learning
    assert ESNClassifier.paper(8, reservoir=OWN).reservoir is OWN


def test_later_settings_replace_earlier_ones():
    first, later = {"leak": 1.0, "learning": {"clip": 1.0, "case": 1}}, {"learning": {"case": 2}, "epochs": 3}
    assert merged_settings(first, later) == {"leak": 1.0, "learning": {"clip": 1.0, "case": 2}, "epochs": 3}
    assert merged_settings(first, {"learning": None})["learning"] == first["learning"]
    assert first["learning"] == {"clip": 1.0, "case": 1}


VALUES = {
    "step_size": [None, 0.01],
    "batch_size": ["auto", None, 1, 8],
    "lookback": [None, 3],
    "patience": [None, "auto", 2],
    "refine_epochs": [0, 5],
    "optimizer": ["adam", "fista"],
    "momentum": ["fista", "printed"],
    "clip": [None, 0.5],
    "gradient": ["exact", "printed"],
    "case": [1, 2],
    "targets": ["all", "last"],
    "loop_steps": [1, 4],
    "connections": [3, 10],
    "topology": ["random", "ring", np.eye(4), sparse.csr_array(np.eye(4))],
    "activation": ["tanh", "relu"],
    "bias_scaling": [0.1, 0.0],
    "feedback_scaling": [0.1, 2.0],
    "initial_state": [None, np.zeros(4), np.full(4, 0.1)],
}
PLAIN = {"hidden_units": [4, 300], "leak": [0.5, (0.1, 1.0), np.full(4, 0.2)], "epochs": [None, 2], "learn": ["none"]}


def test_every_grouped_setting_is_tried_below():
    assert set(VALUES) | {"learn_leak", "renormalize", "direct", "fit_intercept"} == {*LEARNING, *DRAWING, "loop_steps"}


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from([ESNClassifier, ESNRegressor, ESNForecaster]))
def test_flat_and_grouped_settings_are_the_same_settings(data, kind):
    def some(names):
        chosen = data.draw(st.lists(st.sampled_from(sorted(names)), unique=True, max_size=5))
        return {name: data.draw(st.sampled_from((VALUES | PLAIN).get(name, [True, False]))) for name in chosen}

    groups = {group: data.draw(st.none() | st.just(some(names))) for group, names in kind.groups.items()}
    esn = kind(**some(PLAIN), **groups)
    flat = flat_settings(esn)
    again = kind(**grouped_settings(flat, kind))
    assert flat.keys() == flat_settings(again).keys()
    for name, value in flat.items():
        assert flat_settings(again)[name] is value or np.array_equal(flat_settings(again)[name], value), name
    assert grouped_settings(flat_settings(again), kind).keys() == again.get_params(deep=False).keys()
    assert all(group is None or group for group in (again.learning, again.reservoir))  # only what is not the default


@pytest.mark.parametrize(
    ("kind", "groups"),
    [
        (ESNClassifier, {"learning": {"refine_epochs": 1, "batch_size": 3, "direct": False}}),
        (ESNClassifier, {"learning": {"fit_intercept": False}, "reservoir": OWN, "leak": 1.0}),
        (ESNRegressor, {"reservoir": {"topology": sparse.csr_array(np.roll(np.eye(8), 1, 0)), "bias_scaling": 0.3}}),
        (ESNRegressor, {"reservoir": {"initial_state": np.full(8, 0.1), "activation": "sigmoid"}}),
        (ESNForecaster, {"learning": {"patience": 2, "clip": 1.0}, "reservoir": {"connections": 3}, "washout": 5}),
        (ESNForecaster, {"method": "direct"}),
    ],
)
def test_a_model_file_keeps_them(kind, groups, tmp_path):
    X, values = toys.echoes()
    esn = kind(8, epochs=2, **groups)
    _ = (
        esn.fit(X[0][:, 0])
        if kind is ESNForecaster
        else esn.fit(X, values if kind is ESNRegressor else toys.labels()[1])
    )
    esn.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for name, value in flat_settings(esn).items():
        found = flat_settings(again)[name]
        if isinstance(value, Reservoir):
            np.testing.assert_array_equal(found.W_rec.toarray(), value.W_rec.toarray())
        elif sparse.issparse(value):
            np.testing.assert_array_equal(found.toarray(), value.toarray())
        else:
            np.testing.assert_array_equal(found, value)
    assert again.learning == esn.learning
