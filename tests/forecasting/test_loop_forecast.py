"""Forecasts in a closed loop, against a naive one: warm-ups, intervals, learning, trouble."""

import numpy as np
import pandas as pd
import pytest

import reference as ref
import toys
from echolearn import ESNForecaster
from echolearn.datasets import henon, mackey_glass, mso
from echolearn.exceptions import ForecastWarning
from toys import grouped

SMALL = {"hidden_units": 20, "connections": 4, "washout": 20, "epochs": 2}
WAVES = mso(300, 2)[:, 0]
PLANE = henon(300)
RNG = np.random.default_rng(5)
PUSH = RNG.uniform(-1, 1, (300, 2))


def pushed(push):
    """x_t = 0.7 x_{t-1} + push_t0 - 0.5 push_t1."""
    x = [0.0]
    for row in push[1:]:
        x.append(0.7 * x[-1] + row[0] - 0.5 * row[1])
    return np.array(x)


def autoregressive(rng, steps):
    x = np.zeros(steps + 100)
    for t in range(1, len(x)):
        x[t] = 0.8 * x[t - 1] + rng.normal()
    return x[100:]


def witness(esn, series, steps, exogenous=None):
    """predict(steps, warm_up=series) by plain loops over the weights."""
    r = esn.reservoir_
    w = {"W": r.W, "W_rec": r.W_rec.toarray(), "bias": r.bias, "leak": r.leak}
    z = (np.reshape(series, (len(series), -1)) - esn.target_mean_) / esn.target_scale_
    e = np.empty((len(z) + steps, 0)) if exogenous is None else exogenous
    e = (e - esn.forecast_.form.exogenous_mean) / esn.forecast_.form.exogenous_scale
    h = ref.states(w, np.hstack([z[:-1], e[1 : len(z)]]), "tanh")[:, -1]
    y = ref.run_closed_loop(w, h, z[-1], e[len(z) :], esn.network_.readout.U, "tanh", direct=True)
    return y * esn.target_scale_ + esn.target_mean_


def test_predict_is_the_plain_loop():
    esn = ESNForecaster(input_noise=0.01, **grouped(SMALL)).fit(PLANE)
    np.testing.assert_allclose(esn.predict(15), witness(esn, PLANE, 15), atol=1e-8)
    assert esn.predict(15).shape == (15, 2)


def test_exogenous_rows_go_with_their_steps():
    x = pushed(PUSH)
    esn = ESNForecaster(learn="none", **grouped(SMALL)).fit(x[:200], exogenous=PUSH[:200])
    future = esn.predict(50, exogenous=PUSH[200:250])
    np.testing.assert_allclose(future, witness(esn, x[:200], 50, PUSH[:250])[:, 0], atol=1e-9)
    np.testing.assert_allclose(future, x[200:250], atol=0.2)  # pushed about, it is followed
    again = esn.predict(50, warm_up=x[:200], exogenous=PUSH[:250])
    np.testing.assert_array_equal(again, future)
    assert esn.score(x, exogenous=PUSH) > -0.1
    without = ESNForecaster(learn="none", **grouped(SMALL)).fit(x[:200])
    assert without.score(x) < -0.3  # so the rows were of use


@pytest.mark.parametrize("learn", ["none", "both"])
def test_a_warm_up_on_the_series_continues_it(learn):
    esn = ESNForecaster(learn=learn, **grouped(SMALL)).fit(WAVES)
    np.testing.assert_array_equal(esn.predict(30), esn.predict(30, warm_up=WAVES))
    first = esn.predict(10)
    np.testing.assert_allclose(esn.predict(30)[10:], esn.predict(20, warm_up=np.append(WAVES, first)), atol=1e-6)


def test_one_many_and_stacked_series():
    one = ESNForecaster(**grouped(SMALL)).fit(WAVES)
    many = ESNForecaster(**grouped(SMALL)).fit([WAVES[:150], WAVES[100:300]])
    assert one.predict(5).shape == (5,)
    assert [y.shape for y in many.predict(5)] == [(5,), (5,)]
    np.testing.assert_allclose(many.predict(5)[1], many.predict(5, warm_up=WAVES[100:300]), atol=1e-8)
    np.testing.assert_allclose(one.predict(5, warm_up=[WAVES[:99], WAVES])[1], one.predict(5), atol=1e-8)
    stacked = ESNForecaster(**grouped(SMALL)).fit(np.stack([PLANE[:150], PLANE[150:]]))
    assert np.shape(stacked.predict(5)) == (2, 5, 2)
    lower, _ = stacked.forecast_interval(5, n_paths=10)
    assert np.shape(lower) == (2, 5, 2)
    column = ESNForecaster(**grouped(SMALL)).fit(WAVES[:, None])
    np.testing.assert_array_equal(column.predict(5)[:, 0], one.predict(5))
    for form in (list(WAVES), pd.Series(WAVES)):
        np.testing.assert_array_equal(ESNForecaster(**grouped(SMALL)).fit(form).predict(5), one.predict(5))


def test_score_is_the_error_of_predictions():
    esn = ESNForecaster(learn="none", **grouped(SMALL)).fit(WAVES[:200])
    test, horizon = WAVES[180:], 7
    ends = range(22, len(test) - horizon + 1)
    forecasts = [esn.predict(horizon, warm_up=test[:n])[-1] for n in ends]
    truth = np.array([test[n + horizon - 1] for n in ends])
    nrmse = np.sqrt(((forecasts - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())
    assert esn.score(test, horizon=horizon) == pytest.approx(-nrmse, rel=1e-6)


def test_units_of_the_series_do_not_matter():
    a, b = (ESNForecaster(**grouped(SMALL)).fit(s * WAVES + m) for s, m in ((1, 0), (2.0**20, 2.0**22)))
    np.testing.assert_allclose(b.predict(20), 2.0**20 * a.predict(20) + 2.0**22, rtol=1e-6)


def test_waves_are_continued():
    esn = ESNForecaster(50, washout=50, learn="none", ridge=1e-9).fit(WAVES[:270])
    np.testing.assert_allclose(esn.predict(30), WAVES[270:300], atol=0.2)  # of ±2


def test_learning_lowers_the_one_step_error():
    how = {**SMALL, "hidden_units": 10, "epochs": 60}
    drawn, learned = (ESNForecaster(learn=learn, **grouped(how)).fit(PLANE[:250]) for learn in ("none", "both"))
    assert learned.score(PLANE) > 0.7 * drawn.score(PLANE)
    assert len(learned.history_) == 60


@pytest.mark.parametrize("learn", ["none", "both"])
def test_intervals_cover_their_share(learn):
    rng = np.random.default_rng(11)
    esn = ESNForecaster(20, method="closed_loop", washout=20, epochs=30, learn=learn).fit(autoregressive(rng, 3000))
    cases = [autoregressive(rng, 60) for _ in range(300)]
    for coverage in (0.5, 0.9):
        lower, upper = esn.forecast_interval(10, coverage, n_paths=200, warm_up=[c[:50] for c in cases])
        truth = np.array([c[50:] for c in cases])
        inside = (np.array(lower) < truth) & (truth < np.array(upper))
        assert inside.mean() == pytest.approx(coverage, abs=0.06)
        width = (np.array(upper) - lower).mean(axis=0)
        assert 1.3 < width[-1] / width[0] < 1.8  # towards the spread of the process: 1 / sqrt(1 - 0.8²) = 1.67


def test_residuals_are_as_large_as_errors_to_come():
    """Many weights, few steps: plain residuals would be far too small."""
    rng = np.random.default_rng(3)
    kept, plain, fresh = [], [], []
    for _ in range(8):
        x, new = autoregressive(rng, 170), autoregressive(rng, 1000)
        esn = ESNForecaster(40, washout=20, learn="none", ridge=0.1, method="closed_loop").fit(x)
        kept.append(np.mean(esn.residuals_**2) * esn.target_scale_[0] ** 2)
        plain.append(esn.score(x) ** 2 * x.var())
        fresh.append(esn.score(new) ** 2 * new.var())
    assert np.mean(plain) < 0.8 * np.mean(fresh)
    assert np.mean(kept) == pytest.approx(np.mean(fresh), rel=0.25)


def test_noise_disturbs_the_inputs_and_not_the_targets():
    how = {**SMALL, "learn": "none", "ridge": 1e-3, "validation_fraction": 0.0}
    esn = ESNForecaster(input_noise=0.3, **grouped(how)).fit(WAVES)
    z = ((WAVES - WAVES.mean()) / WAVES.std())[:, None]
    noisy = (z + 0.3 * np.random.default_rng(0).spawn(5)[-1].standard_normal(z.shape))[:-1]
    r = esn.reservoir_
    w = {"W": r.W, "W_rec": r.W_rec.toarray(), "bias": r.bias, "leak": r.leak}
    H_c = np.vstack([ref.states(w, noisy, "tanh"), noisy.T, np.ones(len(noisy))])[:, 20:]
    penalty = np.diag([1e-3] * (len(H_c) - 1) + [0.0])
    U = np.linalg.solve(H_c @ H_c.T + penalty, H_c @ z[21:])
    np.testing.assert_allclose(esn.network_.readout.U, U, rtol=1e-6, atol=1e-8)


def test_a_constant_series_stays_constant():
    esn = ESNForecaster(**grouped(SMALL)).fit(np.full(100, 7.5))
    np.testing.assert_allclose(esn.predict(10), 7.5)
    with pytest.raises(ValueError, match="constant"):
        esn.score(np.full(100, 7.5))


def test_a_loop_that_runs_away_is_reported():
    esn = ESNForecaster(learn="none", **grouped(SMALL)).fit(WAVES)
    toys.set_readout(esn, esn.network_.readout.U * 5)
    with pytest.warns(ForecastWarning, match=r"diverges: after \d+ steps it is 100 standard .* noise"):
        esn.predict(400)


def test_an_update_of_a_closed_loop():
    x = mackey_glass(500)[:, 0]
    esn = ESNForecaster(30, learn="none").fit(x[:400])
    assert esn.method_ == "closed_loop"
    expected = esn.predict(5, warm_up=x)
    np.testing.assert_allclose(esn.update(x[400:450]).update(x[450:]).predict(5), expected, rtol=1e-6)
