"""Recipes of features: recordings and streams give the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echolearn.speech import normalised, with_context
from echolearn.speech import with_differences as differences
from echolearn.speech._feature_recipe import FeatureRecipe
from echolearn.speech._features import MAX_MEMORY_FRAMES, PRIOR_FRAMES, RunningScale
from speechfiles import tones

SCALE = (np.linspace(-1, 1, 39), np.linspace(0.5, 2, 39))


@pytest.mark.parametrize("normalise", ["corpus", "running", "none"])
@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.lists(st.integers(0, 40), max_size=8), st.integers(0, 9))
def test_frames_in_pieces_give_the_same_bits(normalise, n, cuts, seed):
    frames = np.random.default_rng(seed).normal(size=(n, 13)).astype(np.float32)
    recipe = FeatureRecipe(normalise=normalise, scale=None if normalise == "none" else SCALE)
    stream = recipe.stream()
    pieces = [stream.push_frames(piece) for piece in np.split(frames, sorted(min(c, n) for c in cuts))]
    np.testing.assert_array_equal(np.concatenate([*pieces, stream.finish()]), recipe.of_frames(frames))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 8000), max_size=12))
def test_samples_in_pieces_give_the_same_bits(cuts):
    samples = tones(0.5).astype(np.float32)
    recipe = FeatureRecipe(normalise="running", scale=SCALE)
    stream = recipe.stream()
    pieces = [stream.push_samples(piece) for piece in np.split(samples, sorted(cuts))]
    np.testing.assert_array_equal(np.concatenate([*pieces, stream.finish()]), recipe.of_samples(samples))


def test_a_recording_is_prepared_as_corpora_are():
    frames = np.random.default_rng(0).normal(size=(30, 13)).astype(np.float32)
    rows = differences(frames)
    np.testing.assert_array_equal(FeatureRecipe().of_frames(frames), with_context(normalised(rows)))
    np.testing.assert_array_equal(
        FeatureRecipe(normalise="corpus", scale=SCALE).of_frames(frames), with_context(normalised(rows, *SCALE))
    )


def test_the_look_ahead_is_as_stated():
    recipe = FeatureRecipe(normalise="running", scale=SCALE)
    assert recipe.look_ahead == 5
    assert recipe.latency == pytest.approx(0.0625)
    frames = np.random.default_rng(0).normal(size=(40, 13)).astype(np.float32)
    changed = frames.copy()
    changed[20] += 1
    different = np.flatnonzero((recipe.of_frames(frames) != recipe.of_frames(changed)).any(axis=1))
    assert different[0] == 20 - recipe.look_ahead
    assert len(recipe.stream().push_frames(frames)) == 40 - recipe.look_ahead


def test_running_moments_are_those_of_the_training_part_and_the_frames_so_far():
    rng = np.random.default_rng(0)
    frames = rng.normal(2.0, 3.0, size=(50, 2)).astype(np.float32)
    mean, deviation = np.array([1.0, -1.0]), np.array([2.0, 0.5])
    found = RunningScale(mean, deviation).apply(frames)
    for t in (0, 7, 49):
        so_far = frames[: t + 1].astype(float)
        weight = PRIOR_FRAMES + t + 1
        m = (PRIOR_FRAMES * mean + so_far.sum(axis=0)) / weight
        s = (PRIOR_FRAMES * (deviation**2 + mean**2) + (so_far**2).sum(axis=0)) / weight
        np.testing.assert_allclose(found[t], (frames[t] - m) / np.sqrt(s - m**2), rtol=1e-4)


def test_running_moments_forget():
    frames = np.concatenate([np.full((4000, 1), 5.0), np.random.default_rng(0).normal(size=(20000, 1))])
    found = RunningScale(np.zeros(1), np.ones(1)).apply(frames.astype(np.float32))
    assert MAX_MEMORY_FRAMES < 4000
    assert abs(found[-3000:].mean()) < 0.1
    assert found[-3000:].std() == pytest.approx(1.0, abs=0.1)


def test_a_column_that_does_not_move_is_zero():
    still = np.ones((5, 1), dtype=np.float32)
    np.testing.assert_array_equal(RunningScale(np.ones(1), np.zeros(1)).apply(still), np.zeros((5, 1)))


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"normalise": "never"}, "expected one of"),
        ({"normalise": "corpus"}, "needs a mean"),
        ({"scale": SCALE}, "needs no mean"),
        ({"context": 2}, "odd number"),
        ({"differences": False}, "appends differences"),
    ],
)
def test_impossible_recipes_are_refused(settings_, message):
    with pytest.raises(ValueError, match=message):
        FeatureRecipe(**settings_)


def test_a_whole_utterance_cannot_be_normalised_in_a_stream():
    with pytest.raises(ValueError, match="--normalise running"):
        FeatureRecipe().stream()


def test_samples_need_a_recipe_that_begins_with_sound_and_one_frame():
    with pytest.raises(ValueError, match="begins with frames"):
        FeatureRecipe.ready().of_samples(np.zeros(1000, dtype=np.float32))
    with pytest.raises(ValueError, match="a frame needs 400"):
        FeatureRecipe().of_samples(np.zeros(399, dtype=np.float32))
