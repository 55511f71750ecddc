"""CTM and STM files: read as they were written, and refused with the line if they are damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echolearn.exceptions import CorpusError
from echolearn.speech.formats import (
    Recognised,
    StmSegment,
    TimedToken,
    read_ctm,
    read_stm,
    write_ctm,
    write_stm,
)
from speechresults import quiet, tokens, yes


@quiet
@given(st.lists(tokens().filter(bool), min_size=1, max_size=3))
def test_ctm_is_read_as_it_was_written(tmp_path: Path, drawn: list[tuple[TimedToken, ...]]) -> None:
    results = [Recognised(f"u{k}", found, channel=k % 2 + 1) for k, found in enumerate(drawn)]
    write_ctm(tmp_path / "a.ctm", reversed(results))
    assert read_ctm(tmp_path / "a.ctm") == results


@quiet
@given(st.lists(st.tuples(st.integers(1, 10**7), st.lists(st.sampled_from(["yes", "né", "<unk>"]), max_size=4))))
def test_stm_is_read_as_it_was_written(tmp_path: Path, drawn: list[tuple[int, list[str]]]) -> None:
    drawn = drawn or [(1, ["yes"])]
    ends = [sum(length for length, _ in drawn[: k + 1]) for k in range(len(drawn))]
    segments = [
        StmSegment("call", 2, "ann", (end - length) / 10**7, end / 10**7, tuple(words), "<o,f0>")
        for end, (length, words) in zip(ends, drawn, strict=True)
    ]
    write_stm(tmp_path / "a.stm", segments)
    assert read_stm(tmp_path / "a.stm") == segments


CTM = [
    ("u 1 0.1 0.4\n", "line 1: has 4 fields"),
    (";; x\nu 1 0.1 0.4 yes 0.5 x\n", "line 2: has 7 fields"),
    ("u 0 0.1 0.4 yes\n", "line 1: the channel is '0'"),
    ("u C 0.1 0.4 yes\n", "the channel is 'C'"),
    ("u 1 0,1 0.4 yes\n", "'0,1' is no time"),
    ("u 1 nan 0.4 yes\n", "'nan' is no time"),
    ("u 1 0.1 -0.4 yes\n", "'-0.4' is no time"),
    ("u 1 0.1 1e99 yes\n", "'1e99' is no time"),
    ("u 1 0.1 0.4 yes 1.1\n", "the confidence of 'yes'"),
    ("u 1 0.1 0.4 yes sure\n", "'sure' is no confidence"),
    ("u 1 0.1 0.4 yes\nu 1 0.1 0.4 yes\n", "line 2: 'yes' starts at 0.1 s, while"),
    ("u 1 0.6 0.4 yes\nu 1 0.1 0.4 yes\n", "line 2: .*order of their times"),
    ("u 1 0.1 0.1 a\nv 1 0.1 0.1 a\nu 1 0.3 0.1 b\n", "line 3: 'u' occurs again"),
    (";; nothing\n", "holds no token"),
    ("u 1 * * <ALT_BEGIN>\n", "'\\*' is no time"),
    ("u 1 0.1 0.4 y\x00s\n", "line 1: holds the character U\\+0000"),
    ("a\nu 1 0.1 0.4 y\xa0s\n", "line 2: holds the character U\\+00A0"),
]


@pytest.mark.parametrize(("text", "message"), CTM)
def test_damaged_ctm_files_are_refused_with_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.ctm"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match=message):
        read_ctm(path)


def test_other_peoples_ctm_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.ctm"
    path.write_bytes(b"\xef\xbb\xbf;; by hand\r\nu A .1 0.2 yes NA\r\nu A 0.30 1e-1 sir 1.00\r\n\r\nu B 0 1 no\r\n")
    first, second = read_ctm(path)
    assert first == Recognised("u", (TimedToken("yes", 0.1, 0.3), TimedToken("sir", 0.3, 0.4, 1.0)))
    assert (second.channel, second.tokens[0].end) == (2, 1.0)


def test_an_empty_result_leaves_a_comment_in_a_ctm_file(tmp_path: Path) -> None:
    write_ctm(tmp_path / "a.ctm", [Recognised("u", ()), Recognised("v", (yes(),), (yes(name="y"),))])
    assert (tmp_path / "a.ctm").read_text() == ";; u 1: nothing\nv 1 0.10 0.40 yes\n"


STM = [
    ("f 1 ann 0\n", "line 1: has 4 fields"),
    ("f 1 ann 0 x yes\n", "'x' is no time"),
    ("f 1 ann 1 1 yes\n", "an end after the start"),
    ("f 1 ann 0 1 <o,f0 yes\n", None),
    ("f 1 ann 0 1 { a / b }\n", "alternatives in braces"),
    ("f 1 ann 0 1 <a<b> yes\n", "the label is"),
    ("f 1 ann 2 3 a\nf 1 ann 0 1 b\n", "line 2: it starts at 0 s, before"),
    ("f 1 ann 0 3 a\nf 1 ann 1 4 b\n", "line 2: it starts at 1 s, while"),
    ("f 1 ann 0 3 a\nf 1 bob 1 4 b\n", None),
    ("f 1 ann 0 1 a\ng 1 ann 0 1 b\nf 1 ann 1 2 b\n", "line 3: 'f' occurs again"),
    (";;\n", "no segment"),
]


@pytest.mark.parametrize(("text", "message"), STM)
def test_damaged_stm_files_are_refused_with_the_line(tmp_path: Path, text: str, message: str | None) -> None:
    path = tmp_path / "a.stm"
    path.write_text(text, encoding="utf-8")
    if message is None:
        assert read_stm(path)
    else:
        with pytest.raises(CorpusError, match=message):
            read_stm(path)


def test_what_an_stm_file_cannot_hold_is_not_written(tmp_path: Path) -> None:
    good = StmSegment("f", 1, "ann", 0.0, 1.0, ("yes",))
    for bad in (
        good._replace(words=("<unk>",)),
        good._replace(speaker=""),
        good._replace(label="o"),
        good._replace(end=0.0),
        good._replace(channel=0),
        good._replace(file=";;f"),
    ):
        with pytest.raises(ValueError, match="cannot hold"):
            write_stm(tmp_path / "a.stm", [bad])
    with pytest.raises(ValueError, match="lasts until"):
        write_stm(tmp_path / "a.stm", [good, good])
    assert not list(tmp_path.iterdir())
