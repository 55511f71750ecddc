"""`echolearn predict` and `echolearn info` of any saved estimator."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import echolearn
import toyspeech
from echolearn import (
    DeepESNClassifier,
    DeepESNRegressor,
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    FrameWise,
    SeriesClassifier,
)
from echolearn.cli.corpora import part_features
from echolearn.cli.predict import audio_features, open_state_network, write_predictions
from echolearn.exceptions import CorpusError
from echolearn.speech import Corpus, read_mlf
from echolearn.speech._feature_recipe import FeatureRecipe
from smallcorpus import STATES
from toys import grouped

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(RNG.normal(size=(90, 2)).round(6), columns=["heat", "load"])
IDS = RNG.permutation(np.repeat(["north", "south", "west"], 30))  # rows of three sequences, mixed
SEQUENCES = {name: TABLE[name == IDS].to_numpy() for name in dict.fromkeys(IDS)}
TARGETS = np.stack([TABLE["heat"], -TABLE["load"]], axis=1)
FIXED = {"learn": "none", "readout": "ridge"}
LISTED = [TABLE[k : k + 15].to_numpy() for k in range(0, 90, 15)]
MODELS = {
    "classifier": ESNClassifier(8, **grouped(FIXED)).fit(TABLE, np.where(TABLE["heat"] > 0, "up", "down")),
    "regressor": ESNRegressor(8, learn="none").fit(TABLE, TARGETS[:, 0]),
    "two values": ESNRegressor(8, learn="none").fit(TABLE, TARGETS),
    "series": SeriesClassifier(8).fit(LISTED, [1, 2] * 3),
    "several layers": DeepESNRegressor(6, 2, epochs=2).fit(TABLE, TARGETS[:, 0]),
    "pipeline": make_pipeline(FrameWise(StandardScaler()), ESNRegressor(8, learn="none")).fit(TABLE, TARGETS[:, 0]),
}


@pytest.fixture
def saved(tmp_path):
    """Return a function that saves a model and returns its path."""

    def save(model):
        echolearn.save(model, tmp_path / "model.safetensors")
        return tmp_path / "model.safetensors"

    return save


@pytest.fixture
def table(tmp_path):
    TABLE.assign(site=IDS)[["load", "site", "heat"]].to_csv(tmp_path / "frames.csv", index=False)
    return tmp_path / "frames.csv"


def rows_of(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def answered(run, *arguments):
    done = run("predict", *arguments)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("kind", ["classifier", "regressor", "two values", "several layers"])
def test_one_answer_per_row_with_columns_found_by_name(run, saved, table, kind):
    assert "90 answers, one per step; 1 sequence)" in answered(run, saved(MODELS[kind]), table)
    rows = rows_of(table.with_name("frames-predictions.csv"))
    expected = np.asarray(MODELS[kind].predict(TABLE)).reshape(90, -1)
    found = np.array([list(row.values()) for row in rows])
    if kind == "classifier":
        assert found.tolist() == expected.tolist()
    else:
        np.testing.assert_allclose(found.astype(float), expected, rtol=1e-6)


def test_columns_without_names_are_taken_in_their_order(run, saved, tmp_path):
    TABLE.to_csv(tmp_path / "a.csv", index=False, header=False)
    path, out = saved(MODELS["pipeline"]), tmp_path / "out.csv"
    answered(run, path, tmp_path / "a.csv", "--out", out)
    expected = echolearn.load(path).predict(TABLE.to_numpy())
    np.testing.assert_allclose([float(row["prediction"]) for row in rows_of(out)], expected, rtol=1e-6)
    output = answered(run, saved(MODELS["regressor"]), tmp_path / "a.csv", "--out", out)
    assert "No column has a name of the fit (heat, load): they were taken in their order." in output


def test_sequences_are_separated_by_a_column(run, saved, table, tmp_path):
    out = tmp_path / "out.csv"
    printed = answered(run, saved(MODELS["classifier"]), table, "--id", "site", "--out", out, "--probabilities")
    assert "90 answers, one per step; 3 sequences)" in printed
    rows = rows_of(out)
    assert [row["site"] for row in rows] == IDS.tolist()
    for name, x in SEQUENCES.items():
        own = [row for row in rows if row["site"] == name]
        assert [row["prediction"] for row in own] == MODELS["classifier"].predict([x])[0].tolist()
        P = MODELS["classifier"].predict_proba([x])[0]
        np.testing.assert_allclose([float(row["probability_up"]) for row in own], P[:, 1], atol=1e-5)
    output = answered(run, saved(MODELS["series"]), table, "--id", "site", "--out", out)
    assert "3 answers, one per sequence" in output
    expected = MODELS["series"].predict([x[:, ::-1] for x in SEQUENCES.values()])  # without names, by position
    assert {row["site"]: int(row["prediction"]) for row in rows_of(out)} == dict(zip(SEQUENCES, expected, strict=True))

    assert "the whole file was taken as one" in answered(run, saved(MODELS["series"]), table, "--out", out)


def test_files_of_arrays(run, saved, tmp_path):
    path, out = saved(MODELS["series"]), tmp_path / "out.csv"
    np.save(tmp_path / "stack.npy", np.stack(LISTED))
    answered(run, path, tmp_path / "stack.npy", "--out", out)
    assert [int(row["prediction"]) for row in rows_of(out)] == MODELS["series"].predict(LISTED).tolist()
    np.savez(tmp_path / "named.npz", first=LISTED[0], second=LISTED[1])
    answered(run, path, tmp_path / "named.npz", "--out", out)
    assert [row["sequence"] for row in rows_of(out)] == ["first", "second"]
    np.save(tmp_path / "one.npy", TABLE.to_numpy())
    answered(run, saved(MODELS["regressor"]), tmp_path / "one.npy", "--out", out)
    expected = MODELS["regressor"].predict(TABLE.to_numpy())
    np.testing.assert_allclose([float(row["prediction"]) for row in rows_of(out)], expected, rtol=1e-6)


def test_what_cannot_be_predicted_is_refused(run, refused, saved, table, tmp_path):
    path = saved(MODELS["regressor"])
    TABLE[["load"]].to_csv(tmp_path / "part.csv", index=False)
    assert "has no column heat; expected the features of the fit: heat, load" in refused(
        "predict", path, tmp_path / "part.csv"
    )
    pd.DataFrame(RNG.normal(size=(9, 3)), columns=list("abc")).to_csv(tmp_path / "wide.csv", index=False)
    assert "3 columns of numbers (a, b, c); the model takes 2 features: heat, load" in refused(
        "predict", path, tmp_path / "wide.csv"
    )
    assert "has no column 'plant'; it has load, site, heat" in refused("predict", path, table, "--id", "plant")
    assert "answers with values, which have none" in refused("predict", path, table, "--probabilities")
    assert "expected a name that ends in .csv" in refused("predict", path, table, "--out", tmp_path / "a.mlf")
    assert "expected one table" in refused("predict", path, table, table)
    assert "no corpus is given" in refused("predict", path)
    assert "is not a network for phone states" in refused("predict", path, "--corpus", "synthetic")
    np.save(tmp_path / "flat.npy", np.zeros(5))
    assert "of shape (5,); expected numbers of shape (steps, 2)" in refused("predict", path, tmp_path / "flat.npy")
    (tmp_path / "text.npz").write_text("a,b")
    assert "is not a .npz file of numbers" in refused("predict", path, tmp_path / "text.npz")
    forecaster = saved(ESNForecaster(8, learn="none").fit(np.sin(np.arange(200) / 5)))
    assert "is a forecaster, which continues a series" in refused("predict", forecaster, table)
    assert not (tmp_path / "frames-predictions.csv").exists()


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        ("classifier", ["ESNClassifier, 8 hidden units, 2 features (heat, load), 2 classes (down, up)", "per step"]),
        ("two values", ["ESNRegressor, 8 hidden units", "2 values, one answer per step", "ridge regression, ridge "]),
        ("series", ["2 classes (1, 2), one answer per sequence", "other than the defaults: hidden_units=8"]),
        ("several layers", ["DeepESNRegressor, 2 layers of 6 units, 2 features (heat, load)"]),
        ("pipeline", ["pipeline of StandardScaler, ESNRegressor; 2 features", "network: ESNRegressor, 8 hidden units"]),
    ],
)  # fmt: skip
def test_info_describes_every_saved_estimator(run, saved, kind, facts):
    path = saved(MODELS[kind])
    text = run("info", path).output
    for fact in facts:
        assert fact in text
    assert f"saved by echolearn {echolearn.__version__}; {path.stat().st_size:,} bytes, last changed 20" in text


def test_info_of_forecasters_matrices_and_recognisers(run, refused, saved, tmp_path):
    series = np.sin(np.arange(200) / 5)
    forecaster = ESNForecaster(8, learn="none", leak=np.full(8, 0.5)).fit(series)
    text = run("info", saved(forecaster)).output
    assert "forecasts of 1 value per step, method closed loop, no season" in text
    assert "leak=an array of shape (8,)" in text
    toyspeech.recognizer().save(tmp_path / "toy.safetensors")
    assert f"saved by echolearn {echolearn.__version__}" in run("info", tmp_path / "toy.safetensors").output
    (tmp_path / "frames.csv").write_text("a,b\n1,2\n")
    assert "is a text file (such as CSV) and not a model file" in refused("info", tmp_path / "frames.csv")


def test_the_network_of_a_recogniser_answers_frames(run, tmp_path):
    recognizer = toyspeech.recognizer()
    recognizer.save(tmp_path / "toy.safetensors")
    frames = RNG.normal(size=(20, recognizer.model.n_features_in_))
    np.save(tmp_path / "frames.npy", frames)
    answered(run, tmp_path / "toy.safetensors", tmp_path / "frames.npy")
    found = [row["prediction"] for row in rows_of(tmp_path / "frames-predictions.csv")]
    assert found == [str(label) for label in recognizer.model.predict(frames)]


def test_deep_networks_of_labels_are_described(run, saved):
    labels = np.where(TABLE["heat"] > 0, "up", "down")
    text = run("info", saved(DeepESNClassifier(6, 2, epochs=5, ensemble=2).fit(TABLE, labels))).output
    assert "2 classes (down, up)" in text
    assert "2 networks of 2 layers" in text


def test_a_network_of_another_kind_is_refused(tmp_path: Path) -> None:
    X = [np.random.default_rng(k).normal(size=(20, 2)) for k in range(3)]
    ESNRegressor(5, learn="none").fit(X, X).save(tmp_path / "r.safetensors")
    with pytest.raises(ValueError, match="is not a network for phone states"):
        open_state_network(tmp_path / "r.safetensors")


def test_predictions_are_written_as_labels_or_as_probabilities(
    opened: Corpus, network: ESNClassifier, tmp_path: Path
) -> None:
    names, X = part_features(opened, "test")
    write_predictions(network, names, X, tmp_path / "x.mlf")
    labels = read_mlf(tmp_path / "x.mlf")
    assert len(labels) == len(names)
    for segments, x in zip(labels.values(), X, strict=True):
        assert segments[-1].end == pytest.approx(len(x) / 100)
    write_predictions(network, names, X, tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz", allow_pickle=False) as stored:
        np.testing.assert_allclose(stored["posteriors"].sum(axis=1), 1, rtol=1e-5)
        assert stored["lengths"].tolist() == [len(x) for x in X]
        assert set(stored["state_names"]) <= set(STATES)


def test_audio_files_given_twice_or_missing_are_all_reported(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="is given twice") as caught:
        audio_features([tmp_path / "a.wav", tmp_path / "a.wav"], FeatureRecipe())
    assert len(caught.value.problems) == 3
