"""What all series have in common: discarded steps, seeds, refusals."""

import numpy as np
import pytest

from echolearn import datasets


@pytest.mark.parametrize("name", [n for n in datasets.__all__ if n not in ("narma", "mso", "sunspots")])
def test_discarded_steps_are_the_first_ones(name):
    generate = getattr(datasets, name)
    whole, late = generate(30, discard=0), generate(20, discard=10)
    np.testing.assert_array_equal(late, whole[10:])
    assert late.dtype == np.float64
    assert late.flags.c_contiguous


def test_seeds_decide_where_numbers_are_drawn():
    for generate in (datasets.narma, datasets.kuramoto_sivashinsky, datasets.lorenz_96):
        a, b, c = (np.ravel(generate(10, discard=20, random_state=seed)) for seed in (0, 0, 1))
        np.testing.assert_array_equal(a, b)
        assert not np.allclose(a, c)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: datasets.mackey_glass(0), "steps=0; expected a whole number >= 1"),
        (lambda: datasets.mackey_glass(10, tau=-1), "tau=-1; expected a number > 0"),
        (lambda: datasets.mackey_glass(10, tau=1e-9), "more than 10,000,000 steps of the solver"),
        (lambda: datasets.mackey_glass(10, start=np.nan), "finite"),
        (lambda: datasets.lorenz(2.5), "steps=2.5"),
        (lambda: datasets.lorenz(10, dt="fast"), "dt='fast'"),
        (lambda: datasets.lorenz(10, start=(1, 2)), "expected 3 finite numbers"),
        (lambda: datasets.lorenz(10, dt=1e9), "more than 10,000,000 steps of the solver"),
        (lambda: datasets.rossler(500, start=(50, 50, 50), discard=0), "rossler diverged"),
        (lambda: datasets.henon(10, discard=-1), "discard=-1"),
        (lambda: datasets.henon(100, start=(3, 3)), "henon diverged after 3 steps"),
        (lambda: datasets.kuramoto_sivashinsky(10, points=2), "points=2"),
        (lambda: datasets.kuramoto_sivashinsky(10, length=0), "length=0"),
        (lambda: datasets.narma(10, 7), r"order=7; expected one of \[10, 30\]"),
        (lambda: datasets.mso(10, 13), "expected at most 12"),
    ],
)
def test_bad_input_is_explained(call, words):
    with pytest.raises(ValueError, match=words):
        call()
