"""`echolearn serve` as a process: start, stop, token, slow clients, and what it imports."""

import asyncio
import json
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from websockets.sync.client import connect

from reliability import service_hostile
from reliability.service_process import served
from services import MODELS, TOKEN, X


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("model") / "model.safetensors"
    MODELS["classifier"]().save(file)
    return file


@pytest.fixture(scope="module")
def service(path):
    short = ("--body-seconds", "0.5", "--header-seconds", "0.5", "--connections", "8")
    with served(path, *short, ECHOLEARN_TOKEN=TOKEN) as running:
        yield running


def talk(service, sent, token=TOKEN):
    """Return the status of an answer. In a thread of its own: a browser of other tests may hold the loop here."""
    with ThreadPoolExecutor(1) as pool:
        return service_hostile.status(pool.submit(asyncio.run, service_hostile.talk(service.port, sent)).result())


def test_tokens_are_required_and_enough(service):
    question = json.dumps({"X": X[0].tolist()}).encode()
    assert talk(service, service_hostile.request(question, token=TOKEN)) == "200"
    assert talk(service, service_hostile.request(question, token="another-of-16-signs")) == "401"
    assert service.get("/health") == {"status": "alive"}
    assert TOKEN not in " ".join(service.process.args)


def test_slow_bodies_slow_heads_and_silence_end(service):
    assert talk(service, service_hostile.request(b" " * 100, token=TOKEN)[:-50]) == "408"
    assert talk(service, b"GET / HTT") == "408"
    assert talk(service, b"") == "408"


def test_what_is_not_http_or_has_a_large_head_is_refused(service):
    assert talk(service, b"hello\r\n\r\n") == "400"
    assert talk(service, b"GET / HTTP/1.1\r\nA: " + b"x" * 40_000) == "431"


def test_a_large_body_is_refused_before_it_is_read(service):
    head = service_hostile.request(b"", token=TOKEN).replace(b"Content-Length: 0", b"Content-Length: 100000000000")
    assert talk(service, head) == "413"


def test_too_many_connections_are_refused(service):
    time.sleep(1.2)  # until those of the other tests are gone
    held = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(8)]
    time.sleep(0.1)
    try:
        assert talk(service, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n") == "503"
    finally:
        for one in held:
            one.close()


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_closes_streams_and_ends_well(path, sign):
    with served(path) as running:
        with connect(f"ws://{running.address}/stream") as stream:
            stream.send("[0, 0]")
            assert json.loads(stream.recv())["step"] == 0
            running.process.send_signal(sign)
            with pytest.raises(Exception, match="1012"):
                stream.recv(timeout=20)
        assert running.process.wait(20) == 0
        assert running.log.read_text().endswith("stopped.\n")


def _listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_a_stop_answers_the_requests_that_have_begun_and_takes_no_others(path):
    """The head and a part of the body come before SIGTERM, the rest after the service has stopped to listen."""
    question = service_hostile.request(json.dumps({"X": X[0].tolist()}).encode())
    with served(path) as running, socket.create_connection(("127.0.0.1", running.port), timeout=30) as begun:
        begun.sendall(question[:-40])
        while "echolearn_running_requests 1.0" not in running.get("/metrics"):
            time.sleep(0.05)
        running.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + 20
        while _listens(running.port):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        begun.sendall(question[-40:])
        answer = b"".join(iter(lambda: begun.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200")
        assert len(json.loads(answer.partition(b"\r\n\r\n")[2])["labels"]) == len(X[0])
        assert running.process.wait(20) == 0


def test_a_model_that_is_replaced_on_disk_is_served_after_a_restart_only(tmp_path):
    file, question = tmp_path / "model.safetensors", service_hostile.request(json.dumps({"X": X[0].tolist()}).encode())

    def ask(running):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, service_hostile.talk(running.port, question)).result()

    MODELS["classifier"]().save(file)
    with served(file) as running:
        about, answer = running.get("/model"), ask(running)
        assert answer.startswith(b"HTTP/1.1 200")
        for replace in (lambda: MODELS["values"]().save(file), lambda: file.write_bytes(b"damaged"), file.unlink):
            replace()
            assert running.get("/model") == about
            assert ask(running).partition(b"\r\n\r\n")[2] == answer.partition(b"\r\n\r\n")[2]
    MODELS["values"]().save(file)
    with served(file) as running:
        assert running.get("/model")["task"] == "values"


def test_the_page_of_the_model_appears_at_the_root(path):
    with served(path, "--page") as running:
        deadline = time.monotonic() + 120
        while "createModel" not in running.get("/") and time.monotonic() < deadline:
            time.sleep(0.5)
        assert "createModel" in running.get("/")
