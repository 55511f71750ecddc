"""Errors of closed loops as functions of the learned weights, and the valid times by which they are chosen."""

from __future__ import annotations

import numpy as np
import pytest

from echolearn import Reservoir
from echolearn.gradients.closed_loop import Series, factored
from echolearn.sequences.batch import pack
from echolearn.states.run import run
from echolearn.training.objectives.valid_time import LOOP_STARTS, HeldOutLoops, best_ridge, loop_objective
from echolearn.training.optimizers import Adam, LearnedWeights

RESERVOIR = Reservoir.random(2, 12, connections=4, input_scaling=0.5, bias_scaling=0.3, leak=(0.3, 0.9), random_state=0)


def circle(steps):
    """Return a series that turns by 0.4 at every step."""
    t = 0.4 * np.arange(steps + 1)
    z = np.stack([np.sin(t), np.cos(t)], axis=1)
    return Series(pack([z[:-1]], np.float64), z[1:], 10, False)


@pytest.mark.parametrize("k", [1, 4])
def test_the_gradient_is_that_of_the_learned_weights(k):
    learned = LearnedWeights(RESERVOIR, "both", True, Adam())
    start = {name: value.copy() for name, value in learned.weights.items()}
    objective = loop_objective(learned, [circle(40)], 1e-3, k)
    _, gradient = objective(start)
    assert set(gradient) == {"W", "W_rec", "bias", "leak"}
    for name in start:

        def error(step, name=name):
            moved = {**start, name: start[name] + step * np.sign(gradient[name])}
            return objective(moved)[0]

        slope = (error(1e-6) - error(-1e-6)) / 2e-6
        assert slope == pytest.approx(np.abs(gradient[name]).sum(), rel=1e-5)


def test_loops_start_in_the_first_halves_of_the_held_out_ends():
    series = [circle(200), circle(60)]
    loops = HeldOutLoops.of(series, [150, 0])
    assert loops.starts[0].min() >= 150
    assert loops.starts[0].max() < 175
    assert loops.starts[1].min() == 1  # a loop needs a state before it
    assert loops.starts[1].max() < 30
    assert sum(map(len, loops.starts)) == pytest.approx(LOOP_STARTS, abs=2)


def test_the_ridge_whose_loops_stay_longest_with_the_series_is_chosen():
    series = [circle(200)]
    loops = HeldOutLoops.of(series, [150])
    ridges = np.array([1e-10, 1e3])
    (steps, _), ridge = best_ridge(RESERVOIR, series, ridges, loops)
    assert ridge == 1e-10
    assert steps == np.mean(200 - loops.starts[0])  # to the end
    factors = factored(series, [run(RESERVOIR, s.batch).H for s in series])
    assert loops.score(RESERVOIR, factors.readout(1e3 * factors.square))[0] < steps
    assert best_ridge(RESERVOIR, series, ridges, None)[1] == 1e-10
