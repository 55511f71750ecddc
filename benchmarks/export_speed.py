"""The time per frame of a network exported to C, in onnxruntime, and in the Python stream.

    python benchmarks/export_speed.py [layer] [deep]

layer: a classifier of 300 units and 39 features, with 10 and with 184 classes; it needs gcc, clang, onnx and
onnxruntime. deep: six layers of 128 units and the same features and classes, in C and in Python; it needs gcc. Without
a word, both. Processor time of one core, the least of some repeats, all in one run: others may use the machine
meanwhile.
"""

import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import results
from echolearn import DeepESNClassifier, ESNClassifier
from echolearn.export import plan_of
from echolearn.export.c.header import c_header

UNITS, FEATURES, FRAMES, REPEATS = 300, 39, 400, 15
C_WAYS = {
    "gcc -O2": ["gcc", "-O2"],
    "gcc -O3": ["gcc", "-O3"],
    "gcc -O3 -march=native": ["gcc", "-O3", "-march=native"],
    "clang -O3 -march=native": ["clang", "-O3", "-march=native"],
}
DEEP_UNITS, DEEP_LAYERS = 128, 6
DEEP_WAYS = ("gcc -O2", "gcc -O3", "gcc -O3 -march=native")
ALL_NUMBERS = ("gcc -O3", "gcc -O3 -march=native")  # the ways in which int16 and int8 are measured too
PROGRAM = """
#include <stdio.h>
#include <time.h>
#include "esn.h"
static float frames[FRAMES][esn_inputs], out[esn_outputs];
static esn_state state;
int main(void)
{
    double least = 1e9;
    int repeat, t;
    if (fread(frames, sizeof frames, 1, stdin) != 1)
        return 1;
    for (repeat = 0; repeat < REPEATS; repeat++) {
        const clock_t start = clock();
        double seconds;
        int again;
        esn_reset(&state);
        for (again = 0; again < 5; again++)
            for (t = 0; t < FRAMES; t++)
                esn_step(&state, frames[t], out);
        seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        least = seconds < least ? seconds : least;
    }
    printf("%.9g %.9g\\n", 1e6 * least / (5.0 * FRAMES), (double)out[0]);
    return 0;
}
"""


def least(function):
    """Return the least processor time of a call, in microseconds per frame."""
    function()
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return 1e6 * min(times) / FRAMES


def in_c(header, compiler, X):
    """Return the microseconds per frame of a header in C."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "esn.h").write_text(header)
        (place / "p.c").write_text(PROGRAM.replace("FRAMES", str(FRAMES)).replace("REPEATS", str(REPEATS)))
        command = [*compiler, "-std=c99", str(place / "p.c"), "-o", str(place / "p"), "-lm"]
        subprocess.run(command, check=True)
        done = subprocess.run([str(place / "p")], input=X.tobytes(), capture_output=True, check=True)
    return float(done.stdout.split()[0])


def session(content):
    """Return an onnxruntime session of one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def step_by_step(running, X):
    """Return a function that gives an ONNX step graph one frame after another."""
    start = json.loads(running.get_modelmeta().custom_metadata_map["initial_state"])

    def run():
        state = np.array(start, np.float32)
        for x in X:
            _, state = running.run(None, {"x": x, "state": state})

    return run


def one_by_one(stream, X):
    """Return a function that gives a stream one frame after another."""

    def run():
        for x in X:
            stream.predict_proba(x)

    return run


def data(classes):
    """Return sequences, labels of so many classes, and the frames that are measured on."""
    rng = np.random.default_rng(0)
    sequences = [rng.standard_normal((100, FEATURES)) for _ in range(10)]
    labels = list(np.resize(np.arange(classes), (10, 100)))
    return sequences, labels, rng.standard_normal((FRAMES, FEATURES)).astype(np.float32)


def ways_in_c(plan, X, ways):
    """Return microseconds and bytes of a network in C; ways: the flags by which float32 is compiled."""
    found = {}
    for numbers in ("float32", "int16", "int8"):
        header = c_header(plan, numbers=numbers)
        said = header.split("constants: ")[1].split(" bytes; one esn_state: ")
        memory = int(said[0]) + int(said[1].split()[0])
        for name in ways if numbers == "float32" else ALL_NUMBERS:
            found[f"C, {numbers}, {name}"] = (in_c(header, C_WAYS[name], X), memory)
    return found


def ways_in_onnx(plan, X):
    """Return microseconds and bytes of a network in onnxruntime."""
    from echolearn.export.onnx.graph import onnx_model

    step, sequence = onnx_model(plan, step=True), onnx_model(plan)
    whole = session(sequence)
    return {
        "onnxruntime, step by step": (least(step_by_step(session(step), X)), len(step)),
        "onnxruntime, whole sequences": (least(lambda: whole.run(None, {"X": X})), len(sequence)),
    }


def ways_in_python(model, X):
    """Return the microseconds of the estimator itself."""
    return {
        "Python stream, frame by frame": (least(one_by_one(model.stream(), X)), None),
        "Python predict_proba, whole sequences": (least(lambda: model.predict_proba(X)), None),
    }


def as_rows(classes, ways):
    """Return one row per way to run a network of so many classes."""
    base = ways["C, float32, gcc -O3"][0]
    return [
        {"way": way, "classes": classes, "microseconds": us, "ratio": us / base, "bytes": size}
        for way, (us, size) in ways.items()
    ]


def measure(classes):
    """Return the rows of one layer."""
    sequences, labels, X = data(classes)
    model = ESNClassifier(UNITS, learn="none", validation_fraction=0.0).fit(sequences, labels)
    plan = plan_of(model)
    return as_rows(classes, ways_in_c(plan, X, C_WAYS) | ways_in_onnx(plan, X) | ways_in_python(model, X))


def measure_deep(classes):
    """Return the rows of a deep network after one epoch."""
    sequences, labels, X = data(classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the labels have nothing to do with the frames
        model = DeepESNClassifier(DEEP_UNITS, DEEP_LAYERS, epochs=1).fit(sequences, labels)
    return as_rows(classes, ways_in_c(plan_of(model), X, DEEP_WAYS) | ways_in_python(model, X))


def show(rows):
    for row in rows:
        print(
            f"{row['classes']:>4} {row['way']:<40} {row['microseconds']:>8.2f} µs {row['ratio']:>8.2f} {row['bytes']}"
        )


def main():
    which = sys.argv[1:] or ["layer", "deep"]
    if "layer" in which:
        rows = measure(10) + measure(184)
        show(rows)
        results.write("export_speed", rows, units=UNITS, features=FEATURES, frames=FRAMES)
    if "deep" in which:
        rows = measure_deep(10) + measure_deep(184)
        show(rows)
        facts = {"units": DEEP_UNITS, "layers": DEEP_LAYERS, "features": FEATURES, "frames": FRAMES}
        results.write("deep_export_speed", rows, **facts)


if __name__ == "__main__":
    main()
