"""A Dask cluster of three real worker processes for the tests of this folder."""

import pytest

import clusters
import passes
from echolearn.cluster import executor
from echolearn.readout import softmax


def pytest_collection_modifyitems(items):
    """Leave the warnings of Dask and its event loops to Dask."""
    for item in items:
        if item.path.parent.name == "cluster":
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture(scope="package")
def three_workers(tmp_path_factory):
    """A client of three workers, their processes, and a function that starts one more."""
    pytest.importorskip("distributed")
    with clusters.cluster(tmp_path_factory.mktemp("cluster"), 3) as started:
        yield started


@pytest.fixture
def client(three_workers):
    """A client of three living workers: those that an earlier test has ended are replaced."""
    client, running, start_one = three_workers
    for _ in range(3 - sum(process.poll() is None for process in running)):
        start_one()
    client.wait_for_workers(3, timeout=60)
    return client


@pytest.fixture
def many_parts(monkeypatch):
    """Let small data be placed in many parts, and be worked on in many groups."""
    passes.work_on_frames(monkeypatch, 60)
    monkeypatch.setattr(executor, "MIN_FRAMES_PER_PART", 50)
    monkeypatch.setattr(softmax, "MIN_STEPS_PER_STRENGTH", 5)
