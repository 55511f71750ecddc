"""Try an installed wheel, from outside the repository: import, train, save, load, predict, and the command."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import echolearn

assert "site-packages" in str(echolearn.__file__), f"not the installed one: {echolearn.__file__}"
rng = np.random.default_rng(0)
X = [rng.standard_normal((60, 2)) for _ in range(20)]
y = [np.roll(x[:, 0], 1) > 0 for x in X]
esn = echolearn.ESNClassifier(50, learn="none").fit(X, y)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.safetensors"
    esn.save(path)
    assert np.array_equal(echolearn.load(path).predict(X[0]), esn.predict(X[0]))
    command = Path(sys.executable).with_name("echolearn")
    subprocess.run([command, "export", str(path), "--out", str(path.with_suffix(".h"))], check=True)
    assert "esn_step" in path.with_suffix(".h").read_text()
print(f"echolearn {echolearn.__version__}: {esn.score(X, y):.1%} of the training labels are right, from the file too")
