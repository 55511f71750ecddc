"""Estimators with both directions in time, against loops, and where they are refused."""

import numpy as np
import pytest

import reference as ref
import toys
from echolearn import ESNClassifier, ESNRegressor, diagnostics, load
from echolearn.readout import softmax
from echolearn.readout import view as views
from echolearn.readout.view import Task, observe, stream_observations
from echolearn.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from echolearn.streams import Stream
from echolearn.training.objectives.cross_entropy import entropy_gradient
from networks import two_directions
from toys import grouped

X, VALUES = toys.echoes(sequences=8)
LABELS = toys.labels(sequences=8)[1]


def test_refining_derivatives_against_central_differences():
    rng = np.random.default_rng(4)
    w, backward = two_directions(rng, N=7, n_in=2)
    r = Reservoir(**w, activation="tanh", backward=backward)
    y = [(v[:, 0] > 0).astype(int) for v in VALUES]
    data = Dataset(X, y, 2, True, np.dtype(float))
    task, V = Task(), rng.normal(size=(7 + 2 + 1, 2))
    found = entropy_gradient(r, task, V, data.batch(range(len(X))))
    for name in ("W", "W_rec", "bias"):
        value = r.weights()[name]
        way, h = rng.normal(size=value.shape), 1e-6
        up, down = (
            found.n * softmax.cross_entropy(r.with_weights(**{name: value + s * h * way}), data, task, V)
            for s in (1, -1)
        )
        assert np.vdot(getattr(found.gradients, name), way) == pytest.approx((up - down) / (2 * h), rel=1e-5), name


def answers(esn, x):
    """The fitted network by hand: states by loops, then H_c U."""
    r = esn.reservoir_
    w = {name: getattr(r, name) for name in ("W", "bias", "leak", "W_fb")} | {"W_rec": r.W_rec.toarray()}
    H_c, _ = ref.columns(
        w, [x], [np.zeros((len(x), 1))], r.activation, washout=0, lookback=None, targets="all", backward=r.backward,
        direct=esn.get_params()["learning__direct"],
    )  # fmt: skip
    return H_c.T @ esn.network_.readout.U[:-1] + esn.network_.readout.U[-1]


@pytest.mark.parametrize("ensemble", [1, 2])
def test_classifier_against_loops(ensemble, tmp_path):
    how = {**toys.FAST, "bidirectional": True, "dtype": "float64", "washout": 1, "ensemble": ensemble}
    esn = ESNClassifier(**grouped(how)).fit(X, LABELS)
    data = Dataset(X, (), None, True, np.dtype(float))
    for x, Y in zip(X, esn.network_.outputs(data), strict=True):
        np.testing.assert_allclose(Y, answers(esn, x), atol=1e-9)
    assert esn.reservoir_.backward.sum() == (7 if ensemble == 1 else 4 + 3)
    assert esn.score(X, LABELS) <= 1
    esn.save(tmp_path / "model.safetensors")
    back = load(tmp_path / "model.safetensors")
    assert back.bidirectional
    np.testing.assert_array_equal(back.reservoir_.backward, esn.reservoir_.backward)
    for a, b in zip(back.predict_proba(X), esn.predict_proba(X), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "how",
    [
        {"batch_size": None, "lookback": 3},
        {"optimizer": "fista", "batch_size": None, "step_size": 0.01, "case": 1},
        {"learn": "input", "renormalize": True, "topology": "ring"},
        {"learn": "none", "ridge": 0.1, "initial_state": np.linspace(-0.5, 0.5, 15)},
        {"activation": "sigmoid", "direct": False},
    ],
)
def test_a_regressor_works_with_other_settings(how):
    esn = ESNRegressor(dtype="float64", bidirectional=True, **grouped({**toys.FAST, **how})).fit(X, VALUES)
    assert np.isfinite(np.concatenate(esn.predict(X))).all()
    assert len(esn.history_) == (0 if how.get("learn") == "none" else 3)
    r = esn.reservoir_
    assert not r.W_rec.toarray()[r.backward[:, None] != r.backward].any()


@pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorScoreWarning")
def test_later_inputs_are_within_reach():
    """The sign of the input two steps ahead: out of reach for one direction, easy for both."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 1)) for n in rng.integers(20, 40, 60)]
    y = [np.concatenate([x[2:, 0] > 0, [False, False]]) for x in X]
    how = {"hidden_units": 30, "learn": "none", "readout": "ridge", "input_scaling": 0.5, "leak": (0.3, 1.0)}
    one, both = (
        ESNClassifier(bidirectional=b, **grouped(how)).fit(X[:40], y[:40]).score(X[40:], y[40:]) for b in (False, True)
    )
    assert one < 0.65
    assert both > 0.9


def test_partial_fit_adds_up():
    how = {**toys.FAST, "bidirectional": True, "learn": "none", "ridge": 1e-3, "dtype": "float64"}
    how |= {"readout": "ridge", "standardize": False}
    at_once = ESNClassifier(**grouped(how)).fit(X, LABELS)
    parts = ESNClassifier(**grouped(how)).partial_fit(X[:5], LABELS[:5]).partial_fit(X[5:], LABELS[5:])
    np.testing.assert_allclose(parts.network_.readout.U, at_once.network_.readout.U, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("ensemble", [1, 2])
def test_resuming_from_a_checkpoint_ends_in_the_same_bits(ensemble, tmp_path):
    how = {**toys.FAST, "bidirectional": True, "ensemble": ensemble, "refine_epochs": 2}
    straight = ESNClassifier(**grouped(how)).fit(X, LABELS)

    def press(row):
        if row["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ESNClassifier(**grouped(how)).fit(X, LABELS, checkpoint=tmp_path, callback=press)
    resumed = ESNClassifier(**grouped(how)).fit(X, LABELS, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.network_.readout.U, straight.network_.readout.U)
    np.testing.assert_array_equal(resumed.recurrent_weights_.data, straight.recurrent_weights_.data)


def test_a_long_sequence_is_not_cut_for_the_readout(monkeypatch):
    """In one direction, chunks of a sequence follow each other; backward units would begin anew in each of them."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(300, 2)), rng.normal(size=300)
    how = {**toys.FAST, "bidirectional": True, "learn": "none", "ridge": 0.1, "dtype": "float64"}
    whole = ESNRegressor(**grouped(how)).fit(x, t)
    expected = whole.predict(x)
    monkeypatch.setattr(views, "MAX_FRAMES_PER_PASS", 50)
    monkeypatch.setattr(views, "MAX_NUMBERS_PER_PASS", 50 * 15)
    np.testing.assert_allclose(
        ESNRegressor(**grouped(how)).fit(x, t).network_.readout.U, whole.network_.readout.U, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(whole.predict(x), expected, rtol=1e-12)


def test_large_networks_see_the_same_states(monkeypatch):
    monkeypatch.setattr(views, "MAX_NUMBERS_PER_PASS", 60)  # a few frames at once, were time to be cut
    w, backward = two_directions(np.random.default_rng(5), n_in=2)
    r = Reservoir(**w, activation="tanh", backward=backward)
    batch = Dataset(X, VALUES, None, True, np.dtype(float)).batch(range(len(X)))
    task = Task(washout=1)
    H = np.vstack([part.H for part in stream_observations(r, task, batch)])
    np.testing.assert_array_equal(H, observe(r, task, batch).H)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"hidden_units": 1}, r"hidden_units=1: there must be a unit for each direction"),
        ({"feedback": True}, r"feedback=True: what is fed back is not there yet"),
        ({"gradient": "printed", "leak": 1.0, "learn_leak": False}, r"gradient='printed'.*run one way"),
        ({"topology": np.eye(4)}, r"topology is a matrix.*Name a topology"),
        ({"bidirectional": 2}, r"bidirectional=2; expected True or False"),
    ],
)
def test_settings_that_exclude_each_other_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        ESNClassifier(**grouped({"hidden_units": 4, "bidirectional": True, **wrong})).fit(X, LABELS)


def test_streams_are_refused():
    esn = ESNRegressor(bidirectional=True, **grouped(toys.FAST)).fit(X, VALUES)
    with pytest.raises(ValueError, match=r"bidirectional=True.*which a stream has not seen.*bidirectional=False"):
        esn.stream()
    with pytest.raises(ValueError, match="which a stream has not seen"):
        Stream(esn.reservoir_, esn.network_.readout.U)


def test_diagnostics_look_at_one_direction():
    r = ESNRegressor(bidirectional=True, **grouped(toys.FAST)).fit(X, VALUES).reservoir_
    for look in (diagnostics.ranks, lambda r: diagnostics.lyapunov(r, X[0]), diagnostics.linearised):
        with pytest.raises(ValueError, match=r"diagnostics follow one direction.*reservoir.subreservoir"):
            look(r)
        look(r.subreservoir(r.backward))
