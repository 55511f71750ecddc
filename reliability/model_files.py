"""100,000 damaged and forged model and checkpoint files.

    python -m reliability.model_files [--files 100000] [--seed 0]

A damaged file (cut short, bits flipped, parts moved, another header) must be refused with ModelFileError, or hold
exactly what the sound one does. A forged file has a checksum that is right for its content: it must be refused, or be a
sound network, whose predictions are finite and which can be saved again. Nothing may crash, run longer than LIMIT
seconds, or take more memory than the file and 100 MB: every file is read in a process whose address space is limited to
that.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from reliability import forging, results
from reliability.memory import limit_growth, process_bytes

LIMIT = 5  # seconds per file
ROOM = 100 * 2**20  # bytes of memory besides the file
WAYS = ("truncated", "flipped", "rearranged", "random header", "forged")
SHARES = {"truncated": 0.3, "flipped": 0.25, "rearranged": 0.1, "random header": 0.1, "forged": 0.25}
COLUMNS = ("files", "refused", "equal", "sound", "wrong")


def sound_files(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Return small models of every kind and the checkpoints of a fit: {name: (kind of file, content)}."""
    from echolearn import (
        DeepESNClassifier,
        DeepESNRegressor,
        ESNClassifier,
        ESNForecaster,
        ESNRegressor,
        Reservoir,
        SeriesClassifier,
        SeriesRegressor,
    )

    rng = np.random.default_rng(0)
    X = [rng.standard_normal((n, 2)) for n in (30, 25, 20, 30, 25, 20)]
    labels = [np.where(x[:, 0] > 0, "low", "high") for x in X]
    learning: dict[str, Any] = {"batch_size": 3, "step_size": 0.01}
    small: dict[str, Any] = {"reservoir": {"connections": 2}, "epochs": 2, "learning": learning}
    ring = np.roll(np.eye(4), 1, axis=1)
    drawing = {"topology": ring, "initial_state": np.full(4, 0.1)}
    own = Reservoir.random(2, 4, connections=2, bias_scaling=0.1, leak=(0.2, 0.9), random_state=0)
    own_settings = {"reservoir": own, "learning": {**learning, "fit_intercept": False}}
    models = {
        "classifier": ESNClassifier(4, **small).fit(X, labels),
        "numbers, sums": ESNClassifier(4, **small, readout="ridge").fit(X, [(y == "low") * 3 for y in labels]),
        "regressor": ESNRegressor(4, **small | {"reservoir": drawing}).fit(X, X),
        "own reservoir": ESNClassifier(**small | own_settings).fit(X, labels),
        "series": SeriesClassifier(4).fit(X, ["a", "b"] * 3),
        "values of series": SeriesRegressor(4, dtype="float64").fit(X, [x[0] for x in X]),
        "both directions": ESNClassifier(4, **small, bidirectional=True).fit(X, labels),
        "deep": DeepESNClassifier(4, 2, epochs=15, ensemble=2).fit(X, labels),
        "deep, sums": DeepESNRegressor(4, 1, epochs=2, bidirectional=True).fit(X, [x[0] for x in X]),
        "forecaster": ESNForecaster(4, **small, washout=3).fit(X[0], exogenous=X[0][:, :1]),
    }
    found = {}
    for name, model in models.items():
        model.save(folder / "m", **({"sums": True} if name.endswith("sums") else {}))
        found[name] = "echolearn-model", (folder / "m").read_bytes()
    ESNClassifier(4, **small | {"learning": {**learning, "refine_epochs": 2}}).fit(
        X, labels, checkpoint=folder / "kept"
    )
    DeepESNRegressor(4, 2, epochs=3).fit(X, X, checkpoint=folder / "deep")
    for name in ("kept", "kept/refining", "deep"):
        newest = sorted((folder / name).glob("*.safetensors"))[-1]
        found[f"checkpoint {name}"] = "echolearn-checkpoint", newest.read_bytes()
    return found


def spoiled(way: str, kind: str, content: bytes, rng: np.random.Generator, count: int) -> Iterator[bytes]:
    """Yield about `count` files damaged or forged in one of the WAYS."""
    if way == "truncated":
        yield from forging.truncations(content, count)
    elif way == "flipped":
        yield from forging.flips(content, rng, count)
    elif way == "rearranged":
        yield from forging.rearranged(content, rng, count)
    elif way == "random header":
        yield from forging.random_headers(content, rng, count)
    else:
        yield from forging.forged(forging.taken_apart(content, kind), kind, rng, count)


def content_of(path: Path, kind: str) -> Any:
    """Return the model, if the file is one, and all that the file holds, as plain values that can be compared."""
    from echolearn import load
    from echolearn.modelfile.reader import read_tensors
    from echolearn.modelfile.values import history_rows

    if kind == "echolearn-checkpoint":
        return None, _resumed(path)
    model = load(path)
    tensors, facts = read_tensors(path, kind)
    rows = history_rows(tensors, facts.pop("history_columns"))
    return model, _plain(tensors, facts, rows)


def _resumed(path: Path) -> Any:
    """Return what a fit would resume from; None, or CheckpointError, where it would not."""
    from echolearn import Reservoir
    from echolearn.exceptions import CheckpointWarning
    from echolearn.modelfile.checkpoint import Checkpoint
    from echolearn.training.objectives.ridge import weight_shapes

    folder = path.parent / "resumed"
    folder.mkdir(exist_ok=True)
    (folder / "state-000000002.safetensors").write_bytes(path.read_bytes())
    reservoir = Reservoir.random(2, 4, connections=2, bias_scaling=0.1, random_state=0)
    M, n_out = 7, 2  # 4 units, 2 inputs and the intercept; 2 classes
    like_U = ("Q", "U", "held", "solved", "V", "velocity", "best_V", "safe_V", "began_V")
    about, shapes = json.loads((path.parent / "about.json").read_text())
    allowed = {**shapes, **weight_shapes(reservoir), "G": (M, M), **dict.fromkeys(like_U, (M, n_out))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CheckpointWarning)  # a file that is passed over counts as refused
        state = Checkpoint(folder, about).load(allowed)
    return None if state is None else _plain(*state, state[1].pop("history"))


def _plain(tensors: dict[str, Any], facts: dict[str, Any], rows: Any) -> Any:
    """Return the content of a file as text that can be compared."""
    arrays = {n: (v.dtype.str, v.shape, v.tobytes()) for n, v in tensors.items() if not n.startswith("history")}
    return repr(sorted(arrays.items())), json.dumps(facts, sort_keys=True, default=repr), repr(rows)


def is_sound(model: Any, path: Path) -> bool:
    """Return whether a model predicts finite numbers, or an error or warning says why not, and it can be saved."""
    from echolearn import ESNForecaster

    X = np.random.default_rng(1).standard_normal((200, 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if isinstance(model, ESNForecaster):
                form = model.forecast_.form
                exogenous = np.ones((3, len(form.exogenous_mean)))
                given = [exogenous] * len(model.forecast_.last_value) if form.many else exogenous
                answer = np.concatenate(list(model.predict(3, exogenous=given if exogenous.size else None)), axis=None)
            else:
                answer = model.predict(X) if model.per_step_ else model.predict([X])
        except ValueError as problem:
            return any(
                words in str(problem) for words in ("not finite", "nothing of it would be left")
            )  # a long washout
    model.save(path)
    return answer.dtype.kind != "f" or bool(np.isfinite(answer).all()) or bool(caught)


def large_model(folder: Path) -> dict[str, int]:
    """Read a sound model of about 130 MB in a process that may grow by its size and 100 MB."""
    code = """
        import sys
        from pathlib import Path
        from echolearn import ESNRegressor, load  # the estimator's modules are loaded before the limit
        from reliability.memory import limit_growth, process_bytes
        path = Path(sys.argv[1])
        limit_growth(path.stat().st_size + int(sys.argv[2]))
        before = process_bytes("VmRSS")
        assert load(path).network_.readout.statistics is not None
        print(process_bytes("VmHWM") - before)
    """
    from echolearn import ESNRegressor

    X = np.random.default_rng(0).standard_normal((300, 2))
    path = folder / "large"
    ESNRegressor(4000, learn="none", ridge=1.0).fit(X, X).save(path, sums=True)
    command = [sys.executable, "-c", textwrap.dedent(code), str(path), str(ROOM)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return {"bytes": path.stat().st_size, "resident memory grew by": int(done.stdout)}


def judged(path: Path, kind: str, true: Any, way: str) -> str:
    """Return the verdict on one file: refused, equal, sound or wrong. true: the content of the sound file."""
    from echolearn.exceptions import CheckpointError, ModelFileError

    try:
        model, carried = content_of(path, kind)
    except (ModelFileError, CheckpointError):
        return "refused"
    if carried is None:
        return "refused"  # the checkpoint is passed over
    if carried == true:
        return "equal"
    if way == "forged" and (model is None or is_sound(model, path.with_suffix(".again"))):
        return "sound"
    return "wrong"


def true_content(path: Path, kind: str, content: bytes) -> Any:
    """Write the sound file, and beside it which fit a checkpoint belongs to; return what the file holds."""
    path.write_bytes(content)
    tensors, facts = forging.taken_apart(content, kind)
    shapes = {name: value.shape for name, value in tensors.items()}  # a deep fit allows exactly those
    (path.parent / "about.json").write_text(json.dumps([facts.get("about"), shapes]))
    return content_of(path, kind)[1]


def child(job: dict[str, Any], folder: Path) -> None:
    """Judge one file damaged in every way, in a process with little memory, and print a line of JSON at the end."""

    def too_long(*_: Any) -> None:
        raise TimeoutError(f"more than {LIMIT} seconds")

    signal.signal(signal.SIGPROF, too_long)
    path = folder / "file"
    content = Path(job["content"]).read_bytes()
    true = true_content(path, job["kind"], content)
    if job["kind"] == "echolearn-model":
        is_sound(content_of(path, job["kind"])[0], path.with_suffix(".again"))  # compiles what it needs
    answers = {way: judge_all(way, count, job, path, true=true) for way, count in job["ways"].items()}
    print(json.dumps(answers))


def judge_all(way: str, count: int, job: dict[str, Any], path: Path, *, true: Any) -> dict[str, Any]:
    """Return the verdicts on `count` files damaged in one way, the slowest one, and the largest growth of memory."""
    content, rng = Path(job["content"]).read_bytes(), np.random.default_rng([*job["seed"], WAYS.index(way)])
    counts: Counter[str] = Counter()
    slowest, largest, failures = 0.0, 0, []
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak of the resident memory
    before = process_bytes("VmRSS")
    for number, made in enumerate(spoiled(way, job["kind"], content, rng, count)):
        path.write_bytes(made)
        largest = max(largest, len(made))
        limit_growth(len(made) + ROOM)
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        started = time.process_time()
        try:
            verdict = judged(path, job["kind"], true, way)
        except BaseException as problem:
            verdict = f"wrong: {type(problem).__name__}: {problem}"[:200]
        signal.setitimer(signal.ITIMER_PROF, 0)
        slowest = max(slowest, time.process_time() - started)
        counts["files"] += 1
        counts[verdict.split(":")[0]] += 1
        if verdict.startswith("wrong") and len(failures) < 20:
            failures.append([number, verdict])
    grown = process_bytes("VmHWM") - before
    return {"counts": counts, "slowest": slowest, "largest": largest, "grown": grown, "failures": failures}


def run_child(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the child's answer; a crash, or a hang that no timer ends, counts as wrong."""
    command = [sys.executable, "-m", "reliability.model_files", "--job", json.dumps(job), "--folder", str(folder)]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=7200)
        what = f"exit code {done.returncode}"
        if done.returncode == 0:
            return dict(json.loads(done.stdout.splitlines()[-1]))
    except subprocess.TimeoutExpired:
        what = "a hang"
    return {way: {"counts": {"files": 1, "wrong": 1}, "failures": [[-1, f"wrong: {what}"]]} for way in WAYS}


def campaign(total: int, folder: Path, seed: int = 0) -> dict[str, Any]:
    """Return all figures of about `total` damaged and forged files."""
    files = sound_files(folder)
    rows: dict[str, Counter[str]] = {way: Counter() for way in WAYS}
    slowest, grown, largest, failures = 0.0, 0, 0, []
    for k, (name, (kind, content)) in enumerate(files.items()):
        place = folder / f"sound-{k}"
        place.write_bytes(content)
        ways = {way: math.ceil(total * share / len(files)) for way, share in SHARES.items()}
        answers = run_child({"content": str(place), "kind": kind, "seed": [seed, k], "ways": ways}, folder)
        for way, answer in answers.items():
            rows[way].update(answer["counts"])
            slowest, grown = max(slowest, answer.get("slowest", 0.0)), max(grown, answer.get("grown", 0))
            largest = max(largest, answer.get("largest", 0))
            failures += [f"{name}, {way}, file {number}: {what}" for number, what in answer["failures"]]
        judged_files = sum(answer["counts"].get("files", 0) for answer in answers.values())
        print(f"{name}: {judged_files} files", file=sys.stderr, flush=True)
    table = {way: dict(row) for way, row in rows.items()}
    table["all"] = dict(sum(rows.values(), Counter()))
    return {
        "files": table,
        "sound files": {name: len(content) for name, (_, content) in files.items()},
        "slowest seconds": round(slowest, 3),
        "largest file": largest,
        "resident memory grew by at most": grown,
        "large model": large_model(folder),
        "failures": failures,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000, help="files in all")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draws")
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job is not None:
        child(options.job, options.folder)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        figures = campaign(options.files, Path(folder), options.seed)
    results.show("damaged and forged files", COLUMNS, figures["files"])
    print(f"slowest: {figures['slowest seconds']} s of processor time; limit {LIMIT} s per file")
    grown = figures["resident memory grew by at most"]
    print(f"largest file: {figures['largest file']:,} bytes; resident memory grew by at most {grown:,} bytes")
    print(f"a sound model of {figures['large model']['bytes']:,} bytes: {figures['large model']}")
    for failure in figures["failures"]:
        print("FAILED", failure)
    results.keep("model_files", figures)
    return 1 if figures["files"]["all"].get("wrong") else 0


if __name__ == "__main__":
    sys.exit(main())
