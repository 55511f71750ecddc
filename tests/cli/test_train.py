"""Tests of the commands `train`, `evaluate` and `align`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from echolearn import DeepESNClassifier, ESNClassifier, load
from echolearn.cli.evaluate import part_errors
from echolearn.cli.predict import open_state_network, recipe_of
from echolearn.cli.train import fit_and_save, missing_words, networks_of
from echolearn.speech import Corpus, read_mlf
from echolearn.speech._feature_recipe import FeatureRecipe
from echolearn.speech.recognition import Lexicon
from smallcorpus import STATES
from speechfiles import write_sample
from toys import grouped

Run = Callable[..., Result]
Refused = Callable[..., str]


@pytest.fixture(scope="module")
def model(run: Run, corpus: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "net.safetensors"
    result = run("train", "--out", path, "--corpus", corpus, "--units", 15, "--epochs", 2, "--set", "leak=[0.2, 1.0]")
    assert result.exit_code == 0, result.output
    return path


def test_train_evaluate_predict_info(run: Run, corpus: str, model: Path, tmp_path: Path) -> None:
    assert not list(model.parent.glob("*.checkpoint"))
    assert "state error: test" in run("evaluate", model, "--corpus", corpus).output
    numbers = json.loads(run("evaluate", model, "--corpus", corpus, "--part", "valid", "--json").output)
    assert 0 < numbers["valid_error"] < 1
    assert numbers["phone_error"] <= numbers["valid_error"]
    assert run("predict", model, "--corpus", corpus, "--out", tmp_path / "x.mlf").exit_code == 0
    assert (tmp_path / "x.mlf").read_text().startswith('#!MLF!#\n"*/u05.lab"\n0 ')
    assert run("predict", model, "--corpus", corpus, "--out", tmp_path / "x.npz").exit_code == 0
    with np.load(tmp_path / "x.npz", allow_pickle=False) as stored:
        np.testing.assert_allclose(stored["posteriors"].sum(axis=1), 1, rtol=1e-5)
        assert stored["lengths"].sum() == len(stored["posteriors"])
        assert set(stored["state_names"]) <= set(STATES)
    described = run("info", model).output
    assert "15 hidden units" in described
    assert "leak=(0.2, 1.0)" in described


def test_align_writes_the_labels_of_every_utterance(run: Run, corpus: str, tmp_path: Path) -> None:
    assert run("align", "--corpus", corpus, "--out", tmp_path / "a.mlf").exit_code == 0
    assert (tmp_path / "a.mlf").read_text().count('.lab"') == 24


def test_mistakes_on_the_command_line_are_reported(refused: Refused, corpus: str, model: Path, tmp_path: Path) -> None:
    assert "expected synthetic" in refused("info", "--corpus", "timmit:/x")
    assert "no such folder" in refused("info", "--corpus", f"timit:{tmp_path / 'none'}")
    assert "100,500" in refused("table1", "--units", "ten")
    assert "expected some of esn" in refused("table1", "--columns", "esm", "--corpus", corpus)
    assert "name=value" in refused("train", "--out", tmp_path / "m", "--corpus", corpus, "--set", "leak")
    words = ("train", "--corpus", corpus, "--out")
    assert "did you mean spectral_radius?" in refused(*words, tmp_path / "m", "--set", "spectral_radus=1")
    assert "its folder does not exist" in refused(*words, tmp_path / "none" / "m")
    header = refused(*words, tmp_path / "m.h")
    assert "expected an ending such as" in header
    assert "epoch" not in header  # before the fit
    assert ".mlf or .npz" in refused("predict", model, "--corpus", corpus, "--out", tmp_path / "x.txt")
    assert "no model file" in refused("evaluate", tmp_path / "none", "--corpus", corpus)
    (tmp_path / "junk").write_bytes(b"junk")
    assert "is a text file" in refused("evaluate", tmp_path / "junk", "--corpus", corpus)
    (tmp_path / "junk").write_bytes(bytes(range(100)))
    assert "damaged" in refused("evaluate", tmp_path / "junk", "--corpus", corpus)
    missing = refused("predict", model, tmp_path / "a.wav", tmp_path / "b.wav", "--out", tmp_path / "x.mlf")
    assert "a.wav" in missing
    assert "b.wav" in missing


def test_the_alignment_has_the_labels_of_the_corpus(opened: Corpus, tmp_path: Path) -> None:
    opened.write_mlf(tmp_path / "a.mlf")
    first = next(iter(read_mlf(tmp_path / "a.mlf").values()))
    frames = [segment.name for segment in first for _ in range(round(100 * (segment.end - segment.start)))]
    assert frames == [opened.state_names[label] for label in opened.labels[0]]


class Killed(Exception):
    """Ends a fit in the middle."""


class Progress:
    """Remembers notes, and the planned and the finished epochs; kills the fit after so many epochs of all networks."""

    def __init__(self, kill_after: int | None = None) -> None:
        self.kill_after = kill_after
        self.notes: list[str] = []
        self.planned: list[int] = []
        self.epochs: list[float] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def start(self, epochs: int) -> None:
        self.planned.append(epochs)

    def epoch(self, row: dict[str, float]) -> None:
        self.epochs.append(row["epoch"])
        if len(self.epochs) == self.kill_after:
            raise Killed


@pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorFitWarning")
@pytest.mark.parametrize(("settings", "epochs"), [({"epochs": 2}, [1, 2]), ({"learn": "none"}, [])])
def test_training_saves_the_network_and_leaves_no_checkpoint(
    opened: Corpus, tmp_path: Path, settings: dict[str, object], epochs: list[int]
) -> None:
    progress = Progress()
    network = ESNClassifier(5, readout="ridge", random_state=0, **grouped(settings))
    result = fit_and_save(opened, {"esn": network}, tmp_path / "m.safetensors", progress)
    assert progress.planned == [len(epochs)]
    assert progress.epochs == epochs
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]
    evaluation = part_errors(open_state_network(tmp_path / "m.safetensors"), opened, "test")
    assert evaluation["test_error"] == pytest.approx(result["test_error"])
    assert evaluation["phone_error"] == pytest.approx(1 - np.trace(result["confusion"]) / np.sum(result["confusion"]))


Candidates = dict[str, ESNClassifier | DeepESNClassifier]


def candidates(esn_units: int = 6, deep_epochs: int = 3) -> Candidates:
    """Return two small networks, one of which may be bad."""
    return {
        "esn": ESNClassifier(esn_units, epochs=2, readout="ridge"),
        "deep": DeepESNClassifier(8, 2, epochs=deep_epochs),
    }


@pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorFitWarning")
@pytest.mark.parametrize(("esn_units", "deep_epochs", "kept"), [(40, 1, "esn"), (1, 40, "deep")])
def test_the_network_with_the_smaller_error_on_valid_is_kept(
    opened: Corpus, tmp_path: Path, esn_units: int, deep_epochs: int, kept: str
) -> None:
    progress, both = Progress(), candidates(esn_units, deep_epochs)
    result = fit_and_save(opened, both, tmp_path / "m", progress)
    errors = {kind: part_errors(network, opened, "valid")["valid_error"] for kind, network in both.items()}
    assert min(errors, key=lambda kind: errors[kind]) == kept
    assert result["valid_error"] == errors[kept]
    one, several, name = (100 * errors["esn"], 100 * errors["deep"], {"esn": "network of one layer"}.get(kept))
    assert progress.notes[-1] == (
        f"state error on valid: network of one layer {one:.1f} %, deep network {several:.1f} %; "
        f"the {name or 'deep network'} is kept"
    )
    assert type(load(tmp_path / "m")) is type(both[kept])
    assert part_errors(open_state_network(tmp_path / "m"), opened, "test")["test_error"] == result["test_error"]
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorFitWarning")
@pytest.mark.parametrize("kill_after", [1, 2, 3, 4])
def test_no_network_is_lost_when_the_command_is_killed(opened: Corpus, tmp_path: Path, kill_after: int) -> None:
    """In the fit of the first network, between both, and in that of the second."""
    expected = Progress()
    fit_and_save(opened, candidates(), tmp_path / "whole", expected)
    with pytest.raises(Killed):
        fit_and_save(opened, candidates(), tmp_path / "m", Progress(kill_after))
    again = Progress()
    fit_and_save(opened, candidates(), tmp_path / "m", again)
    assert len(again.epochs) <= len(expected.epochs) - kill_after + 1
    assert again.notes == expected.notes
    X = [opened.features[k] for k in opened.which("valid")]
    for a, b in zip(load(tmp_path / "whole").predict_proba(X), load(tmp_path / "m").predict_proba(X), strict=True):
        np.testing.assert_array_equal(a, b)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "whole"]


def test_options_are_those_of_the_chosen_network() -> None:
    changes = {"epochs": 3, "random_state": 7, "learning": {"step_size": 0.1}}
    for kind, units in (("esn", None), ("esn", 20), ("auto", None), ("auto", 21)):
        found = networks_of(kind, units, changes)
        assert list(found) == (["esn", "deep"] if kind == "auto" else ["esn"])
        expected = ESNClassifier(units or ESNClassifier().hidden_units, **changes)
        assert found["esn"].get_params() == expected.get_params()
        if kind == "auto":
            assert found["deep"].get_params() == DeepESNClassifier(epochs=3, random_state=7).get_params()
    deep = {**changes, "layers": 3}
    assert networks_of("deep", 20, deep)["deep"].get_params() == DeepESNClassifier(20, **deep).get_params()
    assert networks_of("deep", None, {})["deep"].get_params() == DeepESNClassifier().get_params()
    paper = networks_of("esn", 20, {}, paper=True)["esn"]
    assert paper.get_params() == ESNClassifier.paper(20).get_params()


def test_a_deep_network_is_trained_evaluated_and_predicts(run: Run, corpus: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.safetensors"
    words = ("train", "--out", path, "--corpus", corpus, "--network", "deep", "--units", 8, "--epochs", 20)
    result = run(*words, "--set", "layers=2", "--set", "learning.batch_size=2")
    assert result.exit_code == 0, result.output
    described = run("info", path).output
    assert "DeepESNClassifier, 2 layers of 8 units" in described
    assert "learning={'batch_size': 2}" in described
    assert "state error: test" in run("evaluate", path, "--corpus", corpus).output
    assert run("predict", path, "--corpus", corpus, "--out", tmp_path / "x.mlf").exit_code == 0
    assert list(tmp_path.glob("*.checkpoint")) == []


def test_options_that_do_not_fit_the_network_are_refused(refused: Refused, corpus: str, tmp_path: Path) -> None:
    words = ("train", "--out", tmp_path / "m", "--corpus", corpus)
    deep = (*words, "--network", "deep")
    assert "leave out --network deep" in refused(*deep, "--paper")
    assert "an even whole number" in refused(*deep, "--units", 7)
    assert "spectral_radius" in refused(*deep, "--set", "spectral_radius=1")
    assert "dropout" in refused(*words, "--set", "dropout=0.1")
    assert "augment" in refused(*deep, "--set", "augment=none")
    assert "units" in refused(*deep, "--set", "units=8")
    for options in (deep, (*words, "--network", "auto"), (*words, "--for", "recognition")):
        assert "add --network esn" in refused(*options, "--scheduler", "tcp://127.0.0.1:9")
    # an ensemble of deep networks is fitted there: the address is tried
    ensemble = refused(*deep, "--set", "ensemble=2", "--scheduler", "nowhere")
    assert "expected 'dask', a scheduler's address" in ensemble


class _Silent:
    """Progress that nobody sees."""

    def note(self, text: str) -> None: ...
    def start(self, epochs: int) -> None: ...
    def epoch(self, row: object) -> None: ...


def test_a_trained_network_says_how_its_features_are_made(opened: Corpus, tmp_path: Path) -> None:
    """Otherwise recordings would be normalised per utterance, whatever the network was trained with."""
    scale = np.arange(39.0), np.arange(1.0, 40.0)
    spoken = replace(opened, recipe=FeatureRecipe(normalise="running", context=5, scale=scale))
    path = tmp_path / "model.safetensors"
    fit_and_save(spoken, {"esn": ESNClassifier(5, learn="none", readout="ridge")}, path, _Silent())
    found = recipe_of(path)
    assert (found.normalise, found.context) == ("running", 5)
    assert found.scale is not None
    np.testing.assert_array_equal(found.scale, scale)
    again = load(path)
    again.save(tmp_path / "copy.safetensors")
    assert recipe_of(tmp_path / "copy.safetensors").normalise == "running"
    again.fit(*fit_data(opened)).save(tmp_path / "new.safetensors")  # to data of unknown origin
    assert recipe_of(tmp_path / "new.safetensors").normalise == "utterance"


def test_errors_on_a_corpus_are_those_of_the_features_that_the_model_was_trained_with(run: Run, tmp_path: Path) -> None:
    """Features that are normalised otherwise, and labels that are aligned with them, have other errors."""
    given = ("--corpus", f"timit:{write_sample(tmp_path / 'timit', sentences=3)}", "--cache", tmp_path / "cache")
    model = tmp_path / "net.safetensors"
    trained = run("train", *given, "--normalise", "running", "--out", model, "--units", 5, "--epochs", 1).output
    own = run("evaluate", model, *given).output
    assert own == run("evaluate", model, *given, "--normalise", "running").output
    assert own.splitlines()[0] in trained
    assert own != run("evaluate", model, *given, "--normalise", "utterance").output
    states = []
    for chosen in ((), ("--normalise", "running"), ("--normalise", "utterance")):
        out = tmp_path / f"x{len(states)}.mlf"
        assert run("predict", model, *given, *chosen, "--out", out).exit_code == 0
        states.append(out.read_text())
    assert states[0] == states[1] != states[2]


def test_a_network_of_ready_features_says_nothing(opened: Corpus, tmp_path: Path) -> None:
    fit_and_save(opened, {"esn": ESNClassifier(5, learn="none", readout="ridge")}, tmp_path / "m", _Silent())
    assert load(tmp_path / "m").recipe_ is None


@pytest.mark.parametrize("damaged", [{"audio": 1}, {"context": 2}, {"normalise": "no"}, {"scale": [[1.0], [2.0, 3.0]]}])
def test_a_damaged_recipe_is_refused(damaged: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="does not say how its features are made"):
        FeatureRecipe.from_facts({**FeatureRecipe().facts(), **damaged})


def fit_data(corpus: Corpus) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the training part with the names of its states."""
    X, y = corpus.part("train")
    return list(X), [np.array(corpus.state_names)[labels] for labels in y]


def test_words_that_a_lexicon_lacks_are_named() -> None:
    lexicon = Lexicon({"go": (("g", "ow"),), "left": (("l", "eh", "f", "t"),)})
    assert missing_words(lexicon, [("go", "left"), (), ("left",)]) == ""
    one = missing_words(lexicon, [("go", "right"), ("right", "left")])
    assert one.startswith("note: the lexicon lacks 1 of the 3 words in the transcripts (right). They cannot")
    assert "(b, c, d, e, f, ...). They" in missing_words(lexicon, [tuple("bcdefg")])
