"""Where a prediction starts: after the training series, after given frames, or cold."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.model_selection import TimeSeriesSplit, cross_val_score

from echolearn import ESNRegressor, SeriesClassifier, load
from echolearn.datasets import mackey_glass
from echolearn.exceptions import ClosedLoopWarning
from toys import grouped


def series(n=600, ahead=3):
    x = mackey_glass(n + ahead)
    return x[:n], x[ahead:, 0]


@pytest.fixture(scope="module")
def fitted():
    X, y = series()
    return ESNRegressor(50, learn="none", dtype="float64").fit(X[:400], y[:400])


def test_what_follows_the_training_series_is_predicted_as_if_it_were_one_run(fitted):
    X, y = series()
    whole = fitted.predict(X)  # begins as the training series does, so it starts cold, as training did
    np.testing.assert_allclose(fitted.predict(X[400:]), whole[400:], atol=1e-10)
    np.testing.assert_allclose(fitted.predict(X[400:], warm_up=X[:400]), whole[400:], atol=1e-10)
    cold = fitted.predict(X[400:], warm_up="cold")
    assert np.abs(cold - whole[400:])[:5].max() > 10 * np.abs(whole[400:] - y[400:]).max()


def test_the_training_series_itself_starts_as_in_training(fitted):
    X, _ = series()
    np.testing.assert_array_equal(fitted.predict(X[:400]), fitted.predict(X[:400], warm_up="cold"))
    np.testing.assert_allclose(fitted.predict(X[:7]), fitted.predict(X[:400])[:7], rtol=1e-12)


def test_score_counts_every_step_of_a_continued_series_and_skips_the_washout_of_a_cold_one(fitted):
    X, y = series()
    washout = fitted.network_.view.washout
    assert washout == 40  # a tenth of 400 steps
    errors = (y[400:] - fitted.predict(X[400:])) ** 2
    assert fitted.score(X[400:], y[400:]) == pytest.approx(1 - errors.mean() / y[400:].var())
    cold = fitted.predict(X[400:], warm_up="cold")[washout:]
    expected = 1 - ((y[400 + washout :] - cold) ** 2).mean() / y[400 + washout :].var()
    assert fitted.score(X[400:], y[400:], warm_up="cold") == pytest.approx(expected)
    assert (
        fitted.score(X[400:], y[400:], warm_up=X[390:400])
        == pytest.approx(  # 30 steps of the washout remain
            1 - ((y[430:] - fitted.predict(X[400:], warm_up=X[390:400])[30:]) ** 2).mean() / y[430:].var()
        )
    )


def test_a_score_without_any_step_after_the_washout_is_refused(fitted):
    X, y = series()
    with pytest.raises(ValueError, match="nothing to score"):
        fitted.score(X[400:420], y[400:420], warm_up="cold")


def test_folds_that_continue_their_training_part_need_no_settling():
    X, y = series()
    esn = ESNRegressor(50, learn="none")
    assert cross_val_score(esn, X, y, cv=TimeSeriesSplit(3)).min() > 0.99


def test_several_sequences_have_frames_of_their_own_before_them():
    X = [x for x, _ in (series(90), series(120), series(60))]
    y = [x[:, 0] for x in X]
    esn = ESNRegressor(20, learn="none", dtype="float64").fit(X, y)
    answers = esn.predict([x[50:] for x in X], warm_up=[x[:50] for x in X])
    for x, answer in zip(X, answers, strict=True):
        np.testing.assert_allclose(answer, esn.predict(x, warm_up="cold")[50:], atol=1e-10)
    assert esn.training_end_ is None
    np.testing.assert_array_equal(esn.predict(X[0]), esn.predict(X[0], warm_up="cold"))


def test_a_saved_model_continues_where_training_ended(fitted, tmp_path):
    X, _ = series()
    fitted.save(tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(X[400:]), fitted.predict(X[400:]))
    np.testing.assert_array_equal(loaded.predict(X[:400]), fitted.predict(X[:400]))
    assert loaded.network_.view.washout == 40


def test_a_stream_continues_where_training_ended_or_where_it_is_told(fitted):
    X, _ = series()
    expected = fitted.predict(X[400:])
    np.testing.assert_allclose(fitted.stream().predict(X[400:]), expected, atol=1e-10)
    np.testing.assert_allclose(fitted.stream(warm_up=X[:400]).predict(X[400:]), expected, atol=1e-10)
    cold = fitted.predict(X[400:], warm_up="cold")
    np.testing.assert_allclose(fitted.stream(warm_up="cold").predict(X[400:]), cold, atol=1e-10)


def test_feedback_networks_continue_from_the_last_known_outputs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1))
    y = np.zeros(300)
    for t in range(1, 300):
        y[t] = 0.8 * y[t - 1] + 0.3 * X[t, 0]
    esn = ESNRegressor(30, feedback=True, learn="none", dtype="float64", washout=0).fit(X[:200], y[:200])
    near = np.abs(esn.predict(X[200:]) - y[200:])[:3].max()
    known = esn.predict(X[200:], warm_up=(X[:200], y[:200]))
    np.testing.assert_allclose(known, esn.predict(X[200:]), atol=1e-10)
    assert near < np.abs(esn.predict(X[200:], warm_up="cold") - y[200:])[:3].max()


def test_a_closed_loop_that_leaves_the_range_of_the_targets_is_reported():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 1)), rng.normal(size=300)
    esn = ESNRegressor(20, feedback=True, learn="none").fit(X, y)
    esn.network_.readout.U[:] *= 1000  # a readout that answers far too much
    with pytest.warns(ClosedLoopWarning, match=r"leave the range of the training targets.*state_noise=1e-3"):
        esn.predict(X[:50])


def test_noise_in_the_states_keeps_a_closed_loop_near_its_series():
    y = mackey_glass(1300)[:, 0]
    X = np.random.default_rng(0).normal(size=(1300, 1)) * 1e-3  # nothing but its own outputs drives the network
    how = {"hidden_units": 100, "feedback": True, "feedback_scaling": 1.0, "learn": "none", "ridge": 1e-10}
    errors = []
    for noise in (0.0, 1e-3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the loop without noise may run away
            how |= {"state_noise": noise, "input_scaling": 1e-3, "direct": False}
            esn = ESNRegressor(dtype="float64", **grouped(how)).fit(X[:1000], y[:1000])
            errors.append(np.abs(esn.predict(X[1000:]) - y[1000:])[:100].mean())
    assert errors[1] < errors[0]


def test_a_warm_up_that_cannot_be_used_is_refused_with_what_can(fitted):
    X, _ = series()
    with pytest.raises(ValueError, match="warm_up has 2 sequences, but X has 1"):
        fitted.predict(X[400:], warm_up=[X[:10], X[:10]])
    with pytest.raises(ValueError, match="'cold' to start in the initial state"):
        fitted.predict(X[400:], warm_up="warm")
    Z = [np.random.default_rng(k).normal(size=(12, 1)) for k in range(20)]
    whole = SeriesClassifier(10).fit(Z, [0, 1] * 10)
    with pytest.raises(ValueError, match="whole sequences"):
        whole.states(Z, warm_up=Z)
    both = ESNRegressor(10, learn="none", bidirectional=True).fit(X[:400], X[:400, 0])
    with pytest.raises(ValueError, match="bidirectional"):
        both.predict(X[400:], warm_up=X[:400])
