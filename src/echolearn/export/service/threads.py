"""The computation of answers: threads beside the event loop, and how many may ask for them at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from echolearn.export.service.limits import Limits, Metrics, busy

AT_ONCE_SECONDS = 0.001  # work of a stream up to this is done in the event loop
Answer = TypeVar("Answer")
Question = TypeVar("Question")


class Workshop:
    """The threads of a service. Requests and streams have their own, so that a long request delays no stream."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self._limits, self._metrics = limits, metrics
        self._requests = ThreadPoolExecutor(limits.threads, "echolearn-request")
        self._streams = ThreadPoolExecutor(limits.threads, "echolearn-stream")
        self._running = 0
        self.open_streams = 0

    async def request(self, read: Awaitable[Question], work: Callable[[Question], Answer]) -> Answer:
        """Return the work on what is read; the place of a request is free again when its thread has ended. A thread
        cannot be stopped: after the time limit the client is refused, and the place stays taken."""
        if self._running >= self._limits.requests:
            if asyncio.iscoroutine(read):
                read.close()
            raise busy(f"{self._running} requests are being answered, as many as this service takes; ask again soon.")
        self._count(1)
        future: Future[Answer] | None = None
        try:
            question = await read
            future = self._requests.submit(work, question)
            async with asyncio.timeout(self._limits.request_seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            seconds = self._limits.request_seconds
            raise busy(f"the answer took more than {seconds:g} s; ask about fewer frames.", "time") from None
        finally:
            if future is None or future.cancel() or future.done():
                self._count(-1)
            else:
                loop = asyncio.get_running_loop()
                future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._count, -1))

    async def step(self, work: Callable[[Question], Answer], question: Question, seconds: float) -> Answer:
        """Return a step of a stream that is expected to take so many seconds. A frame of a small network takes less
        time than handing it to a thread: it delays the others less right here."""
        if seconds <= AT_ONCE_SECONDS:
            return work(question)
        return await asyncio.get_running_loop().run_in_executor(self._streams, work, question)

    def close(self) -> None:
        self._requests.shutdown(cancel_futures=True)
        self._streams.shutdown(cancel_futures=True)

    def _count(self, more: int) -> None:
        self._running += more
        self._metrics.running.set(self._running)
