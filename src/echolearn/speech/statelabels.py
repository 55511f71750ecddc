"""State labels of frames, from a master label file that has states or from the alignment of phones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from echolearn.exceptions import Problem
from echolearn.speech._typing import Labels, Progress
from echolearn.speech.alignment import train_aligner
from echolearn.speech.features import FRAME_SECONDS
from echolearn.speech.framelist import FrameList
from echolearn.speech.phones import STATES_PER_PHONE, split_state
from echolearn.speech.transcripts import Transcript, phone_names

MIXTURES = 4
ALIGNER_FRAMES = 150_000  # bounds the aligner's memory and time, whatever the size of the corpus
_MLF_TOLERANCE_FRAMES = 2  # by which a master label file may end before or after the audio


def has_states(transcripts: Sequence[Transcript]) -> bool:
    """Return whether the labels of a corpus are states; the first utterance that has labels decides."""
    first = next((t for t in transcripts if t), ())
    return bool(first) and all(split_state(name)[1] is not None for name in phone_names(first))


def given_labels(transcript: Transcript, length: int, phones: Sequence[str], file: str) -> tuple[Labels, list[Problem]]:
    """Return one label per frame from the states of a master label file; frame k begins at k * 10 ms.

    Gaps, overlaps, unknown states and labels that end more than two frames off the audio's end are problems.
    """
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


def aligned_labels(
    features: FrameList,
    transcripts: Sequence[Transcript],
    phones: Sequence[str],
    train: Sequence[int],
    progress: Progress | None,
) -> list[Labels]:
    """Return one label per frame from an aligner, trained on at most 150,000 frames of the training part alone."""
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
