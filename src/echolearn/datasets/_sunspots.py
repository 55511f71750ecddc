"""Observed series, from packages that ship them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def sunspots() -> NDArray[np.float64]:
    """Load the mean number of sunspots of every year from 1700 to 2008.

    The series has cycles of about eleven years, whose lengths and heights vary.

    Returns
    -------
    array of shape (309, 1)
        The mean number of sunspots in each year.

    Raises
    ------
    ModuleNotFoundError
        If the package statsmodels, which ships the series, is not installed. Only its data file is read.

    Notes
    -----
    statsmodels took the series from the National Geophysical Data Center of the USA. It is in the public domain.

    References
    ----------
    Yule, On a method of investigating periodicities in disturbed series, Phil. Trans. R. Soc. A 226 (1927): the first
    autoregressive model, which was made for this series.

    Examples
    --------
    >>> from echolearn.datasets import sunspots
    >>> sunspots().shape  # doctest: +SKIP
    (309, 1)
    """
    spec = find_spec("statsmodels")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(
            "sunspots() reads the series that the package statsmodels ships, and that is not installed: "
            "pip install statsmodels."
        )
    path = Path(spec.origin).parent / "datasets" / "sunspots" / "sunspots.csv"
    return np.loadtxt(path, delimiter=",", skiprows=1, usecols=1)[:, None]
