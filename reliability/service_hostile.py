"""Hostile requests to `echolearn serve`: each is refused with the right code, and the service answers as before.

    python -m reliability.service_hostile [--requests 10000]

A service with a token and small limits runs on a free port of loopback. Between the attacks a question is asked whose
answer is known; memory is read before and after. "wrong" counts attacks that were answered otherwise than they should.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import random
import struct
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np

from reliability import results
from reliability.service_process import FEATURES, Served, save_model, served

TOKEN = "a-token-for-the-campaign"
BODY = 64 * 1024
OPTIONS = ("--body-mb", str(BODY / 2**20), "--frames", "500", "--streams", "4", "--connections", "400")
TIMES = ("--body-seconds", "1", "--header-seconds", "1", "--idle-seconds", "5")
JSON, CSV, NPY = "application/json", "text/csv", "application/octet-stream"
AT_ONCE = 12  # fewer than the service answers at the same time, so that none is refused for that alone

Attack = Callable[[random.Random, int], Awaitable[str]]


async def talk(port: int, sent: bytes, seconds: float = 30.0) -> bytes:
    """Return what a connection answers to some bytes, until it is closed or a whole answer is there."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    try:
        async with asyncio.timeout(seconds):
            try:
                writer.write(sent)
                await writer.drain()
                while not _complete(answer) and (more := await reader.read(65536)):
                    answer += more
            except ConnectionError:
                pass
    finally:
        writer.close()
    return answer


def _complete(answer: bytes) -> bool:
    head, end, body = answer.partition(b"\r\n\r\n")
    length = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(end) and bool(length) and len(body) >= length[0]


def request(
    body: bytes, kind: str = JSON, token: str | None = TOKEN, path: str = "/predict", method: str = "POST"
) -> bytes:
    """Return a request as bytes."""
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    head += [] if token is None else [f"Authorization: Bearer {token}"]
    return "\r\n".join([*head, "", ""]).encode() + body


def status(answer: bytes) -> str:
    """Return the status of an answer; "closed" if there is none; "not JSON" if a refusal does not explain itself."""
    if not answer.startswith(b"HTTP/1.1 "):
        return "closed" if not answer else "not HTTP"
    code, body = answer[9:12].decode(), answer.partition(b"\r\n\r\n")[2]
    if code[0] in "45":
        try:
            if not json.loads(body)["error"] or b"Traceback" in body:
                return "no sentence"
        except (ValueError, KeyError, TypeError):
            return "not JSON"
    return code


def masked(payload: bytes, opcode: int, *, fin: bool = True, length: int | None = None) -> bytes:
    """Return a frame of a websocket as a client sends it; length: what it says instead of the truth."""
    n = len(payload) if length is None else length
    size = (
        bytes([0x80 | n])
        if n < 126
        else b"\xfe" + struct.pack("!H", n)
        if n < 2**16
        else b"\xff" + struct.pack("!Q", n)
    )
    return bytes([fin << 7 | opcode]) + size + bytes(4) + payload


async def stream(
    port: int, sent: bytes, seconds: float = 30.0, token: str = TOKEN
) -> tuple[str, list[tuple[int, bytes]]]:
    """Return the status of a handshake, and the frames (opcode, payload) that come before the connection ends."""
    key = "dGhlIHNhbXBsZSBub25jZQ=="
    head = (
        "GET /stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Authorization: Bearer {token}\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    frames: list[tuple[int, bytes]] = []
    try:
        async with asyncio.timeout(seconds):
            writer.write(head.encode())
            answer = await reader.readuntil(b"\r\n\r\n")
            if not answer.startswith(b"HTTP/1.1 101"):
                return answer[9:12].decode(), []
            writer.write(sent)
            while not frames or frames[-1][0] != 8:
                first, second = await reader.readexactly(2)
                n = second & 127
                n = n if n < 126 else int.from_bytes(await reader.readexactly(2 if n == 126 else 8))
                frames.append((first & 15, await reader.readexactly(n)))
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()
    return "101", frames


def close_code(frames: list[tuple[int, bytes]]) -> str:
    """Return the code with which a stream was closed."""
    codes = [int.from_bytes(payload[:2]) for opcode, payload in frames if opcode == 8]
    return str(codes[-1]) if codes else "closed"


def npy(rng: random.Random) -> bytes:
    """Return a .npy file that is damaged, or lies."""
    file = io.BytesIO()
    np.save(file, np.zeros((5, FEATURES)))
    body = bytearray(file.getvalue())
    which = rng.randrange(4)
    if which == 0:
        return bytes(body[: rng.randrange(1, len(body))])
    if which == 1:
        return bytes(body).replace(b"(5, 39)", rng.choice([b"(9, 39)", b"(-5,39)", b"(5, 38)", b"5000000"]))
    if which == 2:
        return bytes(body).replace(b"<f8", rng.choice([b"|O8", b"<c8", b"<U2", b"<M8"]))
    return b"\x93NUMPY" + rng.randbytes(rng.randrange(1, 300))


def malformed_json(rng: random.Random) -> bytes:
    """Return a body that is not JSON, or not a question."""
    good = json.dumps({"X": [[0.5] * FEATURES] * 3}).encode()
    cut = rng.randrange(1, len(good) - 1)
    choices = [
        good[:cut], good[cut:], b"[" * rng.randrange(1, 30_000), rng.randbytes(50), b'{"X": [[NaN]]}', b"{}", b"null",
        b'{"X": {"a": 1}}', b'{"X": "' + rng.randbytes(9).hex().encode() + b'"}', b'{"X": [["a"]]}', b'{"y": 1}',
        b'{"X": [[' + b"9" * 5000 + b"]]}",
    ]  # fmt: skip
    return rng.choice(choices)


def misfit(rng: random.Random) -> tuple[bytes, str]:
    """Return a body that is well formed, and does not fit the model."""
    n = rng.choice([k for k in range(1, 60) if k != FEATURES])
    rows = [[rng.random() for _ in range(n)] for _ in range(rng.randrange(1, 5))]
    if rng.random() < 0.5:
        return json.dumps({"X": rows}).encode(), JSON
    return "\n".join(",".join(map(str, row)) for row in rows).encode(), CSV


def attacks(port: int) -> dict[str, tuple[int, set[str], Attack]]:
    """Return the attacks by name: their share in percent, the answers that are right, and how they are made."""

    async def ask(body: bytes, kind: str = JSON, **how: Any) -> str:
        return status(await talk(port, request(body, kind, **how)))

    async def oversized(rng: random.Random, k: int) -> str:
        return await ask(b" " * rng.randrange(BODY + 1, 4 * BODY))

    async def announced(rng: random.Random, k: int) -> str:
        head = request(b"").replace(b"Content-Length: 0", f"Content-Length: {rng.randrange(10**6, 10**18)}".encode())
        return status(await talk(port, head + b"{"))

    async def chunked(rng: random.Random, k: int) -> str:
        head = request(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        return status(await talk(port, head + (b"4000\r\n" + b" " * 0x4000 + b"\r\n") * 6))

    async def not_json(rng: random.Random, k: int) -> str:
        return await ask(malformed_json(rng))

    async def bad_npy(rng: random.Random, k: int) -> str:
        return await ask(npy(rng), NPY)

    async def bad_csv(rng: random.Random, k: int) -> str:
        row = ",".join(["1"] * FEATURES)
        return await ask(
            rng.choice([f"{row}\n{row[:-1]}x\n".encode(), b'"', rng.randbytes(99) + b"\xff", b"a,b\n1,2"]), CSV
        )

    async def misfits(rng: random.Random, k: int) -> str:
        return await ask(*misfit(rng))

    async def too_many_frames(rng: random.Random, k: int) -> str:
        file = io.BytesIO()
        np.save(file, np.zeros((501, FEATURES), np.int8))
        return await ask(file.getvalue(), NPY)

    async def token(rng: random.Random, k: int) -> str:
        wrong = rng.choice([None, "", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), rng.randbytes(9).hex()])
        return await ask(b'{"X": []}', token=wrong)

    async def stream_token(rng: random.Random, k: int) -> str:
        return (await stream(port, b"", token=rng.randbytes(12).hex()))[0]

    async def routes(rng: random.Random, k: int) -> str:
        path = rng.choice(["/../../etc/passwd", "/%2e%2e/", "/predict/", "/" + rng.randbytes(20).hex(), "/admin"])
        return await ask(b"", path=path, method=rng.choice(["GET", "POST"]))

    async def not_http(rng: random.Random, k: int) -> str:
        lines = [
            rng.randbytes(60) + b"\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: localhost\r\nBad Name: 1\r\n\r\n",
            b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
            b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(80) + b"\r\n\r\n",
        ]  # fmt: skip
        return status(await talk(port, rng.choice(lines)))

    async def large_heads(rng: random.Random, k: int) -> str:
        return status(
            await talk(port, b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"x" * rng.randrange(30_000, 90_000))
        )

    async def other_host(rng: random.Random, k: int) -> str:
        question = request(b'{"X": []}').replace(b"Host: localhost", b"Host: localhost\r\nOrigin: https://evil.example")
        return status(await talk(port, question))

    async def slow_body(rng: random.Random, k: int) -> str:
        return status(await talk(port, request(b" " * 100)[:-50]))

    async def slow_head(rng: random.Random, k: int) -> str:
        return status(await talk(port, request(b"")[: rng.randrange(1, 60)]))

    async def silent(rng: random.Random, k: int) -> str:
        return status(await talk(port, b""))

    async def gone(rng: random.Random, k: int) -> str:
        question = request(b" " * 200)
        await asyncio.wait_for(_leave(port, question[: rng.randrange(1, len(question))]), 30)
        return "left"

    async def wrong_frames(rng: random.Random, k: int) -> str:
        bad = rng.choice([masked(b"[1]", 1), masked(b"12345", 2), masked(b"{", 1), masked(b"", 2), masked(b'"x"', 1)])
        found, frames = await stream(port, bad * 10)
        errors = sum(b'"error"' in payload for opcode, payload in frames if opcode == 1)
        return found if found != "101" else close_code(frames) if errors in (0, 10) else f"{errors} errors"

    async def huge_frame(rng: random.Random, k: int) -> str:
        found, frames = await stream(port, masked(b"1234", 2, length=rng.randrange(2**20 + 1, 2**60)))
        return found if found != "101" else close_code(frames)

    async def broken_frames(rng: random.Random, k: int) -> str:
        bad = [
            b"\x82\x04abcd", masked(b"x", 3), masked(b"\xff\xfe", 1), masked(b"a", 0), masked(b"x" * 200, 9),
            b"\xf2\x84" + bytes(8), masked(b"\x00", 8),
        ]  # fmt: skip
        found, frames = await stream(port, rng.choice(bad))
        return found if found != "101" else close_code(frames)

    return {
        "body too large": (10, {"413"}, oversized),
        "body announced too large": (6, {"413"}, announced),
        "body in chunks, too large": (4, {"413"}, chunked),
        "malformed JSON": (14, {"400", "422"}, not_json),
        "malformed .npy": (8, {"400", "422"}, bad_npy),
        "malformed CSV": (6, {"400", "422"}, bad_csv),
        "frames of another size": (8, {"422"}, misfits),
        "too many frames": (3, {"413"}, too_many_frames),
        "wrong token": (8, {"401"}, token),
        "wrong token of a stream": (3, {"401"}, stream_token),
        "other paths": (5, {"404"}, routes),
        "not HTTP": (6, {"400", "401"}, not_http),
        "head too large": (3, {"431"}, large_heads),
        "page of another site": (3, {"403"}, other_host),
        "slow body": (1, {"408"}, slow_body),
        "slow head": (1, {"408"}, slow_head),
        "silent connection": (1, {"408"}, silent),
        "client that leaves": (3, {"left"}, gone),
        "wrong frames of a stream": (3, {"1008", "1013"}, wrong_frames),
        "huge frame of a stream": (2, {"1009", "1013"}, huge_frame),
        "broken frames of a stream": (2, {"1002", "1007", "1013"}, broken_frames),
    }


async def _leave(port: int, sent: bytes) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    await writer.drain()
    writer.transport.abort()


async def connections(port: int, number: int) -> Counter[str]:
    """Open so many connections at once, say nothing, and return what became of them."""

    async def one() -> str:
        try:
            return status(await talk(port, b"", 60))
        except OSError:
            return "closed"

    return Counter(await asyncio.gather(*(one() for _ in range(number))))


async def question(service: Served, body: bytes) -> bytes:
    """Return the answer to a good question."""
    return (await talk(service.port, request(body))).partition(b"\r\n\r\n")[2]


async def differs(service: Served, body: bytes, expected: bytes) -> bool:
    """Return whether a good question is answered in another way than before, and print that answer."""
    found = await question(service, body)
    if found != expected:
        print(f"  a good question was answered with {found[:300]!r}", flush=True)
    return found != expected


async def campaign(service: Served, number: int, seed: int) -> dict[str, Any]:
    """Return what became of every attack."""
    rng, rows, good = random.Random(seed), {}, json.dumps({"X": [[0.25] * FEATURES] * 20}).encode()
    expected = await question(service, good)
    known = attacks(service.port)
    total = sum(share for share, _, _ in known.values())
    await run_one(*known["malformed JSON"][1:], rng, 300)  # so that buffers and caches have their size
    await connections(service.port, 500)
    before, unlike = service.resident(), 0
    for name, (share, right, attack) in known.items():
        tally = await run_one(right, attack, rng, max(1, round(number * share / total)))
        unlike += await differs(service, good, expected)
        rows[name] = tally
        print(f"{name}: {dict(tally)}", flush=True)
    many = max(100, number // 5)
    found = await connections(service.port, many)
    refused = sum(found[code] for code in ("408", "503", "closed"))
    rows["connections at once"] = {"requests": many, "refused": refused, "wrong": many - refused}
    await asyncio.sleep(3)
    unlike += await differs(service, good, expected)
    growth = service.resident() - before
    requests = sum(row["requests"] for row in rows.values())
    wrong = sum(row["wrong"] for row in rows.values())
    return {
        "attacks": {**rows, "all": {"requests": requests, "refused": requests - wrong, "wrong": wrong}},
        "wrong answers to good questions": unlike,
        "memory before MB": round(before / 1e6, 2),
        "memory growth MB": round(growth / 1e6, 2),
        "reached": wrong == 0 and unlike == 0 and growth < 5e6,
    }


async def run_one(right: set[str], attack: Attack, rng: random.Random, number: int) -> dict[str, int]:
    """Make one kind of attack so many times, some at once, and count what came of it."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(k: int, own: random.Random) -> str:
        async with places:
            try:
                return await attack(own, k)
            except (TimeoutError, OSError) as problem:
                return type(problem).__name__

    found = Counter(await asyncio.gather(*(one(k, random.Random(rng.random())) for k in range(number))))
    good = sum(found[code] for code in right)
    if good != number:
        print("  not as expected:", {code: n for code, n in found.items() if code not in right}, flush=True)
    return {"requests": number, "refused": good, "wrong": number - good}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000, help="attacks, connections at once besides")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not 100 <= options.requests <= 100_000:
        parser.error("expected 100 to 100000 requests")
    figures = attack_service(options.requests, options.seed)
    print({name: value for name, value in figures.items() if name != "attacks"})
    results.keep("service_hostile", figures)
    raise SystemExit(not figures["reached"])


def attack_service(number: int, seed: int) -> dict[str, Any]:
    """Return the figures of a campaign against a service of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save_model(path, units=100)
        with served(path, *OPTIONS, *TIMES, ECHOLEARN_TOKEN=TOKEN) as service:
            figures = asyncio.run(campaign(service, number, seed))
            figures["exit code"] = service.stop()
            log = service.log.read_text()
            figures["tracebacks in the log"] = log.count("Traceback")
            if "Traceback" in log:
                print(log[-3000:])
    figures["reached"] = figures["reached"] and figures["exit code"] == 0 and not figures["tracebacks in the log"]
    return figures


if __name__ == "__main__":
    main()
