"""`export` of the estimators, and `export_model`."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import exported
from echolearn import DeepESNRegressor, ESNClassifier
from echolearn.exceptions import ExportError
from echolearn.export import export_model, plan_of
from echolearn.export.c.header import c_header
from echolearn.export.onnx.graph import onnx_model
from echolearn.export.page.document import build_page, page_model


def test_the_ending_decides(tmp_path):
    esn = exported.classifier()
    esn.export(tmp_path / "model.h", name="gestures")
    assert (tmp_path / "model.h").read_text() == c_header(plan_of(esn), name="gestures")
    esn.export(tmp_path / "page.html", name="gestures")
    assert (tmp_path / "page.html").read_text() == build_page([page_model("gestures", esn)])
    pytest.importorskip("onnx")
    esn.export(str(tmp_path / "model.onnx"), step=True)
    assert (tmp_path / "model.onnx").read_bytes() == onnx_model(plan_of(esn), step=True)


def test_deep_networks_have_the_method_too(tmp_path):
    deep = exported.deep_regressor()
    deep.export(tmp_path / "deep.html")
    assert "DeepESNRegressor" in (tmp_path / "deep.html").read_text()
    deep.export(tmp_path / "deep.h", numbers="int16", X=exported.X[0])
    assert "DeepESNRegressor" in (tmp_path / "deep.h").read_text()
    with pytest.raises(NotFittedError):
        DeepESNRegressor().export(tmp_path / "other.h")


@pytest.mark.parametrize(
    ("file", "options", "message"),
    [
        ("model.txt", {}, "has no known ending"),
        ("model.h", {"step": True}, "step=True is for ONNX"),
        ("model.h", {"X": np.zeros((4, 2))}, r"X has shape \(4, 2\); expected one sequence of shape \(steps, 3\)"),
        ("model.h", {"X": [["a"]]}, "X holds no numbers"),
        ("model.onnx", {"X": np.zeros((4, 3))}, "X measures the loss of a header in C"),
        ("model.onnx", {"name": "a b"}, "name='a b' cannot begin names in C"),
        ("model.h", {"numbers": "int4"}, "numbers='int4'"),
        ("page.html", {"numbers": "int8"}, "step, numbers and X are for ONNX and C"),
    ],
)
def test_refusals_write_nothing(tmp_path, file, options, message):
    with pytest.raises(ExportError, match=message):
        export_model(exported.classifier(), tmp_path / file, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_model_must_be_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        ESNClassifier().export(tmp_path / "model.h")


LOADED = """
import sys
import numpy as np
from echolearn import ESNRegressor
x = np.sin(np.arange(200.0))[:, None]
esn = ESNRegressor(10, learn="none").fit(x, np.roll(x[:, 0], 1))
before = set(sys.modules)
esn.export(sys.argv[1])
print(*sorted(name for name in set(sys.modules) - before if name.startswith("echolearn.")))
"""


def test_a_header_loads_neither_speech_nor_the_other_formats(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LOADED, str(tmp_path / "model.h")], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert "echolearn.export.c.header" in loaded
    assert len(loaded) <= 12
    unwanted = ("speech", "export.page", "export.onnx", "export.service", "paper", "experiments")
    assert not [name for name in loaded if name.removeprefix("echolearn.").startswith(unwanted)]
