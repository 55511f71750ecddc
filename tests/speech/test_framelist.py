"""A list of utterances over one array of frames."""

from __future__ import annotations

import numpy as np
import pytest

from echolearn.speech.features import normalised, with_context
from echolearn.speech.framelist import FrameList

FRAMES = np.random.default_rng(0).normal(3, 2, size=(20, 4)).astype(np.float32)


@pytest.fixture
def utterances() -> FrameList:
    return FrameList.of_lengths(FRAMES, [5, 8, 7])


def test_items_are_slices_stacked_with_their_context(utterances: FrameList) -> None:
    assert (len(utterances), utterances.lengths()) == (3, [5, 8, 7])
    np.testing.assert_array_equal(utterances[1], with_context(FRAMES[5:13]))
    np.testing.assert_array_equal(utterances[-1], with_context(FRAMES[13:]))
    np.testing.assert_array_equal(utterances.without_context()[0], FRAMES[:5])


def test_slices_and_choices_share_the_frames(utterances: FrameList) -> None:
    for chosen in (utterances[1:], utterances.take([1, 2])):
        assert chosen.frames is FRAMES
        assert chosen.lengths() == [8, 7]
        np.testing.assert_array_equal(chosen[0], utterances[1])


def test_scale_is_that_of_the_chosen_utterances(utterances: FrameList) -> None:
    scaled = utterances.scaled_like([0, 2]).without_context()
    own = np.concatenate([scaled[0], scaled[2]])
    np.testing.assert_allclose(own.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(own.std(axis=0), 1, atol=1e-5)
    rows = np.concatenate([FRAMES[:5], FRAMES[13:]]).astype(np.float64)
    np.testing.assert_allclose(scaled[1], normalised(FRAMES[5:13], rows.mean(axis=0), rows.std(axis=0)), rtol=1e-5)
