"""Both directions in time: states, gradients, pooling and estimators against loops, and where it is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
import toys
from echolearn import ESNClassifier, ESNRegressor, diagnostics, load
from echolearn.estimators.streams import Stream
from echolearn.gradients.loss import loss_and_gradients
from echolearn.readout import observation, softmax
from echolearn.readout.observation import Task, observe, stream_states
from echolearn.reservoir.combination import bidirectional_reservoir
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import pack, unpack
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.selection import Selection
from echolearn.states.harvesting import harvest
from echolearn.training.objectives.cross_entropy import entropy_gradient

X, VALUES = toys.echoes(sequences=8)
LABELS = toys.labels(sequences=8)[1]
ACTIVATIONS = ["sigmoid", "tanh", "relu", "identity"]
LOOKBACKS = [None, 1, 2, 3, 7]
POOLINGS = [None, "mean", "last", 3]


def two_ways(rng, N=6, **how):
    """Random weights and a mask of backward units that hear, and are heard by, none of the others."""
    w = ref.network(rng, N=N, **how)
    backward = rng.permutation(np.arange(N) % 2 == 0)
    w["W_rec"][backward[:, None] != backward] = 0
    return w, backward


lengths = st.lists(st.integers(1, 12), min_size=1, max_size=20)


@given(lengths)
def test_turning_a_batch_turns_every_sequence(lengths):
    M = [np.arange(n)[:, None] + 100.0 * i for i, n in enumerate(lengths)]
    batch = pack(M, np.float64)
    turn = batch.reversed_rows()
    for m, back in zip(M, unpack(batch, batch.X[turn]), strict=True):
        np.testing.assert_array_equal(back, m[::-1])
    np.testing.assert_array_equal(turn[turn], np.arange(batch.frames))


@given(lengths, st.sampled_from(POOLINGS), st.integers(0, 3), st.booleans())
def test_put_is_the_transpose_of_take(lengths, pooling, seed, mixed):
    """<take M, D> = <M, put D>, backward columns among them."""
    rng = np.random.default_rng(seed)
    batch = pack([np.empty((n, 1)) for n in lengths], np.float64)
    select = Selection(batch, washout=0, targets="all", lookback=None, pooling=pooling)
    backward = np.array([False, True, True, False]) if mixed else None
    M = rng.normal(size=(batch.frames, 4))
    taken = select.take(M, backward)
    D = rng.normal(size=taken.shape)
    np.testing.assert_allclose(np.vdot(taken, D), np.vdot(M, select.put(D, backward)), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("dtype", "close"), [("float64", 1e-12), ("float32", 1e-5)])
@pytest.mark.parametrize("sequences", [1, 4, 20])
def test_states_agree_with_loops(dtype, close, sequences):
    for seed, activation in enumerate(ACTIVATIONS):
        rng = np.random.default_rng([5, seed])
        w, backward = two_ways(rng)
        h0 = rng.normal(size=6) if seed % 2 else None
        X = [rng.normal(size=(n, len(w["W"]))) for n in rng.integers(1, 12, sequences)]
        r = Reservoir(**w, activation=activation, initial_state=h0, backward=backward)
        for x, H in zip(X, harvest(r, X, dtype=dtype), strict=True):
            slow = ref.states_both_ways(w, backward, x, activation, h0).T
            np.testing.assert_allclose(H, slow, rtol=0, atol=close * max(1, np.abs(slow).max()))


def test_one_long_sequence_in_pieces():
    """Long enough for both directions to be cut into pieces that run side by side."""
    halves = [Reservoir.random(2, 20, leak=0.5, input_scaling=0.5, random_state=seed) for seed in (0, 1)]
    x = np.random.default_rng(0).normal(size=(3000, 2))
    H = harvest(bidirectional_reservoir(*halves), x, dtype="float32")
    np.testing.assert_allclose(H[:, :20], harvest(halves[0], x), atol=1e-5)
    np.testing.assert_allclose(H[:, 20:], harvest(halves[1], x[::-1])[::-1], atol=1e-5)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from(ACTIVATIONS))
def test_turning_time_around_swaps_the_directions(seed, activation):
    rng = np.random.default_rng(seed)
    w, backward = two_ways(rng)
    x = rng.normal(size=(9, len(w["W"])))
    r, swapped = (Reservoir(**w, activation=activation, backward=mask) for mask in (backward, ~backward))
    np.testing.assert_allclose(harvest(swapped, x[::-1])[::-1], harvest(r, x), rtol=1e-9, atol=1e-12)


def test_forward_units_know_the_past_and_backward_ones_the_future():
    w, backward = two_ways(np.random.default_rng(0), n_in=2)
    r = Reservoir(**w, activation="tanh", backward=backward)
    x = np.random.default_rng(1).normal(size=(10, 2))
    other = x.copy()
    other[4] += 1
    H, moved = harvest(r, x), harvest(r, other)
    np.testing.assert_array_equal(H[:4, ~backward], moved[:4, ~backward])
    np.testing.assert_array_equal(H[5:, backward], moved[5:, backward])
    assert (H[4] != moved[4]).all()


def draw(seed):
    rng = np.random.default_rng([6, seed])
    pooling = [None, None, "mean", "last", 2, 4][rng.integers(6)]
    how = {
        "direct": bool(rng.integers(2)),
        "washout": int(rng.integers(0, 3)),
        "lookback": LOOKBACKS[seed % len(LOOKBACKS)],
        "targets": "all" if pooling else str(rng.choice(["all", "last"])),
        "pooling": pooling,
    }
    w, backward = two_ways(rng, N=int(rng.integers(2, 7)), bias=bool(rng.integers(2)))
    lengths = rng.integers(how["washout"] + 1, 15, rng.choice([1, 3, 12]))
    X = [rng.normal(size=(n, len(w["W"]))) for n in lengths]
    T = [rng.normal(size=(2,) if pooling else (n, 2)) for n in lengths]
    h0 = rng.normal(size=len(backward)) if rng.integers(2) else None
    return w, backward, X, T, ACTIVATIONS[seed % len(ACTIVATIONS)], h0, 10.0 ** rng.uniform(-4, 1), how


@pytest.mark.parametrize("tens", range(3))
def test_exact_gradient_is_the_derivative_of_the_loss(tens):
    for seed in range(10 * tens, 10 * tens + 10):
        w, backward, X, T, activation, h0, mu, how = draw(seed)
        r = Reservoir(**w, activation=activation, initial_state=h0, backward=backward)
        mine = loss_and_gradients(r, X, T, ridge=mu, **how)

        def witness(moved, X=X, T=T, a=activation, mu=mu, h0=h0, backward=backward, how=how):
            return ref.loss(moved, X, T, a, ridge_mu=mu, h0=h0, backward=backward, **how)

        assert mine.loss == pytest.approx(witness(w).real, rel=1e-9), (seed, how)
        for name, values in w.items():
            if values is None:
                continue
            derivative = getattr(mine, f"dE_d{name}")
            derivative = derivative.toarray() if name == "W_rec" else derivative
            true = np.zeros_like(values)
            for place in np.argwhere(values):
                true[tuple(place)] = ref.complex_step(w, name, tuple(place), witness)
            assert np.abs(derivative - true).max() <= 1e-8 * max(np.abs(true).max(), 1e-6), (seed, name, how)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_gradient_against_central_differences(pooling):
    """A second witness, that shares no loop with the first: the loss itself at moved weights."""
    rng = np.random.default_rng(3)
    w, backward = two_ways(rng, N=8, n_in=2)
    r = Reservoir(**w, activation="tanh", backward=backward)
    T = [v[0] for v in VALUES] if pooling else VALUES
    how = {"ridge": 0.1, "washout": 1, "pooling": pooling}
    found = loss_and_gradients(r, X, T, **how)
    for name, value in r.weights().items():
        way, h = rng.normal(size=value.shape), 1e-6
        if name == "leak":
            way, h = -np.abs(way), 1e-7 * value.min()  # never above 1
        up, down = (
            loss_and_gradients(r.with_weights(**{name: value + s * h * way}), X, T, **how).loss for s in (1, -1)
        )
        derivative = getattr(found, f"dE_d{name}")
        derivative = derivative.data if name == "W_rec" else derivative
        assert np.vdot(derivative, way) == pytest.approx((up - down) / (2 * h), rel=1e-5), name


@pytest.mark.parametrize("pooling", [None, "last"])
def test_refining_derivatives_against_central_differences(pooling):
    rng = np.random.default_rng(4)
    w, backward = two_ways(rng, N=7, n_in=2)
    r = Reservoir(**w, activation="tanh", backward=backward)
    y = [(v[:, 0] > 0).astype(int) for v in VALUES]
    data = Dataset(X, y if pooling is None else [labels[-1] for labels in y], 2, pooling is None, np.dtype(float))
    task, V = Task(pooling=pooling), rng.normal(size=(7 + 2 + 1, 2))
    found = entropy_gradient(r, task, V, data.batch(range(len(X))))
    for name in ("W", "W_rec", "bias"):
        value = r.weights()[name]
        way, h = rng.normal(size=value.shape), 1e-6
        up, down = (
            found.n * softmax.cross_entropy(r.with_weights(**{name: value + s * h * way}), data, task, V)
            for s in (1, -1)
        )
        assert np.vdot(getattr(found.gradients, name), way) == pytest.approx((up - down) / (2 * h), rel=1e-5), name


def answers(esn, x, pooling):
    """The fitted network by hand: states by loops, then H_c U."""
    r = esn.reservoir_
    w = {name: getattr(r, name) for name in ("W", "bias", "leak", "W_fb")} | {"W_rec": r.W_rec.toarray()}
    H_c, _ = ref.columns(
        w, [x], [np.zeros((len(x), 1)) if pooling is None else np.zeros(1)], r.activation, direct=esn.direct,
        washout=esn.washout if pooling else 0, lookback=None, targets="all", pooling=pooling, backward=r.backward,
    )  # fmt: skip
    return H_c.T @ esn.network_.readout.U[:-1] + esn.network_.readout.U[-1]


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("blocks", [1, 2])
def test_classifier_against_loops(pooling, blocks, tmp_path):
    y = LABELS if pooling is None else np.arange(len(X)) % 3
    how = {**toys.FAST, "bidirectional": True, "dtype": "float64", "washout": 1, "blocks": blocks}
    esn = ESNClassifier(**how, **({"pooling": pooling} if pooling else {})).fit(X, y)
    data = Dataset(X, (), None, pooling is None, np.dtype(float))
    for x, Y in zip(X, esn.network_.outputs(data), strict=True):
        np.testing.assert_allclose(Y, answers(esn, x, pooling), atol=1e-9)
    assert esn.reservoir_.backward.sum() == (7 if blocks == 1 else 4 + 3)
    assert esn.score(X, y) <= 1
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
        {"plasticity": 0.3, "direct": False},
    ],
)
def test_regressor_goes_with_other_settings(how):
    esn = ESNRegressor(**{**toys.FAST, **how}, dtype="float64", bidirectional=True).fit(X, VALUES)
    assert np.isfinite(np.concatenate(esn.predict(X))).all()
    assert len(esn.history_) == (0 if how.get("learn") == "none" else 3)
    r = esn.reservoir_
    assert not r.W_rec.toarray()[r.backward[:, None] != r.backward].any()


def test_what_comes_later_is_within_reach():
    """The sign of the input two steps ahead: out of reach for one direction, easy for both."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 1)) for n in rng.integers(20, 40, 60)]
    y = [np.concatenate([x[2:, 0] > 0, [False, False]]) for x in X]
    how = {"hidden_units": 30, "learn": "none", "readout": "ridge", "input_scaling": 0.5, "leak": (0.3, 1.0)}
    one, both = (ESNClassifier(**how, bidirectional=b).fit(X[:40], y[:40]).score(X[40:], y[40:]) for b in (False, True))
    assert one < 0.65
    assert both > 0.9


def test_partial_fit_adds_up():
    how = {**toys.FAST, "bidirectional": True, "learn": "none", "ridge": 1e-3, "dtype": "float64"}
    how["readout"] = "ridge"
    at_once = ESNClassifier(**how).fit(X, LABELS)
    parts = ESNClassifier(**how).partial_fit(X[:5], LABELS[:5]).partial_fit(X[5:], LABELS[5:])
    np.testing.assert_allclose(parts.network_.readout.U, at_once.network_.readout.U, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("blocks", [1, 2])
def test_going_on_from_a_checkpoint_ends_in_the_same_bits(blocks, tmp_path):
    how = {**toys.FAST, "bidirectional": True, "blocks": blocks, "refine_epochs": 2}
    straight = ESNClassifier(**how).fit(X, LABELS)

    def press(row):
        if row["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ESNClassifier(**how).fit(X, LABELS, checkpoint=tmp_path, callback=press)
    resumed = ESNClassifier(**how).fit(X, LABELS, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.network_.readout.U, straight.network_.readout.U)
    np.testing.assert_array_equal(resumed.recurrent_weights_.data, straight.recurrent_weights_.data)


def test_a_long_sequence_is_not_cut_for_the_readout(monkeypatch):
    """In one direction, pieces of a sequence follow each other; backward units would begin anew in each of them."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(300, 2)), rng.normal(size=300)
    how = {**toys.FAST, "bidirectional": True, "learn": "none", "ridge": 0.1, "dtype": "float64"}
    whole = ESNRegressor(**how).fit(x, t)
    expected = whole.predict(x)
    monkeypatch.setattr(observation, "FRAMES", 50)
    monkeypatch.setattr(observation, "NUMBERS", 50 * 15)
    np.testing.assert_allclose(
        ESNRegressor(**how).fit(x, t).network_.readout.U, whole.network_.readout.U, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(whole.predict(x), expected, rtol=1e-12)


@pytest.mark.parametrize("pooling", [None, "last"])
def test_large_networks_see_the_same_states(pooling, monkeypatch):
    monkeypatch.setattr(observation, "NUMBERS", 60)  # a few frames at once, were time to be cut
    w, backward = two_ways(np.random.default_rng(5), n_in=2)
    r = Reservoir(**w, activation="tanh", backward=backward)
    y = VALUES if pooling is None else [v[0] for v in VALUES]
    batch = Dataset(X, y, None, pooling is None, np.dtype(float)).batch(range(len(X)))
    task = Task(washout=1, pooling=pooling)
    H = np.vstack([part[0] for part in stream_states(r, task, batch)])
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
def test_settings_that_do_not_go_together_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        ESNClassifier(**{"hidden_units": 4, "bidirectional": True, **wrong}).fit(X, LABELS)


def test_what_has_no_end_yet_is_refused():
    esn = ESNRegressor(**toys.FAST, bidirectional=True).fit(X, VALUES)
    with pytest.raises(ValueError, match=r"bidirectional=True.*which a stream has not seen.*bidirectional=False"):
        esn.stream()
    with pytest.raises(ValueError, match="which a stream has not seen"):
        Stream(esn.reservoir_, esn.network_.readout.U)


def test_diagnostics_look_at_one_direction():
    r = ESNRegressor(**toys.FAST, bidirectional=True).fit(X, VALUES).reservoir_
    for look in (diagnostics.ranks, lambda r: diagnostics.lyapunov(r, X[0]), diagnostics.linearised):
        with pytest.raises(ValueError, match=r"diagnostics follow one direction.*reservoir.subreservoir"):
            look(r)
        look(r.subreservoir(r.backward))
