"""Streams: frame by frame, in chunks, and all at once are the same network."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import toys
from echolearn import DeepESNClassifier, ESNClassifier, ESNRegressor
from echolearn.readout import LMS, RLS
from echolearn.states._steps import advance
from toys import grouped

X, LABELS = toys.labels(sequences=8)
VALUES = toys.echoes(sequences=8)[1]
CLOSE = {"float32": 2e-5, "float64": 1e-11}
MODELS = {
    "softmax": lambda **k: ESNClassifier(**grouped(toys.FAST, k)).fit(X, LABELS),
    "ridge": lambda **k: ESNClassifier(readout="ridge", **grouped(toys.FAST, k)).fit(X, LABELS),
    "paper": lambda **k: ESNClassifier.paper(8, epochs=1, **grouped(k)).fit(X, LABELS),
    "feedback": lambda **k: ESNClassifier(feedback=True, **grouped(toys.FAST, k)).fit(X, LABELS),
    "values": lambda **k: ESNRegressor(**grouped(toys.FAST, k, initial_state=np.full(15, 0.1))).fit(X, VALUES),
    "one value": lambda **k: ESNRegressor(**grouped(toys.FAST, k, direct=False)).fit(X, [v[:, 0] for v in VALUES]),
    "fed back values": lambda **k: ESNRegressor(feedback=True, **grouped(toys.FAST, k)).fit(X, VALUES),
}


@pytest.fixture(scope="module")
def model():
    return MODELS["values"]()


def answers(esn):
    return getattr(esn, "predict_proba", esn.predict)


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("kind", MODELS)
def test_a_stream_answers_as_predict_does(kind, dtype):
    esn = MODELS[kind](dtype=dtype)
    stream = esn.stream()
    for x in X[:3]:
        at_once = answers(esn)(x)
        one_by_one = np.array([answers(stream)(frame) for frame in x])
        np.testing.assert_allclose(one_by_one, at_once, rtol=0, atol=CLOSE[dtype] * max(1, np.abs(at_once).max()))
        stream.reset()
        np.testing.assert_array_equal(answers(stream)(x), one_by_one)
        stream.reset()


@pytest.mark.parametrize("kind", ["softmax", "ridge", "feedback"])
def test_labels(kind):
    esn = MODELS[kind]()
    stream = esn.stream()
    assert [stream.predict(frame) for frame in X[0]] == esn.predict(X[0]).tolist()
    assert stream.reset().predict(X[0]).tolist() == esn.predict(X[0]).tolist()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.sampled_from(["values", "fed back values"]))
def test_chunks_of_any_size_give_the_same_bits(cuts, kind):
    esn, x = PLAIN[kind], np.random.default_rng(0).normal(size=(20, 2))
    whole = esn.stream().predict(x)
    stream = esn.stream()
    chunks = np.split(x, np.minimum(np.cumsum(cuts), 20))
    np.testing.assert_array_equal(np.concatenate([stream.predict(chunk) for chunk in chunks]), whole)
    assert stream.steps == 20


PLAIN = {kind: MODELS[kind]() for kind in ("values", "fed back values")}


def test_reset_state_and_copy(model):
    stream = model.stream()
    np.testing.assert_array_equal(stream.state, np.full(15, 0.1, np.float32))
    stream.predict(X[0][:5])
    middle = stream.state
    other = stream.copy()
    rest = stream.predict(X[0][5:])
    np.testing.assert_array_equal(other.state, middle)  # the copy stood still
    np.testing.assert_array_equal(other.predict(X[0][5:]), rest)
    middle[:] = 7
    assert (stream.state != 7).all()
    np.testing.assert_array_equal(stream.reset(other.state).state, other.state)
    assert stream.steps == 0
    with pytest.raises(ValueError, match=r"state has shape \(3,\); expected 15 finite numbers"):
        stream.reset(np.zeros(3))
    deep = DeepESNClassifier(8, 1, epochs=15).fit(X, [x[:, 0] > 0 for x in X]).stream()
    for one in (stream, deep):
        with pytest.raises(ValueError, match="state"):
            one.reset("ring")


def test_a_stream_outlives_a_new_fit():
    esn = MODELS["values"]()
    stream = esn.stream()
    before = stream.copy().predict(X[0])
    esn.fit(X, [3 * v + 10 for v in VALUES])
    np.testing.assert_array_equal(stream.predict(X[0]), before)


def test_memory_does_not_grow(model):
    """Whatever a stream holds after many frames has the size it had after one."""
    stream = model.stream()

    def held():
        return {name: value.nbytes for name, value in vars(stream).items() if isinstance(value, np.ndarray)}

    stream.predict(X[0][0])
    before = held()
    for _ in range(20):
        stream.predict(X[0])
    assert held() == before


@pytest.mark.parametrize("form", [list, np.float32, np.int64, "strided", "read-only", "big-endian"])
def test_forms_of_frames(model, form):
    x = np.round(4 * X[0][:6])
    given_ = {
        list: x.tolist(),
        np.float32: x.astype(np.float32),
        np.int64: x.astype(np.int64),
        "strided": np.repeat(x, 2, axis=1)[:, ::2],
        "read-only": np.broadcast_to(x, x.shape),
        "big-endian": x.astype(">f8"),
    }[form]
    expected = model.stream().predict(x)
    np.testing.assert_array_equal(model.stream().predict(given_), expected)
    stream = model.stream()
    np.testing.assert_array_equal([stream.predict(frame) for frame in given_], expected)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (np.zeros(3), r"a frame has shape \(2,\) here, a chunk \(steps, 2\); given \(3,\)"),
        (np.zeros((4, 1)), r"given \(4, 1\)"),
        (np.zeros((1, 4, 2)), r"given \(1, 4, 2\)"),
        (0.5, r"given \(\)"),
        (["a", "b"], "a frame holds 2 numbers here; given <U1 entries"),
        ({"a": 1.0, "b": 2.0}, r"given \{'a': 1.0, 'b': 2.0\}, a dict. Pass an array of 2 numbers.*frame.values\(\)"),
        (None, "given None, a NoneType. Pass an array of 2 numbers, in the order of the features"),
        ([1j, 2], "given complex128 entries"),
        ([np.nan, 0.0], "frame 0 of 1 holds NaN or infinity; the stream has not moved"),
        ([[0.0, 1.0], [np.inf, 0.0]], "frame 1 of 2 holds NaN or infinity"),
        ([1e300, 0.0], "frame 0 of 1 holds NaN or infinity"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_bad_frames_are_named_and_change_nothing(model, frame, message):
    stream = model.stream()
    stream.predict(X[0][:4])
    before = stream.state
    with pytest.raises(ValueError, match=message):
        stream.predict(frame)
    np.testing.assert_array_equal(stream.state, before)
    assert stream.steps == 4


def test_an_empty_chunk_is_no_step(model):
    assert model.stream().predict(np.empty((0, 2))).shape == (0, 2)


def test_a_stream_needs_a_fit():
    for kind in (ESNClassifier, ESNRegressor):
        with pytest.raises(NotFittedError):
            kind().stream()


def ridge_model(**how):
    return ESNRegressor(**grouped({**toys.FAST, "learn": "none", "ridge": 0.3, "dtype": "float64", **how}))


@pytest.mark.parametrize("direct", [True, False])
def test_rls_on_a_stream_ends_where_a_fit_of_all_frames_ends(direct):
    esn = ridge_model(direct=direct, washout=2).fit(X[:5], VALUES[:5])
    stream = esn.stream(online=RLS())
    for x, v in zip(X[5:], VALUES[5:], strict=True):
        stream.reset().learn(x, v)
    esn.partial_fit(X[5:], VALUES[5:])
    np.testing.assert_allclose(stream.readout_weights, esn.network_.readout.U, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(stream.reset().predict(X[0]), esn.predict(X[0]), rtol=1e-6)


def test_learn_answers_before_it_learns():
    esn = ridge_model().fit(X[:5], VALUES[:5])
    first, second = esn.stream(online=LMS(1.0)), esn.stream()
    np.testing.assert_array_equal(first.learn(X[6][0], VALUES[6][0] + 5), second.predict(X[6][0]))
    # LMS with rate 1 has learned the frame by heart
    first.reset()
    np.testing.assert_allclose(first.predict(X[6][0]), VALUES[6][0] + 5, rtol=1e-10)


def test_a_stream_that_learns_follows_a_change():
    """The output was one input, and from then on it is the other one, upside down."""
    esn = ridge_model().fit(X, [x[:, 0] for x in X])
    before = esn.predict(X[0])
    stream = esn.stream(online=RLS(forgetting=0.95))
    errors = [np.abs(stream.reset().learn(x, -x[:, 1]) + x[:, 1]).mean() for x in X]
    assert errors[0] > 0.3
    assert errors[-1] < 0.1
    np.testing.assert_array_equal(esn.predict(X[0]), before)  # the estimator is as it was


@pytest.mark.parametrize(
    ("readout", "online"), [("softmax", LMS(0.2)), ("ridge", LMS(0.05)), ("ridge", RLS(ridge=1.0))]
)
def test_classifiers_learn_on(readout, online):
    y = [np.where(x[:, 0] > 0, "up", "down") for x in X]
    opposite = [np.where(x[:, 0] > 0, "down", "up") for x in X]
    esn = ESNClassifier(readout=readout, **grouped(toys.FAST)).fit(X, y)
    stream = esn.stream(online=online)
    for _ in range(10):
        for x, label in zip(X, opposite, strict=True):
            stream.reset().learn(x, label)
    right = [stream.reset().predict(x) == label for x, label in zip(X, opposite, strict=True)]
    assert np.mean(np.concatenate(right)) > 0.9
    assert esn.score(X, y) > 0.9  # the estimator is as it was
    assert stream.reset().learn(X[0][0], "up") in ("up", "down")


def test_softmax_step_is_the_gradient_of_the_cross_entropy():
    esn = ESNClassifier(dtype="float64", **grouped(toys.FAST)).fit(X, LABELS)
    stream = esn.stream(online=LMS(0.3))
    x, V = X[0][0], stream.readout_weights
    p = stream.learn(x, "low") and esn.predict_proba(x[None])[0]
    phi = np.concatenate([stream.state, (x - esn.input_mean_) / esn.input_scale_, [1.0]])
    t = (esn.classes_ == "low") * 1.0
    np.testing.assert_allclose(stream.readout_weights, V - 0.3 * np.outer(phi, p - t) / (phi @ phi), atol=1e-12)


def test_what_learn_refuses():
    esn = MODELS["softmax"]()
    with pytest.raises(ValueError, match=r"does not learn: make it with online=RLS\(\) or LMS\(\)"):
        esn.stream().learn(X[0], LABELS[0])
    with pytest.raises(ValueError, match=r"RLS fits squared errors.*Use LMS\(\), or readout='ridge'"):
        esn.stream(online=RLS())
    stream = esn.stream(online=LMS())
    with pytest.raises(ValueError, match=r"labels that were not there when fitting: \['huge'\]"):
        stream.learn(X[0][0], "huge")
    stream = ridge_model().fit(X, VALUES).stream(online=LMS())
    with pytest.raises(ValueError, match="y has 1 entries for 3 frames; expected one target per frame"):
        stream.learn(X[0][:3], VALUES[0][:1])
    for bad in ([np.nan, 0.0], 0.5, [0.1, 0.2, 0.3]):
        with pytest.raises(ValueError, match=r"y has shape \(1,.*\).*finite numbers"):
            stream.learn(X[0][0], bad)
    with pytest.raises(ValueError, match="frame 2 of 3 holds NaN or infinity; the stream has not moved"):
        stream.learn([[0.0, 0.0], [1.0, 1.0], [np.nan, 0.0]], np.zeros((3, 2)))
    assert stream.steps == 0


def test_the_first_frame_needs_no_compiling(model):
    compiled = len(advance.signatures)
    stream = model.stream()
    after_making = len(advance.signatures)
    stream.predict(np.broadcast_to(X[0], X[0].shape))
    stream.predict(X[0][0].tolist())
    assert len(advance.signatures) == after_making >= compiled
