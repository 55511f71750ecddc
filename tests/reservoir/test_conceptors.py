"""Conceptors against their definition, the rules of logic, and a task."""

from __future__ import annotations

import numpy as np
import pytest

from echolearn import Reservoir
from echolearn.reservoir.conceptors import Conceptor, classify, conceptor
from echolearn.states import harvest


def states(seed, rank=6, N=6, n=50):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, N))


def test_the_definition():
    H = states(0)
    R = H.T @ H / len(H)
    expected = R @ np.linalg.inv(R + np.eye(6) / 4.0)
    np.testing.assert_allclose(conceptor(H, aperture=2.0).matrix, expected, atol=1e-12)
    np.testing.assert_allclose(conceptor(H, aperture=1.0).with_aperture(2.0).matrix, expected, atol=1e-10)


def test_it_minimises_its_objective():
    """C minimises the mean of |h - C h|² plus aperture^-2 |C|²: any other matrix is worse."""
    H, C = states(1), conceptor(states(1), aperture=3.0).matrix

    def objective(M):
        return ((H - H @ M) ** 2).sum() / len(H) + (M**2).sum() / 9.0

    for seed in range(5):
        assert objective(C) < objective(C + 1e-3 * np.random.default_rng(seed).standard_normal(C.shape))


def test_the_rules_of_logic():
    C, D = conceptor(states(0), aperture=1.0), conceptor(states(1), aperture=0.5)
    same = np.testing.assert_allclose
    same((~~C).matrix, C.matrix)
    same((C & D).matrix, (D & C).matrix, atol=1e-9)
    same((~(C & D)).matrix, (~C | ~D).matrix, atol=1e-9)  # de Morgan
    R, Q = (np.linalg.inv(np.eye(6) - c.matrix) @ c.matrix for c in (C, D))  # OR adds up the correlations
    same((C | D).matrix, (R + Q) @ np.linalg.inv(R + Q + np.eye(6)), atol=1e-9)
    identity = Conceptor(np.eye(6))
    same((C & identity).matrix, C.matrix, atol=1e-9)
    assert (C & D).quota < min(C.quota, D.quota) <= max(C.quota, D.quota) < (C | D).quota


def test_projections_of_subspaces():
    """Conceptors of wide aperture are projections; AND is that onto the common directions."""
    e = np.eye(3)
    C, D = (conceptor(e[list(which)], aperture=1e3) for which in ((0, 1), (1, 2)))
    np.testing.assert_allclose((C & D).matrix, np.diag([0, 1, 0]), atol=1e-3)
    np.testing.assert_allclose(C.project(np.ones((1, 3))), [[1, 1, 0]], atol=1e-3)
    assert C.evidence(e[:2]) == pytest.approx(1, abs=1e-3)
    assert C.evidence(e[2:]) == pytest.approx(0, abs=1e-3)


def test_patterns_are_told_apart():
    reservoir = Reservoir.random(1, 60, input_scaling=1.0, bias_scaling=0.3, random_state=0)
    t = np.arange(300)
    waves = {"slow": 0.15, "middle": 0.5, "fast": 1.1}
    known = {name: conceptor(harvest(reservoir, np.sin(w * t)[:, None])[100:]) for name, w in waves.items()}
    for name, w in waves.items():
        assert classify(known, harvest(reservoir, np.sin(w * t + 1.3)[:, None])[150:]) == name


def test_bad_input_is_explained():
    with pytest.raises(ValueError, match="two or more"):
        classify({"one": conceptor(states(0))}, states(0))
    with pytest.raises(ValueError, match="aperture"):
        conceptor(states(0), aperture=0)
    with pytest.raises(ValueError, match="expected \\(n_steps, N\\)"):
        conceptor(np.zeros(3))
    with pytest.raises(ValueError, match="all states are zero"):
        conceptor(states(0)).evidence(np.zeros((3, 6)))
