"""Results of recognition: what they may hold, and that every format gives back what was written to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echolearn.exceptions import CorpusError
from echolearn.speech import Segment, read_mlf, read_phn
from echolearn.speech.formats import (
    Recognised,
    StmSegment,
    TimedToken,
    read_ctm,
    read_json,
    read_stm,
    read_textgrid,
    write_ctm,
    write_json,
    write_results,
    write_stm,
    write_textgrid,
)
from reliability.damaged_speech import short_form

quiet = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NAMES = st.text(st.characters(blacklist_categories=("Z", "C")), min_size=1, max_size=4)


def tokens(confidences: bool = True) -> st.SearchStrategy[tuple[TimedToken, ...]]:
    """Draw tokens with times in units of 100 ns and gaps between them."""
    sure = st.one_of(st.none(), st.integers(0, 1000).map(lambda k: k / 1000)) if confidences else st.none()
    rows = st.lists(st.tuples(st.integers(0, 3 * 10**7), st.integers(1, 3 * 10**7), NAMES, sure), max_size=6)

    def build(found: list[tuple[int, int, str, float | None]]) -> tuple[TimedToken, ...]:
        made, at = [], 0
        for gap, length, name, confidence in found:
            made.append(TimedToken(name, (at + gap) / 10**7, (at + gap + length) / 10**7, confidence))
            at += gap + length
        return tuple(made)

    return rows.map(build)


@quiet
@given(st.lists(tokens().filter(bool), min_size=1, max_size=3))
def test_ctm_is_read_as_it_was_written(tmp_path: Path, drawn: list[tuple[TimedToken, ...]]) -> None:
    results = [Recognised(f"u{k}", found, channel=k % 2 + 1) for k, found in enumerate(drawn)]
    write_ctm(tmp_path / "a.ctm", reversed(results))
    assert read_ctm(tmp_path / "a.ctm") == results


@quiet
@given(st.lists(st.tuples(tokens(), tokens(), tokens()), max_size=3))
def test_json_is_read_as_it_was_written(tmp_path: Path, drawn: list[tuple[tuple[TimedToken, ...], ...]]) -> None:
    results = [
        Recognised(f"u/{k}", t, p, k + 1, s, seconds=1000.5 if k % 2 else None) for k, (t, p, s) in enumerate(drawn)
    ]
    write_json(tmp_path / "a.json", results)
    assert read_json(tmp_path / "a.json") == results


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


def yes(**changes: object) -> TimedToken:
    """Return a token with some of its fields changed."""
    return TimedToken("yes", 0.1, 0.5)._replace(**changes)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ((yes(name=""),), "has no name"),
        ((yes(name="yes sir"),), "without blanks"),
        ((yes(name="yes\u200bsir"),), "without blanks"),
        ((yes(start=-0.1),), "is no time"),
        ((yes(end=float("nan")),), "is no time"),
        ((yes(end=1e9),), "is no time"),
        ((yes(end=0.05),), "before it starts"),
        ((yes(confidence=1.5),), "expected 0 to 1"),
        ((yes(confidence=float("nan")),), "expected 0 to 1"),
        ((yes(), yes(start=0.05)), "order of their times"),
        ((yes(), yes(start=0.48, end=0.6)), "lasts until 0.5"),
    ],
)
def test_impossible_results_are_refused(found: tuple[TimedToken, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Recognised("u", found)
    with pytest.raises(ValueError, match=message):
        Recognised("u", (), phones=found)
    with pytest.raises(ValueError, match=message):
        Recognised("u", (), states=found)


def test_other_fields_of_a_result_are_checked() -> None:
    Recognised("u", (yes(), yes(start=0.491, end=0.6)))  # rounded times overlap a little
    for changes in ({"utterance": "a b"}, {"channel": 0}, {"seconds": 0.4}, {"seconds": float("inf")}):
        with pytest.raises(ValueError, match="cannot be a result"):
            Recognised(**{"utterance": "u", "tokens": (yes(),), **changes})


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


JSON_HEAD = '{"format": "echolearn-recognition", "version": 1, "utterances": ['
ONE = '{"utterance": "u", "tokens": [{"name": "a", "start": 0, "end": 1}]}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (JSON_HEAD + ONE, "line 1: is no JSON"),
        (JSON_HEAD + "\n" + ONE + "\n]", "line 3: is no JSON"),
        ("[]", "the document: is '\\[\\]'; expected an object"),
        (JSON_HEAD.replace("1", "2") + "]}", "version '2'"),
        (JSON_HEAD.replace("1", "true") + "]}", "version 'True'"),
        (JSON_HEAD.replace('"version": 1, ', "") + "]}", "lacks 'version'"),
        (JSON_HEAD + ONE + "," + ONE + "]}", r"utterances\[1\]: 'u' occurs twice"),
        (JSON_HEAD + ONE.replace("name", "nam") + "]}", r"utterances\[0\].tokens\[0\]: has the unknown key 'nam'"),
        (JSON_HEAD + ONE.replace('"a"', "7") + "]}", r"tokens\[0\]: a token has no name"),
        (JSON_HEAD + ONE.replace('"a"', '"\\ud800"') + "]}", r"without blanks and control characters"),
        (JSON_HEAD + ONE.replace("1", "NaN") + "]}", "NaN is no number"),
        (JSON_HEAD + ONE.replace("1", "1e999") + "]}", r"end: is 'inf'; expected a number"),
        (JSON_HEAD + ONE.replace("1", "9" * 5000) + "]}", "cannot be read as JSON"),
        (JSON_HEAD + ONE.replace("1", "true") + "]}", r"tokens\[0\].end: is 'True'"),
        (JSON_HEAD + ONE.replace("1", "[1]") + "]}", "expected a number"),
        (JSON_HEAD + ONE.replace('"start": 0', '"start": 0, "start": 0') + "]}", "a key occurs twice"),
        (JSON_HEAD + ONE.replace('"tokens"', '"channel": 1.0, "tokens"') + "]}", "channel: is '1.0'"),
        (JSON_HEAD + ONE.replace('"tokens"', '"seconds": 0.5, "tokens"') + "]}", "after its 0.5 seconds"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_damaged_json_is_refused_with_the_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match=message):
        read_json(path)


def test_results_are_written_in_every_format(tmp_path: Path) -> None:
    results = [
        Recognised("ann/u1", (TimedToken("yes", 0.1, 0.5, 0.9),), seconds=1.0),
        Recognised("ann/u2", (TimedToken("<no>", 0.0, 0.25),), seconds=0.5),
    ]
    write_results(tmp_path / "a.ctm", results, "ctm")
    assert [r.tokens for r in read_ctm(tmp_path / "a.ctm")] == [r.tokens for r in results]
    write_results(tmp_path / "a.json", results, "json")
    assert read_json(tmp_path / "a.json") == results
    write_results(tmp_path / "a.mlf", results, "mlf")
    assert read_mlf(tmp_path / "a.mlf")["ann/u2"] == [Segment(0.0, 0.25, "<no>")]
    write_results(tmp_path / "a.stm", results, "stm")
    assert [(s.file, s.words, s.end) for s in read_stm(tmp_path / "a.stm")] == [
        ("ann/u1", ("yes",), 1.0),
        ("ann/u2", ("<no>",), 0.5),
    ]
    files = write_results(tmp_path / "grids", results, "textgrid", level="phones")
    assert [f.relative_to(tmp_path).as_posix() for f in files] == ["grids/ann/u1.TextGrid", "grids/ann/u2.TextGrid"]
    assert read_textgrid(files[1], level="phones").tokens == results[1].tokens
    assert read_textgrid(files[1]).phones == results[1].tokens


@pytest.mark.parametrize("name", ["../u", "/u", "a//b", "a/../../u", ".", "a\\..\\b", "c:u", "a/"])
def test_names_that_leave_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "grids"
    fine = Recognised("fine", (TimedToken("yes", 0.1, 0.5),))
    with pytest.raises(ValueError, match="cannot name a file below"):
        write_results(folder, [fine, Recognised(name, (TimedToken("yes", 0.1, 0.5),))], "textgrid")
    assert not folder.exists()


def test_nothing_is_written_if_one_result_cannot_be(tmp_path: Path) -> None:
    fine, empty = Recognised("fine", (yes(),)), Recognised("empty", ())
    for results, kind, message in (
        ([fine, empty], "textgrid", "it ends at 0 seconds"),
        ([fine, fine], "ctm", "occurs 2 times"),
        ([fine, Recognised("Fine", (yes(),))], "textgrid", "differ in case only"),
        ([fine, Recognised("b", (yes(),), channel=2)], "mlf", "no channels"),
        ([Recognised(";;b", (yes(),))], "ctm", "begins like a comment"),
        ([fine], "text", "expected one of ctm"),
    ):
        with pytest.raises(ValueError, match=message):
            write_results(tmp_path / "out", results, kind)
        assert not list(tmp_path.iterdir())
    files = write_results(tmp_path / "out", [fine, Recognised("fine", (yes(),), channel=2)], "textgrid")
    assert [file.name for file in files] == ["fine.TextGrid", "fine.2.TextGrid"]


def test_an_empty_result_leaves_a_comment_in_a_ctm_file(tmp_path: Path) -> None:
    write_ctm(tmp_path / "a.ctm", [Recognised("u", ()), Recognised("v", (yes(),), (yes(name="y"),))])
    assert (tmp_path / "a.ctm").read_text() == ";; u 1: nothing\nv 1 0.10 0.40 yes\n"


def test_lines_are_counted_as_editors_do(tmp_path: Path) -> None:
    (tmp_path / "a.phn").write_bytes(b"0 1 a\r\n1 2 b\r2 3 c\n\n3 2 d\n")
    with pytest.raises(CorpusError, match="line 5 is '3 2 d'"):
        read_phn(tmp_path / "a.phn")
    (tmp_path / "a.phn").write_bytes(b"0 1 a\n1 2 b\x85\n")
    with pytest.raises(CorpusError, match="line 2: is not text"):
        read_phn(tmp_path / "a.phn")
