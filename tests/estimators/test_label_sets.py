"""Several labels at once: rows of 0 and 1, per step or per sequence."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import toys
from echolearn import ESNClassifier, load
from echolearn.estimators.codecs import LabelSetCodec

X, VALUES = toys.echoes(sequences=12)
SETS = [np.column_stack([v[:, 0] > 0, v[:, 1] > 0, x[:, 1] > 0.5]).astype(int) for x, v in zip(X, VALUES, strict=True)]
PER_SEQUENCE = np.array([s[-1] for s in SETS])


@pytest.fixture(scope="module", params=["per step", "per sequence"])
def fitted(request):
    y = SETS if request.param == "per step" else PER_SEQUENCE
    return ESNClassifier(**toys.FAST).fit(X, y), y


def test_predictions_are_rows_of_0_and_1(fitted):
    esn, y = fitted
    found, P = (np.concatenate(m) if esn.per_step_ else m for m in (esn.predict(X), esn.predict_proba(X)))
    true = np.concatenate(y) if esn.per_step_ else y
    assert found.shape == P.shape == true.shape
    assert set(np.unique(found)) <= {0, 1}
    np.testing.assert_array_equal(found, P > 0.5)
    assert ((P > 0) & (P <= 1)).all()
    assert esn.classes_.tolist() == [0, 1, 2]
    assert esn.score(X, y) == pytest.approx((found == true).all(axis=1).mean())
    D = esn.decision_function(X)
    np.testing.assert_array_equal((np.concatenate(D) if esn.per_step_ else D) > 0, found)


def test_each_label_is_learned():
    parts = [toys.echoes(seed=seed, sequences=80) for seed in (0, 1)]
    (train, y), (test, true) = (
        (X, [np.column_stack([v[:, 0] > 0, x[:, 1] > 0.5]) for x, v in zip(X, V, strict=True)]) for X, V in parts
    )
    esn = ESNClassifier(20, learn="none", input_scaling=0.3, leak=1.0).fit(train, y)
    found = np.vstack(esn.predict(test))
    assert ((found == np.vstack(true)).mean(axis=0) > 0.8).all()


def test_the_model_file_keeps_the_probabilities(fitted, tmp_path):
    esn, y = fitted
    esn.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    for one, other in zip(loaded.predict_proba(X), esn.predict_proba(X), strict=True):
        np.testing.assert_array_equal(one, other)
    assert loaded.score(X, y) == esn.score(X, y)


def test_a_stream_answers_with_rows():
    esn = ESNClassifier(**toys.FAST).fit(X, SETS)
    stream = esn.stream()
    np.testing.assert_array_equal(np.array([stream.predict(x) for x in X[0]]), esn.predict(X[0]))
    stream.reset()
    np.testing.assert_allclose(stream.predict_proba(X[0]), esn.predict_proba(X[0]), rtol=1e-3, atol=1e-6)


def test_slopes_are_those_of_logistic_regression():
    rng = np.random.default_rng(0)
    Y = rng.normal(0.5, 0.4, size=(400, 2))
    T = (Y + 0.3 * rng.normal(size=Y.shape) > 0.5).astype(float)
    w = rng.uniform(0.2, 2, 400)
    codec = LabelSetCodec(np.arange(2), np.ones(2)).calibrated(Y, T, w)
    for k in range(2):
        counts = w @ T[:, k], w @ (1 - T[:, k])
        soft = np.where(T[:, k] > 0, (counts[0] + 1) / (counts[0] + 2), 1 / (counts[1] + 2))
        peer = LogisticRegression(C=1e9, fit_intercept=False, tol=1e-10).fit(
            np.tile(Y[:, [k]] - 0.5, (2, 1)), np.repeat([1, 0], 400), sample_weight=np.append(w * soft, w * (1 - soft))
        )
        assert codec.slopes[k] == pytest.approx(peer.coef_[0, 0], rel=1e-4)


def test_ignored_rows_and_weights():
    gone = [np.arange(len(x)) % 3 == 0 for x in X]
    marked = [np.where(g[:, None], -1, s) for g, s in zip(gone, SETS, strict=True)]
    ignoring = ESNClassifier(**toys.FAST, ignore_label=-1).fit(X, marked)
    weighted = ESNClassifier(**toys.FAST).fit(X, SETS, sample_weight=[1.0 - g for g in gone])
    np.testing.assert_array_equal(ignoring.predict_proba(X[0]), weighted.predict_proba(X[0]))
    assert ignoring.score(X, marked) == pytest.approx(weighted.score(X, SETS, sample_weight=[1.0 - g for g in gone]))


def test_rows_of_one_sequence_each_are_not_taken_for_steps():
    short = [np.arange(len(s)) < len(s) - 1 for s in SETS]
    with pytest.raises(ValueError, match=r"Give a row of 0 and 1 for each sequence.*shape \(1, labels\)"):
        ESNClassifier(**toys.FAST).fit(X, list(PER_SEQUENCE))
    with pytest.raises(ValueError, match=r"steps; .*Look whether y\[0\] belongs to this sequence"):
        ESNClassifier(**toys.FAST).fit(X, [s[keep, 0] for s, keep in zip(SETS, short, strict=True)])
    marked = ESNClassifier(**toys.FAST).fit(X, list(PER_SEQUENCE[:, None]))
    plain = ESNClassifier(**toys.FAST).fit(X, PER_SEQUENCE)
    np.testing.assert_array_equal(marked.predict_proba(X), plain.predict_proba(X))


def test_what_is_refused():
    esn = ESNClassifier(**toys.FAST).fit(X, SETS)
    with pytest.raises(ValueError, match=r"y has shape .*; expected rows of labels"):
        esn.score(X, [s[:, 0] for s in SETS])
    with pytest.raises(ValueError, match=r"class_weight='balanced' with rows of labels"):
        ESNClassifier(**toys.FAST, class_weight="balanced").fit(X, SETS)
    with pytest.raises(ValueError, match="every row of y is the same"):
        ESNClassifier(**toys.FAST).fit(X, [np.ones_like(s) for s in SETS])
    ridge = ESNClassifier(**toys.FAST, readout="ridge").fit(X, SETS)
    with pytest.raises(ValueError, match="expected rows of 3 labels"):
        ridge.partial_fit(X, [s[:, :2] for s in SETS])
    ridge.partial_fit(X, SETS)


def test_labels_of_the_washout_do_not_change_probabilities():
    how = {**toys.FAST, "learn": "none", "washout": 5}
    turned = [np.vstack([1 - s[:5], s[5:]]) for s in SETS]
    expected, found = (ESNClassifier(**how).fit(X, y).predict_proba(X) for y in (SETS, turned))
    np.testing.assert_allclose(np.concatenate(found), np.concatenate(expected), atol=1e-6)
