"""Phone states of the AN4 corpus: 13 MFCC per frame, prepared by `echolearn.speech` (117 columns)."""

import argparse
from pathlib import Path

import numpy as np


def load_an4(path):
    """Return {"train" | "valid" | "test": (X, y)} from an4_states.npz.

    X is a list of float32 arrays (frames, 117), y a list of int64 arrays (frames,), one entry per utterance.
    """
    from echolearn.speech.corpus import open_corpus  # here, so that the processes of other libraries do without it

    corpus = open_corpus(f"features:{path}")
    data = {}
    for name in ("train", "valid", "test"):
        X, y = corpus.part(name)
        data[name] = X, [labels.astype(np.int64) for labels in y]
    return data


def load_cepstra(path, parts=("train", "valid")):
    """Return {part: (list of float32 arrays (frames, 13), list of int64 labels)} as they are in the file."""
    with np.load(path, allow_pickle=False) as file:
        ends = np.cumsum(file["lengths"])[:-1]
        cepstra, labels = np.split(file["features"], ends), np.split(file["labels"].astype(np.int64), ends)
        split = file["split"]
    return {
        part: ([cepstra[i] for i in np.flatnonzero(split == part)], [labels[i] for i in np.flatnonzero(split == part)])
        for part in parts
    }


def synthetic_like_an4(seed=0):
    """Return smooth random sequences and labels, as many as AN4 has and about as long, in the same form."""
    from echolearn.speech.features import normalised, with_context, with_differences

    rng = np.random.default_rng(seed)
    data = {}
    for name, utterances in (("train", 708), ("valid", 110), ("test", 130)):
        lengths = np.clip(rng.gamma(4, 68, utterances), 40, 700).astype(int)  # 271 frames on average
        cepstra = [np.cumsum(rng.standard_normal((n, 13)), axis=0).astype(np.float32) for n in lengths]
        X = [with_context(normalised(with_differences(c))) for c in cepstra]
        data[name] = X, [(x[:, 39:].argmax(axis=1) % 102).astype(np.int64) for x in X]
    return data


def load_or_synthetic(path):
    """Return the data and their name: AN4 if the file exists, otherwise synthetic sequences."""
    if path is not None and Path(path).exists():
        return load_an4(path), "AN4"
    return synthetic_like_an4(), "synthetic"


def lda_error(data, split="test"):
    """Return the frame error in percent of a linear discriminant fitted to train: a check of the preparation."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    X, y = data["train"]
    lda = LinearDiscriminantAnalysis().fit(np.vstack(X), np.concatenate(y))
    X, y = data[split]
    return 100 * (1 - lda.score(np.vstack(X), np.concatenate(y)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="path of an4_states.npz")
    print(f"LDA test error {lda_error(load_an4(parser.parse_args().data)):.2f} %")
