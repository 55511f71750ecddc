"""Sentences belong to one part only."""

from __future__ import annotations

import numpy as np

from echolearn.speech._synthetic.sentences import draw_sentence, part_of


def test_no_sentence_is_spoken_in_two_parts() -> None:
    rng = np.random.default_rng(0)
    for part in ("train", "valid", "test"):
        assert all(part_of(draw_sentence(rng, part)) == part for _ in range(50))
