"""The speakers of the synthetic corpus: voice variants of espeak-ng, split into training, validation and test.

A variant and its modified copies (`steph`, `steph2`, `steph3`) occur in one part only. Within a part a variant may
occur again as another speaker, with another rate, pitch, range and accent.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from echolearn.speech.espeak import Voice
from echolearn.speech.utterances import PARTS

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


def family(variant: str) -> str:
    """Return the name that a variant shares with its modified copies (steph3: steph); m1, f2, ... have none."""
    stem = variant.rstrip(string.digits).lower()
    return variant if len(stem) == 1 else stem


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


def _letters(number: int) -> str:
    """Return a number as three letters and a digit."""
    letters = ""
    for _ in range(3):
        number, k = divmod(number, 26)
        letters = string.ascii_uppercase[k] + letters
    return f"{letters}{number}"
