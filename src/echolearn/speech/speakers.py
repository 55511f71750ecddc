"""Who speaks in the synthetic corpus: voice variants dealt out to train, validation and test.

A variant, and every variant that is a retouched copy of it (`steph`, `steph2`, `steph3`), is heard
in one part only. Within a part a variant may come back as another speaker, with another rate,
pitch, range and accent.
"""

from __future__ import annotations

import string
from dataclasses import dataclass

import numpy as np

from echolearn.speech.espeak import Voice

PARTS = ("train", "valid", "test")
FRAMES_PER_SPEAKER = 2_400  # TIMIT: eight sentences of three seconds

# espeak-ng's variants without its robots, whispers and voices that clip or croak.
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
_HELD_OUT_SHARE = 7  # one family in seven for each of validation and test


@dataclass(frozen=True)
class Speaker:
    """A name in TIMIT's style, the part it is heard in, and its voice."""

    name: str
    part: str
    region: str
    voice: Voice


def family(variant: str) -> str:
    """Variants that differ by a trailing number are one voice retouched; m1, m2, f1, ... are not."""
    stem = variant.rstrip(string.digits).lower()
    return variant if len(stem) == 1 else stem


def deal_variants(rng: np.random.Generator) -> dict[str, list[str]]:
    """Part -> its variants, both sexes in each."""
    dealt: dict[str, list[str]] = {part: [] for part in PARTS}
    for variants in (FEMALE, MALE):
        families = sorted({family(variant) for variant in variants})
        families = [families[k] for k in rng.permutation(len(families))]
        held_out = len(families) // _HELD_OUT_SHARE
        place = dict.fromkeys(families, "train")
        place |= dict.fromkeys(families[:held_out], "valid")
        place |= dict.fromkeys(families[held_out : 2 * held_out], "test")
        for variant in variants:
            dealt[place[family(variant)]].append(variant)
    return dealt


def draw_cast(frames: dict[str, int], seed: int) -> list[Speaker]:
    """Speakers for this many frames a part; the same seed gives the same cast."""
    rng = np.random.default_rng([seed, 1])
    dealt = deal_variants(rng)
    cast: list[Speaker] = []
    for part in PARTS:
        # A small part still needs a dozen voices, or its error is that of its few speakers.
        count = max(2, min(12, frames[part] // 600), round(frames[part] / FRAMES_PER_SPEAKER))
        order: list[str] = []
        while len(order) < count:
            order += [dealt[part][k] for k in rng.permutation(len(dealt[part]))]
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
            cast.append(Speaker(sex + _letters(len(cast)), part, f"DR{accent + 1}", voice))
    return cast


def _letters(number: int) -> str:
    letters = ""
    for _ in range(3):
        number, k = divmod(number, 26)
        letters = string.ascii_uppercase[k] + letters
    return f"{letters}{number}"
