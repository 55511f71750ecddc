"""TIMIT as a licence holder has it: any case, SPHERE or RIFF, the CD's tree or flat folders.

The standard task: 462 training speakers, 50 validation speakers and the 24 of the core test, all without the SA
sentences, which every speaker reads. The speaker lists are public facts. Validation: Kaldi,
egs/timit/s5/conf/dev_spk.list. Core test: the speakers of data/lists/test_core.ids in KarenMars/pae_probe_experiments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from echolearn.speech.errors import Problem
from echolearn.speech.phones import TIMIT_61
from echolearn.speech.utterances import PARTS, CorpusFiles, Utterance, pair_files

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

UTTERANCES = {"train": 3_696, "valid": 400, "test": 192}
SPEAKERS = {"train": 462, "valid": 50, "test": 24}
FRAMES = {"train": 1_124_823, "valid": 122_487, "test": 57_919}
_SPEAKER = re.compile(r"^(?:dr\d[-_])?([fm][a-z]{3}\d)$")
_SENTENCE = re.compile(r"^(sa|si|sx)(\d+)$")


def find_timit(root: str | Path, *, labels_required: bool = True) -> CorpusFiles:
    """Find the utterances of the standard task.

    Parameters
    ----------
    root : str or Path
        The folder of the corpus.
    labels_required : bool, default True
        Whether a missing .PHN file is a problem. False if a master label file has the labels.

    Returns
    -------
    CorpusFiles
        The utterances, notes on what was left out, and what is wrong.

    Raises
    ------
    CorpusError
        If there is no such folder.
    """
    root = Path(root)
    utterances, problems = [], []
    found = [(key, *files) for key, files in pair_files(root, (".phn",)).items()]
    spoken = [(key, audio, phn, *named) for key, audio, phn in found if (named := _speaker_and_sentence(key))]
    test_side = _test_speakers([(key, speaker, sentence) for key, _, _, speaker, sentence in spoken])
    left_out = {"sa": 0, "other": 0}
    for key, audio, phn, speaker, sentence in spoken:
        part = _part(speaker, test_side)
        if sentence.startswith("sa") or part is None:
            left_out["sa" if sentence.startswith("sa") else "other"] += 1
        elif audio is None:
            problems.append(Problem(str(phn), "has labels but no audio beside it; the copy is incomplete"))
        elif phn is None and labels_required:
            problems.append(Problem(str(audio), "has no .PHN labels beside it; the copy is incomplete"))
        else:
            utterances.append(Utterance(key, speaker, part, audio, phn))
    if not spoken:
        what = "holds no TIMIT speech; expected folders such as TRAIN/DR1/FCJF0 or dr1-fcjf0 with SX37.WAV"
        problems.append(Problem(str(root), what))
    elif not problems:
        problems += _missing_parts(utterances, root)
    notes = [
        f"TIMIT: left out {left_out['sa']} SA sentences and {left_out['other']} sentences of test "
        "speakers outside the core test and the validation list"
    ]
    return CorpusFiles(utterances, lambda used: TIMIT_61, notes + _incomplete(utterances), problems)


def frame_notes(frames: Mapping[str, int], utterances: Mapping[str, int]) -> list[str]:
    """Compare the numbers of frames with the usual ones, and say why they differ if they do.

    Parameters
    ----------
    frames : mapping of str to int
        Frames of each part.
    utterances : mapping of str to int
        Utterances of each part.

    Returns
    -------
    list of str
        One note per part.
    """
    notes = []
    for part, usual in FRAMES.items():
        off = frames[part] - usual
        if off == 0:
            notes.append(f"TIMIT {part}: {usual:,} frames, as usual")
            continue
        missing = UTTERANCES[part] - utterances[part]
        if missing:
            why = f"{utterances[part]:,} of the usual {UTTERANCES[part]:,} utterances are there"
        else:
            why = "every utterance is there, so some audio was cut, padded or resampled since it left the CD"
        notes.append(f"TIMIT {part}: {frames[part]:,} frames, {off:+,} against the usual {usual:,}: {why}")
    return notes


def _speaker_and_sentence(key: str) -> tuple[str, str] | None:
    """Return the speaker and the sentence that a path names; None if it is not a path of TIMIT."""
    folders = key.split("/")
    sentence = _SENTENCE.match(folders[-1])
    speaker = _SPEAKER.match(folders[-2]) if len(folders) > 1 else None
    return (speaker[1], sentence[0]) if speaker and sentence else None


def _test_speakers(spoken: list[tuple[str, str, str]]) -> set[str]:
    """Return the speakers of the complete test side: by folder, or in a flat copy by what they read.

    Nobody outside the complete test side reads an SX sentence that a core test speaker reads, and everybody inside it
    does, so a flat copy needs no list of its 168 speakers. This has not been checked against a whole copy of the
    corpus; `corpus.notes` reports a number of training speakers other than 462.
    """
    inside = {speaker for key, speaker, _ in spoken if "test" in key.split("/")[:-2]}
    if inside:
        return inside
    core = {sentence for _, speaker, sentence in spoken if speaker in CORE_TEST and sentence.startswith("sx")}
    return {speaker for _, speaker, sentence in spoken if sentence in core} | CORE_TEST | VALIDATION


def _part(speaker: str, test_side: set[str]) -> str | None:
    """Return a speaker's part; None for test speakers outside both lists, who are left out."""
    if speaker in CORE_TEST:
        return "test"
    if speaker in VALIDATION:
        return "valid"
    return None if speaker in test_side else "train"


def _missing_parts(utterances: Sequence[Utterance], root: Path) -> list[Problem]:
    present = {utterance.part for utterance in utterances}
    return [
        Problem(str(root), f"holds no utterance of the {part} part; is the corpus complete?")
        for part in PARTS
        if part not in present
    ]


def _incomplete(utterances: Sequence[Utterance]) -> list[str]:
    """Return one note per part whose number of speakers is not that of the standard split."""
    notes = []
    for part, usual in SPEAKERS.items():
        speakers = {u.speaker for u in utterances if u.part == part}
        if len(speakers) != usual:
            lists = {"test": CORE_TEST, "valid": VALIDATION}
            absent = sorted(lists[part] - speakers) if part in lists else []
            named = f" (missing: {', '.join(absent)})" if absent else ""
            notes.append(f"TIMIT {part}: {len(speakers)} speakers, the standard split has {usual}{named}")
    return notes
