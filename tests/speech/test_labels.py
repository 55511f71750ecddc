"""Label files: what was written is read back, and damaged files are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echolearn.exceptions import CorpusError
from echolearn.speech import TIMIT_61, Segment, read_labels, read_mlf, read_phn, write_mlf
from echolearn.speech._labels import read_lab, read_textgrid, write_phn
from speechfiles import write_lab, write_textgrid

quiet = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def segments(unit: int) -> st.SearchStrategy[list[Segment]]:
    """Draw phones that follow one another, with times in whole units of 1 / `unit` seconds."""
    steps = st.lists(st.tuples(st.integers(1, unit), st.sampled_from(TIMIT_61)), min_size=1, max_size=8)

    def build(rows: list[tuple[int, str]]) -> list[Segment]:
        made, at = [], 0
        for length, name in rows:
            made.append(Segment(at / unit, (at + length) / unit, name))
            at += length
        return made

    return steps.map(build)


@quiet
@given(segments(16_000))
def test_phn_is_read_as_it_was_written(tmp_path: Path, given_: list[Segment]) -> None:
    write_phn(tmp_path / "a.phn", given_)
    assert read_phn(tmp_path / "a.phn") == given_


@quiet
@given(segments(10_000_000))
def test_lab_is_read_as_it_was_written(tmp_path: Path, given_: list[Segment]) -> None:
    write_lab(tmp_path / "a.lab", given_)
    assert read_lab(tmp_path / "a.lab") == given_


@quiet
@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}_sx[0-9]{1,3}", fullmatch=True), segments(100), min_size=1))
def test_mlf_is_read_as_it_was_written(tmp_path: Path, given_: dict[str, list[Segment]]) -> None:
    write_mlf(tmp_path / "a.mlf", given_)
    assert read_mlf(tmp_path / "a.mlf") == given_


@quiet
@given(segments(16_000))
def test_textgrid_is_read_as_it_was_written(tmp_path: Path, given_: list[Segment]) -> None:
    write_textgrid(tmp_path / "a.TextGrid", given_)
    assert read_textgrid(tmp_path / "a.TextGrid") == given_


LONG_GRID = '''File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 1.5
tiers? <exists>
size = 2
item []:
    item [1]:
        class = "IntervalTier"
        name = "words"
        xmin = 0
        xmax = 1.5
        intervals: size = 1
        intervals [1]:
            xmin = 0
            xmax = 1.5
            text = "say ""2"""
    item [2]:
        class = "IntervalTier"
        name = "phones"
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
            text = "iy"
'''


def short_grid(tier: str) -> str:
    """Return a TextGrid of one tier that lasts a second."""
    return f'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n1\n<exists>\n1\n{tier}'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_long_form_of_a_textgrid_is_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.TextGrid"
    path.write_bytes(LONG_GRID.encode(encoding))
    assert read_labels(path) == [Segment(0.0, 0.5, "sil"), Segment(0.5, 1.5, "iy")]


def test_textgrids_without_the_tier_or_cut_short_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.TextGrid"
    path.write_text(LONG_GRID.replace('"phones"', '"tones"'))
    with pytest.raises(CorpusError, match=r"interval tiers \['tones', 'words'\]"):
        read_textgrid(path)
    for damaged in (LONG_GRID[:-60], short_grid('"IntervalTier" "phones" 0 1 -2'), LONG_GRID[:60]):
        path.write_text(damaged)
        with pytest.raises(CorpusError, match="cut short"):
            read_textgrid(path)


def test_labels_that_an_mlf_cannot_hold_are_not_written(tmp_path: Path) -> None:
    for name, label in (('a"b', "aa"), ("a", "a a"), ("", "aa")):
        with pytest.raises(ValueError, match=r"quotation marks|expected a name without blanks|no name"):
            write_mlf(tmp_path / "a.mlf", {name: [Segment(0.0, 0.1, label)]})
    assert not (tmp_path / "a.mlf").exists()


def test_the_only_tier_is_read_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.TextGrid"
    path.write_text(short_grid('"IntervalTier" "tones" 0 1 1 0 1 "aa"'))
    assert read_textgrid(path) == [Segment(0.0, 1.0, "aa")]


def test_lab_without_times_is_a_list_of_names(tmp_path: Path) -> None:
    path = tmp_path / "a.lab"
    path.write_text("sil\nh\niy\n")
    assert read_labels(path) == ["sil", "h", "iy"]


def test_states_of_hvite_belong_to_the_last_phone_named(tmp_path: Path) -> None:
    path = tmp_path / "a.mlf"
    path.write_text('#!MLF!#\n"*/a.rec"\n0 100000 s2 -1.5 sil\n100000 300000 s3 -2\n300000 400000 s2 -1 aa\n.\n')
    assert [s.name for s in read_mlf(path)["a"]] == ["sil_s2", "sil_s3", "aa_s2"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.phn", "0 100 aa\n100 x ee\n", "line 2 is '100 x ee'"),
        ("a.phn", "", "holds no labels"),
        ("a.lab", "0 100\n", "line 1"),
        ("a.txt", "aa", "expected .phn, .lab or .TextGrid"),
    ],
)
def test_bad_lines_and_endings_are_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(CorpusError, match=message):
        read_labels(path)


def test_files_that_are_not_text_or_do_not_exist_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.phn").write_bytes(b"\xff\x00\x80\x81")
    for name, message in (("a.phn", "is not text"), ("b.phn", "cannot be read")):
        with pytest.raises(CorpusError, match=message):
            read_labels(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#!MLF!#\n", "names no utterance"),
        ("#!MLF!#\n0 10 aa\n", "an utterance name"),
        ('"*/a.lab"\n0 10 aa\n.\n', "line 1: .*expected #!MLF!#"),
        ('#!MLF!#\n"*/a.lab"\n0 10 aa\n', "line 3: the file ends inside an utterance"),
        ('#!MLF!#\n"*/a.lab"\n0 10 aa\n"*/b.lab"\n0 10 aa\n.\n', "line 4 is .*full stop"),
        ('#!MLF!#\n"*/a.lab\n0 10 aa\n.\n', "line 2 is .*utterance name"),
        ('#!MLF!#\n"*/.lab"\n0 10 aa\n.\n', "line 2 is .*utterance name"),
        ('#!MLF!#\n"*/a.lab"\n10 5 aa\n.\n', "line 3 is"),
        ('#!MLF!#\n"*/a.lab"\n10 15 aa\n5 10 b\n.\n', "line 4 is .*order of their times"),
        ('#!MLF!#\n"*/a.lab"\n0 10 aa b\n.\n', "line 3 is .*perhaps a score"),
        ('#!MLF!#\n"*/a.lab"\n0 5 s2 -1 aa\n.\n"*/b.lab"\n0 5 s2 -1\n.\n', "line 6 is .*name of the phone"),
        ('#!MLF!#\n"*/a.lab"\n0 10 aa\n.\n"*/a.lab"\n0 10 aa\n.\n', "appears twice"),
    ],
)
def test_bad_master_label_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.mlf"
    path.write_text(text)
    with pytest.raises(CorpusError, match=message):
        read_mlf(path)


@pytest.mark.parametrize("time", ["²", "٣", "9" * 19, "9" * 5000, "-1", "1.5"])
def test_times_that_are_not_whole_numbers_are_refused(tmp_path: Path, time: str) -> None:
    path = tmp_path / "a.phn"
    path.write_text(f"0 {time} aa\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"line 1 is .*; expected start end phone, times in samples"):
        read_phn(path)
    with pytest.raises(CorpusError, match=r"line 1 is .*; expected start end name, times in units of 100 ns"):
        read_lab(path)


@pytest.mark.parametrize(
    "tier", ["", '"phones"', '"phones" 0 1 1000000000', '"phones" 0 1 1000000000 0 1 "aa"', '"phones" 0 1']
)
def test_a_tier_that_promises_more_than_the_file_holds_is_refused(tmp_path: Path, tier: str) -> None:
    path = tmp_path / "a.TextGrid"
    path.write_text(short_grid(f'"IntervalTier" {tier}'), encoding="utf-8")
    with pytest.raises(CorpusError, match="is cut short or damaged; export it from Praat again"):
        read_textgrid(path)
