"""A plan as JSON."""

import base64
from dataclasses import replace

import numpy as np
import pytest

import exported
from echolearn.exceptions import ExportError
from echolearn.export import plan_of
from echolearn.export.page.payload import pack_array, pack_plan


@pytest.fixture(scope="module")
def plan():
    return plan_of(exported.classifier(5))


def test_arrays_keep_the_precision_of_the_network():
    packed = [pack_plan(plan_of(exported.classifier(5, dtype=dtype))) for dtype in ("float32", "float64")]
    assert [p["network"]["W"]["kind"] for p in packed] == ["f4", "f8"]
    deep = pack_plan(plan_of(exported.deep_classifier()))["network"]
    assert deep["stacks"][0]["blocks"][1]["gain"]["kind"] == deep["U"]["kind"] == "f4"
    assert packed[0]["inputs"][0]["mean"]["kind"] == "f8"
    values = np.array([[1.5, -2.0], [np.pi, 0.0]])
    raw = base64.b64decode(pack_array(values)["data"])
    assert np.array_equal(np.frombuffer(raw, "<f8").reshape(2, 2), values)
    with pytest.raises(ExportError, match="too large for float32"):
        pack_array(np.array([1e300]), "f4")


def test_an_option_that_the_engine_lacks_is_refused_by_name(plan):
    odd = replace(plan.layer, W_fb=np.zeros((3, 5)), backward=np.array([True, False, False, False, False]))
    with pytest.raises(ExportError, match=r"feedback=True with bidirectional=True"):
        pack_plan(replace(plan, network=odd))
