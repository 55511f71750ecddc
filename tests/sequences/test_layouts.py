"""Which axis of X is time: the table of layouts, the signs it is read from, and what follows after the fit."""

import warnings

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

import toys
from benchmarks.layouts import (
    EQUAL,
    LABELS,
    LAYOUTS,
    RAGGED,
    SINGLE,
    masked,
    padded,
    padded_labels,
    steps_of,
    try_layout,
)
from echolearn import ESNClassifier, ESNRegressor, FrameWise, StackedClassifier, load
from echolearn.exceptions import InputWarning, LayoutWarning
from echolearn.sequences.layouts import check_steps, choose_layout, has_padding, roughness, steps_there, without_mask
from echolearn.sequences.opening import open_sequences, unpack
from toys import grouped

SMALL = {"hidden_units": 5, "connections": 2, "learn": "none", "readout": "ridge"}
AEON, UCR = np.stack(EQUAL).swapaxes(1, 2), np.stack(SINGLE)[:, :, 0]


def esn(layout="auto"):
    return ESNClassifier(layout=layout, **grouped(SMALL))


def test_there_are_at_least_forty_layouts_with_names_of_their_own():
    assert len({layout.name for layout in LAYOUTS}) == len(LAYOUTS) >= 40


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_every_layout_is_read_right_or_refused_with_the_line_that_mends_it(layout):
    seen = try_layout(layout)
    assert (seen.verdict, layout.words in seen.said) == (layout.expected, True), seen
    if layout.like is not None:
        assert issubclass(seen.answer, layout.answer)


@pytest.mark.parametrize(("axis", "expected"), [(0, 1.0), (1, 1.0)])
def test_the_roughness_of_what_has_no_order_is_one(axis, expected):
    noise = np.random.default_rng(0).standard_normal((300, 40)) * np.arange(1, 41)
    assert roughness(noise, axis) == pytest.approx(expected, abs=0.05)


def test_the_roughness_is_small_along_time_and_does_not_depend_on_scale_or_offset():
    walk = np.cumsum(np.random.default_rng(0).standard_normal((5, 200)), axis=1)
    assert roughness(walk, 1) < 0.1
    assert roughness(1e6 + 1e3 * walk, 1) == pytest.approx(roughness(walk, 1), rel=1e-6)
    gaps = walk.copy()
    gaps[:, 150:] = np.nan
    assert roughness(gaps, 1) < 0.1
    assert roughness(np.ones((4, 5)), 1) == 1.0
    assert roughness(walk[:, :2], 1) == 1.0


def test_two_readings_are_told_apart_by_the_data_and_announced():
    for X, taken, other in ((AEON, "channels_first", "time_first"), (UCR, "rows", "time_first")):
        with pytest.warns(LayoutWarning, match=f"Set layout='{taken}' to say so, or layout='{other}'"):
            assert choose_layout(unpack(X), LABELS, "auto") == taken
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for said in ("time_first", taken):
                assert choose_layout(unpack(X), LABELS, said) == said


def test_shuffled_steps_are_no_longer_time():
    """The same numbers without their order along the last axis are refused, since no axis is smooth."""
    mixed = AEON[:, :, np.random.default_rng(0).permutation(AEON.shape[2])]
    with pytest.raises(ValueError, match=r"Set layout='time_first'.*or layout='channels_first'"):
        choose_layout(unpack(mixed), LABELS, "auto")


def test_features_that_are_smoother_than_time_are_refused():
    many = np.cumsum(np.random.default_rng(0).standard_normal((12, 20, 8)), axis=2)
    with pytest.raises(ValueError, match=r"neighbouring features are more alike.*layout='channels_first'"):
        choose_layout(unpack(many), LABELS, "auto")
    assert choose_layout(unpack(many), LABELS, "time_first") == "time_first"


@pytest.mark.parametrize("features", [1, 3, 10, 40])
@pytest.mark.parametrize("kind", ["noise", "walk"])
def test_one_series_with_a_label_per_step_stays_one_series(features, kind):
    X = np.random.default_rng(1).standard_normal((300, features))
    X = np.cumsum(X, axis=0) if kind == "walk" else X
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose_layout(unpack(X), ["a", "b"] * 150, "auto") == "time_first"


def test_rows_of_values_that_are_as_long_as_there_are_features_are_no_steps():
    """y (cases, 3) of X (cases, steps, 3): three values per sequence, not a value per channel."""
    targets = np.random.default_rng(0).standard_normal((len(EQUAL), 3))
    for y in (targets, targets > 0, (targets > 0).astype(int)):
        assert choose_layout(unpack(np.stack(EQUAL)), y, "auto") == "time_first"
    assert choose_layout(unpack(AEON), np.zeros((len(EQUAL), AEON.shape[2])), "auto") == "channels_first"


def test_square_sequences_with_labels_per_step_are_announced():
    square = np.random.default_rng(0).standard_normal((6, 9, 9))
    with pytest.warns(LayoutWarning, match="time first"):
        assert choose_layout(unpack(square), np.zeros((6, 9), int), "auto") == "time_first"


def test_lists_of_one_dimensional_arrays():
    noise = list(np.random.default_rng(0).standard_normal((12, 20)))
    with pytest.warns(LayoutWarning, match=r"12 univariate series of 20 steps.*layout='rows'"):
        assert choose_layout(unpack(noise), LABELS, "auto") == "rows"
    frames = list(np.cumsum(np.random.default_rng(0).standard_normal((60, 9)), axis=0))
    with pytest.raises(ValueError, match=r"univariate series, or 60 steps.*layout='rows'.*numpy.array"):
        choose_layout(unpack(frames), [0, 1] * 30, "auto")


@pytest.mark.parametrize("layout", ["channels_first", "rows"])
def test_predictions_read_as_the_fit_did(layout, tmp_path):
    X = AEON if layout == "channels_first" else UCR
    like = EQUAL if layout == "channels_first" else SINGLE
    fitted, plain = esn(layout).fit(X, LABELS), esn("time_first").fit(like, LABELS)
    assert (fitted.layout_, plain.layout_) == (layout, "time_first")
    np.testing.assert_array_equal(fitted.predict(X), plain.predict(like))
    np.testing.assert_array_equal(fitted.predict(list(X)), plain.predict(like))
    assert fitted.score(X, LABELS) == plain.score(like, LABELS)
    fitted.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.layout_ == layout
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LayoutWarning)
        guessed = esn().fit(X, LABELS)
    assert guessed.layout_ == layout
    np.testing.assert_array_equal(guessed.predict(X), fitted.predict(X))


def test_one_case_has_the_layout_of_the_fit():
    fitted = esn("channels_first").fit(AEON, LABELS)
    assert fitted.predict(AEON[0]).shape == (1,)
    with pytest.raises(ValueError, match=r"X has 30 features.*expecting 3.*The other axis has 3: pass X.T"):
        fitted.predict(EQUAL[0])
    with pytest.raises(ValueError, match=r"expecting 3.*pass X.transpose\(0, 2, 1\)"):
        fitted.predict(np.stack(EQUAL))
    with pytest.raises(ValueError, match=r"expecting 3.*pass \[x.T for x in X\]"):
        esn("time_first").fit(EQUAL, LABELS).predict([x.T for x in EQUAL])
    rows = esn("rows").fit(UCR, LABELS)
    assert rows.predict(UCR[:1]).shape == (1,)
    with pytest.raises(ValueError, match=r"pass X\[None, :\]"):
        rows.predict(UCR[0])
    with pytest.raises(ValueError, match=r"one step in each row.*Pass X.T"):
        rows.predict(UCR[:1].T)
    np.testing.assert_array_equal(rows.predict(SINGLE), rows.predict(UCR))
    np.testing.assert_array_equal(rows.predict([x.T for x in SINGLE]), rows.predict(UCR))


def test_series_after_a_fit_to_sequences_of_one_feature():
    fitted = esn("time_first").fit(SINGLE, LABELS)
    np.testing.assert_array_equal(fitted.predict([x[:, 0] for x in SINGLE]), fitted.predict(SINGLE))
    with pytest.raises(ValueError, match="X has 30 features"):
        fitted.predict(UCR)


def test_validation_and_partial_fit_have_the_layout_of_the_fit():
    plain = esn("time_first").fit(EQUAL, LABELS, validation=(EQUAL, LABELS)).partial_fit(EQUAL, LABELS)
    turned = esn("channels_first").fit(AEON, LABELS, validation=(AEON, LABELS)).partial_fit(AEON, LABELS)
    np.testing.assert_array_equal(plain.readout_weights_, turned.readout_weights_)


def test_answers_per_step_of_channels_first_data_have_time_first():
    steps = [x[:, 0] for x in EQUAL]
    fitted = ESNRegressor(5, reservoir={"connections": 2}, learn="none").fit(AEON, np.stack(steps))
    assert fitted.layout_ == "channels_first"
    assert fitted.predict(AEON).shape == (len(AEON), AEON.shape[2])
    joined = np.stack([np.stack([s, 2 * s], axis=1) for s in steps])
    assert ESNRegressor(5, learn="none").fit(AEON, joined).predict(AEON).shape == joined.shape


def test_a_stack_has_a_layout(tmp_path):
    layer = ESNClassifier(**grouped(SMALL))
    X, y = AEON, np.where(AEON[:, 0] > 0, "up", "down")
    stack = StackedClassifier([layer, layer], joint_epochs=0, layout="channels_first").fit(X, y)
    plain = StackedClassifier([layer, layer], joint_epochs=0).fit(EQUAL, list(y))
    np.testing.assert_array_equal(stack.predict(X), np.stack(plain.predict(EQUAL)))
    assert stack.score(X, y) == plain.score(EQUAL, list(y))
    stack.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(X), stack.predict(X))
    with pytest.raises(ValueError, match=r"layout='rows' in layer 1; expected 'auto' in a stack"):
        StackedClassifier([ESNClassifier(5, layout="rows"), layer]).fit(X, y)


@pytest.mark.parametrize("bad", ["channels", "TIME_FIRST", None, 1])
def test_other_layouts_are_refused(bad):
    with pytest.raises(ValueError, match=r"layout=.*expected one of 'auto', 'time_first', 'channels_first', 'rows'"):
        esn(bad).fit(EQUAL, LABELS)


def test_rows_are_for_two_dimensions():
    for X in (np.stack(EQUAL), AEON, EQUAL):
        with pytest.raises(ValueError, match=r"layout='rows' is for univariate series.*shape \("):
            esn("rows").fit(X, LABELS)


def test_frame_wise_transformers_and_lists_tell_of_turned_sequences():
    with pytest.warns(LayoutWarning, match=r"of shape \(3, 30\), which were taken as time first.*\[x.T for x in X\]"):
        FrameWise(StandardScaler()).fit(AEON)
    with pytest.raises(ValueError, match=r"different numbers of features.*pass \[x.T for x in X\]"):
        FrameWise(StandardScaler()).fit([x.T for x in RAGGED])


def test_a_layout_warning_is_an_input_warning():
    assert issubclass(LayoutWarning, InputWarning)


def test_labels_of_steps_decide_for_lists_of_any_length():
    X, y = toys.labels(sequences=6)
    assert choose_layout(unpack([x.T for x in X]), y, "auto") == "channels_first"
    assert choose_layout(unpack(X), y, "auto") == "time_first"
    assert choose_layout(unpack([x.T for x in RAGGED]), LABELS, "auto") == "channels_first"


def test_rows_of_series_with_more_than_one_target_each_are_undecided():
    """Rows that are smooth read as series; but what has rows of values, or a label per step, may be steps as well."""
    for y in (np.zeros((len(UCR), 3)), [np.zeros(UCR.shape[1]) for _ in UCR]):
        with pytest.raises(ValueError, match=rf"{len(UCR)} steps with {UCR.shape[1]} features, or {len(UCR)} series"):
            choose_layout(unpack(UCR), y, "auto")


def test_labels_of_other_steps_than_any_axis_leave_time_first():
    """So the error says that labels and steps differ, whatever the axes look like."""
    X = [np.cumsum(np.random.default_rng(k).standard_normal((5, 40)), axis=1) for k in range(3)]
    labels = [np.array(["a", "b"] * 10 + ["a"])] * 3
    assert choose_layout(unpack(X), labels, "auto") == "time_first"


# ---------------- Padding


def test_the_last_steps_that_lack_every_feature_are_padding():
    x = np.arange(12.0).reshape(6, 2)
    assert steps_there(x) == 6
    x[5] = np.nan
    assert steps_there(x) == 5
    x[4, 0] = np.nan  # a step with one feature is a step
    x[1] = np.nan  # and one before others is not padding
    assert steps_there(x) == 5
    x[:] = np.nan
    assert steps_there(x) == 0
    assert steps_there(np.ma.masked_array(np.ones((3, 2)), [[0, 0], [1, 1], [1, 1]])) == 1


def test_the_axis_of_padding():
    filled = padded(RAGGED)
    assert has_padding(filled, 1)
    assert not has_padding(filled, 2)
    assert has_padding(filled.swapaxes(1, 2), 2)
    assert not has_padding(np.stack([x[:20] for x in RAGGED]), 1)


def test_nan_inside_a_sequence_is_no_padding():
    filled = padded(RAGGED)
    filled[3, 5] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        open_sequences(filled)


def test_a_sequence_of_padding_is_refused():
    filled = padded(RAGGED)
    filled[3] = np.nan
    with pytest.raises(ValueError, match="sequence 3 is nothing but padding"):
        open_sequences(filled)


def test_answers_to_padded_data_are_masked():
    filled, labels = padded(RAGGED), padded_labels(RAGGED)
    esn = ESNClassifier(**grouped(SMALL)).fit(filled, labels)
    answer = esn.predict(filled)
    assert answer.shape == labels.shape
    np.testing.assert_array_equal(~answer.mask, ~np.isnan(filled[:, :, 0]))
    plain = ESNClassifier(**grouped(SMALL)).fit(RAGGED, steps_of(RAGGED))
    np.testing.assert_array_equal(answer.compressed(), np.concatenate(plain.predict(RAGGED)))
    assert esn.score(filled, labels) == plain.score(RAGGED, steps_of(RAGGED))
    assert esn.predict_proba(filled).shape == (*labels.shape, 2)


def test_values_behind_the_end_do_not_count():
    y = padded([x[:, :1] for x in RAGGED])[:, :, 0]
    esn = ESNRegressor(5, reservoir={"connections": 2}, learn="none").fit(masked(RAGGED), y)
    plain = ESNRegressor(5, reservoir={"connections": 2}, learn="none").fit(RAGGED, [x[:, 0] for x in RAGGED])
    np.testing.assert_array_equal(esn.readout_weights_, plain.readout_weights_)


def test_masked_tails_of_one_sequence_and_of_lists():
    x = np.ma.masked_array(np.ones((5, 2)), np.repeat([0, 0, 0, 1, 1], 2).reshape(5, 2))
    one = open_sequences(x)
    assert one.X[0].shape == (3, 2)
    assert one.in_given_form([np.arange(3)]).mask.tolist() == [False] * 3 + [True] * 2
    both = open_sequences([x, np.ones((4, 2))])
    assert [len(part) for part in both.X] == [3, 4]
    assert [len(part) for part in both.in_given_form([np.arange(3), np.arange(4)])] == [5, 4]


@pytest.mark.parametrize("lengths", [[1, 2], [1, 2, 0], [1, 2, 9], [1.0, 2.0, 3.0], "abc", [[1], [2, 3], [4]]])
def test_lengths_of_padded_sequences_are_checked(lengths):
    with pytest.raises(ValueError, match=r"lengths of a 3-D array .* whole numbers from 1 to 5"):
        check_steps(lengths, 3, 5)


def test_lengths_cut_padded_sequences():
    esn = ESNClassifier(**grouped(SMALL)).fit(np.nan_to_num(padded(RAGGED)), LABELS, lengths=[len(x) for x in RAGGED])
    plain = ESNClassifier(**grouped(SMALL)).fit(RAGGED, LABELS)
    np.testing.assert_array_equal(esn.readout_weights_, plain.readout_weights_)


def test_an_empty_mask_is_none():
    assert type(without_mask(np.ma.masked_array([1.0], [False]))) is np.ndarray
