"""The effect of each part of a deep network: `DeepESNClassifier` on AN4 with one part changed at a time, on valid.

    python benchmarks/deep_parts.py --data an4_states.npz [--only base tanh ... --jobs 2]

The test part is never read. Parts that the library does not let users change are changed by replacing functions of its
modules in the process of the run; tests/benchmarks/test_deep_parts.py checks the gradient of every variant by finite
differences. Step size, epochs and seeds are those of the base in every row, but for Adam, which has three step sizes.

Every run is a process of its own on one core, and its row is added to results/deep_parts.json when it ends: an
interrupted program resumes, and a run is repeated only if its settings, its data or its code have changed.
"""

import argparse
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Lock
from unittest import mock

import numpy as np

import echolearn
import protocol
import results
from an4 import data_file, load_an4
from contest import in_parallel
from echolearn.exceptions import TrainingWarning
from echolearn.reservoir._deep_reservoir import DeepReservoir
from echolearn.states import _scans
from echolearn.states._scans import add_and_normalize, drop_back
from echolearn.training.optimizers import ADAM_SHARE, Muon
from measure import count_weights, in_own_process, measured
from measured_tables import deep_parts
from table_text import load

NAME = "deep_parts"
CODE = ["benchmarks/deep_parts.py", "benchmarks/an4.py", "src/echolearn"]  # what decides the figures of a run
SEEDS = (0, 1)
BASE = {"units": 96, "layers": 6, "epochs": 8, "dropout": 0.0}
ADAM_STEP_SIZES = (0.0007, 0.002, 0.006)
UNITS_BY_DEPTH = {1: 208, 2: 156, 3: 132, 4: 116, 8: 84, 12: 70}  # about as many weights as the base has
ONE_LAYER_UNITS = 300
BELOW_READOUT = ("W_0", "b_0", "W_in", "alpha", "theta", "b", "W_out", "b_out", "c")  # last parts of names of weights


def replace_stream(x, o, b, *rest):
    """Let x be what a layer adds, instead of adding to it: no residual connection."""
    x[:] = 0
    add_and_normalize(x, o, b, *rest)


def replace_stream_back(dx, *rest):
    """Hand dx to what the layer adds and nothing to the stream below it: the transpose of `replace_stream`."""
    drop_back(dx, *rest)
    dx[:] = 0


def add_only(x, o, b, drop, seed, scale, eps, z, r):
    """Add to x what a layer adds, and fill z = x: no normalisation."""
    add_and_normalize(x, o, b, drop, seed, scale, eps, z, r)
    z[:] = x
    r[:] = 1


def add_only_back(z, r, dz, dx):
    """Add to dx the derivative through z = x."""
    dx += dz


def tanh(h, b, drop, seed, scale, p):
    """Fill p = tanh(h + b); without dropout."""
    if drop:
        raise ValueError("tanh units have no dropout here; set dropout=0.")
    np.tanh(h + b, out=p)


def tanh_back(p, scale, d, db):
    """Turn dE/dp in d into dE/dh, and add its sum over the frames to db."""
    d *= 1 - p * p
    db += d.sum(axis=0)


@dataclass(frozen=True)
class Variant:
    """A network of the table: what differs from the base.

    loops: functions by the name in `echolearn.states._scans` that they replace. fixed: last parts of the names of
    weights that stay as they are drawn. adam: whether Adam takes the place of Muon. best_of: the name that variants
    share of which the table shows the best one.
    """

    label: str
    settings: Mapping[str, object] = field(default_factory=dict)
    estimator: str = "DeepESNClassifier"
    loops: Mapping[str, Callable] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()
    adam: bool = False
    best_of: str | None = None

    @property
    def is_timed(self):
        """Whether its seconds compare: no loop is replaced by a slower one, and no gradient is computed in vain."""
        return not self.loops and not self.fixed

    def is_fixed(self, name):
        """Return whether a weight stays as it is drawn."""
        return name.rpartition("/")[2] in self.fixed

    def changes(self):
        """Return what takes the place of attributes of the library: (owner, name, value)."""
        found = [(_scans, name, function) for name, function in self.loops.items()]
        if self.adam:
            found.append((DeepReservoir, "matrices", property(lambda reservoir: ())))
        if self.fixed:
            found.append((Muon, "step", self._held_step(Muon.step)))
        return found

    def _held_step(self, step):
        def held(optimizer, weights, gradients, alpha):
            new, optimizer = step(optimizer, weights, gradients, alpha)
            return {name: weights[name] if self.is_fixed(name) else value for name, value in new.items()}, optimizer

        return held


def variants():
    """Return all variants by name, in the order of the table."""
    adam = {
        f"adam-{step}": Variant(
            f"Adam instead of Muon, step size {step}",
            {**BASE, "learning": {"step_size": step / ADAM_SHARE}},
            adam=True,
            best_of="adam",
        )
        for step in ADAM_STEP_SIZES
    }
    residual = {"add_and_normalize": replace_stream, "drop_back": replace_stream_back}
    normalisation = {"add_and_normalize": add_only, "normalize_back": add_only_back}
    parts = {
        "no-residual": Variant("without residual connections", BASE, loops=residual),
        "no-normalisation": Variant("without normalisation", BASE, loops=normalisation),
        "drawn-leaks": Variant("leaks drawn, not learned", BASE, fixed=("alpha",)),
        "drawn-angles": Variant("angles drawn, not learned", BASE, fixed=("theta",)),
        "drawn-both": Variant("leaks and angles drawn, not learned", BASE, fixed=("alpha", "theta")),
        "no-rotation": Variant("no rotation: all angles 0", {**BASE, "angle": 0.0}, fixed=("theta",)),
        "tanh": Variant("tanh instead of relu", BASE, loops={"rectify": tanh, "rectify_back": tanh_back}),
        "readout-only": Variant("only the readout learned", BASE, fixed=BELOW_READOUT),
    }
    depths = {
        f"depth-{layers}": Variant(
            f"{layers} layer{'s' if layers > 1 else ''} of {units} units", {**BASE, "units": units, "layers": layers}
        )
        for layers, units in UNITS_BY_DEPTH.items()
    }
    one_layer = Variant(
        f"`ESNClassifier`: one layer of {ONE_LAYER_UNITS} tanh units with a sparse W_rec",
        {"hidden_units": ONE_LAYER_UNITS},
        estimator="ESNClassifier",
    )
    base = Variant(f"the base: {BASE['layers']} layers of {BASE['units']} units", BASE)
    return {"base": base, **adam, **parts, **depths, "one-layer": one_layer}


VARIANTS = variants()


@contextmanager
def changed_library(variant):
    """Change the library in this process to a variant, and back at the end."""
    with ExitStack() as stack:
        for owner, name, value in variant.changes():
            stack.enter_context(mock.patch.object(owner, name, value))
        yield


def learned(variant, data, seed):
    """Return the error on valid, the size and the cost of a variant that was learned on train."""
    kind, (X, y) = getattr(echolearn, variant.estimator), data["train"]
    model = kind(**variant.settings, random_state=seed)
    with changed_library(variant), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        kind(**{**variant.settings, "epochs": 1}).fit(X[:6], y[:6])  # compiled before the clock starts
        warnings.simplefilter("always", TrainingWarning)
        with measured() as record:
            model.fit(X, y)
        error = 100 * (1 - model.score(*data["valid"]))
    return {
        "valid_error": error,
        **sizes(variant, model.network_),
        "epochs": len(model.history_),
        "cpu_seconds": record["cpu_seconds"] if variant.is_timed else None,
        "warnings": [str(warning.message) for warning in caught],
    }


def sizes(variant, network):
    """Return the number of all weights of a network and of those that are learned."""
    if variant.estimator == "ESNClassifier":
        return {"weights": int(count_weights(network)), "learned_weights": int(count_weights(network))}
    below, readout = network.reservoir.weights, network.readout.U.size
    free = sum(value.size for name, value in below.items() if not variant.is_fixed(name))
    return {"weights": sum(v.size for v in below.values()) + readout, "learned_weights": free + readout}


def run(path, name, seed):
    """Learn a variant on the AN4 file at a path."""
    return learned(VARIANTS[name], load_an4(path), seed)


def identity(name, seed, digest, code):
    """Return what a run depends on, as its row in the result file has it."""
    variant = VARIANTS[name]
    about = {"variant": name, "seed": seed, "estimator": variant.estimator, "settings": dict(variant.settings)}
    return json.loads(json.dumps({**about, "data": digest, "code": code}))


class Results:
    """The rows of the result file, without those that are measured again."""

    def __init__(self, waiting, known):
        again = [(about["variant"], about["seed"]) for about in waiting]
        self.rows = [row for row in known if (row["variant"], row["seed"]) not in again]
        self.lock = Lock()

    def measure(self, path, about):
        """Do one run in a process of its own and write its row; return what went wrong, or None."""
        variant = VARIANTS[about["variant"]]
        texts = {"label": variant.label, "best_of": variant.best_of}
        try:
            found = in_own_process(run, path, about["variant"], about["seed"])
        except Exception:
            return traceback.format_exc()
        with self.lock:
            self.rows.append({**about, **texts, **found, "commit": results.commit(), "date": results.now()})
            self.rows.sort(key=lambda row: (list(VARIANTS).index(row["variant"]), row["seed"]))
            results.write(NAME, self.rows)
        return None


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="path of an4_states.npz")
    parser.add_argument("--only", nargs="+", choices=list(VARIANTS), default=list(VARIANTS), help="variants to run")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time, one core each")
    options = parser.parse_args(arguments)
    path = data_file(options.data)
    os.environ.update(protocol.single_threaded())  # for the processes that this one starts
    digest, code = protocol.data_digest(path), protocol.code_fingerprint(CODE)
    wanted = [identity(name, seed, digest, code) for seed in SEEDS for name in VARIANTS if name in options.only]
    known = load(NAME, results.FOLDER).get("rows", [])
    waiting = [about for about in wanted if not any(about.items() <= row.items() for row in known)]
    found = Results(waiting, known)
    print(f"{len(waiting)} runs to do, {options.jobs} at a time", flush=True)
    tasks = [
        (f"{about['variant']}, seed {about['seed']}", 1.0, lambda about=about: found.measure(path, about))
        for about in waiting
    ]
    good = in_parallel(options.jobs, tasks)
    print(deep_parts())
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
