"""Features and state labels of a corpus of audio, computed once and kept in a cache folder.

Features are written to a raw file of 39 float32 columns while they are computed, and are mapped into memory from there.
So a corpus may be larger than memory. State labels come from a master label file that has states, or from the alignment
of phones.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from echolearn.display.progress import StageProgress
from echolearn.exceptions import CorpusError, Problem
from echolearn.speech._alignment import train_aligner
from echolearn.speech._audio import RATE_HZ, read_audio
from echolearn.speech._features import (
    FEATURE_COLUMNS,
    FRAME_SECONDS,
    WINDOW_SAMPLES,
    FrameList,
    Labels,
    frame_count,
    mfcc,
    normalised,
    with_differences,
)
from echolearn.speech._labels import Segment, read_labels
from echolearn.speech._phone_set import STATES_PER_PHONE, phones_of_states, split_state, state_names
from echolearn.speech._sources.utterances import CorpusFiles, Utterance
from echolearn.speech._text import raise_any
from echolearn.speech._transcripts import Transcript, check_segments, phone_names, too_few_frames, unknown_phones

MasterLabels = Mapping[str, list[Segment]]  # by the key of the utterance
_CACHE_VERSION = 1  # raised whenever the same files would give other features or labels
ALIGNER_MIXTURES = 4
ALIGNER_FRAMES = 150_000  # bounds the aligner's memory and time, whatever the size of the corpus
_MLF_TOLERANCE_FRAMES = 2  # by which a master label file may end before or after the audio
_DISK_FULL_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def default_cache() -> Path:
    """Return the folder of the variable ECHOLEARN_CACHE or, without it, `echolearn` in the user's cache folder."""
    folder = os.environ.get("ECHOLEARN_CACHE")
    if folder:
        return Path(folder)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "echolearn"
    except RuntimeError as problem:
        raise FileNotFoundError(
            "this user has no home folder for a cache; choose a folder with cache=... or the variable ECHOLEARN_CACHE"
        ) from problem


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to `folder` if the block succeeds and removed if it fails. Of two
    processes, the first to complete it wins: equal names mean equal content."""
    parent = folder.parent
    building: Path | None = None
    try:
        parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=parent))
        yield building
        building.chmod(0o755)
        try:
            building.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    except OSError as error:
        raise CorpusError([_problem(error, parent)]) from error
    finally:
        if building is not None:
            shutil.rmtree(building, ignore_errors=True)


def _problem(error: OSError, parent: Path) -> Problem:
    file, why = str(error.filename or parent), os.strerror(error.errno) if error.errno else str(error)
    if error.errno in _DISK_FULL_ERRORS:
        return Problem(file, f"the disk is full or the file too large for it ({why}); free some space")
    return Problem(
        file,
        f"the cache folder {parent} cannot be written ({why}); "
        "choose another with cache=... or the variable ECHOLEARN_CACHE",
    )


Prepared = tuple[FrameList, list[Labels], tuple[str, ...]]  # features and labels of each utterance, and the phones


def prepare(
    files: CorpusFiles,
    cache: Path,
    *,
    master: MasterLabels | None = None,
    normalise: str = "utterance",
    progress: StageProgress | None = None,
) -> Prepared:
    """Return the features (39 columns and their context) and state labels of every utterance, from the cache if there.
    master: labels by key, instead of the label files. One error has all problems of all files."""
    folder = cache / f"prepared-{_key(files, master, normalise)}"
    if files.problems or not (folder / "labels.npy").is_file():
        with atomic_folder(folder) as building:
            _build(building, files, master, normalise, progress)
    return _open(folder, files.utterances, normalise)


def _key(files: CorpusFiles, master: MasterLabels | None, normalise: str) -> str:
    """Return a name that changes with anything that would change the features or labels."""
    settings = [_CACHE_VERSION, normalise, ALIGNER_MIXTURES, ALIGNER_FRAMES, files.depends_on]
    digest = hashlib.sha256(json.dumps(settings).encode())
    for u in files.utterances:
        for path in (u.audio, u.labels):
            state = path.stat() if path is not None and path.exists() else None
            digest.update(f"{u.key} {u.part} {path} {state and (state.st_size, state.st_mtime_ns)}\n".encode())
    if master is not None:
        digest.update(json.dumps(master, sort_keys=True).encode())
    return digest.hexdigest()[:16]


def _build(
    folder: Path, files: CorpusFiles, master: MasterLabels | None, normalise: str, progress: StageProgress | None
) -> None:
    """Write features.f32, corpus.json and labels.npy."""
    utterances, problems = files.utterances, list(files.problems)
    seconds = _write_features(folder / "features.f32", utterances, normalise, problems, progress)
    transcripts = [_read_transcript(u, master, problems) for u in utterances]
    phones = files.phones(phones_of_states(name for t in transcripts for name in phone_names(t)))
    lengths = [frame_count(round(s * RATE_HZ)) for s in seconds]
    states = has_states(transcripts)
    labels: list[Labels] = []
    for k, u in enumerate(utterances):
        if lengths[k] == 0 or not transcripts[k]:
            continue  # among the problems already
        file = str(u.labels or u.audio)
        if states:
            states_of_frames, faults = mlf_labels(transcripts[k], lengths[k], phones, file)
            labels.append(states_of_frames)
        else:
            transcripts[k], faults = _check_transcript(transcripts[k], seconds[k], phones, file)
            faults += too_few_frames(lengths[k], phone_names(transcripts[k]), file)
        problems += faults
    raise_any(problems)
    (folder / "corpus.json").write_text(json.dumps({"lengths": lengths, "phones": phones}), encoding="utf-8")
    if not states:
        features = _map_features(folder, utterances, lengths, normalise).without_context()
        train = _training(utterances)
        chosen = train[:: max(1, -(-sum(lengths[k] for k in train) // ALIGNER_FRAMES))]
        given = [features[k] for k in chosen], [transcripts[k] for k in chosen]
        aligner = train_aligner(*given, phones, mixtures=ALIGNER_MIXTURES, progress=progress)
        names = [phone_names(transcript) for transcript in transcripts]
        labels = [one.labels for one in aligner.align_all(features, names, progress)]
    with (folder / "labels.npy").open("wb") as output:
        np.save(output, np.concatenate(labels))
        output.flush()
        os.fsync(output.fileno())


def _write_features(
    path: Path, utterances: Sequence[Utterance], normalise: str, problems: list[Problem], progress: StageProgress | None
) -> list[float]:
    """Write one utterance after another; return the seconds of each, 0 for one with a problem, which is appended."""
    seconds = []
    with path.open("wb") as file:
        for done, u in enumerate(utterances, 1):
            try:
                samples = read_audio(u.audio)
                if len(samples) < WINDOW_SAMPLES:
                    raise CorpusError.one(u.audio, f"holds {len(samples)} samples, a frame needs {WINDOW_SAMPLES}")
            except CorpusError as error:
                problems += error.problems
                seconds.append(0.0)
                continue
            seconds.append(len(samples) / RATE_HZ)
            if problems:
                continue  # nothing will be kept; the other files are only checked
            frames = with_differences(mfcc(samples))
            if normalise == "utterance":
                frames = normalised(frames)
            file.write(np.ascontiguousarray(frames, dtype="<f4").tobytes())
            if progress and (done % 50 == 0 or done == len(utterances)):
                progress("computing features", done, len(utterances))
    return seconds


def _read_transcript(u: Utterance, master: MasterLabels | None, problems: list[Problem]) -> Transcript:
    """Return the labels of an utterance; nothing if they cannot be read, which is appended to the problems."""
    if master is not None or u.labels is None:
        return [] if master is None else master.get(u.key, [])
    try:
        return read_labels(u.labels, _phn_rate(u))
    except CorpusError as error:
        problems += error.problems
        return []


def _phn_rate(u: Utterance) -> int:
    """Return the rate of the audio file before it is resampled, in whose samples .PHN counts."""
    if u.labels is None or u.labels.suffix.lower() != ".phn":
        return RATE_HZ
    try:
        import soundfile

        return int(soundfile.info(str(u.audio)).samplerate)
    except (RuntimeError, OSError):
        return RATE_HZ  # the audio is unreadable, which is among the problems already


def _check_transcript(
    transcript: Transcript, seconds: float, phones: tuple[str, ...], file: str
) -> tuple[Transcript, list[Problem]]:
    """Check a transcript with times against the audio, and one without only against the phone list."""
    segments = [item for item in transcript if isinstance(item, Segment)]
    if segments:
        return check_segments(segments, seconds, phones, file)
    names = phone_names(transcript)
    return names, unknown_phones(names, phones, file)


def _training(utterances: Sequence[Utterance]) -> list[int]:
    return [k for k, u in enumerate(utterances) if u.part == "train"]


def _map_features(folder: Path, utterances: Sequence[Utterance], lengths: Sequence[int], normalise: str) -> FrameList:
    path = folder / "features.f32"
    frames = np.memmap(path, dtype="<f4", mode="r", shape=(sum(lengths), FEATURE_COLUMNS))
    features = FrameList.of_lengths(frames, lengths)
    if normalise == "utterance":
        return features
    return features.scaled_like(_training(utterances), running=normalise == "running")


def _open(folder: Path, utterances: Sequence[Utterance], normalise: str) -> Prepared:
    try:
        description = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
        lengths, phones = description["lengths"], description["phones"]
        if len(lengths) != len(utterances) or not all(type(n) is int and n > 0 for n in lengths):
            raise ValueError(f"lengths of {len(lengths)} utterances for {len(utterances)}")
        if not phones or not all(isinstance(phone, str) for phone in phones):
            raise ValueError("its phones are not words")
        labels = np.load(folder / "labels.npy", mmap_mode="r", allow_pickle=False)
        states = len(state_names(phones))
        if (
            labels.dtype != np.int16
            or labels.shape != (sum(lengths),)
            or not 0 <= labels.min() <= labels.max() < states
        ):
            raise ValueError(f"labels of {labels.dtype} {labels.shape} for {sum(lengths)} frames and {states} states")
        if (folder / "features.f32").stat().st_size != sum(lengths) * FEATURE_COLUMNS * 4:
            raise ValueError("features of another size")
        features = _map_features(folder, utterances, lengths, normalise)
    except (OSError, ValueError, KeyError, TypeError, EOFError, RecursionError) as error:
        what = f"is damaged ({error}); remove the folder, it will be made again"
        raise CorpusError.one(folder, what) from error
    return features, np.split(np.array(labels), np.cumsum(lengths)[:-1]), tuple(phones)


def has_states(transcripts: Sequence[Transcript]) -> bool:
    """Return whether the labels of a corpus are states; the first utterance that has labels decides."""
    first = next((t for t in transcripts if t), ())
    return bool(first) and all(split_state(name)[1] is not None for name in phone_names(first))


def mlf_labels(transcript: Transcript, length: int, phones: Sequence[str], file: str) -> tuple[Labels, list[Problem]]:
    """Return one label per frame from the states of a master label file, and problems; frame k begins at k * 10 ms."""
    index = {phone: k for k, phone in enumerate(phones)}
    labels = np.full(length, -1, dtype=np.int16)
    problems = []
    edge = 0
    for segment in transcript:
        if isinstance(segment, str):
            problems.append(Problem(file, f"state {segment!r} has no times; expected start and end"))
            continue
        phone, state = split_state(segment.name)
        start, end = round(segment.start / FRAME_SECONDS), round(segment.end / FRAME_SECONDS)
        if start != edge:
            what = "a gap" if start > edge else "an overlap"
            problems.append(Problem(file, f"{what} before {segment.name!r} at {segment.start:.3f} s"))
        if phone not in index or state is None:
            what = f"unknown state {segment.name!r} at {segment.start:.3f} s"
            problems.append(Problem(file, f"{what}; expected a phone of the list with [2..4] or _s2.._s4"))
        else:
            labels[start:end] = STATES_PER_PHONE * index[phone] + state
        edge = end
    if abs(edge - length) > _MLF_TOLERANCE_FRAMES:
        what = "run past the audio" if edge > length else "end before the audio"
        problems.append(Problem(file, f"its state labels {what}: {edge} frames of labels, {length} of audio"))
    elif edge < length and edge > 0:
        labels[edge:] = labels[edge - 1]
    return labels, problems
