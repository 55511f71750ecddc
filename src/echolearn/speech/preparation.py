"""Features and state labels of a corpus of audio, computed once and kept in the cache.

Features are written to a raw file of 39 float32 columns while they are computed, and are mapped into memory from there.
So a corpus may be larger than memory.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from echolearn.exceptions import CorpusError, Problem
from echolearn.speech._typing import Labels, Progress
from echolearn.speech.audio import RATE, read_audio
from echolearn.speech.cache import atomic_folder
from echolearn.speech.errors import raise_any
from echolearn.speech.features import COLUMNS, WINDOW, frame_count, mfcc, normalised, with_differences
from echolearn.speech.framelist import FrameList
from echolearn.speech.labels import Segment, read_labels
from echolearn.speech.phones import phones_of_states, state_names
from echolearn.speech.statelabels import ALIGNER_FRAMES, MIXTURES, aligned_labels, given_labels, has_states
from echolearn.speech.transcripts import Transcript, check_segments, phone_names, too_few_frames, unknown_phones
from echolearn.speech.utterances import CorpusFiles, Utterance

MasterLabels = Mapping[str, list[Segment]]  # by the key of the utterance

_CACHE_VERSION = 1  # raised whenever the same files would give other features or labels


@dataclass(frozen=True)
class Prepared:
    """The features and labels of a corpus, as `prepare` returns them."""

    features: FrameList
    labels: list[Labels]
    phones: tuple[str, ...]


def prepare(
    files: CorpusFiles,
    cache: Path,
    *,
    master: MasterLabels | None = None,
    normalise: str = "utterance",
    progress: Progress | None = None,
) -> Prepared:
    """Return the features (39 columns and their context) and state labels of every utterance.

    A later call with the same files and settings reads them from the cache. `master` has labels by key, instead of the
    label files. One error has all problems of all files.
    """
    folder = cache / f"prepared-{_key(files, master, normalise)}"
    if files.problems or not (folder / "labels.npy").is_file():
        with atomic_folder(folder) as building:
            _build(building, files, master, normalise, progress)
    return _open(folder, files.utterances, normalise)


def _key(files: CorpusFiles, master: MasterLabels | None, normalise: str) -> str:
    """Return a name that changes with anything that would change the features or labels."""
    settings = [_CACHE_VERSION, normalise, MIXTURES, ALIGNER_FRAMES, files.depends_on]
    digest = hashlib.sha256(json.dumps(settings).encode())
    for u in files.utterances:
        for path in (u.audio, u.labels):
            state = path.stat() if path is not None and path.exists() else None
            digest.update(f"{u.key} {u.part} {path} {state and (state.st_size, state.st_mtime_ns)}\n".encode())
    if master is not None:
        digest.update(json.dumps(master, sort_keys=True).encode())
    return digest.hexdigest()[:16]


def _build(
    folder: Path, files: CorpusFiles, master: MasterLabels | None, normalise: str, progress: Progress | None
) -> None:
    """Write features.f32, corpus.json and labels.npy."""
    utterances, problems = files.utterances, list(files.problems)
    seconds = _write_features(folder / "features.f32", utterances, normalise, problems, progress)
    transcripts = [_read_transcript(u, master, problems) for u in utterances]
    phones = files.phones(phones_of_states(name for t in transcripts for name in phone_names(t)))
    lengths = [frame_count(round(s * RATE)) for s in seconds]
    states = has_states(transcripts)
    labels: list[Labels] = []
    for k, u in enumerate(utterances):
        if lengths[k] == 0 or not transcripts[k]:
            continue  # among the problems already
        file = str(u.labels or u.audio)
        if states:
            given, found = given_labels(transcripts[k], lengths[k], phones, file)
            labels.append(given)
        else:
            transcripts[k], found = _check_transcript(transcripts[k], seconds[k], phones, file)
            found += too_few_frames(lengths[k], phone_names(transcripts[k]), file)
        problems += found
    raise_any(problems)
    (folder / "corpus.json").write_text(json.dumps({"lengths": lengths, "phones": phones}), encoding="utf-8")
    if not states:
        features = _map_features(folder, utterances, lengths, normalise).without_context()
        labels = aligned_labels(features, transcripts, phones, _training(utterances), progress)
    with (folder / "labels.npy").open("wb") as output:
        np.save(output, np.concatenate(labels))
        output.flush()
        os.fsync(output.fileno())


def _write_features(
    path: Path,
    utterances: Sequence[Utterance],
    normalise: str,
    problems: list[Problem],
    progress: Progress | None,
) -> list[float]:
    """Write one utterance after another; return the seconds of each, 0 for one with a problem, which is appended."""
    seconds = []
    with path.open("wb") as file:
        for done, u in enumerate(utterances, 1):
            try:
                samples = read_audio(u.audio)
                if len(samples) < WINDOW:
                    raise CorpusError.one(u.audio, f"holds {len(samples)} samples, a frame needs {WINDOW}")
            except CorpusError as error:
                problems += error.problems
                seconds.append(0.0)
                continue
            seconds.append(len(samples) / RATE)
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
    try:
        if master is not None:
            return master.get(u.key, [])
        if u.labels is None:
            return []
        return read_labels(u.labels, _phn_rate(u))
    except CorpusError as error:
        problems += error.problems
        return []


def _phn_rate(u: Utterance) -> int:
    """Return the rate of the audio file before it is resampled, in whose samples .PHN counts."""
    if u.labels is None or u.labels.suffix.lower() != ".phn":
        return RATE
    try:
        import soundfile

        return int(soundfile.info(str(u.audio)).samplerate)
    except (RuntimeError, OSError):
        return RATE  # the audio is unreadable, which is among the problems already


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
    frames = np.memmap(path, dtype="<f4", mode="r", shape=(sum(lengths), COLUMNS))
    features = FrameList.of_lengths(frames, lengths)
    if normalise == "utterance":
        return features
    return features.scaled_like(_training(utterances), running=normalise == "running")


def _open(folder: Path, utterances: Sequence[Utterance], normalise: str) -> Prepared:
    try:
        lengths, phones = _read_description(folder, len(utterances))
        labels = np.load(folder / "labels.npy", mmap_mode="r", allow_pickle=False)
        states = len(state_names(phones))
        if (
            labels.dtype != np.int16
            or labels.shape != (sum(lengths),)
            or not 0 <= labels.min() <= labels.max() < states
        ):
            raise ValueError(f"labels of {labels.dtype} {labels.shape} for {sum(lengths)} frames and {states} states")
        if (folder / "features.f32").stat().st_size != sum(lengths) * COLUMNS * 4:
            raise ValueError("features of another size")
        features = _map_features(folder, utterances, lengths, normalise)
    except (OSError, ValueError, KeyError, TypeError, EOFError, RecursionError) as error:
        what = f"is damaged ({error}); remove the folder, it will be made again"
        raise CorpusError.one(folder, what) from error
    return Prepared(features, np.split(np.array(labels), np.cumsum(lengths)[:-1]), phones)


def _read_description(folder: Path, utterances: int) -> tuple[list[int], tuple[str, ...]]:
    """Return the number of frames of each utterance, and the phones."""
    description = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
    lengths, phones = description["lengths"], description["phones"]
    if len(lengths) != utterances or not all(type(n) is int and n > 0 for n in lengths):
        raise ValueError(f"lengths of {len(lengths)} utterances for {utterances}")
    if not phones or not all(isinstance(phone, str) for phone in phones):
        raise ValueError("its phones are not words")
    return lengths, tuple(phones)
