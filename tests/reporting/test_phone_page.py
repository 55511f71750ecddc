"""Tests of the report on phones; tests/experiments/test_phones.py has those of a page with its figures."""

from __future__ import annotations

import base64
import io
import re
import wave

import numpy as np

from echolearn.reporting.phone_page import alignment_block, audio_block, phone_page
from samplephones import table


def test_the_page_has_every_system_and_bars_as_long_as_their_errors() -> None:
    page = phone_page(table(), [])
    assert "<b>30.0</b>" in page
    assert "25.0 to 35.0" in page
    assert re.findall(r"--w:([0-9.]+)", page) == ["1.000", "0.800"]
    assert "echolearn[report]" in page  # no figures


def test_the_page_escapes_what_it_is_given() -> None:
    page = phone_page(table(synthetic=False, corpus="wav:<script>x</script>", notes=["<b>"]), [])
    assert "<script>" not in page
    assert "<li>&lt;b&gt;</li>" in page


def test_a_page_of_an_unfinished_table_is_possible() -> None:
    assert "From speech to phones" in phone_page(table(rows=[], comparisons=[]), [])


def test_the_sound_is_the_one_that_was_given() -> None:
    samples = np.array([0.0, 1.4, -32768.0, 40_000.0, -40_000.0])
    block = audio_block(samples, 16_000)
    encoded = re.findall(r'src="data:audio/wav;base64,([^"]+)"', block)[0]
    with wave.open(io.BytesIO(base64.b64decode(encoded))) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16_000, 1, 2)
        found = np.frombuffer(file.readframes(9), "<i2")
    assert found.tolist() == [0, 1, -32768, 32767, -32768]


def test_aligned_phones_have_a_letter_under_every_error() -> None:
    block = alignment_block([("aa", "aa"), ("b", "<p>"), ("t", None), (None, "s")])
    rows = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in block.split("</tr>")[:3]]
    assert rows == [["aa", "b", "t", "·"], ["aa", "&lt;p&gt;", "·", "s"], ["", "S", "D", "I"]]
    assert block.count("class=e") == 9
