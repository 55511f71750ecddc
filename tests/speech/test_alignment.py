"""Alignments that a trained model finds, from segments and from a flat start."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from echolearn.exceptions import CorpusError
from echolearn.speech.alignment import align, boundary_errors, train_aligner
from echolearn.speech.audio import read_audio
from echolearn.speech.features import boundary_time, first_frame, mfcc, normalised, with_differences
from echolearn.speech.labels import Segment, read_phn
from echolearn.speech.phones import ENGLISH
from echolearn.speech.transcripts import phone_names


def three_phones(seed: int, count: int = 30) -> tuple[list[np.ndarray], list[list[Segment]]]:
    """Return utterances of the phones a, b, c, three distant points, in random order.

    The third phone of each utterance is only one or two frames long.
    """
    rng = np.random.default_rng(seed)
    centre = {"a": (0.0, 0.0), "b": (8.0, 0.0), "c": (0.0, 8.0)}
    features, transcripts = [], []
    for k in range(count):
        names = [*rng.permutation(list("abc")), *rng.permutation(list("abc"))]
        lengths = rng.integers(3, 9, size=6)
        lengths[2] = 1 + k % 2
        rows = np.repeat([centre[n] for n in names], lengths, axis=0)
        features.append((rows + rng.normal(0, 0.4, rows.shape)).astype(np.float32))
        times = [0.0, *(boundary_time(int(e)) for e in np.cumsum(lengths))]
        transcripts.append([Segment(a, b, str(n)) for a, b, n in zip(times, times[1:], names, strict=False)])
    return features, transcripts


def test_distant_phones_are_found_to_the_frame_even_short_ones() -> None:
    features, transcripts = three_phones(0)
    seen: list[tuple[int, int]] = []
    found = align(features, transcripts, "abc", mixtures=2, progress=lambda t, d, n: seen.append((d, n)))
    for one, transcript in zip(found, transcripts, strict=True):
        names = phone_names(transcript)
        same = [k for k in range(1, 6) if names[k] == names[k - 1]]  # such a boundary cannot be seen
        truth = [first_frame(s.start) if s.start else 0 for s in transcript]
        np.testing.assert_array_equal(np.delete(one.starts, same), np.delete(truth, same))
        assert phone_names(one.segments(names)) == names
        states = one.segments(names, states=True)
        assert states[0].name.startswith(f"{names[0]}_s")
        assert all(x.end == y.start for x, y in pairwise(states))
    assert seen[-1][0] == seen[-1][1]


def test_distant_phones_are_found_from_a_flat_start() -> None:
    features, transcripts = three_phones(0)
    found = align(features, transcripts, "abc", mixtures=2, flat=True)
    off = [
        one.starts[k] - first_frame(t[k].start)
        for one, t in zip(found, transcripts, strict=True)
        for k in range(1, 6)
        if t[k].name != t[k - 1].name
    ]
    assert np.mean(np.abs(off) <= 1) > 0.9


def test_names_without_times_make_a_flat_start() -> None:
    features, transcripts = three_phones(1)
    names = [phone_names(t) for t in transcripts]
    by_names = align(features, names, "abc", mixtures=1)
    by_flag = align(features, transcripts, "abc", mixtures=1, flat=True)
    assert all(np.array_equal(a.labels, b.labels) for a, b in zip(by_names, by_flag, strict=True))


def test_only_the_chosen_utterances_are_trained_on() -> None:
    features, transcripts = three_phones(1, 8)
    other = [*features[:6], features[6] + 100, features[7] + 100]
    chosen = [align(X, transcripts, "abc", mixtures=1, train=range(6))[:6] for X in (features, other)]
    assert all(a.score == b.score for a, b in zip(*chosen, strict=True))


def test_every_utterance_with_fewer_frames_than_phones_is_named() -> None:
    features, transcripts = three_phones(2, 3)
    with pytest.raises(CorpusError) as caught:
        train_aligner([features[0], features[1][:4], features[2][:2]], transcripts, "abc")
    assert [p.file for p in caught.value.problems] == ["utterance 1", "utterance 2"]
    with pytest.raises(CorpusError, match="unknown phone 'c'"):
        align(features, transcripts, "ab")


@pytest.mark.parametrize("flat", [False, True])
def test_true_boundaries_of_synthetic_speech_are_found(small_tree: Path, flat: bool) -> None:
    """The bound is a little below what the full corpus reaches (docs/howto/speech.md), because this one is small."""
    wavs = sorted(small_tree.rglob("*.WAV"))
    features = [normalised(with_differences(mfcc(read_audio(w)))) for w in wavs]
    truth = [read_phn(w.with_suffix(".PHN")) for w in wavs]
    found = align(features, truth, ENGLISH, mixtures=2, flat=flat)
    assert np.mean(np.abs(boundary_errors(found, truth)) <= 0.02) > 0.82
