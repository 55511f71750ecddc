"""Utterances -> features and state labels, kept in the cache so that it happens once.

Features go to a raw file of 39 float32 columns as they are made and are mapped from there, so the
size of the corpus does not matter to memory.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from echolearn.speech.alignment import Transcript, phone_names, too_short, train_aligner
from echolearn.speech.audio import RATE, read_audio
from echolearn.speech.cache import built_beside
from echolearn.speech.errors import CorpusError, Problem, raise_any
from echolearn.speech.features import COLUMNS, SHIFT, WINDOW, frame_count, mfcc, normalised, with_differences
from echolearn.speech.framelist import FrameList
from echolearn.speech.labels import Segment, checked, read_labels
from echolearn.speech.phones import STATES_PER_PHONE, split_state, state_names
from echolearn.speech.utterances import Utterance

Progress = Callable[[str, int, int], None]
PhoneList = Callable[[set[str]], tuple[str, ...]]
Master = dict[str, list[Segment]]

_VERSION = 1  # raised whenever the same files would give other features or labels
MIXTURES = 4
ALIGNER_FRAMES = 150_000  # bounds the aligner's memory and time, whatever the corpus
_FRAME_SECONDS = SHIFT / RATE
_MLF_TOLERANCE = 2  # frames a master label file may end before or after the audio


@dataclass(frozen=True)
class Prepared:
    features: FrameList
    labels: list[NDArray[np.int16]]
    phones: tuple[str, ...]


def prepare(
    utterances: Sequence[Utterance],
    phones: PhoneList,
    cache: Path,
    *,
    master: Master | None = None,
    normalise: str = "utterance",
    problems: Sequence[Problem] = (),
    depends_on: str = "",
    progress: Progress | None = None,
) -> Prepared:
    """Features (39 columns) and labels of every utterance.

    Raises CorpusError with everything wrong with any file, after the problems already known.
    depends_on: what else, besides the files, decides the labels; another text is another cache entry.
    """
    folder = cache / f"prepared-{_key(utterances, master, normalise, depends_on)}"
    if problems or not (folder / "labels.npy").is_file():
        with built_beside(folder) as building:
            _build(building, utterances, phones, master, normalise, list(problems), progress)
    return _open(folder, utterances, normalise)


def _key(utterances: Sequence[Utterance], master: Master | None, normalise: str, depends_on: str) -> str:
    digest = hashlib.sha256(json.dumps([_VERSION, normalise, MIXTURES, ALIGNER_FRAMES, depends_on]).encode())
    for u in utterances:
        for path in (u.audio, u.labels):
            state = path.stat() if path is not None and path.exists() else None
            digest.update(f"{u.key} {u.part} {path} {state and (state.st_size, state.st_mtime_ns)}\n".encode())
    if master is not None:
        digest.update(json.dumps(master, sort_keys=True).encode())
    return digest.hexdigest()[:16]


def _build(
    folder: Path,
    utterances: Sequence[Utterance],
    phones: PhoneList,
    master: Master | None,
    normalise: str,
    problems: list[Problem],
    progress: Progress | None,
) -> None:
    seconds = _write_features(folder / "features.f32", utterances, normalise, problems, progress)
    transcripts = [_transcript(u, master, problems) for u in utterances]
    known = phones({split_state(name)[0] for t in transcripts for name in phone_names(t)})
    lengths = [frame_count(round(s * RATE)) for s in seconds]
    files = [str(u.labels or u.audio) for u in utterances]
    states = _has_states(transcripts)
    labels: list[NDArray[np.int16]] = []
    for k, file in enumerate(files):
        if lengths[k] == 0 or not transcripts[k]:
            continue  # on the list already
        if states:
            labels.append(_state_labels(transcripts[k], lengths[k], known, file, problems))
        else:
            transcripts[k] = _whole(transcripts[k], seconds[k], known, file, problems)
            problems += too_short(lengths[k : k + 1], [phone_names(transcripts[k])], [file])
    raise_any(problems)
    (folder / "corpus.json").write_text(json.dumps({"lengths": lengths, "phones": known}), encoding="utf-8")
    if not states:
        features = _mapped(folder, utterances, lengths, normalise).without_context()
        labels = _aligned(features, transcripts, known, [u.part for u in utterances], progress)
    with (folder / "labels.npy").open("wb") as file_:
        np.save(file_, np.concatenate(labels))
        file_.flush()
        os.fsync(file_.fileno())


def _write_features(
    path: Path,
    utterances: Sequence[Utterance],
    normalise: str,
    problems: list[Problem],
    progress: Progress | None,
) -> list[float]:
    """One utterance after another to the file; returns seconds of audio (0 for one with a problem)."""
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
                continue  # nothing will be kept; the rest is only looked at
            frames = with_differences(mfcc(samples))
            if normalise == "utterance":
                frames = normalised(frames)
            file.write(np.ascontiguousarray(frames, dtype="<f4").tobytes())
            if progress and (done % 50 == 0 or done == len(utterances)):
                progress("computing features", done, len(utterances))
    return seconds


def _transcript(u: Utterance, master: Master | None, problems: list[Problem]) -> Transcript:
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
    """.PHN counts samples of the file as it lies there, before it is resampled."""
    if u.labels is None or u.labels.suffix.lower() != ".phn":
        return RATE
    try:
        import soundfile

        return int(soundfile.info(str(u.audio)).samplerate)
    except (RuntimeError, OSError):
        return RATE  # the audio is unreadable, which is already on the list


def _has_states(transcripts: Sequence[Transcript]) -> bool:
    """Whether the labels are states; one answer for the corpus, by its first labelled utterance."""
    first = next((t for t in transcripts if t), ())
    return bool(first) and all(split_state(name)[1] is not None for name in phone_names(first))


def _state_labels(
    transcript: Transcript, length: int, phones: tuple[str, ...], file: str, problems: list[Problem]
) -> NDArray[np.int16]:
    """A master label file's states as frame labels; frame k is k * 10 ms to the next."""
    index = {phone: k for k, phone in enumerate(phones)}
    labels = np.full(length, -1, dtype=np.int16)
    edge = 0
    for segment in transcript:
        if isinstance(segment, str):
            problems.append(Problem(file, f"state {segment!r} has no times; expected start and end"))
            continue
        phone, state = split_state(segment.name)
        start, end = round(segment.start / _FRAME_SECONDS), round(segment.end / _FRAME_SECONDS)
        if start != edge:
            what = "a gap" if start > edge else "an overlap"
            problems.append(Problem(file, f"{what} before {segment.name!r} at {segment.start:.3f} s"))
        if phone not in index or state is None:
            what = f"unknown state {segment.name!r} at {segment.start:.3f} s"
            problems.append(Problem(file, f"{what}; expected a phone of the list with [2..4] or _s2.._s4"))
        else:
            labels[start:end] = STATES_PER_PHONE * index[phone] + state
        edge = end
    if abs(edge - length) > _MLF_TOLERANCE:
        what = "run past the audio" if edge > length else "end before the audio"
        problems.append(Problem(file, f"its state labels {what}: {edge} frames of labels, {length} of audio"))
    elif edge < length and edge > 0:
        labels[edge:] = labels[edge - 1]
    return labels


def _whole(
    transcript: Transcript, seconds: float, phones: tuple[str, ...], file: str, problems: list[Problem]
) -> Transcript:
    """A timed transcript checked against the audio; names alone only against the phone list."""
    segments = [item for item in transcript if isinstance(item, Segment)]
    if segments:
        whole, found = checked(segments, seconds, phones, file)
        problems += found
        return whole
    names = phone_names(transcript)
    problems += [
        Problem(file, f"unknown phone {name!r}; expected one of {len(phones)} phones")
        for name in sorted(set(names) - set(phones))
    ]
    return names


def _aligned(
    features: FrameList,
    transcripts: Sequence[Transcript],
    phones: tuple[str, ...],
    parts: Sequence[str],
    progress: Progress | None,
) -> list[NDArray[np.int16]]:
    """Labels by an aligner that learnt from (at most ALIGNER_FRAMES of) the training part only."""
    train = [k for k, part in enumerate(parts) if part == "train"]
    lengths = features.lengths()
    stride = max(1, -(-sum(lengths[k] for k in train) // ALIGNER_FRAMES))
    chosen = train[::stride]
    aligner = train_aligner(
        [features[k] for k in chosen],
        [transcripts[k] for k in chosen],
        phones,
        mixtures=MIXTURES,
        progress=progress,
    )
    names = [phone_names(transcript) for transcript in transcripts]
    return [one.labels for one in aligner.align_all(features, names, progress)]


def _mapped(folder: Path, utterances: Sequence[Utterance], lengths: Sequence[int], normalise: str) -> FrameList:
    path = folder / "features.f32"
    frames = np.memmap(path, dtype="<f4", mode="r", shape=(sum(lengths), COLUMNS))
    features = FrameList.of_lengths(frames, lengths)
    if normalise == "corpus":
        features = features.scaled_like([k for k, u in enumerate(utterances) if u.part == "train"])
    return features


def _open(folder: Path, utterances: Sequence[Utterance], normalise: str) -> Prepared:
    try:
        lengths, phones = _about(folder, len(utterances))
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
        features = _mapped(folder, utterances, lengths, normalise)
    except (OSError, ValueError, KeyError, TypeError, EOFError, RecursionError) as error:
        what = f"is damaged ({error}); remove the folder, it will be made again"
        raise CorpusError.one(folder, what) from error
    return Prepared(features, np.split(np.array(labels), np.cumsum(lengths)[:-1]), phones)


def _about(folder: Path, utterances: int) -> tuple[list[int], tuple[str, ...]]:
    """Frames of each utterance, and the phones."""
    about = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
    lengths, phones = about["lengths"], about["phones"]
    if len(lengths) != utterances or not all(type(n) is int and n > 0 for n in lengths):
        raise ValueError(f"lengths of {len(lengths)} utterances for {utterances}")
    if not phones or not all(isinstance(phone, str) for phone in phones):
        raise ValueError("its phones are not words")
    return lengths, tuple(phones)
