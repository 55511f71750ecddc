"""Tokens, hosts and origins."""

from base64 import b64encode

import pytest
from starlette.testclient import WebSocketDenialResponse

import services
from echolearn.export.service.access import Access, read_token
from services import QUESTION, TOKEN


@pytest.mark.parametrize(
    "header",
    [f"Bearer {TOKEN}", f"bearer {TOKEN}", "Basic " + b64encode(f"anyone:{TOKEN}".encode()).decode()],
)
def test_a_token_opens_the_door(model, header):
    _, client = services.client(model, token=TOKEN)
    assert client.post("/predict", json=QUESTION, headers={"Authorization": header}).status_code == 200


@pytest.mark.parametrize("header", ["", TOKEN, f"Bearer {TOKEN}x", "Bearer", "Basic ????", "Basic YQ==", "Bearer \xe9"])
def test_other_tokens_do_not(model, header):
    _, client = services.client(model, token=TOKEN)
    headers = {"Authorization": header.encode("latin-1")}
    for answer in (client.post("/predict", json=QUESTION, headers=headers), client.get("/metrics", headers=headers)):
        assert (answer.status_code, answer.json()["reason"]) == (401, "token")
        assert TOKEN not in answer.text
    assert client.get("/health").status_code == 200
    with pytest.raises(WebSocketDenialResponse) as refused, client.websocket_connect("/stream", headers=headers):
        pass
    assert refused.value.status_code == 401


def test_a_browser_gives_its_token_as_a_subprotocol(model):
    _, client = services.client(model, token=TOKEN)
    with client.websocket_connect("/stream", subprotocols=["echolearn", f"token.{TOKEN}"]) as stream:
        assert stream.accepted_subprotocol == "echolearn"
        stream.send_json([0.0, 0.0])
        assert stream.receive_json()["step"] == 0
    with (
        pytest.raises(WebSocketDenialResponse),
        client.websocket_connect("/stream", subprotocols=["echolearn", "token.another-of-16-signs"]),
    ):
        pass


def test_pages_of_other_sites_and_other_names_are_refused(model):
    _, client = services.client(model, origins=["https://good.example"])
    for origin, status in (
        (None, 200),
        ("http://localhost", 200),
        ("https://good.example", 200),
        ("https://evil.example", 403),
        ("null", 403),
        ("http://localhost.evil.example", 403),
    ):
        headers = {} if origin is None else {"Origin": origin}
        assert client.post("/predict", json=QUESTION, headers=headers).status_code == status, origin
        if status == 200:
            with client.websocket_connect("/stream", headers=headers):
                pass
        else:
            with pytest.raises(WebSocketDenialResponse), client.websocket_connect("/stream", headers=headers):
                pass
    for host, status in (
        ("localhost:1", 200),
        ("127.0.0.1", 200),
        ("[::1]:5", 200),
        ("good.example", 200),
        ("evil", 403),
    ):
        assert client.get("/model", headers={"Host": host}).status_code == status, host


def test_other_machines_require_a_token():
    for host in ("127.0.0.1", "localhost", "::1", "127.9.9.9"):
        assert Access.of(host, None).loopback
    for host in ("0.0.0.0", "::", "192.168.0.1", "example.org", "localhost.example.org"):
        with pytest.raises(ValueError, match="--token-file"):
            Access.of(host, None)
        Access.of(host, TOKEN)
    with pytest.raises(ValueError, match="--origin"):
        Access.of("127.0.0.1", None, ["example.org"])


def test_tokens_come_from_a_file_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("ECHOLEARN_TOKEN", raising=False)
    assert read_token(None) is None
    monkeypatch.setenv("ECHOLEARN_TOKEN", TOKEN)
    assert read_token(None) == TOKEN
    file = tmp_path / "token"
    file.write_text("another-0123456789\n")
    assert read_token(file) == "another-0123456789"
    for bad in ("", "short", "with blanks in between", "ümlaut-0123456789"):
        file.write_text(bad)
        with pytest.raises(ValueError, match="no usable token"):
            read_token(file)
