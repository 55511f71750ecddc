"""Pipelines of FrameWise steps and a network: saved, loaded and streamed as one model."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

import echolearn
import toys
from echolearn import DeepESNRegressor, ESNClassifier, ESNRegressor, FrameWise, SeriesClassifier
from echolearn.exceptions import ModelFileError
from echolearn.modelfile.layout import MODEL
from reliability import forging
from smallmodels import change_arrays, change_facts
from toys import grouped

X, LABELS = toys.labels(sequences=6)
X = [40 + 7 * x for x in X]
VALUES = toys.echoes(sequences=6)[1]
SMALL = {**toys.FAST, "hidden_units": 4, "connections": 2, "epochs": 1}
STANDARD = FrameWise(StandardScaler())
PIPELINES = {
    "labels": lambda: make_pipeline(STANDARD, ESNClassifier(**grouped(SMALL))).fit(X, LABELS),
    "values": lambda: make_pipeline(FrameWise(MinMaxScaler()), ESNRegressor(**grouped(SMALL))).fit(X, VALUES),
    "three steps": lambda: make_pipeline(
        STANDARD, FrameWise(PolynomialFeatures(2)), FrameWise(PCA(3, whiten=True)), ESNClassifier(**grouped(SMALL))
    ).fit(X, LABELS),
    "one series, a plain scaler": lambda: make_pipeline(StandardScaler(), ESNRegressor(**grouped(SMALL))).fit(
        X[0], VALUES[0]
    ),
    "one per sequence": lambda: make_pipeline(STANDARD, SeriesClassifier(4)).fit(X, ["up", "down"] * 3),
    "several layers": lambda: make_pipeline(STANDARD, DeepESNRegressor(4, 2, epochs=1)).fit(X, VALUES),
    "own names": lambda: Pipeline(
        [("a", STANDARD), ("off", "passthrough"), ("net", ESNClassifier(**grouped(SMALL)))]
    ).fit(X, LABELS),
    "no steps": lambda: make_pipeline(ESNClassifier(**grouped(SMALL))).fit([x / 50 for x in X], LABELS),
}


def parts(path):
    """Return the facts and the arrays of a file, to compare."""
    tensors, facts = forging.taken_apart(path.read_bytes(), MODEL)
    return facts, {name: value.tobytes() for name, value in tensors.items()}


@pytest.fixture
def file(tmp_path):
    echolearn.save(PIPELINES["labels"](), tmp_path / "pipeline")
    return tmp_path / "pipeline"


@pytest.mark.parametrize("kind", PIPELINES)
@pytest.mark.filterwarnings("ignore::echolearn.exceptions.InputWarning")
def test_a_loaded_pipeline_answers_with_the_same_bits(kind, tmp_path):
    model = PIPELINES[kind]()
    echolearn.save(model, tmp_path / "file")
    back = echolearn.load(tmp_path / "file")
    given = X[0] if kind.startswith("one series") else X
    for method in ("predict", "predict_proba"):
        if hasattr(model, method):
            for a, b in zip(getattr(back, method)(given), getattr(model, method)(given), strict=True):
                np.testing.assert_array_equal(a, b)
    assert [name for name, _ in back.steps] == [name for name, step in model.steps if step != "passthrough"]
    assert [type(step) for _, step in back.steps] == [type(s) for _, s in model.steps if s != "passthrough"]
    assert b"sklearn" not in (tmp_path / "file").read_bytes()  # names of transformers only, no modules
    echolearn.save(back, tmp_path / "again")
    assert parts(tmp_path / "again") == parts(tmp_path / "file")


def test_statistics_are_saved_on_request(tmp_path):
    model = make_pipeline(STANDARD, ESNClassifier(readout="ridge", **grouped(SMALL))).fit(X, LABELS)
    echolearn.save(model, tmp_path / "with", sums=True)
    back = echolearn.load(tmp_path / "with")
    assert back[-1].network_.readout.statistics is not None
    with pytest.raises(ValueError, match="no statistics of its fit to save"):
        echolearn.save(PIPELINES["labels"](), tmp_path / "none", sums=True)


def test_gaps_pass_a_scaler_and_are_carried_by_the_network(tmp_path):
    gaps = [np.where(np.random.default_rng(i).random(x.shape) < 0.3, np.nan, x) for i, x in enumerate(X)]
    model = make_pipeline(STANDARD, ESNRegressor(missing="carry", **grouped(SMALL))).fit(gaps, VALUES)
    echolearn.save(model, tmp_path / "file")
    back = echolearn.load(tmp_path / "file")
    np.testing.assert_array_equal(back.predict(gaps[0]), model.predict(gaps[0]))
    np.testing.assert_array_equal(echolearn.stream(back).predict(gaps[0]), echolearn.stream(model).predict(gaps[0]))
    np.testing.assert_allclose(echolearn.stream(model).predict(gaps[0]), model.predict(gaps[0]), atol=1e-4)


def test_forged_pipelines_are_refused(file):
    content, (tensors, facts) = file.read_bytes(), forging.taken_apart(file.read_bytes(), MODEL)
    step = facts["steps"][0]
    wide = {name: np.append(tensors[f"0/{name}"], 1.0) for name in ("mean_", "var_", "scale_")}
    for change in (
        {"steps": [{**step, "transformer": "os.system"}]},
        {"steps": [{**step, "features": 3}]},
        {"steps": [{**step, "framewise": 1}]},
        {"steps": [{**step, "name": "a__b"}]},
        {"steps": [{**step, "name": facts["name"]}]},
        {"steps": [step, step]},
        {"steps": []},
        {"steps": [step] * 200},
        {"steps": "StandardScaler"},
        {"steps": [3]},
        {"name": 3},
        {"model": None},
        {"model": {**facts["model"], "features": 3}},
        {"model": {**facts["model"], "estimator": "Pipeline"}},
        {"estimator": "ESNClassifier"},
    ):
        file.write_bytes(content)
        change_facts(file, **change)
        with pytest.raises(ModelFileError):
            echolearn.load(file)
    for arrays in (
        {"0/mean_": None},
        {"1/mean_": tensors["0/mean_"]},
        {"mean_": tensors["0/mean_"]},
        {"model/extra": tensors["0/mean_"]},
        {"model/U": None},
        {"0/scale_": -tensors["0/scale_"]},
        {"0/scale_": np.full_like(tensors["0/scale_"], np.nan)},
    ):
        file.write_bytes(content)
        change_arrays(file, **arrays)
        with pytest.raises(ModelFileError):
            echolearn.load(file)
    file.write_bytes(content)
    change_arrays(file, **{f"0/{name}": value for name, value in wide.items()})
    change_facts(file, steps=[{**step, "features": 3}])
    with pytest.raises(ModelFileError, match="the network takes 2 features; the steps give 3"):
        echolearn.load(file)


def test_every_truncation_and_many_flipped_bytes_are_refused(file):
    content = file.read_bytes()
    for length in [*range(0, len(content), 29), len(content) - 1]:
        file.write_bytes(content[:length])
        with pytest.raises(ModelFileError):
            echolearn.load(file)
    rng, refused = np.random.default_rng(0), 0
    for place in rng.integers(0, len(content), 300):
        spoiled = bytearray(content)
        spoiled[place] ^= 0x20
        file.write_bytes(spoiled)
        try:
            echolearn.load(file)
        except ModelFileError:
            refused += 1
    assert refused > 0.95 * 300
