"""False alarms and delays of `Monitor`, on streams without and with faults that are made here.

    python benchmarks/monitoring.py [--seeds 3] [--steps 20000]

Each stream is a series that an echo state network is fitted to, and that then runs on. Without faults, every alarm is a
false one. With a fault at a known step, the delay is the number of frames from its start to the first frame that is
anomalous or shows a drift. The settings are the defaults of `Monitor`, the same for all streams.
The method was chosen on these streams, with two of the seeds that are reported. The results are in
benchmarks/results/monitoring.json, and their tables in docs/howto/monitoring.md.
"""

import argparse
import time

import numpy as np

from echolearn import ESNClassifier, ESNForecaster, ESNRegressor
from echolearn.datasets import mackey_glass
from echolearn.monitoring import GuardedStream, Monitor
from echolearn.readout import RLS

TRAIN, SETTLE, AFTER = 2000, 2000, 1000  # frames to fit to, frames before a fault, frames after its start
LEVELS = (1e-4, 1e-3)


def season(rng, n):
    """A daily and a weekly cycle with normal noise."""
    t = np.arange(n)
    return (np.sin(2 * np.pi * t / 24) + 0.5 * np.sin(2 * np.pi * t / 168) + 0.2 * rng.standard_normal(n))[:, None]


def chaos(rng, n):
    """The Mackey-Glass equation, with noise of the sensor."""
    series = np.ravel(mackey_glass(n + 3000))[3000 - rng.integers(2500) :][:n]
    return (series + 0.02 * rng.standard_normal(n))[:, None]


def heavy_tails(rng, n):
    """An autoregression driven by Student's t with four degrees of freedom."""
    shocks, x = rng.standard_t(4, n), np.zeros(n)
    for t in range(2, n):
        x[t] = 1.2 * x[t - 1] - 0.5 * x[t - 2] + shocks[t]
    return x[:, None]


def volatile(rng, n):
    """An autoregression whose noise is calm and wild in turns (GARCH): errors that are correlated in time."""
    x, variance, shock = np.zeros(n), 1.0, 0.0
    for t in range(1, n):
        variance = 0.05 + 0.1 * shock**2 + 0.85 * variance
        shock = np.sqrt(variance) * rng.standard_normal()
        x[t] = 0.8 * x[t - 1] + shock
    return x[:, None]


def plant(rng, n):
    """Eight sensors of three slow processes, in units from 0.01 to 100."""
    hidden = np.zeros((n, 3))
    for t in range(1, n):
        hidden[t] = 0.97 * hidden[t - 1] + 0.25 * rng.standard_normal(3)
    mix = rng.standard_normal((3, 8))
    return (np.tanh(hidden @ mix) + 0.1 * rng.standard_normal((n, 8))) * 10.0 ** rng.uniform(-2, 2, 8)


STREAMS = {"season": season, "chaos": chaos, "heavy tails": heavy_tails, "volatile": volatile, "plant": plant}


def spike(x, at, scale, rng):
    """One frame of one sensor is ten standard deviations of the usual error away."""
    x[at, 0] += 10 * scale[0]


def stuck(x, at, scale, rng):
    """One sensor repeats its last value."""
    x[at:, 0] = x[at - 1, 0]


def noise(x, at, scale, rng):
    """One sensor has noise of three times the usual error on top."""
    x[at:, 0] += 3 * scale[0] * rng.standard_normal(len(x) - at)


def shift(x, at, scale, rng):
    """One sensor reads five times the usual error too high."""
    x[at:, 0] += 5 * scale[0]


def creep(x, at, scale, rng):
    """The noise of one sensor grows steadily, to five times the usual error after 1000 frames."""
    x[at:, 0] += 5 * scale[0] * np.arange(len(x) - at) / AFTER * rng.standard_normal(len(x) - at)


FAULTS = {"spike": spike, "stuck": stuck, "noise": noise, "shift": shift, "creep": creep}


def fitted(x):
    """Return a forecaster for the first part of a stream, with fixed weights."""
    return ESNForecaster(100, learn="none", method="closed_loop").fit(x[:TRAIN])


def usual_error(esn):
    """Return the robust standard deviation of the one-step error of each sensor."""
    return 1.4826 * np.median(np.abs(esn.residuals_), axis=0) * esn.target_scale_


def false_alarms(name, seeds, steps):
    """Return alarms per 10,000 frames where nothing is wrong, and processor time per frame."""
    found = {level: [] for level in LEVELS}
    drifts, seconds = [], []
    for seed in range(seeds):
        x = STREAMS[name](np.random.default_rng(seed), TRAIN + steps)
        begin = time.process_time()
        seen = Monitor(fitted(x)).run(x[TRAIN:])
        seconds.append(time.process_time() - begin)
        judged = np.isfinite(seen.p_value)
        for level in LEVELS:
            found[level].append(float((seen.p_value[judged] < level).mean() * 10_000))
        drifts.append(float(seen.drift.mean() * 10_000))
    return {
        "kind": "false alarms",
        "stream": name,
        **{f"per_10000_at_{level:g}": values for level, values in found.items()},
        "drifts_per_10000": drifts,
        "frames": steps,
        "microseconds": 1e6 * float(np.median(seconds)) / steps,
    }


def delays(name, fault, seeds):
    """Return the frames until a fault is seen: by an anomaly, by a drift, by either. None: not within 1000 frames."""
    rows = []
    for seed in range(100, 100 + seeds):
        rng = np.random.default_rng(seed)
        x = STREAMS[name](rng, TRAIN + SETTLE + AFTER)
        esn = fitted(x)
        FAULTS[fault](x, TRAIN + SETTLE, usual_error(esn), rng)
        seen = Monitor(esn).run(x[TRAIN:])
        late = slice(SETTLE, None)
        first = [int(flags[late].argmax()) if flags[late].any() else None for flags in (seen.anomalous, seen.drift)]
        rows.append([*first, min((f for f in first if f is not None), default=None)])
    anomaly, drift, either = (list(column) for column in zip(*rows, strict=True))
    return {"kind": "delay", "stream": name, "fault": fault, "anomaly": anomaly, "drift": drift, "either": either}


def labels(seeds, steps):
    """Return false alarms of a classifier that is watched with its labels, and the delay after classes swap."""
    rates, found = [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((TRAIN + steps, 2))
        y = (np.roll(x[:, 0], 1) + 0.3 * rng.standard_normal(len(x)) > 0).astype(int)
        esn = ESNClassifier(50, learn="none").fit(x[:TRAIN], y[:TRAIN])
        seen = Monitor(esn).run(x[TRAIN:], y[TRAIN:])
        rates.append((float(seen.anomalous.mean() * 10_000), float(seen.drift.mean() * 10_000)))
        y[TRAIN + SETTLE :] ^= 1
        seen = Monitor(esn).run(x[TRAIN : TRAIN + SETTLE + AFTER], y[TRAIN : TRAIN + SETTLE + AFTER])
        late = seen.drift[SETTLE:]
        found.append(int(late.argmax()) if late.any() else None)
    anomalies, drifts = (list(column) for column in zip(*rates, strict=True))
    return {"kind": "labels", "per_10000_at_0.0001": anomalies, "drifts_per_10000": drifts, "swap_delay": found}


def guarded(seeds):
    """Return the error after 200 frames of bad targets over that of a stream that does not learn, and under guard."""
    rows = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((TRAIN + 2000, 1))
        y = np.ravel(0.7 * np.roll(x, 1) + 0.3 * np.roll(x, 3)) + 0.05 * rng.standard_normal(len(x))
        esn = ESNRegressor(50, learn="none").fit(x[:TRAIN], y[:TRAIN])
        bad = y[TRAIN:].copy()
        bad[500:700] = 2.0
        errors = []
        for stream in (
            esn.stream(),
            esn.stream(online=RLS(forgetting=0.995)),
            GuardedStream(esn.stream(online=RLS(forgetting=0.995))),
        ):
            answers = stream.predict(x[TRAIN:]) if not errors else stream.learn(x[TRAIN:], bad)
            errors.append(float(np.mean((np.ravel(answers)[800:1300] - y[TRAIN + 800 : TRAIN + 1300]) ** 2)))
        rows.append(errors)
    fixed, plain, guard = np.array(rows).T
    return {"kind": "guard", "without": (plain / fixed).tolist(), "with": (guard / fixed).tolist()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--dry", action="store_true", help="print, and write no file")
    given = parser.parse_args()
    rows = []
    for name in STREAMS:
        rows.append(false_alarms(name, given.seeds, given.steps))
        print(rows[-1], flush=True)
    for name in STREAMS:
        for fault in FAULTS:
            rows.append(delays(name, fault, given.seeds))
            print(rows[-1], flush=True)
    rows += [labels(given.seeds, given.steps // 2), guarded(given.seeds)]
    print(*rows[-2:], sep="\n")
    if not given.dry:
        from results import write  # it needs psutil

        settings = {"train": TRAIN, "settle": SETTLE, "after": AFTER, "seeds": given.seeds, "steps": given.steps}
        print(write("monitoring", rows, settings=settings))


if __name__ == "__main__":
    main()
