"""Labels and values as a network learns them, and back."""

from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echolearn import SeriesClassifier
from echolearn.fitting.codecs import ClassCodec, ValueCodec, nearest_distribution

KINDS_OF_LABELS = [("low", "high"), (3, -7), (0.0, 1.0), (True, False), ("é", "日本", "")]


def logits(numbers, classes):
    """Outputs that are largest for the given class numbers."""
    return 3.0 * np.eye(classes)[numbers] - 1.0


@pytest.mark.parametrize("names", KINDS_OF_LABELS, ids=lambda names: str(names[0]))
def test_labels_per_step_come_back(names):
    entries = [np.array(names)[[0, 1, 1]], np.array(names)[::-1]]
    codec = ClassCodec.of(entries, per_step=True)
    np.testing.assert_array_equal(codec.labels, np.unique(names))
    assert codec.classes == len(names)
    for entry, encoded in zip(entries, codec.encode(entries, True), strict=True):
        assert encoded.dtype.kind == "i"
        np.testing.assert_array_equal(codec.decode(logits(encoded, codec.classes)), entry)


def test_labels_per_sequence_come_back():
    entries = list(np.array(["up", "down", "up"]))
    codec = ClassCodec.of(entries, per_step=False)
    encoded = codec.encode(entries, False)
    assert encoded == [1, 0, 1]
    assert codec.decode(logits(encoded, 2)).tolist() == ["up", "down", "up"]


def test_all_labels_may_be_given_where_y_lacks_some():
    codec = ClassCodec.of([np.array(["b", "b"])], True, np.array(["a", "b", "c"]))
    assert codec.encode([np.array(["b", "c"])], True)[0].tolist() == [1, 2]


def test_unknown_labels_are_named():
    codec = ClassCodec(np.array(["a", "b"]))
    with pytest.raises(ValueError, match=r"not there when fitting: \['z'\]"):
        codec.encode([np.array(["a", "z"])], True)
    with pytest.raises(ValueError, match=r"not there when fitting: \['z'\]"):
        codec.encode_frames(["a", "z"])
    with pytest.raises(ValueError, match=r"not there when fitting: \[3\]"):
        ClassCodec(np.array(["a", "b"], dtype=object)).encode([np.array([3, "a"], dtype=object)], True)
    with pytest.raises(ValueError, match="not there when fitting"):
        codec.encode_frames([{}])


def test_a_classifier_needs_two_classes_and_one_label_each():
    with pytest.raises(ValueError, match="only one class, 'a'"):
        ClassCodec.of([np.array(["a", "a"])], True)
    with pytest.raises(ValueError, match=r"y has shape \(3, 2\); expected one label each"):
        ClassCodec.of([np.eye(3, 2)], True)
    with pytest.raises(ValueError, match=r"mixes labels of types \['int', 'str'\]"):
        ClassCodec.of([np.array(["a", 1], dtype=object)], True)
    with pytest.raises(ValueError, match="mixes labels of types"):
        SeriesClassifier(20).fit(np.zeros((2, 30, 1)), ["a", 1])


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["2026-01-01", "2026-01-02"], "datetime64[D]"),
        np.array(["2026-01-01", "2026-01-02"], "datetime64[ns]"),
        np.array([1, 2], "timedelta64[s]"),
        np.array([b"on", b"off"]),
        np.array([date(2026, 1, 1), date(2026, 1, 2)]),
    ],
)
def test_labels_that_no_file_can_hold_are_refused_with_the_line_that_helps(labels):
    with pytest.raises(ValueError, match=r"cannot hold; expected strings .* Pass np.asarray\(y\).astype\(str\)"):
        ClassCodec.of([labels, labels], per_step=True)
    texts = np.asarray(labels).astype(str)
    assert ClassCodec.of([texts, texts], per_step=True).labels.dtype.kind == "U"


def test_frames_of_labels_are_one_hot_rows():
    codec = ClassCodec(np.array(["a", "b", "c"]))
    np.testing.assert_array_equal(codec.encode_frames(["c", "a"]), [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(codec.encode_frames("b"), [[0, 1, 0]])


def test_the_error_of_labels_is_the_number_of_wrong_ones():
    codec = ClassCodec(np.arange(3))
    assert codec.error(logits([0, 1, 2, 2], 3), np.array([0, 1, 1, 0])) == 2


def test_probabilities_of_a_softmax_and_of_a_ridge_readout():
    codec, Y = ClassCodec(np.arange(2)), np.array([[0.0, np.log(3)], [0.2, 0.6]], np.float32)
    np.testing.assert_allclose(codec.probabilities(Y, softmax=True)[0], [0.25, 0.75], rtol=1e-6)
    np.testing.assert_allclose(codec.probabilities(Y, softmax=False)[1], [0.3, 0.7], rtol=1e-6)


def test_nearest_distribution_is_the_projection_on_the_simplex():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(50, 4))
    P = nearest_distribution(Y)
    # of all distributions tried, none is nearer
    for Q in rng.dirichlet(np.full(4, 0.3), size=400):
        assert (((Y - P) ** 2).sum(axis=1) <= ((Y - Q) ** 2).sum(axis=1) + 1e-12).all()
    already = rng.dirichlet(np.ones(4), size=5)
    np.testing.assert_allclose(nearest_distribution(already), already, atol=1e-12)
    assert np.isnan(nearest_distribution(np.array([[1.0, np.nan], [np.inf, 0.0]]))).all()  # and it ends


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    width=st.sampled_from([None, 1, 3]),
    per_step=st.booleans(),
    scale=st.sampled_from([1e-200, 1e-3, 1.0, 1e100]),
)
def test_values_come_back(seed, width, per_step, scale):
    rng = np.random.default_rng(seed)
    shape = () if width is None else (width,)
    entries = [scale * (2 + rng.normal(size=((n, *shape) if per_step else shape))) for n in (2, 5, 3)]
    codec = ValueCodec.of(entries, per_step, "float64")
    assert codec.classes is None
    encoded = codec.encode(entries, per_step)
    rows = np.vstack(encoded)
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(rows.std(axis=0), 1, rtol=1e-9)
    for entry, t in zip(entries, encoded, strict=True):
        assert t.shape == ((len(entry), width or 1) if per_step else (width or 1,))
        back = codec.decode(np.atleast_2d(t))
        np.testing.assert_allclose(back if per_step else back[0], entry, rtol=1e-9)


def test_frames_of_values_are_standardised():
    codec = ValueCodec(np.array([1.0, 2.0]), np.array([2.0, 4.0]), False, "float64")
    np.testing.assert_array_equal(codec.encode_frames([[3.0, 6.0]]), [[1.0, 1.0]])
    np.testing.assert_array_equal(codec.decode(np.array([[1.0, 1.0]])), [[3.0, 6.0]])


def test_the_error_of_values_is_the_mean_over_outputs_of_their_squares():
    codec = ValueCodec(np.zeros(2), np.ones(2), False, "float64")
    assert codec.error(np.array([[1.0, 0.0], [0.0, 2.0]]), np.zeros((2, 2))) == 2.5


def test_values_that_do_not_fit_are_named():
    codec = ValueCodec.of([np.arange(4.0)], True, "float32")
    with pytest.raises(ValueError, match="y has 2 values each; expected 1, as when fitting"):
        codec.encode([np.ones((3, 2))], True)
    with pytest.raises(ValueError, match=r"y holds values 1e\+20|standard deviations from those fitted; float32"):
        codec.encode([np.array([1e25])], True)
    with pytest.raises(ValueError, match="y holds text such as a; expected numbers"):
        ValueCodec.of([np.array(["a", "b"])], True, "float32")
    with pytest.raises(ValueError, match=r"y has shape \(2, 1, 1\); expected a value or a row"):
        ValueCodec.of([np.ones((2, 1, 1))], True, "float32")
    assert ValueCodec.of([np.array(["1", "2"])], True, "float32").mean == 1.5  # texts of numbers are numbers


def test_errors_are_weighted():
    w = np.array([1.0, 2.0, 0.5])
    classes = ClassCodec(np.array(["a", "b"]))
    assert classes.error(logits([0, 1, 1], 2), np.array([0, 0, 0]), w) == 2.5
    values = ValueCodec(np.zeros(2), np.ones(2), False, "float64")
    assert values.error(np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), np.zeros((3, 2)), w) == 0.5 + 4 + 0.5
