"""Load of `echolearn serve`: clients that ask at the pace of speech, every answer counted and the first ones checked.

    python -m reliability.service_load [--seconds 3600] [--clients 8]

Four services run at the same time, and the clients are dealt out to them: a network of one layer and a deep one, which
get 100 frames a second from each client over a websocket; a recogniser, which gets 10 pieces of sound a second over a
websocket; and a forecaster with exogenous inputs, which gets 10 questions a second over HTTP. Clients send whether or
not the answers have come, and all at the same moments. Measured are the time from sending to the answer, and the memory
of the services. The first answers of every client are compared with those of the model itself. Clients and services run
on this machine, on loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import sys
import tempfile
import time
import warnings
from array import array
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from echolearn import DeepESNClassifier, ESNForecaster
from echolearn.exceptions import PoorFitWarning
from reliability import results
from reliability.service_process import FEATURES, Served, save_model, served, speech_like

ROOT = Path(__file__).resolve().parents[1]
TICKS = 100  # moments of sending per second
LONGEST = 3600  # seconds
CHECKED = 2000  # answers of each client that are compared with the model's own
CYCLE = 1000  # messages after which a client's messages repeat
PIECE = 1600  # samples of sound per message, at 16,000 per second
STEPS = 10  # of a forecast
KNOWN = 50  # values of the series that is continued


@dataclass
class Client:
    """The record of one client."""

    messages: list[bytes]
    sent: int = 0
    answered: int = 0
    disordered: int = 0
    times: array = field(default_factory=lambda: array("d"))  # when each message was sent
    latencies: array = field(default_factory=lambda: array("f"))  # seconds
    late: array = field(default_factory=lambda: array("f"))  # seconds by which a message was sent too late
    first: list[Any] = field(default_factory=list)

    def count(self, now: float, step: int | None, content: Callable[[], Any]) -> None:
        """Count an answer; step: the number of its message, where it says so."""
        step = self.answered if step is None else step
        self.disordered += step != self.answered
        self.latencies.append(now - self.times[min(step, self.sent - 1)])
        self.answered += 1
        if len(self.first) < CHECKED:
            self.first.append(content())


@dataclass(frozen=True)
class Part:
    """What one service is asked: messages of a client per second, the model, the goal for the latency.

    make(model, rng): the messages of a client; difference(model, client): how far its answers are from the model's own.
    """

    pace: int
    goal_ms: float
    model: Callable[[Path], Any]
    make: Callable[[Any, np.random.Generator], list[bytes]]
    difference: Callable[[Any, Client], float]


def save_deep_model(path: Path) -> Any:
    """Save and return a deep classifier of the frames that `save_model` learns."""
    with warnings.catch_warnings(action="ignore", category=PoorFitWarning):  # how well it fits does not matter here
        model = DeepESNClassifier(64, 3, epochs=1).fit(*speech_like())
    model.save(path)
    return model


def save_forecaster(path: Path) -> Any:
    """Save and return a forecaster of a wave that follows its exogenous input."""
    u = np.random.default_rng(0).standard_normal((400, 1))
    wave = np.sin(np.arange(400) / 5)[:, None] + 0.5 * u
    model = ESNForecaster(100, learn="none", method="closed_loop", washout=20).fit(wave, exogenous=u)
    model.save(path)
    return model


def save_recognizer(path: Path) -> Any:
    """Save and return the recogniser of the toy language of the tests."""
    sys.path.append(str(ROOT / "tests" / "support"))
    import toyspeech

    recognizer = toyspeech.recognizer(deep=True)
    recognizer.save(path)
    return recognizer


def frames(model: Any, rng: np.random.Generator) -> list[bytes]:
    """Return frames as bytes."""
    return [frame.tobytes() for frame in rng.standard_normal((CYCLE, FEATURES)).astype("<f4")]


def sound(model: Any, rng: np.random.Generator) -> list[bytes]:
    """Return pieces of spoken sentences."""
    import toyspeech

    samples = np.concatenate([toyspeech.say(toyspeech.sentence(rng), rng)[0] for _ in range(40)])
    samples = np.round(samples[: len(samples) // PIECE * PIECE]).astype("<i2")
    return [piece.tobytes() for piece in samples.reshape(-1, PIECE)][:CYCLE]


def questions(model: Any, rng: np.random.Generator) -> list[bytes]:
    """Return requests for forecasts."""
    found = []
    for _ in range(100):
        u = rng.standard_normal((KNOWN + STEPS, 1))
        x = np.sin(np.arange(KNOWN) / 5 + rng.uniform(0, 6))[:, None]
        body = json.dumps({"X": x.tolist(), "steps": STEPS, "exogenous": u.tolist()}).encode()
        head = ["POST /predict HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
        found.append("\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode() + body)
    return found


def of_frames(model: Any, client: Client) -> float:
    """Return how far the first probabilities are from those of the model's own stream."""
    own = model.stream().predict_proba([np.frombuffer(m, "<f4") for m in _repeated(client)])
    return float(np.abs(own - np.array([one["probabilities"] for one in client.first])).max())


def of_sound(model: Any, client: Client) -> float:
    """Return the share of the first updates whose text is not that of the model's own stream."""
    stream = model.stream(rate=16_000)
    own = [stream.push(np.frombuffer(m, "<i2")) for m in _repeated(client)]
    return float(np.mean([a.text != b["text"] for a, b in zip(own, client.first, strict=True)]))


def of_questions(model: Any, client: Client) -> float:
    """Return how far the first forecasts are from the model's own."""
    worst, known = 0.0, {}
    for message, found in zip(_repeated(client), client.first, strict=True):
        if message not in known:
            asked = json.loads(message.partition(b"\r\n\r\n")[2])
            warm_up, inputs = np.array(asked["X"]), np.array(asked["exogenous"])
            known[message] = model.predict(asked["steps"], warm_up=warm_up, exogenous=inputs)
        own = np.ravel(known[message])
        worst = max(worst, float(np.abs(own - np.ravel(found["values"])).max()))
    return worst


def _repeated(client: Client) -> list[bytes]:
    return [client.messages[k % len(client.messages)] for k in range(len(client.first))]


PARTS = {
    "one layer": Part(100, 20.0, save_model, frames, of_frames),
    "deep": Part(100, 20.0, save_deep_model, frames, of_frames),
    "recogniser": Part(10, 100.0, save_recognizer, sound, of_sound),
    "forecaster": Part(10, 20.0, save_forecaster, questions, of_questions),
}


class Connection(asyncio.Protocol):
    """One client's websocket, with so little work per message that it is the service that is measured."""

    def __init__(self, client: Client, path: str = "/stream") -> None:
        self.client, self.buffer, self.path = client, b"", path
        self.opened, self.ended = asyncio.Event(), asyncio.Event()

    def ask(self, message: bytes) -> None:
        """Send the next message of the client."""
        self.send(message)

    def finish(self) -> None:
        """Say that nothing follows."""
        self.send(json.dumps({"command": "end"}).encode(), 1)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        key = base64.b64encode(os.urandom(16)).decode()
        head = f"GET {self.path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        transport.write(f"{head}Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())

    def send(self, payload: bytes, opcode: int = 2) -> None:
        """Send a message of at most 65,535 bytes, under a mask of zeros."""
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
        if opcode == 9:
            self.send(message, 10)
        elif opcode == 1 and message.startswith(b'{"end":'):
            self.ended.set()
        elif opcode == 1:
            numbered = message.startswith(b'{"step":')
            step = int(message[8 : message.index(b",")]) if numbered else None
            self.client.count(now, step, partial(json.loads, message))

    def connection_lost(self, problem: Exception | None) -> None:
        self.ended.set()


class Questioner(Connection):
    """One client's questions over HTTP, on one connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.opened.set()

    def ask(self, message: bytes) -> None:
        self.transport.write(message)

    def finish(self) -> None:
        self.last = self.client.sent
        self._end()

    def _end(self) -> None:
        if self.client.answered >= getattr(self, "last", np.inf):
            self.ended.set()

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            head, _, rest = self.buffer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head + rest
            length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
            if len(rest) < length:
                return
            self.buffer = rest[length:]
            self.client.count(now, None, partial(json.loads, rest[:length]))
        self._end()


async def send(connections: list[tuple[Part, Connection]], seconds: float) -> None:
    """Send a message of every client whose turn it is, all at once, at their paces."""
    begin = time.perf_counter()
    for k in range(round(seconds * TICKS)):
        due = begin + k / TICKS
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        for part, connection in connections:
            if k % (TICKS // part.pace) == 0:
                client = connection.client
                client.times.append(time.perf_counter())
                client.late.append(max(0.0, client.times[-1] - due))
                client.sent += 1
                connection.ask(client.messages[(client.sent - 1) % len(client.messages)])


async def watch(services: dict[str, Served], every: float, memory: dict[str, list[int]]) -> None:
    """Note the memory of the services from time to time."""
    while True:
        await asyncio.sleep(every)
        for name, service in services.items():
            memory[name].append(service.resident())


async def load(
    services: dict[str, Served], clients: dict[str, list[Client]], seconds: float, memory: dict[str, list[int]]
) -> None:
    """Run all clients side by side: their messages come at the same moments."""
    watching = asyncio.create_task(watch(services, max(0.2, seconds / 240), memory))
    loop, connections = asyncio.get_running_loop(), []
    for name, some in clients.items():
        kind = Questioner if name == "forecaster" else Connection
        for client in some:
            _, made = await loop.create_connection(partial(kind, client), "127.0.0.1", services[name].port)
            await asyncio.wait_for(made.opened.wait(), 60)
            connections.append((PARTS[name], made))
    await send(connections, seconds)
    for _, connection in connections:
        connection.finish()
    for _, connection in connections:
        await asyncio.wait_for(connection.ended.wait(), 60)
        connection.transport.close()
    watching.cancel()


def campaign(seconds: float, number: int, note: str) -> dict[str, dict[str, Any]]:
    """Return the figures of one campaign, by what is served."""
    rng = np.random.default_rng(1)
    names = list(PARTS)[:number]
    memory: dict[str, list[int]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        paths = {name: Path(folder) / f"{name}.safetensors" for name in names}
        models = {name: PARTS[name].model(path) for name, path in paths.items()}
        clients: dict[str, list[Client]] = {name: [] for name in names}
        for k in range(number):
            name = names[k % len(names)]
            clients[name].append(Client(PARTS[name].make(models[name], rng)))
        services = {name: stack.enter_context(served(path)) for name, path in paths.items()}
        first = {name: [Client(some[0].messages)] for name, some in clients.items()}
        unused: dict[str, list[int]] = {name: [] for name in names}
        asyncio.run(load(services, first, min(5.0, seconds), unused))  # warms up threads and buffers
        before = {name: (one.processor_seconds(), one.queued_seconds()) for name, one in services.items()}
        asyncio.run(load(services, clients, seconds, memory))
        found = {}
        for name, service in services.items():
            used, queued = service.processor_seconds() - before[name][0], service.queued_seconds() - before[name][1]
            figures = {"seconds": seconds, **latencies(clients[name]), **growth(memory[name])}
            figures |= {"processor seconds of the service": round(used, 1)}
            figures |= {"seconds in which it waited for a processor": round(queued, 1), "exit code": service.stop()}
            figures["goal ms"] = PARTS[name].goal_ms
            differences = [PARTS[name].difference(models[name], client) for client in clients[name]]
            figures["largest difference from the model"] = max(differences)
            figures |= {"load average": round(os.getloadavg()[2], 1), "processors": os.cpu_count(), "note": note}
            lost = figures["messages sent"] - figures["messages answered"] + figures["out of order"]
            figures["reached"] = bool(
                lost == 0
                and figures["p99 ms"] <= PARTS[name].goal_ms
                and figures["memory growth percent"] < 1
                and figures["largest difference from the model"] < 1e-5
                and figures["exit code"] == 0
            )
            found[name] = figures
    return found


def latencies(clients: list[Client]) -> dict[str, Any]:
    """Return how many messages were sent and answered, and how long the answers took."""
    times, late = (1000 * np.concatenate(part) for part in zip(*((c.latencies, c.late) for c in clients), strict=True))
    return {
        "clients": len(clients),
        "messages sent": sum(c.sent for c in clients),
        "messages answered": sum(c.answered for c in clients),
        "out of order": sum(c.disordered for c in clients),
        "p50 ms": round(float(np.percentile(times, 50)), 2),
        "p99 ms": round(float(np.percentile(times, 99)), 2),
        "p99.9 ms": round(float(np.percentile(times, 99.9)), 2),
        "largest ms": round(float(times.max()), 1),
        "messages sent late, p99 ms": round(float(np.percentile(late, 99)), 2),
    }


def growth(memory: list[int]) -> dict[str, float]:
    """Return the memory of a service after a tenth of the time and at the end."""
    tenth = max(1, len(memory) // 10)
    start, end = (float(np.median(part)) for part in (memory[tenth : 2 * tenth], memory[-tenth:]))
    return {
        "memory at the start MB": round(start / 1e6, 2),
        "memory at the end MB": round(end / 1e6, 2),
        "memory growth percent": round(100 * (end / start - 1), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=LONGEST, help="how long the clients ask, at most an hour")
    parser.add_argument("--clients", type=int, default=8, help="clients at the same time, dealt out to the services")
    parser.add_argument("--note", default="", help="what else the machine was doing")
    options = parser.parse_args()
    if not 1 <= options.seconds <= LONGEST or not 1 <= options.clients <= 64:
        parser.error(f"expected 1 to {LONGEST} seconds and 1 to 64 clients")
    found = campaign(options.seconds, options.clients, options.note)
    for name, figures in found.items():
        print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in figures.items()))
    results.keep("service_load", {"services": found})
    raise SystemExit(not all(figures["reached"] for figures in found.values()))


if __name__ == "__main__":
    main()
