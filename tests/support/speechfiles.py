"""Small real files and corpora: speech-like audio in RIFF and SPHERE with phone labels."""

from __future__ import annotations

import wave
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from echolearn.speech import Corpus, Segment, open_corpus
from echolearn.speech._labels import write_phn
from echolearn.speech.formats._results import UNITS_PER_SECOND

RATE = 16_000
TIMIT_PHONES = "h# sh iy hv ae dcl y er h#"

# What the fixture `problems_of` returns: calls a function that must fail, returns the problems as text.
ProblemsOf = Callable[[Callable[[], object]], list[str]]


def tones(seconds: float, seed: int = 0, rate: int = RATE) -> np.ndarray:
    """Return int16 samples whose energy and pitch change."""
    t = np.arange(round(seconds * rate)) / rate
    noise = np.random.default_rng(seed).normal(size=len(t))
    return ((np.sin(2 * np.pi * (200 + 300 * t) * t) * (1 + np.sin(9 * t)) + 0.1 * noise) * 4000).astype(np.int16)


def write_riff(path: Path, samples: np.ndarray, rate: int = RATE) -> Path:
    """Write samples of shape (n,) or (n, channels)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as raw, wave.open(raw, "wb") as file:
        file.setparams((1 if samples.ndim == 1 else samples.shape[1], 2, rate, 0, "NONE", ""))
        file.writeframes(samples.astype("<i2").tobytes())
    return path


def write_sphere(path: Path, samples: np.ndarray, promised: int | None = None) -> Path:
    """Write a NIST SPHERE file, whose header may promise another number of samples."""
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


def write_lab(path: Path, segments: Iterable[Segment]) -> None:
    """Write a label file of HTK."""
    rows = [f"{round(s.start * UNITS_PER_SECOND)} {round(s.end * UNITS_PER_SECOND)} {s.name}\n" for s in segments]
    path.write_text("".join(rows), encoding="utf-8")


def write_textgrid(path: Path, segments: Sequence[Segment]) -> None:
    """Write a Praat TextGrid in its short text form, with one tier called phones."""
    low, high = segments[0].start, segments[-1].end
    rows = ['File type = "ooTextFile"', 'Object class = "TextGrid"', "", f"{low!r}", f"{high!r}", "<exists>", "1"]
    rows += ['"IntervalTier"', '"phones"', f"{low!r}", f"{high!r}", str(len(segments))]
    for segment in segments:
        quoted = segment.name.replace('"', '""')
        rows += [f"{segment.start!r}", f"{segment.end!r}", f'"{quoted}"']
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def write_utterance(
    stem: Path, names: str = "h# s ih t h#", seconds: float = 1.0, seed: int = 0, sphere: bool = False
) -> Path:
    """Write stem.wav, and stem.phn with these phones, all of the same length."""
    audio = stem.with_suffix(".wav")
    (write_sphere if sphere else write_riff)(audio, tones(seconds, seed))
    phones = names.split()
    edges = np.linspace(0, round(seconds * RATE), len(phones) + 1).round().astype(int)
    write_phn(
        stem.with_suffix(".phn"),
        [Segment(a / RATE, b / RATE, n) for a, b, n in zip(edges[:-1], edges[1:], phones, strict=True)],
    )
    return audio


def write_timit(root: Path, upper: bool, sphere: bool = False) -> Path:
    """Write a tree laid out like TIMIT.

    It has three training speakers, two of the validation list, one of the core test, and one test speaker of neither
    list. Each reads one SA, one SI and one SX sentence.
    """
    rows = [
        "train/dr1/fcjf0",
        "train/dr1/mdpk0",
        "train/dr2/faem0",
        "test/dr1/faks0",
        "test/dr1/mdab0",
        "test/dr1/mreb0",
        "test/dr3/fcke9",
    ]
    for k, folder in enumerate(rows):
        for sentence in ("sa1", f"si{600 + k}", f"sx{k}"):
            stem = root / (f"{folder}/{sentence}".upper() if upper else f"{folder}/{sentence}")
            write_utterance(stem, TIMIT_PHONES, 0.7, seed=k, sphere=sphere)
            if upper:
                for ending in (".wav", ".phn"):
                    stem.with_suffix(ending).rename(stem.with_suffix(ending.upper()))
    return root


# The speakers of NLTK's sample: a woman and a man of each of the eight dialect regions, all of TIMIT's training part.
_SAMPLE_SPEAKERS = """
    dr1-fvmh0 dr1-mcpm0 dr2-faem0 dr2-marc0 dr3-falk0 dr3-madc0 dr4-falr0 dr4-maeb0
    dr5-ftlg0 dr5-mbgt0 dr6-fapb0 dr6-mbma1 dr7-fblv0 dr7-madd0 dr8-fbcg1 dr8-mbcg0
"""
SAMPLE_SPEAKERS = _SAMPLE_SPEAKERS.split()
SAMPLE_TABLES = ("README", "allsenlist.txt", "phoncode.doc", "spkrinfo.txt", "spkrsent.txt", "timitdic.txt")


def write_sample(root: Path, *, sentences: int = 10, seconds: float = 0.5, upper: bool = False) -> Path:
    """Write a folder laid out like NLTK's sample of TIMIT.

    Flat folders of 16 speakers with two SA, three SI and five SX sentences each (or the first `sentences` of them), a
    SPHERE copy `.sph` beside each RIFF file, words and text beside the phones, and tables at the top. In upper case
    the audio is SPHERE under the name `.WAV`, as on the CD.
    """
    root.mkdir(parents=True, exist_ok=True)
    for name in SAMPLE_TABLES:
        (root / name).write_text("; a table\n", encoding="utf-8")
    phones = TIMIT_PHONES.split()
    for k, folder in enumerate(SAMPLE_SPEAKERS):
        numbers = ["sa1", "sa2", *(f"si{700 + 3 * k + i}" for i in range(3)), *(f"sx{k + 90 * i}" for i in range(5))]
        for i, sentence in enumerate(numbers[:sentences]):
            names = " ".join(["h#", *np.roll(phones[1:-1], i), "h#"])
            stem = root / (f"{folder}/{sentence}".upper() if upper else f"{folder}/{sentence}")
            audio = write_utterance(stem, names, seconds, seed=10 * k + i, sphere=upper)
            stem.with_suffix(".txt").write_text(f"0 {round(seconds * RATE)} She had.\n", encoding="utf-8")
            stem.with_suffix(".wrd").write_text(f"0 {round(seconds * RATE)} she\n", encoding="utf-8")
            if upper:
                for ending in (".wav", ".phn", ".txt", ".wrd"):
                    stem.with_suffix(ending).rename(stem.with_suffix(ending.upper()))
            else:
                write_sphere(audio.with_suffix(".sph"), tones(seconds, seed=10 * k + i))
    return root


def open_wav(root: Path, **options: object) -> Corpus:
    """Open a folder of audio, with a cache beside it."""
    return open_corpus(f"wav:{root}", cache=root.parent / "cache", **options)  # type: ignore[arg-type]


def open_timit(root: Path, **options: object) -> Corpus:
    """Open a tree laid out like TIMIT, with a cache beside it."""
    return open_corpus(f"timit:{root}", cache=root.parent / "cache", **options)  # type: ignore[arg-type]
