"""The trellis of a search against every path through random graphs."""

import numpy as np
import pytest

from echolearn.speech.recognition._trellis import lattice_arcs
from speech.recognition.test_lattices import random_case


@pytest.mark.parametrize("seed", range(20))
def test_arcs_are_steps_of_paths_within_the_beam(seed):
    search, frames, paths = random_case(seed)
    points, arcs = lattice_arcs(search, frames, 2.0)
    assert points[-1] == len(frames)
    if not paths:
        assert len(arcs.start) == 0
        return
    best = max(score for _, score in paths)
    expected = {
        (token, begun, ended)
        for steps, score in paths
        if score >= best - 2.0
        for token, (_, begun), (_, ended) in steps
    }
    found = set(zip(arcs.token.tolist(), points[arcs.start].tolist(), points[arcs.end].tolist(), strict=True))
    assert expected <= found
    assert (np.diff(arcs.start) >= 0).all()
    assert (arcs.end > arcs.start).all()
