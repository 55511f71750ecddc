"""The pass over a corpus on disk: every file is added once, and the figures are those of the whole corpus."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reliability import corpus_on_disk
from reliability.corpus_on_disk import draw, fit, measure, network, write

pytestmark = pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorFitWarning")  # few frames for 39 classes


def test_every_frame_is_written_and_added_once(tmp_path: Path) -> None:
    write(tmp_path, 11_500, 5_000)
    files = [np.load(file) for file in sorted(tmp_path.iterdir())]
    assert [len(file["y"]) for file in files] == [5_000, 5_000, 1_500]
    X, y = (np.concatenate([file[name] for file in files]) for name in "Xy")
    parts = [draw(seed, n) for seed, n in enumerate((5_000, 5_000, 1_500))]
    np.testing.assert_array_equal(X, np.concatenate([part[0] for part in parts]))
    lengths = [500] * 23
    once = network(12).fit(X, y, lengths=lengths)
    added = network(12)
    for part in parts:
        corpus_on_disk.add(added, *part)
    np.testing.assert_allclose(added.readout_weights_, once.readout_weights_, rtol=1e-5, atol=1e-6)


def test_figures_are_those_of_the_corpus(tmp_path: Path) -> None:
    found = measure(6_000, 2_500, 60, str(tmp_path))
    assert found["frames"] == 6_000
    assert 0 < found["memory_mb"] < 200
    assert found["score"] > 1 / corpus_on_disk.FEATURES
    assert found["frames_per_second"] > 0
    assert not list(tmp_path.iterdir()), "the files are removed"
    write(tmp_path, 3_000, 1_000)
    assert fit(tmp_path, 12)["frames"] == 3_000
