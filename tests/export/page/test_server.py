"""The page on loopback."""

import http.client
import threading

import pytest

from echolearn.export.page.server import PageServer


@pytest.fixture
def server():
    with PageServer("<!doctype html>héllo", "default-src 'none'") as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server, method="GET", path="/", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=5)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_the_page_is_served_with_its_policy(server):
    answer, body = ask(server)
    assert answer.status == 200
    assert body.decode() == "<!doctype html>héllo"
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert server.server_address[0] == "127.0.0.1"
    answer, body = ask(server, "HEAD")
    assert (answer.status, body) == (200, b"")


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/model.safetensors", {}, 404),
        ("GET", "/../../etc/passwd", {}, 404),
        ("POST", "/", {}, 501),
        ("GET", "/", {"Host": "somewhere.example"}, 403),  # a page elsewhere whose name was pointed here
    ],
)
def test_nothing_else_is_answered(server, method, path, headers, status):
    assert ask(server, method, path, **headers)[0].status == status
