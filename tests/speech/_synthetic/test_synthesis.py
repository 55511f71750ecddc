"""A job of synthesis run in this process, and the times of stops."""

from __future__ import annotations

import errno
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from echolearn.exceptions import EspeakError
from echolearn.speech import Segment
from echolearn.speech._synthetic import synthesis
from echolearn.speech._synthetic.espeak import Spoken, Voice
from echolearn.speech._synthetic.sentences import every_word
from echolearn.speech._synthetic.synthesis import (
    FEMALE,
    MALE,
    SynthesisJob,
    TimedPhone,
    draw_speakers,
    family,
    split_variants,
    timed_phones,
    word_segments,
    write_lexicon,
)
from echolearn.speech._synthetic.tree import part_frames
from echolearn.speech.recognition import read_lexicon


def test_a_job_writes_its_files_and_reports_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (speaker, *_) = draw_speakers(part_frames(1_000), seed=7)
    job = SynthesisJob(str(tmp_path), 7, (speaker,), {"train": 500.0, "valid": 0.0, "test": 0.0})
    assert SynthesisJob.from_json(job.to_json()) == job
    monkeypatch.setattr(sys, "stdin", io.StringIO(job.to_json()))
    assert synthesis.main() == 0
    report = json.loads(capsys.readouterr().out)
    assert report["speaker"] == speaker.name
    assert report["frames"] == pytest.approx(500, abs=300)
    assert len(list(tmp_path.rglob("*.WAV"))) == report["utterances"]

    monkeypatch.setattr(sys, "stdin", io.StringIO(job.to_json()))
    assert synthesis.main() == 1  # the speaker's folder exists already
    assert json.loads(capsys.readouterr().out)["errno"] == errno.EEXIST


def test_a_stop_begins_with_its_closure() -> None:
    rng = np.random.default_rng(0)
    loud, quiet = rng.normal(0, 5000, 2205), rng.normal(0, 50, 1100)
    samples = np.concatenate([loud, quiet, loud]).astype(np.int16)
    found = timed_phones([(0, "a"), (3305, "t"), (4000, "_:")], samples, 22_050)
    assert [phone.name for phone in found] == ["ae", "t", "sil"]
    assert found[1].start == pytest.approx(2205, abs=110)
    with pytest.raises(EspeakError, match="not in the fixed list"):
        timed_phones([(0, "weird")], samples, 22_050)


def test_a_closure_lasts_an_eighth_of_a_second_at_most() -> None:
    rng = np.random.default_rng(0)
    loud, quiet = rng.normal(0, 5000, 5500), rng.normal(0, 50, 11_000)
    samples = np.concatenate([loud, quiet, loud]).astype(np.int16)
    found = timed_phones([(0, "a"), (16_500, "t"), (20_000, "_:")], samples, 22_050)
    assert found[1].start == 16_500 - 24 * 110  # 0.12 s in whole blocks of 110 samples


def test_speakers_speak_until_their_share_of_the_frames_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One second, 98 frames, per sentence: four make about 500 frames, and nine about 1,000."""

    class Silent:
        def use(self, voice: object) -> None:
            pass

    monkeypatch.setattr(synthesis, "Espeak", Silent)
    spoken = synthesis.Sentence(np.ones(16_000, np.int16), [Segment(0.0, 1.0, "sil")], [])
    monkeypatch.setattr(synthesis, "synthesise", lambda *_: spoken)
    speakers = [s for s in draw_speakers(part_frames(100_000), seed=7) if s.part == "train"][:2]
    job = SynthesisJob(str(tmp_path), 7, tuple(speakers), {"train": 500.0, "valid": 0.0, "test": 0.0})
    synthesis.run_job(job)
    reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(r["speaker"], r["utterances"], r["frames"]) for r in reports] == [
        (speakers[0].name, 4, 4 * 98),
        (speakers[1].name, 5, 5 * 98),
    ]


class Tones:
    """An espeak-ng that says "a" for half a second and then "s", at 16 kHz."""

    rate = 16_000

    def say(self, sentence: str, seed: int) -> Spoken:
        samples = np.rint(300 * np.sin(np.arange(16_000) / 5)).astype(np.int16)
        return Spoken(samples, [(0, "a"), (8_000, "s")], [(0, "Ah"), (7_900, "so")])


def test_speech_is_of_one_level_with_silence_around_it() -> None:
    levels = []
    for seed in range(40):
        samples, segments, words = synthesis.synthesise(Tones(), "", np.random.default_rng(seed))  # type: ignore[arg-type]
        levels.append(np.log10(samples.astype(float).std()))
        assert [s.name for s in segments] == ["sil", "ae", "s", "sil"]
        first, a, s, last = segments
        assert first.start == 0
        assert 0.08 <= first.end <= 0.2
        assert a.end - a.start == pytest.approx(0.5, abs=1e-4)
        assert s.end - s.start == pytest.approx(0.5, abs=1e-4)
        assert 0.08 <= last.end - last.start <= 0.2001
        assert last.end == pytest.approx(len(samples) / 16_000)
        assert [w.name for w in words] == ["ah", "so"]
        np.testing.assert_allclose([w[:2] for w in words], [a[:2], s[:2]], atol=1e-4)
    assert np.mean(levels) == pytest.approx(np.log10(1_400), abs=0.07)
    assert max(levels) - min(levels) < 0.5  # 4 dB below to 4 dB above, and the noise


def test_words_have_the_times_of_their_phones() -> None:
    """The closure of a stop begins before espeak-ng's word; a phone that begins before the word is not its own."""
    phones = [
        TimedPhone(0, 100, "sil", 0),
        TimedPhone(100, 200, "ey", 100),
        TimedPhone(200, 300, "r", 200),
        TimedPhone(300, 400, "t", 350),
        TimedPhone(400, 500, "uw", 400),
    ]
    found = word_segments([(90, "A"), (240, "two"), (240, "to")], phones)
    assert [(word.start, word.end, word.name) for word in found] == [
        (100, 300, "a"),
        (240, 240, "two"),
        (300, 500, "to"),
    ]


class Speller:
    """An espeak-ng that pronounces the letters of a word; between vowels it adds an r."""

    def use(self, voice: Voice) -> None:
        self.language = voice.language

    def pronounce(self, text: str) -> list[list[str]]:
        extra = ["r"] if text.startswith("a ") and self.language == "en-us" else []
        return [["s", "'aU", *extra] if len(word) > 3 else ["a"] for word in text.split()]


def test_the_lexicon_has_every_word_with_the_variants_of_all_languages_and_contexts(tmp_path: Path) -> None:
    voices = [Voice(language, "m1", 100, 50, 50) for language in ("en-us-nyc", "en-us")]
    write_lexicon(tmp_path / "words.dic", Speller(), voices)  # type: ignore[arg-type]
    lexicon = read_lexicon(tmp_path / "words.dic")
    assert set(lexicon.words) == set(every_word())
    assert lexicon.pronunciations["zebra"] == (("s", "aw"), ("s", "aw", "r"))


# ---------------- Voices are split into parts, and speakers drawn from them


@pytest.mark.parametrize("seed", range(5))
def test_no_voice_speaks_in_two_parts(seed: int) -> None:
    split = split_variants(np.random.default_rng(seed))
    families = {part: {family(v) for v in variants} for part, variants in split.items()}
    assert sum(len(f) for f in families.values()) == len(set.union(*families.values()))
    assert sorted(v for variants in split.values() for v in variants) == sorted(FEMALE + MALE)
    speakers = draw_speakers(part_frames(1_124_823), seed)
    drawn: dict[str, set[str]] = {}
    for part, count in (("train", 469), ("valid", 51), ("test", 24)):
        own = [s for s in speakers if s.part == part]
        assert len(own) == count
        assert {s.name[0] for s in own} == {"F", "M"}
        drawn[part] = {family(s.voice.variant) for s in own}
    assert sum(len(f) for f in drawn.values()) == len(set.union(*drawn.values()))
    assert len({s.name for s in speakers}) == len(speakers)
