"""How long closed-loop forecasts of chaotic series stay valid: learned networks beside rivals in their best regimes.

    python benchmarks/valid_times.py --tune [--tasks lorenz ...]     # chooses settings, on other series than the judged
    python benchmarks/valid_times.py [--tasks lorenz ...]            # the figures, once settings are committed

Settings and candidates are in benchmarks/frozen/valid_times.toml, results in benchmarks/results/valid_times.json, where
the score of every candidate is kept too (`chosen`). Both runs resume where they were stopped. Judged series are only
generated when `protocol.require_frozen` agrees. Series on a ring (Lorenz 96, Kuramoto-Sivashinsky) are forecast by
local networks and local NVAR. One process, one thread.
"""

import argparse
import json
import time
import warnings
from contextlib import contextmanager

import numpy as np
from threadpoolctl import threadpool_limits

import protocol
import results
from echolearn import ESNForecaster, Reservoir, datasets
from echolearn.estimators._nvar import PolynomialFeatures
from echolearn.exceptions import EchoStateWarning, TrainingWarning
from echolearn.fitting.parameters import grouped_settings
from echolearn.metrics import valid_time
from echolearn.readout.orthogonal import OrthogonalFactors
from echolearn.states import harvest
from echolearn.states.closed_loop import Ring, run_closed_loop
from forecasting import dense

NAME = "valid_times"
REGIMES = {"fixed, near zero": "near_zero", "fixed, edge of chaos": "edge"}
SIDES = ("reservoirpy", "NVAR", *REGIMES, "learned")
MAX_ROWS = 20_000  # that a readout of NVAR on a ring is fitted to


def load(task, settings, which):
    """Return a series (steps, dims) in standard deviations of its known part, and the starts of its forecasts."""
    known, judging = settings["known"], settings["judging"]
    series = getattr(datasets, task)(known + judging + settings["horizon"], **settings[which])
    past = series[:known] if "neighbourhoods" not in settings else series[:known].ravel()
    starts = np.linspace(known, known + judging, settings["starts"]).astype(int)
    return (series - past.mean(axis=0)) / past.std(axis=0), starts


def networks(settings):
    """Return the networks that every side may try: half of them near zero, half at the edge of chaos."""
    rng = np.random.default_rng(settings["tuning_seed"])
    found = []
    for number in range(settings["trials"]):
        regime = ("near_zero", "edge")[number % 2]
        drawn = {"spectral_radius": float(np.exp(rng.uniform(*np.log(settings[regime]))))}
        for name in ("leak", "input_scaling", "bias_scaling"):
            drawn[name] = float(np.exp(rng.uniform(*np.log(settings[name]))))
        size, reach = settings.get("neighbourhoods", [[0, 0]])[rng.integers(len(settings.get("neighbourhoods", [0])))]
        found.append((regime, drawn | ({"neighbourhood": (size, reach)} if size else {})))
    return found


def ring_of(settings, dims):
    """Return the blocks of points that a network serves: one block without a neighbourhood."""
    size, reach = settings.get("neighbourhood", (dims, 0))
    return Ring.of(dims, size, size + 2 * reach)


def ours(settings, network, seed, series, learn):
    """Return a function from starts to forecasts by an ESNForecaster that was fitted to the known steps."""
    how = {**network, "loop_steps": settings["loop_steps"] if learn else 1}
    esn = ESNForecaster(
        settings["units"],
        solver="qr",
        learn="both" if learn else "none",
        epochs=settings["iterations"] if learn else None,
        washout=settings["washout"],
        validation_fraction=settings["held_out"],
        random_state=seed,
        **grouped_settings(how, ESNForecaster),
    ).fit(series[: settings["known"]])
    return lambda starts: esn.predict(settings["horizon"], warm_up=warm(settings, series, starts))


def warm(settings, series, starts):
    """Return the steps before each start."""
    return [series[s - settings["warm_up"] : s] for s in starts]


def peer(settings, network, seed, series, ridges):
    """Return, for each ridge, a function from starts to forecasts by reservoirpy's weights and its ridge readout.

    Its states are computed by the same equation here, so that it can serve every block of a ring.
    """
    from reservoirpy.mat_gen import uniform
    from reservoirpy.nodes import Reservoir as Node
    from reservoirpy.nodes import Ridge

    ring, bias = ring_of(network, series.shape[1]), network["bias_scaling"]
    node = Node(
        settings["units"],
        sr=network["spectral_radius"],
        lr=network["leak"],
        input_scaling=network["input_scaling"],
        input_connectivity=1.0,
        bias=uniform(low=-bias, high=bias, connectivity=1.0),
        seed=seed,
    )
    node.run(series[:2, ring.columns[0]])
    constant = dense(node.bias).ravel() * np.ones(settings["units"])
    reservoir = Reservoir(W=dense(node.Win).T, W_rec=node.W, leak=network["leak"], bias=constant, activation="tanh")
    z, washout = series[: settings["known"]], settings["washout"]
    X = [z[:-1, columns] for columns in ring.columns]
    H_c = np.vstack([np.hstack([h, x])[washout:] for h, x in zip(harvest(reservoir, X), X, strict=True)])
    T = np.vstack([part[washout:] for part in np.split(z[1:], len(ring.columns), axis=1)])

    def forecasts(ridge):
        fitted = Ridge(ridge=ridge).fit(H_c, T)
        U = np.vstack([fitted.Wout, fitted.bias])
        return lambda starts: loops(reservoir, U, ring, warm(settings, series, starts), settings["horizon"])

    return [forecasts(ridge) for ridge in ridges]


def loops(reservoir, U, ring, series, horizon):
    """Return closed loops (starts, steps, dims) that continue series of one length."""
    seen = [z[:-1, columns] for z in series for columns in ring.columns]
    h = np.stack([H[-1] for H in harvest(reservoir, seen)])
    E = np.empty((horizon, len(series), 0))
    return list(run_closed_loop(reservoir, U, True, h, np.stack([z[-1] for z in series]), E=E).swapaxes(0, 1))


def nvar(settings, candidate, series, ridges):
    """Return, for each ridge, a function from starts to forecasts by products of delayed values, local on a ring."""
    delays, stride, degree, *block = candidate
    ring = ring_of({"neighbourhood": block} if block else {}, series.shape[1])
    features = PolynomialFeatures(ring.columns.shape[1], delays, stride, tuple(range(1, degree + 1)))
    z, memory = series[: settings["known"]], features.memory
    F = np.vstack([features.of_series(z[:-1, columns]) for columns in ring.columns])
    T = np.vstack([np.diff(part[memory:], axis=0) for part in np.split(z, len(ring.columns), axis=1)])
    some = slice(None, None, max(1, len(F) // MAX_ROWS))
    factors = OrthogonalFactors.of(np.hstack([F, np.ones((len(F), 1))])[some], T[some])

    def forecasts(ridge):
        U = factors.readout(ridge * factors.square)

        def run(starts):
            past, out = [np.stack([series[s - j] for s in starts]) for j in range(memory + 1, 0, -1)], []
            for _ in range(settings["horizon"]):
                delayed = [ring.seen(past[-1 - j * stride]) for j in range(delays)]
                change = features.of_windows(delayed) @ U[:-1] + U[-1]
                out.append(past[-1] + change.reshape(len(starts), -1))
                past = [*past[1:], out[-1]]
            return list(np.array(out).swapaxes(0, 1))

        return run

    return [forecasts(ridge) for ridge in ridges]


def times(task, settings, run, series, starts):
    """Return the valid time of each forecast in Lyapunov times; a comparison beyond the truth would be refused."""
    truth = [series[s : s + settings["horizon"]] for s in starts]
    how = {"dt": settings["dt"], "lyapunov": task, "threshold": settings["threshold"], "scale": 1.0}
    return valid_time(truth, run(starts), **how)


def candidates(task, settings, path):
    """Yield a side, a key and a function from the tuning series to scored settings, one for each trial."""

    def scored(chosen, run, series, starts):
        return [chosen, float(times(task, settings, run, series, starts).mean())]

    def of_peer(network, series, starts):
        runs = peer(settings, network, settings["tuning_seed"], series, settings["peer_ridges"])
        each = zip(settings["peer_ridges"], runs, strict=True)
        return max((scored(network | {"ridge": r}, run, series, starts) for r, run in each), key=lambda s: s[1])

    def of_nvar(candidate, series, starts):
        runs = nvar(settings, candidate, series, settings["nvar_ridges"])
        each = zip(settings["nvar_ridges"], runs, strict=True)
        return max((scored([candidate, r], run, series, starts) for r, run in each), key=lambda s: s[1])

    def of_ours(network, series, starts):
        return scored(network, ours(settings, network, settings["tuning_seed"], series, False), series, starts)

    def of_learned(network, series, starts):
        return scored(network, ours(settings, network, settings["tuning_seed"], series, True), series, starts)

    titles = {regime: side for side, regime in REGIMES.items()}
    for number, (regime, network) in enumerate(networks(settings)):
        yield titles[regime], str(number), of_ours, network
        yield "reservoirpy", str(number), of_peer, network
        yield "NVAR", str(number), of_nvar, settings["nvar"][number]
    for number in promising(chosen_for(task, path), settings):
        yield "learned", number, of_learned, networks(settings)[int(number)][1]


def promising(chosen, settings):
    """Return the numbers of the networks that learning may start from: the best of the first ones, as fixed ones.

    So that learned networks have as many trials as their rivals, counted with those of the fixed ones.
    """
    fixed = {number: score for side in REGIMES for number, (_, score) in chosen.get(side, {}).items()}
    first = [n for n in fixed if int(n) < settings["trials"] - settings["learned_trials"]]
    return sorted(first, key=lambda n: -fixed[n])[: settings["learned_trials"]]


def chosen_for(task, path):
    """Return the scored candidates of a task by side, as the result file has them."""
    return json.loads(path.read_text()).get("chosen", {}).get(task, {}) if path.exists() else {}


def tune(task, settings, path):
    """Score every candidate on the tuning series; what the result file has already is left out."""
    series = None
    for side, key, score, candidate in candidates(task, settings, path):
        if key in chosen_for(task, path).get(side, {}):
            continue
        series = series or load(task, settings, "tuning")
        with quiet():
            found = score(candidate, *series)
        with protocol.updated(path) as content:
            content.setdefault("chosen", {}).setdefault(task, {}).setdefault(side, {})[key] = found
        print(task, side, key, round(found[1], 2), flush=True)


def best(chosen, side):
    """Return the best settings of a side, with their score on the tuning series."""
    return max(chosen[side].values(), key=lambda found: found[1])


def measure(task, settings, path, record):
    """Write the valid times of every side and seed on the judged series, at the settings chosen on the other one."""
    chosen = chosen_for(task, path)
    series, starts = load(task, settings, "judged")

    def runner(side, seed):
        if side == "NVAR":
            candidate, ridge = best(chosen, side)[0]
            return nvar(settings, candidate, series, [ridge])[0]
        if side == "reservoirpy":
            network = dict(best(chosen, side)[0])
            return peer(settings, network, seed, series, [network.pop("ridge")])[0]
        return ours(settings, best(chosen, side)[0], seed, series, side == "learned")

    for side in SIDES:
        for seed in settings["seeds"][:1] if side == "NVAR" else settings["seeds"]:
            done = json.loads(path.read_text()).get("tasks", {}).get(task, {}).get("sides", {}).get(side, {})
            if str(seed) in done:
                continue
            began = time.process_time()
            with quiet():
                values = times(task, settings, runner(side, seed), series, starts).tolist()
            entry = {"values": values, "seconds": time.process_time() - began}
            with protocol.updated(path) as content:
                found = content.setdefault("tasks", {}).setdefault(task, {"sides": {}, "record": record})
                found["sides"].setdefault(side, {})[str(seed)] = entry
                found["about"] = {"date": results.now(), "versions": results.versions(), "machine": results.machine()}
            print(task, side, seed, round(float(np.mean(values)), 2), flush=True)


@contextmanager
def quiet():
    """Leave out the warnings that candidates provoke: radii above 1, loops that run away, ill-conditioned matrices."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        for kind in (EchoStateWarning, TrainingWarning, UserWarning, RuntimeWarning):
            warnings.simplefilter("ignore", kind)
        yield


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tune", action="store_true", help="choose settings on the tuning series")
    parser.add_argument("--tasks", nargs="*", help="tasks to run; by default all of the frozen file")
    args = parser.parse_args()
    frozen = protocol.read_frozen(NAME)
    shared = {name: value for name, value in frozen.items() if not isinstance(value, dict)}
    tasks = {name: shared | value for name, value in frozen.items() if isinstance(value, dict)}
    path = results.FOLDER / f"{NAME}.json"
    record = None if args.tune else protocol.require_frozen(NAME)
    with threadpool_limits(1):
        for name in args.tasks or tasks:
            if args.tune:
                tune(name, tasks[name], path)
            else:
                measure(name, tasks[name], path, record)


if __name__ == "__main__":
    main()
