"""Small tasks that require memory, and settings that learn them within moments."""

from dataclasses import replace

import numpy as np

from echolearn.fitting.parameters import DRAWING, LEARNING, LOOP_LEARNING

FAST = {"hidden_units": 15, "connections": 4, "epochs": 3, "batch_size": 4, "validation_fraction": 0.0}


def grouped(*several, **more):
    """Return settings, later ones in place of earlier ones, with those of `learning` and `reservoir` in their dicts."""
    found = {}
    for settings in (*several, more):
        for name, value in settings.items():
            group = "learning" if name in {**LEARNING, **LOOP_LEARNING} else "reservoir" if name in DRAWING else None
            inner = {name: value} if group else value
            if group or (name in ("learning", "reservoir") and (value is None or isinstance(value, dict))):
                found[group or name] = {**(found.get(group or name) or {}), **(inner or {})}
            else:
                found[name] = value
    return found


def echoes(seed=0, sequences=8, steps=(12, 25), n_in=2, delay=2):
    """Return noise X, and values (steps, 2): its first feature `delay` steps ago, and the product of its last two."""
    rng = np.random.default_rng([7, seed])
    X = [rng.normal(size=(n, n_in)) for n in rng.integers(*steps, sequences)]
    Y = []
    for x in X:
        late = np.concatenate([np.zeros(delay), x[:-delay, 0]])
        both = np.concatenate([[0.0], x[1:, 0] * x[:-1, 0]])
        Y.append(np.stack([late, both], axis=1))
    return X, Y


def labels(seed=0, names=("low", "high"), **how):
    """Return noise X, and one label per step: the sign of the first feature two steps ago."""
    X, Y = echoes(seed, **how)
    return X, [np.array(names)[(y[:, 0] > 0).astype(int)] for y in Y]


def rising(seed=0, sequences=40, steps=(8, 20)):
    """Return noisy ramps X, and one label per sequence: whether it rises."""
    rng = np.random.default_rng([8, seed])
    up = rng.integers(0, 2, sequences)
    X = []
    for u in up:
        n = rng.integers(*steps)
        X.append((np.linspace(-1, 1, n) * (2 * u - 1) + 0.5 * rng.normal(size=n))[:, None])
    return X, up


def set_readout(esn, U):
    """Give a fitted estimator another readout."""
    network = replace(esn.network_, readout=replace(esn.network_.readout, U=U))
    forecast = {"forecast": replace(esn.forecast_, network=network)} if hasattr(esn, "forecast_") else {}
    esn.model_ = replace(esn.model_, network=network, **forecast)


def interrupt_at(epoch):
    """Return a callback that interrupts a fit, as Ctrl-C does, after the given epoch."""

    def interrupt(row):
        if row["epoch"] == epoch:
            raise KeyboardInterrupt

    return interrupt
