"""A job of synthesis run in this process, and the times of stops."""

from __future__ import annotations

import errno
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from echolearn.speech import synthesis
from echolearn.speech.espeak import EspeakError
from echolearn.speech.speakers import draw_speakers
from echolearn.speech.synthesis import SynthesisJob, phone_segments
from echolearn.speech.synthetic import part_frames


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
    found = phone_segments([(0, "a"), (3305, "t"), (4000, "_:")], samples, 22_050)
    assert [name for _, _, name in found] == ["ae", "t", "sil"]
    assert found[1][0] == pytest.approx(2205, abs=110)
    with pytest.raises(EspeakError, match="not in the fixed list"):
        phone_segments([(0, "weird")], samples, 22_050)
