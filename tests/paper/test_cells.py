"""Tests of fitted cells on disk."""

from __future__ import annotations

import json
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import toys
from echolearn import ESNClassifier, __version__
from echolearn.paper import cells
from echolearn.paper.cells import (
    CellStore,
    FitResult,
    confusion_counts,
    fit_and_test,
    fit_fingerprint,
    peak_memory,
    planned_epochs,
    timed_fit,
    warnings_as_notes,
)
from echolearn.paper.parts import CorpusParts
from echolearn.speech import Corpus, open_corpus
from smallcorpus import arrays, write

RESULT: Any = {"test_error": 0.5, "fingerprint": "f"}


@pytest.fixture(scope="module")
def network() -> ESNClassifier:
    X, _ = toys.echoes(sequences=4)
    _, y = toys.labels(sequences=4)
    return ESNClassifier(5, learn="none", readout="ridge", random_state=0).fit(X, y)


def test_a_saved_cell_is_found_and_its_checkpoints_are_gone(tmp_path: Path, network: ESNClassifier) -> None:
    store = CellStore(tmp_path, print)
    store.checkpoint("a", "f").mkdir()
    store.save("a", RESULT, network)
    assert store.find("a", "f") == RESULT
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "a.safetensors"]
    assert store.load_model("a").hidden_units == 5


def test_a_cell_of_an_earlier_version_without_checksum_is_found(tmp_path: Path, network: ESNClassifier) -> None:
    store = CellStore(tmp_path, print)
    store.save("a", RESULT, network)
    (tmp_path / "a.json").write_text(json.dumps(RESULT))
    assert store.find("a", "f") == RESULT


def test_a_cell_that_does_not_fit_is_not_found_and_the_reason_is_given(tmp_path: Path, network: ESNClassifier) -> None:
    notes: list[str] = []
    store = CellStore(tmp_path, notes.append)
    assert store.find("a", "f") is None
    assert notes == []
    store.save("a", RESULT, network)
    assert store.find("a", "another") is None
    assert "other settings or another corpus" in notes[-1]
    (tmp_path / "a.json").write_text((tmp_path / "a.json").read_text().replace("0.5", "0.4"))
    assert store.find("a", "f") is None
    assert "is damaged" in notes[-1]


def test_a_cell_without_its_model_file_is_not_found(tmp_path: Path, network: ESNClassifier) -> None:
    store = CellStore(tmp_path, lambda text: None)
    store.save("a", RESULT, network)
    store.model_path("a").unlink()
    assert store.find("a", "f") is None


def test_removed_cells_leave_nothing_behind(tmp_path: Path, network: ESNClassifier) -> None:
    store = CellStore(tmp_path, print)
    store.save("a", RESULT, network)
    store.checkpoint("a", "f").mkdir()
    store.remove(["a", "b"])
    assert list(tmp_path.iterdir()) == []


def test_the_fingerprint_depends_on_settings_and_corpus() -> None:
    found = {fit_fingerprint(ESNClassifier(n), corpus) for n in (5, 6) for corpus in ("a", "b")}
    assert len(found) == 4
    assert fit_fingerprint(ESNClassifier(5), "a") in found


def test_the_result_describes_the_fitted_network(corpus: Corpus, tmp_path: Path) -> None:
    parts = CorpusParts.load(corpus)
    network = ESNClassifier(6, epochs=2, random_state=0)
    epochs: list[int] = []
    result = fit_and_test(
        network,
        parts,
        tmp_path / "checkpoint",
        on_epoch=lambda row: epochs.append(int(row["epoch"])),
        note=lambda text: None,
    )
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
    return fit_and_test(network, parts, folder, on_epoch=lambda row: None, note=lambda text: None)


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

    class Resumed:
        history_: ClassVar = [{"seconds": 98.0}, {"seconds": 100.0}]

        def fit(self, *train: object, callback: Any, **options: object) -> None:
            for seconds in epochs:
                callback({"seconds": seconds})

    (tmp_path / "state").write_text("")
    measured = timed_fit(Resumed(), ([], []), ([], []), tmp_path, on_epoch=lambda row: None, note=print)  # type: ignore[arg-type]
    assert measured["seconds"] == pytest.approx(100, abs=5)


def test_versions_commit_and_threads() -> None:
    found = cells.made_with()
    assert found["echolearn"] == __version__
    assert found["threads"] >= 1
    assert found["commit"] is None or len(found["commit"].rstrip("+")) == 40


def commit_where(monkeypatch: pytest.MonkeyPatch, answer: Any) -> str | None:
    monkeypatch.setattr(subprocess, "run", answer)
    return cells.source_commit.__wrapped__()


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
