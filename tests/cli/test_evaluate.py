"""Tests of the command `evaluate`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from echolearn import ESNClassifier
from echolearn.cli.evaluate import errors_text, part_errors
from echolearn.speech import Corpus, open_corpus
from smallcorpus import arrays, write


def test_an_evaluation_counts_frames(opened: Corpus, network: ESNClassifier) -> None:
    result = part_errors(network, opened, "test")
    names = np.array(opened.state_names)
    X, y = opened.part("test")
    assert result["frames"] == sum(map(len, y))
    assert result["test_error"] == pytest.approx(1 - network.score(list(X), [names[labels] for labels in y]))
    assert result["phone_error"] <= result["test_error"]
    assert all(c["spoken"] != c["recognised"] for c in result["confused"])
    counts = [c["frames"] for c in result["confused"]]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == round(result["phone_error"] * result["frames"])  # three phones have only six confusions


def test_the_phone_error_counts_frames_of_another_phone(opened: Corpus, network: ESNClassifier) -> None:
    result = part_errors(network, opened, "test")
    X, y = opened.part("test")
    spoken = [opened.state_names[label] for labels in y for label in labels]
    recognised = np.concatenate(network.predict(list(X))).tolist()
    phones = [(a.split("_")[0], b.split("_")[0]) for a, b in zip(spoken, recognised, strict=True)]
    wrong = sum(a != b for a, b in phones)
    states = sum(a != b for a, b in zip(spoken, recognised, strict=True))
    assert 0 < wrong < states  # some frames have the right phone and the wrong state
    assert result["phone_error"] == pytest.approx(wrong / len(spoken))
    assert result["test_error"] == pytest.approx(states / len(spoken))
    text = f"phone error by frame, 3 phones of the corpus: {100 * wrong / len(spoken):.1f} %, {len(spoken)} frames"
    assert text in errors_text(result)
    assert f"state error: test {100 * states / len(spoken):.1f} %" in errors_text(result)


def test_an_evaluation_counts_frames_of_states_that_the_model_does_not_know(
    network: ESNClassifier, tmp_path: Path
) -> None:
    given = arrays()
    rows = np.flatnonzero(np.repeat(given["split"], given["lengths"]) == "test")
    labels, names = given["labels"].copy(), np.array([*given["state_names"], "zh_s2"])
    labels[rows[::4]] = 9
    other = open_corpus(f"features:{write(tmp_path / 'x.npz', labels=labels, state_names=names)}")
    result = part_errors(network, other, "test")
    recognised = np.concatenate(network.predict([other.features[k] for k in other.which("test")]))
    spoken = names[labels[rows]]
    known = spoken != "zh_s2"
    wrong = int((spoken != recognised)[known].sum())
    assert result["states_unknown_to_the_model"] == ["zh_s2"]
    assert result["frames"] == len(rows)
    assert result["test_error"] == pytest.approx((wrong + (~known).sum()) / len(rows))
    assert result["phone_error"] >= (~known).mean()
    assert "states unknown to the model: zh_s2" in errors_text(result)


def test_the_json_of_an_evaluation_has_the_names_of_earlier_versions(opened: Corpus, network: ESNClassifier) -> None:
    content = json.loads(json.dumps(part_errors(network, opened, "valid")))
    assert list(content) == [
        "corpus",
        "synthetic",
        "part",
        "frames",
        "valid_error",
        "phone_error",
        "phones",
        "states_unknown_to_the_model",
        "confused",
    ]
    assert list(content["confused"][0]) == ["spoken", "recognised", "frames"]


@pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorFitWarning")
def test_a_network_that_knows_no_state_of_the_corpus_is_refused(opened: Corpus) -> None:
    X, y = opened.part("train")
    other = ESNClassifier(5, learn="none", readout="ridge", random_state=0)
    other.fit(list(X), [np.array([f"other_s{label % 3 + 2}" for label in labels]) for labels in y])
    with pytest.raises(ValueError, match="knows none of the corpus's states: it knows other_s2, the corpus has aa_s2"):
        part_errors(other, opened, "test")


class Answers:
    """A model that answers as the corpus is labelled, except for one frame of one utterance."""

    def __init__(self, corpus: Corpus, part: str, answer: str):
        names = np.array(corpus.state_names)
        self.classes_ = names
        self.given = [names[corpus.labels[k]] for k in corpus.which(part)]
        self.given[1][3] = answer

    def predict(self, X: object) -> list[np.ndarray]:
        return self.given


@pytest.mark.parametrize(("same_phone", "phones"), [(True, 0), (False, 1)])
def test_one_wrong_frame_is_counted_and_shown(opened: Corpus, same_phone: bool, phones: int) -> None:
    spoken = opened.state_names[opened.labels[opened.which("valid")[1]][3]]
    phone = spoken.split("_")[0]
    answer = next(s for s in opened.state_names if s != spoken and s.startswith(f"{phone}_") == same_phone)
    result = part_errors(Answers(opened, "valid", answer), opened, "valid")  # type: ignore[arg-type]
    assert result["valid_error"] == pytest.approx(1 / result["frames"])
    assert result["phone_error"] == pytest.approx(phones / result["frames"])
    wanted = [] if same_phone else [{"spoken": phone, "recognised": answer.split("_")[0], "frames": 1}]
    assert result["confused"] == wanted
    assert (result["corpus"], result["synthetic"], result["part"]) == (opened.name, False, "valid")
    assert result["states_unknown_to_the_model"] == []
