"""Streams under watch: scores, p-values, drifts and guarded learning."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.signal import lfilter

from echolearn import ESNClassifier, ESNForecaster, ESNRegressor
from echolearn.exceptions import InputWarning
from echolearn.monitoring import GuardedStream, Monitor, PageHinkley, _sources
from echolearn.monitoring import monitor as _monitor
from echolearn.monitoring.monitor import Observation
from echolearn.readout import LMS, RLS
from toys import grouped


def sines(n=3000, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    return np.sin(np.arange(n) / 5) + noise * rng.standard_normal(n)


@pytest.fixture(scope="module")
def forecaster():
    return ESNForecaster(40, learn="none", method="closed_loop").fit(sines()[:1000])


@pytest.fixture(scope="module")
def classifier():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 2))
    return ESNClassifier(20, learn="none").fit(X, np.where(X[:, 0] > 0, "up", "down"))


def test_frame_by_frame_and_in_chunks_are_the_same(forecaster):
    x = sines(1900)[1000:]
    x[700:] += 1.0
    x[300] = np.nan
    whole = Monitor(forecaster, window=400, warm_up=50).run(x)
    cut = Monitor(forecaster, window=400, warm_up=50)
    parts = [cut.run(part) for part in np.split(x, [1, 7, 500, 501, 699, 730])]
    single = Monitor(forecaster, window=400, warm_up=50)
    frames = [single.update(value) for value in x]
    assert whole.drift.any()
    for name in ("score", "p_value", "anomalous", "drift", "output"):
        np.testing.assert_array_equal(getattr(whole, name), np.concatenate([getattr(p, name) for p in parts]))
        np.testing.assert_array_equal(getattr(whole, name), [getattr(f, name) for f in frames])


def test_errors_are_those_of_the_one_step_forecasts(forecaster):
    x = sines(1200)
    seen = Monitor(forecaster).run(x[1000:1050])
    expected = [forecaster.predict(1)[0]]
    expected += [forecaster.predict(1, warm_up=x[: 1000 + t])[0] for t in range(1, 50)]
    np.testing.assert_allclose(seen.expected[:, 0], expected, atol=1e-3)  # a step too late would be 0.1
    np.testing.assert_allclose(seen.error[:, 0], x[1000:1050] - expected, atol=1e-3)


def test_a_fault_is_seen_and_named():
    x = np.stack([sines(3000), 100 * sines(3000, seed=1)], axis=1)
    esn = ESNForecaster(40, learn="none", method="closed_loop").fit(x[:1000])
    x[2500, 1] += 100
    seen = Monitor(esn).run(x[1000:])
    assert seen.anomalous[1500]
    assert seen[1500].output == 1
    assert isinstance(seen[1500], Observation)
    assert seen.anomalous.sum() <= 8
    assert "2000 frames" in str(seen)


def test_without_errors_of_training_the_warm_up_is_not_judged():
    x = sines(1500)
    monitor = Monitor(ESNRegressor(20, learn="none").fit(x[:999, None], x[1:1000]), warm_up=100)
    seen = monitor.run(x[1000:1100, None], x[1001:1101])
    assert np.isnan(seen.p_value).all()
    assert not monitor.ready
    assert np.isfinite(monitor.run(x[1100:1499, None], x[1101:]).p_value).all()
    assert monitor.ready
    assert monitor.steps == 499


def watched(monkeypatch, errors, trained=0, **settings):
    """Return what a monitor makes of errors (n, n_outputs) without a network; the first `trained` are of training."""
    source = SimpleNamespace(one_sided=False, earlier=errors[:trained], errors=lambda X, y: (X, np.zeros_like(X)))
    monkeypatch.setattr(_monitor, "error_source", lambda *_, **__: source)
    return Monitor("network", **settings).run(errors[trained:])


def independent(rng, n):
    return rng.standard_normal(n)


def heavy_tailed(rng, n):
    return rng.standard_t(4, n)


def autocorrelated(rng, n):
    return lfilter([1.0], [1.0, -0.9], rng.standard_normal(n))


def in_calm_and_wild_periods(rng, n):
    variance, e = 1.0, np.zeros(n + 1)
    for t in range(n):
        variance = 0.05 + 0.1 * e[t] ** 2 + 0.85 * variance
        e[t + 1] = np.sqrt(variance) * rng.standard_normal()
    return e[1:]


@pytest.mark.parametrize("noise", [independent, heavy_tailed, autocorrelated, in_calm_and_wild_periods])
def test_there_are_as_many_false_alarms_as_the_level_allows(monkeypatch, noise):
    """Four seeds of 8,000 frames: 320 alarms at level 0.01, and 32 p-values below 0.001.

    Each count varies by that of the binomial distribution, and as much again because the window has only ten errors
    beyond the level: the standard deviation is √(2 · 320). Alarms that come in groups vary more, but are not more.
    """
    counts = np.zeros(2)
    for seed in range(4):
        errors = noise(np.random.default_rng(seed), 9000)[:, None]
        p = watched(monkeypatch, errors, 1000, level=0.01, drift=None).p_value
        counts += (p < 0.01).sum(), (p < 0.001).sum()
    expected = np.array([320, 32])
    tolerance = 3 * np.sqrt(2 * expected)
    assert (counts <= expected + tolerance).all()
    if noise in (independent, heavy_tailed):
        assert (counts >= expected - tolerance).all()


@pytest.mark.parametrize("method", ["closed_loop", "direct"])
def test_a_forecaster_is_judged_from_its_first_frame_on(method):
    """A spike of 24 standard deviations within the first 100 frames, for ten seeds; other alarms: 1e-4 · 450."""
    false = 0
    for seed in range(10):
        x = sines(700, seed)
        esn = ESNForecaster(30, learn="none", method=method).fit(x[:500])
        at = 10 * seed
        x[500 + at] += 24 * 0.1
        seen = Monitor(esn, drift=None).run(x[500 : 501 + at])
        assert np.isfinite(seen.p_value).all()
        assert seen.anomalous[at]
        false += seen.anomalous[:at].sum()
    assert false <= 1


def noisy_pairs(n, seed):
    """Return inputs, and targets with normal noise of deviation 0.1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, np.roll(X[:, 0], 1) + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(n)


def test_with_its_training_data_a_regressor_is_judged_from_its_first_frame_on():
    """A spike of 24 standard deviations within the first 100 frames, for ten seeds; other alarms: 1e-4 · 450."""
    false = 0
    for seed in range(10):
        X, y = noisy_pairs(700, seed)
        esn, at = ESNRegressor(100, learn="none").fit(X[:500], y[:500]), 10 * seed
        expected = np.ravel(esn.predict(X[500:]))
        y[500 + at] += 24 * np.std(y[500:] - expected)
        seen = Monitor(esn, drift=None, training=(X[:500], y[:500])).run(X[500 : 501 + at], y[500 : 501 + at])
        assert np.isfinite(seen.p_value).all()
        assert seen.anomalous[at]
        np.testing.assert_allclose(seen.expected[:, 0], expected[: at + 1], atol=1e-5)
        false += seen.anomalous[:at].sum()
    assert false <= 1


@pytest.mark.parametrize("sequences", [1, 6])
@pytest.mark.parametrize("labels", [False, True])
def test_with_training_data_there_are_as_many_false_alarms_as_the_level_allows(labels, sequences):
    """Six seeds of 400 frames, 48 alarms at level 0.02.

    The errors of 150 units in one series that they were fitted to are smaller: with them there are 116 and 88 alarms.
    """
    alarms = drifts = 0
    for seed in range(6):
        fitted = 600 if sequences == 1 else 200 * sequences
        X, y = noisy_pairs(fitted + 400, seed)
        y = np.where(y > 0, "up", "down") if labels else y
        training = X[:fitted], y[:fitted]
        if sequences > 1:
            training = np.split(training[0], sequences), np.split(training[1], sequences)
        esn = (ESNClassifier if labels else ESNRegressor)(150, learn="none").fit(*training)
        seen = Monitor(esn, level=0.02, training=training).run(X[fitted:], y[fitted:])
        assert np.isfinite(seen.p_value).all()
        drifts += seen.drift.sum()
        alarms += seen.anomalous.sum()
    assert drifts == 0
    assert abs(alarms - 48) <= 3 * np.sqrt(2 * 48)


def test_the_errors_of_a_fold_are_those_of_a_network_that_has_not_seen_it():
    X, y = noisy_pairs(500, 0)
    parts = np.split(X, 10), np.split(y, 10)
    esn = ESNRegressor(20, learn="none").fit(*parts)
    errors = _sources.held_out_errors(esn, parts, targets=True)
    unseen = [ESNRegressor(20, learn="none").fit(*([p[i] for i in range(10) if i % 5 != 3] for p in parts))]
    washout = esn.network_.view.washout
    for i in (3, 8):
        own = parts[1][i] - np.ravel(unseen[0].predict(parts[0][i]))
        used = slice(i * (50 - washout), (i + 1) * (50 - washout))
        np.testing.assert_allclose(errors[used, 0], own[washout:], atol=1e-5)


def test_frames_without_a_target_have_no_error_in_a_fold():
    X, y = noisy_pairs(300, 0)
    gaps = y.copy()
    gaps[50:100] = np.nan
    esn = ESNRegressor(20, learn="none").fit(X, gaps)
    assert len(_sources.held_out_errors(esn, (X, y), targets=True)) == 300 - esn.network_.view.washout
    assert len(_sources.held_out_errors(esn, (X, gaps), targets=True)) == 250 - esn.network_.view.washout
    labels = np.where(y > 0, "up", "down")
    labels[50:100] = "?"
    esn = ESNClassifier(20, learn="none", ignore_label="?").fit(X, labels)
    assert len(_sources.held_out_errors(esn, (X, labels), targets=True)) == 250 - esn.network_.view.washout


def test_the_residuals_of_a_model_in_logarithms_are_errors_of_its_series():
    rng, t = np.random.default_rng(0), np.arange(540)
    x = np.exp(5 + 0.002 * t + 0.5 * np.sin(t * np.pi / 6) + 0.1 * rng.standard_normal(540))
    x[520] *= 4
    seen = Monitor(ESNForecaster(10, learn="none", method="direct", log=True).fit(x[:500])).run(x[500:])
    assert np.isfinite(seen.p_value).all()
    assert seen.p_value.argmin() == 20


@pytest.mark.parametrize("factor", [1.0, 3.0, 0.2])
def test_spikes_after_a_drift_are_seen_and_other_frames_are_not_anomalous(monkeypatch, factor):
    """Twelve spikes in the 200 frames after a drift that is true, or false (factor 1, by a test that is sensitive)."""
    spikes = false = 0
    test = PageHinkley(false_alarms=0.01 if factor == 1 else 1e-5)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        errors = rng.standard_normal((3000, 1))
        errors[1200:] *= factor
        at = int(watched(monkeypatch, errors[: 3000 if factor == 1 else 1300], 1000, drift=test).drift.argmax())
        assert at > 0 if factor == 1 else 200 <= at < 260
        spike = at + 5 + 15 * seed
        errors[1000 + spike] = 15 * max(factor, 1.0) * rng.choice([-1, 1])
        seen = watched(monkeypatch, errors[: 1200 + at], 1000, drift=test)
        assert np.isfinite(seen.p_value).all()
        spikes += seen.anomalous[spike]
        false += seen.anomalous[at + 1 :].sum() - seen.anomalous[spike]
    assert spikes == 12
    assert false <= 3  # of 2,400 frames


@pytest.mark.parametrize("change", ["noise", "quiet"])
def test_after_a_drift_the_window_starts_with_the_change(forecaster, change):
    x = sines(3000, noise=0.1)[1000:]
    rng = np.random.default_rng(1)
    later = sines(3000, noise=0.0)[2200:]
    x[1200:] = later + (0.4 if change == "noise" else 0.02) * rng.standard_normal(800)
    monitor = Monitor(forecaster, window=500)
    seen = monitor.run(x)
    (at,) = np.flatnonzero(seen.drift)
    assert 1200 <= at < 1260
    assert seen.anomalous[at + 1 :].sum() <= 1
    assert not seen.drift[at + 1 :].any()
    # 200 frames after the change, only the errors since count: the score of one error is its size over their scale
    scale = 1.4826 * np.median(np.abs(seen.error[1200:1400] - np.median(seen.error[1200:1400])))
    assert seen.score[1420] == pytest.approx(abs(seen.error[1420, 0]) / scale, abs=0.3)


def test_without_a_test_there_are_no_drifts(forecaster):
    x = sines(3000)[1000:]
    x[1200:] += 1
    assert not Monitor(forecaster, drift=None).run(x).drift.any()


def test_missing_values_are_filled_by_the_forecast_and_not_judged(forecaster):
    x = sines(2000)[1000:]
    gap = x.copy()
    gap[600:603] = np.nan
    seen, whole = Monitor(forecaster).run(gap), Monitor(forecaster).run(x)
    assert np.isnan(seen.p_value[600:603]).all()
    assert not seen.anomalous[600:603].any()
    assert np.isfinite(seen.p_value[603:]).all()
    np.testing.assert_array_equal(seen.score[:600], whole.score[:600])
    assert np.abs(seen.expected[650:] - whole.expected[650:]).max() < 0.05


def test_values_with_targets_and_gaps_in_both():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 2))
    y = np.stack([np.roll(X[:, 0], 1), X[:, 1]], axis=1) + 0.1 * rng.standard_normal((1500, 2))
    esn = ESNRegressor(30, learn="none").fit(X[:500], y[:500])
    X[700, 0] = np.nan
    y[800] = np.nan
    y[900, 1] = np.nan
    y[1200, 0] += 3
    seen = Monitor(esn).run(X[500:], y[500:])
    assert np.isnan(seen.score[300])
    assert np.isfinite(seen.score[400])
    assert seen.output[400] == 0
    assert seen.anomalous[700]
    np.testing.assert_allclose(seen.expected[:100], esn.predict(X[500:600]), atol=1e-5)


def test_a_network_with_its_own_way_of_gaps_keeps_it():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 1))
    y = X[:, 0] + 1
    X[::7] = np.nan
    esn = ESNRegressor(10, learn="none", missing="carry").fit(X[:200], y[:200])
    np.testing.assert_allclose(
        Monitor(esn).run(X[200:], y[200:]).expected[:, 0], esn.stream().predict(X[200:]), atol=1e-12
    )


def test_labels_are_watched_by_their_loss_and_doubt_without_them(classifier):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1200, 2))
    y = np.where(X[:, 0] > 0, "up", "down")
    swapped = y.copy()
    swapped[700:] = np.where(X[700:, 0] > 0, "down", "up")
    seen = Monitor(classifier).run(X, swapped)
    assert seen.drift[700:730].any()
    assert not seen.drift[:700].any()
    P = classifier.stream().predict_proba(X)
    np.testing.assert_allclose(
        seen.error[:100, 0], -np.log(P[np.arange(100), (y[:100] == "up").astype(int)]), rtol=1e-5
    )
    assert (seen.expected[:100, 0] == classifier.stream().predict(X[:100])).all()
    doubt = Monitor(classifier).run(X)
    np.testing.assert_allclose(doubt.error[:, 0], -np.log(P.max(axis=1)), rtol=1e-5)
    other = Monitor(classifier).update(X[0], "sideways")
    assert other.error[0] == pytest.approx(-np.log(1e-6))


def test_a_stream_that_learns_does_so_after_it_was_judged():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 1))
    esn = ESNRegressor(10, learn="none").fit(X[:100], X[:100, 0])
    monitor = Monitor(esn.stream(online=RLS()), learn=True)
    seen = monitor.run(X[100:], -X[100:, 0])
    np.testing.assert_array_equal(seen.expected[:, 0], np.ravel(esn.stream(online=RLS()).learn(X[100:], -X[100:])))
    assert np.abs(seen.error[-50:]).mean() < 0.2 * np.abs(seen.error[:50]).mean()


def test_a_classifier_that_learns_is_watched_by_its_mistakes(classifier):
    X = np.random.default_rng(1).standard_normal((300, 2))
    y = np.where(X[:, 0] > 0, "up", "down")
    seen = Monitor(GuardedStream(classifier.stream(online=LMS())), learn=True, warm_up=50).run(X, y)
    assert set(np.unique(seen.error)) <= {0.0, 1.0}
    assert (seen.error[:, 0] == (seen.expected[:, 0] != y)).all()


@pytest.mark.parametrize(
    ("use", "kind", "says"),
    [
        (lambda f, c: Monitor(f, level=2), ValueError, "level"),
        (lambda f, c: Monitor(f, warm_up=3), ValueError, "warm_up"),
        (lambda f, c: Monitor(f, drift="adwin"), TypeError, "PageHinkley"),
        (lambda f, c: Monitor(f).update(1.0, 1.0), ValueError, "without y"),
        (lambda f, c: Monitor(f, learn=True).update(1.0), ValueError, "needs a target"),
        (lambda f, c: Monitor("model").update(1.0), TypeError, "given str"),
        (lambda f, c: Monitor(f, training=([1.0], [1.0])).update(1.0), TypeError, "A forecaster has its residuals"),
        (lambda f, c: Monitor(c, training=3).update([1.0, 2.0]), ValueError, "a pair"),
        (lambda f, c: Monitor(f).run(np.zeros((0, 1))), ValueError, "at least one"),
        (lambda f, c: Monitor(c).run(np.zeros((3, 2)), ["up"]), ValueError, "1 entries for 3"),
        (lambda f, c: Monitor(f).run(np.zeros((3, 2))), ValueError, "a frame"),
    ],
)
def test_typical_mistakes_are_explained(forecaster, classifier, use, kind, says):
    with pytest.raises(kind, match=says):
        use(forecaster, classifier)


def test_targets_for_some_frames_only_are_refused(classifier):
    monitor = Monitor(classifier)
    monitor.update([0.0, 1.0], "up")
    with pytest.raises(ValueError, match="some without"):
        monitor.update([0.0, 1.0])


def test_values_that_are_no_forecasts_need_targets():
    X = np.random.default_rng(0).standard_normal((100, 2))
    esn = ESNRegressor(5, learn="none").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="not forecasts of the next frame"):
        Monitor(esn).run(X)


def test_forecasters_with_exogenous_inputs_are_refused():
    x = sines(300)
    esn = ESNForecaster(5, learn="none").fit(x, exogenous=x[:, None])
    with pytest.raises(ValueError, match="exogenous"):
        Monitor(esn).update(0.0)


def test_plots(forecaster, monkeypatch):
    pytest.importorskip("matplotlib")
    x = sines(1600)[1000:]
    x[500] += 2
    seen = Monitor(forecaster).run(x)
    (axes,) = seen.plot().axes
    assert "anomal" in axes.get_title()
    assert axes.get_xlabel() == "step"
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"echolearn\[report\]"):
        seen.plot()


def test_forecasts_that_are_not_those_of_the_network_alone_are_asked_for_one_by_one(forecaster):
    """A forecaster that takes in values by `update` and says so: each forecast is made before its value is known."""

    class LastValue:
        """The forecast is the last value, plus ten."""

        forecast_ = forecaster.forecast_

        def __init__(self):
            self.last = 1.0

        def predict(self, steps):
            return np.array([self.last + 10])

        def update(self, new):
            (self.last,) = new

    watched = _sources.SteppedForecasts(LastValue())
    errors, expected = watched.errors(np.array([[3.0], [4.0], [6.0]]), None)
    assert expected[:, 0].tolist() == [11, 13, 14]
    assert errors[:, 0].tolist() == [-8, -9, -8]
    with pytest.raises(ValueError, match="a frame has shape"):
        watched.errors(np.zeros((3, 2)), None)


def test_several_columns_that_are_smoothed_apart_are_warned_of(recwarn):
    x = np.random.default_rng(0).normal(size=(200, 2)).cumsum(axis=0)
    direct = {"learn": "none", "method": "direct"}
    with pytest.warns(InputWarning, match="smooths each of its 2 columns by itself.*method='closed_loop'"):
        Monitor(ESNForecaster(20, **grouped(direct)).fit(x)).run(x[:5])
    recwarn.clear()
    Monitor(ESNForecaster(20, **grouped(direct)).fit(x[:, 0])).run(x[:5, 0])
    Monitor(ESNForecaster(20, learn="none", method="closed_loop").fit(x)).run(x[:5])
    assert not [warning for warning in recwarn if "smooths each" in str(warning.message)]
