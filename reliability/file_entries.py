"""Entry points that read or write files, each with a function that draws unusual ones; and sound files as seeds."""

from __future__ import annotations

import io
import tempfile
import wave
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import echolearn
from echolearn import ESNClassifier, ESNForecaster
from reliability import odd
from reliability.entries import LABELS, SMALL, Call, Declined, X, fitted, stop


def _written(folder: Path, name: str, content: bytes) -> Path:
    """Write a file and return its path."""
    path = folder / name
    path.write_bytes(content)
    return path


@cache
def label_seeds() -> dict[str, list[bytes]]:
    """Return sound label files by their suffix."""
    from echolearn.speech import Segment, write_mlf
    from echolearn.speech._labels import write_phn

    segments = [Segment(0.0, 0.1, "h#"), Segment(0.1, 0.25, "aa"), Segment(0.25, 0.4, "sil")]
    found: dict[str, list[bytes]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        write_phn(path, segments)
        found[".phn"] = [path.read_bytes()]
        found[".lab"] = [b"0 1000000 h#\n1000000 2500000 aa\n2500000 4000000 sil\n"]
        found[".TextGrid"] = [
            b'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0.0\n0.4\n<exists>\n1\n"IntervalTier"\n"phones"\n'
            b'0.0\n0.4\n3\n0.0\n0.1\n"h#"\n0.1\n0.25\n"aa"\n0.25\n0.4\n"sil"\n'
        ]
        write_mlf(path, {"a": segments, "b": segments})
        found[".mlf"] = [path.read_bytes(), b'#!MLF!#\n"*/a.lab"\n0 100 s2 -3.5 aa\n100 200 s3 -3\n.\n']
    found[".lab"].append(b"aa\nb\nsil\n")
    found[".TextGrid"].append(
        b'File type = "ooTextFile"\nObject class = "TextGrid"\n\nxmin = 0\nxmax = 1\ntiers? <exists>\nsize = 1\n'
        b"item []:\n"
        b'    item [1]:\n        class = "IntervalTier"\n        name = "phones"\n        xmin = 0\n        xmax = 1\n'
        b"        intervals: size = 1\n        intervals [1]:\n            xmin = 0\n            xmax = 1\n"
        b'            text = "aa"\n'
    )
    return found


def labels(data: Any, folder: Path) -> Call:
    """Draw label files."""
    from echolearn.speech import read_labels, read_mlf

    ending = data.draw(st.sampled_from([*label_seeds(), ".phn", "", ".txt"]))
    seeds = label_seeds().get(ending, [b"0 100 aa\n"])
    content = data.draw(st.one_of(odd.mutated(seeds), odd.label_texts(), st.binary(max_size=60)))
    path = _written(folder, f"labels{ending}", content)
    return lambda: [tuple(s) for s in _segments(read_mlf(path) if ending == ".mlf" else read_labels(path))], content


def _segments(found: Any) -> Any:
    """Return the segments of one utterance, or of all in a master label file."""
    return [s for group in found.values() for s in group] if isinstance(found, dict) else found


@cache
def audio_seeds() -> list[bytes]:
    """Return sound audio files in several formats."""
    import soundfile

    t = np.arange(2000) / 16000
    tone = (0.3 * np.sin(2 * np.pi * (200 + 300 * t) * t)).astype(np.float32)
    found = []
    for kind, sub in (
        ("WAV", "PCM_16"),
        ("WAV", "FLOAT"),
        ("WAV", "ULAW"),
        ("FLAC", "PCM_16"),
        ("NIST", "PCM_16"),
        ("AIFF", "PCM_16"),
    ):
        buffer = io.BytesIO()
        soundfile.write(buffer, tone, 16000, subtype=sub, format=kind)
        found.append(buffer.getvalue())
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes((tone * 20000).astype("<i2").tobytes())
    return [*found, buffer.getvalue()]


def audio(data: Any, folder: Path) -> Call:
    """Draw audio files."""
    from echolearn.speech import read_audio

    content = data.draw(st.one_of(odd.mutated(audio_seeds()), st.binary(max_size=100)))
    path = _written(folder, "sound.wav", content)
    return lambda: read_audio(path), content


@cache
def feature_seeds() -> list[bytes]:
    """Return sound feature files, one of them compressed."""
    rng = np.random.default_rng(0)
    found = []
    for save, wide in ((np.savez, 5), (np.savez_compressed, 13)):
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {
            "features": rng.standard_normal((30, wide)).astype(np.float32),
            "labels": np.arange(30, dtype=np.int16) % 3,
            "lengths": np.array([10, 10, 10]),
            "utterances": np.array(["u", "v", "w"]),
            "speakers": np.array(["s", "s", "t"]),
            "split": np.array(["train", "valid", "test"]),
            "state_names": np.array(["aa_s2", "aa_s3", "aa_s4"]),
        }
        save(buffer, **arrays)
        found.append(buffer.getvalue())
    return found


def feature_files(data: Any, folder: Path) -> Call:
    """Draw feature files: mutated ones, or ones with another array."""
    from echolearn.speech._sources.feature_file import read_feature_file

    if data.draw(st.booleans()):
        content = data.draw(odd.mutated(feature_seeds()))
    else:
        arrays = dict(np.load(io.BytesIO(feature_seeds()[0])))
        name = data.draw(st.sampled_from(sorted(arrays)))
        shape = tuple(data.draw(st.lists(st.sampled_from([0, 1, 3, 30]), max_size=3)))
        value = data.draw(st.one_of(odd.matrices(shape), odd.matrices(arrays[name].shape), odd.values))
        buffer = io.BytesIO()
        try:
            np.savez(buffer, **{**arrays, name: value})
        except Exception:  # NumPy cannot write this value
            return lambda: None, None
        content = buffer.getvalue()
    path = _written(folder, "features.npz", content)

    def call() -> Any:
        frames, _, _ = read_feature_file(path)
        return [frames[k] for k in range(len(frames))]

    return call, content


def toml(data: Any, folder: Path) -> Call:
    """Draw files of settings for the command line."""
    from echolearn.cli import configuration

    table = b'leak = [0.1, 0.9]\nreadout = "ridge"\nridge = "auto"\nlearning.patience = 3\n'
    seeds = [b"units = 4\nepochs = 1\n[estimator]\n" + table]
    content = data.draw(st.one_of(odd.mutated(seeds), st.binary(max_size=60), st.text(max_size=60).map(_encoded)))
    path = _written(folder, "settings.toml", content)

    def call() -> Any:
        content = configuration.read(path)
        _, tables = configuration.options_and_tables(content, ["units", "epochs"], ["estimator"], "file")
        known = ESNClassifier().get_params(deep=False)
        groups = ESNClassifier.groups
        changes = configuration.estimator_settings(tables.get("estimator", {}), known, "[estimator]", groups)
        return ESNClassifier(**{**SMALL, **changes, "verbose": 0}).fit(X, LABELS, callback=stop).network_.readout.U

    return call, content


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def command(data: Any, folder: Path) -> Call:
    """Draw commands: any text for any option, on a small feature file."""
    from click import Context
    from click.testing import CliRunner

    from echolearn.cli.main import main

    corpus = _written(folder, "corpus.npz", feature_seeds()[0])
    fitted("labels").save(folder / "model")
    name = data.draw(st.sampled_from(["train", "evaluate", "predict", "info", "align", "tune", "table1", "nothing"]))
    called = main.get_command(Context(main), name)
    known = [p for p in getattr(called, "params", []) if p.name not in ("corpus", "cache", "out", "full")]
    texts = st.one_of(st.sampled_from([str(n) for n in odd.NUMBERS if not isinstance(n, float) or abs(n) < 10]),
                      st.sampled_from([w for w in odd.WORDS if "\0" not in w]), st.text(max_size=5))  # fmt: skip
    arguments = [
        name,
        "--corpus",
        data.draw(st.sampled_from([f"features:{corpus}"] * 4 + ["features:", "wav:", "timit:/x", ""])),
    ]
    if name in ("train", "evaluate", "predict", "info") and data.draw(st.integers(0, 5)):
        target = folder / ("model" if name != "train" else "new")
        arguments += ["--out"] if name == "train" else []
        arguments.append(str(data.draw(st.sampled_from([target, target, folder, corpus, folder / "no" / "such"]))))
    for parameter in data.draw(st.lists(st.sampled_from(known), max_size=2)) if known else []:
        if parameter.opts[0].startswith("-"):
            value = [] if getattr(parameter, "is_flag", False) else [data.draw(texts)]
            arguments += [parameter.opts[0], *value]
    if name in ("tune", "table1", "align", "predict"):
        arguments += ["--out", str(folder / data.draw(st.sampled_from(["out.mlf", "out.npz", "out"])))]
    if name in ("train", "tune"):
        arguments += ["--units", "4", "--epochs", "1", "--set", f"washout={data.draw(texts)}"]
    if name == "tune":
        arguments += ["--trials", "1"]
    if name == "table1":
        arguments += ["--units", "4", "--epochs", "1", "--columns", data.draw(st.sampled_from(["esn", "no"]))]

    def call() -> Any:
        done = CliRunner().invoke(main, [a.encode("utf-8", "replace").decode() for a in arguments])
        if done.exit_code not in (0, 2):
            raise done.exception if done.exception is not None else RuntimeError(done.output)
        if done.exit_code == 2:
            raise Declined(done.output) if len(done.output) > 15 else RuntimeError("exit code 2 without a message")

    return call, arguments


@cache
def model_seeds() -> list[bytes]:
    """Return sound model files."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("labels", "values", "plain", "deep", "deep values", "one label", "exogenous"):
            fitted(kind).save(Path(folder) / "m")
            found.append((Path(folder) / "m").read_bytes())
    return found


def models(data: Any, folder: Path) -> Call:
    """Draw model files to load."""
    content = data.draw(odd.mutated(model_seeds()))
    path = data.draw(st.sampled_from([_written(folder, "model", content)] * 8 + [folder, "\0", "", 3, None]))
    return lambda: echolearn.load(path).model_.network.readout.U, content


def saving(data: Any, folder: Path) -> Call:
    """Draw paths and options for saving a model."""
    esn = fitted(data.draw(st.sampled_from(["labels", "values", "plain", "deep values", "one label"])))
    path = data.draw(st.one_of(odd.values, st.sampled_from([folder, folder / "no" / "m", folder / "m", "\0"])))
    if isinstance(path, str):
        path = folder / path
    more = {} if isinstance(esn, ESNForecaster) else {"sums": data.draw(st.one_of(st.booleans(), odd.values))}
    return lambda: esn.save(path, **more), (path, more)


ENTRIES = {
    "PHN, LAB, MLF, TextGrid": (labels, 12),
    "WAV, FLAC, SPHERE": (audio, 8),
    "NPZ": (feature_files, 6),
    "TOML": (toml, 4),
    "command line": (command, 4),
    "load": (models, 6),
    "save": (saving, 3),
}
