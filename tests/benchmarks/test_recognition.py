"""The benchmark of recognition: what is chosen on valid, and that tables say what the result file has."""

import json

import numpy as np
import pytest

import recognition
import recognition_tables
import table_text

STATES = ["sil_s2", "a_s2", "b_s2"]


def utterance(rng):
    phones = [0, *rng.permutation([1, 2, 1, 2]), 0]
    return np.repeat(phones, rng.integers(4, 7, len(phones)))


def network(noise, seed):
    """A network that knows the labels, which stand in the first column, up to noise."""

    def probabilities(cepstra):
        rng = np.random.default_rng(seed)
        scores = [3 * np.eye(3)[c[:, 0].astype(int)] + noise * rng.normal(size=(len(c), 3)) for c in cepstra]
        return [np.exp(s) / np.exp(s).sum(axis=1, keepdims=True) for s in scores]

    return probabilities


@pytest.fixture
def speech(tmp_path):
    rng = np.random.default_rng(0)
    found = recognition.Speech.__new__(recognition.Speech)
    found.frozen, found.state_names = {"seeds": [0, 1], "orders": [1, 2], "word_orders": []}, STATES
    labels = [utterance(rng) for _ in range(60)]
    found.utterances, found.searches = [f"u{k}" for k in range(60)], tmp_path
    found.speaker = {name: f"s{k % 6}" for k, name in enumerate(found.utterances)}
    found.index = {"train": range(40), "valid": range(40, 50), "test": range(50, 60)}
    cepstra = [y[:, None].astype(np.float32) for y in labels]
    found.parts = {
        part: ([cepstra[i] for i in index], [labels[i] for i in index]) for part, index in found.index.items()
    }
    return found


def test_the_candidate_of_the_smallest_mean_error_on_valid_is_tested(speech, monkeypatch):
    noises = {"good": 1.0, "bad": 4.0}
    monkeypatch.setattr(recognition, "trained", lambda name, *_: [network(noises[name], seed) for seed in (0, 1)])
    row = {"name": "row", "seconds": 1, "asked": 0.1, "ours": [["bad", 1], ["good", 1]], "torch": [["bad", 1]]}
    record = recognition.run_row(speech, row, None)
    assert record["ours"]["chosen"]["name"] == "good"
    assert record["ours"]["chosen"]["valid"] == min(trial["valid"] for trial in record["ours"]["trials"])
    assert len(record["ours"]["trials"]) == 4
    assert record["standard_errors"] == 2.0
    assert "compared" not in record, "the test part is not touched without its door"
    opened = []

    def door():
        opened.append(1)
        return speech.parts["test"], {"commit": "abc"}

    record = recognition.run_row(speech, row, door)
    assert opened == [1]
    assert len(record["ours"]["test"]) == 2
    ours, theirs = (np.mean([test["error"] for test in record[side]["test"]]) for side in ("ours", "torch"))
    assert record["compared"]["phones"]["relative"] == pytest.approx(1 - ours / theirs)


def test_averaged_networks_are_one(speech, monkeypatch):
    monkeypatch.setattr(recognition, "trained", lambda *_: [network(9.0, seed) for seed in (0, 1, 2)])
    row = {"name": "row", "seconds": 1, "averaged": True, "ours": [["a", 1]], "torch": [["a", 1]]}
    record = recognition.run_row(speech, row, lambda: (speech.parts["test"], {}))
    assert len(record["ours"]["test"]) == 1


def test_a_row_resumes_in_its_searches(speech, monkeypatch):
    monkeypatch.setattr(recognition, "trained", lambda *_: [network(4.0, seed) for seed in (0, 1)])
    row, decoded = {"name": "row", "seconds": 1, "ours": [["a", 1]], "torch": [["a", 1]]}, []
    decode = recognition.Decoder.decode
    monkeypatch.setattr(recognition.Decoder, "decode", lambda own, P: decoded.append(len(P)) or decode(own, P))
    first, counted = recognition.run_row(speech, row, None), len(decoded)
    decoded.clear()
    assert recognition.run_row(speech, row, None) == first
    scored = 2 * 2 * 2 * 10  # two sides, orders and networks on ten utterances
    assert len(decoded) == scored < counted


def test_a_network_that_the_contest_has_not_trained_is_named(monkeypatch, tmp_path):
    (tmp_path / "contest.json").write_text(json.dumps({"runs": {}}))
    monkeypatch.setattr(recognition.results, "FOLDER", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"TCN-96, 20 s: no network of seed 0; run benchmarks/contest.py first"):
        recognition.trained("TCN-96", 20, "torch", [0, 1, 2])


def test_the_tables_say_what_was_reached(monkeypatch, tmp_path):
    def side(error, words):
        test = {"error": error, "substitutions": 5.0, "deletions": 2.0, "insertions": 1.0, "low": 4.0, "high": 9.0}
        chosen = {"name": "net", "order": 3, "valid": 6.0}
        found = {"chosen": chosen, "test": [test, test], "real_time_factor": 0.01}
        return found | {"words": {"2": {"test": [dict(test, error=words)] * 2}}}

    compared = {"phones": {"relative": 0.2, "p_values": [0.01]}, "words 2": {"relative": -0.1, "p_values": [0.5]}}
    row = {"name": "one direction", "seconds": 20, "asked": 0.08, "most": 11.0, "most_words": 12.0}
    rows = {"0": row | {"ours": side(8.0, 11.0), "torch": side(10.0, 10.0), "compared": compared}}
    (tmp_path / "recognition.json").write_text(json.dumps({"rows": rows}))
    monkeypatch.setattr(table_text, "RESULTS", tmp_path)
    assert "−20.0 % | 0.01 | ≥ 8 % below, ≤ 11.0 % | yes, yes |" in recognition_tables.recognition_phones()
    assert "+10.0 % | 0.5 | ≤ 12.0 %, below PyTorch | yes, **no** |" in recognition_tables.recognition_words()
    assert "| echolearn | 6.0 | 8.0 | 5.0 | 2.0 | 1.0 | 4.0 to 9.0 | 100 |" in recognition_tables.recognition_parts()
    every = (
        recognition_tables.recognition_phones,
        recognition_tables.recognition_parts,
        recognition_tables.recognition_words,
    )
    assert all("one direction (former search)" in made() for made in every)
    rows["0"]["standard_errors"] = 2.0
    (tmp_path / "recognition.json").write_text(json.dumps({"rows": rows}))
    assert not any("former" in made() for made in every)
