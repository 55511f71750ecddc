"""Tests of one fit: its errors, its time and memory, and its origin."""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from echolearn import ESNClassifier, __version__
from echolearn.paper import fits
from echolearn.paper.fits import (
    FitResult,
    confusion_counts,
    measured_fit,
    peak_memory,
    planned_epochs,
    warnings_as_notes,
    with_errors,
)
from echolearn.paper.parts import CorpusParts
from echolearn.speech import Corpus, open_corpus
from smallcorpus import arrays, write


def test_the_result_describes_the_fitted_network(corpus: Corpus, tmp_path: Path) -> None:
    parts = CorpusParts.load(corpus)
    network = ESNClassifier(6, epochs=2, random_state=0)
    epochs: list[int] = []

    def on_epoch(row: dict[str, float]) -> None:
        epochs.append(int(row["epoch"]))

    fit = measured_fit(network, parts, tmp_path / "checkpoint", on_epoch=on_epoch, note=lambda text: None)
    result = with_errors(network, parts, fit)
    assert epochs == [1, 2]
    assert result["epochs"] == len(result["history"]) == 2
    assert result["settings"]["hidden_units"] == 6
    assert abs(1 - network.score(*parts.test) - result["test_error"]) < 1e-12
    assert sum(map(sum, result["confusion"])) == sum(map(len, parts.test[1]))


def parts_of(folder: Path, name: str, labels: np.ndarray, *new_states: str) -> CorpusParts:
    """Return the parts of the small corpus with other labels."""
    names = np.array([*arrays()["state_names"], *new_states])
    return CorpusParts.load(open_corpus(f"features:{write(folder / f'{name}.npz', labels=labels, state_names=names)}"))


def frames_of(part: str) -> np.ndarray:
    """Return the rows of the small corpus that belong to a part."""
    given = arrays()
    return np.flatnonzero(np.repeat(given["split"], given["lengths"]) == part)


def fitted(network: ESNClassifier, parts: CorpusParts, folder: Path) -> FitResult:
    fit = measured_fit(network, parts, folder, on_epoch=lambda row: None, note=lambda text: None)
    return with_errors(network, parts, fit)


@pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorFitWarning")
@pytest.mark.parametrize(
    "draw",
    [
        lambda: ESNClassifier.paper(6, epochs=4, random_state=0),
        lambda: ESNClassifier(6, epochs=4, random_state=0),
        lambda: ESNClassifier(6, learn="none", random_state=0),
    ],
    ids=["paper", "ours", "esn_ours"],
)
def test_a_fit_is_stopped_and_chosen_on_the_validation_part_and_never_on_the_test_part(
    tmp_path: Path, draw: Callable[[], ESNClassifier]
) -> None:
    """Other labels of the test part change nothing but its error; other labels of the validation part are noticed."""
    found = {}
    for name in ("none", "test", "valid"):
        labels = arrays()["labels"].copy()
        if name != "none":
            rows = frames_of(name)
            labels[rows] = np.random.default_rng(0).permutation(labels[rows])
        network = draw()
        found[name] = network, fitted(network, parts_of(tmp_path, name, labels), tmp_path / name)
    (_, base), (same, on_test), (_, on_valid) = found.values()
    for row, again in zip(base["history"], on_test["history"], strict=True):
        assert {**row, "seconds": 0} == {**again, "seconds": 0}
    for weights in ("input_weights_", "recurrent_weights_", "readout_weights_"):
        before, after = (getattr(network, weights) for network in (found["none"][0], same))
        dense = (w.toarray() if hasattr(w, "toarray") else w for w in (before, after))
        np.testing.assert_array_equal(*dense)
    assert on_test["valid_error"] == base["valid_error"]
    assert on_test["test_error"] > base["test_error"]
    assert on_valid["valid_error"] > base["valid_error"]
    if base["history"]:
        assert [row["valid_error"] for row in base["history"]] != [row["valid_error"] for row in on_valid["history"]]


def test_frames_of_states_without_training_frames_are_counted_and_wrong(tmp_path: Path) -> None:
    labels = arrays()["labels"].copy()
    for part in ("valid", "test"):
        labels[frames_of(part)[::3]] = 9  # zh_s2, which no training frame has
    parts = parts_of(tmp_path, "unseen", labels, "zh_s2")
    network = ESNClassifier(6, learn="none", readout="ridge", random_state=0)
    result = fitted(network, parts, tmp_path / "checkpoint")
    for part, error in (("valid", result["valid_error"]), ("test", result["test_error"])):
        X, y = getattr(parts, part)
        spoken, recognised = np.concatenate(y), np.concatenate(network.predict(X))
        unseen = spoken == "zh_s2"
        assert 0.3 < unseen.mean() < 0.4
        wrong = int((spoken[~unseen] != recognised[~unseen]).sum())
        assert error == pytest.approx((wrong + unseen.sum()) / len(spoken))
        assert error > wrong / (~unseen).sum()  # what it would be without those frames
    assert sum(map(sum, result["confusion"])) == len(frames_of("test"))


def test_networks_that_do_not_learn_have_no_epochs() -> None:
    assert planned_epochs(ESNClassifier(learn="none"), 10) == 0
    assert planned_epochs(ESNClassifier(epochs=7), 10) == 7
    assert planned_epochs(ESNClassifier(), 10) > 0


def test_confusions_by_hand() -> None:
    spoken = np.array(["aa_s2", "aa_s3", "b_s2", "b_s2"])
    recognised = np.array(["aa_s4", "b_s2", "b_s3", "b_s2"])
    assert confusion_counts(spoken, recognised, ("aa", "b")).tolist() == [[1, 1], [0, 2]]


def test_every_warning_becomes_one_note() -> None:
    notes: list[str] = []
    with warnings_as_notes(notes.append):
        warnings.warn("careful", stacklevel=1)
    assert notes == ["note: careful"]


def test_peak_memory_contains_what_was_allocated() -> None:
    with peak_memory() as peak:
        before = peak()
        block = np.ones(40_000_000, np.uint8)
        after = peak()
        del block
    assert before is not None
    assert after is not None
    assert after >= before
    assert after > 40


@pytest.mark.parametrize("epochs", [[], [100.0, 101.0]])
def test_the_seconds_of_a_resumed_fit_include_those_of_earlier_runs(epochs: list[float], tmp_path: Path) -> None:
    """The first epoch reports 100 s in all; where none is left to do, the history of the earlier run tells."""

    class Resumed(ESNClassifier):
        history_: ClassVar = [{"seconds": 98.0}, {"seconds": 100.0}]

        def fit(self, *train: object, callback: Any, **options: object) -> None:
            for seconds in epochs:
                callback({"seconds": seconds})

        def get_params(self, deep: bool) -> dict[str, object]:
            return {}

    (tmp_path / "state").write_text("")
    parts = CorpusParts(([], []), ([], []), ([], []), ([], []), (), "", ())
    measured = measured_fit(Resumed(), parts, tmp_path, on_epoch=lambda row: None, note=print)
    assert measured["seconds"] == pytest.approx(100, abs=5)


def test_versions_commit_and_threads() -> None:
    found = fits.made_with()
    assert found["echolearn"] == __version__
    assert found["threads"] >= 1
    assert found["commit"] is None or len(found["commit"].rstrip("+")) == 40


def commit_where(monkeypatch: pytest.MonkeyPatch, answer: Any) -> str | None:
    monkeypatch.setattr(subprocess, "run", answer)
    return fits.source_commit.__wrapped__()


def test_changes_are_marked_and_other_repositories_are_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"ls-files": "__init__.py", "rev-parse": "abc", "status": ""}

    def git(command: list[str], **_: Any) -> Any:
        assert Path(command[2]).name == "echolearn"
        return subprocess.CompletedProcess(command, 0, stdout=answers[command[3]] + "\n")

    assert commit_where(monkeypatch, git) == "abc"
    answers["status"] = " M src/echolearn/x.py"
    assert commit_where(monkeypatch, git) == "abc+"
    answers["ls-files"] = ""
    assert commit_where(monkeypatch, git) is None


def test_without_git_there_is_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError("git")

    assert commit_where(monkeypatch, missing) is None
