"""Any folder of audio with phone labels beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from echolearn.speech.phones import ENGLISH, TIMIT_61
from echolearn.speech.problems import CorpusError, Problem
from echolearn.speech.utterances import PARTS, Utterance, pair_up

PHONE_LIST = "phones.txt"
_PART_FOLDERS = {"train": "train", "valid": "valid", "validation": "valid", "dev": "valid", "test": "test"}
_HELD_OUT = 0.1


def find_folder(
    root: str | Path, seed: int = 0, labels: bool = True
) -> tuple[list[Utterance], list[str], list[Problem]]:
    """Utterances of `wav:DIR`, notes, problems.

    The parts are folders called train, valid (dev, validation) and test if there are any; otherwise
    one speaker in ten goes to validation and one to the test. A speaker is the folder a file lies in.
    """
    root = Path(root)
    utterances, problems = [], []
    for key, (audio, label) in pair_up(root).items():
        if audio is None:
            problems.append(
                Problem(str(label), "has labels but no audio beside it; add the audio or remove it")
            )
        elif label is None and labels:
            what = "has no labels beside it; expected the same name with .phn, .lab or .TextGrid"
            problems.append(Problem(str(audio), what))
        else:
            part, speaker = _place(key)
            utterances.append(Utterance(key, speaker, part, audio, label))
    if not utterances and not problems:
        problems.append(
            Problem(str(root), "holds no audio; expected .wav, .flac or .sph files and their labels")
        )
    if any(u.part for u in utterances):
        stray = [u for u in utterances if not u.part]
        problems += [
            Problem(str(u.audio), "lies outside the folders train, valid and test that others are in")
            for u in stray
        ]
        present = {u.part for u in utterances}
        problems += [Problem(str(root), f"has no folder {p}") for p in PARTS if p not in present]
        return utterances, [], problems
    dealt, notes, trouble = _deal(utterances, seed, root)
    return dealt, notes, problems + (trouble if utterances else [])


def phone_list(root: str | Path, used: Iterable[str]) -> tuple[str, ...]:
    """`phones.txt` of the folder, one phone a line, or the built-in list that knows most of those used."""
    path = Path(root) / PHONE_LIST
    if path.is_file():
        phones = tuple(path.read_text(encoding="utf-8").split())
        if not phones or len(set(phones)) != len(phones):
            raise CorpusError.one(path, "is empty or names a phone twice; expected one phone a line")
        return phones
    counts = Counter(used)
    return max((TIMIT_61, ENGLISH), key=lambda known: sum(counts[phone] for phone in known))


def _place(key: str) -> tuple[str, str]:
    """(part or "", speaker) by the folders on the way."""
    folders = key.split("/")[:-1]
    part = next((_PART_FOLDERS[f] for f in folders if f in _PART_FOLDERS), "")
    others = [f for f in folders if f not in _PART_FOLDERS]
    return part, others[-1] if others else "unknown"


def _deal(
    utterances: Sequence[Utterance], seed: int, root: Path
) -> tuple[list[Utterance], list[str], list[Problem]]:
    speakers = sorted({u.speaker for u in utterances})
    by_speaker = len(speakers) >= len(PARTS)
    groups = speakers if by_speaker else [u.key for u in utterances]
    if len(groups) < len(PARTS):
        what = f"holds {len(groups)} utterances; expected at least 3, to train, validate and test on"
        return list(utterances), [], [Problem(str(root), what)]
    order = np.random.default_rng([seed, 3]).permutation(len(groups))
    held = max(1, round(_HELD_OUT * len(groups)))
    place = {
        groups[k]: ("valid" if i < held else "test" if i < 2 * held else "train") for i, k in enumerate(order)
    }
    dealt = [replace(u, part=place[u.speaker if by_speaker else u.key]) for u in utterances]
    how = "speakers" if by_speaker else "utterances (fewer than 3 speakers: the parts share voices)"
    return dealt, [f"parts dealt by {how} with seed {seed}: no folders train, valid and test"], []
