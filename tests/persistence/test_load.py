"""Facts and settings of a model file that make no sense are refused."""

import pickle

import numpy as np
import pytest
from safetensors.numpy import save_file

import toys
from echolearn import ESNClassifier, ESNRegressor, load
from echolearn.exceptions import ModelFileError
from echolearn.modelfile.layout import MODEL
from reliability import forging
from smallmodels import change_facts, same


@pytest.mark.parametrize(
    "changes",
    [
        {"estimator": "os.system"},
        {"settings": {}},
        {"settings": {"no_such_setting": 1}},
        {"settings": None},
        {"features": 7},
        {"features": 10**30},
        {"feature_names": ["a"]},
        {"class_names": ["a"]},
        {"class_names": ["low", "high"]},
        {"history_columns": 3},
        {"per_step": None},
        {"ridge": -1.0},
        {"ridge": {"float": "nan"}},
        {"tt": 1.0, "n": 2.0},
    ],
)
def test_facts_that_make_no_sense_are_refused(file, changes):
    change_facts(file, **changes)
    with pytest.raises(ModelFileError, match=r"not a model this version understands|not an echolearn-model file"):
        load(file)


@pytest.mark.parametrize(
    ("name", "value"), [("hidden_units", 10**12), ("direct", "yes"), ("washout", -1), ("dtype", "object"), ("leak", 7)]
)
def test_settings_that_no_network_has_are_refused(file, name, value):
    settings = forging.taken_apart(file.read_bytes(), MODEL)[1]["settings"]
    change_facts(file, settings={**settings, name: value})
    with pytest.raises(ModelFileError, match=name):
        load(file)


# Model files.


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


def test_wrong_version(file):
    for version in (99, 0, 1, None, "2", 2.0, True):
        change_facts(file, format_version=version)
        with pytest.raises(ModelFileError, match=r"format version .*; this echolearn reads version 2. Install"):
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
