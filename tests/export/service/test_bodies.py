"""POST /predict gives what the estimator gives, in every form in which it may be asked."""

import io
import json

import numpy as np
import pytest

import services
from echolearn.export.service.bodies import parse_csv, parse_npy
from echolearn.export.service.limits import Refusal
from echolearn.export.service.models import About
from services import MODELS, WAVE, X


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def ask(client, X, **more):
    lists = [x.tolist() for x in X] if isinstance(X, list) else X.tolist()
    answer = client.post("/predict", json={"X": lists, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture(scope="module", params=[name for name in MODELS if name != "forecaster"])
def kinds(request, tmp_path_factory):
    esn = MODELS[request.param]()
    return esn, services.both(esn, tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize("way", ["light", "library"])
@pytest.mark.parametrize("many", [False, True])
def test_answers_are_those_of_the_estimator(kinds, way, many):
    esn, models = kinds
    _, client = services.client(models[way])
    given = X[:3] if many else X[0]
    found, predicted = ask(client, given), esn.predict(given)
    if not hasattr(esn, "classes_"):
        for a, b in zip(
            found["values"] if many else [found["values"]], predicted if many else [predicted], strict=True
        ):
            np.testing.assert_allclose(a, b, atol=2e-5)
        return
    assert found["classes"] == esn.classes_.tolist()
    probabilities = esn.predict_proba(given)
    if not esn.per_step_ and not many:
        probabilities, predicted = np.reshape(probabilities, -1), np.reshape(predicted, -1)[0]
    pairs = [(found["labels"], found["probabilities"], predicted, probabilities)]
    for labels, P, own, own_P in zip(*pairs[0], strict=True) if many else pairs:
        np.testing.assert_allclose(P, own_P, atol=2e-5)
        if np.ndim(own) == 2:  # rows of labels that may hold together
            own = [[k for k, holds in enumerate(row) if holds] for row in own.tolist()]
        assert labels == (own if isinstance(own, list) else np.asarray(own).tolist())


def test_forecasts_continue_a_series_or_that_of_the_fit(tmp_path):
    esn = MODELS["forecaster"]()
    for model in services.both(esn, tmp_path).values():
        _, client = services.client(model)
        assert client.post("/predict", json={"steps": 7}).json()["values"] == pytest.approx(esn.predict(7), abs=1e-6)
        found = ask(client, WAVE[:60], steps=4)["values"]
        assert found == pytest.approx(esn.predict(4, warm_up=WAVE[:60]), abs=1e-6)
        two = ask(client, [WAVE[:60, None], WAVE[:80, None]], steps=4)["values"]
        assert two == [pytest.approx(esn.predict(4, warm_up=w), abs=1e-6) for w in (WAVE[:60], WAVE[:80])]
        refused = client.post("/predict", json={"X": WAVE[:60].tolist()})
        assert refused.status_code == 400
        assert "steps" in refused.json()["error"]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    model = services.both(MODELS["classifier"](), tmp_path_factory.mktemp("model"))["light"]
    return services.client(model, frames=200, body_bytes=20_000)[1]


def test_all_kinds_of_bodies_get_the_same_answer(client):
    x = np.round(X[0], 3)
    expected = ask(client, x)
    table = "\n".join(",".join(map(str, row)) for row in x.tolist())
    for kind, body in (
        ("text/csv", table),
        ("text/csv; charset=utf-8", "a,b\n" + table + "\n"),
        ("application/octet-stream", npy(x)),
        ("application/x-npy", npy(np.asfortranarray(x))),
    ):
        answer = client.post("/predict", content=body, headers={"Content-Type": kind})
        assert answer.json() == expected, kind
    panel = client.post("/predict", content=npy(np.stack([x, x])), headers={"Content-Type": "application/x-npy"}).json()
    assert panel["labels"] == [expected["labels"]] * 2


def test_names_of_columns_are_looked_up():
    about = About("ESNClassifier", "classes", 2, ("left", "right"))
    np.testing.assert_array_equal(parse_csv(b"right,left\n1,2\n3,\n", about), [[2, 1], [np.nan, 3]])
    with pytest.raises(Refusal, match="no column 'right'"):
        parse_csv(b"left,top\n1,2\n", about)


def test_a_missing_value_is_null(tmp_path):
    esn = MODELS["gaps"]()
    _, client = services.client(services.both(esn, tmp_path)["light"])
    given = X[0].copy()
    given[3, 1] = np.nan
    lists = [[None if np.isnan(v) else v for v in row] for row in given.tolist()]
    found = client.post("/predict", json={"X": lists}).json()["values"]
    np.testing.assert_allclose(found, esn.predict(given), atol=2e-5)


HEADER = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 2), }"
LIE = b"\x93NUMPY\x01\x00" + (len(HEADER) + 1).to_bytes(2, "little") + HEADER + b"\n" + b"12345678"

REFUSED = {
    "not JSON": ("application/json", b"{", 400, "not JSON"),
    "not UTF-8": ("application/json", b'{"X": "\xff"}', 400, "not JSON"),
    "NaN": ("application/json", b'{"X": [[NaN, 1]]}', 400, "write null"),
    "nested": ("application/json", b"[" * 9000, 400, "nested too deeply"),
    "many digits": ("application/json", b'{"X": [[' + b"1" * 5000 + b", 1]]}", 400, "not JSON"),
    "an array": ("application/json", b"[[1, 2]]", 400, "expected an object"),
    "no X": ("application/json", b"{}", 400, "no X"),
    "another key": ("application/json", b'{"X": [[1, 2]], "y": 1}', 400, "'y'"),
    "X is text": ("application/json", b'{"X": "1, 2"}', 400, "X is a JSON string"),
    "numbers as text": ("application/json", b'{"X": [["1", "2"]]}', 400, "not numbers"),
    "truth values": ("application/json", b'{"X": [[true, false]]}', 400, "not numbers"),
    "one list": ("application/json", b'{"X": [1, 2]}', 422, "one list of 2"),
    "a short frame": ("application/json", b'{"X": [[1, 2], [1]]}', 422, "frame 1 of X has 1"),
    "mixed": ("application/json", b'{"X": [[1, 2], 3]}', 400, "frames"),
    "no frames": ("application/json", b'{"X": []}', 422, "no sequences"),
    "an empty sequence": ("application/json", b'{"X": [[[1, 2]], []]}', 422, "sequence 1 of X has no frames"),
    "infinity": ("application/json", b'{"X": [[1e999, 1]]}', 422, "infinity"),
    "too large a number": ("application/json", b'{"X": [[' + b"9" * 400 + b", 1]]}", 422, "too large"),
    "missing": ("application/json", b'{"X": [[null, 1]]}', 422, "NaN"),
    "too many frames": ("application/json", json.dumps({"X": [[0, 0]] * 201}).encode(), 413, "201 frames"),
    "too large a body": ("application/json", b" " * 20_001, 413, "20,000"),
    "a form": ("application/x-www-form-urlencoded", b"X=1", 415, "application/json"),
    "fields": ("text/csv", b"1,2\n3\n", 422, "line 2 has 1"),
    "words": ("text/csv", b"1,2\n3,four\n", 400, "not a number"),
    "underscores": ("text/csv", b"1,2\n3,1_0\n", 400, "not a number"),
    "an open quote": ("text/csv", b'1,"2\n3,4\n', 400, "CSV"),
    "bytes": ("text/csv", b"\xff\xfe", 400, "CSV"),
    "not npy": ("application/octet-stream", b"\x93NUMPY", 400, ".npy"),
    "npy of a lie": ("application/octet-stream", LIE, 400, "promises 16,000,000,000 bytes"),
    "npy of objects": ("application/octet-stream", npy(np.array([[{}, 1]], object)), 422, "dtype"),
    "npy of other shape": ("application/octet-stream", npy(np.zeros((4, 3))), 422, "(4, 3)"),
    "npy cut off": ("application/octet-stream", npy(np.zeros((4, 2)))[:-1], 400, "promises"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_body_is_refused_with_a_sentence(client, case):
    kind, body, status, words = REFUSED[case]
    answer = client.post("/predict", content=body, headers={"Content-Type": kind})
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]
    assert answer.json()["reason"]
    assert "Traceback" not in answer.text


def test_a_shape_with_negative_numbers_is_refused():
    with pytest.raises(Refusal, match=r"shape|npy"):
        parse_npy(LIE.replace(b"(1000000000, 2)", b"(-100000000, 2)"), 2)
