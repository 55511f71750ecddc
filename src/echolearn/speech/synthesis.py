"""Synthetic speech: the .WAV, .PHN and .TXT files of some speakers in a TIMIT tree, written by a process of its own.

espeak-ng keeps its state in globals: what it produces depends on what it produced before in the same process. So a
job, a fixed list of speakers, is always done by one new process in a fixed order, and the corpus is the same on any
number of cores. A process of its own also keeps a crash of the library away from the caller, and needs no
`if __name__ == "__main__"` in the caller's script.
"""

from __future__ import annotations

import hashlib
import json
import sys
import wave
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from echolearn.speech.audio import RATE, resample
from echolearn.speech.espeak import Espeak, EspeakError, Voice
from echolearn.speech.features import frame_count
from echolearn.speech.labels import Segment, write_phn
from echolearn.speech.phones import STOPS, fold_espeak
from echolearn.speech.sentences import draw_sentence
from echolearn.speech.speakers import Speaker

SNR_DB = (8.0, 25.0)
SILENCE_SECONDS = (0.08, 0.2)  # before and after the sentence
_LEVEL = 1_400.0  # root mean square of the speech, on the 16-bit scale
_COLOUR = 0.8  # pole of the noise's filter: background noise is mostly low
_HALF_UTTERANCE = 140  # frames; stopping this early makes the part's size right on average
# A closure is a run of blocks of samples at most this loud, of the loudest block before the stop, and this long.
_CLOSURE_LEVEL, _CLOSURE_SECONDS, _BLOCK = 0.2, 0.12, 110


class SpeakerReport(TypedDict):
    """What a job reports of each speaker: its name, how many frames and utterances, and a checksum of the samples."""

    speaker: str
    frames: int
    utterances: int
    sha256: str


@dataclass(frozen=True)
class SynthesisJob:
    """The work of one process.

    Parameters
    ----------
    root : str
        Folder of the corpus.
    seed : int
        Seed of the corpus.
    speakers : tuple of Speaker
        The speakers in their order.
    frames_per_speaker : dict of str to float
        How many frames a speaker of each part is to speak, on average.
    """

    root: str
    seed: int
    speakers: tuple[Speaker, ...]
    frames_per_speaker: dict[str, float]

    def to_json(self) -> str:
        """Return the job as JSON.

        Returns
        -------
        str
            The text that `from_json` reads.
        """
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> SynthesisJob:
        """Return the job that `to_json` wrote.

        Parameters
        ----------
        text : str
            The job as JSON.

        Returns
        -------
        SynthesisJob
            The job.
        """
        raw = json.loads(text)
        speakers = tuple(Speaker(**{**one, "voice": Voice(**one["voice"])}) for one in raw["speakers"])
        return cls(raw["root"], raw["seed"], speakers, raw["frames_per_speaker"])


def phone_segments(events: list[tuple[int, str]], samples: NDArray[np.int16], rate: int) -> list[tuple[int, int, str]]:
    """Turn espeak-ng's phones into segments that cover the audio.

    espeak-ng gives the time of a stop's burst and leaves the closure to the phone before; phoneticians count the
    closure as part of the stop. So the start of a stop moves back over the silence in front of it.

    Parameters
    ----------
    events : list of (int, str)
        First sample and espeak-ng's name of every phone.
    samples : array of shape (n_samples,), int16
        The audio.
    rate : int
        Its samples per second.

    Returns
    -------
    list of (int, int, str)
        First sample, the sample after the last, and the phone of the American English list.

    Raises
    ------
    EspeakError
        If espeak-ng names a phone that is not in the table.
    """
    starts: list[tuple[int, str]] = [(0, "sil")]
    for sample, name in events:
        phone = fold_espeak(name)
        if phone is None:
            raise EspeakError(f"espeak-ng spoke a phone {name!r} that is not in the fixed list")
        if phone == "" or (phone == "sil" and starts[-1][1] == "sil"):
            continue
        before, previous = starts[-1]
        if phone in STOPS and previous != "sil":
            sample = _closure_start(samples[before:sample], rate) + before
        if sample <= before:
            starts.pop()
        starts.append((sample, phone))
    ends = [start for start, _ in starts[1:]] + [len(samples)]
    return [(start, end, phone) for (start, phone), end in zip(starts, ends, strict=True) if end > start]


def _closure_start(before: NDArray[np.int16], rate: int) -> int:
    """Return where the silence at the end of the phone before a stop begins."""
    blocks = len(before) // _BLOCK
    if blocks < 3:
        return len(before)
    tail = before[len(before) - blocks * _BLOCK :].astype(np.float64).reshape(blocks, _BLOCK)
    level = np.sqrt((tail**2).mean(axis=1))
    quiet = level < _CLOSURE_LEVEL * level.max()
    most = min(int(_CLOSURE_SECONDS * rate / _BLOCK), blocks - 2)
    run = 0
    while run < most and quiet[blocks - 1 - run]:
        run += 1
    return len(before) - run * _BLOCK


def synthesise(espeak: Espeak, sentence: str, rng: np.random.Generator) -> tuple[NDArray[np.int16], list[Segment]]:
    """Synthesise a sentence in the selected voice, with silence around it and noise in the background.

    Parameters
    ----------
    espeak : Espeak
        The synthesiser.
    sentence : str
        The sentence.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    samples : array of shape (n_samples,), int16
        The audio at 16 kHz.
    segments : list of Segment
        Its phones. The first and the last are silence.
    """
    raw, events = espeak.say(sentence, int(rng.integers(1, 2**31 - 1)))
    phones = phone_segments(events, raw, espeak.rate)
    head, tail = (int(seconds * espeak.rate) for seconds in rng.uniform(*SILENCE_SECONDS, size=2))
    clean = resample(np.pad(raw, (head, tail)).astype(np.float32), espeak.rate)
    clean *= np.float32(_LEVEL * 10 ** rng.uniform(-0.2, 0.2) / max(1.0, float(clean.std())))
    noisy = clean + _noise(len(clean), float(clean.std()), rng)
    samples = np.clip(np.rint(noisy), -32_768, 32_767).astype(np.int16)
    edges = [0] + [round((start + head) * RATE / espeak.rate) for start, _, _ in phones[1:]] + [len(samples)]
    names = [name for _, _, name in phones]
    if names[0] != "sil":
        names, edges = ["sil", *names], [0, round(head * RATE / espeak.rate), *edges[1:]]
    if names[-1] != "sil":
        names, edges = (
            [*names, "sil"],
            [*edges[:-1], len(samples) - round(tail * RATE / espeak.rate), edges[-1]],
        )
    return samples, [Segment(a / RATE, b / RATE, n) for a, b, n in zip(edges, edges[1:], names, strict=False)]


def _noise(count: int, speech: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return coloured noise for speech of this deviation, 8 to 25 dB below it."""
    snr = rng.uniform(*SNR_DB)
    white = rng.standard_normal(count, dtype=np.float32)
    coloured = np.asarray(lfilter([1.0], [1.0, -_COLOUR], white), dtype=np.float32)
    return coloured * np.float32(speech * 10 ** (-snr / 20) / max(1e-9, float(coloured.std())))


def run_job(job: SynthesisJob) -> None:
    """Write the files of a job, and print one line of JSON per speaker, a `SpeakerReport`.

    Parameters
    ----------
    job : SynthesisJob
        The job.

    Raises
    ------
    EspeakError
        If espeak-ng is missing or fails.
    OSError
        If a file cannot be written.
    """
    espeak = Espeak()
    due = dict.fromkeys(job.frames_per_speaker, 0.0)
    done = dict.fromkeys(job.frames_per_speaker, 0)
    for speaker in job.speakers:
        rng = np.random.default_rng([job.seed, 2, *speaker.name.encode()])
        espeak.use(speaker.voice)
        side = "TRAIN" if speaker.part == "train" else "TEST"
        folder = Path(job.root) / side / speaker.region / speaker.name
        folder.mkdir(parents=True)
        due[speaker.part] += job.frames_per_speaker[speaker.part]
        digest, count, before = hashlib.sha256(), 0, done[speaker.part]
        while count == 0 or done[speaker.part] + _HALF_UTTERANCE < due[speaker.part]:
            count += 1
            sentence = draw_sentence(rng, speaker.part)
            samples, segments = synthesise(espeak, sentence, rng)
            _write(folder / f"SX{count:03d}", samples, segments, sentence)
            digest.update(samples.tobytes())
            done[speaker.part] += frame_count(len(samples))
        frames = done[speaker.part] - before
        report = SpeakerReport(speaker=speaker.name, frames=frames, utterances=count, sha256=digest.hexdigest())
        print(json.dumps(report), flush=True)


def _write(stem: Path, samples: NDArray[np.int16], segments: list[Segment], sentence: str) -> None:
    with stem.with_suffix(".WAV").open("wb") as raw, wave.open(raw, "wb") as file:
        file.setparams((1, 2, RATE, len(samples), "NONE", ""))
        file.writeframes(samples.astype("<i2").tobytes())
    write_phn(stem.with_suffix(".PHN"), segments)
    stem.with_suffix(".TXT").write_text(f"0 {len(samples)} {sentence}\n", encoding="utf-8")


def main() -> int:
    """Run the job that standard input holds as JSON; print a failure as JSON too.

    Returns
    -------
    int
        The exit status.
    """
    try:
        run_job(SynthesisJob.from_json(sys.stdin.read()))
    except OSError as error:
        print(json.dumps({"errno": error.errno, "file": error.filename or "", "error": str(error)}))
        return 1
    except EspeakError as error:
        print(json.dumps({"error": str(error)}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
