"""A repository of its own with the harness of the contest, two sides that cost nothing, and a file like AN4's."""

import importlib
import io
import json
import shutil
import subprocess
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import contest
import contest_worker
import protocol

ROOT = Path(__file__).parents[2]
HARNESS = ("an4", "contest", "contest_plan", "contest_worker", "measure", "protocol", "results")
# Column 0 of a frame is its label, column 1 a number between 0 and 1: a network of error rate r is wrong where that
# number, moved by the seed, lies below r. Column 2 is 1 in the test part, where the rate may be another.
SIDE = '''"""A side of a small contest."""

import time

import numpy as np


def train(data, settings, core_seconds, seed):
    """Spend the seconds that the settings say, and return a network with the error rates that they say."""
    assert sorted(data) == ["train", "valid"]
    start = time.process_time()
    while time.process_time() - start < settings.get("spends", 0):
        pass
    facts = {"utterances": len(data["train"][0]), "weights": 7}
    if "reports" in settings:
        facts["core_seconds"] = settings["reports"]

    def probabilities(cepstra):
        return [answer(c, settings, seed) for c in cepstra]

    return probabilities, facts


def answer(c, settings, seed):
    rate = settings["test"] if c[0, 2] else settings["valid"]
    wrong = (c[:, 1] + settings.get("step", 0.0) * seed) % 1 < rate
    return np.eye(3)[(c[:, 0].astype(int) + wrong) % 3]
'''
FROZEN = {
    "seeds": [0, 1, 2],
    "rows": {"single": {"budgets": [20, 60], "asked": 0.08}, "ensembles": {"budgets": [60], "asked": 0.08}},
    "sides": {name: {"module": name, "code": [f"benchmarks/{name}.py"]} for name in ("fake_ours", "fake_torch")},
}


def candidate(side, name, budget, row="single", **entry):
    """Return a candidate; without `valid` it is the same network as another (`of`)."""
    settings = {key: entry.pop(key) for key in ("valid", "test", "spends", "reports", "step") if key in entry}
    return {
        "side": side,
        "row": row,
        "name": name,
        "budget": budget,
        **({"settings": settings} if settings else {}),
        **entry,
    }


class Repository:
    """A temporary repository; `write` and `commit` change it, `run` starts its contest."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "benchmarks" / "frozen").mkdir(parents=True)
        for name in HARNESS:
            shutil.copy(ROOT / "benchmarks" / f"{name}.py", folder / "benchmarks")
        for name in ("fake_ours", "fake_torch"):
            self.write(f"benchmarks/{name}.py", SIDE)
        self.write(".gitignore", "__pycache__/\nruns/\n*.lock\n")
        self.write_data(0)
        self.git("init", "--quiet")

    def write(self, name, text):
        """Write a file of the repository."""
        (self.folder / name).write_text(text)

    def write_data(self, seed):
        """Write an4.npz: 40 utterances of 50 frames, 20 to train on, 10 valid, 10 test."""
        rng = np.random.default_rng(seed)
        split = np.repeat(["train", "valid", "test"], [20, 10, 10])
        labels = rng.integers(3, size=2000)
        columns = [labels, rng.uniform(size=2000), np.repeat(split == "test", 50), *np.zeros((10, 2000))]
        lengths = np.full(40, 50)
        np.savez(self.data, features=np.column_stack(columns), labels=labels, lengths=lengths, split=split)

    @property
    def data(self):
        """Return the path of the data, which are not part of the repository."""
        return self.folder / "runs.npz"

    def freeze(self, candidates, commit=True, **changes):
        """Write the frozen file of the contest, and commit everything unless told not to."""
        frozen = {**FROZEN, **changes, "candidate": candidates}
        frozen["sides"] = {"ours": FROZEN["sides"]["fake_ours"], "torch": FROZEN["sides"]["fake_torch"]}
        frozen["arrays_sha256"] = protocol.data_digest(self.data)
        self.write("benchmarks/frozen/contest.toml", toml(frozen))
        if commit:
            self.commit()

    def git(self, *arguments):
        """Run a git command."""
        command = ["git", "-c", "user.name=test", "-c", "user.email=test@example.org", *arguments]
        return subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self):
        """Commit everything but the data."""
        self.git("add", ".gitignore", "benchmarks")
        self.git("commit", "--quiet", "--allow-empty", "--message", "a step")

    def run(self, *arguments, data=None):
        """Run the contest in this process, its workers too, and return its exit code and what it has printed."""
        output, errors = io.StringIO(), io.StringIO()
        with redirect_stdout(output), redirect_stderr(errors):
            code = _exit_code(["--data", str(data or self.data), "--jobs", "1", *map(str, arguments)])
        return SimpleNamespace(returncode=code, stdout=output.getvalue(), stderr=errors.getvalue())

    def run_in_processes(self, *arguments):
        """Run the contest as a user does."""
        command = [sys.executable, "benchmarks/contest.py", "--data", str(self.data), *map(str, arguments)]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True)

    def results(self, name="contest"):
        """Return a result file."""
        path = self.folder / "benchmarks" / "results" / f"{name}.json"
        return json.loads(path.read_text()) if path.exists() else {}


def _exit_code(arguments):
    try:
        contest.main(arguments)
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        return 1 if isinstance(error.code, str) else int(error.code or 0)
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def in_this_process(job, path):
    """Do the work of a worker without a process, and return what went wrong."""
    for name in ("fake_ours", "fake_torch", "helper"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    try:
        contest_worker.perform(job, path)
    except Exception:
        return traceback.format_exc()
    return None


def toml(values):
    """Return a dict of numbers, strings, lists and dicts as TOML: inline tables everywhere."""
    return "".join(f"{key} = {_inline(value)}\n" for key, value in values.items())


def _inline(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{key}" = {_inline(entry)}' for key, entry in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    return json.dumps(value)
