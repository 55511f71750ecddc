"""ONNX: names, shapes and metadata of the graphs; closed loops; large reservoirs; refusals."""

import json

import numpy as np
import pytest

import exported
from echolearn import DeepESNRegressor, ESNForecaster, ESNRegressor, SeriesClassifier, __version__
from echolearn.exceptions import ExportError
from echolearn.export import plan_of
from echolearn.export.onnx.graph import IR_VERSION, OPSET_VERSION, onnx_model
from reliability.exports import difference, in_onnx, in_onnx_steps, session
from toys import grouped

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def described(values):
    return [(value.name, value.shape, value.type) for value in values]


def test_the_sequence_graph_has_the_documented_inputs_and_outputs():
    running = session(onnx_model(plan_of(exported.classifier())))
    assert described(running.get_inputs()) == [("X", ["steps", 3], "tensor(float)")]
    assert described(running.get_outputs()) == [("probabilities", ["steps", 3], "tensor(float)")]
    values = session(onnx_model(plan_of(exported.regressor(dtype="float64"))))
    assert described(values.get_inputs()) == [("X", ["steps", 3], "tensor(float)")]
    assert described(values.get_outputs()) == [("values", ["steps", 2], "tensor(float)")]


def test_the_step_graph_has_the_documented_inputs_and_outputs():
    running = session(onnx_model(plan_of(exported.regressor(feedback=True)), step=True))
    assert described(running.get_inputs()) == [("x", [3], "tensor(float)"), ("state", [22], "tensor(float)")]
    assert described(running.get_outputs()) == [("values", [2], "tensor(float)"), ("next_state", [22], "tensor(float)")]
    doubled = session(onnx_model(plan_of(exported.regressor(dtype="float64")), step=True))
    assert doubled.get_inputs()[1].type == "tensor(double)"


def test_metadata_and_opset():
    content = onnx_model(plan_of(exported.classifier()), name="phones")
    model = onnx.load_from_string(content)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", OPSET_VERSION)]
    assert (model.ir_version, model.producer_name, model.producer_version) == (IR_VERSION, "echolearn", __version__)
    assert model.graph.name == "phones"
    facts = {entry.key: entry.value for entry in model.metadata_props}
    assert facts["echolearn"] == __version__
    assert facts["estimator"] == "ESNClassifier"
    assert json.loads(facts["classes"]) == json.loads(facts["columns"]) == ["a", "b", "c"]
    assert content == onnx_model(plan_of(exported.classifier()), name="phones")  # the same bytes again


def test_one_frame_is_a_sequence_too():
    drawn = exported.drawn(exported.classifier(), exported.X[0][:1])
    assert difference(drawn, in_onnx(drawn)) < 1e-5


@pytest.mark.parametrize(("connections", "topology"), [(2, "random"), (15, "random"), (1, "orthogonal"), (1, "ring")])
def test_recurrent_weights_are_dense_or_gathered(connections, topology):
    model = exported.classifier(units=30, connections=connections, topology=topology)
    drawn = exported.drawn(model)
    operators = [node.op_type for node in _step_of(onnx_model(drawn.plan)).node]
    assert ("Gather" in operators) == (drawn.plan.layer.W_rec.widest * 2 < 30)
    assert difference(drawn, in_onnx(drawn)) < 1e-5


def _step_of(content):
    (scan,) = [node for node in onnx.load_from_string(content).graph.node if node.op_type == "Scan"]
    return next(attribute.g for attribute in scan.attribute if attribute.name == "body")


def test_numbers_decide_on_the_precision():
    esn = exported.forecaster()
    exact, rough = (
        session(onnx_model(plan_of(esn), numbers=numbers)).run(
            None, {"X": np.empty((0, 1), np.float32), "steps": np.array(20)}
        )[0][:, 0]
        for numbers in (None, "float32")
    )
    assert np.abs(exact - esn.predict(20)).max() < 1e-6 < np.abs(rough - esn.predict(20)).max()


def test_a_closed_loop_continues_the_training_series_or_a_given_one():
    esn = exported.forecaster()
    running = session(onnx_model(plan_of(esn)))
    assert [value.name for value in running.get_inputs()] == ["X", "steps"]
    given = exported.SERIES[:100].astype(np.float32)
    for x, expected in ((given[:0], esn.predict(15)), (given, esn.predict(15, warm_up=given))):
        (found,) = running.run(None, {"X": x[:, None], "steps": np.array(15)})
        np.testing.assert_allclose(found[:, 0], expected, atol=1e-5)


def test_a_closed_loop_takes_exogenous_inputs():
    e = np.random.default_rng(2).normal(5, 2, (215, 2)).astype(np.float32)
    esn = ESNForecaster(20, learn="none", ridge=1e-3, method="closed_loop").fit(exported.SERIES, exogenous=e[:200])
    running = session(onnx_model(plan_of(esn)))
    given = exported.SERIES[:100].astype(np.float32)
    (found,) = running.run(None, {"X": given[:0, None], "steps": np.array(15), "exogenous": e[200:]})
    np.testing.assert_allclose(found[:, 0], esn.predict(15, exogenous=e[200:]), atol=1e-5)
    (found,) = running.run(None, {"X": given[:, None], "steps": np.array(15), "exogenous": e[:115]})
    np.testing.assert_allclose(found[:, 0], esn.predict(15, warm_up=given, exogenous=e[:115]), atol=1e-5)


@pytest.mark.parametrize("washout", [0, 7])
def test_whole_series_have_one_row_of_answers(washout):
    model = SeriesClassifier(15, washout=washout).fit(exported.X, ["up", "down"] * 3)
    drawn = exported.drawn(model)
    assert drawn.expected.shape == (1, 2)
    assert difference(drawn, in_onnx(drawn)) < 1e-5
    assert json.loads(session(onnx_model(drawn.plan)).get_modelmeta().custom_metadata_map["per_step"]) is False


def test_a_step_graph_continues_where_training_ended():
    series = exported.X[0]
    esn = ESNRegressor(10, feedback=True, **grouped(exported.FIXED)).fit(series, exported.VALUES[0])
    running = session(onnx_model(plan_of(esn), step=True))
    facts = running.get_modelmeta().custom_metadata_map
    state = np.array(json.loads(facts["resumed_state"]), np.float32)
    frame = exported.X[1][0].astype(np.float32)
    np.testing.assert_allclose(
        running.run(None, {"x": frame, "state": state})[0], esn.stream().predict(frame), rtol=1e-5
    )


def several_values(**settings):
    return exported.deep_regressor(10, 3, **settings)


DEEP = {
    "labels": lambda: exported.deep_classifier(),
    "a single pair": lambda: exported.deep_classifier(2, 1),
    "a pair for each direction": lambda: exported.deep_classifier(4, 1, bidirectional=True),
    "several stacks": lambda: several_values(ensemble=3),
    "both directions": lambda: several_values(bidirectional=True, ensemble=2, dtype="float64"),
    "three pairs, both directions": lambda: exported.deep_classifier(6, 2, bidirectional=True, readout="ridge"),
    "slow leaks": lambda: several_values(leak=(0.0003, 0.01)),
    "one label per series": lambda: exported.deep_classifier(labels=["up", "down"] * 3),
    "values per series": lambda: several_values(values=[v.mean(axis=0) for v in exported.VALUES], bidirectional=True),
    "label sets": lambda: exported.deep_classifier(labels=[x > 100 for x in exported.X]),
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_networks(name):
    drawn = exported.drawn(DEEP[name]())
    assert difference(drawn, in_onnx(drawn)) < 2e-6
    if drawn.plan.per_step and not drawn.plan.runs_backward:
        assert difference(drawn, in_onnx_steps(drawn)) < 2e-6


def test_a_deep_graph_scans_the_recurrence_alone():
    """Products are over all steps; a Scan has one step of the pairs of a layer, in one direction."""
    model = onnx.load_from_string(onnx_model(plan_of(exported.deep_classifier(8, 3, bidirectional=True))))
    scans = [node for node in model.graph.node if node.op_type == "Scan"]
    assert len(scans) == 2 * 3
    bodies = [attribute.g for scan in scans for attribute in scan.attribute if attribute.name == "body"]
    assert {node.op_type for body in bodies for node in body.node} == {"Add", "Gather", "Identity", "Mul"}


def test_the_step_graph_of_a_deep_network():
    plan = plan_of(exported.deep_classifier(8, 3, ensemble=2, dtype="float64"))
    doubled, single = (session(onnx_model(plan, step=True, numbers=numbers)) for numbers in (None, "float32"))
    assert described(doubled.get_inputs()) == [("x", [3], "tensor(float)"), ("state", [48], "tensor(double)")]
    assert described(single.get_outputs())[1] == ("next_state", [48], "tensor(float)")


def test_a_deep_step_graph_continues_where_training_ended():
    esn = DeepESNRegressor(6, 2, ensemble=2, epochs=1).fit(exported.X[0], exported.VALUES[0])
    running = session(onnx_model(plan_of(esn), step=True))
    state = np.array(json.loads(running.get_modelmeta().custom_metadata_map["resumed_state"]), np.float32)
    frame, stream = exported.X[1][0].astype(np.float32), esn.stream()
    np.testing.assert_allclose(running.run(None, {"x": frame, "state": state})[0], stream.predict(frame), rtol=1e-5)


def test_refusals():
    plan = plan_of(exported.classifier())
    with pytest.raises(ExportError, match="numbers='int8' cannot be exported to ONNX"):
        onnx_model(plan, numbers="int8")
    with pytest.raises(ExportError, match="bidirectional=True cannot be exported to a step graph"):
        onnx_model(plan_of(exported.classifier(bidirectional=True)), step=True)
    with pytest.raises(ExportError, match="bidirectional=True cannot be exported to a step graph"):
        onnx_model(plan_of(exported.deep_classifier(bidirectional=True)), step=True)
    with pytest.raises(ExportError, match="DeepESNClassifier cannot be exported to a step graph of ONNX"):
        onnx_model(plan_of(exported.deep_classifier(labels=["up", "down"] * 3)), step=True)


def test_hostile_class_names_stay_names():
    names = ['"]}', "\n", "<script>", "é", "\u2028"]
    labels = [np.array(names)[np.arange(len(x)) % 5] for x in exported.X]
    running = session(onnx_model(plan_of(exported.classifier(labels=labels))))
    assert json.loads(running.get_modelmeta().custom_metadata_map["classes"]) == sorted(names)
