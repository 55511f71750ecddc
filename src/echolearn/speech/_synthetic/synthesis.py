"""The speakers of the synthetic corpus, and the synthesis of their sentences in a separate process.

Variants of espeak-ng that differ by a number are modified copies of one voice; all of them belong to one part. The
files (.WAV, .PHN, .WRD and .TXT) form a TIMIT tree. espeak-ng keeps its state in global variables, so that its output
depends on what the same process synthesised before. So a job, a fixed list of speakers, is always done by one new
process in a fixed order, and the corpus is the same on any number of cores. A crash of the library ends that process
and not the caller's, and the caller's script needs no `if __name__ == "__main__"`.
"""

from __future__ import annotations

import hashlib
import json
import string
import sys
import wave
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from echolearn.exceptions import EspeakError
from echolearn.speech._audio import RATE_HZ, resample
from echolearn.speech._features import frame_count
from echolearn.speech._labels import Segment, write_phn
from echolearn.speech._phone_set import STOPS, fold_espeak
from echolearn.speech._sources.utterances import PARTS
from echolearn.speech._synthetic.espeak import Espeak, Voice
from echolearn.speech._synthetic.sentences import draw_sentence, every_word

SNR_DB = (8.0, 25.0)
SILENCE_SECONDS = (0.08, 0.2)  # before and after the sentence
_SPEECH_LEVEL = 1_400.0  # root mean square of the speech, on the 16-bit scale
_NOISE_POLE = 0.8  # pole of the noise's filter: background noise is mostly low
_HALF_UTTERANCE_FRAMES = 140  # stopping this early makes the part's size right on average
# A closure is a run of blocks of samples at most this loud, of the loudest block before the stop, and this long.
_CLOSURE_LEVEL, _CLOSURE_SECONDS, _BLOCK_SAMPLES = 0.2, 0.12, 110
LEXICON = "LEXICON.DIC"
_CONTEXTS = (
    "{}",
    "a {} a",
    "the {} the",
)  # in which words are pronounced for the lexicon; a word is its second or only one
FRAMES_PER_SPEAKER = 2_400  # TIMIT: eight sentences of three seconds
# espeak-ng's variants without its robots, its whispers and the voices that clip or creak.
_FEMALE = "Alicia Andrea Annie anika aunty belinda f1 f2 f3 f4 f5 grandma linda shelby steph steph2 steph3"
_MALE = """
    Alex Andy Denis Diogo Gene Henrique Hugo Lee Marco Mario Michael Mike Nguyen Reed RicishayMax
    RicishayMax2 RicishayMax3 adam antonio benjamin boris caleb david edward edward2 fast grandpa
    gustave ian iven3 iven4 john kaukovalta klatt3 klatt6 m1 m2 m3 m4 m5 m6 m7 m8 marcelo max michel
    miguel mike2 norbert pablo paul pedro quincy rob robert sandro travis victor zac
"""
FEMALE: tuple[str, ...] = tuple(_FEMALE.split())
MALE: tuple[str, ...] = tuple(_MALE.split())
_LANGUAGES = ("en-us", "en-us-nyc")
_FAMILIES_PER_HELD_OUT = 7  # one family in seven for each of validation and test


@dataclass(frozen=True)
class Speaker:
    """A speaker of the synthetic corpus."""

    name: str  # in TIMIT's style: F or M, then letters and a digit
    part: str
    region: str  # folder of the accent, DR1 or DR2
    voice: Voice


def draw_speakers(frames: Mapping[str, int], seed: int) -> list[Speaker]:
    """Return about one speaker per 2,400 frames, in the order of the parts."""
    rng = np.random.default_rng([seed, 1])
    variants_of = split_variants(rng)
    speakers: list[Speaker] = []
    for part in PARTS:
        # A small part still needs a dozen voices, or its error is that of its few speakers.
        count = max(2, min(12, frames[part] // 600), round(frames[part] / FRAMES_PER_SPEAKER))
        order: list[str] = []
        while len(order) < count:
            order += [variants_of[part][k] for k in rng.permutation(len(variants_of[part]))]
        for variant in order[:count]:
            accent = int(rng.random() < 0.3)
            voice = Voice(
                language=_LANGUAGES[accent],
                variant=variant,
                rate=int(rng.integers(135, 216)),
                pitch=int(rng.integers(25, 76)),
                range=int(rng.integers(25, 76)),
            )
            sex = "F" if variant in FEMALE else "M"
            speakers.append(Speaker(sex + _letters(len(speakers)), part, f"DR{accent + 1}", voice))
    return speakers


def split_variants(rng: np.random.Generator) -> dict[str, list[str]]:
    """Return the voice variants of each part, with both sexes in each."""
    variants_of: dict[str, list[str]] = {part: [] for part in PARTS}
    for variants in (FEMALE, MALE):
        families = sorted({family(variant) for variant in variants})
        families = [families[k] for k in rng.permutation(len(families))]
        held_out = len(families) // _FAMILIES_PER_HELD_OUT
        part_of = dict.fromkeys(families, "train")
        part_of |= dict.fromkeys(families[:held_out], "valid")
        part_of |= dict.fromkeys(families[held_out : 2 * held_out], "test")
        for variant in variants:
            variants_of[part_of[family(variant)]].append(variant)
    return variants_of


def family(variant: str) -> str:
    """Return the name that a variant shares with its modified copies (steph3: steph); m1, f2, ... have none."""
    stem = variant.rstrip(string.digits).lower()
    return variant if len(stem) == 1 else stem


def _letters(number: int) -> str:
    """Return a number as three letters and a digit."""
    letters = ""
    for _ in range(3):
        number, k = divmod(number, 26)
        letters = string.ascii_uppercase[k] + letters
    return f"{letters}{number}"


class Sentence(NamedTuple):
    """A synthesised sentence with its audio, phones and words, as the corpus has it."""

    samples: NDArray[np.int16]  # at 16 kHz
    phones: list[Segment]  # the first and the last are silence
    words: list[Segment]


class SpeakerReport(TypedDict):
    """The report of a job on one speaker: its name, numbers of frames and utterances, and a checksum of the samples."""

    speaker: str
    frames: int
    utterances: int
    sha256: str


@dataclass(frozen=True)
class SynthesisJob:
    """The part of a corpus that one process synthesises."""

    root: str
    seed: int
    speakers: tuple[Speaker, ...]
    frames_per_speaker: dict[str, float]  # mean number, for each part
    lexicon: bool = False  # whether this job also writes the pronunciations of all words

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> SynthesisJob:
        raw = json.loads(text)
        speakers = tuple(Speaker(**{**one, "voice": Voice(**one["voice"])}) for one in raw["speakers"])
        return cls(raw["root"], raw["seed"], speakers, raw["frames_per_speaker"], raw["lexicon"])


class TimedPhone(NamedTuple):
    """A phone of espeak-ng in the audio."""

    start: int  # samples
    end: int
    name: str  # of the American English list, or a word
    event: int  # the sample at which espeak-ng reports it: of a stop the burst, after `start`


def run_job(job: SynthesisJob) -> None:
    """Write the files of a job, and print one line of JSON per speaker, a `SpeakerReport`."""
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
        while count == 0 or done[speaker.part] + _HALF_UTTERANCE_FRAMES < due[speaker.part]:
            count += 1
            sentence = draw_sentence(rng, speaker.part)
            spoken = synthesise(espeak, sentence, rng)
            _write(folder / f"SX{count:03d}", spoken, sentence)
            digest.update(spoken.samples.tobytes())
            done[speaker.part] += frame_count(len(spoken.samples))
        frames = done[speaker.part] - before
        report = SpeakerReport(speaker=speaker.name, frames=frames, utterances=count, sha256=digest.hexdigest())
        print(json.dumps(report), flush=True)
    if job.lexicon:  # last, because what espeak-ng speaks depends on what it did before
        write_lexicon(Path(job.root) / LEXICON, espeak, [speaker.voice for speaker in job.speakers])


def synthesise(espeak: Espeak, sentence: str, rng: np.random.Generator) -> Sentence:
    """Synthesise a sentence in the selected voice, with silence around it and noise in the background."""
    raw, events, spoken = espeak.say(sentence, int(rng.integers(1, 2**31 - 1)))
    phones = timed_phones(events, raw, espeak.rate)
    head, tail = (int(seconds * espeak.rate) for seconds in rng.uniform(*SILENCE_SECONDS, size=2))
    clean = resample(np.pad(raw, (head, tail)).astype(np.float32), espeak.rate)
    clean *= np.float32(_SPEECH_LEVEL * 10 ** rng.uniform(-0.2, 0.2) / max(1.0, float(clean.std())))
    noisy = clean + _noise(len(clean), float(clean.std()), rng)
    samples = np.clip(np.rint(noisy), -32_768, 32_767).astype(np.int16)
    edges = [0] + [round((phone.start + head) * RATE_HZ / espeak.rate) for phone in phones[1:]] + [len(samples)]
    names = [phone.name for phone in phones]
    if names[0] != "sil":
        names, edges = ["sil", *names], [0, round(head * RATE_HZ / espeak.rate), *edges[1:]]
    if names[-1] != "sil":
        names, edges = ([*names, "sil"], [*edges[:-1], len(samples) - round(tail * RATE_HZ / espeak.rate), edges[-1]])
    segments = [Segment(a / RATE_HZ, b / RATE_HZ, n) for a, b, n in zip(edges, edges[1:], names, strict=False)]
    words = [
        Segment((word.start + head) / espeak.rate, (word.end + head) / espeak.rate, word.name)
        for word in word_segments(spoken, phones)
    ]
    return Sentence(samples, segments, words)


def timed_phones(events: list[tuple[int, str]], samples: NDArray[np.int16], rate: int) -> list[TimedPhone]:
    """Return the phones of the American English list, with times that cover the audio. espeak-ng reports a stop at its
    burst; the closure before, in phonetics a part of the stop, is moved into it."""
    starts: list[tuple[int, str, int]] = [(0, "sil", 0)]
    for event, name in events:
        phone, sample = fold_espeak(name), event
        if phone is None:
            raise EspeakError(f"espeak-ng spoke a phone {name!r} that is not in the fixed list")
        if phone == "" or (phone == "sil" and starts[-1][1] == "sil"):
            continue
        before, previous, _ = starts[-1]
        if phone in STOPS and previous != "sil":
            sample = _closure_start(samples[before:sample], rate) + before
        if sample <= before:
            starts.pop()
        starts.append((sample, phone, event))
    ends = [start for start, _, _ in starts[1:]] + [len(samples)]
    timed = [TimedPhone(start, end, phone, event) for (start, phone, event), end in zip(starts, ends, strict=True)]
    return [phone for phone in timed if phone.end > phone.start]


def word_segments(spoken: list[tuple[int, str]], phones: list[TimedPhone]) -> list[TimedPhone]:
    """Return words in lower case, from their first phone to their last. spoken: the sample at which espeak-ng begins
    each word, at or a little before its first phone, and the word; one without a phone has no length."""
    sounds = [phone for phone in phones if phone.name != "sil"]
    owner = np.searchsorted([start for start, _ in spoken], [phone.event for phone in sounds], side="right") - 1
    words: list[TimedPhone] = []
    for k, (event, word) in enumerate(spoken):
        sounds_of_word = [phone for phone, at in zip(sounds, owner, strict=True) if at == k]
        start, end = (sounds_of_word[0].start, sounds_of_word[-1].end) if sounds_of_word else (event, event)
        words.append(TimedPhone(start, end, word.lower(), event))
    return words


def _closure_start(before: NDArray[np.int16], rate: int) -> int:
    """Return where the silence at the end of the phone before a stop begins."""
    blocks = len(before) // _BLOCK_SAMPLES
    if blocks < 3:
        return len(before)
    tail = before[len(before) - blocks * _BLOCK_SAMPLES :].astype(np.float64).reshape(blocks, _BLOCK_SAMPLES)
    level = np.sqrt((tail**2).mean(axis=1))
    quiet = level < _CLOSURE_LEVEL * level.max()
    most = min(int(_CLOSURE_SECONDS * rate / _BLOCK_SAMPLES), blocks - 2)
    run = 0
    while run < most and quiet[blocks - 1 - run]:
        run += 1
    return len(before) - run * _BLOCK_SAMPLES


def _noise(count: int, speech: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return coloured noise for speech of this deviation, 8 to 25 dB below it."""
    snr = rng.uniform(*SNR_DB)
    white = rng.standard_normal(count, dtype=np.float32)
    coloured = np.asarray(lfilter([1.0], [1.0, -_NOISE_POLE], white), dtype=np.float32)
    return coloured * np.float32(speech * 10 ** (-snr / 20) / max(1e-9, float(coloured.std())))


def write_lexicon(path: Path, espeak: Espeak, voices: list[Voice]) -> None:
    """Write the pronunciations of all words, each spoken by a voice of each language, alone and between others."""
    pronunciations: dict[str, dict[tuple[str, ...], None]] = {word: {} for word in every_word()}
    for voice in {voice.language: voice for voice in voices}.values():
        espeak.use(voice)
        for word, variants in pronunciations.items():
            for context in _CONTEXTS:
                spoken = espeak.pronounce(context.format(word))
                if len(spoken) == len(context.split()):
                    phones = [fold_espeak(name) for name in spoken[len(spoken) // 2]]
                    variants[tuple(phone for phone in phones if phone)] = None
    lines = []
    for word, variants in pronunciations.items():
        heads = [word, *(f"{word}({k})" for k in range(2, len(variants) + 1))]
        lines += [f"{head}  {' '.join(phones)}\n" for head, phones in zip(heads, variants, strict=False)]
    path.write_text("".join(lines), encoding="utf-8")


def _write(stem: Path, spoken: Sentence, sentence: str) -> None:
    samples = spoken.samples
    with stem.with_suffix(".WAV").open("wb") as raw, wave.open(raw, "wb") as file:
        file.setparams((1, 2, RATE_HZ, len(samples), "NONE", ""))
        file.writeframes(samples.astype("<i2").tobytes())
    write_phn(stem.with_suffix(".PHN"), spoken.phones)
    write_phn(stem.with_suffix(".WRD"), spoken.words)
    stem.with_suffix(".TXT").write_text(f"0 {len(samples)} {sentence}\n", encoding="utf-8")


def main() -> int:
    """Run the job that is read from standard input as JSON; a failure is printed as JSON too."""
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
