"""A corpus that does not fit into memory: one pass over 10^8 frames from files, in bounded memory.

    python -m reliability.corpus_on_disk [--frames 100000000] [--part 500000] [--units 500] [--folder DIR]

The corpus is written as .npz files of `part` frames, with 39 features and as many classes. A child process reads one
file after another and adds it to a ridge readout (`partial_fit`); its memory is compared with that after its imports,
and a few frames that no file has are scored. The same frames per second are measured for one part that stays in memory.
The files of 10^8 frames take 16 GB; they are removed at the end.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from echolearn import ESNClassifier
from echolearn.execution.threads import thread_count
from reliability import results
from reliability.memory import process_bytes

HERE = Path(__file__).parent
STEPS, FEATURES = 500, 39  # the labels are numbers of features
TEST_SEED = 10**6  # files have the seeds 0, 1, ...
WARM_UP, IN_MEMORY = 5_000, 5  # frames that are fitted first; how often the part in memory is added
GOAL_MB = 2000


def draw(seed: int, frames: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features (frames, FEATURES) and labels (frames,): which feature of the step before is the largest."""
    X = np.random.default_rng(seed).standard_normal((frames, FEATURES), dtype=np.float32)
    return X, np.roll(X.argmax(axis=1), 1).astype(np.int16)


def write(folder: Path, frames: int, part: int) -> None:
    """Write the corpus, `part` frames in each file."""
    for seed, start in enumerate(range(0, frames, part)):
        X, y = draw(seed, min(part, frames - start))
        np.savez(folder / f"{seed:05}.npz", X=X, y=y)


def network(units: int) -> ESNClassifier:
    """Return the classifier that the corpus is added to."""
    return ESNClassifier(units, learn="none", readout="ridge", ridge=1.0, standardize=False)


def add(esn: ESNClassifier, X: np.ndarray, y: np.ndarray) -> None:
    """Add the sequences of a part."""
    lengths = [STEPS] * (len(X) // STEPS) + [len(X) % STEPS] * (len(X) % STEPS > 0)
    esn.partial_fit(X, y, classes=range(FEATURES), lengths=lengths)


def fit(folder: Path, units: int) -> dict[str, float]:
    """Fit in the child process; return figures of the pass, of the memory, and of a part that stays in memory."""
    add(network(20), *draw(TEST_SEED, WARM_UP))  # starts threads, compiles
    before = process_bytes("VmHWM")
    esn, frames, start = network(units), 0, time.perf_counter()
    for file in sorted(folder.glob("*.npz")):
        with np.load(file) as content:
            add(esn, content["X"], content["y"])
            frames += len(content["y"])
    seconds = time.perf_counter() - start
    more = process_bytes("VmHWM") - before
    X, y = draw(TEST_SEED, 20 * STEPS)
    score = esn.score(X, y)
    resident = draw(0, min(frames, 1_000_000))
    resident_seconds = []
    for _ in range(IN_MEMORY):
        start = time.perf_counter()
        add(esn, *resident)
        resident_seconds.append(time.perf_counter() - start)
    return {
        "frames": frames,
        "seconds": seconds,
        "frames_per_second": frames / seconds,
        "frames_per_second_in_memory": len(resident[1]) / min(resident_seconds),
        "memory_mb": more / 1e6,
        "score": score,
    }


def measure(frames: int, part: int, units: int, folder: str | None = None) -> dict[str, Any]:
    """Write the corpus, fit it in a child process, and return its figures."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        write(Path(name), frames, part)
        gigabytes = sum(file.stat().st_size for file in Path(name).iterdir()) / 1e9
        command = [sys.executable, "-m", "reliability.corpus_on_disk", "--child", name, "--units", str(units)]
        done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the fit on {frames} frames failed:\n{done.stderr}")
    return {"part": part, "units": units, "threads": thread_count(), "corpus_gb": gigabytes, **json.loads(done.stdout)}


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=100_000_000, help="frames of the corpus")
    parser.add_argument("--part", type=int, default=500_000, help="frames of a file")
    parser.add_argument("--units", type=int, default=500, help="hidden units")
    parser.add_argument("--folder", help="where the corpus is written; without: the folder for temporary files")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(fit(options.child, options.units)))
        return
    found = measure(options.frames, options.part, options.units, options.folder)
    found["reached"] = found["memory_mb"] <= GOAL_MB
    results.show("a corpus on disk", tuple(found), {"": found})
    results.keep("corpus_on_disk", found)


if __name__ == "__main__":
    main()
