"""One target per series: how much sets of units count by series left out, files, threads, many series, weights."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import reference as ref
from echolearn import SeriesClassifier, SeriesRegressor, load
from echolearn.exceptions import PoorFitWarning
from echolearn.fitting import summaries
from echolearn.modelfile.schema import SETS_OF_UNITS
from echolearn.readout import summary as readout_summary
from echolearn.readout.ridge import Columns
from echolearn.readout.summary import both
from threadpools import thread_pool


def sines(count, seed):
    """Return noisy sines of three frequencies, with random phases, and their classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(count) % 3
    t = np.arange(60)
    phases = rng.uniform(0, 2 * np.pi, count)
    noise = 0.3 * rng.standard_normal((count, 60))
    X = np.sin(2 * np.pi * np.array([0.05, 0.06, 0.07])[y][:, None] * t + phases[:, None]) + noise
    return [x[:, None] for x in X], np.array(["slow", "middle", "fast"])[y]


def levels(count, seed):
    """Return noise about a level that is the class, of any length."""
    rng = np.random.default_rng(seed)
    y = np.arange(count) % 2
    return [rng.standard_normal((rng.integers(20, 40), 2)) + np.array([0.8 * k, 0]) for k in y], y


def mixed(count, seed):
    """Return sines whose frequency and level tell the class, each a little."""
    rng = np.random.default_rng(seed + 1000)
    X, y = sines(count, seed)
    shift = {"slow": 0.0, "middle": 0.15, "fast": 0.3}
    return [x + shift[label] + 0.6 * rng.standard_normal(x.shape) for x, label in zip(X, y, strict=True)], y


SINES, RHYTHMS = sines(60, 0)
NOISE, LEVELS = levels(40, 0)
SMALL = {"hidden_units": 40}


def shares(model):
    """Return how much each set of units counts, by name."""
    return dict(zip(SETS_OF_UNITS, model.network_.view.summary.shares, strict=True))


def test_sines_of_random_phase_are_told_apart():
    X, y = sines(90, 1)
    assert SeriesClassifier().fit(SINES, RHYTHMS).score(X, y) >= 0.95


def test_units_count_by_the_errors_of_sequences_left_out(capsys):
    """Rhythms need detectors of changes, levels need those of levels; the others count little."""
    rhythms = SeriesClassifier(verbose=1, **SMALL).fit(SINES, RHYTHMS)
    printed = capsys.readouterr().err
    assert shares(rhythms)["levels"] < 0.1
    assert shares(rhythms)["changes"] + shares(rhythms)["changes of differences"] > 0.5
    for name, share in shares(rhythms).items():
        assert f"{name} {100 * share:.0f} %" in printed
        assert f"{name} {100 * share:.0f} %" in rhythms._repr_html_()
    esn = SeriesClassifier(**SMALL).fit(NOISE, LEVELS)
    assert max(shares(esn), key=shares(esn).get) == "levels"
    assert esn.score(*levels(200, 1)) > 0.9


@pytest.mark.parametrize("ridge", [1e6, 0], ids=["all alike", "the training error alone"])
def test_other_shares_are_worse_on_new_series(ridge, monkeypatch):
    """The mean squared error of probabilities, where one kind of units is enough and where both tell a little."""
    tasks = [(*sines(45, k), *sines(90, k + 50)) for k in range(3)] + [
        (*mixed(45, k), *mixed(90, k + 50)) for k in range(3)
    ]

    def brier():
        found = []
        for X, y, X_new, y_new in tasks:
            esn = SeriesClassifier(20).fit(X, y)
            found.append(((esn.predict_proba(X_new) - (y_new[:, None] == esn.classes_)) ** 2).sum(axis=1).mean())
        return np.mean(found)

    own = brier()
    monkeypatch.setattr(summaries, "SHARE_RIDGE", ridge)
    assert brier() > own


def test_shares_have_the_smallest_error_of_the_mean():
    """A set that misses more of the same does not count; one that misses the opposite counts most."""
    rng = np.random.default_rng(0)
    w, residuals = rng.uniform(0.5, 2, 30), rng.standard_normal((4, 30, 2)) * [[[0.5]], [[1.0]], [[1.0]], [[3.0]]]
    np.testing.assert_allclose(summaries.shares_of(residuals, w), ref.shares_of(residuals, w), atol=1e-9)
    residuals[1:] = [residuals[0] * 1.2, residuals[0] * 3, residuals[0] * 3]
    found = summaries.shares_of(residuals, w)
    np.testing.assert_allclose(found, ref.shares_of(residuals, w), atol=1e-9)
    np.testing.assert_array_equal(found > 0, [True, True, False, False])
    residuals[3] *= -0.5
    assert summaries.shares_of(residuals, w).argmax() == 3
    np.testing.assert_array_equal(summaries.shares_of(0 * residuals, w), 0.25)
    residuals[0], residuals[3] = 0, residuals[1]  # a set that misses nothing is enough
    np.testing.assert_allclose(summaries.shares_of(residuals, w), [1, 0, 0, 0], atol=1e-9)


def test_probabilities_are_calibrated_and_agree_with_answers():
    X, y = levels(400, 2)
    esn = SeriesClassifier(**SMALL).fit(NOISE, LEVELS)
    P = esn.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(esn.classes_[P.argmax(axis=1)], esn.predict(X))
    assert abs(P.max(axis=1).mean() - esn.score(X, y)) < 0.1
    assert esn.decision_function(X).shape == (400,)
    values = SeriesClassifier(readout="ridge", **SMALL).fit(NOISE, LEVELS)
    np.testing.assert_array_equal(values.predict(X), esn.predict(X))
    assert np.abs(values.predict_proba(X).sum(axis=1) - 1).max() < 1e-12


def sessions(count, seed):
    """Return noise about a level that is the class: ten series follow each other that share an offset, a session."""
    rng = np.random.default_rng(seed)
    y, session = np.arange(10 * count) % 2, np.repeat(np.arange(count), 10)
    offsets, wobbles = rng.standard_normal((2, count))
    t = np.arange(30)
    return [
        (y[i] + offsets[k] + 0.5 * rng.standard_normal(30) + np.sin((0.2 + 0.1 * wobbles[k]) * t))[:, None]
        for i, k in enumerate(session)
    ], y


def test_series_that_follow_each_other_are_left_out_together(monkeypatch):
    """Probabilities for new sessions are too sure if the readout has seen other series of the session left out."""
    found = []
    for blocks_of in (summaries.blocks_of, lambda labels: list(np.arange(len(labels))[:, None])):
        monkeypatch.setattr(summaries, "blocks_of", blocks_of)
        losses, excess = [], []
        for seed in range(3):
            X, y = sessions(40, seed + 10)
            model = SeriesClassifier(**SMALL).fit(*sessions(12, seed))
            P = model.predict_proba(X)
            losses.append(-np.log(P[np.arange(400), y]).mean())
            excess.append(P.max(axis=1).mean() - (P.argmax(axis=1) == y).mean())
        found.append((np.mean(losses), np.mean(excess)))
    assert found[0][0] < found[1][0] - 0.02
    assert abs(found[0][1]) < found[1][1]


def test_blocks_have_a_tenth_of_each_class_in_the_given_order():
    labels = np.r_[np.zeros(20, int), np.ones(5, int), [2, 3], np.zeros(20, int)]
    blocks = summaries.blocks_of(labels)
    np.testing.assert_array_equal(np.sort(np.concatenate(blocks)), np.arange(47))
    zeros = [places[labels[places] == 0] for places in blocks]
    np.testing.assert_array_equal(np.concatenate(zeros), np.flatnonzero(labels == 0))
    assert [len(some) for some in zeros] == [4] * 10
    assert [int((labels[places] > 0).sum()) for places in blocks] == [1] * 7 + [0] * 3  # classes of few are spread out
    assert len(summaries.blocks_of(np.arange(2))) == 2


def test_one_series_per_class_is_enough_for_readouts():
    """No error left out tells anything about a class unknown to the readout: small ridges, and equal shares."""
    X, y = sines(90, 3)
    order = np.argsort(np.arange(90) % 3, kind="stable")
    few = order[[0, 30, 60]]
    model = SeriesClassifier().fit([X[i] for i in few], y[few])
    np.testing.assert_array_equal(model.network_.view.summary.shares, 0.25)
    assert model.ridge_ < 1e-4 * 3 * 14 * 750
    assert model.score(X, y) > 0.5
    assert model.predict_proba([X[i] for i in few])[model.classes_ == y[few][:, None]].min() > 0.8


def test_a_class_with_one_series_does_not_change_what_the_others_choose():
    X, y = sines(60, 0)
    model = SeriesClassifier(readout="ridge", **SMALL).fit([*X, np.ones((60, 1))], [*y, "constant"])
    known = SeriesClassifier(readout="ridge", **SMALL).fit(X, y)
    assert 0.2 < model.ridge_ / known.ridge_ < 5
    assert model.score(*sines(90, 1)) > 0.9


@pytest.mark.parametrize(
    ("series", "steps", "units"),
    [(20, 10, 750), (50, 500, 750), (25, 2000, 375), (100, 100, 375), (1000, 10, 250), (5, 10**6, 250)],
)
def test_small_data_have_more_units(series, steps, units):
    assert summaries.units_for(np.full(series, steps)) == units


def test_the_number_of_units_follows_the_data(tmp_path):
    model = SeriesClassifier().fit(SINES, RHYTHMS)
    assert model.network_.reservoir.N == 4 * 625  # of 60 series
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert again.hidden_units == "auto"
    np.testing.assert_array_equal(again.predict_proba(SINES[:3]), model.predict_proba(SINES[:3]))
    with pytest.raises(ValueError, match="hidden_units='many'; expected a whole number >= 1, or 'auto'"):
        SeriesClassifier("many").fit(SINES, RHYTHMS)


@pytest.mark.parametrize("kind", [SeriesClassifier, SeriesRegressor])
def test_a_fit_that_says_nothing_about_series_left_out_warns(kind):
    """Series of the fit are answered without an error; only those left out show that there is nothing to learn."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 30, 1)), rng.permutation(60) % 2
    with pytest.warns(PoorFitWarning, match="left-out") as caught:
        poor = kind(**SMALL, ridge=1e-3).fit(X, y)
    assert [str(one.message).count("series by series; then try ridge='auto', or more series") for one in caught] == [1]
    assert np.array_equal(np.round(poor.predict(X)), y)


def test_values_of_sequences():
    rng = np.random.default_rng(0)
    spread = rng.uniform(0.5, 2.0, 120)
    X = [s * rng.standard_normal((60, 1)) for s in spread]
    esn = SeriesRegressor().fit(X[:80], spread[:80])
    assert esn.score(X[80:], spread[80:]) > 0.8
    pair = SeriesRegressor(**SMALL).fit(X, np.column_stack([spread, -spread])).predict(X)
    np.testing.assert_allclose(pair[:, 0], -pair[:, 1], atol=1e-4)


def test_each_ridge_is_the_one_with_the_smallest_error_left_out():
    """Each series is left out in turn, by hand, for each of the ridges given, and for each set of units."""
    how = {"hidden_units": 10, "readout": "ridge", "dtype": "float64", "standardize": False}
    ridges, ones = [1.0, 30.0, 1000.0, 1e5], np.ones(40)
    esn = SeriesClassifier(ridge=ridges, **how).fit(NOISE, LEVELS)
    best, residuals, T = [], [], np.eye(2)[LEVELS]
    for R in np.split(rows_of(esn, NOISE), 4, axis=2):
        Z = Columns.of(R.reshape(40, -1), ones).standardize(R.reshape(40, -1))
        missed = [ref.left_out(Z, T, ones, ridge) - T for ridge in ridges]
        residuals.append(min(missed, key=lambda some: (some**2).sum()))
        best.append(ridges[int(np.argmin([(some**2).sum() for some in missed]))])
    assert len(set(best)) > 1  # each has its own
    assert esn.ridge_ == pytest.approx(ref.shares_of(residuals, ones) @ best)


def rows_of(esn, X):
    """Return the statistics (n, statistics, units) that the readout sees."""
    summary = esn.network_.view.summary
    rows = summary.rows(esn.reservoir_, [both(x) for x in X], 0, np.float64)
    return rows.reshape(len(X), summary.statistics, esn.reservoir_.N)


@pytest.mark.parametrize(("X", "y"), [(SINES, RHYTHMS), (NOISE, LEVELS)], ids=["changes", "levels"])
def test_a_file_gives_the_same_bits(X, y, tmp_path):
    esn = SeriesClassifier(washout=2, **SMALL).fit(X, y)
    esn.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X), esn.predict_proba(X))
    assert again.get_params() == esn.get_params()


def test_values_from_a_file(tmp_path):
    esn = SeriesRegressor(**SMALL).fit(NOISE, LEVELS.astype(float))
    esn.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "model.safetensors").predict(NOISE), esn.predict(NOISE))


def test_threads_and_repetition_change_no_bit():
    with thread_pool(1):
        one = SeriesClassifier(**SMALL).fit(SINES, RHYTHMS).decision_function(SINES)
    with thread_pool(3):
        three = SeriesClassifier(**SMALL).fit(SINES, RHYTHMS).decision_function(SINES)
    np.testing.assert_array_equal(one, three)


def test_groups_of_a_prediction_do_not_matter(monkeypatch):
    esn = SeriesClassifier(dtype="float64", **SMALL).fit(NOISE, LEVELS)
    together = esn.decision_function(NOISE)
    monkeypatch.setattr(readout_summary, "group_sequences", lambda lengths, frames: np.array_split(range(40), 7))
    np.testing.assert_array_equal(esn.decision_function(NOISE), together)


@pytest.mark.parametrize("units", [4, 10], ids=["by sums over columns", "by products of rows"])
def test_the_sequences_that_choose_are_not_all_that_are_fitted_to(units, monkeypatch):
    """The solutions for all sequences are those that the normal equations have, whichever sequences chose."""
    settings = {"hidden_units": units, "readout": "ridge", "dtype": "float64", "standardize": False, "ridge": 1000.0}
    T = (RHYTHMS[:, None] == np.unique(RHYTHMS)).astype(float)
    esn = SeriesClassifier(**settings).fit(SINES, RHYTHMS)
    found, expected = ref.mean_of_readouts(rows_of(esn, SINES), T, np.ones(60), 1000.0)
    np.testing.assert_allclose(esn.network_.view.summary.shares, found, atol=1e-6)
    assert found.max() < 0.99  # a mean, not a choice
    outputs = rows_of(esn, SINES).reshape(60, -1) @ esn.readout_weights_ + esn.intercept_
    np.testing.assert_allclose(outputs, expected, atol=1e-6)
    monkeypatch.setattr(summaries, "MAX_CHOOSING_SEQUENCES", 59)
    monkeypatch.setattr(summaries, "MAX_ROWS_PER_SUM", 25)
    many = SeriesClassifier(**settings).fit(SINES, RHYTHMS)
    outputs = rows_of(many, SINES).reshape(60, -1) @ many.readout_weights_ + many.intercept_
    assert np.abs(outputs - expected).max() > 1e-9  # other units, scales and shares
    _, expected = ref.mean_of_readouts(rows_of(many, SINES), T, np.ones(60), 1000.0 * 60 / 59)
    np.testing.assert_allclose(outputs, expected, atol=0.02)  # scales and shares of 59


def test_scikit_learn_takes_it():
    assert cross_val_score(clone(SeriesClassifier(**SMALL)), NOISE, LEVELS, cv=3).mean() > 0.8


@pytest.mark.parametrize("units", [1, 2, 3, 7])
def test_few_units(units):
    esn = SeriesClassifier(units).fit(NOISE, LEVELS)
    assert esn.network_.reservoir.W.shape[1] == 4 * units
    assert esn.score(NOISE, LEVELS) > 0.5


def test_short_sequences():
    X = [np.full((1 + i % 2, 1), float(i % 2)) for i in range(12)]
    assert SeriesClassifier(**SMALL).fit(X, np.arange(12) % 2).score(X, np.arange(12) % 2) == 1


def test_states_are_those_that_are_summarized():
    esn = SeriesClassifier(dtype="float64", **SMALL).fit(SINES, RHYTHMS)
    summary, states = esn.network_.view.summary, esn.states(SINES)
    assert len(summary.delays) > 1
    assert states[0].shape == (60, 160)
    row = ref.summarize(states[0], summary.thresholds)
    outputs = row @ esn.readout_weights_ + esn.intercept_
    np.testing.assert_allclose(outputs, esn.decision_function(SINES[:1])[0], atol=1e-6)


def test_rows_of_labels_have_a_readout_of_values(tmp_path):
    """Several labels at once are no classes: none of the outputs is a logit, before and after a file."""
    rows = np.column_stack([LEVELS, np.arange(40) % 4 > 1]).astype(int)
    esn = SeriesClassifier(**SMALL).fit(NOISE, rows)
    assert not esn.network_.readout.softmax
    assert esn.predict(NOISE).shape == (40, 2)
    esn.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert not again.network_.readout.softmax
    np.testing.assert_array_equal(again.predict_proba(NOISE), esn.predict_proba(NOISE))


def test_a_notebook_shows_what_was_fitted():
    assert "the readout only" in SeriesClassifier(**SMALL).fit(NOISE, LEVELS)._repr_html_()


def test_what_a_series_estimator_has_not():
    """No keyword, and no argument of a fit, changes which model is fitted."""
    for kind in (SeriesClassifier, SeriesRegressor):
        assert not hasattr(kind(), "partial_fit")
        with pytest.raises(TypeError, match="leak"):
            kind(leak=0.5)
        with pytest.raises(TypeError, match="validation"):
            kind(3).fit(NOISE, LEVELS, validation=(NOISE, LEVELS))


def test_weights_of_sequences_count():
    """Labels that are wrong in half of the sequences do no harm where these weigh nothing."""
    wrong = np.r_[LEVELS[:20], 1 - LEVELS[20:]]
    esn = SeriesClassifier(**SMALL).fit(NOISE, wrong, sample_weight=np.r_[np.ones(20), np.zeros(20)])
    assert esn.score(*levels(200, 1)) > 0.85
    light = SeriesClassifier(**SMALL).fit(NOISE, wrong, sample_weight=np.r_[np.ones(20), np.full(20, 1e-3)])
    assert light.score(*levels(200, 1)) > 0.85
