"""Unknown settings are answered with the one that was meant; scikit-learn's conventions stay."""

import copy
import inspect
import pickle

import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import toys
from echolearn import ESNClassifier, ESNForecaster, ESNRegressor, StackedClassifier, StackedRegressor
from echolearn.validation import SYNONYMS

ESTIMATORS = pytest.mark.parametrize(
    "kind", [ESNClassifier, ESNRegressor, ESNForecaster, StackedClassifier, StackedRegressor]
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
    words = rf"^{kind.__name__} has no setting '{name}'; did you mean {MEANT[name]}\?$"
    with pytest.raises(TypeError, match=words):
        kind(**{name: 1})
    with pytest.raises(ValueError, match=words):
        kind().set_params(**{name: 1})


def test_words_for_the_networks_of_an_ensemble():
    with pytest.raises(TypeError, match=r"no setting 'n_estimators'; did you mean ensemble\?"):
        ESNClassifier(n_estimators=2)
    with pytest.raises(ValueError, match=r"no setting 'blocks'; did you mean ensemble\?"):
        ESNClassifier().set_params(blocks=2)


@ESTIMATORS
def test_names_unlike_all_others_are_answered_with_the_list(kind):
    with pytest.raises(TypeError, match=rf"^{kind.__name__} has no setting 'qqq'; known are .*random_state"):
        kind(qqq=1)


@ESTIMATORS
def test_the_conventions_of_scikit_learn_stay(kind):
    own = kind()
    assert set(inspect.signature(kind).parameters) == set(own.get_params(deep=False))
    assert next(iter(inspect.signature(kind).parameters)) in ("hidden_units", "layers")
    for twin in (clone(own), copy.deepcopy(own), pickle.loads(pickle.dumps(own)), kind(**own.get_params(deep=False))):
        assert twin.get_params() == own.get_params()
    with pytest.raises(TypeError, match="positional"):
        kind(1, 2, 3)


def test_in_pipelines_grids_and_stacks():
    X, y = toys.rising(sequences=8)
    with pytest.raises(ValueError, match="did you mean spectral_radius"):
        make_pipeline(ESNClassifier()).set_params(esnclassifier__sr=0.5)
    with pytest.raises(ValueError, match="did you mean spectral_radius"):
        GridSearchCV(ESNClassifier(**toys.FAST), {"rho": [0.5, 0.9]}, cv=2, error_score="raise").fit(X, y)
    with pytest.raises(TypeError, match="did you mean hidden_units"):
        ESNClassifier.paper(10, units=3)
    with pytest.raises(TypeError, match="StackedClassifier has no setting 'n_layers'; did you mean layers"):
        StackedClassifier(n_layers=3)


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
