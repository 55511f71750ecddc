"""The utterances of a corpus and their files, found on disk before any file is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from echolearn.exceptions import CorpusError, Problem
from echolearn.speech._labels import READERS, Segment

AUDIO_ENDINGS = (".wav", ".flac", ".sph", ".nist", ".aiff", ".ogg")
LABEL_ENDINGS = tuple(READERS)
PARTS = ("train", "valid", "test")

PhoneList = Callable[[Iterable[str]], tuple[str, ...]]


@dataclass(frozen=True)
class Utterance:
    """One utterance and its files."""

    key: str  # path of the files below the corpus, without an ending and in lower case
    speaker: str
    part: str  # train, valid or test; "" until it is assigned
    audio: Path
    labels: Path | None  # None if a master label file has the labels

    @property
    def name(self) -> str:
        """The key with `_` between its parts, so that it is also a file name."""
        return self.key.replace("/", "_")


@dataclass(frozen=True)
class CorpusFiles:
    """The files of a corpus, with notes and problems that are known before they are opened."""

    utterances: list[Utterance]
    phones: PhoneList  # from the phones that occur to the phone list of the corpus
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    depends_on: str = ""  # what labels depend on beside the files; another text is another entry of the cache
    lexicon: str = ""  # path of its pronunciation dictionary


def pair_files(root: Path, label_endings: Sequence[str] = LABEL_ENDINGS) -> dict[str, tuple[Path | None, Path | None]]:
    """Return the audio and label file of each key, None where one is missing, in the same order on every system."""
    if not root.is_dir():
        raise CorpusError.one(root, "no such folder; expected the folder of a speech corpus")
    audio: dict[str, Path] = {}
    labels: dict[str, Path] = {}
    # Of an utterance that is there as .wav and as .sph the former is read, in the order of AUDIO_ENDINGS.
    order = {ending: k for k, ending in enumerate(AUDIO_ENDINGS)}
    found = (path for path in root.rglob("*") if path.is_file())
    for path in sorted(found, key=lambda path: (order.get(path.suffix.lower(), len(order)), path)):
        key, ending = path.relative_to(root).with_suffix("").as_posix().lower(), path.suffix.lower()
        # Some copies of TIMIT hold SA1.WAV (SPHERE) and a converted SA1.WAV.wav side by side.
        key = key.removesuffix(".wav")
        if ending in AUDIO_ENDINGS:
            audio.setdefault(key, path)
        elif ending in label_endings:
            labels.setdefault(key, path)
    return {key: (audio.get(key), labels.get(key)) for key in sorted(audio.keys() | labels.keys())}


def match_labels(
    utterances: Sequence[Utterance], master: Mapping[str, list[Segment]], file: str | Path
) -> tuple[dict[str, list[Segment]], list[Problem]]:
    """Return the labels of utterances from the entries of a master label file that their paths end with, in either
    case: `fcjf0_si1027`, `fcjf0/si1027` and `dr1-fcjf0-si1027` all mean train/dr1/fcjf0/si1027."""
    by_ending: dict[str, list[Utterance]] = {}
    for utterance in utterances:
        names = _path_names(utterance.key)
        for k in range(len(names)):
            by_ending.setdefault("/".join(names[k:]), []).append(utterance)
    labels: dict[str, list[Segment]] = {}
    problems = []
    for entry, segments in master.items():
        fitting = by_ending.get("/".join(_path_names(entry)), [])
        if len(fitting) > 1:
            what = f"entry {entry!r} fits {len(fitting)} utterances, {fitting[0].key} and {fitting[1].key}"
            problems.append(Problem(str(file), f"{what}; write the speaker into the name"))
        elif fitting and fitting[0].key in labels:
            problems.append(Problem(str(file), f"two entries fit {fitting[0].key}; keep one of them"))
        elif fitting:
            labels[fitting[0].key] = segments
    problems += [
        Problem(str(u.audio), f"has no labels in {file}, which covers {len(labels)} of {len(utterances)} utterances")
        for u in utterances
        if u.key not in labels
    ]
    return labels, problems


def _path_names(key: str) -> list[str]:
    return key.lower().replace("-", "/").replace("_", "/").split("/")
