"""The websocket `/stream`: an answer to every message, in order.

The next message is read when the answer to the one before has been handed to the connection, so that a client that
sends faster than it is answered, or does not read its answers, is slowed down by TCP and costs no memory.
"""

from __future__ import annotations

import asyncio
import json
import time
from math import inf

import numpy as np
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from echolearn.export.service.access import SUBPROTOCOL
from echolearn.export.service.limits import Limits
from echolearn.export.service.metrics import Metrics
from echolearn.export.service.models import NetworkModel, ServedModel
from echolearn.export.service.refusals import Refusal, not_acceptable
from echolearn.export.service.sessions import FrameSession, Reply, Session, SoundSession
from echolearn.export.service.work import Workshop

DONE, POLICY, INTERNAL, AGAIN, IDLE, NO_STREAM = 1000, 1008, 1011, 1013, 4408, 4422  # close codes
RATE = 16_000


def open_session(model: ServedModel, rate: str | None) -> Session:
    """Return a new stream of a model; rate: samples per second of sound."""
    if model.open_stream is None:
        raise not_acceptable(f"this model does not stream: {model.why_no_stream}")
    if isinstance(model, NetworkModel):
        return FrameSession(model.about, model.open_stream())
    hertz = RATE if rate is None else int(rate) if rate.isdecimal() and len(rate) < 7 else 0
    if not 8000 <= hertz <= 192_000:
        raise not_acceptable(f"rate={rate!r:.20}; expected 8000 to 192000 samples per second.")
    return SoundSession(model.open_stream(hertz))


def frame_seconds(model: ServedModel) -> float:
    """Return the time that a frame takes, after the first ones; infinity for sound."""
    if not isinstance(model, NetworkModel) or model.open_stream is None:
        return inf
    stream, times = model.open_stream(), []
    for _ in range(10):
        begin = time.perf_counter()
        stream.step(np.zeros((1, model.about.n_features)))
        times.append(time.perf_counter() - begin)
    return min(times)


class StreamRoute:
    """The endpoint of all streams of a service."""

    def __init__(self, model: ServedModel, limits: Limits, metrics: Metrics, workshop: Workshop) -> None:
        self._model, self._limits, self._metrics, self._workshop = model, limits, metrics, workshop
        self._frame_seconds = frame_seconds(model)

    async def __call__(self, websocket: WebSocket) -> None:
        """Serve one stream from its handshake to its end."""
        offered = websocket.scope.get("subprotocols", [])
        await websocket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
        if self._workshop.open_streams >= self._limits.streams:
            self._metrics.refuse("streams")
            most = self._limits.streams
            await websocket.close(AGAIN, f"{most} streams are open, as many as this service takes")
            return
        self._workshop.open_streams += 1
        self._metrics.streams.set(self._workshop.open_streams)
        try:
            await self._serve(websocket)
        except WebSocketDisconnect:
            pass
        except Exception:
            if websocket.application_state is WebSocketState.CONNECTED:
                await websocket.close(INTERNAL, "the service failed")
            raise
        finally:
            self._workshop.open_streams -= 1
            self._metrics.streams.set(self._workshop.open_streams)

    async def _serve(self, websocket: WebSocket) -> None:
        rate = websocket.query_params.get("rate")
        try:
            session = await self._workshop.step(lambda given: open_session(self._model, given), rate, inf)
        except Refusal as refusal:
            self._metrics.refuse(refusal.reason)
            await websocket.close(NO_STREAM, refusal.message.encode()[:120].decode(errors="ignore"))
            return
        wrong = 0
        while True:
            message = await self._next(websocket)
            if message is None:
                return
            begin = time.perf_counter()
            try:
                reply = await self._workshop.step(session.take, message, session.seconds(message, self._frame_seconds))
                wrong = 0
            except Refusal as refusal:
                self._metrics.refuse(refusal.reason)
                reply, wrong = Reply(json.dumps(refusal.content())), wrong + 1
            await websocket.send_text(reply.text)
            self._metrics.stream_seconds.observe(time.perf_counter() - begin)
            self._metrics.frames.inc(reply.frames)
            if reply.ended:
                await websocket.close(DONE)
                return
            if wrong >= self._limits.stream_errors:
                self._metrics.refuse("stream-errors")
                await websocket.close(POLICY, f"{wrong} wrong messages in a row")
                return

    async def _next(self, websocket: WebSocket) -> str | bytes | None:
        """Return the next message; None when the stream is over."""
        try:
            async with asyncio.timeout(self._limits.idle_seconds):
                event = await websocket.receive()
        except TimeoutError:
            self._metrics.refuse("idle")
            await websocket.close(IDLE, f"no message for {self._limits.idle_seconds:g} s")
            return None
        if event["type"] == "websocket.disconnect":
            return None
        text: str | None = event.get("text")
        return text if text is not None else bytes(event["bytes"])
