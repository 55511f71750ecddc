"""Which sequences, or which of their last steps, are held out."""

import numpy as np

import toys
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.split import hold_out

X, VALUES = toys.echoes(sequences=8)


def split(data, fraction, washout, rng):
    found = hold_out(data, fraction, washout, rng)
    return found.train, found.held_out


def test_splits():
    data = Dataset(X, VALUES, None, True, np.dtype("float32"))
    rng = np.random.default_rng(0)
    train, held = split(data, 0.25, 0, rng)
    assert (len(train.X), len(held.X)) == (6, 2)
    assert {id(x) for x in train.X} | {id(x) for x in held.X} == {id(x) for x in X}
    assert split(data, 0.0, 0, rng) == (data, None)
    for fraction in (0.5, 0.95, 0.999):
        train, held = split(data, fraction, 0, rng)
        assert train.X
        assert held.X
    long = Dataset([np.ones((100, 1))] * 2, [np.ones((100, 1))] * 2, None, True, np.dtype("float32"))
    train, held = split(long, 0.1, 0, rng)
    assert [len(x) for x in train.X] == [90, 90]
    assert [len(x) for x in held.X] == [10, 10]
    count = Dataset([np.arange(100.0)[:, None]], [np.arange(100.0)], None, True, np.dtype("float32"))
    train, held = split(count, 0.3, 20, rng)
    np.testing.assert_array_equal(train.X[0][-1], 69)
    np.testing.assert_array_equal(held.X[0][:, 0], np.arange(50, 100))  # its washout lies before the cut
    np.testing.assert_array_equal(held.y[0], np.arange(50, 100))
    for fraction in (0.05, 0.999):  # too little on one side of the cut: nothing is held out
        train, held = split(long, fraction, 20, rng)
        assert train is long
        assert held is None
