"""The server under the application: connections, heads of requests, and a clean stop."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TypeAlias

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from echolearn.export.service.application import Service

SWITCH_SECONDS = 0.001  # how long a thread may keep others waiting: a stream's answer passes from thread to thread


class GuardedProtocol(H11Protocol):
    """HTTP connections: a limit to their number, refusals as JSON."""

    service: Service

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        most = self.service.limits.connections
        if len(self.connections) > most:
            self.refuse(503, "connections", f"{most} connections are open, as many as this service takes.")

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or has too large a head."""
        limit = self.service.limits.header_bytes
        if len(self.conn.trailing_data[0]) > limit:
            self.refuse(431, "headers", f"the head of the request is larger than {limit:,} bytes.")
        else:
            self.refuse(400, "malformed", "the request is not HTTP/1.1 as this service understands it.")

    def refuse(self, status: int, reason: str, message: str) -> None:
        self.service.metrics.refuse(reason)
        if self.cycle is None or self.cycle.response_complete:
            body = json.dumps({"error": message, "reason": reason}).encode()
            head = (
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()

    def awaits_head(self) -> bool:
        """Return whether a request has begun, or was never begun, and its head is not there."""
        begun = self.cycle is None or bool(self.conn.trailing_data[0])
        return begun and self.conn.their_state is h11.IDLE


Connection: TypeAlias = GuardedProtocol | WebSocketsSansIOProtocol


class GuardedServer(uvicorn.Server):
    """A server that closes connections on which nothing moves."""

    def __init__(self, config: uvicorn.Config, service: Service, started: Callable[[int], None]) -> None:
        super().__init__(config)
        self._service, self._tell = service, started
        self._since: dict[tuple[Connection, str], float] = {}

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._tell(self.servers[0].sockets[0].getsockname()[1])

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            self.sweep(time.monotonic())
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.stopping = True
        await super().shutdown(sockets)

    def sweep(self, now: float) -> None:
        """Close connections that have waited too long for a head, for a reader, or for their own end."""
        limits = self._service.limits
        seconds = {"head": limits.header_seconds, "writing": limits.body_seconds, "closing": limits.body_seconds}
        ours = [c for c in self.server_state.connections if isinstance(c, Connection)]
        waiting = {(c, state): now for c in ours if (state := _waits_for(c))}
        self._since = {key: self._since.get(key, now) for key in waiting}
        for (connection, state), since in list(self._since.items()):
            if now - since < seconds[state]:
                continue
            if state == "head" and isinstance(connection, GuardedProtocol):
                connection.refuse(408, "slow-headers", "the head of a request did not arrive in time.")
                continue
            if state == "writing":
                self._service.metrics.refuse("slow-reader")
            connection.transport.abort()


def _waits_for(connection: Connection) -> str:
    """Return what a connection waits for: "head", "writing" or "closing"; "" if it does not wait."""
    if connection.transport.is_closing():
        return "closing"
    if isinstance(connection, GuardedProtocol):
        return "writing" if connection.flow.write_paused else "head" if connection.awaits_head() else ""
    return "" if connection.writable.is_set() else "writing"


def server_of(service: Service, host: str, port: int, started: Callable[[int], None]) -> GuardedServer:
    """Return the server of a service; started: is called with the port when it listens."""
    limits = service.limits
    protocol = type("GuardedProtocol", (GuardedProtocol,), {"service": service})
    config = uvicorn.Config(
        service.application(),
        host=host,
        port=port,
        http=protocol,
        ws="websockets-sansio",
        ws_max_size=limits.message_bytes,
        ws_ping_interval=20.0,
        ws_ping_timeout=20.0,
        ws_per_message_deflate=False,
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=max(1, round(limits.stop_seconds)),
        h11_max_incomplete_event_size=limits.header_bytes,
    )
    return GuardedServer(config, service, started)


def run(service: Service, host: str, port: int, started: Callable[[int], None]) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # it logs what clients do wrong; failures are ours
    sys.setswitchinterval(SWITCH_SECONDS)
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: None)  # uvicorn raises the signal again when it has stopped
    server_of(service, host, port, started).run()
