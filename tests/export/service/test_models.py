"""Models behind the service, as the runtime and as the library run them."""

import numpy as np
import pytest

import services
from echolearn import ESNForecaster
from services import MODELS, WAVE, X


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
    if not esn.per_step_ and not many:
        predicted = predicted[0]
    if not hasattr(esn, "classes_"):
        for a, b in zip(
            found["values"] if many else [found["values"]], predicted if many else [predicted], strict=True
        ):
            np.testing.assert_allclose(a, b, atol=2e-5)
        return
    assert found["classes"] == esn.classes_.tolist()
    probabilities = esn.predict_proba(given)
    if not esn.per_step_ and not many:
        probabilities = probabilities[0]
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


@pytest.mark.parametrize("way", ["light", "library"])
def test_a_forecaster_with_exogenous_inputs_is_asked_with_them(tmp_path, way):
    push = np.random.default_rng(0).normal(size=(130, 1))
    x = np.zeros(130)
    for t in range(1, 130):
        x[t] = 0.7 * x[t - 1] + push[t, 0]
    esn = ESNForecaster(10, method="closed_loop", learn="none", washout=10).fit(x[:120], exogenous=push[:120])
    _, client = services.client(services.both(esn, tmp_path)[way])
    answer = client.post("/predict", json={"steps": 5, "exogenous": push[120:125].tolist()})
    np.testing.assert_allclose(np.ravel(answer.json()["values"]), esn.predict(5, exogenous=push[120:125]), atol=1e-9)
    found = ask(client, x[:100, None], steps=5, exogenous=push[:105].tolist())
    expected = esn.predict(5, warm_up=x[:100], exogenous=push[:105])
    np.testing.assert_allclose(np.ravel(found["values"]), expected, atol=1e-9)
