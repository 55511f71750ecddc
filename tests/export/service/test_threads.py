"""How many requests are answered at once."""

import threading
import time
from dataclasses import replace

import services
from services import QUESTION, metric


def test_too_many_requests_are_refused_and_the_place_is_free_afterwards(model):
    gate, inside = threading.Event(), threading.Event()

    def wait(query):
        inside.set()
        gate.wait(30)
        return model.respond(query)

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

    def wait(query):
        gate.wait(30)
        return model.respond(query)

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
