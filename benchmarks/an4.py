"""Phone states of the AN4 corpus: 13 MFCC per frame, as they are or prepared by `echolearn.speech` (117 columns).

The functions that benchmarks call return train and valid. The test part has one door, `protocol.open_test`.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

TEST = "test"


def data_file(path):
    """Return the path of the AN4 file, or end the program and say how to get the file."""
    if path is None or not Path(path).is_file():
        where = "No AN4 file was given" if path is None else f"There is no AN4 file at {path}"
        sys.exit(
            f"{where}. Build it from the corpus' public distribution with\n    python benchmarks/build_an4.py\n"
            "and pass its path with --data (make: DATA=). Nothing has been measured."
        )
    return Path(path)


def load_an4(path):
    """Return {"train" | "valid": (X, y)} from an4_states.npz.

    X is a list of float32 arrays (frames, 117), y a list of int64 arrays (frames,), one entry per utterance.
    """
    return {name: (prepare(X), y) for name, (X, y) in load_cepstra(path).items()}


def load_cepstra(path):
    """Return the same parts as 13 MFCC per frame."""
    return read_parts(path, ["train", "valid"])


def read_parts(path, names):
    """Return {name: (cepstra, labels)} of some parts; of the test part, only for `protocol.open_test`."""
    with np.load(data_file(path), allow_pickle=False) as file:
        ends = np.cumsum(file["lengths"])[:-1]
        cepstra = np.split(file["features"].astype(np.float32, copy=False), ends)
        labels = np.split(file["labels"].astype(np.int64), ends)
        part = file["split"]
    chosen = {name: np.flatnonzero(part == name) for name in names}
    return {name: ([cepstra[i] for i in index], [labels[i] for i in index]) for name, index in chosen.items()}


def corpus_without_test(path, folder, normalise):
    """Return train and valid as a `Corpus` of echolearn.speech; its file goes to a folder.

    A corpus has three parts: its test part is a copy of the first training utterance.
    """
    from echolearn.speech import open_corpus

    own = Path(folder) / "train_and_valid.npz"
    with np.load(data_file(path), allow_pickle=False) as file:
        arrays = dict(file)
    kept = np.flatnonzero(arrays["split"] != TEST)
    kept = np.append(kept, kept[arrays["split"][kept] == "train"][0])
    ends = np.cumsum(arrays["lengths"])
    rows = np.concatenate([np.arange(ends[k] - arrays["lengths"][k], ends[k]) for k in kept])
    for name in ("features", "labels"):
        arrays[name] = arrays[name][rows]
    for name in ("lengths", "utterances", "speakers", "split"):
        arrays[name] = arrays[name][kept]
    arrays["utterances"] = np.append(arrays["utterances"][:-1], "copy")
    arrays["speakers"] = np.append(arrays["speakers"][:-1], "copy")
    arrays["split"] = np.append(arrays["split"][:-1], TEST)
    np.savez(own, **arrays)
    return open_corpus(f"features:{own}", normalise=normalise)


def prepare(cepstra):
    """Return the inputs of our networks: with differences, normalised per utterance, with a context of three frames."""
    # here, so that the processes of other libraries do without it
    from echolearn.speech import normalised, with_context, with_differences

    return [with_context(normalised(with_differences(c))) for c in cepstra]


def lda_error(data, split="valid"):
    """Return the frame error in percent of a linear discriminant fitted to train: a check of the preparation."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    X, y = data["train"]
    lda = LinearDiscriminantAnalysis().fit(np.vstack(X), np.concatenate(y))
    X, y = data[split]
    return 100 * (1 - lda.score(np.vstack(X), np.concatenate(y)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="path of an4_states.npz")
    print(f"LDA valid error {lda_error(load_an4(parser.parse_args().data)):.2f} %")
