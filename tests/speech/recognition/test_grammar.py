"""Grammars of word lists: what may be said, and what may not."""

import math
from itertools import product

import numpy as np
import pytest

from echolearn.speech.recognition.arpa import read_arpa, write_arpa
from echolearn.speech.recognition.decoder import Decoder, DecodingWeights
from echolearn.speech.recognition.grammar import word_list
from echolearn.speech.recognition.graph import word_graph
from speech.recognition.test_decoder import LEXICON, NAMES, models, sure

WORDS = ["NO", "YES", "KNOWN"]


def decoder(graph):
    return Decoder(graph, np.full(len(NAMES), 1 / len(NAMES)), DecodingWeights(beam=np.inf, language_weight=1.0))


def heard(graph, spoken):
    return [token.name for token in decoder(graph).decode(sure(spoken))]


def test_all_sequences_of_a_list_have_a_probability_of_one_together():
    model = word_list(["A", "B"], end_probability=0.5)
    total = sum(math.exp(model.log_probability(words)) for n in range(10) for words in product("AB", repeat=n))
    assert total == pytest.approx(1 - 0.5**10)
    assert model.log_probability(["A", "C"]) == -math.inf
    assert model.log_probability(["A", "A"]) == model.log_probability(["A", "B"])


def test_exactly_one_word():
    model = word_list(WORDS, repeat=False)
    for word in WORDS:
        assert math.exp(model.log_probability([word])) == pytest.approx(1 / 3)
    for words in ([], ["NO", "YES"], ["OTHER"]):
        assert model.log_probability(words) == -math.inf


def test_a_list_read_from_an_arpa_file_is_the_same_model(tmp_path):
    for repeat in (True, False):
        model = word_list(WORDS, repeat=repeat)
        write_arpa(tmp_path / "list.arpa", model)
        again = read_arpa(tmp_path / "list.arpa")
        for words in ([], ["NO"], ["NO", "YES"]):
            expected = model.log_probability(words)
            found = again.log_probability(words)
            assert found == expected or found == pytest.approx(expected, abs=1e-4)


def test_what_is_heard_with_a_list():
    spoken = ["sil", "y", "eh", "s", "n", "ow", "sil", "n", "ow", "n"]
    graph = word_graph(models(), LEXICON, word_list(WORDS, lexicon=LEXICON), silence="sil")
    assert heard(graph, spoken) == ["YES", "NO", "KNOWN"]
    graph = word_graph(models(), LEXICON, word_list(["YES", "NO"]), silence="sil")
    assert set(heard(graph, spoken)) <= {"YES", "NO"}
    graph = word_graph(models(), LEXICON, word_list(WORDS, repeat=False), silence="sil")
    assert len(heard(graph, spoken)) == 1
    assert heard(graph, ["sil", "n", "ow", "n"]) == ["KNOWN"]


def test_one_word_needs_no_tree_that_nothing_reaches():
    once = word_graph(models(), LEXICON, word_list(WORDS, repeat=False))
    phones = sum(len(one) for variants in LEXICON.pronunciations.values() for one in variants)
    assert once.emitting == phones * models()[0].leaving.size


def test_wrong_lists_are_refused_with_the_words():
    with pytest.raises(ValueError, match="lacks 2 of 3 words: MAYBE, PERHAPS"):
        word_list(["NO", "MAYBE", "PERHAPS"], lexicon=LEXICON)
    with pytest.raises(ValueError, match="is empty"):
        word_list([])
    with pytest.raises(ValueError, match="contains </s>"):
        word_list(["A", "</s>"])
    with pytest.raises(ValueError, match="end_probability is 1"):
        word_list(["A"], end_probability=1)
