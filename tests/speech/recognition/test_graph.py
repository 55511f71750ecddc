"""Graphs of words: how large they are, and what they refuse."""

import pytest

from echolearn.speech.recognition import estimate
from echolearn.speech.recognition._graph import word_graph
from echolearn.speech.recognition._ngrams import word_list
from speech.recognition.test_decoder import LEXICON, models


def test_words_without_a_language_model_are_reported():
    with pytest.raises(ValueError, match="same case"):
        word_graph(models(), LEXICON, estimate([["no"]]))


def test_a_bigram_has_one_copy_of_each_word_beside_the_tree_of_all():
    few = word_graph(models(), LEXICON, estimate([["NO", "NO"], ["YES"], ["KNOWN"]], order=2))
    many = word_graph(models(), LEXICON, estimate([[a, b, a] for a in LEXICON.words for b in LEXICON.words], order=2))
    assert few.emitting == many.emitting
    assert len(many.target) > len(few.target)


def test_one_word_needs_no_tree_that_nothing_reaches():
    once = word_graph(models(), LEXICON, word_list(["NO", "YES", "KNOWN"], repeat=False))
    phones = sum(len(one) for variants in LEXICON.pronunciations.values() for one in variants)
    assert once.emitting == phones * models()[0].leaving.size
