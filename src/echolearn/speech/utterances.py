"""What a corpus reader finds on disk before it opens anything: utterances and their files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from echolearn.speech.errors import CorpusError, Problem
from echolearn.speech.labels import Segment

AUDIO_ENDINGS = (".wav", ".flac", ".sph", ".nist", ".aiff", ".ogg")
LABEL_ENDINGS = (".phn", ".lab", ".textgrid")
PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class Utterance:
    """key: the path below the corpus without its ending; labels None if a master label file has them."""

    key: str
    speaker: str
    part: str
    audio: Path
    labels: Path | None

    @property
    def name(self) -> str:
        return self.key.replace("/", "_")


def files_below(root: Path) -> Iterator[Path]:
    """Every file below a folder, in one order on every system."""
    if not root.is_dir():
        raise CorpusError.one(root, "no such folder; expected the folder of a speech corpus")
    yield from sorted(path for path in root.rglob("*") if path.is_file())


def key_of(path: Path, root: Path) -> str:
    return path.relative_to(root).with_suffix("").as_posix()


def pair_up(root: Path, endings: Sequence[str] = LABEL_ENDINGS) -> dict[str, tuple[Path | None, Path | None]]:
    """Key without regard to case -> (audio, labels), either of them None if it is missing."""
    audio: dict[str, Path] = {}
    labels: dict[str, Path] = {}
    for path in files_below(root):
        key, ending = key_of(path, root).lower(), path.suffix.lower()
        # Some copies of TIMIT hold SA1.WAV (SPHERE) and a converted SA1.WAV.wav side by side.
        key = key.removesuffix(".wav")
        if ending in AUDIO_ENDINGS:
            audio.setdefault(key, path)
        elif ending in endings:
            labels.setdefault(key, path)
    return {key: (audio.get(key), labels.get(key)) for key in sorted(audio.keys() | labels.keys())}


def match_labels(
    utterances: Sequence[Utterance], master: dict[str, list[Segment]], file: str | Path
) -> tuple[dict[str, list[Segment]], list[Problem]]:
    """A master label file's entries by utterance key; whatever fits nobody, two or is missing.

    An entry fits the utterance whose path ends with it, whatever separates the parts and in any
    case: `fcjf0_si1027`, `fcjf0/si1027` and `dr1-fcjf0-si1027` all mean train/dr1/fcjf0/si1027.
    """
    by_ending: dict[str, list[Utterance]] = {}
    for utterance in utterances:
        pieces = _pieces(utterance.key)
        for k in range(len(pieces)):
            by_ending.setdefault("/".join(pieces[k:]), []).append(utterance)
    found: dict[str, list[Segment]] = {}
    problems = []
    for entry, segments in master.items():
        fitting = by_ending.get("/".join(_pieces(entry)), [])
        if len(fitting) > 1:
            what = f"entry {entry!r} fits {len(fitting)} utterances, {fitting[0].key} and {fitting[1].key}"
            problems.append(Problem(str(file), f"{what}; write the speaker into the name"))
        elif fitting and fitting[0].key in found:
            problems.append(Problem(str(file), f"two entries fit {fitting[0].key}; keep one of them"))
        elif fitting:
            found[fitting[0].key] = segments
    problems += [
        Problem(
            str(u.audio),
            f"has no labels in {file}, which covers {len(found)} of {len(utterances)} utterances",
        )
        for u in utterances
        if u.key not in found
    ]
    return found, problems


def _pieces(key: str) -> list[str]:
    return key.lower().replace("-", "/").replace("_", "/").split("/")


def missing_parts(utterances: Iterable[Utterance], root: str | Path) -> list[Problem]:
    present = {utterance.part for utterance in utterances}
    return [
        Problem(str(root), f"holds no utterance of the {part} part; is the corpus complete?")
        for part in PARTS
        if part not in present
    ]
