"""Figure 7: seconds and memory against units, frames, look-back and threads, compared with the cost model.

    python benchmarks/growth.py            # about five minutes on two idle cores

The model is `echolearn.training.cost_model`; its constants are measured first, in a few seconds. Seconds are processor
seconds summed over all threads, which other work on the machine disturbs little; the model's are those of one thread.
The data are noise: 117 inputs, 120 classes, sequences of 100 to 600 frames. `classical` is one pass for the statistics
and the solution, `gradient` one pass forward and backward at a given U.
"""

import argparse
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from echolearn.execution.blas import one_blas_thread
from echolearn.execution.threads import map_in_order, thread_count
from echolearn.gradients.batch import batch_gradient
from echolearn.gradients.exact import through_time
from echolearn.readout.ridge import solve
from echolearn.readout.statistics import collect
from echolearn.readout.view import Task, frames_at_once, observe, stack
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import group_sequences
from echolearn.sequences.dataset import Dataset
from echolearn.states.run import run
from echolearn.training import cost_model
from measure import in_own_process, measured
from results import table, write

N_IN, CLASSES = 117, 120
UNITS = {100: 100_000, 300: 100_000, 1000: 40_000, 3000: 20_000, 10_000: 10_000}  # units: frames
FRAMES = (10_000, 100_000, 1_100_000)
LOOKBACKS = (1, 3, 10, 50, None)
WITHIN = 1.5
SMALLEST = 50e6  # bytes; smaller amounts cannot be told apart from what the interpreter allocates meanwhile


def noise(frames):
    """Return about so many frames of noise with random labels."""
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((n, N_IN)).astype(np.float32) for n in rng.integers(100, 600, 100)]
    y = [rng.integers(0, CLASSES, len(x)) for x in X]
    count = max(1, round(frames * len(X) / sum(map(len, X))))
    numbers = range(count)
    return Dataset([X[i % 100] for i in numbers], [y[i % 100] for i in numbers], CLASSES, True, np.dtype(np.float32))


def random_reservoir(units, connections=10):
    """Return a random reservoir for these data."""
    return Reservoir.random(N_IN, units, spectral_radius=0.9, connections=connections, leak=(0.1, 0.9), random_state=0)


def processor_seconds(function, repeats=1):
    """Return the least processor seconds of some repeats."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        found.append(time.process_time() - start)
    return min(found)


def calibrate():
    """Return the rates of this machine, from small amounts of each kind of work."""
    A = np.random.default_rng(0).standard_normal((2048, 1024))
    B, G = A.astype(np.float32), A.T @ A
    flops = 2048 * 1024**2
    rates = replace(
        cost_model.TYPICAL_RATES,
        flop=processor_seconds(lambda: B[:, :1000].T @ B, 5) / (2 * 2048 * 1000 * 1024),
        flop64=processor_seconds(lambda: A.T @ A, 5) / flops,
        factor=processor_seconds(lambda: lapack.dpotrf(G), 5) / (1024**3 / 3),
    )
    batch = noise(6000).batch(range(16))
    K, N = batch.frames, 600
    found = []
    for connections in (2, 50):
        reservoir = random_reservoir(N, connections)
        states = run(reservoir, batch)
        D = np.ones_like(states.H)
        forward = processor_seconds(lambda reservoir=reservoir: run(reservoir, batch), 5)
        backward = processor_seconds(
            lambda reservoir=reservoir, states=states, D=D: through_time(
                reservoir, batch, states, D.copy(), lookback=None, washout=0
            ),
            5,
        )
        found.append(np.array([forward, backward]) / (K * N) - 2 * N_IN * rates.flop)
    link = np.maximum((found[1] - found[0]) / 48, 0)
    unit = found[0] - 2 * link
    slower = 1 + N / cost_model.CACHED_UNITS  # the model's own factor for the way back
    H_c = stack(states.H, batch.X, direct=True, intercept=True)

    indicator = sparse.csr_array((np.ones(K), (batch.T, np.arange(K))), shape=(CLASSES, K))

    def columns():
        stack(states.H, batch.X, direct=True, intercept=True)
        indicator @ H_c.astype(np.float64)

    return replace(
        rates,
        unit=unit[0],
        link=link[0],
        unit_back=unit[1] / slower,
        link_back=link[1] / slower,
        column=processor_seconds(columns, 5) / H_c.size,
    )


def measure(work, units, frames, lookback=None):
    """Return processor seconds, seconds and bytes of one measurement, and its job as the model takes it."""
    data, reservoir = noise(frames), random_reservoir(units)
    task = Task(lookback=lookback)
    U = np.random.default_rng(1).standard_normal((units + N_IN + 1, CLASSES)) / 100

    def group_gradient(which):
        batch_gradient(reservoir, task, "exact", U, observe(reservoir, task, data.batch(which)))
        return len(which)

    with measured() as record:
        start = time.process_time()
        if work == "classical":
            solve(collect(reservoir, data, task), 1.0, intercept=True)
        else:
            sum(map_in_order(group_gradient, group_sequences(data.lengths, frames_at_once(units))))
        cpu = time.process_time() - start
    job = cost_model.Job(
        N=units,
        n_in=N_IN,
        n_out=CLASSES,
        connections=10,
        frames=int(data.lengths.sum()),
        choose=False,
        threads=thread_count(),
    )
    return cpu, record["seconds"], record["extra_mb"] * 1e6, job


def predict(work, job, rates):
    """Return what the model expects: seconds of one thread, and bytes."""
    one = replace(job, threads=1)
    seconds = cost_model.states(one, job.frames, rates)
    if work == "classical":
        seconds += cost_model.gram(one, job.frames, rates) + cost_model.solve(one, rates)
        return seconds, cost_model.ridge_bytes(job)
    seconds += cost_model.gradient(one, job.frames, rates)
    frames = min(frames_at_once(job.N), job.frames)
    return seconds, job.threads * frames * job.itemsize * (3 * job.N + job.M)


def measure_all(works, threads, rates=None):
    """Return the measurements of `works` in one process on so many threads, and its rates unless they are given."""
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:threads]))
    found = []
    with one_blas_thread():
        for work in ("classical", "gradient"):
            measure(work, 50, 2000)  # compiles
        rates = rates or calibrate()
        for work in works:
            cpu, wall, peak, job = measure(*work)
            seconds, nbytes = predict(work[0], job, rates)
            found.append(
                {
                    "work": work[0],
                    "units": work[1],
                    "frames": job.frames,
                    "lookback": work[3] if len(work) > 3 else None,
                    "threads": threads,
                    "seconds": cpu,
                    "wall_seconds": wall,
                    "model_seconds": float(seconds),
                    "bytes": peak,
                    "model_bytes": nbytes,
                }
            )
    return found, rates


def rows_of(found):
    """Return the rows of the table: seconds of every measurement, and memory where the units vary."""
    rows = []
    for f in found:
        name = f"{f['work']}, N={f['units']}, {f['frames']} frames, m={f['lookback']}, {f['threads']} threads"
        clocks = [("s", f["seconds"], f["model_seconds"])]
        sizes = [("MB", f["bytes"] / 1e6, f["model_bytes"] / 1e6)] if f["set"] == "units" else []
        for unit, ours, model in clocks + sizes:
            counts = unit == "s" or f["model_bytes"] > SMALLEST
            rows.append(
                {
                    "figure": 7,
                    "work": name,
                    "ours": ours,
                    "peer": model,
                    "peer_name": "cost model",
                    "unit": unit,
                    "ratio": model / ours,
                    "required": f"within {WITHIN}" if counts else None,
                    "reached": max(ours / model, model / ours) <= WITHIN if counts else None,
                }
            )
    rows[0]["found"] = found
    return rows


def draw(found, path):
    """Draw three panels: seconds measured (dots) and expected by the model (lines)."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.fonttype": "path", "font.size": 9})
    grey = "#888888"
    figure, axes = plt.subplots(1, 3, figsize=(9, 3))
    panels = (
        ("units", "hidden units", [f for f in found if f["set"] == "units"]),
        ("frames", "frames (100 units)", [f for f in found if f["set"] == "frames"]),
        ("lookback", "lookback m (300 units)", [f for f in found if f["set"] == "lookback"]),
    )
    for axis, (key, label, points) in zip(axes, panels, strict=True):
        for work, colour in (("classical", "#2a7fbf"), ("gradient", "#d9822b")):
            chosen = [f for f in points if f["work"] == work]
            if not chosen:
                continue
            x = [f[key] if f[key] is not None else 600 for f in chosen]
            per = [1e6 / f["frames"] if key == "units" else 1.0 for f in chosen]
            axis.plot(x, [f["model_seconds"] * p for f, p in zip(chosen, per, strict=True)], color=colour, lw=1.2)
            axis.plot(x, [f["seconds"] * p for f, p in zip(chosen, per, strict=True)], "o", color=colour, label=work)
        axis.set_xscale("log")
        if key != "lookback":
            axis.set_yscale("log")
        else:
            axis.set_ylim(0, 1.3 * axis.get_ylim()[1])
            axis.set_xticks([1, 3, 10, 50, 600], ["1", "3", "10", "50", "None"])
            axis.minorticks_off()
        axis.set_xlabel(label)
        axis.set_ylabel("µs of one core per frame" if key == "units" else "seconds of one core")
        for part in (axis.xaxis.label, axis.yaxis.label, *axis.get_xticklabels(), *axis.get_yticklabels()):
            part.set_color(grey)
        axis.tick_params(which="both", colors=grey)
        for spine in axis.spines.values():
            spine.set_color(grey)
    axes[0].legend(frameon=False, labelcolor=grey, title="dots: measured; lines: model")
    axes[0].get_legend().get_title().set_color(grey)
    figure.tight_layout()
    figure.savefig(path, transparent=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    picture = Path(__file__).parents[1] / "docs" / "images" / "growth.svg"
    parser.add_argument("--plot", type=Path, default=picture, help="where to draw the curves, as SVG")
    options = parser.parse_args()
    kinds = ("classical", "gradient")
    sets = {
        "units": [(kind, N, K) for N, K in UNITS.items() for kind in kinds],
        "frames": [(kind, 100, K) for K in FRAMES for kind in kinds],
        "lookback": [("gradient", 300, 30_000, m) for m in LOOKBACKS],
        "threads": [("classical", 1000, 40_000), ("gradient", 1000, 40_000), ("classical", 3000, 20_000)],
    }
    cores = len(os.sched_getaffinity(0))
    _, rates = in_own_process(measure_all, [], cores)
    found = []
    for name, works in sets.items():
        # Memory is measured best in a fresh process: one that has already worked keeps some.
        for some in [[work] for work in works] if name == "units" else [works]:
            threads = 1 if name == "threads" else cores
            found += [{**f, "set": name} for f in in_own_process(measure_all, some, threads, rates)[0]]
            print(found[-1], flush=True)
    rows = rows_of(found)
    rows[0]["rates"] = vars(rates)
    print(table(rows))
    write("growth", rows)
    options.plot.parent.mkdir(exist_ok=True)
    draw(found, options.plot)
