"""
A recogniser listens
====================

A small recogniser is trained on a few minutes of synthetic speech, and then given a sentence of a voice that it has not
heard, half a second at a time. Above, the most probable states of speech over time; below, what it reports while it
listens. Needs the extra `speech`.

    python examples/plot_listening.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNClassifier
from echolearn.speech.corpus import open_corpus

corpus = open_corpus("synthetic", frames=15_000, normalise="running")
X, y = corpus.part("train")
X_test, y_test = corpus.part("test")
esn = ESNClassifier(100, epochs=10).fit(X, y)
stream, answers = esn.stream(), []
for frame in X_test[0]:
    answers.append(stream.predict_proba(frame))  # one frame, every 10 ms
P = np.array(answers).squeeze()
names = [corpus.state_names[k] for k in esn.classes_]
shown = np.argsort(-P.max(axis=0))[:25]
shown = shown[np.argsort(P[:, shown].argmax(axis=0))]
right = (esn.classes_[P.argmax(axis=1)] == y_test[0]).mean()
print(f"{right:.1%} of the frames of this utterance have the right state, of {len(names)}")

figure, axes = plt.subplots(figsize=(10, 5), layout="constrained")
axes.imshow(P[:, shown].T, aspect="auto", cmap="magma", extent=(0, len(P) / 100, len(shown) - 0.5, -0.5))
axes.set_yticks(range(len(shown)), [names[k] for k in shown], fontsize=7)
axes.set(xlabel="seconds", title="Probabilities of states, frame by frame")

for axes in figure.axes:
    axes.spines[["top", "right"]].set_visible(False)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=80)
else:
    plt.show()
