"""Any folder of audio with phone labels beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from echolearn.speech.errors import CorpusError, Problem
from echolearn.speech.phones import ENGLISH, TIMIT_61
from echolearn.speech.utterances import PARTS, Utterance, pair_up

PHONE_LIST = "phones.txt"
_PART_FOLDERS = {"train": "train", "valid": "valid", "validation": "valid", "dev": "valid", "test": "test"}
_HELD_OUT = 0.1


def find_folder(
    root: str | Path, seed: int = 0, labels: bool = True
) -> tuple[list[Utterance], list[str], list[Problem]]:
    """Utterances of `wav:DIR`, notes, problems.

    The parts are folders called train, valid (dev, validation) and test if there are any; otherwise
    one speaker in ten goes to validation and one to the test. With train and test alone, one
    training speaker in ten goes to validation. A speaker is the folder a file lies in.
    """
    root = Path(root)
    utterances, problems = [], []
    for key, (audio, label) in pair_up(root).items():
        if audio is None:
            problems.append(Problem(str(label), "has labels but no audio beside it; add the audio or remove it"))
        elif label is None and labels:
            what = "has no labels beside it; expected the same name with .phn, .lab or .TextGrid"
            problems.append(Problem(str(audio), what))
        else:
            part, speaker = _place(key)
            utterances.append(Utterance(key, speaker, part, audio, label))
    if not utterances and not problems:
        problems.append(Problem(str(root), "holds no audio; expected .wav, .flac or .sph files and their labels"))
    if not utterances:
        return [], [], problems
    present = {u.part for u in utterances}
    if present == {""}:
        dealt, notes, trouble = _deal(utterances, PARTS, seed, root)
    elif present == {"train", "test"}:
        train = [u for u in utterances if u.part == "train"]
        dealt, notes, trouble = _deal(train, ("train", "valid"), seed, root)
        dealt += [u for u in utterances if u.part == "test"]
    else:
        dealt, notes, trouble = utterances, [], _placed_problems(utterances, root)
    return dealt, notes, problems + trouble


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


def _placed_problems(utterances: Sequence[Utterance], root: Path) -> list[Problem]:
    present = {u.part for u in utterances}
    outside = "lies outside the folders train, valid and test that others are in; move it into one"
    return [Problem(str(u.audio), outside) for u in utterances if not u.part] + [
        Problem(str(root), f"has no folder {part} beside {', '.join(sorted(present - {''}))}")
        for part in PARTS
        if part not in present
    ]


def _deal(
    utterances: Sequence[Utterance], parts: Sequence[str], seed: int, root: Path
) -> tuple[list[Utterance], list[str], list[Problem]]:
    """One speaker in ten to each part but train; by utterance if there are too few speakers."""
    speakers = sorted({u.speaker for u in utterances})
    by_speaker = len(speakers) >= len(parts)
    groups = speakers if by_speaker else [u.key for u in utterances]
    if len(groups) < len(parts):
        what = f"holds {len(groups)} utterances to deal to {', '.join(parts)}; expected at least {len(parts)}"
        return list(utterances), [], [Problem(str(root), what)]
    order = np.random.default_rng([seed, 3]).permutation(len(groups))
    held = max(1, round(_HELD_OUT * len(groups)))
    place = dict.fromkeys(groups, "train")
    for i, part in enumerate(part for part in parts if part != "train"):
        place |= {groups[k]: part for k in order[i * held : (i + 1) * held]}
    dealt = [replace(u, part=place[u.speaker if by_speaker else u.key]) for u in utterances]
    how = "speakers" if by_speaker else "utterances (too few speakers, so the parts share voices)"
    return dealt, [f"no folders for {', '.join(parts[1:])}: dealt by {how} with seed {seed}"], []
