"""Forecasts of series of the M3 and M4 competitions: ESNForecaster as it comes beside statsforecast and the naive ones.

    python benchmarks/competition_forecasts.py --data series_dev.npz --part before    # choices are made here
    python benchmarks/competition_forecasts.py --data series_dev.npz                  # the test part, by committed code

Before: each series without its test part; the values of the last horizon that remain are forecast. Which series, and
who takes part: benchmarks/frozen/competition_forecasts.toml. The methods of statsforecast have the season that the
competition gives and, once more, the seasons that echolearn found in the same values; two of them, and those of more
than 24 steps, by MSTL, which takes the method for what is left. SCUM is the median of AutoARIMA, AutoETS, AutoCES and
DynamicOptimizedTheta. Forecasts are kept in runs/competition_forecasts, so that an interrupted run resumes. When the
test part is complete, results/competition_forecasts.json is written.
"""

import argparse
import json
import time
import tomllib
import warnings

import numpy as np

import protocol
import results

KEPT = protocol.ROOT / "runs" / "competition_forecasts"
LONG_SEASON = 24  # steps: AutoARIMA sees the last 20 such seasons, and longer ones are left to MSTL
SCUM = ("AutoARIMA", "AutoETS", "AutoCES", "DynamicOptimizedTheta")


def settings():
    """Return the frozen settings."""
    return tomllib.loads(protocol.frozen_path("competition_forecasts").read_text(encoding="utf-8"))


def read_series(path, name, part, every):
    """Return known values and truth of every so many series of a set."""
    with np.load(path, allow_pickle=False) as file:
        horizon = int(file[f"{name}_horizon"])
        whole = np.split(file[f"{name}_values"], np.cumsum(file[f"{name}_lengths"])[:-1])
    kept = whole if part == "test" else [y[:-horizon] for y in whole]
    return [(y[:-horizon], y[-horizon:]) for y in kept[::every]]


def echolearn(y, horizon):
    """Return forecast and seasons of ESNForecaster as it comes."""
    from echolearn import ESNForecaster

    esn = ESNForecaster().fit(y)
    return esn.predict(horizon), [m for m in esn.season_ or () if m > 1], esn.method_


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


def forecast_all(y, horizon, given, methods):
    """Return the forecasts of one series by all methods, by name, and how long each of them took."""
    started = time.process_time()
    ours, found, method = echolearn(y, horizon)
    forecasts, seconds = {"echolearn": ours}, {"echolearn": time.process_time() - started}
    for label, seasons in (("", [m for m in [given] if m > 1]), (", season found", found)):
        for name in methods:
            started = time.process_time()
            one = seasonal_naive if name == "seasonal naive" else lambda *of, kind=name: of_statsforecast(kind, *of)
            forecasts[name + label] = one(y, horizon, seasons)
            seconds[name + label] = time.process_time() - started
        if set(SCUM) <= set(methods):
            forecasts["SCUM" + label] = np.median([forecasts[name + label] for name in SCUM], axis=0)
            seconds["SCUM" + label] = sum(seconds[name + label] for name in SCUM)
    forecasts["naive"], seconds["naive"] = np.full(horizon, y[-1]), 0.0
    return {"forecasts": {k: list(map(float, f)) for k, f in forecasts.items()}, "seconds": seconds,
            "seasons": list(map(int, found)), "method": method}  # fmt: skip


def scores(known, truth, forecast, season):
    """Return sMAPE and MASE of one forecast."""
    errors = np.abs(truth - forecast)
    scale = np.abs(known[season:] - known[:-season]).mean() if len(known) > season else np.abs(np.diff(known)).mean()
    return float((200 * errors / (np.abs(truth) + np.abs(forecast))).mean()), float(errors.mean() / scale)


def run(path, name, part, how, methods):
    """Return one row per method of a set: means over its series."""
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = KEPT / f"{part}-{name}.json"
    found = json.loads(kept.read_text()) if kept.exists() else {}
    series = read_series(path, name, part, how["every"])
    if len(found) < len(series):
        forecast_all(series[0][0][-60:], 3, 4, methods)  # compiles
    for i, (known, truth) in enumerate(series):
        if str(i) not in found:
            found[str(i)] = forecast_all(known, len(truth), how["season"], methods)
            kept.write_text(json.dumps(found))
    rows = []
    for method in found["0"]["forecasts"]:
        of_series = [
            scores(known, truth, np.array(found[str(i)]["forecasts"][method]), how["season"])
            for i, (known, truth) in enumerate(series)
        ]
        smape, mase = np.mean(of_series, axis=0)
        seconds = [found[str(i)]["seconds"][method] for i in range(len(series))]
        rows.append({"set": name, "method": method, "series": len(series), "sMAPE": float(smape), "MASE": float(mase),
                     "seconds": float(np.mean(seconds)), "slowest": max(seconds)})  # fmt: skip
    return rows


def main():
    """Run what is left, print the means, and write those of the test part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="series_dev.npz")
    parser.add_argument("--part", choices=("before", "test"), default="test")
    parser.add_argument("--only", help="one set")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    record = None
    if options.part == "test":
        record = {"experiment": "competition_forecasts", **protocol.require_frozen("competition_forecasts")}
        record |= {"data_sha256": protocol.file_digest(options.data), "date": results.now()}
        protocol.log_reading(record)
    frozen, rows = settings(), []
    for name, how in frozen["sets"].items():
        if options.only in (None, name):
            rows += run(options.data, name, options.part, how, frozen["methods"])
    for row in rows:
        print("{set:10} {method:36} {series:4} {sMAPE:7.2f} {MASE:7.3f} {seconds:6.2f} s".format(**row))
    if record and not options.only:
        print("written:", results.write("competition_forecasts", rows, protocol=record, seeds=[0]))


if __name__ == "__main__":
    main()
