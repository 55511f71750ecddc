"""What a stream costs a frame beyond the bare arithmetic.

    python benchmarks/streaming.py

The bare arithmetic is the compiled loop over one long chunk. CPU time, the least of 10 repeats.
"""

import time

import numpy as np

from echolearn import ESNClassifier, ESNRegressor
from echolearn.readout.online import LMS, RLS

FEATURES, OUTPUTS, FRAMES, REPEATS = 20, 10, 500, 10


def microseconds_a_frame(run, frames):
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return 1e6 * min(times) / frames


def row(name, units, answer, whole, X):
    def one_by_one():
        for frame in X:
            answer(frame)

    each = microseconds_a_frame(one_by_one, len(X))
    bare = microseconds_a_frame(lambda: whole(X), len(X))
    print(f"{units:>6} {name:<34} {each:>9.1f} {bare:>9.1f} {each - bare:>9.1f}")


def main():
    rng = np.random.default_rng(0)
    sequences = [rng.standard_normal((100, FEATURES)) for _ in range(10)]
    labels = [rng.integers(0, OUTPUTS, 100) for _ in sequences]
    values = [rng.standard_normal((100, OUTPUTS)) for _ in sequences]
    X, Y = rng.standard_normal((FRAMES, FEATURES)), rng.standard_normal((FRAMES, OUTPUTS))
    print(f"{FEATURES} features, {OUTPUTS} outputs; microseconds a frame")
    print(f"{'units':>6} {'':<34} {'stream':>9} {'bare':>9} {'overhead':>9}")
    for units in (100, 300):
        how = {"hidden_units": units, "learn": "none", "validation_fraction": 0.0}
        classifier = ESNClassifier(**how).fit(sequences, labels).stream()
        ridge = ESNClassifier(**how, readout="ridge").fit(sequences, labels).stream()
        regressor = ESNRegressor(**how).fit(sequences, values)
        stream = regressor.stream()
        row("labels", units, classifier.predict, classifier._run, X.astype(np.float32))
        row("probabilities (softmax)", units, classifier.predict_proba, classifier._run, X.astype(np.float32))
        row("probabilities (ridge)", units, ridge.predict_proba, ridge._run, X.astype(np.float32))
        row("values", units, stream.predict, stream._run, X.astype(np.float32))
        for online in (LMS(), RLS()):
            learner = regressor.stream(online=online)
            pairs = list(zip(X, Y, strict=True))
            name = f"values, learning by {type(online).__name__}"
            row(name, units, lambda pair, learner=learner: learner.learn(*pair), _bare(learner, online), pairs)


def _bare(learner, online):
    """The recurrence, and the equations of the online readout."""

    def run(pairs):
        learner._run(np.array([x for x, _ in pairs], dtype=np.float32))
        P, U, phi, E = learner._P, learner._U, np.ones(len(learner._U)), np.ones(OUTPUTS)
        for _ in pairs:
            online.step(P, U, phi, E)

    return run


if __name__ == "__main__":
    main()
