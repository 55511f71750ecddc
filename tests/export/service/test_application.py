"""Routes, metrics, limits and the door of the service."""

import threading
import time
from base64 import b64encode
from dataclasses import replace

import pytest
from starlette.testclient import WebSocketDenialResponse

import services
from echolearn.export.service.access import Access, read_token
from echolearn.export.service.application import plain_page
from echolearn.export.service.limits import Limits
from services import MODELS, TOKEN, X

QUESTION = {"X": X[0].tolist()}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return services.both(MODELS["classifier"](), tmp_path_factory.mktemp("model"))["light"]


def metric(client, line, **headers):
    found = [row for row in client.get("/metrics", headers=headers).text.splitlines() if row.startswith(line + " ")]
    return float(found[0].split()[-1])


def test_the_model_says_what_it_is(model):
    _, client = services.client(model)
    about = client.get("/model").json()
    assert about["classes"] == ["high", "low"]
    assert (about["estimator"], about["task"], about["n_features"], about["per_step"]) == (
        "ESNClassifier", "classes", 2, True,
    )  # fmt: skip
    assert client.get("/health").json() == {"status": "alive"}
    assert client.get("/ready").status_code == 200


def test_ready_ends_when_the_service_stops(model):
    service, client = services.client(model)
    service.stopping = True
    assert client.get("/ready").status_code == 503
    assert client.get("/health").status_code == 200


def test_the_page_escapes_names_and_allows_no_script(model):
    evil = "<script>alert(1)</script>"
    about = replace(model.about, estimator=evil, feature_names=(evil, '"'), classes=(evil, "b"))
    _, client = services.client(replace(model, about=about))
    page = client.get("/")
    assert "<script" not in page.text
    assert "&lt;script&gt;" in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    for task in ("labels", "values", "forecast", "speech"):
        assert "ADDRESS" in plain_page({**client.get("/model").json(), "task": task})


def test_another_page_can_stand_at_the_root(model):
    _, client = services.client(model, page="<p>mine</p>")
    assert client.get("/").text == "<p>mine</p>"


def test_requests_are_counted_by_route_and_status(model):
    _, client = services.client(model)
    client.post("/predict", json=QUESTION)
    client.post("/predict", json={})
    for path in ("/nothing", "/here"):
        assert client.get(path).json()["reason"] == "not-found"
    assert client.get("/predict").status_code == 405
    assert metric(client, 'echolearn_requests_total{route="/predict",status="200"}') == 1
    assert metric(client, 'echolearn_requests_total{route="/predict",status="400"}') == 1
    assert metric(client, 'echolearn_requests_total{route="other",status="404"}') == 2
    assert metric(client, 'echolearn_refused_total{reason="malformed"}') == 1
    assert metric(client, 'echolearn_request_seconds_count{route="/predict"}') == 3
    assert metric(client, "echolearn_running_requests") == 0


def test_recognition_is_for_recognisers(model):
    _, client = services.client(model)
    assert client.post("/recognize", content=b"RIFF").status_code == 404


def test_a_failure_says_nothing_of_the_inside(model, caplog):
    def fail(sequences, many):
        raise RuntimeError("secret of the inside")

    _, client = services.client(replace(model, respond=fail))
    answer = client.post("/predict", json=QUESTION)
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "secret" in caplog.text
    assert metric(client, 'echolearn_refused_total{reason="internal"}') == 1


def test_too_many_requests_are_refused_and_the_place_is_free_afterwards(model):
    gate, inside = threading.Event(), threading.Event()

    def wait(sequences, many):
        inside.set()
        gate.wait(30)
        return model.respond(sequences, many)

    _, client = services.client(replace(model, respond=wait), requests=1)
    with client:
        first = []
        thread = threading.Thread(target=lambda: first.append(client.post("/predict", json=QUESTION)))
        thread.start()
        inside.wait(30)
        second = client.post("/predict", json=QUESTION)
        assert (second.status_code, second.json()["reason"]) == (503, "busy")
        assert second.headers["retry-after"] == "1"
        gate.set()
        thread.join()
        assert first[0].status_code == 200
        assert client.post("/predict", json=QUESTION).status_code == 200


def test_a_long_answer_is_refused_and_keeps_its_place_until_it_ends(model):
    gate = threading.Event()

    def wait(sequences, many):
        gate.wait(30)
        return model.respond(sequences, many)

    _, client = services.client(replace(model, respond=wait), requests=1, request_seconds=0.05)
    with client:
        late = client.post("/predict", json=QUESTION)
        assert (late.status_code, late.json()["reason"]) == (503, "time")
        assert client.post("/predict", json=QUESTION).json()["reason"] == "busy"
        assert metric(client, "echolearn_running_requests") == 1
        gate.set()
        end = time.monotonic() + 10
        while metric(client, "echolearn_running_requests") and time.monotonic() < end:
            time.sleep(0.01)
        assert metric(client, "echolearn_running_requests") == 0


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


def test_limits_are_positive():
    with pytest.raises(ValueError, match="streams=0"):
        Limits(streams=0)


def test_there_is_one_stream_only(model):
    _, client = services.client(model)
    with pytest.raises(WebSocketDenialResponse) as refused, client.websocket_connect("/elsewhere"):
        pass
    assert refused.value.status_code == 404
