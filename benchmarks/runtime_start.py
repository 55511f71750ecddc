"""Cost of a first answer from a saved model: `echolearn.runtime`, which needs NumPy alone, beside the whole library.

    python benchmarks/runtime_start.py

A classifier of 300 units, 39 features and 10 classes. Every start is a process of its own: imports, loading the file
and the first answer to one frame. Times are processor time, that of child processes included, the least of some
repeats: others may use the machine meanwhile. "first time" has no compiled loops in a cache, as in a fresh container.
Sizes are those of all files of the installed distributions that are needed.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

import numpy as np

import results
from echolearn import ESNClassifier, load, runtime

UNITS, FEATURES, CLASSES, FRAMES, REPEATS = 300, 39, 10, 400, 5
DEVICES = (100, 1000)
NEEDED = re.compile(r"^[A-Za-z0-9._-]+")
START = """
import time, json, os
def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS")) * 1024
began = time.perf_counter() - time.process_time()
import numpy as np
{work}
print(json.dumps([sum(os.times()[:4]), time.perf_counter() - began, resident()]))
"""
WORK = {
    "interpreter and NumPy": "",
    "echolearn.runtime": "from echolearn.runtime import load\nload({path!r}).predict(np.zeros((1, 39)))",
    "whole library": "from echolearn import load\nload({path!r}).predict(np.zeros((1, 39)))",
    "whole library, first time": "from echolearn import load\nload({path!r}).predict(np.zeros((1, 39)))",
}


def start(work, path, cache):
    """Return processor seconds, seconds by the clock and resident bytes of a process that does this work."""
    code = START.format(work=work.format(path=str(path)))
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    environment = {**os.environ, **threads, **({"NUMBA_CACHE_DIR": cache} if cache else {})}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


def starts(path):
    """Return one row per way to start: the least of some repeats, but a single one without compiled loops."""
    rows = []
    for way, work in WORK.items():
        first = way.endswith("first time")
        with tempfile.TemporaryDirectory() as empty:
            found = np.array([start(work, path, empty if first else None) for _ in range(1 if first else REPEATS)])
        cpu, wall, resident = found.min(axis=0)
        rows.append({"way": way, "seconds": cpu, "clock": wall, "resident": resident, "disk": disk(way)})
        print(f"{way:<26} {cpu:6.3f} s {wall:6.3f} s by the clock {resident / 1e6:6.1f} MB {disk(way) / 1e6:6.1f} MB")
    return rows


def disk(way):
    """Return the bytes of the installed distributions that a way to start needs; echolearn itself is its sources."""
    numpy_alone = sum(size(name) for name in ("numpy",))
    own = Path(runtime.__file__).parents[1]
    python = sum(file.stat().st_size for file in own.rglob("*") if file.is_file() and file.suffix != ".pyc")
    if way == "interpreter and NumPy":
        return numpy_alone
    return numpy_alone + python if way == "echolearn.runtime" else sum(map(size, dependencies("echolearn"))) + python


def size(distribution):
    """Return the bytes of the files of an installed distribution."""
    files = [file.locate() for file in metadata.files(distribution) or []]
    return sum(file.stat().st_size for file in files if file.is_file())


def dependencies(name, found=None):
    """Return the names of all distributions that one needs, without its extras."""
    found = set() if found is None else found
    for text in metadata.requires(name) or []:
        other = NEEDED.match(text)[0].lower()
        if "extra ==" in text or other in found:
            continue
        try:
            metadata.version(other)
        except metadata.PackageNotFoundError:
            continue  # of another platform
        found.add(other)
        dependencies(other, found)
    return found


def least(function, frames=FRAMES):
    """Return the least processor time of a call, in microseconds per frame."""
    function()
    times = []
    for _ in range(REPEATS):
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return 1e6 * min(times) / frames


def frame_by_frame(step, X):
    """Return a function that gives a stream one frame after another."""

    def run():
        for x in X:
            step(x)

    return run


def frames(path, rng):
    """Return one row per way to answer: microseconds per frame in the runtime and in the library."""
    esn, model = load(path), runtime.load(path)
    X = rng.standard_normal((FRAMES, FEATURES))
    ways = {
        "whole sequences": (lambda: model.predict_proba(X), lambda: esn.predict_proba(X), FRAMES),
        "a stream, frame by frame": (
            frame_by_frame(model.stream().step, X),
            frame_by_frame(esn.stream().predict_proba, X),
            FRAMES,
        ),
    }
    for n in DEVICES:
        Z = rng.standard_normal((10, n, FEATURES))
        ours, theirs = model.streams(n), esn.streams(n)
        ways[f"{n:,} streams side by side"] = (
            frame_by_frame(ours.step, Z),
            frame_by_frame(theirs.step, Z),
            10 * n,
        )
    rows = []
    for way, (ours, theirs, count) in ways.items():
        rows.append({"way": way, "runtime": least(ours, count), "library": least(theirs, count)})
        print(f"{way:<28} runtime {rows[-1]['runtime']:7.2f} µs   library {rows[-1]['library']:7.2f} µs")
    return rows


def main():
    rng = np.random.default_rng(0)
    sequences = [rng.standard_normal((100, FEATURES)) for _ in range(10)]
    labels = list(np.resize(np.arange(CLASSES), (10, 100)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        ESNClassifier(UNITS, learn="none", validation_fraction=0.0).fit(sequences, labels).save(path)
        rows, per_frame = starts(path), frames(path, rng)
    results.write("runtime_start", rows, frames=per_frame, units=UNITS, features=FEATURES, classes=CLASSES)


if __name__ == "__main__":
    main()
