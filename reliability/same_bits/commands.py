"""Cases of the commands: what `python -m echolearn` prints and writes on small files, without times and versions."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import runpy
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from basis import GROUPS, TIMES, Run, arrays_of, case, name_alone, new_X, plain, public, without
from forecasts import sales

import echolearn
from exports import contents, graph, model
from speech import RATE, recognizer, toy, utterances, write_sound

STATES = tuple(f"{phone}_s{state}" for phone in ("aa", "b", "sil") for state in (2, 3, 4))
ORIGINS = ("made_with", "sha256", "fingerprint")  # who computed a result, with what, and when
FORMER = ("plasticity",)  # settings that one commit has and another does not
CLOCK = re.compile(r"\b\d+:\d\d(:\d\d)?\b|\b[\d.]+ s\b")
CHANGED = re.compile(r"(settings other than the defaults): (.*)")
SAVED = re.compile(r"saved by echolearn .*")  # with the size and the date of the file


# ---------------------------------------------------------------- the command


def command(*words: object, code: int = 0, clock: bool = False) -> str:
    """What the command prints. An error is printed too; progress, which depends on time, is not recorded."""
    out, errors, ended = io.StringIO(), io.StringIO(), 0
    with mock.patch.object(sys, "argv", ["echolearn", *map(str, words)]), redirect_stdout(out), redirect_stderr(errors):
        try:
            runpy.run_module("echolearn", run_name="__main__")
        except SystemExit as end:
            ended = int(end.code or 0)
    if ended != code:
        raise RuntimeError(f"{' '.join(map(str, words))} ended with {ended}:\n{out.getvalue()}\n{errors.getvalue()}")
    printed = SAVED.sub("saved by echolearn", out.getvalue() + (errors.getvalue() if code else ""))
    printed = CHANGED.sub(lambda found: f"{found[1]}: {settings_alone(found[2])}", printed)
    return plain(CLOCK.sub("TIME", printed) if clock else printed)


def settings_alone(text: str) -> str:
    """Settings `a=1, learning={'b': 2}` as `a=1, b=2`, sorted, whether or not a commit gives some of them in a dict."""
    if text == "none":
        return text
    text = re.sub(r"an array of shape \([\d, ]*\)", r"'\g<0>'", text)
    found = ast.parse(f"dict({text})", mode="eval").body
    if not isinstance(found, ast.Call):
        raise ValueError(f"{text!r:.200} are no settings.")
    flat = []
    for setting in found.keywords:
        inside = setting.arg in GROUPS and isinstance(setting.value, ast.Dict)
        given = ast.literal_eval(setting.value)
        flat += [f"{key}={value!r}" for key, value in (given if inside else {setting.arg: given}).items()]
    return ", ".join(sorted(flat))


def written(*names: str) -> dict[str, str]:
    """The texts of files, and of all files in folders."""
    files = [file for name in names for file in [Path(name), *sorted(Path(name).rglob("*"))] if file.is_file()]
    return {str(file): plain(file.read_text()) for file in files}


def corpus() -> str:
    """A corpus of about 2,000 frames, whose states follow from the features of a frame and of the frame before."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(30, 60, 48)
    X = rng.normal(size=(int(lengths.sum()), 5)).astype(np.float32)
    before = np.vstack([X[:1], X[:-1]])
    phone = np.argmax(X[:, :3] + 0.5 * before[:, :3], axis=1)
    state = np.clip(np.round(1 + before[:, 3]), 0, 2).astype(int)
    np.savez(
        "small.npz",
        features=X,
        labels=(3 * phone + state).astype(np.int16),
        lengths=lengths.astype(np.int32),
        utterances=np.array([f"u{k:02}" for k in range(48)]),
        speakers=np.array([f"s{k % 6}" for k in range(48)]),
        split=np.array((["train"] * 4 + ["valid", "test"]) * 8),
        state_names=np.array(STATES),
    )
    return "features:small.npz"


def table(path: str, frames: Any, **columns: Any) -> str:
    names = [*columns, *(f"x{k}" for k in range(frames.shape[1]))]
    rows = [",".join(names), *(",".join(map(str, row)) for row in zip(*columns.values(), *frames.T, strict=True))]
    Path(path).write_text("\n".join(rows) + "\n")
    return path


# ---------------------------------------------------------------- networks and tables


@case
def command_train(run: Run) -> Any:
    """train, evaluate, predict, info and align on a corpus of features."""
    found: dict[str, Any] = {}
    with chdir(run.work):
        where = ("--corpus", corpus())
        for name, how in {
            "ours": ("--epochs", 3),
            "paper": ("--paper", "--epochs", 2),
            "fixed": ("--epochs", 0),
        }.items():
            file = f"{name}.safetensors"
            found[name] = [
                command("train", "--out", file, *where, "--units", 15, *how, clock=True),
                arrays_of(Path(file)),
            ]
            found[f"{name}, evaluated"] = [
                command("evaluate", file, *where), command("evaluate", file, *where, "--json", "--part", "valid")
            ]  # fmt: skip
            found[f"{name}, described"] = command("info", file, clock=True)
            found[f"{name}, predicted"] = [command("predict", file, *where, "--out", "a.mlf"), written("a.mlf")]
            command("predict", file, *where, "--out", "a.npz")
            with np.load("a.npz") as arrays:
                found[f"{name}, probabilities"] = {key: arrays[key] for key in arrays}
        found["corpus"] = command("info", *where)
        found["labels"] = [command("align", *where, "--out", "states.mlf"), written("states.mlf")]
        found["refusals"] = [
            command("evaluate", "none.safetensors", *where, code=2),
            command("train", "--out", "m.safetensors", "--corpus", "features:none.npz", code=2),
            command("train", "--out", "m.safetensors", *where, "--set", "epoch=3", code=2),
        ]  # fmt: skip
    return found


@case
def command_predict(run: Run) -> Any:
    """predict and info on tables and arrays, for every kind of model."""
    x, found = np.vstack(new_X), {}
    sites = np.repeat(["north", "south"], [100, len(x) - 100])
    names = ("classifier", "regressor", "series, labels", "classifier, ensemble", "deep regressor", "pipeline")
    with chdir(run.work):
        rows = table("rows.csv", x, site=sites)
        np.savez("named.npz", first=new_X[0], second=new_X[1])
        for name in names:
            echolearn.save(model(name), "model.safetensors")
            found[name] = [command("info", "model.safetensors", clock=True)]
            for file, how in ((rows, ("--id", "site")), ("named.npz", ())):
                more = ("--probabilities",) if "regressor" not in name else ()
                printed = command("predict", "model.safetensors", file, *how, *more, "--out", "out.csv")
                found[name] += [printed, written("out.csv")]
        for name in ("forecaster", "direct forecaster", "forecaster with inputs"):
            echolearn.save(model(name), "model.safetensors")
            found[name] = command("info", "model.safetensors", clock=True)
        found["refusal"] = command("predict", "model.safetensors", rows, code=2)
    return found


@case
def command_forecast(run: Run) -> Any:
    """Months with a gap, days by semicolons with decimal commas, hours without dates, and what is refused."""
    found: dict[str, Any] = {}
    with chdir(run.work):
        months = [f"{2015 + i // 12}-{i % 12 + 1:02},{value:.1f},{i // 20}" for i, value in enumerate(sales(72))]
        months[20] = months[20].split(",")[0] + ",,1"
        Path("months.csv").write_text("\n".join(["month,sales,shops", *months]) + "\n")
        found["months"] = command("forecast", "months.csv", "--column", "sales", "--horizon", 6)
        days = np.arange("2023-01-25", "2023-06-01", dtype="M8[D]").astype(object)
        values = [f"{value:.2f}".replace(".", ",") for value in sales(len(days), 1, 7)]
        lines = [f"{day:%d.%m.%Y};{value}" for day, value in zip(days, values, strict=True)]
        Path("days.csv").write_text("\n".join(["Tag;Wert", *lines[:50], *lines[53:]]) + "\n")
        found["days"] = command("forecast", "days.csv", "--out", "later.csv", "--coverage", 0.8)
        Path("plain.csv").write_text("\n".join(f"{value:.3f}" for value in sales(60, 2, 6)) + "\n")
        found["plain"] = command("forecast", "plain.csv", "--season", 6, "--horizon", 8)
        found["files"] = written("months-forecast.csv", "later.csv", "plain-forecast.csv")
        found["refusals"] = [
            command("forecast", "months.csv", code=2), command("forecast", "none.csv", code=2),
            command("forecast", "months.csv", "--column", "sale", code=2),
        ]  # fmt: skip
    return found


@case
def command_export(run: Run) -> Any:
    found: dict[str, Any] = {}
    with chdir(run.work):
        for name in ("classifier", "regressor", "series, labels"):
            echolearn.save(model(name), "model.safetensors")
            more = ("model.onnx", "--step") if "series" not in name else ("model.onnx",)
            printed, read = (
                command("export", "model.safetensors", "--out", *more),
                graph if "series" in name else contents,
            )
            found[name] = [printed, read(Path("model.onnx"))]
        echolearn.save(model("classifier"), "model.safetensors")
        for numbers in ("float32", "int8"):
            printed = command("export", "model.safetensors", "--out", "m.h", "--numbers", numbers, "--name", "net")
            found[numbers] = [printed, contents(Path("m.h"))]
        recognizer(run).save("toy.safetensors")
        found["recogniser"] = [
            command("export", "toy.safetensors", "--out", "toy.h"),
            written("toy.h", "toy_features.h"),
        ]
        found["page"] = command("page", "model.safetensors", "--out", "model.html")
        found["refusal"] = command("export", "model.safetensors", "--out", "model.doc", code=2)
    return found


@case
def command_tune(run: Run) -> Any:
    try:
        import optuna  # noqa: F401
    except ImportError:
        return "optuna is not installed"
    with chdir(run.work):
        words = ("tune", "--corpus", corpus(), "--units", 10, "--epochs", 1, "--trials", 2, "--out", "tuned")
        printed = command(*words, clock=True)
        best = [name_alone(line) for line in written("tuned/best.toml")["tuned/best.toml"].splitlines()]
        return printed, sorted(best)


# ---------------------------------------------------------------- speech


@case
def command_recognize(run: Run) -> Any:
    """Every format, levels, other words, confidences, hypotheses, channels, and recordings that cannot be read."""
    found: dict[str, Any] = {}
    with chdir(run.work):
        recognizer(run).save("toy.safetensors")
        for name, (_, samples, _) in zip(("ann/one", "ann/two words", "bob/one"), utterances(3, seed=2), strict=True):
            write_sound(Path("sound") / f"{name}.wav", samples)
        found["info"] = command("info", "toy.safetensors")
        here = ("recognize", "toy.safetensors", "sound")
        found["printed"] = [command(*here, "--out", kind) for kind in ("ctm", "json", "stm", "mlf")]
        found["files"] = [command(*here, "--out", name) for name in ("a.ctm", "a.json", "a.stm", "a.mlf", "grids")]
        found["grids"] = written("a.ctm", "a.json", "a.stm", "a.mlf", "grids")
        found["phones"] = command(*here, "--level", "phones")
        found["confidences"] = command(*here, "--confidences")
        found["hypotheses"] = [command(*here, "--nbest", 3), command(*here, "--nbest", 3, "--level", "phones")]
        Path("few.txt").write_text("NO SO\n")
        Path("other.dic").write_text("nope  N OW\nyep  Y EH S\nso  S OW\n")
        public("write_arpa")("other.arpa", public("estimate")([["nope", "so"], ["yep"], ["so", "nope"]]))
        other = ("--lexicon", "other.dic", "--language-model", "other.arpa")
        found["other words"] = [command(*here, "--words-list", "few.txt"), command(*here, *other)]
        both = np.stack([samples[:8000] for _, samples, _ in utterances(2, seed=2)], axis=1)
        write_sound(Path("two.wav"), both)
        two = ("recognize", "toy.safetensors", "two.wav", "--level", "phones")
        found["channels"] = [command(*two, "--channels", how) for how in ("mix", "split", 2)]
        found["refused"] = [command(*two, code=1), command("recognize", "toy.safetensors", code=2)]
        Path("sound/noise.wav").write_bytes(b"RIFF no sound")
        found["damaged"] = command(*here, code=1)
    return found


@case
def command_score(run: Run) -> Any:
    found: dict[str, Any] = {}
    with chdir(run.work):
        Path("true.txt").write_text("u1 GO ON NOW\nu2 STOP SIL\nu3 YES\nu4 GO GO\n")
        Path("a.ctm").write_text("u1 1 0.00 0.10 go\nu1 1 0.10 0.10 in\nu2 1 0.00 0.20 stop\nu2 1 0.20 0.20 it\n")
        Path("b.txt").write_text("u1 GO IN NOW\nu2 STOP\nu3 NO\nu4 GO\n")
        Path("who").write_text("u1 ann\nu2 ann\nu3 bob\nu4 cid\n")
        for file in ("a.ctm", "b.txt"):
            for k, how in enumerate(
                ((), ("--ignore", "nothing"), ("--case",), ("--speakers", "who", "--by", "speaker", "--by", "token"),
                 ("--against", "b.txt"), ("--json", "--speakers", "who", "--against", "b.txt"))
            ):  # fmt: skip
                found[f"{file} {k}"] = command("score", "true.txt", file, *how)
        Path("a.mlf").write_text('#!MLF!#\n"*/u.lab"\n0 100000 ix_s2\n100000 200000 ix_s3\n200000 300000 zh_s2\n.\n')
        Path("b").write_text("u ih sh\n")
        found["phones"] = [command("score", "a.mlf", "b"), command("score", "a.mlf", "b", "--map", 39)]
        found["refusal"] = command("score", "true.txt", "b", code=2)
    return found


@case
def command_train_recognition(run: Run) -> Any:
    """A recogniser from recordings, with words and without; from a corpus of features; and what it recognises there."""
    found: dict[str, Any] = {}
    root = toy(run)
    with chdir(root):
        speech = ("--corpus", "wav:speech", "--cache", "cache", "--normalise", "running")
        made = run.work / "toy.safetensors"
        words = (
            "train",
            "--out",
            made,
            "--for",
            "recognition",
            *speech,
            "--units",
            20,
            "--epochs",
            2,
            "--lexicon",
            "toy.dic",
        )
        found["trained"] = [command(*words, clock=True), arrays_of(made)]
        found["corpus"] = command("info", *speech)
        found["part"] = [command("recognize", made, *speech, "--part", part) for part in ("valid", "test")]
        found["evaluated"] = command("evaluate", made, *speech)
        samples = utterances(1, seed=3)[0][1]
        found["states"] = [command("predict", made, write_sound(Path("one.wav"), samples, RATE), "--out", "one.mlf")]
        found["states"] += [written("one.mlf"), command("align", *speech, "--out", "states.mlf"), written("states.mlf")]
    with chdir(run.work):
        plain_words = (
            "train",
            "--out",
            "small.safetensors",
            "--for",
            "recognition",
            "--corpus",
            corpus(),
            "--units",
            15,
        )
        found["features"] = [command(*plain_words, "--epochs", 1, clock=True), arrays_of(Path("small.safetensors"))]
        found["recognised"] = command("recognize", "small.safetensors", "--corpus", "features:small.npz")
    return found


# ---------------------------------------------------------------- the tables of the paper


def numbers(path: str) -> Any:
    """A file of JSON without times and origins."""
    return json.dumps(
        without(json.loads(Path(path).read_text()), {*TIMES, *ORIGINS, *FORMER}), indent=1, sort_keys=True
    )


def networks(folder: str) -> dict[str, Any]:
    """The kept networks and results of a table."""
    found: dict[str, Any] = {}
    for file in sorted(Path(folder).iterdir()):
        found[file.name] = arrays_of(file) if file.suffix == ".safetensors" else numbers(str(file))
    return found


def report(path: str) -> str:
    """A page of results without its numbers: times are among them, and the others are in the files of JSON."""
    return re.sub(r"[\d.,:]+", "#", plain(Path(path).read_text()))


@case
def command_table1(run: Run) -> Any:
    """All columns of the table for two sizes and two seeds, and the same networks scored on other levels."""
    found: dict[str, Any] = {}
    with chdir(run.work):
        words = ("table1", "--corpus", corpus(), "--units", "8,16", "--epochs", 2, "--columns", "all", "--out", "t")
        found["printed"] = command(*words)
        found["json"], found["cells"] = numbers("t/table1.json"), networks("t/cells")
        with open("t/table1.csv", newline="") as file:
            found["csv"] = [{k: v for k, v in row.items() if k not in TIMES} for row in csv.DictReader(file)]
        found["md"] = Path("t/table1.md").read_text().split("## Every cell")[0]
        found["kept"] = command(*words, "--level", "phone48")
        for level in ("phone39", "segment", "recognition"):
            few = (*words[:-1], f"t {level}", "--units", 8, "--columns", "esn,W_Wrec_m3,ours", "--level", level)
            found[level] = [command(*few), numbers(f"t {level}/table1.json")]
        printed = (*words[:-1], "p", "--units", 8, "--columns", "esn,W_Wrec_m3", "--gradient", "printed")
        found["as printed"] = [command(*printed, "--targets", "last", "--seeds", 2), numbers("p/table1.json")]
    return found


@case
def command_phones(run: Run) -> Any:
    """All systems on features, and two on recordings."""
    found: dict[str, Any] = {}
    with chdir(run.work):
        words = ("phones", "--corpus", corpus(), "--units", 12, "--epochs", 2, "--out", "p")
        found["printed"] = command(*words, clock=True)
        found["json"], found["systems"] = numbers("p/phones.json"), networks("p/systems")
        found["md"] = CLOCK.sub("TIME", Path("p/phones.md").read_text())
        found["again"] = command(*words, "--order", 2, "--systems", "fixed,learned", clock=True)
    with chdir(toy(run)):
        how = ("--cache", "cache", "--units", 12, "--epochs", 1, "--systems", "fixed,bidirectional", "--out", "p")
        found["sound"] = [command("phones", "--corpus", "wav:speech", *how, clock=True), numbers("p/phones.json")]
    return found


@case
def synthetic_speech(run: Run) -> Any:
    """About 2,000 frames of the speech synthesiser: its labels, and a small table."""
    try:
        import espeakng_loader  # noqa: F401
    except ImportError:
        return "espeakng-loader is not installed"
    found: dict[str, Any] = {}
    with chdir(run.work):
        where = ("--frames", 2000, "--cache", "cache")
        found["corpus"] = command("info", "--corpus", "synthetic", *where)
        found["labels"] = [
            command("align", "--corpus", "synthetic", *where, "--out", "states.mlf"),
            written("states.mlf"),
        ]
        words = ("table1", *where, "--units", 10, "--epochs", 1, "--columns", "esn,W_Wrec_m3,ours", "--out", "t")
        found["table"] = [command(*words), numbers("t/table1.json")]
    return found
