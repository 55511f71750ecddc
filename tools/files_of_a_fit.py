"""Print the files of echolearn that a default fit and a prediction run through, in the order in which they are entered.

python tools/files_of_a_fit.py
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np

import echolearn
from echolearn import ESNClassifier

SOURCE = Path(echolearn.__file__).parent


class Recorder:
    """A profiler that notes each file of echolearn with the first function called in it.

    One instance serves every run: worker threads keep the profiler that they were started with.
    """

    def __init__(self) -> None:
        self.entered: dict[str, str] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)) and code.co_name != "<module>":
            self.entered.setdefault(str(Path(code.co_filename).relative_to(SOURCE)), code.co_qualname)

    def files(self, action: Callable[[], object]) -> dict[str, str]:
        """Run `action` and return its files in the order in which they are entered."""
        self.entered = {}
        sys.setprofile(self)
        try:
            action()
        finally:
            sys.setprofile(None)
        return self.entered


def main() -> None:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(60, 3)) for _ in range(40)]
    y = [np.where(np.cumsum(x[:, 0]) > 0, "up", "down") for x in X]
    network = ESNClassifier(random_state=0)
    recorder = Recorder()
    threading.setprofile(recorder)
    for title, action in (("fit", lambda: network.fit(X, y)), ("predict", lambda: network.predict(X))):
        files = recorder.files(action)
        print(f"{title}: {len(files)} files")
        for file, function in files.items():
            print(f"  {file:38} {function}")


if __name__ == "__main__":
    main()
