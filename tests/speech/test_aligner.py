"""What an aligner returns: chains of states, and alignments as segments."""

from __future__ import annotations

import numpy as np
import pytest

from echolearn.speech.aligner import Aligner, Alignment, state_chain
from echolearn.speech.features import boundary_time
from echolearn.speech.labels import Segment
from echolearn.speech.mixtures import Mixtures


def test_chain_holds_three_states_per_phone() -> None:
    assert state_chain(["b", "a", "b"], ["a", "b"]).tolist() == [3, 4, 5, 0, 1, 2, 3, 4, 5]


def test_segments_of_phones_and_of_states() -> None:
    found = Alignment(np.array([3, 3, 4, 5, 0, 2], dtype=np.int16), np.array([0, 4]), -1.0)
    edge = [0.0, *(boundary_time(k) for k in range(1, 7))]
    assert found.segments(["b", "a"]) == [Segment(0.0, edge[4], "b"), Segment(edge[4], edge[6], "a")]
    assert found.segments(["b", "a"], states=True) == [
        Segment(edge[0], edge[2], "b_s2"),
        Segment(edge[2], edge[3], "b_s3"),
        Segment(edge[3], edge[4], "b_s4"),
        Segment(edge[4], edge[5], "a_s2"),
        Segment(edge[5], edge[6], "a_s4"),
    ]


@pytest.fixture
def known_model() -> Aligner:
    """A model of phones a and b whose states lie at 0, 1, ..., 5."""
    mixtures = Mixtures(np.zeros((6, 1)), np.arange(6.0).reshape(6, 1, 1), np.full((6, 1, 1), 0.01), np.full(1, 0.01))
    return Aligner(("a", "b"), mixtures, np.full(6, 0.5))


def test_frames_get_the_states_they_lie_at(known_model: Aligner) -> None:
    X = np.array([[3.0], [4.0], [4.0], [5.0], [0.0], [1.0], [2.0]], dtype=np.float32)
    found = known_model.align(X, ["b", "a"])
    assert found.labels.tolist() == [3, 4, 4, 5, 0, 1, 2]
    assert found.starts.tolist() == [0, 4]


def test_progress_is_reported_at_the_end(known_model: Aligner) -> None:
    seen: list[tuple[str, int, int]] = []
    X = np.array([[0.0], [1.0], [2.0]], dtype=np.float32)
    known_model.align_all([X] * 101, [["a"]] * 101, lambda *report: seen.append(report))
    assert seen == [("labelling frames", 100, 101), ("labelling frames", 101, 101)]
