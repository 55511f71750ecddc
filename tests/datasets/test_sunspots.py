"""The observed series."""

import importlib

import numpy as np
import pytest

from echolearn import datasets


def test_sunspots_come_from_the_package_that_ships_them(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    with pytest.raises(ModuleNotFoundError, match="pip install statsmodels"):
        datasets.sunspots()
    folder = tmp_path / "statsmodels" / "datasets" / "sunspots"
    folder.mkdir(parents=True)
    (tmp_path / "statsmodels" / "__init__.py").write_text("raise ImportError('need not be imported')")
    (folder / "sunspots.csv").write_text('"YEAR","SUNACTIVITY"\n1700,5\n1701,11\n2008,2.9\n')
    importlib.invalidate_caches()
    np.testing.assert_array_equal(datasets.sunspots(), [[5], [11], [2.9]])
