"""Limits on the size, number and duration of requests; refusals of what is beyond them; and counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from starlette.responses import JSONResponse

# The values of labels are from fixed lists, so that the memory of the metrics is bounded.
REASONS = (
    "malformed", "media-type", "body-size", "slow-body", "frames", "not-acceptable", "token", "host", "origin",
    "not-found", "method", "busy", "time", "streams", "stream-errors", "idle", "slow-reader", "connections", "headers",
    "slow-headers", "internal",
)  # fmt: skip
ROUTES = ("/predict", "/recognize", "/model", "/health", "/ready", "/metrics", "/", "/stream")
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKET_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


@dataclass(frozen=True)
class Limits:
    body_bytes: int = 8 * 2**20
    message_bytes: int = 2**20  # of a stream
    header_bytes: int = 16 * 2**10
    frames: int = 100_000  # of one request, over all its sequences, and steps of a forecast
    requests: int = 16  # that are read or answered at the same time
    streams: int = 64  # that are open at the same time
    connections: int = 512  # of any kind
    threads: int = 2  # that answer requests; as many others answer streams
    request_seconds: float = 30.0  # in which a request is answered, from the end of its body
    body_seconds: float = 20.0  # in which a body arrives, and in which a client takes an answer
    header_seconds: float = 10.0  # in which the head of a request arrives
    idle_seconds: float = 60.0  # between two messages of a stream
    stop_seconds: float = 10.0  # in which running requests end when the service stops
    stream_errors: int = 10  # wrong messages after which a stream is closed


class Refusal(Exception):
    """A request that is not answered, and why."""

    def __init__(self, status: int, reason: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        assert reason in REASONS
        self.status, self.reason, self.message, self.headers = status, reason, message, dict(headers or {})

    def response(self) -> JSONResponse:
        """Return the refusal as JSON; a refused connection is not used again."""
        headers = {"Connection": "close", "Cache-Control": "no-store", **self.headers}
        return JSONResponse(self.content(), self.status, headers)

    def content(self) -> dict[str, str]:
        return {"error": self.message, "reason": self.reason}


def malformed(message: str) -> Refusal:
    """Return the refusal of a body that cannot be read."""
    return Refusal(400, "malformed", message)


def not_acceptable(message: str) -> Refusal:
    """Return the refusal of a body that can be read, but not by this model."""
    return Refusal(422, "not-acceptable", message)


def busy(message: str, reason: str = "busy") -> Refusal:
    return Refusal(503, reason, message, {"Retry-After": "1"})


class Metrics:
    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, buckets=_BUCKET_SECONDS, registry=registry)
        self._requests = counter("echolearn_requests", "Requests by route and status.", ["route", "status"])
        self._seconds = histogram("echolearn_request_seconds", "Time from head to end.", ["route"])
        self._refused = counter("echolearn_refused", "Refused requests, streams and messages.", ["reason"])
        self.running = gauge("echolearn_running_requests", "Requests that are read or answered.")
        self.streams = gauge("echolearn_open_streams", "Streams that are open.")
        self.frames = counter("echolearn_stream_frames", "Frames, or samples, of all streams.")
        self.stream_seconds = histogram("echolearn_stream_answer_seconds", "Time of an answer in a stream.")
        for reason in REASONS:
            self._refused.labels(reason)

    def request(self, path: str, status: int, seconds: float) -> None:
        route = path if path in ROUTES else "other"
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def refuse(self, reason: str) -> None:
        self._refused.labels(reason).inc()

    def text(self) -> bytes:
        return bytes(generate_latest(self.registry))
