"""Lattices as files: what is written is read, and what is damaged is refused with its line."""

import re
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from echolearn.speech.errors import CorpusError
from echolearn.speech.recognition.lattices import build_lattice
from echolearn.speech.recognition.slf import read_slf, write_slf
from speech.recognition.test_decoder import word_decoder
from speech.recognition.test_lattices import random_case


@pytest.mark.parametrize("seed", range(8))
def test_what_is_written_is_read(tmp_path, seed):
    search, frames, _ = random_case(seed)
    lattice = build_lattice(search, frames, penalty=0.2, beam=np.inf)
    write_slf(tmp_path / "u.slf", lattice, utterance='the "first" one')
    again = read_slf(tmp_path / "u.slf")
    assert again.nbest(100) == lattice.nbest(100)
    assert again.best() == replace(lattice, decoded=None).best()
    assert (again.language_weight, again.penalty) == (1.3, 0.2)
    np.testing.assert_allclose(np.sort(again.posteriors(0.5)), np.sort(lattice.posteriors(0.5)))


def test_frames_and_words_of_a_decoder_come_back(tmp_path):
    decoder = word_decoder(2)
    P = np.random.default_rng(0).dirichlet(np.full(len(decoder.priors), 0.2), size=50)
    lattice = decoder.lattice(P, beam=6.0)
    write_slf(tmp_path / "u.slf", lattice)
    again = read_slf(tmp_path / "u.slf")
    assert again.best() == decoder.decode(P)
    assert again.confidences(again.best(), 0.3) == lattice.confidences(lattice.best(), 0.3)


EXAMPLE = """\
# as other tools write it: words on the nodes, the end first, decimal logarithms
VERSION=1.0
UTTERANCE=u1
base=10 lmscale=2.0 wdpenalty=-0.5
N=4 L=4
I=0 t=0.30 W=!SENT_END
I=1 t=0.00 W=!SENT_START
I=2 t=0.10 W=YES v=1
I=3 t=0.10 W=NO
J=0 S=1 E=2 a=-1.0 l=-0.5
J=1 S=1 E=3 a=-2.0 l=-0.1
J=2 S=2 E=0 a=-1.0 l=-0.2
J=3 S=3 E=0 a=-1.5 l=-0.3
"""


def test_a_lattice_of_another_tool(tmp_path):
    (tmp_path / "u.lat").write_text(EXAMPLE)
    found = read_slf(tmp_path / "u.lat").nbest(5)
    assert [h.tokens for h in found] == [("YES",), ("NO",)]
    np.testing.assert_allclose([h.score for h in found], np.log(10) * np.array([-2 - 1.4 - 0.5, -3.5 - 0.8 - 0.5]))


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("VERSION=1.0\n", "", 2, "expected VERSION"),
        ("N=4 L=4", "N=4", 5, "there is no L="),
        ("N=4 L=4\n", "", 5, "expected N= and L="),
        ("N=4 L=4", "N=4 L=-4", 5, "expected a number from 0"),
        ("N=4 L=4", "N=5 L=4", None, "has 4 of 5 nodes; I=4 is missing"),
        ("N=4 L=4", "N=4 L=6", None, "has 4 of 6 links; J=4 is missing"),
        ("I=3 t=0.10 W=NO", "I=2 t=0.10 W=NO", 9, "stands on line 8, too"),
        ("I=3 t=0.10", "I=3 t=soon", 9, "expected a finite number"),
        ("a=-2.0", "a=nan", 11, "expected a finite number"),
        ("a=-2.0", "a=-2.0 a=-3.0", 11, "twice"),
        ("J=1 S=1 E=3", "J=1 S=1 E=4", 11, "from 0 to 3"),
        ("J=1 S=1 E=3", "J=1 E=3", 11, "there is no S="),
        ("J=1 S=1 E=3", "J=1 S=1 3", 11, "expected fields"),
        ("J=1 S=1 E=3", "J=1 S=0 E=3", 11, "circle"),
        ("I=2 t=0.10", "I=2 t=0.40", 12, "back in time"),
        ("J=1 S=1 E=3", "J=1 S=1 E=2", None, "both start"),
        ("base=10", "base=1", 4, "base of the logarithms"),
        ("L=4", "L=4 start=2", 5, "the links start at node 1"),
    ],
)
def test_damaged_lattices_are_refused_with_their_line(tmp_path, old, new, line, what):
    path = tmp_path / "u.lat"
    assert old in EXAMPLE
    path.write_text(EXAMPLE.replace(old, new, 1))
    with pytest.raises(CorpusError, match=what) as caught:
        read_slf(path)
    assert str(path) in str(caught.value)
    if line is not None:
        assert f"line {line}:" in str(caught.value)


def test_no_damaged_byte_is_a_crash(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "u.lat"
    original = EXAMPLE.encode()
    for _ in range(400):
        content = bytearray(original)
        for place in rng.integers(len(content), size=rng.integers(1, 4)):
            content[place] = rng.integers(256) if rng.random() < 0.5 else ord(str(rng.integers(10)))
        path.write_bytes(bytes(content))
        with suppress(CorpusError):  # and no other error
            read_slf(path).nbest(3)


def test_a_token_that_cannot_be_written_is_refused(tmp_path):
    search, frames, _ = random_case(1)
    lattice = replace(build_lattice(search, frames, penalty=0.2, beam=np.inf), tokens=("two words", "!NULL", "c"))
    with pytest.raises(ValueError, match=re.escape("cannot hold the token")):
        write_slf(tmp_path / "u.slf", lattice)
    assert not (tmp_path / "u.slf").exists()


def test_a_file_that_is_not_there_is_reported(tmp_path):
    with pytest.raises(CorpusError, match="can be read"):
        read_slf(tmp_path / "none.slf")
