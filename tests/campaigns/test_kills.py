"""The short form of reliability/kills.py: some kills, and a disk that is full at every write."""

import math

import numpy as np
import pytest

import smallcorpus
import toys
from echolearn import load
from reliability import kills


def test_a_killed_fit_ends_in_the_same_bits(tmp_path):
    kind = "mini-batches, softmax, refined"
    found = kills.killed_fits(kind, 1, tmp_path, np.random.default_rng(), math.inf)
    assert found["same bits"] == found["fits"] >= 1
    assert found["kills"] == 1
    assert found["states lost"] == 0


@pytest.mark.parametrize("what", ["model files", "checkpoints"])
def test_a_killed_save_leaves_the_old_or_the_new_file(what, tmp_path):
    found = kills.killed_saves(what, 5, tmp_path, np.random.default_rng(), math.inf)
    assert found["old or new file loads"] == found["kills"] == 5


@pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorFitWarning")  # toys without meaning
def test_every_call_of_every_write_may_fail(tmp_path, monkeypatch):
    how = {**kills.SMALL, "hidden_units": 10, "epochs": 2, "batch_size": 8, "refine_epochs": 1}
    monkeypatch.setitem(kills.KINDS, "small", ("ESNClassifier", how, False))
    monkeypatch.setattr(kills.checkpoints, "SECONDS_BETWEEN_STATES", 0.0)  # `network` sets it; here it is set back
    found = kills.full_disk_calls("small", tmp_path)
    assert found["calls"] == found["file named"] == found["nothing lost"] == kills.CALLS * 9  # nine states are saved
    assert found["same bits"] == 1


def test_the_command_on_a_full_disk_fails_names_the_file_and_resumes_later(tmp_path):
    corpus = smallcorpus.write(tmp_path / "corpus.npz")
    found = kills.full_disk_command(corpus, tmp_path, factor=1e6)
    assert found["limits"] >= 1
    assert found["failed"] == found["file named"] == found["nothing lost"] == found["limits"]
    assert found["same bits"] == 1


@pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorFitWarning")  # toys without meaning
def test_a_model_that_cannot_be_written_leaves_the_one_before(tmp_path):
    path = tmp_path / "model.safetensors"
    X, y = kills.task("full batch, FISTA")
    kills.echolearn.ESNClassifier(20, learn="none").fit(X, y).save(path)
    before, esn = path.read_bytes(), load(path)
    toys.set_readout(esn, 2 * esn.network_.readout.U)
    for limit in (0, 100, len(before) - 1):
        kills.limited(limit)
        try:
            with pytest.raises(OSError, match=r"cannot write .*model\.safetensors"):
                esn.save(path)
        finally:
            kills.limited(None)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]
