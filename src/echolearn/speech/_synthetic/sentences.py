"""Sentences for synthetic speech, drawn from a small word list and a few templates.

The words were chosen so that every phone of the American English list occurs. Rare ones (the vowels of `poor`, `boy`,
`fire` and `idea`, the consonant of `measure`) occur in several words. Every sentence belongs to one part of the corpus.
"""

from __future__ import annotations

import re
import zlib

import numpy as np

_WORD_LISTS = {
    "det": "the a this that his her our your my every each another some no which their",
    "adj": """big small yellow orange purple quiet busy happy lazy pure rare sure poor weary cheerful curious
        royal noisy modern ancient thick thin smooth rough usual casual azure foreign frozen hollow shiny
        rotten hidden broken golden wooden certain bitter pretty dirty little gentle simple double careful
        young old warm cool wide narrow bare fair near clear dark sharp large short north southern other
        northern rugged joyful annoyed loud proud brown wild tired entire heavy empty good full crooked
        new blue huge cute true strange yearly major junior jealous""",
    "noun": """boy girl father mother bird nurse worker teacher doctor lawyer farmer sailor tailor player
        measure treasure pleasure vision garage mirage collision television church judge bridge village
        orchard kitchen picture nature creature water butter letter city party pity ladder meadow
        bottle table apple candle people castle button mountain curtain kitten cotton garden fountain
        thumb bath path thing ring king song finger singer hunger mouth cloth feather weather brother
        fire tire choir empire flower tower hour power shower mouse house cow crowd tour cure moisture
        idea area theory museum radio piano video beer deer ear year pier hair chair stair bear share
        door floor store shore horse fork corn car star yard garden arm heart book wood hook cook bush
        moon school tooth food fruit shoe music view fuel tube boat road home stone nose cloud town
        toy coin voice oil noise choice soil chalk hawk law dog cat hat map bag lamp egg bed leg pen desk
        ship fish hill bill gift leaf tree field week cheese rain lake train plate cake face eye light
        sky pie knife bike cup duck bus truck glove oven onion yellow yolk yacht whale wheel window
        zebra zoo rose prize puzzle vase van valley river wave shelf wolf giraffe ghost gate goat""",
    "verb": """found saw carried measured watched followed painted wanted needed washed pushed pulled
        bought caught taught brought hid lit bit kept left met felt held told sold chose broke drove
        rode wore tore heard learned turned burned served joined enjoyed destroyed avoided noticed
        touched judged changed charged matched reached cooked looked took shook moved proved used
        cleaned feared cheered shared repaired compared explored ignored started guarded
        counted surrounded shouted followed borrowed admired required hired described liked invited
        observed deserved thanked loathed gathered bothered covered discovered divided
        treasured pleased teased raised praised amazed visited fixed mixed asked helped finished""",
    "adv": """quickly slowly quietly usually carefully nearly barely early clearly rarely surely poorly again
        today yesterday together forever somehow anyway outside upstairs away twice once maybe gladly
        joyfully loudly happily lazily gently simply suddenly certainly briefly smoothly thoroughly""",
    "prep": """under over behind near around above below beyond through beside without toward before after
        between inside across along against from with for by""",
    "name": """Joyce Roy Claire George Charlotte Theodore Judith Arthur Martha Peter Mary Laura Henry Hugh
        Ruth Louise Victor Vivian Zoe Ezra Asia Persia Keith Edith Heather Howard Lloyd Floyd Troy Maria
        Ian Leah Oliver Olivia Yolanda William Thomas Walter Norah Sheila Josh Sasha Chuck Rachel""",
    "time": """Monday Tuesday Wednesday Thursday Friday January July August September October eleven seven
        thirteen forty fifty thousand noon midnight dawn sunrise winter summer autumn""",
    "start": "when while because before after although unless if since until",
    "num": "two three four five six seven eight nine ten eleven twelve thirteen twenty thirty forty fifty",
}
WORDS_BY_KIND: dict[str, tuple[str, ...]] = {kind: tuple(words.split()) for kind, words in _WORD_LISTS.items()}

TEMPLATES: tuple[str, ...] = (
    "{det} {adj} {noun} {verb} {det} {noun} {prep} {det} {noun}.",
    "{name} {verb} {det} {adj} {noun} {adv}.",
    "{start} {name} {verb} {det} {noun}, {det} {adj} {noun} {verb} {num} {noun}s.",
    "{adv}, {det} {noun} {prep} {det} {adj} {noun} {verb} {name}.",
    "{name} and {name} {verb} {num} {adj} {noun}s {prep} {time}.",
    "why was {det} {noun} so {adj} {prep} {det} {adj} {noun}?",
    "in {time} {name} {verb} {det} {noun}, {det} {noun}, and {det} {adj} {noun}.",
    "{det} {noun} and {det} {adj} {noun} {verb} {adv} {prep} {time}.",
    "is {det} {adj} {noun} here, or was it there {prep} {det} {noun}?",
    "{num} {noun}s {verb} {name} {start} {det} {noun} {verb} {adv}.",
)

# Out of 20 sentences, by checksum: so no sentence is ever spoken in two parts.
_SHARES = {"valid": range(0, 2), "test": range(2, 4), "train": range(4, 20)}


def part_of(sentence: str) -> str:
    """Return the part of the corpus to which a sentence belongs."""
    bucket = zlib.crc32(sentence.encode()) % 20
    return next(part for part, share in _SHARES.items() if bucket in share)


def draw_sentence(rng: np.random.Generator, part: str) -> str:
    """Return a random sentence of one part."""
    while True:
        sentence = TEMPLATES[rng.integers(len(TEMPLATES))]
        while "{" in sentence:
            start, _, rest = sentence.partition("{")
            kind, _, rest = rest.partition("}")
            sentence = start + WORDS_BY_KIND[kind][rng.integers(len(WORDS_BY_KIND[kind]))] + rest
        sentence = sentence[0].upper() + sentence[1:]
        if part_of(sentence) == part:
            return sentence


def every_word() -> list[str]:
    """Return all words of sentences in lower case and alphabetical order, plural forms and templates included."""
    listed = {word.lower() for words in WORDS_BY_KIND.values() for word in words} | {
        f"{noun}s" for noun in WORDS_BY_KIND["noun"]
    }
    template_words = {
        word for template in TEMPLATES for word in re.findall(r"[a-z]+", re.sub(r"\{.*?\}s?", " ", template))
    }
    return sorted(listed | template_words)
