"""Which arrays a model file has, and their dtypes and shapes."""

import numpy as np
import pytest

from echolearn import load, runtime
from echolearn.exceptions import ModelFileError
from echolearn.modelfile import reader
from echolearn.modelfile.layout import MODEL
from reliability import forging
from smallmodels import MODELS, X, change_arrays, change_facts


def test_extra_or_misshapen_arrays_are_refused(file):
    content, (tensors, _) = file.read_bytes(), forging.taken_apart(file.read_bytes(), MODEL)
    for changes, words in (
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
        change_arrays(file, **changes)
        with pytest.raises(ModelFileError, match=words):
            load(file)


def test_delays_that_no_fit_can_have_are_refused(tmp_path):
    path = tmp_path / "series"
    MODELS["one per series"]().save(path)
    content, (tensors, _) = path.read_bytes(), forging.taken_apart(path.read_bytes(), MODEL)
    delays = tensors["delays"]
    for changed in (np.append(delays[:-1], 2**62), delays + 1, delays[::-1], np.append(delays[:-1], delays[-1] + 1)):
        path.write_bytes(content)
        change_arrays(path, delays=changed)
        for reader_of_models in (load, runtime.load):
            with pytest.raises(ModelFileError, match="delays"):
                reader_of_models(path)


def test_both_readers_take_the_washout_of_series_from_the_same_place(tmp_path):
    path = tmp_path / "series"
    model = MODELS["one per series"]()
    model.save(path)
    change_facts(path, washout=5)
    answers = [np.array(reader_of_models(path).predict_proba(X)) for reader_of_models in (load, runtime.load)]
    np.testing.assert_allclose(*answers, atol=1e-5)
    assert np.abs(answers[0] - model.predict_proba(X)).max() > 1e-4
    model.set_params(washout=5).save(path)  # which is for the next fit
    np.testing.assert_array_equal(load(path).predict_proba(X), model.predict_proba(X))
    change_facts(path, washout=-1)
    for reader_of_models in (load, runtime.load):
        with pytest.raises(ModelFileError, match="whole number"):
            reader_of_models(path)


def test_nothing_is_read_before_shapes_are_checked(file, monkeypatch):
    """Settings that ask for other shapes are refused by the header alone."""
    monkeypatch.setattr(reader, "_read_arrays", lambda *_: pytest.fail("arrays were read"))
    change_facts(file, features=3)
    with pytest.raises(ModelFileError, match=r"W has shape \(2, 4\); expected \(n_in, N\), here \(3, 4\)"):
        load(file)
