"""The model file: the same bits back, and nothing that is not whole gets in."""

import os
import pickle
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import echolearn
import toys
from echolearn import ESNClassifier, ESNRegressor, load
from echolearn.estimators.codecs import ClassCodec
from echolearn.estimators.model_layout import FORMAT
from echolearn.modelfile import reader
from echolearn.modelfile.layout import ModelFileError
from echolearn.modelfile.reader import read_tensors
from echolearn.modelfile.writer import write_tensors
from reliability import forging

X, LABELS = toys.labels(sequences=6)
VALUES = toys.echoes(sequences=6)[1]
ONE_EACH = ["up", "down"] * 3
SMALL = {**toys.FAST, "hidden_units": 4, "connections": 2, "epochs": 1}

MODELS = {
    "strings": lambda: ESNClassifier(**SMALL).fit(X, LABELS),
    "whole numbers": lambda: ESNClassifier(**SMALL, readout="ridge").fit(X, [(y == "low") * 5 - 2 for y in LABELS]),
    "truth values": lambda: ESNClassifier(**SMALL).fit(X, [y == "low" for y in LABELS]),
    "objects": lambda: ESNClassifier(**SMALL).fit(X, [y.astype(object) for y in LABELS]),
    "one a sequence": lambda: ESNClassifier(**SMALL, pooling="last").fit(X, ONE_EACH),
    "parts of time": lambda: ESNClassifier(**SMALL, pooling=3, bidirectional=True).fit(X, ONE_EACH),
    "feedback": lambda: ESNClassifier(**SMALL, feedback=True).fit(X, LABELS),
    "values": lambda: ESNRegressor(**SMALL, initial_state=np.full(4, 0.1)).fit(X, VALUES),
    "one value": lambda: ESNRegressor(**SMALL, dtype="float64", leak=1.0).fit(X, [v[:, 0] for v in VALUES]),
    "bare": lambda: ESNRegressor(**SMALL, bias_scaling=0.0, direct=False, learn="none").fit(X, VALUES),
    "paper": lambda: ESNClassifier.paper(4, epochs=1).fit(X, LABELS),
    "paths": lambda: ESNRegressor(**SMALL, ridge=np.array([0.1, 1.0]), random_state=None).fit(X, VALUES),
    "a generator": lambda: ESNRegressor(**SMALL, random_state=np.random.default_rng(3)).fit(X, VALUES),
    "NumPy settings": lambda: ESNRegressor(**SMALL, ridge=np.float32(0.1), washout=np.int64(1)).fit(X, VALUES),
}


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a.predict(X), b.predict(X), strict=True))


@pytest.mark.parametrize("kind", MODELS)
def test_round_trip(kind, tmp_path):
    esn = MODELS[kind]()
    esn.save(tmp_path / "model.safetensors")
    back = load(str(tmp_path / "model.safetensors"))
    assert type(back) is type(esn)
    assert same(back, esn)
    np.testing.assert_array_equal(back.network_.readout.U, esn.network_.readout.U)
    if isinstance(esn, ESNClassifier):
        for a, b in zip(back.predict_proba(X), esn.predict_proba(X), strict=True):
            np.testing.assert_array_equal(a, b)
        assert back.classes_.tolist() == esn.classes_.tolist()
    kept = {k: None if isinstance(v, np.random.Generator) else v for k, v in esn.get_params().items()}
    for name, value in kept.items():
        np.testing.assert_array_equal(getattr(back, name), value)
    assert [dict(row) for row in back.history_] == [dict(row) for row in esn.history_]
    assert back.ridge_ == esn.ridge_
    assert back.n_features_in_ == 2
    back.save(tmp_path / "again.safetensors")
    assert load(tmp_path / "again.safetensors").fit(X, VALUES if "R" in type(esn).__name__ else LABELS)
    assert sorted(os.listdir(tmp_path)) == ["again.safetensors", "model.safetensors"]


def test_column_names_are_kept(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.concatenate(X), columns=["a", "b"])
    esn = ESNClassifier(**SMALL).fit(frame, np.concatenate(LABELS))
    esn.save(tmp_path / "m")
    assert list(load(tmp_path / "m").feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names should match"):
        load(tmp_path / "m").predict(frame[["b", "a"]])


@pytest.fixture(scope="module")
def model():
    return MODELS["strings"]()


@pytest.fixture
def file(model, tmp_path):
    path = tmp_path / "model.safetensors"
    model.save(path)
    return path


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
    file.write_bytes(file.read_bytes() + b"\\0" * 8)
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
    for content in (b"", b"hello", b"PK\\x03\\x04" + bytes(100), pickle.dumps({"a": 1}), b"\\xff" * 64):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=r"damaged, cut short, or not an echolearn"):
            load(path)


def test_missing_file_and_folder(tmp_path, model):
    with pytest.raises(FileNotFoundError, match=r"there is no model file .*nowhere"):
        load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="there is no model file"):
        load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"cannot write .*deep"):
        model.save(tmp_path / "deep" / "model")
    with pytest.raises(OSError, match="cannot write"):
        model.save(tmp_path)
    assert os.listdir(tmp_path) == []


def rewritten(file, **changes):
    """The file with some facts changed, under a checksum that is right for them."""
    tensors, facts = forging.taken_apart(file.read_bytes(), FORMAT)
    file.write_bytes(forging.written((tensors, {**facts, **changes}), FORMAT))


def with_arrays(file, **changes):
    tensors, facts = forging.taken_apart(file.read_bytes(), FORMAT)
    tensors = {name: value for name, value in {**tensors, **changes}.items() if value is not None}
    file.write_bytes(forging.written((tensors, facts), FORMAT))


def test_the_format_is_the_one_specified(model, file):
    """A file written by hand after docs/format.md is as good as ours, and other readers can read ours."""
    tensors, facts = forging.taken_apart(file.read_bytes(), FORMAT)
    file.with_name("by hand").write_bytes(forging.written((tensors, facts), FORMAT))
    assert same(load(file.with_name("by hand")), model)
    read = load_file(file)
    assert read.keys() == tensors.keys()
    for name, value in read.items():
        np.testing.assert_array_equal(value, tensors[name])


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
        rewritten(file, format_version=version)
        with pytest.raises(ModelFileError, match=r"format version .*; this echolearn reads versions 1 to 2. Install"):
            load(file)


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
    rewritten(file, **changes)
    with pytest.raises(ModelFileError, match=r"not a model this version understands|not an echolearn-model file"):
        load(file)


@pytest.mark.parametrize(
    ("name", "value"), [("hidden_units", 10**12), ("direct", "yes"), ("washout", -1), ("dtype", "object"), ("leak", 7)]
)
def test_settings_that_no_network_has_are_refused(file, name, value):
    settings = forging.taken_apart(file.read_bytes(), FORMAT)[1]["settings"]
    rewritten(file, settings={**settings, name: value})
    with pytest.raises(ModelFileError, match=name):
        load(file)


def test_extra_or_misshapen_arrays_are_refused(file):
    content, (tensors, _) = file.read_bytes(), forging.taken_apart(file.read_bytes(), FORMAT)
    for changes, said in (
        ({"extra": np.ones(2)}, "arrays that no echolearn-model file has: 'extra'"),
        ({"../../W": np.ones(2)}, "arrays that no echolearn-model file has"),
        ({"G": np.ones((7, 7))}, "has no arrays"),
        ({"U": None}, "lacks the arrays"),
        ({"W": np.ones(2)}, r"W has shape \(2,\); expected \(n_in, N\)"),
        ({"W": tensors["W"].astype(np.float32)}, "W holds F32; expected F64"),
        ({"W": np.full_like(tensors["W"], np.nan)}, "NaN or infinity"),
        ({"U": tensors["U"][:-1]}, r"U has shape .*; expected"),
        ({"U": tensors["U"] * np.inf}, "U holds NaN"),
        ({"W_rec.indices": tensors["W_rec.indices"] + 1000}, "indices"),
        ({"W_rec.indices": tensors["W_rec.indices"][::-1]}, "twice, or columns out of order"),
        ({"W_rec.indptr": tensors["W_rec.indptr"] - 1}, "rows end"),
    ):
        file.write_bytes(content)
        with_arrays(file, **changes)
        with pytest.raises(ModelFileError, match=said):
            load(file)


def test_nothing_is_read_before_shapes_are_checked(file, monkeypatch):
    """Settings that ask for other shapes are refused by the header alone."""
    monkeypatch.setattr(reader, "_read_arrays", lambda *_: pytest.fail("arrays were read"))
    rewritten(file, features=3)
    with pytest.raises(ModelFileError, match=r"W has shape \(2, 4\); expected \(n_in, N\), here \(3, 4\)"):
        load(file)


@pytest.mark.parametrize("laid_out", [np.asfortranarray, lambda a: a.astype(">f8"), lambda a: np.repeat(a, 2, 0)[::2]])
def test_a_model_with_arrays_of_other_layouts_comes_back_bit_equal(laid_out, model, tmp_path):
    esn = MODELS["values"]()
    toys.set_readout(esn, laid_out(esn.network_.readout.U))
    esn.codec_ = replace(esn.codec_, mean=laid_out(esn.target_mean_))
    esn.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert back.network_.readout.U.tobytes() == np.ascontiguousarray(esn.network_.readout.U, "<f8").tobytes()
    assert same(back, esn)


def test_pooled_parts_of_time_are_saved(tmp_path):
    esn = ESNClassifier(**SMALL, pooling=3).fit(X, ONE_EACH)
    esn.save(tmp_path / "m")
    assert same(load(tmp_path / "m"), esn)


def test_a_network_that_could_not_be_loaded_is_not_saved(tmp_path):
    esn = MODELS["values"]()
    esn.network_.readout.U[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"cannot be saved.*U holds NaN"):
        esn.save(tmp_path / "m")
    esn = MODELS["values"]().set_params(direct=False)
    with pytest.raises(ValueError, match=r"cannot be saved.*U has shape.*fit it again"):
        esn.save(tmp_path / "m")
    esn = MODELS["one value"]().set_params(input_scaling=[1.0] * 300_000)
    with pytest.raises(ValueError, match=r"at most .* values of them"):
        esn.save(tmp_path / "m")
    with pytest.raises(TypeError, match="array of complex128, which no file can hold"):
        write_tensors(tmp_path / "m", {"a": np.ones(2, complex)}, {}, "kind")
    assert os.listdir(tmp_path) == []


def test_long_histories_are_saved(model, file):
    rows = [{"epoch": k, "error": k / 3, **({"valid_error": np.nan} if k % 2 else {})} for k in range(20_000)]
    esn = MODELS["strings"]()
    esn.history_ = type(esn.history_)(rows)
    esn.save(file)
    back = [dict(row) for row in load(file).history_]
    assert repr(back) == repr(rows)


def test_no_pickle_and_no_code(model, file, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("pickle was used")

    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    model.save(file)
    assert same(load(file), model)
    assert b"pickle" not in file.read_bytes()


def test_labels_that_no_file_can_hold(tmp_path, model):
    esn = MODELS["strings"]()
    esn.codec_ = ClassCodec(np.array([("a", 1), ("b", 2)], dtype=[("x", "U1"), ("y", int)]))
    with pytest.raises(TypeError, match="cannot be saved; use numbers or strings"):
        esn.save(tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_the_old_file_survives_a_failed_save(file, tmp_path):
    """A disk that is full, here a limit on file sizes: the old model stays, nothing is left lying about."""
    before = file.read_bytes()
    script = """
        import resource, signal, sys
        from echolearn import load
        esn = load(sys.argv[1])
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            esn.save(sys.argv[1])
        except OSError as problem:
            print("refused:", problem)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(file)], capture_output=True, text=True, check=True
    )
    assert "refused:" in done.stdout
    assert "cannot write" in done.stdout
    assert file.read_bytes() == before
    assert os.listdir(tmp_path) == [file.name]


def test_a_save_that_is_cut_off_leaves_the_old_file(model, file, tmp_path, monkeypatch):
    before = file.read_bytes()

    def press(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", press)
    with pytest.raises(KeyboardInterrupt):
        model.save(file)
    assert file.read_bytes() == before
    assert os.listdir(tmp_path) == [file.name]


def test_saving_keeps_to_the_umask(model, tmp_path):
    old = os.umask(0o077)
    try:
        model.save(tmp_path / "private")
    finally:
        os.umask(old)
    assert os.stat(tmp_path / "private").st_mode & 0o777 == 0o600


def test_version_is_written(file):
    assert read_tensors(file, FORMAT)[1]["echolearn"] == echolearn.__version__
