"""Saving: the same bits come back, and the old file survives a save that fails."""

import os
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file
from sklearn.pipeline import make_pipeline

import echolearn
import toys
from echolearn import DeepESNRegressor, ESNClassifier, load
from echolearn.fitting.codecs import ClassCodec
from echolearn.fitting.parameters import flat_settings
from echolearn.modelfile.layout import MODEL
from echolearn.modelfile.reader import read_tensors
from echolearn.modelfile.writer import write_tensors
from reliability import forging
from smallmodels import LABELS, MODELS, SMALL, VALUES, X, same
from toys import grouped

ONE_NUMBER_EACH = [0, 1] * 3


@pytest.mark.parametrize("kind", MODELS)
def test_round_trip(kind, tmp_path):
    esn = MODELS[kind]()
    esn.save(tmp_path / "model.safetensors")
    back = load(str(tmp_path / "model.safetensors"))
    assert type(back) is type(esn)
    assert same(back, esn)
    np.testing.assert_array_equal(back.network_.readout.U, esn.network_.readout.U)
    if hasattr(esn, "predict_proba"):
        for a, b in zip(back.predict_proba(X), esn.predict_proba(X), strict=True):
            np.testing.assert_array_equal(a, b)
        assert back.classes_.tolist() == esn.classes_.tolist()
    kept = {k: None if isinstance(v, np.random.Generator) else v for k, v in flat_settings(esn).items()}
    assert set(kept) == set(flat_settings(back))
    for name, value in kept.items():
        np.testing.assert_array_equal(flat_settings(back)[name], value)
    assert [dict(row) for row in back.history_] == [dict(row) for row in esn.history_]
    assert back.ridge_ == esn.ridge_
    assert back.n_features_in_ == 2
    back.save(tmp_path / "again.safetensors")
    y = VALUES if "R" in type(esn).__name__ else LABELS
    assert load(tmp_path / "again.safetensors").fit(X, y if esn.per_step_ else ONE_NUMBER_EACH)
    assert sorted(os.listdir(tmp_path)) == ["again.safetensors", "model.safetensors"]


def test_column_names_are_kept(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.concatenate(X), columns=["a", "b"])
    esn = ESNClassifier(**grouped(SMALL)).fit(frame, np.concatenate(LABELS))
    esn.save(tmp_path / "m")
    assert list(load(tmp_path / "m").feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names should match"):
        load(tmp_path / "m").predict(frame[["b", "a"]])


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


def test_the_format_is_the_one_specified(model, file):
    """A file written by hand after docs/reference/model_file.md is as good as ours, and other readers can read ours."""
    tensors, facts = forging.taken_apart(file.read_bytes(), MODEL)
    file.with_name("by hand").write_bytes(forging.written((tensors, facts), MODEL))
    assert same(load(file.with_name("by hand")), model)
    read = load_file(file)
    assert read.keys() == tensors.keys()
    for name, value in read.items():
        np.testing.assert_array_equal(value, tensors[name])


@pytest.mark.parametrize("laid_out", [np.asfortranarray, lambda a: a.astype(">f8"), lambda a: np.repeat(a, 2, 0)[::2]])
def test_a_model_with_arrays_of_other_layouts_comes_back_bit_equal(laid_out, model, tmp_path):
    esn = MODELS["values"]()
    toys.set_readout(esn, laid_out(esn.network_.readout.U))
    esn.model_ = replace(esn.model_, codec=replace(esn.codec_, mean=laid_out(esn.target_mean_)))
    esn.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert back.network_.readout.U.tobytes() == np.ascontiguousarray(esn.network_.readout.U, "<f8").tobytes()
    assert same(back, esn)


@pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorFitWarning")
def test_a_network_that_could_not_be_loaded_is_not_saved(tmp_path):
    esn = MODELS["values"]()
    esn.network_.readout.U[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"cannot be saved.*U holds NaN"):
        esn.save(tmp_path / "m")
    esn = MODELS["values"]().set_params(learning__direct=False)
    with pytest.raises(ValueError, match=r"cannot be saved.*U has shape.*fit it again"):
        esn.save(tmp_path / "m")
    deep = DeepESNRegressor(4, 1, epochs=0).fit(X, VALUES)
    for changed in (
        deep.set_params(bidirectional=True),
        MODELS["feedback"]().set_params(readout="ridge"),
        MODELS["one value"]().set_params(reservoir__activation="sigmoid"),
    ):
        with pytest.raises(ValueError, match=r"the settings are not those of its network.*fit it again"):
            changed.save(tmp_path / "m")
    esn = MODELS["one value"]().set_params(input_scaling=[1.0] * 300_000)
    with pytest.raises(ValueError, match=r"at most .* values of them"):
        esn.save(tmp_path / "m")
    with pytest.raises(TypeError, match="array of complex128, which no file can hold"):
        write_tensors(tmp_path / "m", {"a": np.ones(2, complex)}, {}, "kind")
    assert os.listdir(tmp_path) == []


def test_long_histories_are_saved(model, file):
    rows = [{"epoch": k, "error": k / 3, **({"valid_error": np.nan} if k % 2 else {})} for k in range(20_000)]
    esn = MODELS["strings"]()
    esn.model_ = replace(esn.model_, history=type(esn.history_)(rows))
    esn.save(file)
    back = [dict(row) for row in load(file).history_]
    assert repr(back) == repr(rows)


def test_labels_that_no_file_can_hold(tmp_path, model):
    esn = MODELS["strings"]()
    codec = ClassCodec(np.array([("a", 1), ("b", 2)], dtype=[("x", "U1"), ("y", int)]))
    esn.model_ = replace(esn.model_, codec=codec)
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
    assert read_tensors(file, MODEL)[1]["echolearn"] == echolearn.__version__


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "m.pkl",
            r"writes a safetensors file.*m\.safetensors'; for a pickle, call joblib\.dump\(esn, '.*m\.pkl'",
        ),
        ("m.joblib", r"call joblib\.dump\(esn, '.*m\.joblib'\)"),
        ("m.onnx", r"call esn\.export\('.*m\.onnx'\)"),
        ("m.h", r"call esn\.export\('.*m\.h'\)"),
        ("m.JSON", r"weights are not written as JSON"),
    ],
)
def test_endings_of_other_files_are_refused(name, words, tmp_path):
    esn = ESNClassifier(**grouped(SMALL)).fit(X, LABELS)
    for call in (esn.save, lambda path: echolearn.save(make_pipeline(esn), path)):
        with pytest.raises(ValueError, match=words):
            call(tmp_path / name)
    assert not list(tmp_path.iterdir())
    esn.save(tmp_path / "model")
    esn.save(tmp_path / "model.v2")
