"""
Speech, frame by frame
======================

Does learning the weights help to recognise speech? Two networks of 100 units label every frame of 10 ms with the phone
that is spoken: one has random weights, and one has learned weights. The data are two and a half minutes of synthetic
speech by many voices.

The speech is made by espeak-ng, which comes with the extra `speech` (`pip install 'echolearn[speech]'`).
"""

import tempfile
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNClassifier
from echolearn.speech import open_corpus

# %%
# Frames and phones
# -----------------
#
# The corpus has one row of features and one state per frame: the first, middle or last part of a phone. Here the states
# of a phone are joined. The voices of the test part do not occur in the training part.
with tempfile.TemporaryDirectory() as cache:
    corpus = open_corpus("synthetic", frames=15_000, seed=0, cache=cache)
phone_of = np.array([state.rpartition("_s")[0] for state in corpus.state_names])
X, y = corpus.part("train")
X_new, y_new = corpus.part("test")
y, y_new = ([phone_of[states] for states in labels] for labels in (y, y_new))
print(f"{len(X)} sentences to learn from, {len(X_new)} to test, {len(set(np.concatenate(y)))} phones")

# %%
esns = {
    "random weights": ESNClassifier(100, learn="none").fit(X, y),
    "learned weights": ESNClassifier(100).fit(X, y),
}
errors = {name: 1 - esn.score(X_new, y_new) for name, esn in esns.items()}
for name, error in errors.items():
    print(f"{name}: {error:.1%} of {sum(map(len, y_new)):,} test frames are wrong")

# %%
# One sentence
# ------------
#
# The first sentence of the test part. Bright cells are the probability of a phone at a frame, and boxes the phones that
# were spoken: a perfect network would fill every box and nothing else.
phones, features = y_new[0], X_new[0]
names = list(dict.fromkeys(phones))
seconds = len(phones) / 100
starts = [0, *(np.flatnonzero(phones[1:] != phones[:-1]) + 1), len(phones)]

figure, grid = plt.subplots(3, 1, figsize=(11, 9), sharex=True, height_ratios=(1, 2.4, 2.4), layout="constrained")
grid[0].imshow(features[:, :39].T, aspect="auto", extent=(0, seconds, 0, 39), cmap="viridis", origin="lower")
grid[0].set(title="The input: 39 features per frame", ylabel="feature")
for axes, (title, esn) in zip(grid[1:], esns.items(), strict=True):
    known = esn.classes_.tolist()
    P = esn.predict_proba(features)
    picture = np.stack([P[:, known.index(n)] if n in known else np.zeros(len(P)) for n in names])
    extent = (0, seconds, len(names), 0)
    image = axes.imshow(picture, aspect="auto", extent=extent, cmap="magma", vmin=0, vmax=1, interpolation="nearest")
    for start, stop in pairwise(starts):
        corner = (start / 100, names.index(phones[start]))
        axes.add_patch(plt.Rectangle(corner, (stop - start) / 100, 1, fill=False, ec="#7FD4EF", lw=1))
    axes.set(title=f"{title}: {errors[title]:.1%} of all test frames wrong", ylabel="phone")
    axes.set_yticks(np.arange(len(names)) + 0.5, names, fontsize=8)
grid[2].set_xlabel("time in seconds")
figure.colorbar(image, ax=list(grid[1:]), label="probability", aspect=40, pad=0.01)

plt.show()

# %%
# The learned network is wrong in fewer frames, and its probabilities are closer to one inside the boxes.
#
# Limits
# ------
#
# The networks are small, the training data short, and both have one seed. On recorded speech with more units the errors
# and the gain differ: see the evidence pages of this site, which compare both kinds of networks on recorded corpora.
