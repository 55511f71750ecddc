"""The websocket `/stream`: an answer to every message, in order.

The next message is read when the answer to the one before has been handed to the connection, so that a client that
sends faster than it is answered, or does not read its answers, is slowed down by TCP and costs no memory.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import inf

import numpy as np
from starlette.datastructures import QueryParams
from starlette.types import Receive, Scope, Send

from echolearn.export.service.access import SUBPROTOCOL
from echolearn.export.service.bodies import command_of, parse_json, parse_message, stream_answer
from echolearn.export.service.limits import Limits, Metrics, Refusal, malformed, not_acceptable
from echolearn.export.service.models import About, FrameStream, Listener, NetworkModel, ServedModel
from echolearn.export.service.threads import Workshop

CLOSE_DONE, CLOSE_POLICY, CLOSE_INTERNAL, CLOSE_AGAIN = 1000, 1008, 1011, 1013  # codes of RFC 6455
CLOSE_IDLE, CLOSE_NO_STREAM = 4408, 4422
DEFAULT_SAMPLES_PER_SECOND = 16_000
_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True)
class Reply:
    """What is sent back; frames (or samples) that were taken; whether the stream is over; whether it was refused."""

    text: str
    frames: int = 0
    ended: bool = False
    wrong: bool = False


class FrameSession:
    """Frames in, probabilities or values out. After a Refusal, the stream is as it was."""

    def __init__(self, about: About, stream: FrameStream) -> None:
        self._about, self._stream, self._step = about, stream, 0

    def take(self, message: str | bytes) -> Reply:
        parsed = parse_message(message, self._about.n_features)
        if parsed == "end":
            return Reply(_json({"end": True, "steps": self._step}), ended=True)
        if isinstance(parsed, str):  # "reset"
            self._stream.reset()
            self._step = 0
            return Reply(_json({"reset": True}))
        frames, single = parsed
        try:
            rows = self._stream.step(frames)
            text = _json(stream_answer(self._about, self._step, rows, single))
        except (ValueError, FloatingPointError) as problem:
            raise not_acceptable(str(problem)) from problem
        self._step += len(frames)
        return Reply(text, frames=len(frames))

    def seconds(self, message: str | bytes, per_frame: float) -> float:
        """Return the time of as many frames as the message can hold, if a frame takes `per_frame`."""
        smallest = (4 if isinstance(message, bytes) else 2) * self._about.n_features
        return per_frame * (1 + len(message) // smallest)


class SoundSession:
    """Samples in, text out: 16-bit integers, little-endian, one channel."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def take(self, message: str | bytes) -> Reply:
        if isinstance(message, bytes):
            if len(message) == 0 or len(message) % 2:
                raise not_acceptable(f"the message has {len(message):,} bytes; expected samples of 2 bytes each.")
            samples = np.frombuffer(message, "<i2")
            try:
                return Reply(_json(self._listener(samples)), frames=len(samples))
            except (ValueError, FloatingPointError) as problem:
                raise not_acceptable(str(problem)) from problem
        value = parse_json(message)
        if not isinstance(value, dict):
            raise malformed('the message is text; expected bytes of sound, or {"command": "end"}.')
        command_of(value, ("end",))
        return Reply(_json({"end": True, **self._listener(None)}), ended=True)

    def seconds(self, message: str | bytes, per_frame: float) -> float:
        """Return the time of a frame: sound is always for a thread."""
        return per_frame


Session = FrameSession | SoundSession


def open_session(model: ServedModel, rate: str | None) -> Session:
    """Return a new stream of a model; rate: samples per second of sound."""
    if model.open_stream is None:
        raise not_acceptable(f"this model does not stream: {model.why_no_stream}")
    if isinstance(model, NetworkModel):
        return FrameSession(model.about, model.open_stream())
    hertz = DEFAULT_SAMPLES_PER_SECOND if rate is None else int(rate) if rate.isdecimal() and len(rate) < 7 else 0
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
    """The endpoint of all streams of a service: an ASGI application of websockets."""

    def __init__(self, model: ServedModel, limits: Limits, metrics: Metrics, workshop: Workshop) -> None:
        self._model, self._limits, self._metrics, self._workshop = model, limits, metrics, workshop
        self._frame_seconds = frame_seconds(model)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        protocol = SUBPROTOCOL if SUBPROTOCOL in scope.get("subprotocols", ()) else None
        await send({"type": "websocket.accept", "subprotocol": protocol})
        workshop, metrics, most = self._workshop, self._metrics, self._limits.streams
        if workshop.open_streams >= most:
            metrics.refuse("streams")
            await _close(send, CLOSE_AGAIN, f"{most} streams are open, as many as this service takes")
            return
        workshop.open_streams += 1
        metrics.streams.set(workshop.open_streams)
        try:
            rate = QueryParams(scope.get("query_string", b"")).get("rate")
            await self._serve(rate, receive, send)
        except Refusal as refusal:
            metrics.refuse(refusal.reason)
            await _close(send, CLOSE_NO_STREAM, refusal.message)
        except OSError:
            pass  # the client has gone
        except Exception:
            metrics.refuse("internal")
            await _close(send, CLOSE_INTERNAL, "the service failed; its log says how")
            raise
        finally:
            workshop.open_streams -= 1
            metrics.streams.set(workshop.open_streams)

    async def _serve(self, rate: str | None, receive: Receive, send: Send) -> None:
        """Answer to messages until the stream ends, or nothing has come for too long."""
        session = await self._workshop.step(partial(open_session, self._model), rate, inf)
        idle, now = self._limits.idle_seconds, asyncio.get_running_loop().time
        wrong = 0
        try:
            async with asyncio.timeout(None) as limit:
                while wrong < self._limits.stream_errors:
                    limit.reschedule(now() + idle)
                    event = await receive()
                    limit.reschedule(None)
                    if event["type"] == "websocket.disconnect":
                        return
                    reply = await self._reply(session, event.get("text") or event.get("bytes") or b"")
                    wrong = wrong + 1 if reply.wrong else 0
                    await send({"type": "websocket.send", "text": reply.text})
                    if reply.ended:
                        await _close(send, CLOSE_DONE, "")
                        return
        except TimeoutError:
            self._metrics.refuse("idle")
            await _close(send, CLOSE_IDLE, f"no message for {idle:g} s")
            return
        self._metrics.refuse("stream-errors")
        await _close(send, CLOSE_POLICY, f"{wrong} wrong messages in a row")

    async def _reply(self, session: Session, message: str | bytes) -> Reply:
        begin = time.perf_counter()
        seconds = session.seconds(message, self._frame_seconds)
        try:
            reply = await self._workshop.step(session.take, message, seconds)
        except Refusal as refusal:
            self._metrics.refuse(refusal.reason)
            return Reply(json.dumps(refusal.content()), wrong=True)
        self._metrics.stream_seconds.observe(time.perf_counter() - begin)
        self._metrics.frames.inc(reply.frames)
        return reply


async def _close(send: Send, code: int, reason: str) -> None:
    """Close a stream; a reason has at most 123 bytes."""
    short = reason.encode()[:123].decode(errors="ignore")
    with suppress(OSError):
        await send({"type": "websocket.close", "code": code, "reason": short})
