"""Voices are split into parts, and speakers drawn from them."""

from __future__ import annotations

import numpy as np
import pytest

from echolearn.speech.speakers import FEMALE, MALE, draw_speakers, family, split_variants
from echolearn.speech.synthetic import part_frames


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
