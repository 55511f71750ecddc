"""Public series that come inside wheels: statsmodels, aeon, pmdarima and vega_datasets. Nothing is fetched.

Each series has a frequency, which decides its season and horizon. In the order of their names within a frequency,
every second series belongs to the development half, on which all choices are made; the others are the test half.
"""

from __future__ import annotations

import ast
import io
import tarfile
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

# frequency: (pandas frequency, season, horizon, rolling origins, steps between them)
FREQUENCIES = {
    "yearly": ("YS", 1, 6, 6, 1),
    "quarterly": ("QS", 4, 8, 6, 2),
    "monthly": ("MS", 12, 12, 6, 3),
    "weekly": ("W-SAT", 52, 13, 6, 6),
    "daily": ("D", 7, 14, 6, 7),
    "half-hourly": ("30min", 48, 48, 6, 24),
    "hourly": ("h", 24, 48, 6, 24),
}
STATS = "tsa/statespace/tests/results/frbny_nowcast/Nowcasting/data/US/2016-07-29.csv"


@dataclass(frozen=True, eq=False)
class Series:
    """One series: name, frequency, values with a time index, and the package that it came in."""

    name: str
    frequency: str
    values: pd.Series
    source: str

    @property
    def season(self) -> int:
        return FREQUENCIES[self.frequency][1]

    @property
    def horizon(self) -> int:
        return FREQUENCIES[self.frequency][2]

    @property
    def origins(self) -> list[int]:
        """Return how many values are known at each rolling origin: at least two seasons, at most all but a horizon."""
        _, _, horizon, count, step = FREQUENCIES[self.frequency]
        last = len(self.values) - horizon
        known = [last - step * k for k in range(count)][::-1]
        return [n for n in known if n >= max(2 * self.season, 12)]


def _path(package: str, file: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(f"{package} is not installed: make .venv-forecasts/ready, and use its Python.")
    return Path(spec.origin).parent / file


def frame(package: str, file: str, **how: object) -> pd.DataFrame:
    """Return a table that comes inside a package."""
    return pd.read_csv(_path(package, file), **how)


@cache
def all_series() -> dict[str, Series]:
    """Return every series by its name."""
    found = [*_yearly(), *_quarterly(), *_monthly(), *_weekly_and_daily(), *_hourly()]
    return {s.name: s for s in found}


def half(which: str) -> list[Series]:
    """Return the development or the test half."""
    chosen = []
    for frequency in FREQUENCIES:
        members = sorted((s for s in all_series().values() if s.frequency == frequency), key=lambda s: s.name)
        chosen += members[0::2] if which == "development" else members[1::2]
    return chosen


def _dated(name: str, frequency: str, values: object, start: str, source: str) -> Series:
    y = np.asarray(values, dtype=np.float64)
    index = pd.date_range(start, periods=len(y), freq=FREQUENCIES[frequency][0])
    return Series(name, frequency, pd.Series(y, index=index, name=name), source)


def _yearly() -> list[Series]:
    sm = "statsmodels"
    series = [
        _dated("nile", "yearly", frame(sm, "datasets/nile/nile.csv")["volume"], "1871", sm),
        _dated("sunspots-yearly", "yearly", frame(sm, "datasets/sunspots/sunspots.csv")["SUNACTIVITY"], "1700", sm),
        _dated("copper-use", "yearly", frame(sm, "datasets/copper/copper.csv")["WORLDCONSUMPTION"], "1951", sm),
        _dated("stock-prices", "yearly", np.exp(frame(sm, "tsa/tests/results/stkprc.csv").iloc[:, 0]), "1871", sm),
        _dated("gnp-deflator", "yearly", np.exp(frame(sm, "tsa/tests/results/gnpdef.csv").iloc[:, 0]), "1889", sm),
        _dated("lynx", "yearly", frame("aeon", "datasets/data/Lynx/Lynx.csv").iloc[:, -1], "1821", "aeon"),
    ]
    lines = _path("aeon", "datasets/data/m1_yearly_dataset/m1_yearly_dataset.tsf").read_text("latin-1").splitlines()
    rows = [line for line in lines[lines.index("@data") + 1 :] if line]
    long = [row.split(":") for row in rows if row.count(",") >= 39]  # 40 values and more
    series += [_dated(f"m1-{p[0]}", "yearly", p[-1].split(","), "1930", "aeon") for p in long[:6]]
    return series


def _quarterly() -> list[Series]:
    sm = "statsmodels"
    macro = frame(sm, "datasets/macrodata/macrodata.csv")
    names = {
        "realgdp": "gdp",
        "realinv": "investment",
        "unemp": "unemployment",
        "cpi": "cpi",
        "m1": "money",
        "tbilrate": "t-bill",
    }
    series = [_dated(name, "quarterly", macro[column], "1959", sm) for column, name in names.items()]
    danish = frame(sm, "datasets/danish_data/data.csv", encoding="utf-8-sig")
    series += [
        _dated("danish-money", "quarterly", np.exp(danish["lrm"]), "1974", sm),
        _dated("german-rate", "quarterly", frame(sm, "datasets/interest_inflation/E6.csv")["R"], "1972-04", sm),
    ]
    change = frame("aeon", "datasets/data/Uschange/Uschange.csv")
    series += [_dated("us-income", "quarterly", change["Income"], "1970", "aeon")]
    for module, start in (("ausbeer", "1956"), ("austres", "1971-04"), ("woolyrnq", "1965")):
        series.append(_dated(module, "quarterly", _pmdarima(module), start, "pmdarima"))
    return series


def _monthly() -> list[Series]:
    sm = "statsmodels"
    equipment = frame(sm, "datasets/elec_equip/elec_equip.csv").iloc[:, 1]
    housing = frame(sm, "tsa/holtwinters/tests/results/housing-data.csv").iloc[:, 1]
    nino = frame(sm, "datasets/elnino/elnino.csv").iloc[:, 1:].to_numpy().ravel()
    series = [
        _dated("electrical-equipment", "monthly", equipment, "1995", sm),
        _dated("housing-starts", "monthly", housing, "1959", sm),
        _dated("el-nino", "monthly", nino, "1950", sm),
        _dated("co2-monthly", "monthly", frame(sm, "tsa/stl/tests/results/stl_co2.csv", header=None)[0], "1959", sm),
        _dated("unemployment-rate", "monthly", frame(sm, "tsa/tests/results/UN.csv").iloc[:, 0], "1948", sm),
        _dated("bond-yield", "monthly", frame(sm, "tsa/tests/results/BAA.csv").iloc[:, 0], "1949", sm),
    ]
    nowcast = frame(sm, STATS)
    for column, name in (
        ("PAYEMS", "payrolls"),
        ("INDPRO", "production"),
        ("HSN1F", "houses-sold"),
        ("UNRATE", "unrate"),
    ):
        series.append(_dated(name, "monthly", nowcast[column].dropna(), "1985", sm))
    series += [
        _dated("airline", "monthly", frame("aeon", "datasets/data/Airline/Airline.csv").iloc[:, -1], "1949", "aeon"),
        _dated(
            "shampoo",
            "monthly",
            frame("aeon", "datasets/data/ShampooSales/ShampooSales.csv").iloc[:, -1],
            "1991",
            "aeon",
        ),
        _dated(
            "drugs",
            "monthly",
            frame("aeon", "datasets/data/PBS_dataset/PBS_dataset.csv").iloc[:, -1],
            "1991-07",
            "aeon",
        ),
        _dated("wine", "monthly", _pmdarima("wineind"), "1980", "pmdarima"),
    ]
    sunspots = np.loadtxt(_path("pmdarima", "datasets/data/sunspots.txt.gz"))
    series.append(_dated("sunspots-monthly", "monthly", sunspots.ravel()[-1200:], "1884", "pmdarima"))
    jobs = frame("vega_datasets", "_data/us-employment.csv")
    series.append(_dated("retail-jobs", "monthly", jobs["retail_trade"], "2006", "vega_datasets"))
    series.append(_dated("building-jobs", "monthly", jobs["construction"], "2006", "vega_datasets"))
    return series


def _weekly_and_daily() -> list[Series]:
    co2 = frame("statsmodels", "datasets/co2/co2.csv")["co2"].interpolate()
    weather = frame("vega_datasets", "_data/seattle-weather.csv")
    power = frame("statsmodels", "tsa/stl/tests/results/mstl_elec_vic.csv")["y"].to_numpy()
    with tarfile.open(_path("pmdarima", "datasets/data/msft.tar.gz")) as archive:
        member = archive.extractfile(archive.getmembers()[-1])
        assert member is not None
        prices = pd.read_csv(io.BytesIO(member.read()))["Close"]
    return [
        _dated("co2-weekly", "weekly", co2[-520:], "1992", "statsmodels"),
        _dated("seattle-heat", "daily", weather["temp_max"], "2012", "vega_datasets"),
        _dated("seattle-wind", "daily", weather["wind"], "2012", "vega_datasets"),
        _dated("power-daily", "daily", power.reshape(-1, 24).mean(axis=1), "2012", "statsmodels"),
        _dated("stock-daily", "daily", prices[-1000:], "2014", "pmdarima"),
    ]


def _hourly() -> list[Series]:
    power = frame("statsmodels", "tsa/stl/tests/results/mstl_elec_vic.csv")["y"]
    heat = frame("vega_datasets", "_data/seattle-temps.csv")["temp"]
    bay = frame("vega_datasets", "_data/sf-temps.csv")["temp"]
    solar = frame("aeon", "datasets/data/solar/solar.csv")["solar_gen"]
    return [
        _dated("power-hourly", "hourly", power, "2012", "statsmodels"),
        _dated("seattle-hourly", "hourly", heat[-2000:], "2010-10-10", "vega_datasets"),
        _dated("bay-hourly", "hourly", bay[-2000:], "2010-10-10", "vega_datasets"),
        _dated("power-half-hourly", "half-hourly", _pmdarima("taylor"), "2000-06-05", "pmdarima"),
        _dated("solar", "half-hourly", solar, "2021-05", "aeon"),
    ]


def _pmdarima(name: str) -> np.ndarray:
    """Return the longest list of numbers in a module of pmdarima's data, read as text: nothing of it is run."""
    tree = ast.parse(_path("pmdarima", f"datasets/{name}.py").read_text())
    lists = [node for node in ast.walk(tree) if isinstance(node, ast.List)]
    numbers = ast.literal_eval(max(lists, key=lambda node: len(node.elts)))
    return np.array([v for v in numbers if v is not None], dtype=np.float64)
