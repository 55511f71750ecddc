"""A pytest plugin that records the processor seconds of every test, and which tests did not pass."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest

_seconds: dict[str, float] = {}
_failed: set[str] = set()


def _processor() -> float:
    """Return the processor seconds of this process and of the processes that it started."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    began = _processor()
    result = yield
    _seconds[item.nodeid] = round(_processor() - began, 3)
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.outcome != "passed":
        _failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    path = Path(os.environ["MUTANTS_DURATIONS"])
    path.write_text(json.dumps({"seconds": _seconds, "not passed": sorted(_failed)}), encoding="utf-8")
