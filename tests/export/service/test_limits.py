"""Limits and counts."""

import services
from services import QUESTION, metric


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
