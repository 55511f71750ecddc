"""Forecasts of series of M3 and M4: ESNForecaster with its defaults beside statsforecast and the naive ones.

    python benchmarks/competition_forecasts.py --data series_dev.npz --part before    # choices are made here
    python benchmarks/competition_forecasts.py --data series_dev.npz --rivals         # long; kept, and scored by nobody
    python benchmarks/competition_forecasts.py --data series_dev.npz                  # the test part, by committed code
    python benchmarks/competition_forecasts.py --data series_dev.npz --ours           # the same, rivals as recorded

Before: each series without its test part; the values of the last horizon that remain are forecast. Which series, and
who takes part: benchmarks/frozen/competition_forecasts.toml. The methods of statsforecast have the season that the
competition gives and, once more, the seasons that echolearn found in the same values; two of them, and those of more
than 24 steps, by MSTL, which takes the method for what is left. SCUM is the median of AutoARIMA, AutoETS, AutoCES and
DynamicOptimizedTheta. Forecasts are kept in runs/competition_forecasts, so that an interrupted run resumes; those of
echolearn by the fingerprint of its code. When the test part is complete, results/competition_forecasts.json is written.
The rows of the other methods do not depend on our code, but for the seasons found: --ours keeps those of this file.
"""

import argparse
import json
import time
import tomllib
import warnings
from functools import cache, partial

import numpy as np

import protocol
import results

KEPT = protocol.ROOT / "runs" / "competition_forecasts"
LONG_SEASON = 24  # steps: AutoARIMA sees the last 20 such seasons, and longer ones are left to MSTL
SCUM = ("AutoARIMA", "AutoETS", "AutoCES", "DynamicOptimizedTheta")


def settings():
    """Return the frozen settings."""
    return tomllib.loads(protocol.frozen_path("competition_forecasts").read_text(encoding="utf-8"))


def read_series(path, name, part, count):
    """Return known values and truth of so many series of a set: the first ones of an order drawn by the seed 0."""
    with np.load(path, allow_pickle=False) as file:
        horizon = int(file[f"{name}_horizon"])
        whole = np.split(file[f"{name}_values"], np.cumsum(file[f"{name}_lengths"])[:-1])
    drawn = [whole[i] for i in np.random.default_rng(0).permutation(len(whole))[:count]]
    kept = drawn if part == "test" else [y[:-horizon] for y in drawn]
    return [(y[:-horizon], y[-horizon:]) for y in kept]


def echolearn(y, horizon):
    """Return forecast, seasons and method of ESNForecaster with its defaults."""
    from echolearn import ESNForecaster

    esn = ESNForecaster().fit(y)
    return esn.predict(horizon), {"seasons": [int(m) for m in esn.season_ or () if m > 1], "method": esn.method_}


def of_statsforecast(kind, y, horizon, seasons):
    """Return the forecast of a method of statsforecast with up to two seasons."""
    from statsforecast import models

    how = {"approximation": True} if kind == "AutoARIMA" else {}
    if len(seasons) > 1 or max(seasons, default=1) > LONG_SEASON:
        how |= {"model": "ZZN"} if kind == "AutoETS" else {}
        model = models.MSTL(season_length=seasons, trend_forecaster=getattr(models, kind)(season_length=1, **how))
    else:
        season = seasons[0] if seasons else 1
        y = y[-20 * season :] if kind == "AutoARIMA" and season >= LONG_SEASON else y
        model = getattr(models, kind)(season_length=season, **how)
    return model.forecast(y=y, h=horizon)["mean"]


def seasonal_naive(y, horizon, seasons):
    """Repeat the last season, the longest of several; without one, the last value."""
    season = max(seasons, default=1)
    return y[-season:][np.arange(horizon) % season]


class Kept:
    """Forecasts that were made before, in a file; made anew where they are not in it."""

    def __init__(self, part, name):
        self.path = KEPT / f"{part}-{name}.json"
        self.entries = json.loads(self.path.read_text()) if self.path.exists() else {}

    def get(self, key, make):
        """Return the entry of a key: a forecast, its processor time, and what else `make` returns of it."""
        if key not in self.entries:
            started = time.process_time()
            forecast, facts = make()
            seconds = time.process_time() - started
            self.entries[key] = {"forecast": list(map(float, forecast)), "seconds": seconds, **facts}
            KEPT.mkdir(parents=True, exist_ok=True)
            results.replace_file(self.path, self.entries)
        return self.entries[key]


def of_rivals(kept, i, known, horizon, seasons, methods):
    """Return the forecasts of series i by all methods but echolearn, by name."""
    found = {}
    for name in methods:
        one = seasonal_naive if name == "seasonal naive" else partial(of_statsforecast, name)
        make = partial(lambda one, *of: (one(*of), {}), one, known, horizon, seasons)
        found[name] = kept.get(f"{name} {seasons} {i}", make)
    if set(SCUM) <= set(methods):
        middle = np.median([found[name]["forecast"] for name in SCUM], axis=0)
        found["SCUM"] = {"forecast": middle, "seconds": sum(found[name]["seconds"] for name in SCUM)}
    return found


@cache
def own_code():
    """Return the fingerprint of echolearn's code; it takes seconds."""
    return protocol.code_fingerprint(["src/echolearn"])[:12]


def forecast_all(kept, i, known, horizon, given, methods):
    """Return the forecasts of series i by all methods, by name; methods: the others, None for echolearn alone."""
    ours = kept.get(f"echolearn {own_code()} {i}", lambda: echolearn(known, horizon))
    if methods is None:
        return {"echolearn": ours}
    with_found = of_rivals(kept, i, known, horizon, ours["seasons"], methods)
    naive = {"forecast": np.full(horizon, known[-1]), "seconds": 0.0}
    return {
        "echolearn": ours,
        **of_rivals(kept, i, known, horizon, given, methods),
        **{f"{name}, season found": entry for name, entry in with_found.items()},
        "naive": naive,
    }


def scores(known, truth, forecast, season):
    """Return sMAPE and MASE of one forecast."""
    errors = np.abs(truth - forecast)
    scale = np.abs(known[season:] - known[:-season]).mean() if len(known) > season else np.abs(np.diff(known)).mean()
    return float((200 * errors / (np.abs(truth) + np.abs(forecast))).mean()), float(errors.mean() / scale)


def run(path, name, part, how, methods):
    """Return one row per method of a set: means over its series."""
    kept, of_series = Kept(part, name), []
    given = [m for m in [how["season"]] if m > 1]
    for i, (known, truth) in enumerate(read_series(path, name, part, how["count"])):
        found = forecast_all(kept, i, known, len(truth), given, methods)
        of_series.append(
            {
                method: (*scores(known, truth, np.array(entry["forecast"]), how["season"]), entry["seconds"])
                for method, entry in found.items()
            }
        )
    rows = []
    for method in of_series[0]:
        smape, mase, seconds = np.transpose([one[method] for one in of_series]).tolist()
        means = {key: float(np.mean(of)) for key, of in (("sMAPE", smape), ("MASE", mase), ("seconds", seconds))}
        rows.append({"set": name, "method": method, "series": len(of_series), **means, "slowest": max(seconds)})
    return rows


def recorded(name):
    """Return the rows of all methods but echolearn of a set, as they were measured before."""
    rows = json.loads((results.FOLDER / "competition_forecasts.json").read_text(encoding="utf-8"))["rows"]
    return [row for row in rows if row["set"] == name and row["method"] != "echolearn"]


def run_rivals(path, name, part, how, methods):
    """Keep the forecasts of all methods but echolearn with the season given; nothing is scored."""
    kept, given = Kept(part, name), [m for m in [how["season"]] if m > 1]
    for i, (known, truth) in enumerate(read_series(path, name, part, how["count"])):
        of_rivals(kept, i, known, len(truth), given, methods)
        print(part, name, i, flush=True)


def main():
    """Run what is left, print the means, and write those of the test part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="series_dev.npz")
    parser.add_argument("--part", choices=("before", "test"), default="test")
    parser.add_argument("--only", help="one set")
    parser.add_argument("--ours", action="store_true", help="forecast by echolearn alone; keep the rows of the others")
    parser.add_argument("--rivals", action="store_true", help="only keep the forecasts of the others; score nothing")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    frozen, rows, record = settings(), [], None
    sets = {name: how for name, how in frozen["sets"].items() if options.only in (None, name)}
    if options.rivals:
        for name, how in sets.items():
            run_rivals(options.data, name, options.part, how, frozen["methods"])
        return
    if options.part == "test":
        record = {"experiment": "competition_forecasts", **protocol.require_frozen("competition_forecasts")}
        record |= {"data_sha256": protocol.file_digest(options.data), "date": results.now()}
        protocol.log_reading(record)
    for name, how in sets.items():
        rows += run(options.data, name, options.part, how, None if options.ours else frozen["methods"])
        rows += recorded(name) if options.ours and options.part == "test" else []
    for row in rows:
        print("{set:10} {method:36} {series:4} {sMAPE:7.2f} {MASE:7.3f} {seconds:6.2f} s".format(**row))
    if record and not options.only:
        used = {"ESNForecaster": results.defaults()["ESNForecaster"]}  # the defaults of others have no part in this
        written = results.write("competition_forecasts", rows, protocol=record, seeds=[0], defaults=used)
        print("written:", written)


if __name__ == "__main__":
    main()
