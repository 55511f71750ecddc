"""The short form of reliability/service_load.py and reliability/service_hostile.py."""

from pathlib import Path

import pytest

from reliability import service_hostile, service_load

LINUX = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")


@LINUX
def test_no_message_is_lost():
    found = service_load.campaign(2.0, 4, "")
    assert {name: one["messages sent"] for name, one in found.items()} == {
        "one layer": 200,
        "deep": 200,
        "recogniser": 20,
        "forecaster": 20,
    }
    for one in found.values():
        assert one["messages sent"] == one["messages answered"]
        assert one["out of order"] == 0
        assert one["largest difference from the model"] < 1e-5
        assert one["exit code"] == 0


@LINUX
def test_a_wrong_answer_is_noticed():
    client = service_load.Client([b""], first=[{"values": [[1.0], [2.5]]}])
    client.messages = [b'\r\n\r\n{"X": [[0]], "steps": 2, "exogenous": [[0], [0], [0]]}']
    model = type("", (), {"predict": lambda self, steps, **more: [[1.0], [2.0]]})()
    assert service_load.of_questions(model, client) == 0.5


@LINUX
def test_hostile_requests_are_refused():
    found = service_hostile.attack_service(100, seed=2)
    assert found["attacks"]["all"]["wrong"] == 0, found
    assert found["wrong answers to good questions"] == 0
    assert found["tracebacks in the log"] == 0
    assert found["exit code"] == 0
