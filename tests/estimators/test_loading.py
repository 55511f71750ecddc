"""Model files: damaged and foreign ones are refused, those of version 1 still load."""

import pickle

import numpy as np
import pytest
from safetensors.numpy import save_file

import toys
from echolearn import ESNClassifier, ESNRegressor, load
from echolearn.estimators.model_layout import FORMAT
from echolearn.exceptions import ModelFileError
from reliability import forging
from smallmodels import MODELS, change_facts, same


def test_every_truncation_is_refused(file):
    content = file.read_bytes()
    assert len(content) < 20_000
    for length in [*range(0, len(content), 7), len(content) - 1]:
        file.write_bytes(content[:length])
        with pytest.raises(ModelFileError, match=r"damaged, cut short|not an echolearn"):
            load(file)


def test_no_flipped_byte_goes_unnoticed(model, file):
    content = bytearray(file.read_bytes())
    rng = np.random.default_rng(0)
    places = np.unique(np.concatenate([np.arange(60), rng.integers(0, len(content), 500)]))
    refused = 0
    for place in places:
        for mask in (0x01, 0x20, 0x80):
            spoiled = content.copy()
            spoiled[place] ^= mask
            file.write_bytes(spoiled)
            try:
                back = load(file)
            except ModelFileError:
                refused += 1
                continue
            assert same(back, model)
            np.testing.assert_array_equal(back.network_.readout.U, model.network_.readout.U)
    assert refused > 0.95 * 3 * len(places)


def test_trailing_bytes_are_refused(file):
    file.write_bytes(file.read_bytes() + b"\0" * 8)
    with pytest.raises(ModelFileError):
        load(file)


def test_foreign_files(tmp_path):
    path = tmp_path / "other.safetensors"
    save_file({"W": np.ones((2, 2))}, path)
    with pytest.raises(ModelFileError, match=r"is a safetensors file, but not an echolearn-model"):
        load(path)
    save_file({"W": np.ones((2, 2))}, path, metadata={"echolearn-checkpoint": "{}"})
    with pytest.raises(ModelFileError, match="not an echolearn-model"):
        load(path)
    for content in (b"", b"hello", b"PK\x03\x04" + bytes(100), pickle.dumps({"a": 1}), b"\xff" * 64):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=r"damaged, cut short, or not an echolearn|and not a model file"):
            load(path)


@pytest.mark.parametrize("kind", MODELS)
def test_version_1_still_loads(kind, tmp_path):
    esn = MODELS[kind]()
    esn.save(tmp_path / "new")
    parts = forging.as_version_1(forging.taken_apart((tmp_path / "new").read_bytes(), FORMAT))
    (tmp_path / "old").write_bytes(forging.written(parts, FORMAT, version=1))
    back = load(tmp_path / "old")
    assert same(back, esn)
    assert [dict(row) for row in back.history_] == [dict(row) for row in esn.history_]
    assert repr(back.get_params()) == repr(load(tmp_path / "new").get_params())


def test_a_version_1_history_may_hold_nan(model, file):
    tensors, facts = forging.as_version_1(forging.taken_apart(file.read_bytes(), FORMAT))
    facts["history"] = [{"epoch": 1, "error": float("nan")}, {"epoch": 2, "error": float("inf")}]
    file.write_bytes(forging.written((tensors, facts), FORMAT, version=1))
    assert [str(row["error"]) for row in load(file).history_] == ["nan", "inf"]


def test_wrong_version(file):
    for version in (99, 0, 1, None, "2", 2.0, True):
        change_facts(file, format_version=version)
        with pytest.raises(ModelFileError, match=r"format version .*; this echolearn reads versions 1 to 2. Install"):
            load(file)


def test_no_pickle_and_no_code(model, file, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("pickle was used")

    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    model.save(file)
    assert same(load(file), model)
    assert b"pickle" not in file.read_bytes()


@pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorFitWarning")
@pytest.mark.parametrize("kind", ["ridge", "softmax", "label sets", "values"])
def test_a_loaded_readout_is_of_the_kind_that_was_saved(kind, tmp_path):
    X, y = toys.labels()
    esn = ESNClassifier(5, learn="none", readout="ridge" if kind == "ridge" else "softmax")
    if kind == "label sets":
        y = [np.stack([c == "low", c == "high"], axis=1) for c in y]
    elif kind == "values":
        esn, y = ESNRegressor(5, learn="none"), [x[:, :1] for x in X]
    before = esn.fit(X, y).network_.readout
    esn.save(tmp_path / "m.safetensors")
    after = load(tmp_path / "m.safetensors").network_.readout
    assert after.softmax == before.softmax == (kind == "softmax")
    assert (after.ridge, after.strength) == (before.ridge, before.strength)
