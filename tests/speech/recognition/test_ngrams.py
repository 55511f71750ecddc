"""Language models: probabilities add up to one, counts are Witten and Bell's, files give the same model back."""

import math
from itertools import product

import numpy as np
import pytest

from echolearn.exceptions import CorpusError
from echolearn.speech.recognition import estimate, read_arpa, write_arpa
from echolearn.speech.recognition._decoder import Decoder, DecodingWeights
from echolearn.speech.recognition._graph import word_graph
from echolearn.speech.recognition._ngrams import END, START, word_list
from speech.recognition.test_decoder import LEXICON, NAMES, models, sure

TEXTS = [["y", "eh", "s"], ["n", "ow"], ["y", "eh", "s", "n", "ow"], ["ow"]]


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_probabilities_after_every_history_add_up_to_one(order):
    model = estimate(TEXTS, order=order, vocabulary=["z"])
    outcomes = [*model.vocabulary, END]
    for history in [(), (START,), ("y",), ("z",), ("y", "eh"), (START, "y", "eh"), ("z", "z", "z")]:
        assert sum(math.exp(model.score(history, token)) for token in outcomes) == pytest.approx(1)


def test_a_bigram_by_hand():
    model = estimate([["a", "b"], ["a", "a"]], order=2)
    # outcomes: a 3 times, b once, the end twice; three kinds in six, interpolated with 1/3 each
    unigram = {"a": (3 + 3 / 3) / 9, "b": (1 + 3 / 3) / 9, END: (2 + 3 / 3) / 9}
    for token, p in unigram.items():
        assert math.exp(model.score((), token)) == pytest.approx(p)
    # after a: b once, a once, the end once; three kinds
    assert math.exp(model.score(("a",), "b")) == pytest.approx((1 + 3 * unigram["b"]) / 6)
    # after b only the end was seen: others by back-off
    assert math.exp(model.score(("b",), "a")) == pytest.approx(1 / 2 * unigram["a"])
    expected = model.score((START,), "a") + model.score(("a",), "b") + model.score(("b",), END)
    assert model.log_probability(["a", "b"]) == pytest.approx(expected)


def test_only_as_many_tokens_count_as_the_order_says():
    model = estimate(TEXTS, order=2)
    assert model.score(("y", "eh", "n"), "ow") == model.score(("n",), "ow")


def test_a_longer_model_knows_longer_patterns():
    texts = [list("abcabd"), list("abcabd"), list("abcabd")]
    assert estimate(texts, order=3).log_probability(texts[0]) > estimate(texts, order=2).log_probability(texts[0])


def test_a_file_gives_the_model_back(tmp_path):
    model = estimate(TEXTS, order=3)
    write_arpa(tmp_path / "m.arpa", model)
    again = read_arpa(tmp_path / "m.arpa")
    assert again.order == 3
    assert again.probability.keys() == model.probability.keys()
    for gram, p in model.probability.items():
        assert again.probability[gram] == pytest.approx(p, abs=1e-8)
    for gram, b in model.backoff.items():
        assert again.backoff[gram] == pytest.approx(b, abs=1e-8)


GOOD = (
    "\\data\\\nngram 1=3\nngram 2=1\n\n\\1-grams:\n-99\t<s>\t-0.3\n-0.5\ta\t-0.2\n-0.4\t</s>\n\n"
    "\\2-grams:\n-0.1\ta a\n\n\\end\\\n"
)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("\\end\\\n", ""), "the file ends here"),
        (("ngram 2=1", "ngram 2=2"), "announces 2 2-grams and holds 1"),
        (("-0.1\ta a", "0.1\ta a"), "line 11: the logarithm 0.1 stands for a probability above 1"),
        (("-0.1\ta a", "-0.1\tb a"), "the history 'b'"),
        (("-0.1\ta a", "-0.1\ta b"), "the token 'b'"),
        (("-0.1\ta a", "x\ta a"), "'x' is not a logarithm"),
        (("-0.1\ta a", "nan\ta a"), "'nan' is not a logarithm"),
        (("-0.1\ta a", "-0.1\ta"), "2 fields"),
        (("-0.1\ta a", "-0.1\ta a\n-0.1\ta a"), "listed twice"),
        (("ngram 2=1", "ngram 3=1"), "expected the number of 2-grams"),
        (("\\2-grams:", "\\3-grams:"), "expected an entry"),
        (("\\1-grams:", "hello"), "expected 'ngram N=COUNT'"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path, change, said):
    path = tmp_path / "m.arpa"
    path.write_text(GOOD)
    assert read_arpa(path).score(("a",), "a") == pytest.approx(-0.1 * math.log(10))
    assert change[0] in GOOD
    path.write_text(GOOD.replace(*change))
    with pytest.raises(CorpusError, match="line") as error:
        read_arpa(path)
    assert said in str(error.value)


def test_a_token_with_a_blank_cannot_be_written(tmp_path):
    with pytest.raises(ValueError, match="contains a blank"):
        write_arpa(tmp_path / "m.arpa", estimate([["a b"]]))


@pytest.mark.parametrize(
    ("texts", "order", "said"), [([], 2, "no utterance"), ([["a"]], 0, "order is 0"), ([["<s>"]], 2, "marks")]
)
def test_what_cannot_be_estimated(texts, order, said):
    with pytest.raises(ValueError, match=said):
        estimate(texts, order=order)


WORDS = ["NO", "YES", "KNOWN"]


def decoder(graph):
    return Decoder(graph, np.full(len(NAMES), 1 / len(NAMES)), DecodingWeights(beam=np.inf, language_weight=1.0))


def recognised(graph, spoken):
    return [token.name for token in decoder(graph).decode(sure(spoken))]


def test_all_sequences_of_a_list_have_a_probability_of_one_together():
    model = word_list(["A", "B"])
    total = sum(math.exp(model.log_probability(words)) for n in range(10) for words in product("AB", repeat=n))
    assert total == pytest.approx(1 - 0.8**10)
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


def test_what_is_recognised_with_a_list():
    spoken = ["sil", "y", "eh", "s", "n", "ow", "sil", "n", "ow", "n"]
    graph = word_graph(models(), LEXICON, word_list(WORDS), silence="sil")
    assert recognised(graph, spoken) == ["YES", "NO", "KNOWN"]
    graph = word_graph(models(), LEXICON, word_list(["YES", "NO"]), silence="sil")
    assert set(recognised(graph, spoken)) <= {"YES", "NO"}
    graph = word_graph(models(), LEXICON, word_list(WORDS, repeat=False), silence="sil")
    assert len(recognised(graph, spoken)) == 1
    assert recognised(graph, ["sil", "n", "ow", "n"]) == ["KNOWN"]


def test_wrong_lists_are_refused_with_the_words():
    with pytest.raises(ValueError, match="is empty"):
        word_list([])
    with pytest.raises(ValueError, match="contains </s>"):
        word_list(["A", "</s>"])
