"""DeepESNClassifier and DeepESNRegressor: what they learn, their answers in every form, files, streams, more data."""

import inspect
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import echolearn
import reference.deep as ref
import toys
from deepnets import forward_pairs
from echolearn import DeepESNClassifier, DeepESNRegressor, ESNClassifier, runtime
from echolearn.cli.info import describe_model
from echolearn.diagnostics import diagnose
from echolearn.readout import LMS, RLS

pytestmark = pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorFitWarning")  # the networks are small

X, LABELS = toys.labels(sequences=12)
VALUES = toys.echoes(sequences=12)[1]
RISING_X, RISING = toys.rising(sequences=24)
BY_NATURE = "a state depends on the frames before it"
EXPECTED = {
    "check_methods_sample_order_invariance": BY_NATURE,
    "check_methods_subset_invariance": BY_NATURE,
    "check_sample_weight_equivalence_on_dense_data": BY_NATURE,
}


def classifier(**settings):
    return DeepESNClassifier(**{"units": 6, "layers": 2, "epochs": 3, **settings})


def regressor(**settings):
    return DeepESNRegressor(**{"units": 6, "layers": 2, "epochs": 3, **settings})


@pytest.fixture(scope="module")
def labels():
    return classifier().fit(X, LABELS)


@pytest.fixture(scope="module")
def values():
    return regressor().fit(X, VALUES)


@pytest.mark.filterwarnings("ignore:the means of the features")  # which are 100 in some checks
@pytest.mark.filterwarnings("ignore::echolearn.exceptions.InputWarning")
@parametrize_with_checks(
    [
        DeepESNClassifier(8, 2, epochs=40),
        DeepESNRegressor(8, 2),
        DeepESNClassifier(8, 2, epochs=20, readout="ridge"),
    ],
    expected_failed_checks=lambda _: EXPECTED,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ---------------------------------------------------------------- what is learned


def test_sharp_memory_is_learned():
    """Whether an input has the sign of the one three steps ago; by angles, not by leaks alone."""
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(60, 1)) for _ in range(40)]
    y = [x[:, 0] * np.roll(x[:, 0], 3) > 0 for x in given]
    found = {angle: DeepESNClassifier(16, 2, epochs=30, angle=angle).fit(given[:30], y[:30]) for angle in (0.0, np.pi)}
    scores = {angle: esn.score(given[30:], y[30:]) for angle, esn in found.items()}
    assert scores[np.pi] > 0.8
    assert scores[np.pi] > scores[0.0] + 0.1


def test_both_directions_see_what_comes():
    rng = np.random.default_rng(1)
    given = [rng.normal(size=(40, 1)) for _ in range(30)]
    ahead = [np.append(x[1:, 0], 0) > 0 for x in given]
    one, both = (
        DeepESNClassifier(16, 2, epochs=20, bidirectional=both).fit(given[:20], ahead[:20]) for both in (False, True)
    )
    with pytest.warns(echolearn.exceptions.PoorScoreWarning):
        assert one.score(given[20:], ahead[20:]) < 0.65
    assert both.score(given[20:], ahead[20:]) > 0.85


def test_one_label_or_value_per_sequence():
    esn = DeepESNClassifier(8, 2, epochs=20).fit(RISING_X[:16], RISING[:16])
    assert esn.score(RISING_X[16:], RISING[16:]) > 0.8
    assert not esn.per_step_
    answers = esn.predict(RISING_X)
    assert answers.shape == (24,)
    np.testing.assert_allclose(esn.predict_proba(RISING_X).sum(axis=1), 1, atol=1e-6)
    value = DeepESNRegressor(8, 2, epochs=10).fit(RISING_X, np.stack([RISING, 1 - RISING], axis=1).astype(float))
    assert value.predict(RISING_X).shape == (24, 2)
    assert value.score(RISING_X, np.stack([RISING, 1 - RISING], axis=1)) > 0.7
    with pytest.raises(ValueError, match="one entry per step, but this network was fitted with one entry per sequence"):
        esn.score(RISING_X, [np.full(len(x), k) for x, k in zip(RISING_X, RISING, strict=True)])


@pytest.mark.parametrize("readout", ["softmax", "ridge"])
def test_several_labels_at_once(readout):
    rows = [np.stack([v[:, 0] > 0, v[:, 1] > 0], axis=1).astype(int) for v in VALUES]
    esn = classifier(epochs=30, readout=readout).fit(X, rows)
    P = esn.predict_proba(X[0])
    assert P.shape == (len(X[0]), 2)
    assert ((P > 0) & (P < 1)).all()
    np.testing.assert_array_equal(esn.predict(X[0]), P > 0.5)
    assert not esn.network_.readout.softmax  # several labels are a ridge readout
    assert esn.score(X, rows) > 0.2


def test_outputs_are_those_of_the_equations(labels, values):
    for esn, y in ((labels, None), (values, VALUES)):
        stack, U = esn.network_.reservoir, esn.network_.readout.U
        x = (X[0] - esn.input_mean_) / esn.input_scale_
        ((q, H),) = ref.deep(stack.weights, [x], layers=2, forward_pairs=forward_pairs(stack))
        Y = q @ U[:-1] + U[-1]
        np.testing.assert_allclose(esn.states(X[0]), H, atol=1e-5)
        if y is None:
            P = np.exp(Y) / np.exp(Y).sum(axis=1, keepdims=True)
            np.testing.assert_allclose(esn.predict_proba(X[0]), P, atol=1e-5)
            np.testing.assert_array_equal(esn.predict(X[0]), esn.classes_[Y.argmax(axis=1)])
            np.testing.assert_allclose(esn.predict_log_proba(X[0]), np.log(P), atol=1e-4)
            np.testing.assert_allclose(esn.decision_function(X[0]), Y[:, 1] - Y[:, 0], atol=1e-5)
        else:
            np.testing.assert_allclose(esn.predict(X[0]), Y * esn.target_scale_ + esn.target_mean_, atol=1e-5)


def test_one_series_continues_where_it_ended():
    x, y = np.concatenate(X), np.concatenate(VALUES)
    esn = regressor().fit(x[:150], y[:150])
    whole = esn.predict(x[:150], warm_up="cold")
    np.testing.assert_allclose(esn.predict(x[:150]), whole, atol=1e-6)  # the series of the fit itself
    both = esn.predict(x, warm_up="cold")
    np.testing.assert_allclose(esn.predict(x[150:]), both[150:], atol=1e-5)
    np.testing.assert_allclose(esn.predict(x[150:], warm_up=x[:150]), both[150:], atol=1e-5)
    assert np.abs(esn.predict(x[150:], warm_up="cold") - both[150:]).max() > 1e-3
    np.testing.assert_allclose(esn.stream().predict(x[150:]), both[150:], atol=1e-5)


# ---------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("kind", [DeepESNClassifier, DeepESNRegressor])
def test_settings(kind):
    own = kind(10, 3, leak=(0.1, 0.2), learning={"step_size": 0.05})
    assert clone(own).get_params() == own.get_params()
    own.set_params(learning__step_size=0.1, learning__batch_size=2, units=12)
    assert own.learning == {"step_size": 0.1, "batch_size": 2}
    assert own.units == 12
    assert len(inspect.signature(kind).parameters) <= 25
    shared = set(inspect.signature(kind).parameters) & set(inspect.signature(ESNClassifier).parameters)
    assert {"ensemble", "bidirectional", "standardize", "missing", "ridge", "epochs", "learning", "dtype"} <= shared


def test_searches_and_scores():
    stack, y = np.stack([x[:12] for x in X]), np.stack([v[:12] for v in LABELS])
    grid = GridSearchCV(classifier(), {"learning__step_size": [1e-6, 0.05]}, cv=2, error_score="raise")
    with pytest.warns(echolearn.exceptions.PoorScoreWarning):
        grid.fit(stack, y)
    assert grid.best_params_ == {"learning__step_size": 0.05}
    assert cross_val_score(regressor(), stack, np.stack([v[:12] for v in VALUES]), cv=3).shape == (3,)


def test_views_of_one_layer_are_refused(values):
    for name in ("reservoir_", "input_weights_", "recurrent_weights_", "feedback_weights_"):
        with pytest.raises(AttributeError, match=r"has several layers, and no single reservoir; see network_\.stacks"):
            getattr(values, name)
    assert values.readout_weights_.shape == (6, 2)
    assert values.intercept_.shape == (2,)
    assert values.ridge_ > 0


def test_figures_and_findings(labels, values):
    pytest.importorskip("matplotlib")
    figure = values.plot(X)
    points = figure.axes[1].collections[0].get_offsets()
    weights = values.network_.reservoir.weights
    a = np.concatenate([1 / (1 + np.exp(-weights[f"{k}/alpha"])) for k in (1, 2)])
    theta = np.concatenate([weights[f"{k}/theta"] for k in (1, 2)])
    expected = np.concatenate([a * np.exp(1j * theta), a * np.exp(-1j * theta)])
    np.testing.assert_allclose(np.sort(np.hypot(*points.T)), np.sort(np.abs(expected)), rtol=1e-5)
    assert f"{a.max():.3f}" in figure.axes[1].get_title()
    assert len(labels.plot().axes) == 3
    for esn, y in ((labels, LABELS), (values, VALUES)):
        assert f" {sum(map(len, X))} " in diagnose(esn, X, y).summary


def test_what_was_learned_is_stated(tmp_path):
    fixed, learned = ("the readout only", "nothing but the readout"), ("all weights", "all weights")
    for epochs, (in_notebook, on_terminal) in ((0, fixed), (2, learned)):
        esn = classifier(epochs=epochs).fit(X, LABELS)
        assert in_notebook in esn._repr_html_()
        assert f"learned: {on_terminal};" in describe_model(esn, tmp_path)


@pytest.mark.parametrize(("make", "y"), [(classifier, LABELS), (regressor, VALUES)])
def test_progress_is_shown(make, y, capsys):
    make(verbose=2, validation_fraction=0.25).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["epoch 1/3", "epoch 2/3", "epoch 3/3"]
    assert all("error" in line and "valid" in line for line in lines)
    make(verbose=2, ensemble=2, epochs=2).fit(X, y)
    lines = sorted(line.split("  ")[0] for line in capsys.readouterr().err.splitlines())
    assert lines == ["epoch 1/2", "epoch 2/2", "network 1 of 2: done", "network 2 of 2: done"]  # epochs: of the first


# ---------------------------------------------------------------- more data


@pytest.mark.parametrize("cut", [1, 5, 11])
def test_partial_fit_of_values_is_the_readout_of_all(cut):
    esn = regressor(dtype="float64", ridge=0.1).partial_fit(X[:cut], VALUES[:cut])
    layers, mean = dict(esn.network_.reservoir.weights), esn.target_mean_
    one_by_one = regressor(dtype="float64", ridge=0.1).partial_fit(X[:cut], VALUES[:cut])
    esn.partial_fit(X[cut:], VALUES[cut:])
    for x, v in zip(X[cut:], VALUES[cut:], strict=True):
        one_by_one.partial_fit([x], [v])
    np.testing.assert_allclose(one_by_one.network_.readout.U, esn.network_.readout.U, atol=1e-9)
    F = np.concatenate([esn.network_.features([esn.inputs_.encode(x, "float64")], float)[0].q for x in X])
    F, T = np.hstack([F, np.ones((len(F), 1))]), (np.concatenate(VALUES) - mean) / esn.target_scale_
    penalty = 0.1 * np.diag([1.0] * 6 + [0.0])
    np.testing.assert_allclose(esn.network_.readout.U, np.linalg.solve(F.T @ F + penalty, F.T @ T), atol=1e-7)
    for name, value in esn.network_.reservoir.weights.items():
        np.testing.assert_array_equal(value, layers[name])
    np.testing.assert_array_equal(esn.target_mean_, mean)


def test_partial_fit_of_labels_with_weights_of_sequences_and_in_ensembles():
    how = {
        "readout": "ridge",
        "dtype": "float64",
        "ridge": 0.1,
        "class_weight": {"low": 0.5, "high": 2.0},
        "ensemble": 2,
    }
    first = [y.copy() for y in LABELS[:6]]
    esn = classifier(**how).partial_fit(X[:6], first, classes=["low", "high", "none"])
    assert esn.classes_.tolist() == ["high", "low", "none"]
    w = np.arange(1.0, 7.0)
    esn.partial_fit(X[6:], LABELS[6:], sample_weight=w)
    again = classifier(**how).partial_fit(X[:6], first, classes=["low", "high", "none"])
    repeated = [k for k in range(6) for _ in range(k + 1)]
    again.partial_fit([X[6 + k] for k in repeated], [LABELS[6 + k] for k in repeated])
    np.testing.assert_allclose(again.network_.readout.U, esn.network_.readout.U, atol=1e-8)
    with pytest.raises(ValueError, match="expected those of the first call"):
        esn.partial_fit(X, LABELS, classes=["a", "b"])
    whole = classifier(readout="ridge", dtype="float64", ridge=0.1).partial_fit(RISING_X[:12], RISING[:12])
    before = whole.network_.readout.U
    whole.partial_fit(RISING_X[12:], RISING[12:])
    assert whole.network_.readout.statistics.n == 24
    assert not np.array_equal(whole.network_.readout.U, before)
    with pytest.raises(ValueError, match="per sequence"):
        whole.partial_fit(RISING_X, [np.full(len(x), k) for x, k in zip(RISING_X, RISING, strict=True)])


def test_partial_fit_is_there_for_ridge_readouts_alone(labels):
    assert not hasattr(labels, "partial_fit")
    assert hasattr(classifier(readout="ridge"), "partial_fit")
    with pytest.raises(ValueError, match="partial_fit never sees all of them"):
        classifier(readout="ridge", class_weight="balanced").partial_fit(X, LABELS)


def test_sums_are_saved_on_request(values, tmp_path):
    values.save(tmp_path / "a")
    with pytest.raises(ValueError, match="no statistics of its fit to add to"):
        echolearn.load(tmp_path / "a").partial_fit(X, VALUES)
    values.save(tmp_path / "b", sums=True)
    loaded, own = echolearn.load(tmp_path / "b").partial_fit(X[:3], VALUES[:3]), regressor().fit(X, VALUES)
    np.testing.assert_allclose(
        loaded.network_.readout.U, own.partial_fit(X[:3], VALUES[:3]).network_.readout.U, atol=1e-9
    )


# ---------------------------------------------------------------- files, the runtime and streams

KINDS = {
    "labels": lambda: classifier().fit(X, LABELS),
    "ridge, float64": lambda: classifier(readout="ridge", dtype="float64").fit(X, LABELS),
    "values": lambda: regressor().fit(X, VALUES),
    "ensemble": lambda: regressor(ensemble=3, layers=1).fit(X, VALUES),
    "gaps": lambda: regressor(missing="carry").fit([np.where(x > 1.5, np.nan, x) for x in X], VALUES),
    "both directions": lambda: classifier(bidirectional=True).fit(X, LABELS),
    "of sequences": lambda: classifier().fit(RISING_X, np.where(RISING, "up", "down")),
    "label sets": lambda: classifier().fit(X, [(v > 0).astype(int) for v in VALUES]),
    "unscaled": lambda: regressor(standardize=False, leak=(0.2, 0.2), angle=0.0).fit(X, [v[:, 0] for v in VALUES]),
}
FORWARD = [name for name in KINDS if name not in ("both directions", "of sequences")]


def answers(esn, given, *, values):
    return esn.predict(given) if values else esn.predict_proba(given)


@pytest.mark.parametrize("kind", KINDS)
def test_files_and_the_runtime_answer_the_same(kind, tmp_path):
    esn, given = KINDS[kind](), RISING_X if kind == "of sequences" else X
    esn.save(tmp_path / "model.safetensors")
    loaded = echolearn.load(tmp_path / "model.safetensors")
    assert loaded.get_params() == esn.get_params()
    assert type(loaded) is type(esn)
    light = runtime.load(tmp_path / "model.safetensors")
    found = [answers(one, given, values=isinstance(esn, DeepESNRegressor)) for one in (esn, loaded, light)]
    for one, other, third in zip(*found, strict=True):
        np.testing.assert_array_equal(other, one)
        np.testing.assert_allclose(third, one, atol=2e-5 if esn.dtype == "float32" else 1e-9)
    assert [dict(row) for row in loaded.history_] == [dict(row) for row in esn.history_]
    loaded.save(tmp_path / "again.safetensors")
    again = echolearn.load(tmp_path / "again.safetensors")
    np.testing.assert_array_equal(again.network_.readout.U, esn.network_.readout.U)


@pytest.mark.parametrize("kind", FORWARD)
def test_streams_answer_as_predictions_do(kind, tmp_path):
    esn, x = KINDS[kind](), X[1]
    if kind == "gaps":
        x = np.where(np.arange(x.size).reshape(x.shape) % 5 == 4, np.nan, x)
    asked = partial(answers, values=isinstance(esn, DeepESNRegressor))
    expected, limit = np.asarray(asked(esn, x)), 2e-5 if esn.dtype == "float32" else 1e-9
    stream = esn.stream()
    found = np.concatenate([np.atleast_1d(asked(stream, x[:4])), [asked(stream, x[4])]])
    np.testing.assert_allclose(found, expected[:5], atol=limit)
    assert (stream.steps, len(stream.state)) == (5, esn.network_.N)
    stream.save(tmp_path / "state")
    rest = asked(stream, x[5:])
    np.testing.assert_allclose(rest, expected[5:], atol=limit)
    np.testing.assert_array_equal(asked(esn.stream().resume(tmp_path / "state"), x[5:]), rest)
    np.testing.assert_allclose(asked(stream.reset(), x), expected, atol=limit)
    np.testing.assert_allclose(asked(esn.stream(warm_up=x[:6]), x[6:]), expected[6:], atol=limit)
    assert len(asked(stream, x[:0])) == 0
    many = esn.streams(3)
    rows = np.array([many.step(np.stack([frame, 0.5 * frame, frame])) for frame in x])
    flat = expected.reshape(len(x), -1)
    np.testing.assert_allclose(rows[:, 0].reshape(len(x), -1), flat, atol=limit)
    np.testing.assert_array_equal(rows[:, 0], rows[:, 2])
    assert "after" in repr(stream)


def test_streams_are_refused_where_the_end_must_be_known():
    both, whole = KINDS["both directions"](), KINDS["of sequences"]()
    for esn, words in ((both, "bidirectional=True"), (whole, "one answer per sequence")):
        with pytest.raises(ValueError, match=words):
            esn.stream()
        with pytest.raises(ValueError, match="whole s"):
            esn.streams(2)
    with pytest.raises(ValueError, match="warm_up with bidirectional=True"):
        both.predict(X[0], warm_up=X[1])


def test_streams_refuse_what_they_cannot_take(values):
    stream = values.stream()
    with pytest.raises(ValueError, match="holds NaN or infinity"):
        stream.predict([np.nan, 0.0])
    with pytest.raises(ValueError, match=r"a frame has shape \(2,\)"):
        stream.predict([0.0])
    with pytest.raises(ValueError, match="expected 12 finite numbers, one per unit of all layers"):
        stream.reset(np.zeros(3))
    with pytest.raises(ValueError, match="does not learn"):
        stream.learn(X[0], VALUES[0])
    assert stream.steps == 0


def test_rls_ends_where_partial_fit_does():
    how = {"dtype": "float64", "ridge": 0.2}
    esn = regressor(**how).fit(X[:6], VALUES[:6])
    stream = esn.stream(online=RLS())
    for x, v in zip(X[6:], VALUES[6:], strict=True):
        stream.reset().learn(x, v)
    esn.partial_fit(X[6:], VALUES[6:])
    np.testing.assert_allclose(stream.readout_weights, esn.network_.readout.U, atol=1e-6)
    labelled = classifier(readout="ridge", **how).fit(X[:6], LABELS[:6])
    stream = labelled.stream(online=RLS())
    for x, y in zip(X[6:], LABELS[6:], strict=True):
        stream.reset().learn(x, y)
    labelled.partial_fit(X[6:], LABELS[6:])
    np.testing.assert_allclose(stream.readout_weights, labelled.network_.readout.U, atol=1e-6)


def test_a_softmax_readout_learns_by_lms_alone(labels):
    with pytest.raises(ValueError, match="RLS fits squared errors"):
        labels.stream(online=RLS())
    stream = labels.stream(online=LMS(0.3))
    before = stream.readout_weights
    wrong = np.where(np.asarray(labels.predict(X[0])) == "low", "high", "low")
    for _ in range(30):
        stream.reset().learn(X[0], wrong)
    assert (stream.reset().predict(X[0]) == wrong).mean() > 0.6
    np.testing.assert_array_equal(labels.network_.readout.U, before)  # the estimator is left as it was


def test_a_fit_leaves_its_arguments_alone():
    given, y = [x.copy() for x in X], [v.copy() for v in VALUES]
    classifier(augment=lambda x, rng: np.multiply(x, 2, out=x)).fit(given, LABELS)
    regressor().fit(given, y).predict(given)
    for a, b in zip((*given, *y), (*X, *VALUES), strict=True):
        np.testing.assert_array_equal(a, b)
