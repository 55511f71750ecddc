"""`echolearn serve` as a process of its own on a free port, for the campaigns that load and attack it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from echolearn import ESNClassifier
from echolearn.exceptions import PoorFitWarning

FEATURES, CLASSES, UNITS = 39, 40, 300  # as in speech


def speech_like() -> tuple[list[Any], list[Any]]:
    """Return frames and their labels: which of 40 intervals the first feature was in, one step before."""
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((200, FEATURES)) for _ in range(40)]
    edges = np.sort(rng.standard_normal(CLASSES - 1))
    return X, [np.digitize(np.roll(x[:, 0], 1), edges) for x in X]


def save_model(path: Path, units: int = UNITS) -> ESNClassifier:
    """Save and return a classifier of the frames of `speech_like`."""
    esn = ESNClassifier(units, learn="none", random_state=0)
    with warnings.catch_warnings(action="ignore", category=PoorFitWarning):  # how well it fits does not matter here
        esn.fit(*speech_like())
    esn.save(path)
    return esn


@dataclass(frozen=True)
class Served:
    """A running service."""

    process: subprocess.Popen[str]
    port: int
    log: Path

    @property
    def address(self) -> str:
        """Its host and port."""
        return f"127.0.0.1:{self.port}"

    def resident(self) -> int:
        """Return its resident memory in bytes."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))

    def processor_seconds(self) -> float:
        """Return the processor time it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def queued_seconds(self) -> float:
        """Return how long its event loop was ready to run and had to wait for a processor."""
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[1]) / 1e9

    def get(self, path: str, **headers: str) -> Any:
        """Return what a path answers: JSON, or text."""
        request = urllib.request.Request(f"http://{self.address}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            body = answer.read().decode()
            return json.loads(body) if "json" in answer.headers["content-type"] else body

    def stop(self) -> int:
        """Ask it to stop, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def served(model: Path, *options: str, **environment: str) -> Iterator[Served]:
    """Run `echolearn serve` on a free port until the end of the block."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("w") as errors:
            command = [sys.executable, "-m", "echolearn", "serve", "--no-page", str(model), "--port", "0", *options]
            process = subprocess.Popen(
                command, stderr=errors, text=True, env={**os.environ, **environment}, start_new_session=True
            )
        try:
            yield Served(process, _port(process, log), log)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def _port(process: subprocess.Popen[str], log: Path) -> int:
    """Wait until the service says its port."""
    for _ in range(1200):
        if found := re.search(r"http://\S+:(\d+) ", log.read_text()):
            return int(found[1])
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        break
    raise RuntimeError(f"the service did not start:\n{log.read_text()}")
