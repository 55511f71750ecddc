"""The short form of reliability/service_load.py and reliability/service_hostile.py."""

from pathlib import Path

import pytest

from reliability import service_hostile, service_load

LINUX = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")


@LINUX
def test_no_frame_is_lost():
    found = service_load.campaign(2.0, 3, "")
    assert found["frames sent"] == found["frames answered"] == found["frames counted by the service"] == 600
    assert found["out of order"] == 0
    assert found["largest difference from the model"] < 1e-5
    assert found["exit code"] == 0


@LINUX
def test_hostile_requests_are_refused():
    found = service_hostile.attack_service(100, seed=2)
    assert found["attacks"]["all"]["wrong"] == 0, found
    assert found["wrong answers to good questions"] == 0
    assert found["tracebacks in the log"] == 0
    assert found["exit code"] == 0
