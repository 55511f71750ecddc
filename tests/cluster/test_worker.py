"""What runs on a worker, here in this process: results in memory of their own, sums that leave their terms alone."""

import pickle
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import toys
from echolearn import __version__
from echolearn.cluster.worker import (
    Parcel,
    Reporter,
    add,
    call,
    listed,
    unpickled,
    warnings_to,
    work,
    work_on_all_kept,
    work_on_copy,
)
from echolearn.exceptions import ClusterError
from echolearn.execution import threads


@pytest.fixture(autouse=True)
def blas_keeps_its_threads(monkeypatch):
    """A worker limits BLAS until its process ends; this process must not."""
    monkeypatch.setattr(threads.blas, "limit_blas_for_good", lambda: None)


def total(data, which, factor=1):
    """Return the sum of some sequences of a dataset, times a factor."""
    return np.array(factor * sum(data.X[i].sum() for i in which))


def first(data, which):
    """Return the inputs and targets of the first of some sequences."""
    return data.X[which[0]], data.y[which[0]]


def job(function, per_step=True):
    """Return what all tasks of a pass share, as it is sent."""
    return pickle.dumps((function, (None, per_step, np.dtype("float64"), 0.0)))


def test_arrays_of_a_parcel_arrive_in_memory_of_their_own():
    value = {"G": np.arange(1000.0), "n": 3}
    sent = pickle.dumps(Parcel(value), protocol=5)
    for offset in range(8):  # wherever the bytes lie, the numbers lie at multiples of their size
        moved = bytearray(offset) + sent
        arrived = pickle.loads(memoryview(moved)[offset:]).value
        np.testing.assert_array_equal(arrived["G"], value["G"])
        assert arrived["G"].ctypes.data % arrived["G"].itemsize == 0
        assert arrived["n"] == 3
    assert 8000 < sys.getsizeof(Parcel(value)) < 9000


def test_a_task_adds_its_items_over_the_places_of_their_sequences():
    X, Y = toys.echoes(sequences=3)
    parts = [X[:2], Y[:2], X[2:], Y[2:]]
    whole = [(0, 0, 0, len(X[0])), (2, 0, 0, len(X[2]))], [], [2], None
    middle = [(0, 1, 3, 7)], [], [1], None
    found = work(__version__, job(total), [whole, middle], *parts).value
    assert found == pytest.approx(2 * (X[0].sum() + X[2].sum()) + X[1][3:7].sum())
    x, y = work(__version__, job(first), [([(0, 1, 3, 7)], [(1, 1, 3, 7)], [], None)], *parts).value
    np.testing.assert_array_equal(x, X[1][3:7])
    np.testing.assert_array_equal(y, Y[1][3:7])


def test_a_place_without_an_end_is_the_entry_itself():
    X, _ = toys.echoes(sequences=1)
    _, y = work(__version__, job(first, per_step=False), [([(0, 0, 0, 5)], [(1, 0, 0, None)], [], None)], X, [4]).value
    assert y == 4


def test_sums_leave_their_terms_alone():
    terms = [Parcel(np.array([float(i)])) for i in range(4)]
    assert add(*terms).value[0] == 6
    assert [term.value[0] for term in terms] == [0, 1, 2, 3]


def test_kept_results_are_worked_on():
    assert call(__version__, pickle.dumps((abs, None)), Parcel(-3)).value == 3


def test_all_kept_results_are_worked_on_together():
    found = work_on_all_kept(__version__, pickle.dumps((sum, None)), Parcel(1), Parcel(2), Parcel(4))
    assert found.value == 7


def test_a_state_advances_by_what_was_prepared():
    state = Parcel(np.array([1.0]))
    assert call(__version__, pickle.dumps((np.add, None)), state, Parcel(np.array([2.0]))).value == [3.0]
    assert state.value == [1.0]


def test_a_copy_of_all_parts_serves_as_the_parts_do():
    X, _ = toys.echoes(sequences=3)
    picks = [([(0, 1, 3, 7), (1, 0, 0, 5)], [], [], None)]
    parts = [X[:2], X[2:]]
    found = work_on_copy(__version__, job(total), picks, listed(*parts)).value
    assert found == work(__version__, job(total), picks, *parts).value


def test_warnings_of_a_thread_are_passed_on(monkeypatch):
    shown, received = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", lambda message, *rest: shown.append(str(message)))
        with warnings_to(lambda category, text: received.append((category, text))):
            warnings.warn("inside", UserWarning, stacklevel=1)
        warnings.warn("outside", UserWarning, stacklevel=1)
    assert received == [(UserWarning, "inside")]
    assert shown == ["outside"]


def test_parts_arrive_as_they_were_sent():
    values = [np.arange(3), "text"]
    sent = unpickled(pickle.dumps(values))
    np.testing.assert_array_equal(sent[0], values[0])
    assert sent[1] == "text"


def test_a_client_of_another_version_is_refused():
    for task in (lambda: work("0.0.1", b"", []), lambda: call("0.0.1", b"", Parcel(0))):
        with pytest.raises(ClusterError, match=rf"a worker has echolearn {__version__}, the client 0\.0\.1"):
            task()


class Unreliable:
    """A queue that raises some errors, one at each call, before it works."""

    def __init__(self, *problems, answers=()):
        self.problems, self.answers, self.sent = list(problems), list(answers), []

    def put(self, sent):
        if self.problems:
            raise self.problems.pop(0)
        self.sent.append(pickle.loads(sent))

    def next(self, seconds):
        if self.problems:
            raise self.problems.pop(0)
        return pickle.dumps(self.answers.pop(0))


def reporter(reports, replies, state="executing"):
    """Return a reporter with these queues, whose task is in a state."""
    made = Reporter.__new__(Reporter)
    made.number, made.name, made.ordinal, made.task = 0, "replies", 0, "task"
    made.worker = SimpleNamespace(state=SimpleNamespace(tasks={"task": SimpleNamespace(state=state)}))
    made.reports, made.replies = reports, replies
    return made


def test_a_report_is_sent_again_after_a_lost_connection_or_no_answer():
    reports = Unreliable(OSError("no connection"))
    replies = Unreliable(TimeoutError(), ConnectionError(), answers=[(0, "old"), (1, "new")])
    assert reporter(reports, replies).report("message") == "new"
    assert reports.sent == [(0, "replies", 1, "message")] * 3


@pytest.mark.parametrize("problem", [TimeoutError(), OSError("no connection")])
def test_a_piece_that_nobody_waits_for_ends_at_its_next_report(problem):
    with pytest.raises(ClusterError, match="nobody waits"):
        reporter(Unreliable(), Unreliable(problem), state="cancelled").report("message")
