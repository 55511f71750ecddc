"""Compiled loops are kept where a folder can be written, and compiled without being kept elsewhere."""

import numba
import pytest
from numba.core import caching

from echolearn.execution import compilation
from echolearn.execution.compilation import cached_njit


def double(x):
    return 2 * x


def test_loops_run_where_no_folder_can_be_written(monkeypatch):
    assert cached_njit()(double).stats.cache_path is not None
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    with pytest.raises(RuntimeError, match="no locator available"):
        numba.njit(cache=True)(double)
    assert cached_njit()(double)(21) == 42


def test_other_errors_are_passed_on(monkeypatch):
    def fail(**options):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(compilation, "njit", fail)
    with pytest.raises(RuntimeError, match="no compiler"):
        cached_njit()(double)
