"""Tiny real files: speech-like audio in RIFF and SPHERE, with labels."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np

from echolearn.speech.labels import Segment, write_phn

RATE = 16_000


def tones(seconds: float, seed: int = 0, rate: int = RATE) -> np.ndarray:
    """Something with changing energy and pitch, as int16."""
    t = np.arange(round(seconds * rate)) / rate
    noise = np.random.default_rng(seed).normal(size=len(t))
    return ((np.sin(2 * np.pi * (200 + 300 * t) * t) * (1 + np.sin(9 * t)) + 0.1 * noise) * 4000).astype(np.int16)


def write_riff(path: Path, samples: np.ndarray, rate: int = RATE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as raw, wave.open(raw, "wb") as file:
        file.setparams((1 if samples.ndim == 1 else samples.shape[1], 2, rate, 0, "NONE", ""))
        file.writeframes(samples.astype("<i2").tobytes())
    return path


def write_sphere(path: Path, samples: np.ndarray, promised: int | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = [
        "NIST_1A",
        "   1024",
        "channel_count -i 1",
        f"sample_count -i {len(samples) if promised is None else promised}",
        "sample_rate -i 16000",
        "sample_n_bytes -i 2",
        "sample_byte_format -s2 01",
        "sample_sig_bits -i 16",
        "sample_coding -s3 pcm",
        "end_head",
    ]
    head = ("\n".join(fields) + "\n").encode().ljust(1024, b"\0")
    path.write_bytes(head + samples.astype("<i2").tobytes())
    return path


def spoken(stem: Path, names: str = "h# s ih t h#", seconds: float = 1.0, seed: int = 0, sphere: bool = False) -> Path:
    """stem.wav and stem.phn with these phones, evenly long."""
    audio = stem.with_suffix(".wav")
    (write_sphere if sphere else write_riff)(audio, tones(seconds, seed))
    phones = names.split()
    edges = np.linspace(0, round(seconds * RATE), len(phones) + 1).round().astype(int)
    write_phn(
        stem.with_suffix(".phn"),
        [Segment(a / RATE, b / RATE, n) for a, b, n in zip(edges[:-1], edges[1:], phones, strict=True)],
    )
    return audio
