"""What a stream costs per frame beyond the bare arithmetic.

    python benchmarks/streaming.py

The bare arithmetic is the compiled loop over one long chunk. CPU time, the least of 10 repeats.
"""

import time

import numpy as np

from echolearn import ESNClassifier, ESNRegressor
from echolearn.readout import LMS, RLS
from echolearn.streams import Stream

FEATURES, OUTPUTS, FRAMES, REPEATS = 20, 10, 500, 10


def microseconds_per_frame(function, frames):
    """Return the least CPU time of a call that takes so many frames."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return 1e6 * min(times) / frames


def print_row(name, units, answer, bare, frames):
    """Print the costs of answering one frame after another, and of the bare arithmetic for all of them."""

    def one_by_one():
        for frame in frames:
            answer(frame)

    single = microseconds_per_frame(one_by_one, len(frames))
    least = microseconds_per_frame(lambda: bare(frames), len(frames))
    print(f"{units:>6} {name:<34} {single:>9.1f} {least:>9.1f} {single - least:>9.1f}")


def bare_stream(esn):
    """Return a stream of the same network that does not turn outputs into answers."""
    network = esn.network_
    return Stream(network.reservoir, network.readout.U, softmax=network.readout.softmax, dtype=esn.dtype)


def bare_learning(esn, online):
    """Return a function that runs the recurrence and, for every frame, the equations of the online readout."""
    stream, U = bare_stream(esn), esn.network_.readout.U
    phi, E = np.ones(len(U)), np.ones(OUTPUTS)
    P = np.eye(len(U)) if isinstance(online, RLS) else np.empty(0)

    def run(pairs):
        stream.predict(np.array([x for x, _ in pairs]))
        for _ in pairs:
            online.step(P, U, phi, E)

    return run


def main():
    rng = np.random.default_rng(0)
    sequences = [rng.standard_normal((100, FEATURES)) for _ in range(10)]
    labels = [rng.integers(0, OUTPUTS, 100) for _ in sequences]
    values = [rng.standard_normal((100, OUTPUTS)) for _ in sequences]
    X, Y = rng.standard_normal((FRAMES, FEATURES)), rng.standard_normal((FRAMES, OUTPUTS))
    frames, pairs = X.astype(np.float32), list(zip(X, Y, strict=True))
    print(f"{FEATURES} features, {OUTPUTS} outputs; microseconds per frame")
    print(f"{'units':>6} {'':<34} {'stream':>9} {'bare':>9} {'overhead':>9}")
    for units in (100, 300):
        settings = {"hidden_units": units, "learn": "none", "validation_fraction": 0.0}
        softmax = ESNClassifier(**settings).fit(sequences, labels)
        ridge = ESNClassifier(**settings, readout="ridge").fit(sequences, labels)
        regressor = ESNRegressor(**settings).fit(sequences, values)
        for name, esn, answer in (
            ("labels", softmax, softmax.stream().predict),
            ("probabilities (softmax)", softmax, softmax.stream().predict_proba),
            ("probabilities (ridge)", ridge, ridge.stream().predict_proba),
            ("values", regressor, regressor.stream().predict),
        ):
            print_row(name, units, answer, bare_stream(esn).predict, frames)
        for online in (LMS(), RLS()):
            learner = regressor.stream(online=online)
            name = f"values, learning by {type(online).__name__}"
            bare = bare_learning(regressor, online)
            print_row(name, units, lambda pair, learner=learner: learner.learn(*pair), bare, pairs)


if __name__ == "__main__":
    main()
