from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echolearn.speech.errors import CorpusError
from echolearn.speech.labels import (
    Segment,
    checked,
    read_lab,
    read_labels,
    read_mlf,
    read_phn,
    read_textgrid,
    write_lab,
    write_mlf,
    write_phn,
    write_textgrid,
)
from echolearn.speech.phones import ENGLISH, TIMIT_61, fold_espeak, split_state, state_names

quiet = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def segments(unit: int) -> st.SearchStrategy[list[Segment]]:
    """Phones one after another, with times that are whole units of a second's `unit`th part."""
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
def test_phn_comes_back(tmp_path: Path, given_: list[Segment]) -> None:
    write_phn(tmp_path / "a.phn", given_)
    assert read_phn(tmp_path / "a.phn") == given_


@quiet
@given(segments(10_000_000))
def test_lab_comes_back(tmp_path: Path, given_: list[Segment]) -> None:
    write_lab(tmp_path / "a.lab", given_)
    assert read_lab(tmp_path / "a.lab") == given_


@quiet
@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}_sx[0-9]{1,3}", fullmatch=True), segments(100), min_size=1))
def test_mlf_comes_back(tmp_path: Path, given_: dict[str, list[Segment]]) -> None:
    write_mlf(tmp_path / "a.mlf", given_)
    assert read_mlf(tmp_path / "a.mlf") == given_


@quiet
@given(segments(16_000))
def test_textgrid_comes_back(tmp_path: Path, given_: list[Segment]) -> None:
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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_praats_long_form(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.TextGrid"
    path.write_bytes(LONG_GRID.encode(encoding))
    assert read_labels(path) == [Segment(0.0, 0.5, "sil"), Segment(0.5, 1.5, "iy")]


def test_textgrid_without_the_tier_or_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "a.TextGrid"
    path.write_text(LONG_GRID.replace('"phones"', '"tones"'))
    with pytest.raises(CorpusError, match=r"interval tiers \['tones', 'words'\]"):
        read_textgrid(path)
    for damaged in (LONG_GRID[:-60], '"IntervalTier" "phones" 0 1 -2', '"IntervalTier" "phones" 0 1 -5'):
        path.write_text(damaged)
        with pytest.raises(CorpusError, match="cut short"):
            read_textgrid(path)


def test_lab_of_names_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.lab"
    path.write_text("sil\nh\niy\n")
    assert read_labels(path) == ["sil", "h", "iy"]


def test_mlf_of_hvite_carries_the_phone_on(tmp_path: Path) -> None:
    path = tmp_path / "a.mlf"
    path.write_text('#!MLF!#\n"*/a.rec"\n0 100000 s2 -1.5 sil\n100000 300000 s3 -2\n300000 400000 s2 -1 aa\n.\n')
    assert [s.name for s in read_mlf(path)["a"]] == ["sil_s2", "sil_s3", "aa_s2"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.phn", "0 100 aa\n100 x ee\n", "line 2 is '100 x ee'"),
        ("a.phn", "", "holds no labels"),
        ("a.lab", "0 100\n", "line 1"),
        ("a.txt", "aa", "expected .phn, .lab or .TextGrid"),
    ],
)
def test_bad_label_files(tmp_path: Path, name: str, text: str, says: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(CorpusError, match=says):
        read_labels(path)


def test_label_files_that_are_not_text_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.phn").write_bytes(b"\xff\x00\x80\x81")
    for name, says in (("a.phn", "is not text"), ("b.phn", "cannot be read")):
        with pytest.raises(CorpusError, match=says):
            read_labels(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("#!MLF!#\n", "names no utterance"),
        ("#!MLF!#\n0 10 aa\n", "an utterance name"),
        ('#!MLF!#\n"*/a.lab"\n0 10 aa\n.\n"*/a.lab"\n0 10 aa\n.\n', "appears twice"),
    ],
)
def test_bad_mlf(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "a.mlf"
    path.write_text(text)
    with pytest.raises(CorpusError, match=says):
        read_mlf(path)


def complaints(rows: list[tuple[float, float, str]], seconds: float = 1.0) -> list[str]:
    return [p.what for p in checked([Segment(*row) for row in rows], seconds, ENGLISH, "a.phn")[1]]


def test_labels_that_fit_are_left_alone() -> None:
    rows = [Segment(0.0, 0.4, "sil"), Segment(0.4, 1.0, "iy")]
    assert checked(rows, 1.0, ENGLISH, "a.phn") == (rows, [])


def test_one_frame_of_disagreement_is_closed_halfway() -> None:
    rows = [Segment(0.0, 0.4, "sil"), Segment(0.408, 0.995, "iy")]
    whole, problems = checked(rows, 1.0, ENGLISH, "a.phn")
    assert problems == []
    assert [(s.start, s.end) for s in whole] == [(0.0, pytest.approx(0.404)), (pytest.approx(0.404), 1.0)]


def test_silence_reaches_to_the_ends() -> None:
    whole, problems = checked([Segment(0.1, 0.2, "sil"), Segment(0.2, 0.6, "iy"), Segment(0.6, 0.7, "sil")],
                              1.0, ENGLISH, "a.phn")  # fmt: skip
    assert problems == []
    assert (whole[0].start, whole[-1].end) == (0.0, 1.0)


def test_every_problem_of_a_file_is_found() -> None:
    found = complaints([(0.1, 0.3, "iy"), (0.2, 0.4, "xx"), (0.6, 1.2, "ah")])
    for says in (
        "unknown phone 'xx'",
        "an overlap of 100 ms",
        "a gap of 200 ms",
        "runs past the audio",
        "at the start",
    ):
        assert any(says in line for line in found), says
    assert len(found) == 5


def test_a_phone_that_ends_before_it_starts() -> None:
    assert complaints([(0.0, 0.5, "iy"), (0.5, 0.495, "ah"), (0.48, 1.0, "iy")]) != []


def test_unlabelled_end() -> None:
    assert "gap of 500 ms after 'iy'" in complaints([(0.0, 0.5, "iy")])[0]


def test_states_of_phones() -> None:
    assert state_names(["aa", "b"]) == ("aa_s2", "aa_s3", "aa_s4", "b_s2", "b_s3", "b_s4")
    assert [split_state(n) for n in ("aa[2]", "ax-h_s4", "aa_s3_1", "sil")] == [
        ("aa", 0),
        ("ax-h", 2),
        ("aa", 1),
        ("sil", None),
    ]
    assert len(set(TIMIT_61)) == 61


def test_espeak_phones_fold_to_the_list() -> None:
    assert [fold_espeak(n) for n in ("'aU", ",3:", "tS", "_:", ";", "", "'", "weird")] == [
        "aw",
        "er",
        "ch",
        "sil",
        "",
        "",
        "",
        None,
    ]


@pytest.mark.parametrize("time", ["²", "٣", "9" * 19, "9" * 5000, "-1", "1.5"])
def test_times_that_are_no_counts_of_samples(tmp_path: Path, time: str) -> None:
    path = tmp_path / "a.phn"
    path.write_text(f"0 {time} aa\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"line 1 is .*; expected start end phone, times in samples"):
        read_phn(path)
    with pytest.raises(CorpusError, match=r"line 1 is .*; expected start end name, times in units of 100 ns"):
        read_lab(path)


@pytest.mark.parametrize(
    "tier", ["", '"phones"', '"phones" 0 1 1000000000', '"phones" 0 1 1 0 1e999 "aa"', '"phones" 0 1']
)
def test_a_tier_that_promises_more_than_there_is(tmp_path: Path, tier: str) -> None:
    path = tmp_path / "a.TextGrid"
    path.write_text(f'"IntervalTier" {tier}', encoding="utf-8")
    with pytest.raises(CorpusError, match="is cut short or damaged; export it from Praat again"):
        read_textgrid(path)
