"""Limits on the size, number and duration of requests."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Limits:
    """The limits of a service. All are positive.

    Parameters
    ----------
    body_bytes : int, default=8388608
        The largest body of a request.
    message_bytes : int, default=1048576
        The largest message of a stream.
    header_bytes : int, default=16384
        The largest head of a request.
    frames : int, default=100000
        Frames of one request, over all its sequences, and steps of a forecast.
    requests : int, default=16
        Requests that are read or answered at the same time.
    streams : int, default=64
        Streams that are open at the same time.
    connections : int, default=512
        Connections of any kind.
    threads : int, default=2
        Threads that answer requests; as many others answer streams.
    request_seconds : float, default=30.0
        Time in which a request is answered, from the end of its body.
    body_seconds : float, default=20.0
        Time in which a body arrives, and in which a client takes an answer.
    header_seconds : float, default=10.0
        Time in which the head of a request arrives.
    idle_seconds : float, default=60.0
        Time between two messages of a stream.
    stop_seconds : float, default=10.0
        Time in which running requests end when the service stops.
    stream_errors : int, default=10
        Wrong messages after which a stream is closed.
    """

    body_bytes: int = 8 * 2**20
    message_bytes: int = 2**20
    header_bytes: int = 16 * 2**10
    frames: int = 100_000
    requests: int = 16
    streams: int = 64
    connections: int = 512
    threads: int = 2
    request_seconds: float = 30.0
    body_seconds: float = 20.0
    header_seconds: float = 10.0
    idle_seconds: float = 60.0
    stop_seconds: float = 10.0
    stream_errors: int = 10

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ValueError(f"{field.name}={value!r}; expected a number above 0.")
