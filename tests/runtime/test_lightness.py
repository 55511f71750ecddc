"""`echolearn.runtime` works with NumPy alone: nothing else is imported, at import or later."""

import subprocess
import sys

import exported

ALLOWED = {"echolearn", "numpy"}
BEFORE = "import sys\nbefore = set(sys.modules)\n"
AFTER = "print(*{name.partition('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names))\n"
WORK = """
import numpy as np
from echolearn.runtime import load
model = load(sys.argv[1])
x = np.ones((4, model.n_features_in_))
model.predict(x), model.predict([x, x]), model.predict_proba(x), model.stream().step(x[0]), model.streams(4).step(x)
"""


def loaded_by(code, *arguments):
    """Return the top-level modules, without those of Python itself, that a fresh interpreter loads for this code."""
    done = subprocess.run(
        [sys.executable, "-c", BEFORE + code + AFTER, *map(str, arguments)], capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    return set(done.stdout.split())


def test_the_runtime_loads_nothing_but_numpy(tmp_path):
    exported.classifier().save(tmp_path / "model.safetensors")
    assert loaded_by(WORK, tmp_path / "model.safetensors") <= ALLOWED


def test_the_test_can_fail():
    assert "sklearn" in loaded_by("from sklearn.base import clone\n")
