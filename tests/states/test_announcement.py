"""One line says that the loops are compiled: with an empty cache, and never with a full one."""

import os
import subprocess
import sys

from echolearn.states._announcement import TEXT

PROGRAM = """
import numpy as np
from echolearn.states import _kernels
for dtype in ("float32", "float32", "float64"):
    place, value = np.zeros((0, 2), np.uint32), np.zeros((0, 2), dtype)
    F, active = np.zeros((1, 2), dtype), np.ones(1, np.int64)
    h0, a, offsets = np.zeros((1, 2), dtype), np.ones(2, dtype), np.zeros(1, np.int64)
    _kernels.forward_few((place, value), a, 1, active=active, offsets=offsets, h0=h0, F=F, H=F)
"""


def test_compilation_is_announced_once_with_an_empty_cache_and_never_with_a_full_one(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = []
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True, timeout=120
        )
        said.append(run.stderr.count(TEXT))
        assert run.stdout == ""
    assert said == [1, 0]
