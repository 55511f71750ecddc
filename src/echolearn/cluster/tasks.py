"""Work that is dealt to workers whole, such as the networks of an ensemble: each piece is one task with all the data.

A piece reports to the client and waits for its answer, through queues of the scheduler. A report that was lost, with a
Ctrl-C or with the worker's connection, is sent again: `receive` may be called with one twice. When a worker dies, its
piece begins again elsewhere.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from threading import Event
from typing import Any, TypeVar
from uuid import uuid4

from echolearn import __version__
from echolearn.cluster import executor as executors
from echolearn.cluster.executor import ClusterExecutor, Future, Parts
from echolearn.cluster.worker import Inbox, do_piece
from echolearn.exceptions import ClusterError
from echolearn.sequences.dataset import Dataset

Result = TypeVar("Result")
Report = Callable[[object], Any]  # sends a message to the client and returns its answer
Receive = Callable[..., object]  # of the number of a piece, and its message
Piece = Callable[[int, list[Dataset], Report], Result]

REPORT_SECONDS = 1.0  # seconds for which the client waits for a report before it looks at the workers


class Dealer:
    """Deals pieces of work to the workers of a cluster.

    piece(number, datasets, report): the work, which runs on a worker with the data in its memory; its result should be
    small. receive(number, message): called in this process for every report, returns the answer. stop: set by a first
    Ctrl-C, which must end the work by the answers of `receive`; a second one is raised. failed: set when a piece has
    failed; the error is raised when the others have ended.
    """

    def __init__(self, executor: ClusterExecutor, receive: Receive, *, stop: Event, failed: Event) -> None:
        self.executor, self.receive, self.stop, self.failed = executor, receive, stop, failed
        self.name = f"echolearn-reports-{uuid4().hex}"
        self.reports = Inbox(self.name, executor.client)
        self.replies: dict[str, Any] = {}  # the queue of answers to each attempt at a piece
        self.waiting = 0.0  # since when nothing was received

    def deal(self, piece: Piece[Result], datasets: list[Dataset], count: int) -> list[Result]:
        """Return the results of piece(number, ...) for the numbers below `count`; one piece per thread at a time."""
        submit = self._submitter(piece, datasets)
        running: dict[Future, tuple[int, str]] = {}
        results: dict[int, Result] = {}
        problem: BaseException | None = None

        def left() -> list[int]:
            """Return the pieces that are still to be dealt, so that none is lost where a Ctrl-C comes while one is."""
            known = {*results, *(number for number, _ in running.values())}
            return [] if problem else [number for number in range(count) if number not in known]

        def advance() -> bool:
            """Deal pieces, answer a report and take results; return whether there is more to do."""
            while (numbers := left()) and (slot := self._free(running)) is not None:
                running[submit(numbers[0], slot)] = numbers[0], slot
            self._serve()
            for future in [future for future in running if future.done()]:
                results[running[future][0]] = self.executor.result(future)
                del running[future]
            return bool(left() or running)

        self.waiting = time.monotonic()
        more = count > 0
        try:
            while more:
                try:
                    while more:  # inside of `try`: Python raises KeyboardInterrupt where a loop begins again, too
                        more = advance()
                except KeyboardInterrupt:
                    if self.stop.is_set():
                        raise
                    self.stop.set()
                except ClusterError:
                    raise
                except Exception as found:
                    problem = problem or found
                    self.failed.set()
                    for future in [future for future in running if future.done()]:
                        del running[future]
                    more = bool(running)
        finally:
            self.executor.client.cancel(list(running))
            for queue in (self.reports, *self.replies.values()):
                queue.close()
        if problem is not None:
            raise problem
        return [results[number] for number in range(count)]

    def _submitter(self, piece: Piece[Result], datasets: list[Dataset]) -> Callable[[int, str], Future]:
        """Return a function that submits a piece to a worker, with the copy of the data that this worker has."""
        import cloudpickle

        parts = Parts()
        picks = [parts.pick(data, range(len(data.X)), []) for data in datasets]
        kinds = [(data.classes, data.per_step, data.dtype, data.noise) for data in datasets]
        job = self.executor.submit("job", bytes, cloudpickle.dumps((piece, list(zip(picks, kinds, strict=True)))))

        def submit(number: int, slot: str) -> Future:
            copy = self.executor.copy(parts, slot)
            return self.executor.submit("piece", do_piece, __version__, job, number, self.name, copy, slot=slot)

        return submit

    def _free(self, running: dict[Future, tuple[int, str]]) -> str | None:
        """Return a worker that has fewer pieces than threads, or None."""
        slots, used = self.executor.slots, [slot for _, slot in running.values()]
        free = [slot for slot in slots if used.count(slot) < slots.count(slot)]
        return min(free, key=used.count) if free else None

    def _serve(self) -> None:
        """Answer the next report, or give up where there is no worker left."""
        from distributed import Queue

        try:
            sent = self.reports.next(REPORT_SECONDS)
        except TimeoutError:
            if time.monotonic() > self.waiting + executors.WORKERLESS_SECONDS:
                self.executor.check_workers()
                self.waiting = time.monotonic()
            return
        self.waiting = time.monotonic()
        number, reply, ordinal, message = pickle.loads(sent)
        if reply is None:
            return  # the piece is done
        if reply not in self.replies:
            self.replies[reply] = Queue(reply, client=self.executor.client)
        answer = self.receive(number, message)
        self.replies[reply].put(pickle.dumps((ordinal, answer)))
