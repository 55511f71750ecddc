"""Forecasts of real series: ESNForecaster with its defaults beside statsforecast, reservoirpy and the naive ones.

    .venv-forecasts/bin/python benchmarks/series_forecasts.py --half development    # choices are made here
    .venv-forecasts/bin/python benchmarks/series_forecasts.py                       # the test half, by committed code

Series, halves and origins: benchmarks/forecast_series.py. Everybody is given the values before an origin and the season
of the frequency (echolearn: the time index instead). Figures of each method are kept in runs/series_forecasts, so
that an interrupted run resumes, with the commit that they come from; `--only NAME` runs one method. When all are there,
results/series_forecasts.json is written.
"""

import argparse
import hashlib
import json
import resource
import time
import tomllib
import warnings

import numpy as np

import forecast_series
import protocol
import results

KEPT = protocol.ROOT / "runs" / "series_forecasts"
LEVELS = (80, 95)


def settings():
    """Return the frozen settings."""
    return tomllib.loads(protocol.frozen_path("series_forecasts").read_text(encoding="utf-8"))


def echolearn(values, season, horizon):
    """Return forecast and bounds of ESNForecaster with its defaults."""
    from echolearn import ESNForecaster

    esn = ESNForecaster().fit(values)
    return esn.predict(horizon), {level: esn.forecast_interval(horizon, level / 100) for level in LEVELS}


def of_statsforecast(kind, long=None):
    """Return a method of statsforecast; long: settings for seasons of 24 steps and more, of the last 20 seasons."""

    def forecast(values, season, horizon):
        from statsforecast import models

        y, how = values.to_numpy(), {}
        if long is not None and season >= 24:
            y, how = y[-20 * season :], long
        found = getattr(models, kind)(season_length=season, **how).forecast(y=y, h=horizon, level=list(LEVELS))
        bounds = {level: (found[f"lo-{level}"], found[f"hi-{level}"]) for level in LEVELS}
        return found["mean"], bounds

    return forecast


def reservoirpy(values, season, horizon):
    """Return the closed loop of an ESN with the settings of reservoirpy's introduction; it has no intervals."""
    from reservoirpy.nodes import Reservoir, Ridge

    y = values.to_numpy()
    mean, scale = y.mean(), y.std() or 1.0
    z = ((y - mean) / scale)[:, None]
    model = Reservoir(100, lr=0.5, sr=0.9, seed=0) >> Ridge(ridge=1e-7)
    model = model.fit(z[:-1], z[1:], warmup=min(10, len(z) // 4))
    latest, out = model.run(z)[-1:], []
    for _ in range(horizon):
        out.append(float(latest[0, 0]))
        latest = model.run(np.clip(latest, -1e6, 1e6))
    return np.array(out) * scale + mean, {}


def naive(values, season, horizon):
    """Repeat the last value."""
    return np.full(horizon, values.iloc[-1]), {}


def seasonal_naive(values, season, horizon):
    """Repeat the last season."""
    return values.to_numpy()[-season:][np.arange(horizon) % season], {}


METHODS = {
    "echolearn": echolearn,
    "AutoETS": of_statsforecast("AutoETS"),
    "AutoARIMA": of_statsforecast("AutoARIMA", {"approximation": True}),
    "AutoTheta": of_statsforecast("AutoTheta"),
    "reservoirpy": reservoirpy,
    "naive": naive,
    "seasonal naive": seasonal_naive,
}


def measured(series, forecast):
    """Return the figures of one method on one series: means over its origins, and the longest processor time."""
    y, rows = series.values.to_numpy(), []
    for known in series.origins:
        started = time.process_time()
        mean, bounds = forecast(series.values.iloc[:known], series.season, series.horizon)
        seconds = time.process_time() - started
        truth, past = y[known : known + series.horizon], y[:known]
        lag = series.season if known > series.season else 1
        scale = np.abs(past[lag:] - past[:-lag]).mean()
        row = {"MASE": float(np.abs(truth - mean).mean() / scale), "seconds": seconds}
        for level, (lower, upper) in bounds.items():
            row[f"inside {level}"] = float(((truth >= lower) & (truth <= upper)).mean())
            row[f"width {level}"] = float(np.mean(np.asarray(upper) - lower) / scale)
        rows.append(row)
    found = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
    return found | {"slowest": max(row["seconds"] for row in rows), "origins": len(rows)}


def kept_file(method, half):
    """Return where the figures of a method are kept."""
    return KEPT / f"{half}-{method.replace(' ', '-')}.json"


def read_kept(method, half):
    """Return the figures of a method that were measured, and the commit that they come from."""
    path = kept_file(method, half)
    return json.loads(path.read_text()) if path.exists() else {"commit": results.commit(), "figures": {}}


def run(method, half):
    """Return the figures of one method on all series of a half, from the file that keeps them where they are there."""
    KEPT.mkdir(parents=True, exist_ok=True)
    path, kept = kept_file(method, half), read_kept(method, half)
    found = kept["figures"]
    METHODS[method](forecast_series.half("development")[6].values[:60], 4, 8)  # compiles
    for series in forecast_series.half(half):
        if series.name not in found:
            found[series.name] = measured(series, METHODS[method])
            path.write_text(json.dumps(kept))
            print(f"{method:15} {series.name:22} {found[series.name]['MASE']:.3f}", flush=True)
    return kept


def updates():
    """Return the processor time of an update per hour over a year of hourly values, and the growth of memory."""
    import pandas as pd

    from echolearn import ESNForecaster

    heat = forecast_series.frame("vega_datasets", "_data/seattle-temps.csv")["temp"].to_numpy()
    known, times = 1000, []
    index = pd.date_range("2010", periods=known, freq="h")
    esn = ESNForecaster(method="direct").fit(pd.Series(heat[:known], index=index))
    before = 0
    for number, value in enumerate(heat[known:]):
        started = time.perf_counter()
        esn.update(value)
        times.append(time.perf_counter() - started)
        if number == 1000:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"median ms": 1000 * float(np.median(times)), "updates": len(times), "growth MB": (after - before) / 1024}


def summary(found):
    """Return one row per method: means over the series."""
    rows = []
    for method, of_series in found.items():
        row = {"method": method, "series": len(of_series)}
        for key in ("MASE", "inside 80", "width 80", "inside 95", "width 95", "seconds"):
            values = [figures[key] for figures in of_series.values() if key in figures]
            row[key] = float(np.mean(values)) if values else None
        row["echolearn there"] = float(np.mean([found["echolearn"][name]["MASE"] for name in of_series]))
        row["slowest"] = max(figures["slowest"] for figures in of_series.values())
        row["geometric MASE"] = float(np.exp(np.mean([np.log(max(f["MASE"], 1e-9)) for f in of_series.values()])))
        rows.append(row)
    return rows


def start_record():
    """Return commit, settings and digest of the test half, whose reading is counted, or refuse."""
    digest = hashlib.sha256()
    for series in forecast_series.half("test"):
        digest.update(series.values.to_numpy(dtype=np.float64).tobytes())
    record = {"experiment": "series_forecasts", **protocol.require_frozen("series_forecasts")}
    record |= {"data_sha256": digest.hexdigest(), "date": results.now()}
    protocol.log_reading(record)
    return record


def main():
    """Run what is left, print the means, and write the test half's figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("development", "test"), default="test")
    parser.add_argument("--only", choices=METHODS)
    parser.add_argument("--collect", action="store_true", help="run nothing more: write what has been measured")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    record = start_record() if options.half == "test" else {}
    names = [options.only] if options.only else settings()["methods"]
    kept = {
        method: read_kept(method, options.half) if options.collect else run(method, options.half) for method in names
    }
    found = {method: content["figures"] for method, content in kept.items()}
    if "echolearn" not in found:
        found["echolearn"] = read_kept("echolearn", options.half)["figures"]
    for row in summary(found):
        print({key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()})
    if options.half == "test" and not options.only:
        facts = {"updates": updates(), "protocol": record, "series": found, "seeds": [0]}
        facts["commits"] = {method: content["commit"] for method, content in kept.items()}
        facts["sources"] = {s.name: [s.source, s.frequency] for s in forecast_series.half("test")}
        print("written:", results.write("series_forecasts", summary(found), **facts))


if __name__ == "__main__":
    main()
