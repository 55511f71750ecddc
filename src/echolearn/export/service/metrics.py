"""The metrics of the service, for Prometheus. The values of labels are from fixed lists, so that memory is bounded."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from echolearn.export.service.refusals import REASONS

ROUTES = ("/predict", "/recognize", "/model", "/health", "/ready", "/metrics", "/", "/stream")
TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class Metrics:
    """The counters of one service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        registry = self.registry
        self._requests = Counter(
            "echolearn_requests", "Requests by route and status.", ["route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "echolearn_request_seconds", "Time from head to end.", ["route"], buckets=_SECONDS, registry=registry
        )
        self._refused = Counter(
            "echolearn_refused", "Refused requests, streams and messages.", ["reason"], registry=registry
        )
        self.running = Gauge("echolearn_running_requests", "Requests that are read or answered.", registry=registry)
        self.streams = Gauge("echolearn_open_streams", "Streams that are open.", registry=registry)
        self.frames = Counter("echolearn_stream_frames", "Frames, or samples, of all streams.", registry=registry)
        self.stream_seconds = Histogram(
            "echolearn_stream_answer_seconds", "Time of an answer in a stream.", buckets=_SECONDS, registry=registry
        )
        for reason in REASONS:
            self._refused.labels(reason)

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        route = path if path in ROUTES else "other"
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def refuse(self, reason: str) -> None:
        """Count a refusal."""
        self._refused.labels(reason).inc()

    def text(self) -> bytes:
        """Return all metrics as Prometheus reads them."""
        return bytes(generate_latest(self.registry))
