"""The size of a page, the time until its first answer, and the time per frame of the network in it.

    python benchmarks/page_speed.py

A classifier of 300 units and 39 features, with 10 and with 184 classes, in Chromium ($ECHOLEARN_CHROMIUM or the one on
the path). Frames are timed 50 at a time by performance.now() inside the page; others may use the machine meanwhile, so
the least and the median of 300 such times are kept. The time until the first answer is that of the page's own clock,
from the moment it is opened; the least and the median of ten openings.
"""

import statistics
import tempfile
import warnings
from pathlib import Path

import numpy as np

import results
from echolearn import ESNClassifier
from echolearn.export.page.document import build_page, page_model
from echolearn.export.page.payload import pack_array
from reliability.browser import browser

UNITS, FEATURES, FRAMES, OPENINGS = 300, 39, 400, 10
TIMED = """([frames, whole]) => {
    const model = echolearn.models[0], X = echolearn.unpack(frames).values, n = model.inputs, steps = X.length / n;
    const x = Array.from({length: steps}, (_, t) => X.subarray(t * n, (t + 1) * n)), state = model.start(), times = [];
    for (let r = 0; r < 340; r++) {
        const began = performance.now();
        if (whole) model.run(X.subarray(0, 50 * n));
        else for (let k = 0; k < 50; k++) model.step(state, x[(50 * r + k) % steps]);
        times.push(1000 * (performance.now() - began) / 50);
    }
    return times.slice(40);
}"""


def opened(tab, file):
    """Open a page; return the milliseconds until it had shown its first answer."""
    tab.goto(file.as_uri())
    tab.wait_for_selector("html[data-ready]", state="attached")
    return tab.evaluate("echolearn.startedAfter")


def measure(opened_browser, classes, folder):
    """Return one row for a network of so many classes."""
    rng = np.random.default_rng(0)
    sequences = [rng.standard_normal((100, FEATURES)) for _ in range(10)]
    labels = list(np.resize(np.arange(classes), (10, 100)))
    warnings.simplefilter("ignore")  # so few labels for so many classes: only the time matters here
    esn = ESNClassifier(UNITS, learn="none", validation_fraction=0.0).fit(sequences, labels)
    file = folder / "page.html"
    file.write_text(build_page([page_model("model.safetensors", esn)]), encoding="utf-8")
    tab = opened_browser.new_page()
    starts = [opened(tab, file) for _ in range(OPENINGS)]
    X = pack_array(rng.standard_normal((FRAMES, FEATURES)))
    steps, whole = (tab.evaluate(TIMED, [X, way]) for way in (False, True))
    tab.close()
    return {
        "classes": classes,
        "bytes": file.stat().st_size,
        "first_answer_ms": {"least": min(starts), "median": statistics.median(starts)},
        "step_us": {"least": min(steps), "median": statistics.median(steps)},
        "whole_us": {"least": min(whole), "median": statistics.median(whole)},
    }


def main():
    with browser() as chromium, tempfile.TemporaryDirectory() as folder:
        rows = [measure(chromium, classes, Path(folder)) for classes in (10, 184)]
        version = chromium.version
    for row in rows:
        print(row)
    results.write("page_speed", rows, units=UNITS, features=FEATURES, frames=FRAMES, chromium=version)


if __name__ == "__main__":
    main()
