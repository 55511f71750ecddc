"""The engine of the page against the models themselves, in a real browser and in Node."""

from dataclasses import replace

import numpy as np
import pytest

import exported
from echolearn import (
    DeepESNRegressor,
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    Reservoir,
    SeriesClassifier,
    SeriesRegressor,
)
from echolearn.export import plan_of
from echolearn.export.page.document import PageModel, page_model
from echolearn.export.page.payload import pack_array, pack_plan
from echolearn.runtime._plan import Sparse
from reference.plans import evaluate, forecast
from reliability import exports
from reliability.browser import in_page, in_page_steps, put_page
from toys import grouped

ONE_EACH = list("abc" * 2)


@pytest.fixture(scope="module", params=["chromium", "node"])
def tab(request, tmp_path_factory):
    opened = request.getfixturevalue(request.param)
    page = opened if request.param == "node" else opened.new_page()
    put_page(page, [PageModel("first", plan_of(exported.regressor(5)))], tmp_path_factory.mktemp("page"))
    yield page
    if request.param != "node":
        page.close()


def packed(model):
    return {"name": "model", **pack_plan(plan_of(model)), "extra": dict(page_model("", model).extra)}


def of_series(**settings):
    return SeriesClassifier(15, **settings).fit(exported.X, ONE_EACH)


MODELS = {
    "softmax": lambda: exported.classifier(),
    "ridge": lambda: exported.classifier(readout="ridge", dtype="float64"),
    "feedback, softmax": lambda: exported.classifier(feedback=True),
    "feedback, values": lambda: exported.regressor(feedback=True, activation="sigmoid"),
    "bidirectional": lambda: exported.classifier(bidirectional=True, direct=False),
    "series": lambda: of_series(),
    "series, float64": lambda: of_series(washout=3, dtype="float64"),
    "series, values": lambda: SeriesRegressor(12, washout=7).fit(exported.X, [v.mean(axis=0) for v in exported.VALUES]),
    "series, label sets": lambda: SeriesClassifier(12).fit(exported.X, np.array([x[-1] > 100 for x in exported.X])),
    "label sets": lambda: ESNClassifier(9, **grouped(exported.FIXED)).fit(exported.X, [x > 100 for x in exported.X]),
    "ensemble": lambda: exported.classifier(ensemble=2),
    "relu, initial state": lambda: exported.regressor(3, activation="relu", initial_state=np.array([1.0, 2.0, 3.0])),
    "deep": lambda: exported.deep_classifier(),
    "deep, several": lambda: exported.deep_regressor(6, 3, ensemble=3, dtype="float64"),
    "deep, slow leaks": lambda: exported.deep_regressor(10, leak=(0.0003, 0.01)),
    "deep, bidirectional": lambda: exported.deep_classifier(6, 2, ensemble=2, bidirectional=True, readout="ridge"),
    "deep, series": lambda: exported.deep_classifier(labels=ONE_EACH),
    "deep, series, bidirectional": lambda: exported.deep_regressor(
        values=[v.mean(axis=0) for v in exported.VALUES], bidirectional=True
    ),
    "deep, label sets": lambda: exported.deep_classifier(labels=[x > 100 for x in exported.X]),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_answers_are_those_of_predict(tab, name):
    one = exported.drawn(MODELS[name]())
    frames = one.x.astype(float)
    assert exports.difference(one, in_page(tab, one.plan, frames)) <= exports.ALLOWED
    if "bidirectional" not in name and "series" not in name:
        steps = in_page_steps(tab, one.plan, frames)
        assert exports.difference(one, steps[-len(one.expected) :]) <= exports.ALLOWED


def test_random_networks(tab):
    rng = np.random.default_rng(11)
    for one in [exports.draw(rng) for _ in range(16)]:
        steps = exports.FORECAST if one.plan.series_dims else None
        assert exports.difference(one, in_page(tab, one.plan, one.x.astype(float), steps)) <= exports.ALLOWED, one


@pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorFitWarning")
@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("missing", ["carry", "mean"])
def test_gaps_are_filled_as_the_model_does(tab, missing, deep):
    X = [np.where(np.random.default_rng(i).random(x.shape) < 0.3, np.nan, x) for i, x in enumerate(exported.X)]
    one = DeepESNRegressor(6, 2, epochs=1, missing=missing)
    esn = (one if deep else ESNRegressor(10, missing=missing, **grouped(exported.FIXED))).fit(X, exported.VALUES)
    expected = esn.predict(X[1].astype(np.float32).astype(float))
    assert np.allclose(in_page(tab, plan_of(esn), X[1].astype(np.float32)), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("units", [1, 3])
def test_units_without_connections(tab, units):
    reservoir = Reservoir(W=np.full((3, units), 0.1), W_rec=np.zeros((units, units)), activation="tanh", leak=0.5)
    one = exported.drawn(ESNRegressor(reservoir=reservoir, **grouped(exported.FIXED)).fit(exported.X, exported.VALUES))
    assert exports.difference(one, in_page(tab, one.plan, one.x.astype(float))) <= exports.ALLOWED


def test_a_forecast_continues_the_training_series(tab):
    esn = exported.forecaster()
    assert np.allclose(in_page(tab, plan_of(esn), np.zeros((0, 1)), 8)[:, 0], esn.predict(8), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:the forecast")
def test_a_forecast_with_exogenous_inputs(tab):
    """Known inputs drive the warm-up; those to come are held at their mean, 0 after scaling."""
    E = np.cos(np.arange(200) / 4)[:, None] + 5
    esn = ESNForecaster(12, learn="none", ridge=1e-2, method="closed_loop").fit(exported.SERIES, exogenous=E)
    known, to_come = exported.SERIES[:80], np.full((6, 1), esn.forecast_.form.exogenous_mean)
    expected = esn.predict(6, warm_up=known, exogenous=np.vstack([E[:80], to_come]))
    found = in_page(tab, plan_of(esn), np.hstack([known[:, None], E[:80]]), 6)
    assert np.allclose(found[:, 0], expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("deep", [False, True])
def test_a_series_is_resumed_where_training_ended(tab, deep):
    x, y = exported.X[0], exported.VALUES[0]
    one = DeepESNRegressor(6, 2, ensemble=2, epochs=1)
    esn = (one if deep else ESNRegressor(10, feedback=True, **grouped(exported.FIXED))).fit(x, y)
    more = exported.X[1].astype(np.float32).astype(float)
    found = tab.evaluate(
        """([json, X]) => {
            const model = echolearn.createModel(json);
            return Array.from(model.run(echolearn.unpack(X).values, {resume: true}).answers);
        }""",
        [packed(esn), pack_array(more)],
    )
    expected, cold = esn.predict(more), esn.predict(more, warm_up="cold")
    assert np.allclose(np.reshape(found, expected.shape), expected, rtol=1e-5)
    assert not np.allclose(expected, cold, rtol=1e-5)


def test_states_and_weights_of_deep_networks(tab):
    """What the views draw: the states of every layer, in the order of the network, and their leaks."""
    esn = exported.deep_classifier(6, 3, ensemble=2, bidirectional=True, dtype="float64")
    found = tab.evaluate(
        """([json, X]) => {
            const model = echolearn.createModel(json), { states } = model.run(echolearn.unpack(X).values, {keep: true});
            const leaks = model.layers.map((layer) => Array.from(layer.leak));
            return [states.map((H) => Array.from(H)), leaks, model.units, model.stacks, model.weights];
        }""",
        [packed(esn), pack_array(exported.X[0])],
    )
    states, leaks, units, stacks, weights = found
    expected = np.split(esn.states(exported.X[0]), 6, axis=1)
    assert (units, stacks) == (36, 2)
    for one, H in zip(states, expected, strict=True):
        np.testing.assert_allclose(np.reshape(one, H.shape), H, rtol=1e-9, atol=1e-12)
    gains = [block.gain for stack in plan_of(esn).network.stacks for block in stack.blocks]
    np.testing.assert_allclose(leaks, np.tile(gains, 2), rtol=1e-12)
    network = esn.network_
    assert weights == sum(w.size for s in network.stacks for w in s.weights.values()) + network.readout.U.size


def test_other_leaks_and_another_spectral_radius(tab):
    plan = plan_of(exported.regressor(leak=(0.2, 0.9)))
    layer = plan.layer
    W_rec = Sparse(layer.W_rec.indptr, layer.W_rec.indices, layer.W_rec.data * 0.5)
    other = replace(plan, network=replace(layer, leak=np.minimum(layer.leak * 1.5, 1), W_rec=W_rec))
    found, radius = tab.evaluate(
        """([json, X]) => {
            const model = echolearn.createModel(json).changed({leak: 1.5, radius: 0.5});
            return [Array.from(model.run(echolearn.unpack(X).values).answers), model.layers[0].radius];
        }""",
        [{"name": "", **pack_plan(plan)}, pack_array(exported.X[0])],
    )
    expected = evaluate(other, exported.X[0])
    assert np.allclose(np.reshape(found, expected.shape), expected, rtol=1e-5)
    assert not np.allclose(expected, evaluate(plan, exported.X[0]), rtol=1e-3)
    assert radius == pytest.approx(0.45)


INTERVAL = """async ([json, X, steps]) => {
    const loop = echolearn.forecastLoop(echolearn.createModel(json));
    loop.begin(echolearn.unpack(X).values);
    const found = await new Promise((done) => loop.interval(steps, done));
    return found && [Array.from(found.low), Array.from(found.high)];
}"""


def test_an_interval_is_as_wide_as_that_of_the_forecaster(tab):
    rng = np.random.default_rng(0)
    esn = ESNForecaster(20, learn="none", ridge=1e-2, method="closed_loop").fit(
        exported.SERIES + 0.1 * rng.normal(size=200)
    )
    found = tab.evaluate(INTERVAL, [packed(esn), pack_array(np.zeros((0, 1))), 12])
    low, high = esn.forecast_interval(12, 0.9)
    assert np.mean(np.subtract(found[1], found[0])) == pytest.approx(np.mean(high - low), rel=0.25)
    assert np.allclose(np.add(*found) / 2, (low + high) / 2, atol=0.2 * np.mean(high - low))


def test_without_errors_the_interval_is_the_forecast_and_without_residuals_there_is_none(tab):
    esn = exported.forecaster()
    json = packed(esn)
    still = {**json, "extra": {"residuals": pack_array(np.zeros((5, 1)), "f4")}}
    low, high = tab.evaluate(INTERVAL, [still, pack_array(np.zeros((0, 1))), 5])
    assert low == high
    assert np.allclose(low, forecast(plan_of(esn), np.zeros((0, 1)), 5)[:, 0], rtol=1e-9)
    assert tab.evaluate(INTERVAL, [{**json, "extra": {}}, pack_array(np.zeros((0, 1))), 5]) is None


def test_which_inputs_mattered(tab):
    """One input after the other at its mean in training: half of the sum of differences of probabilities."""
    esn = exported.classifier()
    x, mean = exported.X[0], exported.classifier().inputs_.mean
    P, expected = esn.predict_proba(x), []
    for k in range(3):
        held = x.copy()
        held[:, k] = mean[k]
        expected.append(np.abs(esn.predict_proba(held) - P).sum(axis=1) / 2)
    found = tab.evaluate(
        """async ([json, packed]) => {
            const model = echolearn.createModel(json), X = echolearn.unpack(packed).values, out = [];
            await new Promise((end) => echolearn.occlude(model, X, model.run(X).answers, (k, e) => { out[k] = Array.from(e.perStep); }, end));
            return out;
        }""",  # noqa: E501
        [packed(esn), pack_array(x)],
    )
    assert np.allclose(found, expected, atol=1e-6)


def test_a_sequence_that_is_too_short_is_refused(tab):
    plan = plan_of(of_series(washout=7))
    with pytest.raises(Exception, match="has 7 steps; the model leaves out the first 7 and needs more"):
        in_page(tab, plan, exported.X[0][:7])
