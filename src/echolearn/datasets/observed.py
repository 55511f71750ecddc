"""Series that were observed, from packages that ship them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def sunspots() -> NDArray[np.float64]:
    """The mean number of sunspots of every year from 1700 to 2008, (309, 1): cycles of about eleven years, none alike.

    Read from the file that the package statsmodels ships (installed, not imported), which has it from the National
    Geophysical Data Center of the USA; public domain. Yule made the first autoregression for this series:
    On a method of investigating periodicities in disturbed series, Phil. Trans. R. Soc. A 226 (1927).
    """
    spec = find_spec("statsmodels")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(
            "sunspots() reads the series that the package statsmodels ships, and that is not installed: "
            "pip install statsmodels."
        )
    path = Path(spec.origin).parent / "datasets" / "sunspots" / "sunspots.csv"
    return np.loadtxt(path, delimiter=",", skiprows=1, usecols=1)[:, None]
