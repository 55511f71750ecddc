"""Pronunciation dictionaries: variants, spelling in a model's phones, and files that are wrong."""

import pytest

from echolearn.exceptions import CorpusError
from echolearn.speech.recognition import Lexicon, read_lexicon
from echolearn.speech.recognition._lexicon import restricted, spelled_in


def written(tmp_path, text):
    path = tmp_path / "words.dic"
    path.write_text(text)
    return path


def test_words_variants_and_comments(tmp_path):
    path = written(tmp_path, ";;; CMU\n# more\nA  AH0\nA(2)\tEY1\nREAD R EH D # past\nREAD R IY D\n\n(PAREN P\n")
    lexicon = read_lexicon(path)
    assert lexicon.pronunciations == {
        "A": (("AH0",), ("EY1",)),
        "READ": (("R", "EH", "D"), ("R", "IY", "D")),
        "(PAREN": (("P",),),
    }
    assert lexicon.words == ("(PAREN", "A", "READ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A AH\nB\n", "line 2: 'B' has no phones"),
        ("A(2) EY\n", "line 1: a further pronunciation of 'A'"),
        ("A AH\nA(2) AH\n", "line 2: 'A' has this pronunciation already"),
        ("\n# nothing\n", "holds no word"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path, text, said):
    path = written(tmp_path, text)
    with pytest.raises(CorpusError) as error:
        read_lexicon(path)
    assert said in str(error.value)
    assert str(path) in str(error.value)


def test_all_wrong_lines_are_listed(tmp_path):
    with pytest.raises(CorpusError) as error:
        read_lexicon(written(tmp_path, "A\nB\nC C\n"))
    assert len(error.value.problems) == 2


def test_a_file_of_other_bytes_is_refused(tmp_path):
    path = tmp_path / "words.dic"
    path.write_bytes(b"A AH\nB \xff\xfe\x00A")
    with pytest.raises(CorpusError, match="line 2: is not text"):
        read_lexicon(path)


def test_stress_and_case_are_dropped_where_the_model_lacks_them():
    lexicon = Lexicon({"A": (("AH0",), ("AH1",), ("EY1",))})
    assert spelled_in(lexicon, ["ah", "ey"]).pronunciations == {"A": (("ah",), ("ey",))}
    assert spelled_in(lexicon, ["AH0", "AH1", "EY"]).pronunciations["A"] == (("AH0",), ("AH1",), ("EY",))
    with pytest.raises(ValueError, match="does not know: EY1"):
        spelled_in(lexicon, ["ah"])


def test_some_words_only():
    lexicon = Lexicon({"A": (("ah",),), "B": (("b", "iy"),)})
    assert restricted(lexicon, ["B", "B"]).words == ("B",)
    with pytest.raises(ValueError, match="lacks 1 of 2 words: C"):
        restricted(lexicon, ["A", "C"])
