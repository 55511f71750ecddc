"""
Speech, frame by frame
======================

A minute of synthetic speech (espeak-ng; `pip install 'echolearn[speech]'`), 100 frames per second, and the phone of
every frame. One network of 100 units with random weights and one with learned weights; then one test sentence as both
recognise it: its phones, and the probability that the network gives to each.

    python examples/plot_speech_frames.py [picture.png]
"""

import sys
import tempfile
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNClassifier
from echolearn.speech.corpus import open_corpus
from echolearn.speech.phones import split_state

with tempfile.TemporaryDirectory() as cache:
    corpus = open_corpus("synthetic", frames=6000, seed=0, cache=cache)
    phone_of = np.array([split_state(state)[0] for state in corpus.state_names])
    parts = {part: corpus.part(part) for part in ("train", "test")}
    (X, y), (X_new, y_new) = (([*X], [phone_of[states] for states in y]) for X, y in parts.values())

esns = {
    "random weights": ESNClassifier(100, learn="none").fit(X, y),
    "learned weights": ESNClassifier(100, epochs=8).fit(X, y),
}

phones, features = y_new[0], X_new[0]
names = list(dict.fromkeys(phones))
figure, grid = plt.subplots(3, 1, figsize=(11, 8), sharex=True, height_ratios=(1, 2, 2), layout="constrained")
seconds = len(phones) / 100
grid[0].imshow(features[:, :39].T, aspect="auto", extent=(0, seconds, 0, 39), cmap="viridis", origin="lower")
grid[0].set(title="the input: 39 features per frame", yticks=[])
starts = [0, *(np.flatnonzero(phones[1:] != phones[:-1]) + 1), len(phones)]
for axes, (title, esn) in zip(grid[1:], esns.items(), strict=True):
    wrong = 1 - esn.score(X_new, y_new)
    print(f"{title}: {wrong:.1%} of {sum(map(len, y_new)):,} test frames wrong")
    known = esn.classes_.tolist()
    P = esn.predict_proba(features)
    picture = np.stack([P[:, known.index(n)] if n in known else np.zeros(len(P)) for n in names])
    extent = (0, seconds, len(names), 0)
    axes.imshow(picture, aspect="auto", extent=extent, cmap="magma", vmin=0, vmax=1, interpolation="nearest")
    for start, stop in pairwise(starts):
        corner = (start / 100, names.index(phones[start]))
        axes.add_patch(plt.Rectangle(corner, (stop - start) / 100, 1, fill=False, ec="#7fd4ef", lw=1))
    axes.set(title=f"{title}: {wrong:.1%} of frames wrong; boxes: the phones spoken", ylabel="phone")
    axes.set_yticks(np.arange(len(names)) + 0.5, names, fontsize=8)
grid[2].set_xlabel("seconds")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=110)
else:
    plt.show()
