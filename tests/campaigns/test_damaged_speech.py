"""The short form of reliability/damaged_speech.py: some hundred damaged files, none of them misread."""

from __future__ import annotations

import pytest

from reliability import damaged_speech, speech_witness


@pytest.fixture(autouse=True)
def unlimited(monkeypatch):
    """The limit on the address space would hold for all tests that follow."""
    monkeypatch.setattr(damaged_speech, "limit_growth", lambda more: more)
    monkeypatch.setattr(damaged_speech.signal, "setitimer", lambda *_: None)


@pytest.mark.parametrize("kind", damaged_speech.KINDS)
def test_damaged_files_are_refused_or_read_as_what_they_say(kind, tmp_path):
    answer = damaged_speech.judge_all(kind, 120, [3], tmp_path)
    assert answer["failures"] == []
    assert answer["counts"]["files"] == 120
    assert answer["counts"]["refused"] > 20
    assert answer["counts"]["legal"] + answer["counts"].get("equal", 0) > 0
    assert answer["slowest"] < damaged_speech.LIMIT


def judged(kind, folder, content):
    """Return the verdict on a file beside the first sound one."""
    sound = damaged_speech.sound_files(folder)[kind][0]
    judge = damaged_speech.Judge(kind, folder)
    judge.path.write_bytes(content(sound))
    return lambda: judge.verdict(content(sound), judge.witness(sound)), judge


def test_the_judge_tells_what_is_legal(tmp_path):
    assert judged("ctm", tmp_path, lambda sound: sound)[0]() == "equal"
    assert judged("ctm", tmp_path, lambda sound: sound.replace(b"0.40", b"0.30"))[0]() == "legal"
    assert judged("ctm", tmp_path, lambda sound: sound.replace(b"0.40", b"0.6"))[0]() == "refused"


@pytest.mark.parametrize(
    ("kind", "content", "read", "verdict"),
    [
        ("ctm", lambda sound: sound, lambda path: [], "wrong: read as"),
        ("ark", lambda sound: sound, lambda path: [], "wrong: read as"),
        ("ctm", lambda sound: b"", lambda path: [], "wrong: read, although the grammar refuses it"),
        ("json", lambda sound: b"{}", lambda path: [], "wrong: read, although the grammar refuses it"),
    ],
)
def test_the_judge_tells_what_is_misread(kind, content, read, verdict, tmp_path):
    answer, judge = judged(kind, tmp_path, content)
    judge.read = read
    assert answer().startswith(verdict)


def test_the_judge_wants_the_file_the_line_and_nothing_but_damage_refused(tmp_path):
    from echolearn.exceptions import CorpusError

    def refuse(file, what):
        def read(path):
            raise CorpusError.one(file or path, what)

        return read

    for content, file, what, verdict in (
        (lambda sound: b"", None, "is damaged", "wrong: no place named"),
        (lambda sound: b"", "another", "line 1: is damaged", "wrong: no place named"),
        (lambda sound: b"", None, "line 1: is damaged", "refused"),
        (lambda sound: sound, None, "line 1: is damaged", "wrong: a legal file was refused"),
    ):
        answer, judge = judged("ctm", tmp_path, content)
        judge.read = refuse(file, what)
        assert answer().startswith(verdict)


def test_the_witness_reads_json_as_python_does():
    """A parser of our own is a witness only if it is right: compare with the standard library on odd documents."""
    import json

    for text in ('{"a": [1, -2.5e3, "x\\u00e9\\n\\ud83d\\ude00", true, null, {}]}', "[]", ' "a" ', "-0", "[1,[2]]"):
        assert speech_witness._Json(text).document() == json.loads(text)  # noqa: SLF001
    for text in ("[1,]", "{,}", "01", "+1", "'a'", '"\t"', "[1 2]", "nul", '{"a":1,"a":1}', "1 2", "[", "NaN"):
        with pytest.raises(speech_witness.Invalid):
            speech_witness._Json(text).document()  # noqa: SLF001
