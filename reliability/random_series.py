"""Forecasts of random series: what must not change them, their dates, and how often their intervals hold.

A series is drawn from a process, with dates of some frequency and zone, perhaps with rows left out, values missing
inside or at its end, further columns, exogenous inputs, and other series beside it. It is forecast as it is and:

    units      in other units, 1e-9 to 1e9; with values that are not positive also from another zero
    zero       from another zero, without logarithms (positive values, or exogenous inputs)
    company    in a list with other series of other scales (direct forecasts: each series has its own model)
    order      with its rows in another order
    order and zone    the same, with its dates in another zone
    dates      the dates of the forecast are those that pandas gives; "reported" if a warning says that there are none

A forecast that differs by more than 0.2 % of the spread of its series counts as wrong. The truth is drawn with the
series: the table of intervals shows how much of it they hold.

    python -m reliability.random_series [--series 2000] [--processes 2]

A run resumes from runs/random_series.jsonl; remove that file when the code has changed.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from echolearn import ESNForecaster
from reliability import results

FREQUENCIES = (
    *("D", "3D", "B", "C", "W-SUN", "W-WED", "2W-FRI", "WOM-3FRI", "LWOM-FRI", "ME", "MS", "BME", "BMS", "2ME", "SME"),
    *("SMS", "QE", "QS", "BQE", "BQS-FEB", "YE", "YS", "BYE-JUN", "BYS", "YE-MAR", "h", "6h", "bh", "min", "15min"),
    *("s", "1500ms", "ms", "us", "250ns", "4-4-5"),
)
ZONES = (None, None, "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
FIXED = ("h", "6h", "min", "15min", "s", "1500ms", "ms", "us", "250ns")  # lengths of time, the same in every zone
COVERAGES = (0.8, 0.95)
TOLERANCE = 2e-3  # of the spread of a series
KEPT = Path(__file__).parents[1] / "runs" / "random_series.jsonl"  # what was done, so that a run resumes


def _walk(rng: np.random.Generator, n: int) -> Any:
    return np.cumsum(rng.normal(size=n))


def _autoregression(rng: np.random.Generator, n: int) -> Any:
    y, rho = rng.normal(size=n), rng.uniform(0.2, 0.9)
    for t in range(1, n):
        y[t] += rho * y[t - 1]
    return y


def _wave(rng: np.random.Generator, n: int) -> Any:
    return rng.uniform(1, 5) * np.resize(rng.normal(size=int(rng.choice([4, 7, 12]))), n)


PROCESSES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "noise": lambda rng, n: rng.normal(size=n),
    "autoregression": _autoregression,
    "random walk": _walk,
    "walk and noise": lambda rng, n: 0.3 * _walk(rng, n) + rng.normal(size=n),
    "trend and noise": lambda rng, n: rng.uniform(-0.3, 0.3) * np.arange(n) + rng.normal(size=n),
    "season and noise": lambda rng, n: _wave(rng, n) + rng.normal(size=n),
    "season, trend and walk": lambda rng, n: _wave(rng, n) + 0.05 * np.arange(n) + 0.3 * _walk(rng, n),
    "growth and season, in logarithms": lambda rng, n: np.exp(
        3 + rng.uniform(0, 0.02) * np.arange(n) + 0.1 * _wave(rng, n) + 0.1 * rng.normal(size=n)
    ),
}


@dataclass(frozen=True)
class Case:
    """One series with its truth, and all that was drawn for it."""

    process: str
    frequency: str
    table: pd.DataFrame | pd.Series  # the rows that are known
    known: dict[str, Any]  # exogenous inputs of the fit,
    ahead: dict[str, Any]  # and of the forecast
    truth: Any
    dates: pd.DatetimeIndex  # of the truth
    gap: str


def dates_of(frequency: str, count: int, zone: str | None) -> pd.DatetimeIndex:
    """Return dates of a frequency; those of 4-4-5 are ends of months of so many weeks."""
    start = pd.Timestamp("2021-02-03 10:00" if frequency == "bh" else "2021-02-03", tz=zone)
    if frequency != "4-4-5":
        return pd.date_range(start, periods=count, freq=frequency)
    return pd.DatetimeIndex(start + pd.to_timedelta(7 * np.cumsum(np.resize([4, 4, 5], count)), unit="D"))


def draw(seed: int) -> Case:
    """Return the case of a seed."""
    rng = np.random.default_rng([30, seed])
    process = list(PROCESSES)[seed % len(PROCESSES)]
    frequency = str(rng.choice(FREQUENCIES))
    zone = None if frequency == "4-4-5" else rng.choice(np.array(ZONES, dtype=object))
    n, steps, columns = int(rng.integers(50, 150)), int(rng.integers(1, 13)), int(rng.choice([1, 1, 2, 3]))
    whole = np.stack([PROCESSES[process](rng, n + steps) for _ in range(columns)], axis=1)
    inputs = rng.normal(size=(n + steps, int(rng.integers(1, 3)))) if rng.random() < 0.2 else None
    if inputs is not None:
        whole = whole + 2 * inputs.sum(axis=1)[:, None]
    dates = dates_of(frequency, n + steps, zone)
    table = pd.DataFrame(whole[:n], index=dates[:n], columns=[f"c{j}" for j in range(columns)])
    if rng.random() < 0.5:  # the frequency is inferred from the dates
        table.index = pd.DatetimeIndex(table.index.to_numpy() if zone is None else list(table.index))
    gap = str(rng.choice(["none", "none", "rows", "inside", "end"]))
    if gap == "inside":
        table.iloc[np.sort(rng.choice(n, n // 8, replace=False))] = np.nan
    if gap == "end":
        table.iloc[-int(rng.integers(1, 7)) :] = np.nan
    if gap == "rows" and inputs is None and frequency != "4-4-5":
        table = table.iloc[np.sort(np.r_[0:12, 12 + rng.choice(n - 13, n - 18, replace=False), n - 1])]
    known, ahead = ({}, {}) if inputs is None else ({"exogenous": inputs[:n]}, {"exogenous": inputs[n:]})
    rows = table if columns > 1 else table["c0"]
    return Case(process, frequency, rows, known, ahead, whole[n:], dates[n:], gap)


def forecast(table: Any, case: Case, **settings: Any) -> Any:
    """Return the forecast of a table by a forecaster with its defaults, without its dates."""
    esn = ESNForecaster(**settings).fit(table, **case.known)
    return np.asarray(esn.predict(len(case.truth), **case.ahead)).reshape(case.truth.shape)


def outcome(seed: int) -> dict[str, Any]:
    """Return what became of each property ("held", "reported", "wrong"), the shares inside intervals, and the case."""
    case, rng = draw(seed), np.random.default_rng([31, seed])
    table, steps, found = case.table, len(case.truth), {}
    spread = np.nanstd(np.asarray(table).reshape(len(table), -1), axis=0)

    def same(name: str, first: Any, second: Any) -> None:
        found[name] = "held" if bool((np.abs(first - second) <= TOLERANCE * spread).all()) else "wrong"

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        esn = ESNForecaster().fit(table, **case.known)
        answer = esn.predict(steps, **case.ahead)
    plain = np.asarray(answer).reshape(case.truth.shape)
    irregular = any("not at equal distances" in str(one.message) for one in told)
    right = not irregular and len(answer.index) == steps and bool((answer.index == case.dates).all())
    found["dates"] = "held" if right else "reported" if irregular else "wrong"
    inside = []
    for coverage in COVERAGES:
        lower, upper = esn.forecast_interval(steps, coverage, **case.ahead)
        bounds = [np.asarray(bound).reshape(case.truth.shape) for bound in (lower, upper)]
        inside.append(float(((case.truth >= bounds[0]) & (case.truth <= bounds[1])).mean()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scale, shift = 10.0 ** rng.uniform(-9, 9), 100 * rng.normal()
        least = np.nanmin(np.asarray(table).reshape(len(table), -1), axis=0)
        if case.known or least.max() > 0:  # what exogenous inputs leave may be positive, too
            same("units", forecast(scale * table, case) / scale, plain)
            same("zero", forecast(table + shift, case, log=False) - shift, forecast(table, case, log=False))
        else:  # no logarithms
            same("units", forecast(scale * (table + shift), case, log=False) / scale - shift, plain)
        other = table.sample(frac=1, random_state=seed)
        if not irregular and not case.known:
            if table.index.tz is not None and case.frequency in FIXED:
                other = other.tz_convert("Pacific/Auckland")
                same("order and zone", forecast(other, case), plain)
            else:
                same("order", forecast(other, case), plain)
        if table.ndim == 1 and not case.known and esn.method_ == "direct":
            others = [1e5 * PROCESSES[name](rng, 60) for name in rng.choice(list(PROCESSES), 2)]
            together = ESNForecaster().fit([others[0], table, others[1]]).predict(steps)[1]
            same("company", np.asarray(together)[:, None], plain)
    gap = {"none": "no gap", "rows": "rows left out"}.get(case.gap, f"missing values: {case.gap}")
    about = {"seed": seed, "process": case.process, "frequency": case.frequency, "gap": gap}
    return {**about, "found": found, "inside": inside}


def main() -> None:
    """Draw the series, and keep what became of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    KEPT.parent.mkdir(exist_ok=True)
    known = [json.loads(line) for line in KEPT.read_text().splitlines()] if KEPT.exists() else []
    outcomes = {one["seed"]: one for one in known}
    left = [seed for seed in range(options.series) if seed not in outcomes]
    with Pool(options.processes) as pool, KEPT.open("a", encoding="utf-8", buffering=1) as file:
        for one in pool.imap_unordered(outcome, left):
            print(json.dumps(one), file=file)
            outcomes[one["seed"]] = one
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    shares: dict[str, list[list[float]]] = defaultdict(list)
    for one in (outcomes[seed] for seed in range(options.series)):
        for name, became in one["found"].items():
            counts[name].update(["series", became])
            if became == "wrong":
                print({**one, "found": name})
        for group in (one["process"], one["gap"], "all"):
            shares[group].append(one["inside"])
    rows = {
        name: {"series": len(each), **dict(zip(("80", "95"), np.mean(each, axis=0).tolist(), strict=True))}
        for name, each in sorted(
            shares.items(), key=lambda item: (item[0] == "all", [*PROCESSES, item[0]].index(item[0]))
        )
    }
    figures = {"properties": {name: dict(count) for name, count in counts.items()}, "intervals": rows}
    results.show("properties", ("series", "held", "reported", "wrong"), figures["properties"])
    results.show("intervals", ("series", "80", "95"), rows)
    results.keep("random_series", figures)


if __name__ == "__main__":
    main()
