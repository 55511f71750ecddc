"""Where `echolearn recognize` puts its results: on the terminal, beside the recordings, into a file or a folder."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from echolearn.modelfile.atomic import write_atomically
from echolearn.speech.formats.results import Recognised
from echolearn.speech.formats.textgrid import textgrid_of
from echolearn.speech.formats.writing import KINDS, write_results


class Destination:
    """The place of `--out`: the name of a format alone is printed, TextGrids beside their recordings; others are paths.

    out: the name of a format, a file or a folder; form: the format of a file, by default by its ending.
    """

    def __init__(self, out: str, form: str | None) -> None:
        self.path = None if out in KINDS else Path(out)
        self.kind = out if self.path is None else form or _kind_of(self.path)
        if self.path is None and form not in (None, out):
            raise ValueError(f"--out {out} prints {out}; --format {form} is the format of --out PATH")
        if self.path is not None and not self.path.absolute().parent.is_dir():
            raise ValueError(f"--out {out} cannot be written: the folder {self.path.parent} does not exist")
        if self.path is not None and (self.kind != "textgrid") == self.path.is_dir() and self.path.exists():
            raise ValueError(
                f"--out {out} is {'a folder' if self.path.is_dir() else 'a file'}; {self.kind} needs the other"
            )

    @property
    def beside(self) -> bool:
        """Whether results are written beside the recordings."""
        return self.path is None and self.kind == "textgrid"

    def check(self, recordings: Mapping[str, Path], *, nbest: bool) -> None:
        """Refuse n-best lists as anything but JSON, and to replace TextGrids beside recordings: they may be labels."""
        if nbest and self.kind != "json":
            raise ValueError("--nbest gives JSON: use --out json, or --out FILE.json")
        there = [_beside(path, 1) for path in recordings.values() if _beside(path, 1).exists()] if self.beside else []
        if there:
            raise ValueError(f"{there[0]} exists already; give --out FOLDER to write TextGrids elsewhere")

    def put(self, results: Sequence[Recognised], level: str, recordings: Mapping[str, Path]) -> str:
        """Write the results and return what to print: the results themselves, or what was written."""
        if self.beside:
            if not recordings:
                raise ValueError("a part of a corpus has no place for TextGrids beside it; give --out FOLDER")
            texts = {_beside(recordings[r.utterance], r.channel): textgrid_of(r, level=level) for r in results}
            for path, text in texts.items():
                write_atomically(path, text.encode())
            return f"written: {len(texts)} TextGrids beside their recordings\n"
        if self.path is not None:
            written = write_results(self.path, results, self.kind, level=level)
            return (
                f"written: {self.path} ({len(written)} TextGrids)\n"
                if self.kind == "textgrid"
                else f"written: {self.path}\n"
            )
        with tempfile.TemporaryDirectory() as folder:
            write_results(Path(folder) / "results", results, self.kind, level=level)
            return (Path(folder) / "results").read_text(encoding="utf-8")

    def put_nbest(self, nbest: Mapping[str, Sequence[tuple[str, float]]]) -> str:
        """Write the best hypotheses as JSON and return what to print."""
        found = {name: [{"text": text, "score": score} for text, score in best] for name, best in nbest.items()}
        text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        if self.path is None:
            return text
        write_atomically(self.path, text.encode())
        return f"written: {self.path}\n"


def _kind_of(path: Path) -> str:
    ending = path.suffix.lower().removeprefix(".")
    if path.is_dir() or not ending:
        return "textgrid"
    if ending not in KINDS:
        raise ValueError(f"--out {path}: expected a format ({', '.join(KINDS)}), a file that ends in one, or a folder")
    return ending


def _beside(path: Path, channel: int) -> Path:
    return path.with_suffix(".TextGrid" if channel == 1 else f".{channel}.TextGrid")
