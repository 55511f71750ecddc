"""The memory that is still available is the smallest of the limits that the system reports."""

import subprocess
import sys

import pytest

from echolearn.execution import memory
from echolearn.execution.memory import available_memory


@pytest.fixture
def system_files(monkeypatch):
    """Replace the files of the system by these texts, by the end of their path; the process has no limit."""

    def replace(files):
        monkeypatch.setattr(
            memory, "_read_text", lambda path: next((text for end, text in files.items() if path.endswith(end)), "")
        )
        monkeypatch.setattr(memory, "_process_memory", lambda: None)

    return replace


def test_memory_is_unknown_where_the_system_reports_nothing(system_files):
    system_files({})
    assert available_memory() is None


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"/proc/meminfo": "MemTotal: 9 kB\nMemAvailable: 1000 kB\n"}, 1000 * 1024),
        ({"/proc/meminfo": "MemAvailable: 1000 kB", "memory.max": "900000\n", "memory.current": "400000\n"}, 500_000),
        ({"/proc/meminfo": "MemAvailable: 1000 kB", "memory.max": "max\n", "memory.current": "4\n"}, 1000 * 1024),
        ({"memory.limit_in_bytes": "700", "memory.usage_in_bytes": "300"}, 400),
    ],
)
def test_the_narrowest_limit_counts(files, expected, system_files):
    system_files(files)
    assert available_memory() == expected


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_limit_of_the_process_counts():
    code = (
        "import resource; from echolearn.execution import memory;"
        "resource.setrlimit(resource.RLIMIT_AS, (64 << 30, -1));"
        "left = memory._process_memory(); print(left < 64 << 30, left > 0, memory.available_memory() <= left)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "True"]
