"""Answers to several sequences are a list; taken for one array, they say what to do."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score

import toys
from echolearn import ESNClassifier
from echolearn.sequences.answers import AnswerList

X, LABELS = toys.labels()
RAGGED = AnswerList([np.arange(3), np.arange(4)])
EVEN = AnswerList([np.arange(3), np.arange(3)])


def test_it_is_a_list():
    assert isinstance(ESNClassifier(**toys.FAST).fit(X, LABELS).predict(X), list)
    assert RAGGED[:1] == [RAGGED[0]]
    assert repr(RAGGED) == repr(list(RAGGED))
    for twin in (copy.deepcopy(RAGGED), pickle.loads(pickle.dumps(RAGGED))):
        assert [a.tolist() for a in twin] == [[0, 1, 2], [0, 1, 2, 3]]
    np.testing.assert_array_equal(np.concatenate(RAGGED), [0, 1, 2, 0, 1, 2, 3])


def test_arrays_of_it_are_those_of_a_list():
    np.testing.assert_array_equal(np.array(EVEN), [[0, 1, 2], [0, 1, 2]])
    assert np.asarray(EVEN, np.float32).dtype == np.float32
    assert np.stack(EVEN).shape == (2, 3)
    assert np.array(RAGGED, dtype=object).shape == (2,)


def test_ragged_answers_lead_to_the_line_that_works():
    esn = ESNClassifier(**toys.FAST, readout="ridge")
    line = r"scoring=echolearn\.metrics\.scorer\('f1_macro'\)"
    for name in ("f1_macro", "accuracy", "recall_macro"):  # others refuse the true labels before they see answers
        with pytest.raises(TypeError, match=line):
            cross_val_score(esn, X, LABELS, cv=KFold(2), scoring=name, error_score="raise")
    with pytest.raises(TypeError, match=line):
        cross_val_predict(esn, X, LABELS, cv=KFold(2))
    answers = esn.fit(X, LABELS).predict(X)
    for metric in (accuracy_score, f1_score):
        with pytest.raises(TypeError, match=line):
            metric(LABELS, answers)
