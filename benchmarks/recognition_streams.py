"""Recognition while listening, on AN4's validation part: what it costs in error and time, and how late phones appear.

    python benchmarks/recognition_streams.py --data an4_states.npz

One network of 100 units and one deep network per way of normalising the features, one seed. The test part is not
touched. Times are processor times of one core.
"""

import argparse
import tempfile
import time

import numpy as np
from sklearn.base import clone

import an4
import results
from echolearn import DeepESNClassifier, ESNClassifier
from echolearn.speech.recognition import learn_recognizer
from echolearn.speech.recognition._learner import valid_part
from echolearn.speech.recognition._transcription import text_of
from echolearn.speech.recognition._tuning import evaluate_phones

SEED = 0
NETWORKS = {
    "one layer, 100 units": ESNClassifier(100, random_state=SEED),
    "deep, six layers of 96 units": DeepESNClassifier(96, epochs=10, dropout=0.0, random_state=SEED),
}
TIMED = 20  # utterances that are pushed frame by frame


def main():
    """Measure and write benchmarks/results/recognition_streams.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="an4_states.npz")
    path = an4.data_file(parser.parse_args().data)
    cepstra = an4.load_cepstra(path)["valid"][0]
    rows = []
    for normalise in ("utterance", "corpus", "running"):
        with tempfile.TemporaryDirectory() as folder:
            corpus = an4.corpus_without_test(path, folder, normalise)
            for name, network in NETWORKS.items():
                rows.append({"network": name} | measured(clone(network), corpus, normalise, cepstra))
                print(rows[-1], flush=True)
        results.write("recognition_streams", rows, seed=SEED)


def measured(network, corpus, normalise, cepstra):
    """Return the phone error of a recogniser on valid, and how it streams if it can."""
    names = np.array(corpus.state_names)
    train, valid = ((X, [names[labels] for labels in y]) for X, y in map(corpus.part, ("train", "valid")))
    recognizer = learn_recognizer(network.fit(*train, validation=valid), corpus)
    part = valid_part(corpus)
    found = recognizer.recognize_all(zip(part.phones, valid[0], strict=True))
    total = evaluate_phones(part.phones, {name: t.phones for name, t in found.items()}).total
    row = {"normalise": normalise, "phone_error": 100 * total.error_rate, "phones": total.reference}
    if normalise == "utterance":
        return row
    offline = [text_of(found[name].phones) for name in part.phones]
    return {**row, **streamed(recognizer, cepstra, offline), **delays(recognizer, cepstra[:TIMED])}


def streamed(recognizer, cepstra, offline):
    """Return how many texts of streams, in pieces of a tenth of a second, are those of whole utterances."""
    same = 0
    for frames, text in zip(cepstra, offline, strict=True):
        stream = recognizer.stream()
        final = [token for k in range(0, len(frames), 10) for token in stream.push_frames(frames[k : k + 10]).final]
        same += text_of([*final, *stream.finish().final]) == text
    return {"utterances": len(cepstra), "equal": same}


def delays(recognizer, cepstra):
    """Return milliseconds of processor time per frame, and from the end of a phone to its first appearance."""
    spent, shown = [], []
    for frames in cepstra:
        stream, seen, final = recognizer.stream(), {}, []
        for k in range(len(frames)):
            started = time.process_time()
            update = stream.push_frames(frames[k : k + 1])
            spent.append(1000 * (time.process_time() - started))
            for token in (*update.final, *update.partial):
                seen.setdefault((token.name, token.start), k + 1)
            final += update.final
        final += stream.finish().final
        shown += [10 * (seen[t.name, t.start] - t.end) for t in final if (t.name, t.start) in seen and text_of([t])]
    return {
        "ms_per_frame": float(np.mean(spent)),
        "ms_per_frame_99": float(np.quantile(spent, 0.99)),
        "delay_ms": float(np.median(shown)),
        "delay_ms_95": float(np.quantile(shown, 0.95)),
    }


if __name__ == "__main__":
    main()
