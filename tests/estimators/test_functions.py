"""save, load and stream: of estimators, of pipelines, and of what is neither."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import echolearn
import toys
from echolearn import DeepESNRegressor, ESNClassifier, ESNForecaster, ESNRegressor, FrameWise, SeriesRegressor
from echolearn.modelfile.layout import MODEL
from reliability import forging
from toys import grouped

X, LABELS = toys.labels(sequences=6)
X = [40 + 7 * x for x in X]
VALUES = toys.echoes(sequences=6)[1]
SMALL = {**toys.FAST, "hidden_units": 4, "connections": 2, "epochs": 1}
STANDARD = FrameWise(StandardScaler())


def parts(path):
    """Return the facts and the arrays of a file, to compare."""
    tensors, facts = forging.taken_apart(path.read_bytes(), MODEL)
    return facts, {name: value.tobytes() for name, value in tensors.items()}


def test_estimators_are_saved_as_by_their_own_method(tmp_path):
    esn = ESNClassifier(readout="ridge", **grouped(SMALL)).fit(X, LABELS)
    esn.save(tmp_path / "a", sums=True)
    echolearn.save(esn, tmp_path / "b", sums=True)
    assert parts(tmp_path / "a") == parts(tmp_path / "b")
    deep = DeepESNRegressor(4, 2, epochs=1).fit(X, VALUES)
    echolearn.save(deep, tmp_path / "c")
    np.testing.assert_array_equal(echolearn.load(tmp_path / "c").predict(X[0]), deep.predict(X[0]))


def test_streams_and_files_of_networks_alone():
    esn = ESNRegressor(**grouped(SMALL)).fit(X, VALUES)
    np.testing.assert_array_equal(echolearn.stream(esn).predict(X[0]), esn.stream().predict(X[0]))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            lambda: make_pipeline(FrameWise(Normalizer()), ESNClassifier(**grouped(SMALL))).fit(X, LABELS),
            "Normalizer cannot be",
        ),
        (lambda: make_pipeline(StandardScaler(), LogisticRegression()).fit(X[0], LABELS[0]), "ends in LogisticRegress"),
        (lambda: StandardScaler().fit(X[0]), "StandardScaler is neither an estimator of echolearn nor a Pipeline"),
    ],
)
def test_what_cannot_be_saved_or_streamed_is_refused(model, words, tmp_path):
    with pytest.raises(TypeError, match=words):
        echolearn.save(model(), tmp_path / "no")
    with pytest.raises(TypeError, match=words):
        echolearn.stream(model())
    assert not (tmp_path / "no").exists()


def test_models_that_are_not_ready_are_refused(tmp_path):
    with pytest.raises(ValueError, match="not fitted yet"):
        echolearn.save(make_pipeline(STANDARD, ESNClassifier()), tmp_path / "no")
    with pytest.raises(TypeError, match="SeriesRegressor has no stream: a network with one target per step streams"):
        echolearn.stream(SeriesRegressor(4).fit(X, range(6)))
    with pytest.raises(TypeError, match="ESNForecaster has no stream"):
        echolearn.stream(ESNForecaster(washout=2, **grouped(SMALL)).fit(VALUES[0]))
