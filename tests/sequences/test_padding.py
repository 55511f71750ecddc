"""Padding: what counts as a step."""

import numpy as np
import pytest

from benchmarks.layouts import LABELS, RAGGED, masked, padded, padded_labels, steps_of
from echolearn import ESNClassifier, ESNRegressor
from echolearn.sequences.padding import check_steps, has_padding, steps_there, without_mask
from echolearn.sequences.validation import open_sequences

SMALL = {"hidden_units": 5, "connections": 2, "learn": "none", "readout": "ridge"}


def test_the_last_steps_that_lack_every_feature_are_padding():
    x = np.arange(12.0).reshape(6, 2)
    assert steps_there(x) == 6
    x[5] = np.nan
    assert steps_there(x) == 5
    x[4, 0] = np.nan  # a step with one feature is a step
    x[1] = np.nan  # and one before others is not padding
    assert steps_there(x) == 5
    x[:] = np.nan
    assert steps_there(x) == 0
    assert steps_there(np.ma.masked_array(np.ones((3, 2)), [[0, 0], [1, 1], [1, 1]])) == 1


def test_the_axis_of_padding():
    filled = padded(RAGGED)
    assert has_padding(filled, 1)
    assert not has_padding(filled, 2)
    assert has_padding(filled.swapaxes(1, 2), 2)
    assert not has_padding(np.stack([x[:20] for x in RAGGED]), 1)


def test_nan_inside_a_sequence_is_no_padding():
    filled = padded(RAGGED)
    filled[3, 5] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        open_sequences(filled)


def test_a_sequence_of_padding_is_refused():
    filled = padded(RAGGED)
    filled[3] = np.nan
    with pytest.raises(ValueError, match="sequence 3 is nothing but padding"):
        open_sequences(filled)


def test_answers_to_padded_data_are_masked():
    filled, labels = padded(RAGGED), padded_labels(RAGGED)
    esn = ESNClassifier(**SMALL).fit(filled, labels)
    answer = esn.predict(filled)
    assert answer.shape == labels.shape
    np.testing.assert_array_equal(~answer.mask, ~np.isnan(filled[:, :, 0]))
    plain = ESNClassifier(**SMALL).fit(RAGGED, steps_of(RAGGED))
    np.testing.assert_array_equal(answer.compressed(), np.concatenate(plain.predict(RAGGED)))
    assert esn.score(filled, labels) == plain.score(RAGGED, steps_of(RAGGED))
    assert esn.predict_proba(filled).shape == (*labels.shape, 2)


def test_values_behind_the_end_do_not_count():
    y = padded([x[:, :1] for x in RAGGED])[:, :, 0]
    esn = ESNRegressor(5, connections=2, learn="none").fit(masked(RAGGED), y)
    plain = ESNRegressor(5, connections=2, learn="none").fit(RAGGED, [x[:, 0] for x in RAGGED])
    np.testing.assert_array_equal(esn.readout_weights_, plain.readout_weights_)


def test_masked_tails_of_one_sequence_and_of_lists():
    x = np.ma.masked_array(np.ones((5, 2)), np.repeat([0, 0, 0, 1, 1], 2).reshape(5, 2))
    one = open_sequences(x)
    assert one.X[0].shape == (3, 2)
    assert one.in_given_form([np.arange(3)]).mask.tolist() == [False] * 3 + [True] * 2
    both = open_sequences([x, np.ones((4, 2))])
    assert [len(part) for part in both.X] == [3, 4]
    assert [len(part) for part in both.in_given_form([np.arange(3), np.arange(4)])] == [5, 4]


@pytest.mark.parametrize("lengths", [[1, 2], [1, 2, 0], [1, 2, 9], [1.0, 2.0, 3.0], "abc", [[1], [2, 3], [4]]])
def test_lengths_of_padded_sequences_are_checked(lengths):
    with pytest.raises(ValueError, match=r"lengths of a 3-D array .* whole numbers from 1 to 5"):
        check_steps(lengths, 3, 5)


def test_lengths_cut_padded_sequences():
    esn = ESNClassifier(**SMALL).fit(np.nan_to_num(padded(RAGGED)), LABELS, lengths=[len(x) for x in RAGGED])
    plain = ESNClassifier(**SMALL).fit(RAGGED, LABELS)
    np.testing.assert_array_equal(esn.readout_weights_, plain.readout_weights_)


def test_an_empty_mask_is_none():
    assert type(without_mask(np.ma.masked_array([1.0], [False]))) is np.ndarray
