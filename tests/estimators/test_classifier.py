"""ESNClassifier: labels and probabilities, rows of labels, feedback, and the settings of the paper."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import reference as ref
import toys
from echolearn import ESNClassifier, load
from echolearn.fitting.codecs import LabelSetCodec
from echolearn.fitting.parameters import flat_settings
from echolearn.gradients import loss_and_gradients
from echolearn.states import harvest
from toys import grouped

X, LABELS = toys.labels(sequences=8)
VALUES = toys.echoes(sequences=8)[1]


@pytest.mark.parametrize("readout", ["softmax", "ridge"])
def test_probabilities(readout):
    esn = ESNClassifier(readout=readout, **grouped(toys.FAST)).fit(X, LABELS)
    for P, label, logs in zip(esn.predict_proba(X), esn.predict(X), esn.predict_log_proba(X), strict=True):
        np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
        assert (P >= 0).all()
        np.testing.assert_array_equal(esn.classes_[P.argmax(axis=1)], label)
        np.testing.assert_allclose(np.exp(logs), P, atol=1e-15)


@pytest.mark.parametrize(
    "names", [("low", "high"), (3, -7), (0.0, 1.0), (True, False), ("é", "日本")], ids=lambda n: str(n[0])
)
def test_kinds_of_labels(names):
    X, y = toys.labels(names=names, sequences=6)
    esn = ESNClassifier(**grouped(toys.FAST)).fit(X, y)
    np.testing.assert_array_equal(esn.classes_, np.unique(names))
    assert set(np.concatenate(esn.predict(X)).tolist()) <= set(names)
    assert esn.score(X, y) == np.mean(np.concatenate(esn.predict(X)) == np.concatenate(y))


def test_labels_of_mixed_types_are_named():
    y = [np.array(["a"] + [1] * (len(x) - 1), dtype=object) for x in X]
    with pytest.raises((ValueError, TypeError), match=r"types? .*int.*str|mixes labels"):
        ESNClassifier(**grouped(toys.FAST)).fit(X, y)


def test_more_than_two_classes_and_decision_function():
    y = [np.digitize(v[:, 0], [-0.5, 0.5]) for v in VALUES]
    esn = ESNClassifier(**grouped(toys.FAST)).fit(X, y)
    assert esn.decision_function(X)[0].shape == (len(X[0]), 3)
    np.testing.assert_array_equal(esn.decision_function(X)[0].argmax(axis=1), esn.predict(X)[0])
    two = ESNClassifier(**grouped(toys.FAST)).fit(X, LABELS)
    np.testing.assert_array_equal(two.classes_[(two.decision_function(X)[0] > 0) * 1], two.predict(X)[0])


def test_score_of_a_column_of_labels():
    whole, y = np.concatenate(X), np.concatenate(LABELS)
    esn = ESNClassifier(**grouped(toys.FAST)).fit(whole, y)
    assert esn.score(whole, y[:, None]) == esn.score(whole, y)


def test_classifier_feedback_feeds_back_probabilities():
    esn = ESNClassifier(feedback=True, dtype="float64", **grouped(toys.FAST)).fit(X, LABELS)
    r = esn.reservoir_
    w = {"W": r.W, "W_rec": r.W_rec.toarray(), "bias": r.bias, "W_fb": r.W_fb, "leak": r.leak}

    def softmax(y):
        e = np.exp(y - y.max())
        return e / e.sum()

    x = (X[0] - esn.input_mean_) / esn.input_scale_
    slow = ref.run_with_feedback(w, x, esn.network_.readout.U, "tanh", direct=True, feed_back=softmax)
    np.testing.assert_allclose(esn.predict_proba(X[0]), [softmax(y) for y in slow], atol=1e-9)


def test_feedback_helps_where_the_answer_depends_on_answers():
    """A switch that remembers: the label flips when the input spikes and stays otherwise."""
    rng = np.random.default_rng(0)
    X = [(rng.random((60, 1)) < 0.15) * 1.0 for _ in range(20)]
    y = [np.cumsum(x[:, 0]).astype(int) % 2 for x in X]
    how = {"input_scaling": 1.0, "feedback_scaling": 1.0, "leak": 1.0, "learn_leak": False}
    esn = ESNClassifier(30, feedback=True, epochs=20, **grouped(how)).fit(X, y)
    assert esn.score(X, y) > 0.75


def test_paper_settings_one_by_one():
    """What the paper says, what it leaves open and we chose (clip), and our defaults in everything else."""
    said = {"activation": "sigmoid", "spectral_radius": 3.9, "ridge": 1e-8, "step_size": 0.07, "optimizer": "fista"}
    said |= {"renormalize": True, "readout": "ridge", "lookback": 3, "epochs": 40, "batch_size": None}
    absent = {"leak": 1.0, "learn_leak": False, "bias_scaling": 0.0, "standardize": False}
    absent |= {"validation_fraction": 0.0, "patience": None}  # it trains for all its epochs, on all its data
    chosen = {"clip": 8.0}
    expected = {**flat_settings(ESNClassifier(12)), **said, **absent, **chosen}
    assert flat_settings(ESNClassifier.paper(12)) == expected
    changed = ESNClassifier.paper(12, learning={"clip": 1.0}, epochs=3, ridge=0.1)
    assert flat_settings(changed) == {**expected, "clip": 1.0, "epochs": 3, "ridge": 0.1}


@pytest.mark.parametrize(("units", "norm"), [(1, 8), (100, 8), (400, 16), (2_500, 40), (10_000, 80)])
def test_the_paper_clips_at_a_norm_that_grows_with_the_root_of_the_units(units, norm):
    """So that an epoch can move W, whose norm grows in the same way, by the same share in networks of any size."""
    assert ESNClassifier.paper(units).learning["clip"] == pytest.approx(norm)


def test_paper_settings():
    esn = ESNClassifier.paper(12, epochs=4)
    assert (esn.spectral_radius, esn.ridge, esn.readout) == (3.9, 1e-8, "ridge")
    assert esn.reservoir == {"activation": "sigmoid", "bias_scaling": 0.0}
    esn.fit(X, LABELS)
    radius = np.abs(np.linalg.eigvals(esn.recurrent_weights_.toarray())).max()
    assert radius == pytest.approx(3.9, rel=1e-9)
    assert ESNClassifier.paper(12, learn="none").learn == "none"
    errors = [row["error"] for row in esn.history_]
    assert errors[-1] < errors[0]


def test_paper_gradient_of_the_first_epoch():
    """One full-batch FISTA step of the estimator is W - alpha dE/dW of `loss_and_gradients`, clipped."""
    how = {"epochs": 1, "clip": 1.0, "dtype": "float64", "ridge": 0.1, "renormalize": False, "direct": False}
    esn = ESNClassifier.paper(8, **grouped(how)).fit(X, LABELS)
    start = ESNClassifier.paper(8, **grouped({**how, "learn": "none"})).fit(X, LABELS).reservoir_
    T = [(y[:, None] == esn.classes_).astype(float) for y in LABELS]
    # the estimator's readout has an intercept, which the bare function has as an input of ones
    ones = [np.ones((len(x), 1)) for x in X]
    H = harvest(start, X)
    H_c = np.vstack([np.hstack([h, o]) for h, o in zip(H, ones, strict=True)])
    penalty = np.sqrt(0.1) * np.eye(9)[:-1]
    U = np.linalg.lstsq(np.vstack([H_c, penalty]), np.vstack([np.vstack(T), np.zeros((8, 2))]), rcond=None)[0]
    b = U[-1]
    out = loss_and_gradients(start, X, [t - b for t in T], ridge=0.1, lookback=3, direct=False)
    np.testing.assert_allclose(out.readout, U[:-1], rtol=1e-6, atol=1e-9)  # with the intercept taken off
    g = out.dE_dW * min(1, 1 / np.linalg.norm(out.dE_dW))
    np.testing.assert_allclose(esn.input_weights_, start.W - 0.07 * g, rtol=1e-6, atol=1e-9)
    g = out.dE_dW_rec.data * min(1, 1 / np.linalg.norm(out.dE_dW_rec.data))
    np.testing.assert_allclose(esn.recurrent_weights_.data, start.W_rec.data - 0.07 * g, rtol=1e-6, atol=1e-9)


# Several labels at once.


SEQUENCES, ROWS_OF_VALUES = toys.echoes(sequences=12)
SETS = [
    np.column_stack([v[:, 0] > 0, v[:, 1] > 0, x[:, 1] > 0.5]).astype(int)
    for x, v in zip(SEQUENCES, ROWS_OF_VALUES, strict=True)
]


@pytest.fixture(scope="module")
def fitted():
    return ESNClassifier(**grouped(toys.FAST)).fit(SEQUENCES, SETS)


def test_predictions_are_rows_of_0_and_1(fitted):
    found, P, true = map(np.concatenate, (fitted.predict(SEQUENCES), fitted.predict_proba(SEQUENCES), SETS))
    assert found.shape == P.shape == true.shape
    assert set(np.unique(found)) <= {0, 1}
    np.testing.assert_array_equal(found, P > 0.5)
    assert ((P > 0) & (P <= 1)).all()
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert fitted.score(SEQUENCES, SETS) == pytest.approx((found == true).all(axis=1).mean())
    np.testing.assert_array_equal(np.concatenate(fitted.decision_function(SEQUENCES)) > 0, found)


def test_each_label_is_learned():
    parts = [toys.echoes(seed=seed, sequences=80) for seed in (0, 1)]
    (train, y), (test, true) = (
        (X, [np.column_stack([v[:, 0] > 0, x[:, 1] > 0.5]) for x, v in zip(X, V, strict=True)]) for X, V in parts
    )
    esn = ESNClassifier(20, learn="none", input_scaling=0.3, leak=1.0).fit(train, y)
    found = np.vstack(esn.predict(test))
    assert ((found == np.vstack(true)).mean(axis=0) > 0.8).all()


def test_the_model_file_keeps_the_probabilities(fitted, tmp_path):
    fitted.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    for one, other in zip(loaded.predict_proba(SEQUENCES), fitted.predict_proba(SEQUENCES), strict=True):
        np.testing.assert_array_equal(one, other)
    assert loaded.score(SEQUENCES, SETS) == fitted.score(SEQUENCES, SETS)


def test_a_stream_answers_with_rows():
    esn = ESNClassifier(**grouped(toys.FAST)).fit(SEQUENCES, SETS)
    stream = esn.stream()
    np.testing.assert_array_equal(np.array([stream.predict(x) for x in SEQUENCES[0]]), esn.predict(SEQUENCES[0]))
    stream.reset()
    np.testing.assert_allclose(
        stream.predict_proba(SEQUENCES[0]), esn.predict_proba(SEQUENCES[0]), rtol=1e-3, atol=1e-6
    )


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
    gone = [np.arange(len(x)) % 3 == 0 for x in SEQUENCES]
    marked = [np.where(g[:, None], -1, s) for g, s in zip(gone, SETS, strict=True)]
    ignoring = ESNClassifier(ignore_label=-1, **grouped(toys.FAST)).fit(SEQUENCES, marked)
    weighted = ESNClassifier(**grouped(toys.FAST)).fit(SEQUENCES, SETS, sample_weight=[1.0 - g for g in gone])
    np.testing.assert_array_equal(ignoring.predict_proba(SEQUENCES[0]), weighted.predict_proba(SEQUENCES[0]))
    assert ignoring.score(SEQUENCES, marked) == pytest.approx(
        weighted.score(SEQUENCES, SETS, sample_weight=[1.0 - g for g in gone])
    )


def test_labels_of_other_lengths_are_refused():
    short = [np.arange(len(s)) < len(s) - 1 for s in SETS]
    with pytest.raises(ValueError, match=r"steps; .*Check whether y\[0\] belongs to this sequence"):
        ESNClassifier(**grouped(toys.FAST)).fit(SEQUENCES, [s[keep, 0] for s, keep in zip(SETS, short, strict=True)])


def test_what_is_refused():
    esn = ESNClassifier(**grouped(toys.FAST)).fit(SEQUENCES, SETS)
    with pytest.raises(ValueError, match=r"y has shape .*; expected rows of labels"):
        esn.score(SEQUENCES, [s[:, 0] for s in SETS])
    with pytest.raises(ValueError, match=r"class_weight='balanced' with rows of labels"):
        ESNClassifier(class_weight="balanced", **grouped(toys.FAST)).fit(SEQUENCES, SETS)
    with pytest.raises(ValueError, match="every row of y is the same"):
        ESNClassifier(**grouped(toys.FAST)).fit(SEQUENCES, [np.ones_like(s) for s in SETS])
    ridge = ESNClassifier(readout="ridge", **grouped(toys.FAST)).fit(SEQUENCES, SETS)
    with pytest.raises(ValueError, match="expected rows of 3 labels"):
        ridge.partial_fit(SEQUENCES, [s[:, :2] for s in SETS])
    ridge.partial_fit(SEQUENCES, SETS)


def test_labels_of_the_washout_do_not_change_probabilities():
    how = {**toys.FAST, "learn": "none", "washout": 5}
    turned = [np.vstack([1 - s[:5], s[5:]]) for s in SETS]
    expected, found = (ESNClassifier(**grouped(how)).fit(SEQUENCES, y).predict_proba(SEQUENCES) for y in (SETS, turned))
    np.testing.assert_allclose(np.concatenate(found), np.concatenate(expected), atol=1e-6)
