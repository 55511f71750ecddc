"""The corpus ``timit:PATH``: TIMIT, or a part of it such as NLTK's sample.

File names may be in upper or lower case, audio in SPHERE or RIFF format, and folders as on the CD or flat. The standard
task has 462 training speakers, 50 validation speakers and the 24 of the core test, all without the SA sentences, which
every speaker reads. The validation speakers are those of Kaldi, egs/timit/s5/conf/dev_spk.list; the core test is in
table 3 of the corpus's readme.doc. A part without a speaker of either list, in flat folders, is divided by speaker.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from echolearn.exceptions import Problem
from echolearn.speech._phone_set import TIMIT_61
from echolearn.speech._sources.folder import hold_out
from echolearn.speech._sources.utterances import PARTS, CorpusFiles, Utterance, pair_files

_CORE_TEST = """
    mdab0 mwbt0 felc0 mtas1 mwew0 fpas0 mjmp0 mlnt0 fpkt0 mlll0 mtls0 fjlm0
    mbpm0 mklt0 fnlp0 mcmj0 mjdh0 fmgd0 mgrt0 mnjm0 fdhc0 mjln0 mpam0 fmld0
"""
_VALIDATION = """
    faks0 fdac1 fjem0 mgwt0 mjar0 mmdb1 mmdm2 mpdf0 fcmh0 fkms0 mbdg0 mbwm0 mcsh0 fadg0 fdms0 fedw0
    mgjf0 mglb0 mrtk0 mtaa0 mtdt0 mthc0 mwjg0 fnmr0 frew0 fsem0 mbns0 mmjr0 mdls0 mdlf0 mdvc0 mers0
    fmah0 fdrw0 mrcs0 mrjm4 fcal1 mmwh0 fjsj0 majc0 mjsw0 mreb0 fgjd0 fjmg0 mroa0 mteb0 mjfc0 mrjr0
    fmml0 mrws1
"""
CORE_TEST: frozenset[str] = frozenset(_CORE_TEST.split())
VALIDATION: frozenset[str] = frozenset(_VALIDATION.split())

PART_UTTERANCES = {"train": 3_696, "valid": 400, "test": 192}
PART_SPEAKERS = {"train": 462, "valid": 50, "test": 24}
PART_FRAMES = {"train": 1_124_823, "valid": 122_487, "test": 57_919}
# Training speakers of each dialect region: those of the corpus less those of the complete test set (readme.doc,
# tables 1 and 4).
TRAINING_REGIONS = {"1": 38, "2": 76, "3": 76, "4": 68, "5": 70, "6": 35, "7": 77, "8": 22}
SENTENCES_PER_SPEAKER = 8  # five SX and three SI
_SPEAKER = re.compile(r"^(?:dr\d[-_])?([fm][a-z]{3}\d)$")
_SENTENCE = re.compile(r"^(sa|si|sx)(\d+)$")
_REGION = re.compile(r"(?:^|/)dr(\d)")


class _Recording(NamedTuple):
    """A sentence that a speaker reads, with those of its two files that are there."""

    key: str
    audio: Path | None
    phn: Path | None
    speaker: str
    sentence: str


def find_timit(root: str | Path, seed: int = 0, *, labels_required: bool = True) -> CorpusFiles:
    """Find the utterances of the standard task, or of a part of the corpus that has none of its held-out speakers."""
    root = Path(root)
    recordings = _list_recordings(root)
    test_side = _test_speakers(recordings)
    utterances: list[Utterance] = []
    problems: list[Problem] = []
    left_out: Counter[str] = Counter()
    for key, audio, phn, speaker, sentence in recordings:
        part = _part(speaker, test_side)
        if sentence.startswith("sa"):
            left_out["sa"] += 1
        elif part is None:
            left_out["other"] += 1
        elif audio is None:
            problems.append(Problem(str(phn), "has labels but no audio beside it; the copy is incomplete"))
        elif phn is None and labels_required:
            problems.append(Problem(str(audio), "has no .PHN labels beside it; the copy is incomplete"))
        else:
            utterances.append(Utterance(key, speaker, part, audio, phn))
    if not recordings:
        what = "holds no TIMIT speech; expected folders such as TRAIN/DR1/FCJF0 or dr1-fcjf0 with SX37.WAV"
        problems.append(Problem(str(root), what))
    if _is_sample(recordings):
        utterances, how, more = hold_out(utterances, PARTS, seed, root)
        notes = [
            f"a part of TIMIT, such as NLTK's sample: {len({r.speaker for r in recordings})} speakers, "
            f"{len(recordings)} utterances, none of a core "
            "test or validation speaker, so errors on it cannot be compared with those on TIMIT",
            f"left out {left_out['sa']} SA sentences, which every speaker reads",
            *([how] if how else []),
        ]
    else:
        more = [] if problems else _damage(utterances, root)
        notes = [
            f"TIMIT: left out {left_out['sa']} SA sentences and {left_out['other']} sentences of test "
            "speakers outside the core test and the validation list",
            *_incomplete(utterances),
        ]
    return CorpusFiles(utterances, lambda used: TIMIT_61, notes, problems + more)


def frame_notes(frames: Mapping[str, int], utterances: Mapping[str, int]) -> list[str]:
    """Return notes that compare the numbers of frames with the usual ones and explain differences."""
    notes = []
    for part, usual in PART_FRAMES.items():
        off = frames[part] - usual
        if off == 0:
            notes.append(f"TIMIT {part}: {usual:,} frames, as usual")
            continue
        missing = PART_UTTERANCES[part] - utterances[part]
        if missing:
            why = f"{utterances[part]:,} of the usual {PART_UTTERANCES[part]:,} utterances are there"
        else:
            why = "every utterance is there, so some audio was cut, padded or resampled since it left the CD"
        notes.append(f"TIMIT {part}: {frames[part]:,} frames, {off:+,} against the usual {usual:,}: {why}")
    return notes


def _list_recordings(root: Path) -> list[_Recording]:
    """Return every sentence below a folder whose path is one of TIMIT: a speaker's folder and a sentence."""
    recordings = []
    for key, (audio, phn) in pair_files(root, (".phn",)).items():
        folders = key.split("/")
        sentence = _SENTENCE.match(folders[-1])
        speaker = _SPEAKER.match(folders[-2]) if len(folders) > 1 else None
        if speaker and sentence:
            recordings.append(_Recording(key, audio, phn, speaker[1], sentence[0]))
    return recordings


def _usage(key: str) -> str:
    """Return the folder of a path that says what its speaker is for, train or test; "" in flat folders."""
    return next((folder for folder in key.split("/")[:-2] if folder in ("train", "test")), "")


def _is_sample(recordings: Sequence[_Recording]) -> bool:
    """Return whether the standard split cannot apply: flat folders without a core test or validation speaker."""
    speakers = {r.speaker for r in recordings}
    flat = not any(_usage(r.key) for r in recordings)
    return bool(recordings) and flat and speakers.isdisjoint(CORE_TEST | VALIDATION)


def _test_speakers(recordings: Sequence[_Recording]) -> set[str]:
    """Return the speakers of the complete test side: by folder, or in a flat copy those who read an SX sentence of the
    core test (readme.doc, section 3)."""
    inside = {r.speaker for r in recordings if _usage(r.key) == "test"}
    if inside:
        return inside
    core = {r.sentence for r in recordings if r.speaker in CORE_TEST and r.sentence.startswith("sx")}
    return {r.speaker for r in recordings if r.sentence in core} | CORE_TEST | VALIDATION


def _part(speaker: str, test_side: set[str]) -> str | None:
    """Return a speaker's part; None for test speakers outside both lists, who are left out."""
    if speaker in CORE_TEST:
        return "test"
    if speaker in VALIDATION:
        return "valid"
    return None if speaker in test_side else "train"


def _damage(utterances: Sequence[Utterance], root: Path) -> list[Problem]:
    """Return what a copy lacks that must be there: whole parts, or of the whole corpus single speakers and sentences.
    Fewer than half of the speakers were chosen by somebody, which `_incomplete` notes."""
    sentences = Counter(u.speaker for u in utterances)
    speakers = {part: {u.speaker for u in utterances if u.part == part} for part in PARTS}
    faults = []
    for part in PARTS:
        if not speakers[part]:
            others = " and ".join(other for other in PARTS if speakers[other]) or "SA sentences"
            faults.append(f"holds no utterance of the {part} part ({PART_SPEAKERS[part]} speakers), only {others}")
        elif len(sentences) > sum(PART_SPEAKERS.values()) / 2 and len(speakers[part]) != PART_SPEAKERS[part]:
            which = _absent(part, utterances)
            faults.append(
                f"holds {len(speakers[part])} of the {PART_SPEAKERS[part]} speakers of the {part} part{which}"
            )
    if len(sentences) > sum(PART_SPEAKERS.values()) / 2:
        faults += [
            f"holds {count} of the {SENTENCES_PER_SPEAKER} SX and SI sentences of the speaker {speaker}"
            for speaker, count in sorted(sentences.items())
            if count != SENTENCES_PER_SPEAKER
        ]
    return [Problem(str(root), f"{what}; the copy is damaged or incomplete, copy it again") for what in faults]


def _absent(part: str, utterances: Sequence[Utterance]) -> str:
    """Return in brackets who is missing from a part: names from the lists, of the training part the regions."""
    speakers = {u.speaker for u in utterances if u.part == part}
    lists = {"test": CORE_TEST, "valid": VALIDATION}
    if part in lists:
        absent = sorted(lists[part] - speakers)
        return f" (missing: {', '.join(absent)})" if absent else ""
    region_of = {u.speaker: match[1] for u in utterances if u.part == part and (match := _REGION.search(u.key))}
    counts = Counter(region_of.values())
    odd = [f"dr{r}: {counts[r]} of {usual}" for r, usual in TRAINING_REGIONS.items() if counts[r] != usual]
    return f" ({', '.join(odd)})" if odd else ""


def _incomplete(utterances: Sequence[Utterance]) -> list[str]:
    """Return one note per part whose number of speakers is not that of the standard split."""
    notes = []
    for part, usual in PART_SPEAKERS.items():
        speakers = {u.speaker for u in utterances if u.part == part}
        if len(speakers) != usual:
            named = _absent(part, utterances) if part != "train" else ""
            notes.append(f"TIMIT {part}: {len(speakers)} speakers, the standard split has {usual}{named}")
    return notes
