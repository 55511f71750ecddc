"""Our side of the contest: its inputs, its augmentation, and what it returns."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.our_models import augmentation, prepared, train


def speech(count: int, seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    X = [
        np.cumsum(rng.standard_normal((int(rng.integers(20, 40)), 13)), axis=0).astype(np.float32) for _ in range(count)
    ]
    return X, [(x[:, 0] > x[:, 0].mean()).astype(int) + (x[:, 1] > x[:, 1].mean()) for x in X]


def test_inputs_are_normalised_with_differences_and_context() -> None:
    (x,) = prepared(speech(1)[0])
    assert x.shape[1] == 117
    np.testing.assert_allclose(x[:, 39:78].mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(x[:, 39:78].std(axis=0), 1, atol=1e-3)
    np.testing.assert_array_equal(x[1:, :39], x[:-1, 39:78])


def test_warps_maps_and_masks_are_drawn_with_the_generator() -> None:
    cepstra = speech(3)[0]
    (x, *_) = prepared(cepstra)
    assert augmentation(cepstra, 0.0, 0.0, 0) is None
    changed = augmentation(cepstra, 0.1, 0.2, 5)
    one, again, other = (changed(x, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert one.shape == x.shape
    assert not np.array_equal(one, other)


def test_training_returns_probabilities_of_all_classes_and_its_seconds() -> None:
    data = {"train": speech(12), "valid": speech(4, seed=1)}
    settings = {"units": 8, "layers": 2, "epochs": 3, "spread": 0.1, "maps": 0.2, "masked": 3}
    answers, facts = train(data, settings, 1.0, 0)
    P = answers(data["valid"][0])
    assert [p.shape for p in P] == [(len(x), 3) for x in data["valid"][0]]
    np.testing.assert_allclose(np.concatenate(P).sum(axis=1), 1, rtol=1e-5)
    assert facts["epochs"] == 3
    assert facts["process_seconds"] > 0
    assert facts["weights"] > 8 * 117
    with pytest.raises(TypeError, match="no setting 'unit'"):
        train(data, {"unit": 8}, 1.0, 0)
