"""A coverage-guided search, by atheris, for bytes that make a file reader do anything but read or refuse.

    python -m reliability.fuzz [--seconds 60]        # for each reader

A reader may return or raise its own error. Anything else, more than 20 seconds or more than 2 GB is a finding, whose
bytes are kept in runs/fuzz. "model, mended" gives every input a right checksum, so that the search gets past it.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

# echolearn is imported inside functions only: what is imported before atheris instruments it is not searched.
INSTRUMENTED = [
    "echolearn.modelfile.values",
    "echolearn.modelfile.layout",
    "echolearn.modelfile.reader",
    "echolearn.estimators._functions",
    "echolearn.modelfile.schema",
    "echolearn.persistence.load",
    "echolearn.cli.configuration",
    "echolearn.speech._labels",
    "echolearn.speech._audio",
    "echolearn.speech._sources.feature_file",
    "tomllib",
]
READERS = ("model", "model, mended", "checkpoint", "phn", "lab", "mlf", "textgrid", "audio", "features", "toml")
FOUND = Path("runs/fuzz")


def with_right_checksum(content: bytes, kind: str) -> bytes:
    """Return the same file with the checksum that is right for it, if it has a header at all."""
    from reliability import forging

    try:
        length = struct.unpack("<Q", content[:8])[0]
        header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
        text = header["__metadata__"][kind]
        arrays = {name: about for name, about in header.items() if name != "__metadata__"}
        header["__metadata__"]["sha256"] = forging.checksum(arrays, data, text)
        return forging.assembled(header, data)
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return content


def reader(name: str, path: Path) -> Callable[[bytes], None]:
    """Return a function that writes bytes to `path` and reads them with the reader of that name."""
    from echolearn import load
    from echolearn.cli import configuration
    from echolearn.exceptions import CorpusError, ModelFileError
    from echolearn.modelfile.reader import read_tensors
    from echolearn.speech import _audio, _labels
    from echolearn.speech._sources import feature_file

    read: dict[str, Callable[[], Any]] = {
        "model": lambda: load(path),
        "model, mended": lambda: load(path),
        "checkpoint": lambda: read_tensors(path, "echolearn-checkpoint"),
        "phn": lambda: _labels.read_phn(path),
        "lab": lambda: _labels.read_lab(path),
        "mlf": lambda: _labels.read_mlf(path),
        "textgrid": lambda: _labels.read_textgrid(path),
        "audio": lambda: _audio.read_audio(path),
        "features": lambda: feature_file.read_feature_file(path),
        "toml": lambda: configuration.read(path),
    }
    own = {"toml": ValueError}.get(name, ModelFileError if name in READERS[:3] else CorpusError)

    def read_bytes(content: bytes) -> None:
        path.write_bytes(with_right_checksum(content, "echolearn-model") if name == "model, mended" else content)
        with contextlib.suppress(own):
            read[name]()

    return read_bytes


@cache
def sound_files() -> list[tuple[str, bytes]]:
    """Return kind and content of undamaged model and checkpoint files."""
    from reliability import model_files

    with tempfile.TemporaryDirectory() as folder:
        return list(model_files.sound_files(Path(folder)).values())


def seeds(name: str) -> list[bytes]:
    """Return the undamaged files from which the search for a reader begins."""
    from reliability import file_entries

    if name in READERS[:3]:
        kind = "echolearn-checkpoint" if name == "checkpoint" else "echolearn-model"
        return [content for of, content in sound_files() if of == kind]
    if name == "audio":
        return [content[:2000] for content in file_entries.audio_seeds()]
    if name == "features":
        return file_entries.feature_seeds()
    if name == "toml":
        return [b'units = 4\n[estimator]\nleak = [0.1, 0.9]\nreadout = "ridge"\n']
    return file_entries.label_seeds()[".TextGrid" if name == "textgrid" else f".{name}"]


def child(name: str, flags: list[str]) -> None:
    """Search in this process, with the options of libFuzzer."""
    import atheris

    with atheris.instrument_imports(include=INSTRUMENTED):
        folder = tempfile.TemporaryDirectory()
        read_bytes = reader(name, Path(folder.name) / "file")
    atheris.Setup([sys.argv[0], *flags], read_bytes)
    atheris.Fuzz()


def search(name: str, seconds: int) -> dict[str, Any]:
    """Return what libFuzzer reports at its end: inputs tried, edges covered, and whether anything was found."""
    FOUND.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as corpus:
        for content in seeds(name):
            (Path(corpus) / hashlib.sha256(content).hexdigest()).write_bytes(content)
        prefix = FOUND / f"{re.sub(r'[^a-z]+', '-', name)}-"
        flags = [corpus, f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=2048", "-max_len=8192",
                 f"-artifact_prefix={prefix}", "-print_final_stats=1"]  # fmt: skip
        command = [sys.executable, "-m", "reliability.fuzz", "--reader", name, "--", *flags]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    report = done.stderr
    covered = re.findall(r"cov: (\d+)", report)
    tries = re.findall(r"stat::number_of_executed_units:\s*(\d+)", report)
    figures: dict[str, Any] = {
        "tries": int(tries[-1]) if tries else 0,
        "edges at first": int(covered[0]) if covered else 0,
        "edges": int(covered[-1]) if covered else 0,
        "findings": int(done.returncode != 0),
    }
    if done.returncode:
        figures["said"] = report[-1500:]
        print(report[-3000:], file=sys.stderr)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="seconds per reader")
    parser.add_argument("--only", choices=READERS, help="search for one reader; its figures are not kept")
    parser.add_argument("--reader", choices=READERS, help=argparse.SUPPRESS)
    parser.add_argument("flags", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reader:
        child(options.reader, options.flags)
        return 0
    from reliability import results

    rows = {}
    for name in READERS if options.only is None else (options.only,):
        rows[name] = search(name, options.seconds)
        print(f"{name}: {rows[name]}", file=sys.stderr, flush=True)
    columns = ("tries", "edges at first", "edges", "findings")
    results.show(f"atheris, {options.seconds} s per reader", columns, rows)
    if options.only is None:
        results.keep("fuzz", {"seconds a reader": options.seconds, "readers": rows})
    return int(any(row["findings"] for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
