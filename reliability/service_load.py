"""Load of `echolearn serve`: clients that stream frames at the pace of speech, every answer checked.

    python -m reliability.service_load [--seconds 3600] [--clients 8]

Each client sends 100 frames a second over a websocket, whether or not the answers have come, and all at the same
moments. Counted are frames and
answers; measured are the time from sending a frame to its answer, and the memory of the service. The first answers of
every client are compared with those of the model itself. Clients and service run on this machine, on loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import tempfile
import time
from array import array
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from reliability import results
from reliability.service_process import FEATURES, Served, save_model, served

PACE = 100  # frames per second and client
LONGEST = 3600  # seconds
CHECKED = 2000  # answers of each client that are compared with the model's own
CYCLE = 1000  # frames after which a client's frames repeat


@dataclass
class Client:
    """The record of one client."""

    frames: np.ndarray
    sent: int = 0
    answered: int = 0
    disordered: int = 0
    times: array = field(default_factory=lambda: array("d"))  # when each frame was sent
    latencies: array = field(default_factory=lambda: array("f"))  # seconds
    late: array = field(default_factory=lambda: array("f"))  # seconds by which a frame was sent too late
    first: list[list[float]] = field(default_factory=list)


class Connection(asyncio.Protocol):
    """One client's websocket, with so little work per frame that it is the service that is measured."""

    def __init__(self, client: Client, path: str = "/stream") -> None:
        self.client, self.buffer, self.path = client, b"", path
        self.opened, self.ended = asyncio.Event(), asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        key = base64.b64encode(os.urandom(16)).decode()
        head = f"GET {self.path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        transport.write(f"{head}Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())

    def send(self, payload: bytes, opcode: int = 2) -> None:
        """Send a short message, under a mask of zeros."""
        size = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2)
        self.transport.write(bytes([0x80 | opcode]) + size + bytes(4) + payload)

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        self.buffer += data
        if not self.opened.is_set():
            head, end, self.buffer = self.buffer.partition(b"\r\n\r\n")
            if not end:
                self.buffer = head
                return
            assert head.startswith(b"HTTP/1.1 101"), head
            self.opened.set()
        while len(self.buffer) >= 4:
            short = self.buffer[1]
            begin = 2 if short < 126 else 4
            stop = begin + (short if short < 126 else int.from_bytes(self.buffer[2:4]))
            if len(self.buffer) < stop:
                return
            opcode, message = self.buffer[0] & 15, self.buffer[begin:stop]
            self.buffer = self.buffer[stop:]
            self.take(opcode, message, now)

    def take(self, opcode: int, message: bytes, now: float) -> None:
        """Take one message of the service."""
        client = self.client
        if opcode == 9:
            self.send(message, 10)
        elif opcode == 1 and message.startswith(b'{"step":'):
            step = int(message[8 : message.index(b",")])
            client.disordered += step != client.answered
            client.latencies.append(now - client.times[min(step, client.sent - 1)])
            client.answered += 1
            if len(client.first) < CHECKED:
                client.first.append(json.loads(message)["probabilities"])
        elif opcode == 1 and message.startswith(b'{"end":'):
            self.ended.set()

    def connection_lost(self, problem: Exception | None) -> None:
        self.ended.set()


async def send(connections: list[Connection], seconds: float) -> None:
    """Send a frame of every client, all at once, at their pace."""
    begin = time.perf_counter()
    for k in range(round(seconds * PACE)):
        due = begin + k / PACE
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        else:
            await asyncio.sleep(0)
        for connection in connections:
            client = connection.client
            client.times.append(time.perf_counter())
            client.late.append(max(0.0, client.times[-1] - due))
            client.sent += 1
            connection.send(client.frames[k % CYCLE].tobytes())


async def watch(service: Served, every: float, memory: list[int]) -> None:
    """Note the memory of the service from time to time."""
    while True:
        await asyncio.sleep(every)
        memory.append(service.resident())


async def load(service: Served, clients: list[Client], seconds: float, memory: list[int]) -> None:
    """Run all clients side by side: their frames come at the same moments."""
    watching = asyncio.create_task(watch(service, max(0.2, seconds / 240), memory))
    loop, connections = asyncio.get_running_loop(), []
    for client in clients:
        _, connection = await loop.create_connection(partial(Connection, client), "127.0.0.1", service.port)
        await asyncio.wait_for(connection.opened.wait(), 60)
        connections.append(connection)
    await send(connections, seconds)
    for connection in connections:
        connection.send(json.dumps({"command": "end"}).encode(), 1)
    for connection in connections:
        await asyncio.wait_for(connection.ended.wait(), 60)
        connection.transport.close()
    watching.cancel()


def largest_difference(model: Any, clients: list[Client]) -> float:
    """Return how far the first answers are from the model's own."""
    worst = 0.0
    for client in clients:
        frames = client.frames[np.arange(len(client.first)) % CYCLE]
        own = model.stream().predict_proba(frames)
        worst = max(worst, float(np.abs(own - np.array(client.first)).max()))
    return worst


def campaign(seconds: float, number: int, note: str) -> dict[str, Any]:
    """Return the figures of one campaign."""
    rng = np.random.default_rng(1)
    clients = [Client(rng.standard_normal((CYCLE, FEATURES)).astype("<f4")) for _ in range(number)]
    memory: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        model = save_model(Path(folder) / "model.safetensors")
        with served(Path(folder) / "model.safetensors") as service:
            asyncio.run(load(service, clients[:1], min(5.0, seconds), []))  # warms up threads and buffers
            clients[0] = Client(clients[0].frames)
            before, queued = service.processor_seconds(), service.queued_seconds()
            asyncio.run(load(service, clients, seconds, memory))
            used, queued = service.processor_seconds() - before, service.queued_seconds() - queued
            counted = _metric(service.get("/metrics"), "echolearn_stream_frames_total")
            code = service.stop()
        difference = largest_difference(model, clients)
    latencies = np.concatenate([c.latencies for c in clients]) * 1000
    late = np.concatenate([c.late for c in clients]) * 1000
    tenth = max(1, len(memory) // 10)
    start, end = (float(np.median(part)) for part in (memory[tenth : 2 * tenth], memory[-tenth:]))
    sent, answered = sum(c.sent for c in clients), sum(c.answered for c in clients)
    growth, p99 = 100 * (end / start - 1), float(np.percentile(latencies, 99))
    lost = sent - answered + sum(c.disordered for c in clients)
    return {
        "seconds": seconds,
        "clients": number,
        "frames sent": sent,
        "frames answered": answered,
        "out of order": sum(c.disordered for c in clients),
        "frames counted by the service": counted - round(min(5.0, seconds) * PACE),
        "p50 ms": round(float(np.percentile(latencies, 50)), 2),
        "p99 ms": round(p99, 2),
        "p99.9 ms": round(float(np.percentile(latencies, 99.9)), 2),
        "largest ms": round(float(latencies.max()), 1),
        "frames sent late, p99 ms": round(float(np.percentile(late, 99)), 2),
        "memory at the start MB": round(start / 1e6, 2),
        "memory at the end MB": round(end / 1e6, 2),
        "memory growth percent": round(growth, 3),
        "processor seconds of the service": round(used, 1),
        "seconds in which it waited for a processor": round(queued, 1),
        "largest difference from the model": difference,
        "exit code": code,
        "load average": round(os.getloadavg()[2], 1),
        "processors": os.cpu_count(),
        "note": note,
        "reached": bool(lost == 0 and p99 <= 20 and growth < 1 and difference < 1e-5 and code == 0),
    }


def _metric(text: str, name: str) -> int:
    return next(round(float(line.split()[1])) for line in text.splitlines() if line.startswith(f"{name} "))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=LONGEST, help="how long the clients stream, at most an hour")
    parser.add_argument("--clients", type=int, default=8, help="streams at the same time")
    parser.add_argument("--note", default="", help="what else the machine was doing")
    options = parser.parse_args()
    if not 1 <= options.seconds <= LONGEST or not 1 <= options.clients <= 64:
        parser.error(f"expected 1 to {LONGEST} seconds and 1 to 64 clients")
    figures = campaign(options.seconds, options.clients, options.note)
    for name, value in figures.items():
        print(f"{name}: {value}")
    results.keep("service_load", {"load": figures})
    raise SystemExit(not figures["reached"])


if __name__ == "__main__":
    main()
