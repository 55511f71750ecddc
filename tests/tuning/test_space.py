"""Tests of the search space."""

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from echolearn import (
    DeepESNClassifier,
    DeepESNRegressor,
    ESNClassifier,
    FrameWise,
    SeriesClassifier,
    SeriesRegressor,
)
from echolearn.tuning._space import (
    DEEP_SPACE,
    FIXED_WEIGHTS_SPACE,
    LEARNED_WEIGHTS_SPACE,
    SERIES_SPACE,
    checked_space,
    initial_values,
)


@pytest.mark.parametrize(
    ("space", "word"),
    [
        ({"spectral_radus": (0.1, 1.0)}, "did you mean spectral_radius"),
        ({"leak": (0.0, 1.0)}, "0 < low <= high"),
        ({"leak": (1.0, 0.5)}, "0 < low <= high"),
        ({"leak": []}, "a list of choices"),
        ({"leak": 0.3}, "a list of choices"),
        ({}, "space is empty"),
    ],
)
def test_a_space_that_cannot_be_searched_is_refused(space, word):
    with pytest.raises(ValueError, match=word):
        checked_space(ESNClassifier(), space)


def test_a_space_that_is_no_mapping_is_refused():
    with pytest.raises(TypeError, match="expected ranges and choices"):
        checked_space(ESNClassifier(), ["leak"])


def test_fixed_networks_have_no_step_size_to_search():
    assert "learning__step_size" not in checked_space(ESNClassifier(learn="none"), None)
    assert "learning__step_size" in checked_space(ESNClassifier(), None)
    assert LEARNED_WEIGHTS_SPACE.keys() >= FIXED_WEIGHTS_SPACE.keys()


def test_estimators_of_series_search_what_they_have():
    for kind in (SeriesClassifier, SeriesRegressor):
        assert checked_space(kind(), None) == SERIES_SPACE
        assert SERIES_SPACE.keys() <= kind().get_params().keys()
        assert initial_values(kind(), SERIES_SPACE) == {"hidden_units": 0, "standardize": 0}
    with pytest.raises(ValueError, match="leak"):
        checked_space(SeriesClassifier(), {"leak": (0.1, 1.0)})


def test_deep_networks_search_what_they_have():
    for kind in (DeepESNClassifier, DeepESNRegressor):
        assert checked_space(kind(), None) == DEEP_SPACE
        assert DEEP_SPACE.keys() <= kind().get_params().keys()
        assert set(initial_values(kind(), DEEP_SPACE)) == set(DEEP_SPACE)  # the defaults are inside
    piped = checked_space(make_pipeline(FrameWise(StandardScaler()), DeepESNClassifier()), None)
    assert set(piped) == {f"deepesnclassifier__{name}" for name in DEEP_SPACE}


def test_names_without_a_prefix_are_those_of_the_last_step():
    pipeline = make_pipeline(FrameWise(StandardScaler()), ESNClassifier())
    assert checked_space(pipeline, {"leak": [0.3]}) == {"esnclassifier__leak": [0.3]}


def test_initial_values_are_those_inside_the_space():
    esn = ESNClassifier(100, spectral_radius=0.7, input_scaling=5.0, leak=1.0)
    values = initial_values(esn, checked_space(esn, None))
    assert values["spectral_radius"] == 0.7
    assert "input_scaling" not in values  # 5 is outside of its range
    assert values["leak"] == 3  # choices are stored by their index
    assert values["learning__step_size"] == pytest.approx(0.01)  # the default that None stands for
