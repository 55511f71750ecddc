"""Columns of a direct model: what they follow, and the inputs that they give to a network."""

from dataclasses import replace

import numpy as np

from echolearn.forecasting.columns import (
    MAX_INPUT_DEVIATIONS,
    exogenous_effects,
    fit_column,
    network_inputs,
    typical_step,
)

RNG = np.random.default_rng(2)
T = np.arange(80)
Y = 30 + 0.2 * T + 4 * np.sin(2 * np.pi * T / 8) + 0.3 * RNG.normal(size=80)
NONE = np.empty((80, 0))
TRACK = fit_column(Y, NONE, (8, 1), 6)
COLUMN = TRACK.end


def test_a_column_is_followed_in_pieces_as_in_one():
    start = COLUMN.begin(Y)
    whole = start.follow(Y, 6)
    first = start.follow(Y[:33], 6)
    second = first.end.follow(Y[33:], 6)
    for name in ("z", "G", "inputs"):
        pieces = np.concatenate([getattr(first, name), getattr(second, name)])
        np.testing.assert_allclose(pieces, getattr(whole, name), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(whole.inputs, TRACK.inputs)


def test_errors_grow_with_the_horizon_and_are_about_the_noise():
    errors = np.abs(Y[1:] - np.exp(TRACK.G[:-1, 0]) if COLUMN.log else Y[1:] - TRACK.G[:-1, 0])
    assert 0.1 < errors[30:].mean() < 1.0
    assert COLUMN.spread.shape == (6,)
    assert (COLUMN.spread > 0).all()


def test_effects_of_exogenous_inputs():
    E = RNG.normal(size=(80, 2))
    np.testing.assert_allclose(exogenous_effects(Y + E @ [5.0, -2.0], E, 8), [5, -2], atol=0.3)
    assert exogenous_effects(Y, NONE, 8).shape == (0,)


def test_inputs_are_cut_and_know_the_phase_of_the_season():
    inputs = network_inputs([replace(TRACK, end=replace(COLUMN, input_scale=np.full(3, 1e-9)))])
    assert inputs.shape == (80, 5)
    assert np.abs(inputs[:, :3]).max() == MAX_INPUT_DEVIATIONS
    np.testing.assert_allclose(inputs[:, 3], np.sin(2 * np.pi * T / 8), atol=1e-12)


def test_steps_of_known_neighbours():
    assert typical_step(np.array([0.0, 3.0, np.nan, 5.0, 1.0])) == np.sqrt((9 + 16) / 2)
    assert typical_step(np.array([1.0, np.nan])) == 0
