"""Missing targets and weights, through the doors of the estimators: fit, partial_fit, score, validation, files."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.utils.class_weight import compute_class_weight

import toys
from echolearn import ESNClassifier, ESNRegressor, SeriesClassifier, SeriesRegressor, load
from echolearn.exceptions import CheckpointError, InputWarning
from echolearn.readout import solver
from echolearn.states import harvest
from toys import grouped

X, LABELS = toys.labels(sequences=12)
VALUES = toys.echoes(sequences=12)[1]
RISING_X, RISING = toys.rising()
FIXED = {**toys.FAST, "learn": "none", "ridge": 1e-3, "dtype": "float64", "standardize": False}
LEARNED = {**toys.FAST, "batch_size": None, "ridge": 1e-3, "dtype": "float64", "standardize": False}
BOTH = pytest.mark.parametrize("how", [FIXED, LEARNED], ids=["fixed", "learned"])


def classifier(**how):
    return ESNClassifier(**grouped({"readout": "ridge", **how}))


def weights_of(esn):
    return {**esn.network_.reservoir.weights(), "U": esn.network_.readout.U}


def close(one, other, rtol=1e-7):
    for name, value in weights_of(other).items():
        scale = np.abs(value).max()
        np.testing.assert_allclose(weights_of(one)[name], value, rtol=rtol, atol=rtol * scale, err_msg=name)


@BOTH
def test_whole_weights_count_like_repeated_sequences(how):
    w = [1, 2, 0, 3] * 3
    again = np.repeat(np.arange(12), w)
    repeated = [X[i] for i in again]
    close(
        classifier(**how).fit(X, LABELS, sample_weight=w), classifier(**how).fit(repeated, [LABELS[i] for i in again])
    )
    weighted = ESNRegressor(**grouped(how)).fit(X, VALUES, sample_weight=w)
    one, other = (
        weighted.predict(X[0]),
        ESNRegressor(**grouped(how)).fit(repeated, [VALUES[i] for i in again]).predict(X[0]),
    )
    if how is FIXED:  # the scale of the targets, which learning depends on, is that of the different ones
        np.testing.assert_allclose(one, other, rtol=1e-7)


def test_a_weight_of_1_changes_no_bit_of_a_series_fit():
    plain = SeriesClassifier(10).fit(RISING_X, RISING)
    ones = SeriesClassifier(10).fit(RISING_X, RISING, sample_weight=np.ones(40))
    np.testing.assert_array_equal(ones.network_.readout.U, plain.network_.readout.U)


def test_the_ridge_of_weighted_targets_is_that_of_repeated_ones():
    how = {**FIXED, "ridge": "auto"}
    w = [1, 2, 0, 3] * 3
    again = np.repeat(np.arange(12), w)
    found = classifier(**how).fit(X, LABELS, sample_weight=w)
    expected = classifier(**how).fit([X[i] for i in again], [LABELS[i] for i in again])
    assert found.ridge_ == pytest.approx(expected.ridge_)


@BOTH
@pytest.mark.parametrize("readout", ["ridge", "softmax"])
def test_ignored_steps_are_as_if_their_weight_were_0(how, readout):
    rng = np.random.default_rng(0)
    w = [rng.integers(0, 2, len(x)).astype(float) for x in X]
    marked = [np.where(c > 0, y, "?") for c, y in zip(w, LABELS, strict=True)]
    how = {**how, "readout": readout, "refine_epochs": 1}
    ignoring = ESNClassifier(ignore_label="?", **grouped(how)).fit(X, marked)
    weighted = ESNClassifier(**grouped(how)).fit(X, LABELS, sample_weight=w)
    for name, value in weights_of(weighted).items():
        np.testing.assert_array_equal(weights_of(ignoring)[name], value)
    assert ignoring.classes_.tolist() == ["high", "low"]
    assert ignoring.score(X, marked) == pytest.approx(weighted.score(X, LABELS, sample_weight=w))


def test_missing_values_are_as_if_their_weight_were_0():
    rng = np.random.default_rng(0)
    w = [rng.integers(0, 2, len(x)).astype(float) for x in X]
    missing = [np.where(c[:, None] > 0, v, np.nan) for c, v in zip(w, VALUES, strict=True)]
    one = ESNRegressor(**grouped(FIXED)).fit(X, missing)
    other = ESNRegressor(**grouped(FIXED)).fit(X, VALUES, sample_weight=w)
    np.testing.assert_allclose(one.predict(X[0]), other.predict(X[0]), rtol=1e-9)
    assert one.score(X, missing) == pytest.approx(one.score(X, VALUES, sample_weight=w))
    known = np.concatenate([v[c > 0] for c, v in zip(w, VALUES, strict=True)])
    np.testing.assert_allclose(one.target_mean_, known.mean(axis=0))
    as_objects = [v.astype(object) for v in missing]
    np.testing.assert_array_equal(ESNRegressor(**grouped(FIXED)).fit(X, as_objects).predict(X[0]), one.predict(X[0]))


def test_a_row_that_lacks_a_value_is_left_out_with_a_warning():
    partly = [v.copy() for v in VALUES]
    partly[3][4:9, 1] = np.nan
    whole = [v.copy() for v in VALUES]
    whole[3][4:9] = np.nan
    with pytest.warns(InputWarning, match="lack only some of their values: these rows are left out as a whole"):
        found = ESNRegressor(**grouped(FIXED)).fit(X, partly)
    np.testing.assert_array_equal(found.predict(X[0]), ESNRegressor(**grouped(FIXED)).fit(X, whole).predict(X[0]))


@pytest.mark.parametrize("missing", [np.nan, None])
def test_nan_as_the_label_to_ignore_stands_for_none_too(missing):
    marked = [np.where(np.arange(len(y)) % 3 > 0, y.astype(object), missing) for y in LABELS]
    with pytest.raises(ValueError, match=r"contains NaN or infinity or None.*ignore_label="):
        classifier(**FIXED).fit(X, marked)
    esn = classifier(**FIXED, ignore_label=float("nan")).fit(X, marked)
    w = [(np.arange(len(y)) % 3 > 0) * 1.0 for y in LABELS]
    np.testing.assert_array_equal(
        weights_of(esn)["U"], weights_of(classifier(**FIXED).fit(X, LABELS, sample_weight=w))["U"]
    )


def test_sequences_without_a_label_are_left_out():
    marked = np.where(np.arange(40) % 4 == 0, -1, RISING)
    known = np.flatnonzero(marked >= 0)
    how = {"hidden_units": 10, "standardize": False}  # inputs are standardised over series without a label, too
    esn = SeriesClassifier(ignore_label=-1, **how).fit(RISING_X, marked)
    close(esn, SeriesClassifier(**how).fit([RISING_X[i] for i in known], RISING[known]))
    assert esn.classes_.tolist() == [0, 1]
    assert esn.score(RISING_X, marked) == esn.score([RISING_X[i] for i in known], RISING[known])
    values = SeriesRegressor(**how).fit(RISING_X, np.where(marked < 0, np.nan, RISING))
    close(values, SeriesRegressor(**how).fit([RISING_X[i] for i in known], RISING[known].astype(float)))


def test_targets_that_are_all_missing_are_refused():
    with pytest.raises(ValueError, match=r"y holds no targets: every entry is ignore_label='low'"):
        classifier(**FIXED, ignore_label="low").fit(X, [np.full(len(x), "low") for x in X])
    with pytest.raises(ValueError, match="y holds no targets: every entry is NaN"):
        ESNRegressor(**grouped(FIXED)).fit(X, [np.full(len(x), np.nan) for x in X])
    with pytest.raises(ValueError, match="no target counts after the washout"):
        classifier(**FIXED, washout=3).fit(X, LABELS, sample_weight=[(np.arange(len(x)) < 3) * 1.0 for x in X])
    with pytest.raises(ValueError, match="sample_weight is zero wherever y holds a target"):
        ESNRegressor(**grouped(FIXED)).fit(X, [VALUES[0] * np.nan, *VALUES[1:]], sample_weight=[1.0] + [0.0] * 11)


@pytest.mark.parametrize("kind", [ESNClassifier, ESNRegressor])
def test_a_missing_target_is_fed_back_as_zeros(kind):
    """The rows of X_fb behind a missing target are 0: for values, their mean."""
    y = LABELS if kind is ESNClassifier else VALUES
    gone = [np.arange(len(x)) % 4 == 1 for x in X]
    if kind is ESNClassifier:
        marked = [np.where(g, "?", v) for g, v in zip(gone, y, strict=True)]
        esn = kind(feedback=True, readout="ridge", ignore_label="?", **grouped(FIXED)).fit(X, marked)
        rows = [np.eye(2)[(v == "low").astype(int)] * ~g[:, None] for g, v in zip(gone, y, strict=True)]
    else:
        marked = [np.where(g[:, None], np.nan, v) for g, v in zip(gone, y, strict=True)]
        esn = kind(feedback=True, **grouped(FIXED)).fit(X, marked)
        scaled = [(v - esn.target_mean_) / esn.target_scale_ for v in y]
        rows = [np.where(g[:, None], 0.0, v) for g, v in zip(gone, scaled, strict=True)]
    H = [harvest(esn.reservoir_, x, t) for x, t in zip(X, rows, strict=True)]
    H_c = np.vstack([np.hstack([h, x, np.ones((len(x), 1))])[~g] for h, x, g in zip(H, X, gone, strict=True)])
    T = np.vstack([t[~g] for t, g in zip(rows, gone, strict=True)])
    penalty = np.diag(np.append(np.full(H_c.shape[1] - 1, 1e-3), 0.0))
    np.testing.assert_allclose(weights_of(esn)["U"], np.linalg.solve(H_c.T @ H_c + penalty, H_c.T @ T), rtol=1e-6)


def test_balanced_classes_weigh_as_scikit_learn_says():
    joined = np.concatenate(LABELS)
    weights = compute_class_weight("balanced", classes=np.unique(joined), y=joined)
    by_hand = [np.where(y == "high", *weights) for y in LABELS]
    found = classifier(**FIXED, class_weight="balanced").fit(X, LABELS)
    close(found, classifier(**FIXED).fit(X, LABELS, sample_weight=by_hand))
    given = dict(zip(["high", "low"], weights, strict=True))
    np.testing.assert_array_equal(
        weights_of(classifier(**FIXED, class_weight=given).fit(X, LABELS))["U"], weights_of(found)["U"]
    )
    # ignored labels are not counted, and a class without a weight weighs 1
    marked = [np.where(np.arange(len(y)) < 4, "?", y) for y in LABELS]
    known = np.concatenate([y[4:] for y in LABELS])
    weights = compute_class_weight("balanced", classes=np.unique(known), y=known)
    by_hand = [np.where(np.arange(len(y)) < 4, 0, np.where(y == "high", *weights)) for y in LABELS]
    found = classifier(**FIXED, class_weight="balanced", ignore_label="?").fit(X, marked)
    close(found, classifier(**FIXED).fit(X, LABELS, sample_weight=by_hand))
    one = classifier(**FIXED, class_weight={"low": 3}).fit(X, LABELS)
    close(one, classifier(**FIXED).fit(X, LABELS, sample_weight=[np.where(y == "low", 3.0, 1.0) for y in LABELS]))


def test_unknown_classes_are_refused():
    with pytest.raises(ValueError, match=r"class_weight names \['middle'\], which y does not hold; expected some of"):
        classifier(**FIXED, class_weight={"middle": 2.0}).fit(X, LABELS)


def rare(seed, sequences=30):
    """Return sequences in which about 2 % of the labels are 1, not quite visible in the inputs."""
    rng = np.random.default_rng([9, seed])
    X = [rng.normal(size=(100, 2)) for _ in range(sequences)]
    y = [(np.roll(x[:, 0], 1) + 0.5 * rng.normal(size=100) > 2.3).astype(int) for x in X]
    return X, y


@pytest.mark.parametrize("readout", ["ridge", "softmax"])
def test_balanced_classes_are_found_where_positives_are_rare(readout):
    (train, y), (test, true) = rare(0), rare(1)
    true = np.concatenate(true)
    assert 0.01 < true.mean() < 0.03
    how = {**toys.FAST, "readout": readout, "refine_epochs": 1}
    with pytest.warns(InputWarning, match="Set class_weight='balanced'"):
        plain = np.concatenate(ESNClassifier(**grouped(how)).fit(train, y).predict(test))
    balanced = np.concatenate(ESNClassifier(class_weight="balanced", **grouped(how)).fit(train, y).predict(test))
    assert recall_score(true, balanced) > recall_score(true, plain) + 0.2
    assert balanced_accuracy_score(true, balanced) > balanced_accuracy_score(true, plain) + 0.1


@pytest.mark.parametrize("kind", ["ridge", "values"])
def test_added_sequences_keep_their_weights(kind):
    w = [np.arange(len(x)) % 3.0 for x in X]
    y, make = (VALUES, ESNRegressor) if kind == "values" else (LABELS, classifier)
    extra = {"class_weight": {"low": 2.0}} if kind == "ridge" else {}
    at_once = make(**grouped(FIXED, extra)).fit(X, y, sample_weight=w)
    esn = make(**grouped(FIXED, extra))
    for part in (slice(0, 5), slice(5, 12)):
        esn.partial_fit(X[part], y[part], sample_weight=w[part])
    np.testing.assert_allclose(
        *(np.asarray(e.predict(X[0]) if kind == "values" else e.decision_function(X[0])) for e in (esn, at_once)),
        rtol=1e-7,
        atol=1e-9,
    )


def test_balanced_classes_need_all_sequences_at_once():
    with pytest.raises(ValueError, match=r"partial_fit never sees all of them. Give the weights as a dict"):
        classifier(**FIXED, class_weight="balanced").partial_fit(X, LABELS)


def test_validation_data_may_have_weights():
    rows = []
    for validation in ((X[8:], LABELS[8:]), (X[8:], LABELS[8:], [1.0, 0.0, 0.0, 0.0]), (X[8:9], LABELS[8:9])):
        esn = classifier(**{**LEARNED, "epochs": 2}).fit(X[:8], LABELS[:8], validation=validation)
        rows.append([row["valid_error"] for row in esn.history_])
    assert rows[1] == rows[2] != rows[0]
    with pytest.raises(ValueError, match="validation: no target of it counts"):
        classifier(**FIXED, washout=3).fit(
            X[:8], LABELS[:8], validation=(X[8:9], LABELS[8:9], [(np.arange(len(X[8])) < 3) * 1.0])
        )


def test_scores_are_weighted():
    esn = classifier(**FIXED).fit(X, LABELS)
    right = [esn.predict(x) == y for x, y in zip(X, LABELS, strict=True)]
    w = [np.arange(len(x)) % 5.0 for x in X]
    expected = np.average(np.concatenate(right), weights=np.concatenate(w))
    assert esn.score(X, LABELS, sample_weight=w) == pytest.approx(expected)


def test_weights_that_add_up_to_1_are_warned_of():
    n = sum(map(len, X))
    with pytest.warns(InputWarning, match="sample_weight adds up to 1 for"):
        classifier(**FIXED).fit(X, LABELS, sample_weight=[np.full(len(x), 1 / n) for x in X])


MINI = {
    "mini-batches": {},
    "held out": {"validation_fraction": 0.25, "refine_epochs": 1},
    "full batch": {"batch_size": None, "readout": "ridge", "case": 1},
    "large": {"validation_fraction": 0.25, "readout": "ridge"},
}


@pytest.mark.parametrize("kind", MINI)
def test_a_resumed_fit_with_weights_ends_in_the_same_bits(kind, tmp_path, monkeypatch):
    if kind == "large":
        monkeypatch.setattr(solver, "MIN_ITERATIVE_UNITS", 15)
    how = {**toys.FAST, "epochs": 4, "ignore_label": "?", "class_weight": {"low": 2.0}, **MINI[kind]}
    marked = [np.where(np.arange(len(y)) % 5 == 2, "?", y) for y in LABELS]
    w = np.arange(1, 13) % 4
    whole = ESNClassifier(**grouped(how)).fit(X, marked, sample_weight=w)
    with pytest.raises(KeyboardInterrupt):
        ESNClassifier(**grouped(how)).fit(
            X, marked, sample_weight=w, checkpoint=tmp_path / "c", callback=toys.interrupt_at(1)
        )
    resumed = ESNClassifier(**grouped(how)).fit(X, marked, sample_weight=w, checkpoint=tmp_path / "c")
    for name, value in weights_of(whole).items():
        np.testing.assert_array_equal(weights_of(resumed)[name], value)


@pytest.mark.parametrize("other", [None, np.arange(2, 14) % 4])
def test_a_fit_does_not_resume_from_other_weights(other, tmp_path):
    how = {**toys.FAST, "readout": "ridge"}
    w = np.arange(1, 13) % 4
    with pytest.raises(KeyboardInterrupt):
        ESNClassifier(**grouped(how)).fit(
            X, LABELS, sample_weight=w, checkpoint=tmp_path / "c", callback=toys.interrupt_at(1)
        )
    with pytest.raises(CheckpointError, match="data"):
        ESNClassifier(**grouped(how)).fit(X, LABELS, sample_weight=other, checkpoint=tmp_path / "c")


@pytest.mark.parametrize(
    ("settings", "y"),
    [
        ({"class_weight": {0: 2.0, 1: 0.5}, "ignore_label": -1}, RISING),
        ({"class_weight": "balanced", "ignore_label": float("nan")}, RISING),
        ({"class_weight": {"a": 2.0}, "ignore_label": "?"}, np.where(RISING, "a", "b")),
    ],
)
def test_the_settings_are_in_the_model_file(settings, y, tmp_path):
    esn = SeriesClassifier(10, **settings).fit(RISING_X, y)
    esn.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(RISING_X), esn.predict(RISING_X))
    assert loaded.class_weight == esn.class_weight
    assert json.dumps(loaded.ignore_label) == json.dumps(esn.ignore_label)


def test_the_default_fit_has_missing_targets_and_weights_too():
    marked = [np.where(np.arange(len(y)) % 3 == 0, "?", y) for y in LABELS]
    esn = ESNClassifier(40, epochs=3, ignore_label="?", class_weight="balanced").fit(X, marked)
    assert esn.score(X, marked) > 0.7
    long = np.concatenate([np.concatenate(VALUES)[:, 0]] * 2)
    long[::7] = np.nan
    one = ESNRegressor(30, epochs=2).fit(np.concatenate(X * 2), long)
    assert np.isfinite(one.predict(X[0])).all()


def test_a_series_may_end_without_a_target():
    """What follows the training series is predicted from its last state, with zeros fed back."""
    series, values = np.concatenate(X), np.concatenate(VALUES)[:, 0].copy()
    values[-3:] = np.nan
    esn = ESNRegressor(feedback=True, **grouped(FIXED)).fit(series, values)
    assert np.isfinite(esn.predict(X[0])).all()


# What fit and predict accept.


SEQUENCES, Y = toys.labels(sequences=6)


def fit(X=SEQUENCES, y=Y, **settings):
    how = {k: settings.pop(k) for k in ("lengths", "validation") if k in settings}
    return ESNClassifier(**grouped({**toys.FAST, **settings})).fit(X, y, **how)


@pytest.fixture(scope="module")
def fitted():
    return fit()


def test_the_washout_limits_lengths_at_predict_only_where_whole_series_are_answered():
    esn = fit(washout=5)
    assert esn.predict(SEQUENCES[0][:3]).shape == (3,)
    whole = SeriesClassifier(10, washout=5).fit(SEQUENCES, ["a", "b"] * 3)
    with pytest.raises(ValueError, match=r"washout=5, but sequence 0 has 3 steps"):
        whole.predict([SEQUENCES[0][:3]])


def test_another_number_of_features_is_refused_at_predict(fitted):
    with pytest.raises(ValueError, match=r"X has 3 features, but ESNClassifier is expecting 2 features"):
        fitted.predict(np.ones((5, 3)))


def test_predict_score_and_save_need_a_fit():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ESNClassifier().predict(SEQUENCES)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ESNRegressor().score(SEQUENCES, Y)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ESNClassifier().save("nowhere")


def test_validation_labels_that_the_fit_does_not_know_are_refused():
    with pytest.raises(ValueError, match=r"labels that were not there when fitting: \['middle'\]"):
        fit(validation=(SEQUENCES, [np.where(y == "low", "middle", y) for y in Y]))


def test_validation_targets_of_another_kind_are_refused():
    with pytest.raises(ValueError, match=r"validation: its y must be of the same kind as y"):
        fit(validation=(SEQUENCES, ["low"] * 6))


def test_validation_values_of_another_width_are_refused():
    esn = ESNRegressor(**grouped(toys.FAST))
    Y2 = toys.echoes(sequences=6)[1]
    with pytest.raises(ValueError, match=r"y has 1 .*expected 2"):
        esn.fit(
            [x[:10] for x in SEQUENCES],
            [y[:10] for y in Y2],
            validation=([x[:10] for x in SEQUENCES], [y[:10, :1] for y in Y2]),
        )


UNUSUAL = {
    "read-only": lambda x: (x.setflags(write=False), x)[1],
    "strided": lambda x: np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda x: x[::-1].copy()[::-1],
    "Fortran": np.asfortranarray,
    "big-endian": lambda x: x.astype(">f8"),
    "nested lists": lambda x: x.tolist(),
    "data frame": lambda x: pd.DataFrame(x),
    "objects that are numbers": lambda x: x.astype(object),
}


@pytest.mark.parametrize("kind", UNUSUAL)
def test_unusual_arrays_give_the_same_fit_and_are_left_alone(kind, fitted):
    unusual = [UNUSUAL[kind](x.copy()) for x in SEQUENCES]
    before = [np.array(x, dtype=float) for x in unusual]
    other = fit(unusual, Y)
    np.testing.assert_array_equal(other.network_.readout.U, fitted.network_.readout.U)
    for a, b in zip(other.predict(unusual), fitted.predict(SEQUENCES), strict=True):
        np.testing.assert_array_equal(a, b)
    for old, now in zip(before, unusual, strict=True):
        np.testing.assert_array_equal(old, np.array(now, dtype=float))


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "int64", "bool", "float16", ">i4", ">f4"])
def test_every_type_of_number_gives_the_same_fit(dtype):
    whole = [np.abs(3 * x).astype(np.uint8).astype(dtype) for x in SEQUENCES]
    a, b = fit(whole, Y), fit([x.astype(np.float64) for x in whole], Y)
    np.testing.assert_allclose(a.network_.readout.U, b.network_.readout.U, rtol=1e-9)


def test_predictions_come_in_the_form_of_the_input():
    stack = np.stack([x[:12] for x in SEQUENCES])
    labels = np.stack([y[:12] for y in Y])
    esn = fit(stack, labels)
    assert esn.predict(stack).shape == (6, 12)
    assert esn.predict_proba(stack).shape == (6, 12, 2)
    joined = esn.predict(np.concatenate(SEQUENCES), lengths=[len(x) for x in SEQUENCES])
    assert joined.shape == (sum(map(len, SEQUENCES)),)
    assert isinstance(esn.predict(SEQUENCES), list)
    assert isinstance(esn.predict(tuple(SEQUENCES)), list)
    assert esn.predict(SEQUENCES[0]).shape == (len(SEQUENCES[0]),)
    objects = np.empty(6, dtype=object)
    objects[:] = SEQUENCES
    for a, b in zip(esn.predict(objects), esn.predict(SEQUENCES), strict=True):
        np.testing.assert_array_equal(a, b)


def test_one_label_per_sequence_may_come_in_any_list():
    one_each = ["low", "high"] * 3
    for y in (
        one_each,
        tuple(one_each),
        np.array(one_each),
        pd.Series(one_each),
        np.array(one_each, dtype=object),
    ):
        esn = SeriesClassifier(10).fit(SEQUENCES, y)
        assert not esn.per_step_
        assert esn.predict(SEQUENCES).shape == (6,)
    joined = SeriesClassifier(10).fit(np.concatenate(SEQUENCES), one_each, lengths=[len(x) for x in SEQUENCES])
    np.testing.assert_array_equal(joined.predict(SEQUENCES), esn.predict(SEQUENCES))
