"""
A recogniser on a live stream
=============================

What does a recogniser report while a sentence is still being spoken? A small one is trained on a few minutes of
synthetic speech. It then receives a sentence by a voice that is not in the training data, a quarter of a second at a
time. Words appear as soon as they are likely, may still change, and become final.

The speech is made by espeak-ng, which comes with the extra `speech` (`pip install 'echolearn[speech]'`).
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNClassifier
from echolearn.speech import open_corpus
from echolearn.speech.recognition import learn_recognizer, read_lexicon

plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False

# %%
# Train
# -----
#
# The network maps every frame of 10 ms to the state of a phone (its first, middle or last part).
# `normalise="running"` makes features that can be computed while the sound arrives. `learn_recognizer` adds the
# durations of phones and the pronunciations and sequences of words, and tunes the decoder on the validation part.
folder = tempfile.TemporaryDirectory()
corpus = open_corpus("synthetic", frames=15_000, normalise="running", cache=folder.name)
esn = ESNClassifier(150, epochs=20).fit(*corpus.part("train"))
recognizer = learn_recognizer(esn, corpus, lexicon=read_lexicon(corpus.lexicon))

# %%
# Recognise
# ---------
#
# The first sentence of the test part is pushed into a stream, 25 frames at a time. `stream.push` accepts samples of
# sound in the same way. Every update has the words that have become final and those that may still change.
number = corpus.which("test")[0]
features, spoken = corpus.features[number], " ".join(corpus.words[number])
stream, final, rows = recognizer.stream(pause=0.3), [], []
for start in range(0, len(features), 25):
    update = stream.push_frames(features[start : start + 25])
    final += update.final
    rows.append((min(start + 25, len(features)) / 100, list(final), update.partial))
final += stream.finish().final
rows.append((len(features) / 100, list(final), ()))
print(f"spoken:     {spoken}")
print(f"recognised: {' '.join(token.name for token in final)}")

# %%
# Above, the probabilities of the phones that are likely at some time. Below, one row for every update. A word is drawn
# where it lies in the recording: light while it may still change, dark when it is final.
P = esn.predict_proba(features)
phone_of = np.array([corpus.state_names[k].rpartition("_s")[0] for k in esn.classes_])
phones = [phone for phone in dict.fromkeys(phone_of) if P[:, phone_of == phone].sum(axis=1).max() > 0.5]
by_phone = np.stack([P[:, phone_of == phone].sum(axis=1) for phone in phones])
order = np.argsort(by_phone.argmax(axis=1))

figure, (top, low) = plt.subplots(2, 1, figsize=(10, 8), layout="constrained", sharex=True)
seconds = len(features) / 100
extent = (0, seconds, len(phones) - 0.5, -0.5)
picture = top.imshow(by_phone[order], aspect="auto", cmap="magma", vmin=0, vmax=1, extent=extent)
top.set_yticks(range(len(phones)), [phones[k] for k in order], fontsize=7)
top.set(ylabel="phone", title="Probabilities of phones, frame by frame")
figure.colorbar(picture, ax=top, label="probability", aspect=30, pad=0.01)
for row, (heard, fixed, partial) in enumerate(rows):
    for token, colour, text in [(t, "#0072B2", "white") for t in fixed] + [(t, "#BFDDEE", "black") for t in partial]:
        width = (token.end - token.start) / 100
        low.barh(row, width, left=token.start / 100, height=0.86, color=colour, edgecolor="white")
        middle = (token.start + token.end) / 200
        low.text(middle, row, token.name, ha="center", va="center", fontsize=8, color=text, clip_on=True)
    low.plot(2 * [heard], [row - 0.5, row + 0.5], color="#D55E00", lw=2)
low.set(xlabel="place in the recording in seconds", ylabel="update", xlim=(0, seconds), ylim=(len(rows) - 0.5, -0.5))
low.set_yticks(range(len(rows)), [*(f"{heard:.2f} s" for heard, _, _ in rows[:-1]), "end"], fontsize=8)
low.set_title("Words appear (light) and become final (dark); orange: the sound received so far")

plt.show()

# %%
# How typical is this sentence?
# -----------------------------
#
# The same recogniser on other sentences of the test part:
for number in corpus.which("test")[1:6]:
    print(f"spoken:     {' '.join(corpus.words[number])}")
    print(f"recognised: {recognizer.recognize(corpus.features[number]).text}\n")
folder.cleanup()

# %%
# Limits
# ------
#
# Two and a half minutes of training speech are very little, and synthetic speech from a small vocabulary is much
# simpler than a recorded conversation. The other sentences contain more errors than the first. The evidence
# pages of this site have error rates.
