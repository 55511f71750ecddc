"""Reservoirs made of smaller ones, and taken apart again; reservoirs whose units run in both directions."""

import numpy as np
import pytest

import reference as ref
from echolearn.reservoir import Reservoir
from echolearn.reservoir._combination import bidirectional_reservoir, join_reservoirs
from echolearn.states import harvest


def test_subreservoir_undoes_join_reservoirs():
    rng = np.random.default_rng(1)
    parts = [Reservoir(**ref.network(rng, N=n, n_in=2), activation="tanh") for n in (3, 5, 2)]
    joined = join_reservoirs(parts)
    for i, part in enumerate(parts):
        back = joined.subreservoir(np.repeat([0, 1, 2], [3, 5, 2]) == i)
        np.testing.assert_array_equal(back.W_rec.toarray(), part.W_rec.toarray())
        np.testing.assert_array_equal(back.W, part.W)
        np.testing.assert_array_equal(back.leak, part.leak)


def test_joined_reservoirs_compute_the_states_of_each():
    rng = np.random.default_rng(2)
    parts = [Reservoir(**ref.network(rng, N=n, n_in=2), activation="tanh") for n in (3, 4)]
    x = rng.normal(size=(20, 2))
    np.testing.assert_allclose(harvest(join_reservoirs(parts), x), np.hstack([harvest(r, x) for r in parts]))


def test_backward_units_compute_the_states_of_the_reversed_sequence():
    forward, backward = (Reservoir.random(2, 5, bias_scaling=0.1, random_state=seed) for seed in (0, 1))
    x = np.random.default_rng(3).normal(size=(20, 2))
    both = bidirectional_reservoir(forward, backward)
    expected = np.hstack([harvest(forward, x), harvest(backward, x[::-1])[::-1]])
    np.testing.assert_allclose(harvest(both, x), expected)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"backward": [True, False]}, r"backward has shape \(2,\); expected 3 times True or False"),
        ({"backward": [0, 1, 1]}, r"backward has shape \(3,\); expected 3 times True or False"),
        ({"backward": [True, False, False], "W_rec": np.ones((3, 3))}, "connects forward and backward units"),
        ({"backward": [True, False, False], "W_fb": np.ones((3, 1))}, "Drop W_fb"),
    ],
)
def test_impossible_directions_are_refused(how, words):
    with pytest.raises(ValueError, match=words):
        Reservoir(**{"W": np.ones((2, 3)), "W_rec": np.eye(3), **how})


def test_no_backward_unit_is_one_direction():
    assert Reservoir(W=np.ones((2, 3)), W_rec=np.eye(3), backward=np.zeros(3, bool)).backward is None
