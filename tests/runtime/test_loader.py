"""From the contents of a file to a plan: what is read, and what is refused."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import exported
from echolearn import ESNClassifier, ESNRegressor, FrameWise
from echolearn.exceptions import ExportError, ModelFileError
from echolearn.modelfile.layout import MODEL
from echolearn.modelfile.reader import read_tensors
from echolearn.modelfile.writer import write_tensors
from echolearn.runtime import load
from exported import DOUBLE, assert_same
from toys import grouped


def test_a_pipeline_is_one_model(through_file):
    model = make_pipeline(FrameWise(StandardScaler()), ESNClassifier(20, **grouped(DOUBLE))).fit(
        exported.X, exported.LABELS
    )
    assert_same(through_file(model).predict_proba(exported.X), model.predict_proba(exported.X))


def test_options_that_cannot_run_are_refused_by_name(through_file, tmp_path):
    polynomial = make_pipeline(FrameWise(PolynomialFeatures()), ESNRegressor(5, **grouped(exported.FIXED)))
    with pytest.raises(ExportError, match=r"model\.safetensors: PolynomialFeatures"):
        through_file(polynomial.fit(exported.X, exported.VALUES))
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "other")
    (tmp_path / "other").write_bytes(b"12345678{}")
    with pytest.raises(ModelFileError):
        load(tmp_path / "other")


def test_contents_that_contradict_one_another_are_refused(through_file, tmp_path):
    """A forged file has the right checksum: every array is compared with the others."""
    through_file(ESNClassifier(10, missing="carry", **grouped(DOUBLE)).fit(exported.X[0], exported.LABELS[0]))
    tensors, facts = read_tensors(tmp_path / "model.safetensors", MODEL)
    facts = {name: value for name, value in facts.items() if not name.startswith("format")}
    read = [name for name in sorted(tensors) if "history" not in name]
    assert len(read) > 12
    for name in read:
        for forged in (np.zeros((2, 2), tensors[name].dtype), tensors[name][:-1], None):
            changed = {key: value for key, value in tensors.items() if key != name or forged is not None}
            if forged is not None:
                changed[name] = forged
            if name == "opening" and forged is not None and forged.shape[1:] == tensors[name].shape[1:]:
                continue  # it may have any length
            if name in ("bias", "end_state", "input_mean") and forged is None:
                continue  # which there need not be
            write_tensors(tmp_path / "forged", changed, facts, MODEL)
            with pytest.raises((ModelFileError, ExportError)):
                raise AssertionError(f"{name} was taken: {load(tmp_path / 'forged')}")
    for name, value in (("settings", 3), ("per_step", None), ("layout", "no"), ("estimator", "os.system")):
        write_tensors(tmp_path / "forged", tensors, {**facts, name: value}, MODEL)
        with pytest.raises((ModelFileError, ExportError)):
            load(tmp_path / "forged")
