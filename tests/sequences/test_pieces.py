"""Pieces of long sequences, and the steps before them that only settle the state."""

from dataclasses import replace

import numpy as np
import pytest

from echolearn.sequences.dataset import Dataset
from echolearn.sequences.pieces import Piece, cut_into_windows, cut_out
from numbered import numbered


def dataset(lengths):
    X = numbered(lengths)
    return Dataset(X, [x[:, :1] for x in X], None, True, np.dtype("float64"))


@pytest.mark.parametrize("washout", [0, 7])
def test_every_target_is_in_exactly_one_window(washout):
    data = dataset([95, 23, 40])
    cut = cut_into_windows(data, 10, 5, washout)
    counted = np.concatenate([y[w > 0, 0] for y, w in zip(cut.y, cut.weights, strict=True)])
    expected = np.concatenate([y[washout:, 0] for y in data.y])
    np.testing.assert_array_equal(np.sort(counted), np.sort(expected))
    for x, y, w in zip(cut.X, cut.y, cut.weights, strict=True):
        np.testing.assert_array_equal(x[:, :1], y)
        assert 8 <= w.sum() <= 12
        assert len(x) - w.sum() <= max(5, washout)


def test_weights_of_targets_are_kept():
    data = dataset([6])
    data = replace(data, weights=[np.arange(6.0)])
    cut = cut_out(data, [Piece(0, 1, 3, 5)])
    np.testing.assert_array_equal(cut.weights[0], [0, 0, 3, 4])


def test_pieces_that_count_from_their_start_need_no_weights():
    assert cut_out(dataset([6, 9]), [Piece(0, 0, 0, 4), Piece(1, 2, 2, 9)]).weights is None
