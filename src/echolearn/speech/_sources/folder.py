"""The corpus ``wav:DIR``: a folder of audio files with phone labels beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from echolearn.exceptions import CorpusError, Problem
from echolearn.speech._phone_set import ENGLISH, TIMIT_61
from echolearn.speech._sources.utterances import PARTS, CorpusFiles, Utterance, pair_files

PHONE_LIST = "phones.txt"
PART_FOLDERS = {"train": "train", "valid": "valid", "validation": "valid", "dev": "valid", "test": "test"}
_HELD_OUT_SHARE = 0.1


def find_folder(root: str | Path, seed: int = 0, *, labels_required: bool = True) -> CorpusFiles:
    """Find the utterances below a folder; those called train, valid (or dev, validation) and test are the parts.

    Without them one speaker (the folder of a file) in ten is held out for validation and one for the test; with train
    and test alone, one training speaker in ten for validation.
    """
    root = Path(root)
    utterances, problems = _list_utterances(root, labels_required)
    if not utterances and not problems:
        problems.append(Problem(str(root), "holds no audio; expected .wav, .flac or .sph files and their labels"))
    notes: list[str] = []
    if utterances:
        utterances, notes, more = _split(utterances, seed, root)
        problems += more
    listed = root / PHONE_LIST
    return CorpusFiles(
        utterances,
        lambda used: phone_list(root, used),
        notes,
        problems,
        depends_on=listed.read_text(encoding="utf-8") if listed.is_file() else "",
    )


def phone_list(root: str | Path, used: Iterable[str]) -> tuple[str, ...]:
    """Return the phones of `phones.txt` or else TIMIT's or the English list, whichever has more of those used.

    A CorpusError reports that the file is missing, if the better list lacks more than half of the phones used."""
    path = Path(root) / PHONE_LIST
    if path.is_file():
        phones = tuple(path.read_text(encoding="utf-8").split())
        if not phones or len(set(phones)) != len(phones):
            raise CorpusError.one(path, "is empty or names a phone twice; expected one phone per line")
        return phones
    counts = Counter(used)
    known = max((TIMIT_61, ENGLISH), key=lambda known: sum(counts[phone] for phone in known))
    unknown = sorted(counts.keys() - set(known))
    if 2 * len(unknown) > len(counts):
        what = "does not exist, and most phones of the labels are neither in TIMIT's nor in the American English list"
        raise CorpusError.one(path, f"{what}: {', '.join(unknown)}. Write the phones of the corpus to it, one per line")
    return known


def hold_out(
    utterances: Sequence[Utterance], parts: Sequence[str], seed: int, root: str | Path
) -> tuple[list[Utterance], str, list[Problem]]:
    """Assign one speaker in ten to each part but train, or single utterances if there are too few speakers. Return the
    utterances in the same order, a sentence about the division, and problems that name `root`."""
    speakers = sorted({u.speaker for u in utterances})
    by_speaker = len(speakers) >= len(parts)
    groups = speakers if by_speaker else [u.key for u in utterances]
    if len(groups) < len(parts):
        what = f"holds {len(groups)} utterances to split into {', '.join(parts)}; expected at least {len(parts)}"
        return list(utterances), "", [Problem(str(root), what)]
    order = np.random.default_rng([seed, 3]).permutation(len(groups))
    held = max(1, round(_HELD_OUT_SHARE * len(groups)))
    part_of = dict.fromkeys(groups, "train")
    for i, part in enumerate(part for part in parts if part != "train"):
        part_of |= {groups[k]: part for k in order[i * held : (i + 1) * held]}
    split = [replace(u, part=part_of[u.speaker if by_speaker else u.key]) for u in utterances]
    how = "speakers" if by_speaker else "utterances (too few speakers, so the parts share voices)"
    counts = ", ".join(f"{list(part_of.values()).count(part)} {part}" for part in parts)
    return split, f"split by {how} with seed {seed}: {counts}", []


def _list_utterances(root: Path, labels_required: bool) -> tuple[list[Utterance], list[Problem]]:
    """Return the utterances by their folders, and files that lack their audio or labels."""
    utterances: list[Utterance] = []
    problems: list[Problem] = []
    for key, (audio, label) in pair_files(root).items():
        if audio is None:
            problems.append(Problem(str(label), "has labels but no audio beside it; add the audio or remove it"))
        elif label is None and labels_required:
            what = "has no labels beside it; expected the same name with .phn, .lab or .TextGrid"
            problems.append(Problem(str(audio), what))
        else:
            part, speaker = _part_and_speaker(key)
            utterances.append(Utterance(key, speaker, part, audio, label))
    return utterances, problems


def _split(utterances: list[Utterance], seed: int, root: Path) -> tuple[list[Utterance], list[str], list[Problem]]:
    """Return the utterances with their parts, notes and problems."""
    present = {u.part for u in utterances}
    if present == {""}:
        split, how, problems = hold_out(utterances, PARTS, seed, root)
        return split, [f"no folders for valid, test: {how}"], problems
    if present == {"train", "test"}:
        train = [u for u in utterances if u.part == "train"]
        split, how, problems = hold_out(train, ("train", "valid"), seed, root)
        return split + [u for u in utterances if u.part == "test"], [f"no folder for valid: {how}"], problems
    outside = "lies outside the folders train, valid and test that others are in; move it into one"
    others = ", ".join(sorted(present - {""}))
    problems = [Problem(str(u.audio), outside) for u in utterances if not u.part]
    problems += [Problem(str(root), f"has no folder {part} beside {others}") for part in PARTS if part not in present]
    return utterances, [], problems


def _part_and_speaker(key: str) -> tuple[str, str]:
    """Return what the folders of a path say; the part is "" if none of them names one."""
    folders = key.split("/")[:-1]
    part = next((PART_FOLDERS[f] for f in folders if f in PART_FOLDERS), "")
    others = [f for f in folders if f not in PART_FOLDERS]
    return part, others[-1] if others else "unknown"
