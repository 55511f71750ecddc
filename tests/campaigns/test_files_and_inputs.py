"""The short form of the campaigns in reliability/: a few hundred damaged files and odd inputs, none of them taken."""

import json

import numpy as np
import pytest

from reliability import entries, fuzz, inputs, model_files


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return model_files.sound_files(tmp_path_factory.mktemp("sound"))


@pytest.mark.parametrize("way", model_files.WAYS)
@pytest.mark.parametrize("name", ["classifier", "series", "forecaster", "checkpoint kept"])
def test_spoiled_files_are_refused_or_equal(sound, name, way, tmp_path):
    kind, content = sound[name]
    path = tmp_path / "file"
    true = model_files.true_content(path, kind, content)
    verdicts = []
    for spoiled in model_files.spoiled(way, kind, content, np.random.default_rng(0), 60):
        path.write_bytes(spoiled)
        verdicts.append(model_files.judged(path, kind, true, way))
    assert len(verdicts) == 60
    assert "wrong" not in verdicts
    assert "refused" in verdicts


def test_the_judge_can_tell(sound, tmp_path):
    """An equal file is equal, and another model under its own checksum is not."""
    kind, content = sound["classifier"]
    path = tmp_path / "file"
    true = model_files.true_content(path, kind, content)
    assert model_files.judged(path, kind, true, "flipped") == "equal"
    path.write_bytes(sound["series"][1])
    assert model_files.judged(path, kind, true, "flipped") == "wrong"


@pytest.mark.parametrize("name", inputs.ENTRIES)
def test_odd_inputs_are_answered_or_refused(name):
    entry, share = inputs.ENTRIES[name]
    counts, wrong = inputs.run(entry, 3 if name in ("tune", "command line") else 3 + share)
    assert wrong == {}
    assert counts["answered"] + counts["refused"] == counts["inputs"] > 0


def test_the_oracle_can_tell():
    assert inputs.verdict(lambda: np.ones(3)) == "answered"
    assert inputs.verdict(lambda: np.array([np.nan])).startswith("wrong: silently")
    assert inputs.verdict(lambda: np.zeros(3) + np.zeros(2)).startswith("wrong: ValueError")
    assert inputs.verdict(lambda: {}["a"]).startswith("wrong: KeyError")
    assert inputs.verdict(lambda: entries.fitted("labels").predict(3)) == "refused"


@pytest.mark.parametrize("name", fuzz.READERS)
def test_fuzzed_readers_take_their_seeds(name, tmp_path):
    one = fuzz.reader(name, tmp_path / "file")
    for content in fuzz.seeds(name):
        one(content)
        one(content[:-1])
        one(b"")


def test_files_get_a_right_checksum(sound):
    kind, content = sound["classifier"]
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    assert header["__metadata__"]["sha256"].encode() in fuzz.with_right_checksum(content, kind)
    assert fuzz.with_right_checksum(b"x", kind) == b"x"
