"""A small `features:` corpus in which the states follow from the features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

STATES = tuple(f"{phone}_s{state}" for phone in ("aa", "b", "sil") for state in (2, 3, 4))


def arrays(seed: int = 0, utterances: int = 24) -> dict[str, Any]:
    """Return the arrays of the file. A frame's state depends on its own features and on those of the frame before."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(30, 60, utterances)
    X = rng.normal(size=(int(lengths.sum()), 5)).astype(np.float32)
    before = np.vstack([X[:1], X[:-1]])
    phone = np.argmax(X[:, :3] + 0.5 * before[:, :3], axis=1)
    state = np.clip(np.round(1 + before[:, 3]), 0, 2).astype(int)
    split = np.array((["train"] * 4 + ["valid", "test"]) * (utterances // 6))
    return {
        "features": X,
        "labels": (3 * phone + state).astype(np.int16),
        "lengths": lengths.astype(np.int32),
        "utterances": np.array([f"u{k:02}" for k in range(utterances)]),
        "speakers": np.array([f"s{k % 6}" for k in range(utterances)]),
        "split": split,
        "state_names": np.array(STATES),
    }


def write(path: Path, **changes: Any) -> Path:
    """Write the file, with some arrays replaced."""
    np.savez(path, **{**arrays(), **changes})
    return path
