"""Print the files of echolearn that fits, predictions and recognition run through, and the modules that they load.

    python tools/files_of_a_fit.py [--json FILE]

Files stand in the order in which they are entered. What runs because a module is imported does not count. A machine's
first fit, which compiles the loops, enters three files more: NUMBA_CACHE_DIR=<empty folder> makes every fit a first
one. A table at the end has the numbers of files and modules, and `--json` writes their names.
"""

from __future__ import annotations

import argparse
import io
import json
import runpy
import subprocess
import sys
import tempfile
import threading
import wave
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType
from unittest import mock

import numpy as np

import echolearn
from echolearn import ESNClassifier, ESNForecaster

SOURCE = Path(echolearn.__file__).parent
SAMPLES_PER_SECOND = 16_000
TONES = {"sil": 0, "n": 300, "ow": 700, "s": 5200}  # phones and their frequencies in hertz
WORDS = {"NO": ("n", "ow"), "SO": ("s", "ow")}
IMPORT = "from echolearn import ESNClassifier"
EXPORT = """
import numpy as np
from echolearn import ESNRegressor
X = np.random.default_rng(0).normal(size=(100, 1))
esn = ESNRegressor(10, learn="none").fit(X, np.roll(X[:, 0], 1))
before = ours()
esn.export("x.h")
"""
RECOGNIZE = """
import runpy
sys.argv = ["echolearn", "recognize", "toy.safetensors", "speech/test"]
try:
    runpy.run_module("echolearn", run_name="__main__")
except SystemExit:
    pass
"""
# Such a process prints the modules of echolearn that it has loaded, without those of `before`.
BEGIN = """
import json, sys
def ours():
    return {name for name in sys.modules if name.split(".")[0] == "echolearn"}
before = set()
"""
END = """
print(json.dumps(sorted(ours() - before)))
"""


class Recorder:
    """A profiler that notes each file of echolearn with the first function called in it.

    One instance serves every run: worker threads keep the profiler that they were started with.
    """

    def __init__(self) -> None:
        self.entered: dict[str, str] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)) and not self._is_imported(frame):
            self.entered.setdefault(str(Path(code.co_filename).relative_to(SOURCE)), code.co_qualname)

    @staticmethod
    def _is_imported(frame: FrameType | None) -> bool:
        """Whether a module is being imported here: its body is below this call."""
        while frame is not None:
            if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(str(SOURCE)):
                return not frame.f_code.co_filename.endswith("__main__.py")
            frame = frame.f_back
        return False

    def files(self, action: Callable[[], object]) -> dict[str, str]:
        """Run `action` and return its files in the order in which they are entered."""
        self.entered = {}
        sys.setprofile(self)
        try:
            action()
        finally:
            sys.setprofile(None)
        return self.entered


def command(*words: object) -> None:
    """Run `echolearn` with these arguments, without its output."""
    ended: object = 0
    arguments = mock.patch.object(sys, "argv", ["echolearn", *map(str, words)])
    with arguments, redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
        try:
            runpy.run_module("echolearn", run_name="__main__")
        except SystemExit as end:
            ended = end.code
    if ended not in (0, None):
        raise RuntimeError(f"echolearn {' '.join(map(str, words))}: {out.getvalue()}")


def write_toy_speech(folder: Path) -> None:
    """Write recordings of words that are tones, with the times of their phones, and the lexicon of the words."""
    rng = np.random.default_rng(0)
    for number in range(16):
        stem = folder / ("train", "train", "valid", "test")[number % 4] / "ann" / f"u{number:02}"
        stem.parent.mkdir(parents=True, exist_ok=True)
        words = [("NO", "SO")[k] for k in rng.integers(2, size=2)]
        phones = ["sil", *WORDS[words[0]], "sil", *WORDS[words[1]], "sil"]
        edges = np.cumsum([0, *rng.integers(1500, 3000, len(phones))])
        frequencies = np.repeat([TONES[phone] for phone in phones], np.diff(edges))
        samples = 2500 * np.sin(2 * np.pi * frequencies * np.arange(edges[-1]) / SAMPLES_PER_SECOND)
        with stem.with_suffix(".wav").open("wb") as raw, wave.open(raw, "wb") as file:
            file.setparams((1, 2, SAMPLES_PER_SECOND, 0, "NONE", ""))
            file.writeframes((samples + rng.normal(size=len(samples)) * 300).astype("<i2").tobytes())
        rows = [f"{a} {b} {phone}\n" for a, b, phone in zip(edges[:-1], edges[1:], phones, strict=True)]
        stem.with_suffix(".phn").write_text("".join(rows))
        stem.with_suffix(".txt").write_text(f"0 {edges[-1]} {' '.join(words)}\n")
    (folder / "phones.txt").write_text("\n".join(TONES))
    (folder / "toy.dic").write_text("".join(f"{word}  {' '.join(phones)}\n" for word, phones in WORDS.items()))


def toy_recognizer(folder: Path) -> Path:
    """Write a recogniser of toy speech, and return its file. Another process makes it, so that nothing is loaded."""
    write_toy_speech(folder / "speech")
    made = folder / "toy.safetensors"
    words = ("train", "--out", made, "--for", "recognition", "--corpus", f"wav:{folder / 'speech'}", "--network", "esn")
    how = ("--cache", folder / "cache", "--units", "20", "--epochs", "0", "--lexicon", folder / "speech" / "toy.dic")
    subprocess.run([sys.executable, "-m", "echolearn", *words, *how], check=True, capture_output=True)
    return made


def calls(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what is called. The recogniser comes last: making it compiles loops."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(60, 3)) for _ in range(40)]
    y = [np.where(np.cumsum(x[:, 0]) > 0, "up", "down") for x in X]
    network = ESNClassifier(random_state=0).fit(X, y)  # compiles the loops, which a machine does once
    yield "fit", lambda: network.fit(X, y)
    yield "predict", lambda: network.predict(X)
    loop, waves = ESNForecaster(method="closed_loop"), np.sin(np.arange(400) / 5)
    yield "forecast fit, closed loop", lambda: loop.fit(waves)
    yield "forecast predict, closed loop", lambda: loop.predict(10)
    sales = 10 + np.sin(2 * np.pi * np.arange(120) / 12) + 0.2 * rng.normal(size=120)
    direct = ESNForecaster(method="direct")
    yield "forecast fit, direct", lambda: direct.fit(sales)
    yield "forecast predict, direct", lambda: direct.predict(10)
    made, sound = toy_recognizer(folder), folder / "speech" / "test"
    yield "recognize", lambda: command("recognize", made, sound, "--out", folder / "found.ctm")


def loaded(code: str, folder: Path) -> list[str]:
    """Return the modules of echolearn that a process of its own loads."""
    words = [sys.executable, "-W", "ignore", "-c", BEGIN + code + END]
    done = subprocess.run(words, check=True, capture_output=True, text=True, cwd=folder)
    return list(json.loads(done.stdout.splitlines()[-1]))


def measured(folder: Path) -> dict[str, list[str]]:
    """Print the files of all calls, and return them with the modules that are loaded, by title."""
    recorder, found = Recorder(), {}
    threading.setprofile(recorder)
    for title, action in calls(folder):
        files = recorder.files(action)
        print(f"{title}: {len(files)} files")
        for file, function in files.items():
            print(f"  {file:42} {function}")
        found[title] = list(files)
    threading.setprofile(None)  # type: ignore[arg-type]
    found["modules of the import"] = loaded(IMPORT, folder)
    found["further modules of export"] = loaded(EXPORT, folder)
    found["modules of recognize"] = loaded(RECOGNIZE, folder)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the files that fits, predictions and recognition run through.")
    parser.add_argument("--json", type=Path, help="a file for the names")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder))
    print("\nfiles that are entered, and modules that are loaded")
    for title, names in found.items():
        print(f"{len(names):5}  {title}")
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
