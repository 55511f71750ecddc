"""AN4 phone states, prepared the usual way: 13 MFCC -> 39 with deltas -> 117 with context."""

import argparse
from pathlib import Path

import numpy as np


def load_an4(path):
    """an4_states.npz -> {"train" | "valid" | "test": (X, y)}.

    X is a list of float32 (frames, 117), y a list of int64 (frames,), one entry an utterance.
    """
    with np.load(path, allow_pickle=False) as archive:
        ends = np.cumsum(archive["lengths"])[:-1]
        features = np.split(archive["features"], ends)
        labels = np.split(archive["labels"].astype(np.int64), ends)
        split = archive["split"]
    return {
        name: (
            [prepare(features[i]) for i in np.flatnonzero(split == name)],
            [labels[i] for i in np.flatnonzero(split == name)],
        )
        for name in ("train", "valid", "test")
    }


def synthetic_like_an4(seed=0):
    """Where the corpus is missing: smooth random sequences and labels, as many and about as long as AN4's."""
    rng = np.random.default_rng(seed)
    data = {}
    for name, utterances in (("train", 708), ("valid", 110), ("test", 130)):
        lengths = np.clip(rng.gamma(4, 68, utterances), 40, 700).astype(int)  # 271 frames on average
        X = [prepare(np.cumsum(rng.standard_normal((n, 13)), axis=0)) for n in lengths]
        data[name] = X, [(x[:, 39:].argmax(axis=1) % 102).astype(np.int64) for x in X]
    return data


def load_or_synthetic(path):
    """AN4 if the file is there -> data, what it is."""
    if path is not None and Path(path).exists():
        return load_an4(path), "AN4"
    return synthetic_like_an4(), "synthetic"


def prepare(mfcc):
    """(frames, 13) -> (frames, 117)."""
    mfcc = np.asarray(mfcc, dtype=np.float64)
    velocity = delta(mfcc)
    frames = np.hstack([mfcc, velocity, delta(velocity)])
    frames = (frames - frames.mean(axis=0)) / frames.std(axis=0)
    return np.hstack([shifted(frames, -1), frames, shifted(frames, 1)]).astype(np.float32)


def delta(frames, window=2):
    """Regression slope d_t = sum_k k (c_{t+k} - c_{t-k}) / (2 sum_k k^2), edges replicated."""
    steps = range(1, window + 1)
    slope = sum(k * (shifted(frames, k) - shifted(frames, -k)) for k in steps)
    return slope / (2 * sum(k * k for k in steps))


def shifted(frames, k):
    """Row t becomes row t + k; beyond the ends the first or last row is repeated."""
    return frames[np.clip(np.arange(len(frames)) + k, 0, len(frames) - 1)]


def lda_error(data, split="test"):
    """Frame error in percent of a linear discriminant trained on train: the witness for the preparation."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    X, y = data["train"]
    lda = LinearDiscriminantAnalysis().fit(np.vstack(X), np.concatenate(y))
    X, y = data[split]
    return 100 * (1 - lda.score(np.vstack(X), np.concatenate(y)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="path of an4_states.npz")
    print(f"LDA test error {lda_error(load_an4(parser.parse_args().data)):.2f} %")
