"""TextGrids: what Praat and the Montreal Forced Aligner write is understood, what is damaged is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echolearn.exceptions import CorpusError
from echolearn.speech.formats import (
    Recognised,
    TimedToken,
    read_textgrid,
    write_textgrid,
)
from echolearn.speech.formats._textgrid import read_tiers, textgrid_of
from reliability.damaged_speech import short_form
from speechresults import quiet, tokens

LONG = '''File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 1.5
tiers? <exists>
size = 3
item []:
    item [1]:
        class = "IntervalTier"
        name = "ann - words"
        xmin = 0
        xmax = 1.5
        intervals: size = 2
        intervals [1]:
            xmin = 0
            xmax = 0.5
            text = ""
        intervals [2]:
            xmin = 0.5
            xmax = 1.5
            text = "say"""
    item [2]:
        class = "TextTier"
        name = "bell"
        xmin = 0
        xmax = 1.5
        points: size = 1
        points [1]:
            number = 1.25
            mark = "ding"
    item [3]:
        class = "IntervalTier"
        name = "ann - phones"
        xmin = 0
        xmax = 1.5
        intervals: size = 3
        intervals [1]:
            xmin = 0
            xmax = 0.5
            text = "sil"
        intervals [2]:
            xmin = 0.5
            xmax = 1
            text = "S"
        intervals [3]:
            xmin = 1
            xmax = 1.5
            text = "EY1"
'''.replace("\n", " \n")  # as Praat writes it


def read(tmp_path: Path, text: str, **options: object) -> Recognised:
    """Write a file and read it."""
    path = tmp_path / "u1.TextGrid"
    path.write_text(text, encoding="utf-8")
    return read_textgrid(path, **options)


def test_tiers_stress_and_silences_of_an_aligner_are_understood(tmp_path: Path) -> None:
    found = read(tmp_path, LONG)
    assert found.utterance == "u1"
    assert found.tokens == (TimedToken('say"', 0.5, 1.5),)
    assert found.phones == (TimedToken("S", 0.5, 1.0), TimedToken("EY1", 1.0, 1.5))
    assert found.seconds == 1.5
    assert [t.name for t in read(tmp_path, LONG, drop_stress=True, silences=True).phones] == ["sil", "S", "EY"]
    assert [t.name for t in read(tmp_path, LONG, level="phones", utterance="x").tokens] == ["S", "EY1"]
    assert read(tmp_path, LONG, speaker="Ann").tokens == found.tokens
    for silence in ("sp", "SPN", " "):
        assert len(read(tmp_path, LONG.replace('"S"', f'"{silence}"')).phones) == 1


def test_the_speaker_must_be_named_if_there_are_two(tmp_path: Path) -> None:
    two = LONG.replace('"ann - phones"', '"bob - words"')
    with pytest.raises(CorpusError, match="several tiers fit 'words': 'ann - words', 'bob - words'"):
        read(tmp_path, two)
    assert [t.name for t in read(tmp_path, two, speaker="bob", drop_stress=True).tokens] == ["S", "EY1"]
    with pytest.raises(CorpusError, match=r"has interval tiers \['ann - words'.*expected words or phones"):
        read(tmp_path, two, speaker="cid")


def test_the_short_form_with_its_own_header_is_read(tmp_path: Path) -> None:
    text = (
        'File type = "ooTextFile short"\n"TextGrid"\n\n0\n1\n<exists>\n1\n"IntervalTier"\n"word"\n0\n1\n1\n0\n1\n"a"\n'
    )
    assert read(tmp_path, text).tokens == (TimedToken("a", 0.0, 1.0),)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("xmax = 1 ", "xmax = 1,2 ", "line 44: '1,2' is no time"),
        ("xmax = 1 ", "xmax = 1.2 ", "line 47: the start of the interval is 1 s, the end of the one before 1.2"),
        ("xmax = 1 ", "xmax = nan ", "line 44: found 'xmax= nan'"),
        ("xmax = 1 ", "xmax = 1e999 ", "line 44: '1e999' is no time"),
        ("xmax = 1 ", "xmax = 0.5 ", "line 44: ends at 0.5 s and starts at 0.5 s"),
        ("xmax = 1 ", "xmin = 1 ", "line 44: found 'xmin'"),
        ("size = 3 \nitem", "size = 2 \nitem", "line 32: the file continues after its 2 tiers"),
        ("size = 3 \nitem", "size = 4 \nitem", "line 49: the file ends here"),
        ("intervals: size = 2", "intervals: size = 3", "line 23: found 'item'"),
        ("intervals: size = 2", "intervals: size = 1", "line 18: the end of the last interval is 0.5 s"),
        ("intervals: size = 2", "intervals: size = 0", "no intervals"),
        ("intervals: size = 2", "intervals: size = -2", "'-2' is no number of tiers"),
        ("intervals [2]:", "intervals [3]:", "line 19: found"),
        ('text = "S"', 'text = "S', "line 45: found"),
        ('text = "S"', 'text = "S T"', "line 45: the text is 'S T'"),
        ('text = "S"', "", "line 46: found"),
        ("ooTextFile", "ooBinaryFile", "line 1: the file type is 'ooBinaryFile'"),
        ('class = "TextGrid"', 'class = "Sound"', "line 2: the file holds another object"),
        ("<exists>", "<absent>", "line 6: the TextGrid has no tiers"),
        ('"TextTier"', '"PitchTier"', "line 24: the tier is of the kind 'PitchTier'"),
        ("xmax = 1.5 \ntiers", "xmax = 1.6 \ntiers", "line 13: the end of the tier is 1.5 s, the end of the TextGrid"),
        ("number = 1.25", "number = x", "line 30: found"),
        ("xmin = 0 \nxmax = 1.5 \ntiers", "0 \nxmax = 1.5 \ntiers", "line 5: found"),
    ],
)
def test_damaged_grids_are_refused_with_the_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in LONG
    with pytest.raises(CorpusError, match=message):
        read(tmp_path, LONG.replace(old, new, 1))


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    text = LONG.rstrip()
    for end in range(0, len(text), 7):
        with pytest.raises(CorpusError, match="line "):
            read(tmp_path, text[:end])


def test_a_grid_without_interval_tiers_or_of_another_level_is_refused(tmp_path: Path) -> None:
    head = 'File type = "ooTextFile"\nObject class = "TextGrid"\n0 1 <exists> 1\n'
    with pytest.raises(CorpusError, match="no interval tier"):
        read(tmp_path, head + '"TextTier" "bell" 0 1 0')
    with pytest.raises(ValueError, match="level is 'state'"):
        read(tmp_path, LONG, level="state")
    assert [t.name for t in read_tiers(tmp_path / "u1.TextGrid")] == ["ann - words", "ann - phones"]


def test_what_a_grid_cannot_hold_is_not_written(tmp_path: Path) -> None:
    short = Recognised("u", (TimedToken("a", 0.1, 0.1),))
    for result, options, message in (
        (short, {}, "has no length"),
        (Recognised("u", ()), {}, "ends at 0 seconds"),
        (Recognised("u", (), (TimedToken("a", 0.1, 0.2),)), {"level": "phones"}, "without further phones"),
        (short, {"level": "states"}, "level is 'states'"),
    ):
        with pytest.raises(ValueError, match=message):
            write_textgrid(tmp_path / "u.TextGrid", result, **options)
    assert not list(tmp_path.iterdir())


def test_tokens_that_overlap_a_little_meet_where_the_first_ends() -> None:
    result = Recognised("u", (TimedToken("a", 0.0, 0.5), TimedToken("b", 0.495, 1.0)))
    values = [line.split(" = ")[1] for line in textgrid_of(result).splitlines() if " = " in line]
    assert values[-6:] == ["0.00", "0.50", '"a"', "0.50", "1.00", '"b"']


@quiet
@given(tokens(False).filter(bool), tokens(False), tokens(False), st.booleans())
def test_textgrid_is_read_as_it_was_written(
    tmp_path: Path,
    words: tuple[TimedToken, ...],
    phones: tuple[TimedToken, ...],
    states: tuple[TimedToken, ...],
    short: bool,
) -> None:
    end = round(max(t.end for t in (*words, *phones, *states)) + 0.25, 7)
    result = Recognised("a", words, phones, states=states, seconds=end)
    write_textgrid(tmp_path / "a.TextGrid", result)
    if short:
        (tmp_path / "a.TextGrid").write_text(short_form((tmp_path / "a.TextGrid").read_text("utf-8")), "utf-8")
    assert read_textgrid(tmp_path / "a.TextGrid", silences=True) == result
    utf16 = (tmp_path / "a.TextGrid").read_text(encoding="utf-8").encode("utf-16")
    (tmp_path / "a.TextGrid").write_bytes(utf16)
    assert read_textgrid(tmp_path / "a.TextGrid", silences=True) == result
