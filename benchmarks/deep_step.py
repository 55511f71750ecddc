"""One training step of a deep network: how far it is from its matrix products alone, and what two threads give.

    python benchmarks/deep_step.py

Six layers of 128 units learn from four sequences of 270 frames with 117 inputs and 102 classes, as on AN4. The products
are those of the layers and the readout, forward and back, and those of Newton-Schulz in Muon, in arrays that exist
already. All are timed in turns in one run, on a machine that does nothing else, and the fastest turn counts.
"""

import time

import numpy as np
from threadpoolctl import threadpool_limits

import results
from echolearn.execution.blas import one_blas_thread
from echolearn.reservoir._deep_reservoir import DeepReservoir
from echolearn.sequences.dataset import Dataset
from echolearn.training.objectives.deep_network import DeepObjective, DeepPlan
from echolearn.training.optimizers import NEWTON_SCHULZ_STEPS

UNITS, LAYERS, SEQUENCES, FRAMES, INPUTS, CLASSES = 128, 6, 4, 270, 117, 102
TURNS, REPEATS = 15, 10
GOALS = {"one step, in units of its products": (1.5, False), "speed of two threads, in units of one": (1.7, True)}


def objective():
    """Return the objective of a network with drawn weights, and the numbers of the sequences of its one mini-batch."""
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((FRAMES, INPUTS)).astype(np.float32) for _ in range(SEQUENCES)]
    data = Dataset(X, [rng.integers(0, CLASSES, FRAMES) for _ in X], CLASSES, True, np.dtype("float32"))
    stack = DeepReservoir.random(INPUTS, UNITS, LAYERS, leak=(0.03, 0.63), angle=np.pi, rng=rng)
    weights = {**stack.weights, "V": rng.standard_normal((UNITS, CLASSES)), "v": np.zeros(CLASSES)}
    plan = DeepPlan(epochs=10, batch_size=SEQUENCES, step_size=1e-4, dropout=0.1, seed=0)
    return DeepObjective(stack, {name: w.astype(np.float32) for name, w in weights.items()}, data, plan)


def products():
    """Return two functions that compute the products of a step: those of the network, and those of Newton-Schulz."""
    rng, half = np.random.default_rng(1), SEQUENCES * FRAMES // 2  # a step computes its mini-batch in two parts
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    X, Z, W, W_0, V, Y = (
        draw(half, INPUTS),
        draw(half, UNITS),
        draw(UNITS, UNITS),
        draw(INPUTS, UNITS),
        draw(UNITS, CLASSES),
        draw(half, CLASSES),
    )
    out, square, of_V, of_W_0 = np.empty_like(Z), np.empty_like(W), np.empty_like(V), np.empty_like(W_0)
    stack = draw(2 * LAYERS, UNITS, UNITS)
    stacked = np.empty_like(stack)

    def of_the_network():
        for _ in range(2):
            np.matmul(X, W_0, out=out)
            np.matmul(X.T, Z, out=of_W_0)
            np.matmul(Z, V, out=Y)
            np.matmul(Z.T, Y, out=of_V)
            np.matmul(Y, V.T, out=out)
            for _ in range(2 * LAYERS):
                np.matmul(Z, W, out=out)
                np.matmul(Z, W.T, out=out)
                np.matmul(Z.T, out, out=square)

    def of_newton_schulz():
        for _ in range(3 * len(NEWTON_SCHULZ_STEPS)):
            np.matmul(stack, stack, out=stacked)

    return of_the_network, of_newton_schulz


def milliseconds(function):
    """Return the time of one call by the clock, from some calls."""
    start = time.perf_counter()
    for _ in range(REPEATS):
        function()
    return 1000 * (time.perf_counter() - start) / REPEATS


def main():
    which, one, two = np.arange(SEQUENCES), objective(), objective()
    network, newton_schulz = products()
    times = {"step, one thread": [], "step, two threads": [], "its products": [], "products of Newton-Schulz": []}
    one.step(which, 1.0)  # compiled
    for _ in range(TURNS):
        with threadpool_limits(1):
            times["step, one thread"].append(milliseconds(lambda: one.step(which, 1.0)))
            times["its products"].append(milliseconds(network))
            times["products of Newton-Schulz"].append(milliseconds(newton_schulz))
        with one_blas_thread():  # each of our threads calls BLAS on its own core
            times["step, two threads"].append(milliseconds(lambda: two.step(which, 1.0)))
    best = {name: min(values) for name, values in times.items()}
    for name, value in best.items():
        print(f"{name}: {value:.2f} ms")
    both = best["its products"] + best["products of Newton-Schulz"]
    ratios = (best["step, one thread"] / both, best["step, one thread"] / best["step, two threads"])
    rows = []
    for (work, (required, at_least)), ours in zip(GOALS.items(), ratios, strict=True):
        reached = ours >= required if at_least else ours <= required
        rows.append(
            {
                "work": work,
                "ours": ours,
                "unit": "",
                "required": f"{'>=' if at_least else '<='} {required}",
                "reached": reached,
            }
        )
        print(f"{work}: {ours:.2f} ({rows[-1]['required']}: {'reached' if reached else 'missed'})")
    without = best["step, one thread"] / best["its products"]
    results.write("deep_step", rows, milliseconds=best, ratio_without_newton_schulz=without)


if __name__ == "__main__":
    main()
