"""SeriesClassifier and SeriesRegressor: against slow statistics, what counts, forms of data, files, and refusals."""

from inspect import signature

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import echolearn
import reference as ref
import toys
from echolearn import ESNClassifier, ESNRegressor, FrameWise, SeriesClassifier, SeriesRegressor, runtime
from echolearn.exceptions import ExportError, InputWarning, PoorScoreWarning
from echolearn.execution.executor import Executor
from echolearn.export import plan_of
from echolearn.export.c.header import c_header
from echolearn.export.page.document import page_model
from echolearn.fitting import fit as fits
from reliability.exports import ALLOWED, Drawn, difference, in_c, in_numpy, in_onnx, in_onnx_steps

X, UP = toys.rising()
X_NEW, UP_NEW = toys.rising(seed=1)
WORDS = np.array(["down", "up"])[UP]
PAIRS, _ = toys.echoes(sequences=30)
VALUES = np.array([[x[:, 0].mean(), x[:, 1].std()] for x in PAIRS])
SETS = np.column_stack([VALUES[:, 0] > 0, VALUES[:, 1] > 1.0, PAIRS[0][0, 0] < [x[0, 0] for x in PAIRS]]).astype(int)
UNITS = 12
BOTH = pytest.mark.parametrize(
    ("kind", "y"), [(SeriesClassifier, WORDS), (SeriesRegressor, UP + 0.5)], ids=["labels", "values"]
)


def statistics(model, X):
    """Return what the readout of a fitted model sees: statistics of states, each by loops."""
    view, summary, r = model.network_.view, model.network_.view.summary, model.reservoir_
    w = {"W": r.W, "W_rec": r.W_rec.toarray(), "bias": r.bias, "W_fb": None, "leak": r.leak}
    rows = []
    for x in X:
        seen = ref.seen((x - model.input_mean_) / model.input_scale_, summary.delays)
        H = ref.states_both_ways(w, np.zeros(r.N, bool), seen, "tanh").T
        rows.append(ref.summarize(H, summary.thresholds, view.washout))
    return np.array(rows)


def by_hand(model, X):
    """Return the outputs of a fitted model."""
    U = model.network_.readout.U
    return statistics(model, X) @ U[:-1] + U[-1]


def assert_ridge_solution(model, y, weights):
    """Compare shares and outputs with those of four ridge regressions, each solved by its normal equations."""
    rows = statistics(model, PAIRS).reshape(len(PAIRS), -1, model.reservoir_.N)
    T = (y - model.target_mean_) / model.target_scale_
    shares, outputs = ref.mean_of_readouts(rows, T, weights, model.ridge_)
    np.testing.assert_allclose(model.network_.view.summary.shares, shares, atol=1e-6)
    np.testing.assert_allclose(by_hand(model, PAIRS), outputs, atol=1e-6)


# ---------------- Answers


@pytest.mark.parametrize("washout", [0, 3])
@pytest.mark.parametrize("readout", ["softmax", "ridge"])
def test_labels_are_those_of_the_statistics_by_hand(readout, washout):
    model = SeriesClassifier(UNITS, readout=readout, washout=washout, dtype="float64").fit(X, WORDS)
    Y = by_hand(model, X_NEW)
    np.testing.assert_allclose(model.decision_function(X_NEW), Y[:, 1] - Y[:, 0], atol=1e-9)
    np.testing.assert_array_equal(model.predict(X_NEW), model.classes_[Y.argmax(axis=1)])
    if readout == "softmax":
        E = np.exp(Y - Y.max(axis=1, keepdims=True))
        np.testing.assert_allclose(model.predict_proba(X_NEW), E / E.sum(axis=1, keepdims=True), atol=1e-9)
    assert model.score(X_NEW, np.array(["down", "up"])[UP_NEW]) > 0.9


@pytest.mark.parametrize("missing", ["error", "mean"])
def test_values_are_those_of_the_statistics_by_hand(missing):
    model = SeriesRegressor(UNITS, washout=2, dtype="float64", missing=missing).fit(PAIRS, VALUES)
    expected = by_hand(model, PAIRS) * model.target_scale_ + model.target_mean_
    np.testing.assert_allclose(model.predict(PAIRS), expected, atol=1e-9)
    one = SeriesRegressor(UNITS, dtype="float64").fit(PAIRS, VALUES[:, 0])
    assert one.predict(PAIRS).shape == (30,)
    np.testing.assert_allclose(
        one.predict(PAIRS), by_hand(one, PAIRS)[:, 0] * one.target_scale_ + one.target_mean_, atol=1e-9
    )


@pytest.mark.parametrize("washout", [0, 4])
def test_the_readout_is_the_ridge_solution_of_the_statistics(washout):
    model = SeriesRegressor(5, washout=washout, ridge=0.5, dtype="float64").fit(PAIRS, VALUES)
    assert model.ridge_ == pytest.approx(0.5)
    assert_ridge_solution(model, VALUES, np.ones(30))


def test_probabilities_are_rows_that_agree_with_the_answers():
    y = np.digitize([x.mean() for x in X], [-0.1, 0.1])
    model = SeriesClassifier(UNITS).fit(X, y)
    P = model.predict_proba(X_NEW)
    assert P.shape == (40, 3)
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X_NEW))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X_NEW)), P, atol=1e-15)
    D = model.decision_function(X_NEW)
    assert D.shape == (40, 3)
    np.testing.assert_array_equal(D.argmax(axis=1), P.argmax(axis=1))
    two = SeriesClassifier(UNITS).fit(X, WORDS)
    np.testing.assert_array_equal(two.classes_[(two.decision_function(X_NEW) > 0) * 1], two.predict(X_NEW))


def test_rows_of_labels():
    model = SeriesClassifier(UNITS).fit(PAIRS, SETS)
    found, P = model.predict(PAIRS), model.predict_proba(PAIRS)
    assert found.shape == P.shape == SETS.shape
    assert set(np.unique(found)) <= {0, 1}
    assert ((P > 0) & (P <= 1)).all()
    np.testing.assert_array_equal(found, P > 0.5)
    np.testing.assert_array_equal(found, model.decision_function(PAIRS) > 0)
    np.testing.assert_allclose(model.decision_function(PAIRS), by_hand(model, PAIRS) - 0.5, atol=1e-4)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(PAIRS, SETS) == pytest.approx((found == SETS).all(axis=1).mean())
    marked = SeriesClassifier(UNITS).fit(PAIRS, list(SETS[:, None]))  # a list of arrays (1, labels)
    np.testing.assert_array_equal(marked.predict_proba(PAIRS), P)


def test_scores_against_hand_counts():
    labels = SeriesClassifier(UNITS).fit(X, WORDS)
    weights = np.linspace(0, 2, 40)
    true = np.array(["down", "up"])[UP_NEW]
    assert labels.score(X_NEW, true) == accuracy_score(true, labels.predict(X_NEW))
    assert labels.score(X_NEW, true, sample_weight=weights) == pytest.approx(
        accuracy_score(true, labels.predict(X_NEW), sample_weight=weights)
    )
    values = SeriesRegressor(UNITS).fit(PAIRS, VALUES)
    assert values.score(PAIRS, VALUES) == pytest.approx(r2_score(VALUES, values.predict(PAIRS)))
    with pytest.warns(PoorScoreWarning):
        labels.score([*X_NEW, *X_NEW], np.tile(true[::-1], 2))


# ---------------- What counts


@BOTH
def test_series_of_weight_0_do_not_count(kind, y):
    """A weight of 0 as if the series were not there; the scale of the inputs is that of all series."""
    counts = np.arange(40) % 2
    weighted = kind(UNITS, ridge=1.0, dtype="float64").fit(X, y, sample_weight=counts)
    kept = np.flatnonzero(counts)
    scale = np.concatenate(X).mean(), np.concatenate(X).std()
    scaled, given = ([(x - scale[0]) / scale[1] for x in some] for some in (X, X_NEW))
    alone = kind(UNITS, ridge=1.0, dtype="float64", standardize=False).fit([scaled[i] for i in kept], y[kept])
    if kind is SeriesClassifier:
        np.testing.assert_allclose(weighted.predict_proba(X_NEW), alone.predict_proba(given), atol=1e-6)
    else:  # the scale of the targets is that of those which count
        np.testing.assert_allclose(weighted.predict(X_NEW), alone.predict(given), atol=1e-6)


def test_weights_enter_the_readout():
    weights = np.linspace(0.2, 3, 30)
    model = SeriesRegressor(5, ridge=0.5, dtype="float64").fit(PAIRS, VALUES, sample_weight=weights)
    assert_ridge_solution(model, VALUES, weights)
    plain = SeriesRegressor(5, ridge=0.5, dtype="float64").fit(PAIRS, VALUES)
    assert np.abs(plain.predict(PAIRS) - model.predict(PAIRS)).max() > 1e-3


def test_classes_may_weigh_more_than_others():
    rare = np.where(np.arange(40) < 4, "rare", "often")
    counts = {"rare": 40 / (2 * 4), "often": 40 / (2 * 36)}
    balanced, given, plain = (
        SeriesClassifier(UNITS, class_weight=weight).fit(X, rare) for weight in ("balanced", counts, None)
    )
    by_series = SeriesClassifier(UNITS).fit(X, rare, sample_weight=[counts[word] for word in rare])
    for other in (given, by_series):
        np.testing.assert_allclose(balanced.predict_proba(X_NEW), other.predict_proba(X_NEW), atol=1e-9)
    assert balanced.predict_proba(X_NEW)[:, 1].mean() > plain.predict_proba(X_NEW)[:, 1].mean() + 0.05


def test_ignored_labels_and_missing_values_are_no_targets():
    gone = np.arange(40) % 4 == 0
    ignoring = SeriesClassifier(UNITS, ignore_label="?").fit(X, np.where(gone, "?", WORDS))
    weighted = SeriesClassifier(UNITS).fit(X, WORDS, sample_weight=1.0 - gone)
    assert ignoring.classes_.tolist() == ["down", "up"]
    np.testing.assert_array_equal(ignoring.predict_proba(X_NEW), weighted.predict_proba(X_NEW))
    assert ignoring.score(X, np.where(gone, "?", WORDS)) == accuracy_score(WORDS[~gone], ignoring.predict(X)[~gone])
    there = np.arange(30) % 5 > 0
    lost = np.where(there[:, None], VALUES, np.nan)
    values = SeriesRegressor(UNITS).fit(PAIRS, lost)
    np.testing.assert_allclose(values.target_mean_, VALUES[there].mean(axis=0))
    assert values.score(PAIRS, lost) == pytest.approx(r2_score(VALUES[there], values.predict(PAIRS)[there]))
    assert_ridge_solution(SeriesRegressor(5, ridge=0.5, dtype="float64").fit(PAIRS, lost), VALUES, 1.0 * there)
    lost[::5, 1] = 0.0  # half of a row is known
    with pytest.warns(InputWarning, match="these rows are left out as a whole"):
        half = SeriesRegressor(UNITS).fit(PAIRS, lost)
    np.testing.assert_array_equal(half.network_.readout.U, values.network_.readout.U)


def test_steps_of_the_washout_do_not_count():
    """They leave states behind, of which 900 steps later nothing is left."""
    rng = np.random.default_rng(0)
    long = [np.vstack([rng.normal(size=(40, 1)), np.zeros((900, 1)), x]) for x in X[:8]]
    other = [np.vstack([rng.normal(size=(40, 1)), x[40:]]) for x in long]
    model = SeriesClassifier(UNITS, washout=940).fit(long, WORDS[:8])
    np.testing.assert_allclose(statistics(model, long), statistics(model, other), atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_scales_offsets_and_the_order_of_series_do_not_matter(seed):
    """Series of several channels and of unequal lengths, some with gaps."""
    rng = np.random.default_rng(seed)
    series = [rng.standard_normal((rng.integers(9, 30), 3)).cumsum(axis=0) for _ in range(24)]
    for x in series[::4]:
        x[rng.integers(1, len(x)), rng.integers(3)] = np.nan
    y = rng.permutation(np.arange(24) % 3)
    model = SeriesClassifier(6, dtype="float64", missing="carry", random_state=seed)
    P = clone(model).fit(series, y).predict_proba(series)
    scaled = [x * [1e-3, 1.0, 50.0] + [7.0, 0.0, -1e3] for x in series]
    np.testing.assert_allclose(clone(model).fit(scaled, y).predict_proba(scaled), P, atol=1e-6)
    order, uncalibrated = rng.permutation(24), clone(model).set_params(readout="ridge")
    P = clone(uncalibrated).fit(series, y).predict_proba(series)
    other = clone(uncalibrated).fit([series[i] for i in order], y[order])
    np.testing.assert_allclose(other.predict_proba(series), P, atol=1e-6)


def test_rounding_of_states_does_not_enter_the_answers():
    """Smooth series, whose changes are small, in float32: alone, in a batch, and with NumPy alone."""
    t = np.arange(200)
    smooth = [(np.sin(t / (9 + k % 2) + k) + 1e-3 * k)[:, None] for k in range(20)]
    model = SeriesClassifier(100).fit(smooth[:12], np.arange(12) % 2)
    P, light = model.predict_proba(smooth), runtime.Model(plan_of(model))
    np.testing.assert_allclose(np.concatenate([model.predict_proba([x]) for x in smooth]), P, atol=1e-5)
    np.testing.assert_allclose(light.predict_proba(smooth), P, atol=1e-5)


@pytest.mark.parametrize("missing", ["carry", "mean"])
def test_gaps_in_X(missing):
    gappy = [np.where((np.arange(len(x)) % 5 == 3)[:, None], np.nan, x) for x in X]
    model = SeriesClassifier(UNITS, missing=missing).fit(gappy, WORDS)
    assert model.score(gappy, WORDS) > 0.9
    filled = [np.where(np.isnan(x), np.nanmean(np.concatenate(gappy)), x) for x in gappy]
    same = np.allclose(model.predict_proba(filled), model.predict_proba(gappy), atol=1e-6)
    assert same == (missing == "mean")
    with pytest.raises(ValueError, match="Input sequence 0 contains NaN"):
        SeriesClassifier(UNITS).fit(gappy, WORDS)


# ---------------- Forms of data


@BOTH
def test_series_together_alone_and_joined_have_the_same_answers(kind, y):
    model = kind(UNITS, dtype="float64").fit(X, y)
    ask = model.predict if kind is SeriesRegressor else model.predict_proba
    together = ask(X_NEW)
    np.testing.assert_allclose(np.concatenate([ask([x]) for x in X_NEW]), together, atol=1e-12)
    np.testing.assert_allclose(np.concatenate([ask(x) for x in X_NEW]), together, atol=1e-12)  # one 2-D array
    lengths = [len(x) for x in X_NEW]
    np.testing.assert_allclose(ask(np.concatenate(X_NEW), lengths=lengths), together, atol=1e-12)
    joined = kind(UNITS, dtype="float64").fit(np.concatenate(X), y, lengths=[len(x) for x in X])
    np.testing.assert_array_equal(joined.network_.readout.U, model.network_.readout.U)


@BOTH
def test_layouts_of_equal_series(kind, y):
    cube = np.stack([x[:8] for x in X])
    listed = kind(UNITS).fit(list(cube), y)
    for given, layout in ((cube, "time_first"), (cube[:, :, 0], "rows"), ([x[:8, 0] for x in X], "rows")):
        model = kind(UNITS).fit(given, y)
        assert model.layout_ == layout
        np.testing.assert_array_equal(model.network_.readout.U, listed.network_.readout.U)
        np.testing.assert_array_equal(model.predict(given), listed.predict(cube))
    wide = np.repeat(cube, 3, axis=2).transpose(0, 2, 1)
    with pytest.raises(ValueError, match=r"3 steps with 8 features, or 8 steps with 3 channels\? Set layout="):
        kind(UNITS).fit(wide, y)
    assert kind(UNITS, layout="channels_first").fit(wide, y).n_features_in_ == 3


def test_names_of_columns():
    frames = [pd.DataFrame(x, columns=["u", "v"]) for x in PAIRS]
    panel = pd.concat(frames, keys=[f"s{k}" for k in range(30)], names=["series", "step"])
    targets = pd.DataFrame(VALUES, index=[f"s{k}" for k in range(30)], columns=["level", "spread"])
    values = SeriesRegressor(UNITS).fit(panel, targets)
    assert list(values.feature_names_in_) == ["u", "v"]
    found = values.predict(panel)
    assert list(found.columns) == ["level", "spread"]
    assert list(found.index) == list(targets.index)
    np.testing.assert_allclose(found.to_numpy(), SeriesRegressor(UNITS).fit(PAIRS, VALUES).predict(PAIRS), atol=1e-12)
    words = SeriesClassifier(UNITS).fit(panel, pd.Series(np.where(VALUES[:, 0] > 0, "high", "low"), targets.index))
    assert list(words.predict_proba(panel).columns) == ["high", "low"]
    with pytest.raises(ValueError, match="feature names should match"):
        values.predict(panel.rename(columns={"u": "w"}))
    assert not hasattr(SeriesRegressor(UNITS).fit(PAIRS, VALUES), "feature_names_in_")


def test_states_are_those_of_all_units():
    model = SeriesClassifier(UNITS).fit(X, WORDS)
    assert [H.shape for H in model.states(X_NEW)] == [(len(x), 4 * UNITS) for x in X_NEW]
    assert model.reservoir_.N == 4 * UNITS
    assert len(model.history_) == 0
    with pytest.raises(ValueError, match="warm_up is for one answer per step"):
        model.states(X_NEW, warm_up=X)


# ---------------- Files and exports


MODELS = {
    "labels": lambda: SeriesClassifier(UNITS, washout=2).fit(X, WORDS),
    "float64": lambda: SeriesClassifier(UNITS, dtype="float64", readout="ridge").fit(X, UP),
    "label sets": lambda: SeriesClassifier(UNITS).fit(PAIRS, SETS),
    "values": lambda: SeriesRegressor(UNITS).fit(PAIRS, VALUES),
    "one value, gaps": lambda: SeriesRegressor(UNITS, missing="carry").fit(
        [np.where(x > 2, np.nan, x) for x in PAIRS], VALUES[:, 0]
    ),
    "weights of classes": lambda: SeriesClassifier(UNITS, class_weight={"up": 3.0}, random_state=7).fit(X, WORDS),
}


@pytest.mark.parametrize("name", MODELS)
def test_files_the_runtime_onnx_and_pages_agree(name, tmp_path):
    model = MODELS[name]()
    given = X_NEW if model.n_features_in_ == 1 else PAIRS
    path = tmp_path / "model.safetensors"
    model.save(path)
    again = echolearn.load(path)
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    light = runtime.load(path)
    for verb in ("predict", "predict_proba") if hasattr(model, "predict_proba") else ("predict",):
        np.testing.assert_array_equal(getattr(again, verb)(given), getattr(model, verb)(given))
        found = getattr(light, verb)(given)
        if found.dtype.kind == "f":
            np.testing.assert_allclose(found, getattr(model, verb)(given), rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(found, getattr(model, verb)(given))
    plan, x = plan_of(model), given[0].astype(np.float32)
    expected = np.reshape(
        (model.predict_proba if hasattr(model, "classes_") else model.predict)(x.astype(float)), (1, -1)
    )
    drawn = Drawn("series", {}, model, plan, x, expected)
    assert difference(drawn, in_numpy(drawn)) <= ALLOWED
    assert page_model("model", model).plan.summary.washout == model.washout  # tests/export/page runs it in a browser
    pytest.importorskip("onnxruntime")
    assert difference(drawn, in_onnx(drawn)) <= ALLOWED


def test_pipelines_are_saved_and_answer(tmp_path):
    model = make_pipeline(FrameWise(StandardScaler()), SeriesClassifier(UNITS)).fit(X, WORDS)
    echolearn.save(model, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(echolearn.load(tmp_path / "model.safetensors").predict(X_NEW), model.predict(X_NEW))
    np.testing.assert_array_equal(runtime.load(tmp_path / "model.safetensors").predict(X_NEW), model.predict(X_NEW))


@pytest.mark.parametrize("name", MODELS)
def test_streams_answer_after_every_frame_for_the_series_so_far(name):
    """The answers are those of `predict` for every prefix, of one stream, of several, and of a copy."""
    model = MODELS[name]()
    given = X_NEW if model.n_features_in_ == 1 else PAIRS
    ask = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    steps = min(map(len, given[:3]))
    one, several, frames = model.stream(), model.streams(3), np.stack([x[:steps] for x in given[:3]])
    for t in range(steps):
        single, many = one.step(frames[1, t]), several.step(frames[:, t])
        if t >= model.washout:
            expected = np.reshape(ask([x[: t + 1] for x in frames]), (3, -1))
            np.testing.assert_allclose(many, expected, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(single, many[1], rtol=1e-5, atol=1e-5)
    again, other = one.copy(), several.reset([1]).step(frames[:, 0])[1]
    np.testing.assert_allclose(model.stream().step(frames[1, 0]), other, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(again.step(frames[0, 0]), one.step(frames[0, 0]))


def test_a_stream_is_saved_and_resumed(tmp_path):
    model = SeriesClassifier(UNITS).fit(X, WORDS)
    stream = model.stream()
    for frame in X_NEW[0][:4]:
        stream.step(frame)
    stream.save(tmp_path / "state")
    model.stream().save(tmp_path / "start")
    assert (tmp_path / "state").stat().st_size == (tmp_path / "start").stat().st_size  # no more is kept than at first
    resumed = model.stream().resume(tmp_path / "state")
    np.testing.assert_array_equal(resumed.step(X_NEW[0][4]), stream.step(X_NEW[0][4]))


@pytest.mark.parametrize("name", MODELS)
def test_the_header_in_c_and_the_step_graph_of_onnx_answer_after_every_frame(name):
    model = MODELS[name]()
    x = (X_NEW if model.n_features_in_ == 1 else PAIRS)[0].astype(np.float32)
    ask = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    prefixes = [x[: t + 1].astype(float) for t in range(model.washout, len(x))]
    drawn = Drawn("series", {}, model, plan_of(model), x, np.reshape(ask(prefixes), (len(prefixes), -1)))
    (found,) = in_c([drawn])
    assert difference(drawn, found) <= ALLOWED
    assert difference(drawn, in_onnx_steps(drawn)) <= ALLOWED
    with pytest.raises(ExportError, match=f"{type(model).__name__} needs floating-point numbers in C; given numbers="):
        c_header(drawn.plan, numbers="int8")


@BOTH
def test_files_of_every_format(kind, y, tmp_path):
    model = kind(5).fit(X, y)
    names = ["model.h", "model.html", "model.onnx"]
    for name in names:
        model.export(tmp_path / name, **({"step": True} if name.endswith(".onnx") else {}))
    assert sorted(path.name for path in tmp_path.iterdir()) == names


# ---------------- One estimator, one job


@BOTH
def test_targets_per_step_name_the_class_for_them(kind, y):
    other = {SeriesClassifier: ESNClassifier, SeriesRegressor: ESNRegressor}[kind]
    per_step = [np.repeat(y[[k, k - 1]], [3, len(x) - 3]) for k, x in enumerate(X)]
    with pytest.raises(ValueError, match=rf"y has one target per step; {kind.__name__} .*Use {other.__name__} for"):
        kind(5).fit(X, per_step)
    with pytest.raises(ValueError, match=rf"each of the 40 sequences of X; {other.__name__} .*Use {kind.__name__} for"):
        other(5).fit(X, y)
    with pytest.raises(
        ValueError, match="y has one entry per step, but this network was fitted with one entry per seq"
    ):
        kind(5).fit(X, y).score(X, per_step)


@BOTH
def test_a_cluster_is_refused(kind, y, monkeypatch):
    monkeypatch.setattr(fits, "active_executor", lambda: Executor.__new__(Executor))
    with pytest.raises(ValueError, match=rf"{kind.__name__} is fitted in this process, not on a cluster: leave it out"):
        kind(5).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"hidden_units": 0}, "hidden_units=0; expected"),
        ({"washout": 8}, r"washout=8, but sequence \d+ has 8 steps"),
        ({"washout": "auto"}, "washout='auto'; expected a whole number >= 0"),
        ({"ridge": -1}, "ridge=-1; expected"),
        ({"readout": "tree"}, "readout='tree'; expected"),
        ({"missing": "drop"}, "missing='drop'; expected"),
        ({"layout": "wide"}, "layout='wide'; expected"),
        ({"dtype": "float16"}, "dtype='float16'; expected"),
        ({"class_weight": {"sideways": 2.0}}, "class_weight"),
        ({"standardize": 1}, "standardize=1; expected"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        SeriesClassifier(**{"hidden_units": 5, **settings}).fit(X, WORDS)


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        (lambda: SeriesClassifier(5).fit(X[:1], ["up"]), "y holds only one class, 'up'"),
        (lambda: SeriesClassifier(5).fit(X, WORDS[:-1]), "39"),
        (lambda: SeriesRegressor(5).fit(X, np.full(40, np.nan)), "y holds no targets: every entry is NaN"),
        (lambda: SeriesClassifier(5).fit(X, WORDS, sample_weight=np.zeros(40)), "zero everywhere"),
        (lambda: SeriesClassifier(5).fit(X, WORDS, sample_weight=[np.ones(len(x)) for x in X]), "expected one number"),
        (lambda: SeriesClassifier(5, class_weight="balanced").fit(PAIRS, SETS), "with rows of labels"),
        (lambda: SeriesClassifier(5).predict(X), "not fitted yet"),
    ],
)
def test_data_that_cannot_be_are_refused(fit, words):
    with pytest.raises(ValueError, match=words):
        fit()


def test_one_series_is_enough_for_a_value():
    assert SeriesRegressor(5).fit(X[:1], [3.0]).predict(X_NEW[:2]).tolist() == [3.0, 3.0]


def test_there_are_few_parameters():
    assert len(signature(SeriesClassifier).parameters) <= 12
    assert len(signature(SeriesRegressor).parameters) <= 9
    assert set(signature(SeriesRegressor).parameters) < set(signature(SeriesClassifier).parameters)


OTHER_SETTINGS = {
    "readout": "ridge",
    "ridge": [0.1, 1.0],
    "standardize": False,
    "missing": "carry",
    "washout": 3,
    "class_weight": "balanced",
    "ignore_label": "?",
    "layout": "time_first",
    "dtype": "float64",
    "random_state": 5,
    "verbose": 1,
}


@pytest.mark.parametrize("name", OTHER_SETTINGS)
def test_no_keyword_changes_the_model_that_is_fitted(name):
    """Each has the units, the statistics and the readout of the defaults: only their numbers differ."""
    assert set(OTHER_SETTINGS) | {"hidden_units"} == set(signature(SeriesClassifier).parameters)
    plain = SeriesClassifier(UNITS).fit(X, WORDS)
    other = SeriesClassifier(UNITS, **{name: OTHER_SETTINGS[name]}).fit(X, WORDS)
    assert other.reservoir_.N == plain.reservoir_.N == 4 * UNITS
    assert other.reservoir_.activation == "tanh"
    assert other.network_.view.summary.statistics == plain.network_.view.summary.statistics
    assert other.network_.readout.U.shape == plain.network_.readout.U.shape
    assert len(other.history_) == 0
    assert not other.per_step_
    assert other.score(X_NEW, np.array(["down", "up"])[UP_NEW]) > 0.85


# ---------------- scikit-learn


@BOTH
def test_clones_and_parameters(kind, y):
    model = kind(7, washout=2, random_state=3)
    assert clone(model).get_params() == model.get_params()
    first, second = (clone(model).fit(X, y).network_.readout.U for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert model.set_params(hidden_units=9).fit(X, y).reservoir_.N == 36
    assert f"{kind.__name__}(hidden_units=9, random_state=3, washout=2)" == repr(model)


def test_searches_and_cross_validation():
    search = GridSearchCV(SeriesClassifier(), {"hidden_units": [3, 10], "washout": [0, 2]}, cv=3, error_score="raise")
    assert search.fit(X, WORDS).best_score_ > 0.9
    assert search.predict(X_NEW).shape == (40,)
    assert cross_val_predict(SeriesClassifier(5), X, WORDS, cv=3, method="predict_proba").shape == (40, 2)
    scores = cross_val_score(SeriesRegressor(10), X, [x.mean() for x in X], cv=3, scoring="r2", error_score="raise")
    assert scores.mean() > 0.5


def test_the_view_in_a_notebook_says_what_was_learned():
    text = SeriesClassifier(5).fit(X, WORDS)._repr_html_()
    assert "the readout only" in text
    assert "20 hidden units" in text
