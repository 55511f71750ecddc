"""POST /predict gives what the estimator gives, in every form in which it may be asked."""

import io
import json

import numpy as np
import pytest

import services
from echolearn.export.service.bodies import parse_csv, parse_npy
from echolearn.export.service.limits import Refusal
from echolearn.export.service.models import About
from services import MODELS, X


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def ask(client, X, **more):
    lists = [x.tolist() for x in X] if isinstance(X, list) else X.tolist()
    answer = client.post("/predict", json={"X": lists, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


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
    with pytest.raises(Refusal, match="the table has 1 column; expected 2, with commas between: left, right"):
        parse_csv(b"left;right\n1;2\n", about)


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
