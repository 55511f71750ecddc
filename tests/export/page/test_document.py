"""The document of a page: self-contained, and closed to whatever its names say."""

import base64
import hashlib
import html
import json
import re
from dataclasses import replace

import pytest

import exported
from echolearn.exceptions import ExportError
from echolearn.export import plan_of
from echolearn.export.page.document import PageModel, build_page, embedded_json, open_models, page_model

HOSTILE = "</script><script>alert(1)</script>\"'&{{TITLE}}<!--\u2028\x00"


@pytest.fixture(scope="module")
def plan():
    return plan_of(exported.classifier(5))


def test_a_page_has_nothing_from_outside(plan):
    text = build_page([PageModel("model", plan)])
    assert len(text) < 200_000
    assert not re.search(r"https?://|\bimport\(|\bimport\b.*from|@import|\burl\(", text)
    assert not re.search(r"\b(src|href)=(?![\"'](data:,|#))", text.split("<script", 1)[0])
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)


def test_the_policy_allows_the_scripts_of_the_page_and_no_request(plan):
    page = build_page([PageModel("model", plan)])
    scripts = re.findall(r"<script>(.*?)</script>", page, re.S)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    policy = html.unescape(re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1])
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert len(scripts) > 5
    assert rules["script-src"] == " ".join(f"'sha256-{h}'" for h in hashes)
    assert rules["default-src"] == rules["connect-src"] == rules["form-action"] == rules["base-uri"] == "'none'"
    assert "unsafe" not in policy


def test_no_name_can_leave_its_place(plan):
    names = (HOSTILE, "b", "c")
    hostile = replace(plan, feature_names=(HOSTILE,) * 3, answer=replace(plan.answer, names=names))
    usual, found = (build_page([PageModel(n, p)]) for n, p in (("model", plan), (HOSTILE, hostile)))
    assert found.count("<script") == usual.count("<script")
    assert found.count("</script") == usual.count("</script")
    assert "\x00" not in found
    assert "\u2028" not in found
    payload = json.loads(re.search(r'id="payload">(.*?)</script>', found, re.S)[1])
    assert payload["models"][0]["name"] == HOSTILE
    assert payload["models"][0]["answer"]["names"] == list(names)
    title = re.search(r"<title>(.*?)</title>", found, re.S)[1]
    assert "<" not in title
    assert "{{TITLE}}" in title  # what is put in is not filled in again


def test_embedded_json_is_json_without_brackets():
    text = embedded_json({HOSTILE: [HOSTILE, 1.5]})
    assert not set(text) & set("<>&\u2028\u2029\x00")
    assert json.loads(text) == {HOSTILE: [HOSTILE, 1.5]}


def test_a_model_and_another_one_beside_it(tmp_path):
    for name, model in {"a": exported.classifier(4), "b": exported.classifier(6), "c": exported.regressor(4)}.items():
        model.save(tmp_path / f"{name}.safetensors")
    a, b, c = (tmp_path / f"{name}.safetensors" for name in "abc")
    assert [m.name for m in open_models(a, b)] == ["a.safetensors", "b.safetensors"]
    with pytest.raises(ExportError, match=r"a.safetensors and c.safetensors cannot be shown beside each other: their"):
        open_models(a, c)


def test_an_example_is_part_of_the_page(tmp_path):
    exported.classifier(4).save(tmp_path / "a.safetensors")
    example = tmp_path / "e.csv"
    example.write_text("\ufeff1,2,3\n")
    assert open_models(tmp_path / "a.safetensors", None, example)[0].extra["example"] == "1,2,3\n"
    example.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ExportError, match="not a text file; expected a table as CSV"):
        open_models(tmp_path / "a.safetensors", None, example)
    example.write_bytes("Wärme;b;c\n1,5;2;3\n".encode("cp1252"))
    assert open_models(tmp_path / "a.safetensors", None, example)[0].extra["example"] == "Wärme;b;c\n1,5;2;3\n"
    example.write_text("1" * 500_001)
    with pytest.raises(ExportError, match="an example has at most 500,000"):
        open_models(tmp_path / "a.safetensors", None, example)


def test_a_forecaster_brings_its_residuals():
    esn = exported.forecaster()
    packed = page_model("f", esn).extra["residuals"]
    assert packed["shape"] == [len(esn.residuals_), 1]
    assert packed["kind"] == "f4"
