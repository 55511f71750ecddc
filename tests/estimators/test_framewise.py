import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, Normalizer, StandardScaler

import toys
from echolearn import ESNClassifier, FrameWise
from echolearn.exceptions import InputWarning
from echolearn.metrics import scorer
from toys import grouped

X, VALUES = toys.echoes()
_, LABELS = toys.labels()
RISING_X, RISING = toys.rising()


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=6), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_scaling_by_frames_is_scaling_the_stacked_frames(lengths, seed):
    rng = np.random.default_rng(seed)
    sequences = [3 + 2 * rng.normal(size=(n, 2)) for n in lengths]
    frames = np.concatenate(sequences)
    scale = FrameWise(StandardScaler()).fit(sequences)
    got = scale.transform(sequences)
    assert [len(x) for x in got] == lengths
    deviation = frames.std(axis=0)
    expected = (frames - frames.mean(axis=0)) / np.where(deviation > 1e-12, deviation, 1)
    np.testing.assert_allclose(np.concatenate(got), expected, atol=1e-9)
    np.testing.assert_allclose(np.concatenate(scale.inverse_transform(got)), frames, atol=1e-9)


def test_sequences_come_back_in_the_form_they_went_in():
    scale = FrameWise(StandardScaler()).fit(X)
    cube = np.stack([x[:10] for x in X])
    assert isinstance(scale.transform(X), list)
    assert scale.transform(cube).shape == cube.shape
    assert scale.transform(X[0]).shape == X[0].shape
    np.testing.assert_array_equal(scale.transform(cube)[1], scale.transform(X[1][:10]))
    assert scale.transform([x.astype(np.float32) for x in X])[0].dtype == np.float32


def test_names_parameters_and_clones():
    reduce = FrameWise(PCA(1))
    assert reduce.get_params()["transformer__n_components"] == 1
    copy = clone(reduce).set_params(transformer__n_components=2).fit(X)
    assert copy.transform(X)[0].shape[1] == 2
    assert copy.get_feature_names_out().tolist() == ["pca0", "pca1"]
    assert not hasattr(reduce.transformer, "components_")  # what was handed in stays as it was


def test_a_transformer_that_looks_at_labels():
    by_frame = FrameWise(LinearDiscriminantAnalysis()).fit(X, LABELS)
    whole = LinearDiscriminantAnalysis().fit(np.concatenate(X), np.concatenate(LABELS))
    np.testing.assert_allclose(np.concatenate(by_frame.transform(X)), whole.transform(np.concatenate(X)))
    by_sequence = FrameWise(LinearDiscriminantAnalysis()).fit(RISING_X, RISING)
    repeated = [np.full(len(x), label) for x, label in zip(RISING_X, RISING, strict=True)]
    same = FrameWise(LinearDiscriminantAnalysis()).fit(RISING_X, repeated)
    np.testing.assert_array_equal(by_sequence.transform(RISING_X)[0], same.transform(RISING_X)[0])


def test_transformations_that_are_not_possible_are_refused():
    assert not hasattr(FrameWise(Normalizer()), "inverse_transform")
    with pytest.raises(ValueError, match="X has 2 features, but FrameWise is expecting 1"):
        FrameWise(StandardScaler()).fit([x[:, :1] for x in X]).transform(X)
    sparse = FrameWise(KBinsDiscretizer(2, encode="onehot", strategy="uniform")).fit(X)
    with pytest.raises(ValueError, match="KBinsDiscretizer gave a sparse matrix"):
        sparse.transform(X)
    with pytest.raises(ValueError, match="did you mean balanced_accuracy"):
        scorer("balanced_acuracy")


def test_in_a_pipeline_and_a_grid_over_ragged_lists():
    far = [1000 + 5 * x for x in X]
    pipeline = Pipeline(
        [("scale", FrameWise(StandardScaler())), ("esn", ESNClassifier(standardize=False, **grouped(toys.FAST)))]
    )
    scaled = FrameWise(StandardScaler()).fit_transform(far)
    by_hand = ESNClassifier(standardize=False, **grouped(toys.FAST)).fit(scaled, LABELS).predict(scaled)
    for got, expected in zip(pipeline.fit(far, LABELS).predict(far), by_hand, strict=True):
        np.testing.assert_array_equal(got, expected)
    grid = {"esn__leak": [0.3, 1.0], "scale__transformer__with_mean": [True, False]}
    search = GridSearchCV(pipeline, grid, cv=KFold(2), scoring=scorer("neg_log_loss"), error_score="raise")
    with pytest.warns(InputWarning, match="shift the units"):  # where the mean stays
        search.fit(far, LABELS)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_params_["scale__transformer__with_mean"]  # at 200 + noise the units saturate
    assert len(search.predict(far)) == len(far)


def test_gaps_are_filled_by_an_imputer():
    rng = np.random.default_rng(0)
    gaps = [np.where(rng.random(x.shape) < 0.2, np.nan, x) for x in X]
    fill = FrameWise(SimpleImputer()).fit(gaps)
    means = np.nanmean(np.concatenate(gaps), axis=0)
    for got, given_x in zip(fill.transform(gaps), gaps, strict=True):
        np.testing.assert_allclose(got, np.where(np.isnan(given_x), means, given_x))
    pipeline = make_pipeline(FrameWise(SimpleImputer()), ESNClassifier(**grouped(toys.FAST))).fit(gaps, LABELS)
    assert pipeline.score(gaps, LABELS) == scorer("accuracy")(pipeline, gaps, LABELS)
    with pytest.raises(ValueError, match="NaN"):
        FrameWise(PCA(1)).fit(gaps)


def test_a_classifier_answers_for_every_frame():
    sequences, labels = toys.labels(sequences=6)
    frames, y = np.concatenate(sequences), np.concatenate(labels)
    joined = LogisticRegression().fit(frames, y)
    readout = FrameWise(LogisticRegression()).fit(sequences, labels)
    assert is_classifier(readout)
    assert not is_classifier(FrameWise(StandardScaler()))
    np.testing.assert_array_equal(readout.classes_, joined.classes_)
    np.testing.assert_array_equal(np.concatenate(readout.predict(sequences)), joined.predict(frames))
    np.testing.assert_array_equal(readout.predict(sequences[0]), joined.predict(sequences[0]))
    np.testing.assert_array_equal(np.concatenate(readout.predict_proba(sequences)), joined.predict_proba(frames))
    assert readout.score(sequences, labels) == joined.score(frames, y)
    assert not hasattr(readout, "transform")
    assert not hasattr(FrameWise(StandardScaler()), "predict")
    whole = FrameWise(LogisticRegression()).fit(sequences, ["a", "b"] * 3)  # a label stands for each of its frames
    assert whole.predict(sequences[0]).shape == (len(sequences[0]),)


def test_a_regressor_answers_for_every_frame():
    sequences, values = toys.echoes(sequences=6)
    readout = FrameWise(Ridge()).fit(sequences, values)
    assert is_regressor(readout)
    joined = Ridge().fit(np.concatenate(sequences), np.concatenate(values))
    np.testing.assert_allclose(
        np.concatenate(readout.predict(sequences)), joined.predict(np.concatenate(sequences)), atol=1e-12
    )
