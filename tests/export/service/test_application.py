"""Routes, metrics, limits and the door of the service."""

from dataclasses import replace

import pytest
from starlette.testclient import WebSocketDenialResponse

import services
from services import QUESTION, metric


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


def test_at_the_root_is_a_page_or_what_the_model_is(model):
    service, client = services.client(model)
    assert client.get("/").json() == client.get("/model").json()
    service.page = "<p>mine</p>"
    assert client.get("/").text == "<p>mine</p>"


def test_recognition_is_for_recognisers(model):
    _, client = services.client(model)
    assert client.post("/recognize", content=b"RIFF").status_code == 404


def test_a_failure_says_nothing_of_the_inside(model, caplog):
    def fail(query):
        raise RuntimeError("secret of the inside")

    _, client = services.client(replace(model, respond=fail))
    answer = client.post("/predict", json=QUESTION)
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "secret" in caplog.text
    assert metric(client, 'echolearn_refused_total{reason="internal"}') == 1


def test_there_is_one_stream_only(model):
    _, client = services.client(model)
    with pytest.raises(WebSocketDenialResponse) as refused, client.websocket_connect("/elsewhere"):
        pass
    assert refused.value.status_code == 404
